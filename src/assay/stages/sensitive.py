"""Fields in which a reader may come to harm by acting on a report: health, law and money.

Told by words of the question. One that belongs to the field alone is enough; of those that are also used elsewhere
(treatment of water, chemical bonds, a tennis court) it takes two."""

import re
from collections.abc import Sequence
from typing import Literal

from assay.text.words import fold, stem, words

Field = Literal["medical", "legal", "financial"]

DISCLAIMERS: dict[Field, str] = {
    "medical": "This report repeats what its sources say and is not medical advice; before acting on it, ask a doctor "
    "or a pharmacist.",
    "legal": "This report repeats what its sources say and is not legal advice; the law differs from place to place, "
    "so ask a lawyer before acting on it.",
    "financial": "This report repeats what its sources say and is not financial advice; prices and conditions change, "
    "so ask a qualified adviser before acting on it.",
}

_ALONE: dict[Field, str] = {
    "medical": "symptom dose dosage overdose medication vaccine vaccination antibiotic ibuprofen paracetamol "
    "acetaminophen aspirin statin insulin chemotherapy diabetes cancer hypertension pregnancy pregnant surgery "
    "diagnosis diagnose arthritis asthma migraine semaglutide ozempic opioid antidepressant contraceptive disease "
    "therapy medicine painkiller vitamin allergy "
    "medikament nebenwirkung dosierung krankheit impfung schwangerschaft medicament maladie grossesse medicamento "
    "enfermedad embarazo vacuna",
    "legal": "legal illegal unlawful liability liable sue attorney lawyer solicitor tenant landlord eviction divorce "
    "alimony probate gdpr ccpa copyright statute litigation defamation trademark "
    "mietrecht arbeitsrecht anwalt kundigung avocat juridique abogado demanda",
    "financial": "invest investing investment investor mortgage pension dividend bitcoin cryptocurrency crypto etf "
    "forex annuity brokerage geldanlage aktie aktien hypothek investissement hypotheque inversion hipoteca acciones",
}
_WITH_ANOTHER: dict[Field, str] = {
    "medical": "treatment treat drug medical health infection virus blood clinical doctor hospital pain diet patient "
    "tablet pill depression stroke heart supplement",
    "legal": "law court contract regulation right visa inheritance clause employer dismissal penalty permit rent "
    "license compliance",
    "financial": "stock bond portfolio retirement loan fund trading valuation savings tax buy hedge debt",
}
_PHRASES: dict[Field, str] = {
    "medical": r"side effects?|blood pressure|clinical trials?|mental health|weight loss drugs?",
    "legal": r"statute of limitations|small claims|custody of|employment law|data protection law",
    "financial": r"stock market|share price|stock price|index funds?|hedge funds?|interest rates?|credit score|"
    r"buy or sell|shares of",
}

# Whom advice is given to, or an order; whose advice it is, or that it is none for certain.
_ADVICE = re.compile(
    r"\b(?:you|patients|adults|children|women|men|people|investors|savers|tenants|landlords|employees|everyone|one)\s+"
    r"(?:should|must|ought to|need to|have to|had better)\b"
    r"|^(?:take|buy|sell|invest|sue|hold|avoid|stop|start|never|always|do not|don[’']t)\s+(?!place\b)",
    re.I,
)
_HEDGED = re.compile(
    r"\b(?:may|might|could|perhaps|according to|guidelines?|guidance|recommend\w*|advis\w+|suggest\w*|says?|said|"
    r"consult|ask (?:a|an|your)|talk to|speak (?:to|with)|argues?|believes?)\b",
    re.I,
)


def fields(question: str, domains: Sequence[str] = ()) -> tuple[Field, ...]:
    said = {stem(word) for word in words(" ".join((question, *domains)))}
    return tuple(field for field in DISCLAIMERS if _belongs(field, said, fold(question)))


def _belongs(field: Field, said: set[str], question: str) -> bool:
    return (
        bool(said & _stems(_ALONE[field]))
        or len(said & _stems(_WITH_ANOTHER[field])) > 1
        or re.search(rf"\b(?:{_PHRASES[field]})\b", question) is not None
    )


def _stems(listed: str) -> set[str]:
    return {stem(word) for word in listed.split()}


def is_bare_advice(sentence: str) -> bool:
    """Whether it tells the reader what to do, as if nobody in particular had said so."""
    return bool(_ADVICE.search(sentence)) and not _HEDGED.search(sentence)
