"""The gate before a report leaves (W-10): enough citations, recent enough sources, no bare advice, and disclaimers.

What fails is an issue and goes back to the writer, where verified statements are left that would mend it. What no
writer can mend is told in the report, which then counts as less sure; nothing passes in silence.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Verdict
from openassay.models.plan import Plan
from openassay.models.report import Critique, Issue
from openassay.reasoning.base import Draft, DraftSentence, recommend
from openassay.settings import ReportStandards
from openassay.state import State
from openassay.text.questions import find_cutoff
from openassay.text.words import fold, stem, words

# Fields in which a reader may come to harm by acting on a report: health, law and money.
#
# Told by words of the question. One that belongs to the field alone is enough; of those that are also used elsewhere
# (treatment of water, chemical bonds, a tennis court) it takes two.

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


def detect_fields(question: str, domains: Sequence[str] = ()) -> tuple[Field, ...]:
    said = {stem(word) for word in words(" ".join((question, *domains)))}
    return tuple(field for field in DISCLAIMERS if _belongs(field, said, fold(question)))


def _belongs(field: Field, said: set[str], question: str) -> bool:
    return (
        bool(said & _stem_set(_ALONE[field]))
        or len(said & _stem_set(_WITH_ANOTHER[field])) > 1
        or re.search(rf"\b(?:{_PHRASES[field]})\b", question) is not None
    )


def _stem_set(listed: str) -> set[str]:
    return {stem(word) for word in listed.split()}


def is_bare_advice(sentence: str) -> bool:
    """Whether it tells the reader what to do, as if nobody in particular had said so."""
    return bool(_ADVICE.search(sentence)) and not _HEDGED.search(sentence)


MOST = 7.9  # score of a report that does not meet them all: it is not of high confidence


class StandardFailure(NamedTuple):
    """What the writer is asked to mend, and what the reader is told if that is in vain."""

    issue: Issue
    caveat: str
    mendable: bool  # by saying something else of what was verified


Facts = Sequence[tuple[str, DraftSentence]]  # with the section each stands in
Dates = Sequence[str | None]


def check_standards(state: State, draft: Draft, deps: ResearchContext) -> list[StandardFailure]:
    standards = deps.settings.standards
    facts: Facts = [
        (section.title, sentence) for section in draft.sections for sentence in section.sentences if sentence.claims
    ]
    if not facts:
        return []
    told = {id for _, sentence in facts for id in sentence.claims}
    cited, there = _documents_behind(state, told), _documents_behind(state, None)
    return [
        *_check_citations(len(cited), len(there), standards),
        *_check_recency(
            _publication_dates(state, cited),
            _publication_dates(state, there),
            question_text(state),
            deps.now().date(),
            standards,
        ),
        *(_check_advice(facts) if find_sensitive_fields(state, deps) else ()),
    ]


def _documents_behind(state: State, told: set[str] | None) -> set[str]:
    """Those behind the claims named, or behind all that may be told."""
    claims = [Claim.model_validate(item) for item in state["claims"]]
    usable = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]
    chosen = usable if told is None else [claim for claim in claims if claim.id in told]
    return {span.document for claim in chosen for span in claim.spans}


def _publication_dates(state: State, documents: set[str]) -> list[str | None]:
    return [source["published"] for source in state["sources"] if source["document"] in documents]


def question_text(state: State) -> str:
    return str((state["understanding"] or {}).get("question") or state["original_query"])


def find_sensitive_fields(state: State, deps: ResearchContext) -> tuple[Field, ...]:
    """By the question, the fields the person named, and the sub-questions they added."""
    plan = Plan.model_validate(state["plan"]) if state["plan"] else None
    added = [question.text for question in plan.questions] if plan and plan.edited else []
    return detect_fields(" ".join([question_text(state), *added]), deps.options.domains)


def _check_citations(cited: int, there: int, standards: ReportStandards) -> Iterator[StandardFailure]:
    if cited < standards.min_citations:
        told = f"{cited} source{'s are' if cited != 1 else ' is'} cited where at least {standards.min_citations}"
        issue = Issue(category="citation", severity="major", location="whole report", description=f"{told} are wanted",
                      fix="cite more of the sources that bear the statements out")  # fmt: skip
        caveat = f"This report cites fewer sources than it should: {told} were wanted."
        yield StandardFailure(issue, caveat, mendable=there > cited)


def _check_recency(
    cited: Dates, there: Dates, question: str, today: date, standards: ReportStandards
) -> Iterator[StandardFailure]:
    """Sources without a date are of no known age: a threshold somebody has set is not met by them."""
    days = standards.recency_days
    wanted = today - timedelta(days=days) if days else find_cutoff(question, today)
    known = [date.fromisoformat(day[:10]) for day in cited if day]
    if wanted is None or any(day >= wanted for day in known) or not (known or days):
        return
    issue = Issue(category="methodology", severity="major", location="sources",
                  description="no source cited is as recent as it should be",
                  fix="use newer sources, if there are any")  # fmt: skip
    caveat = "No source cited here is as recent as it should be, so newer facts may be missing."
    yield StandardFailure(issue, caveat, mendable=any(date.fromisoformat(day[:10]) >= wanted for day in there if day))


def _check_advice(facts: Facts) -> Iterator[StandardFailure]:
    bare = [(place, sentence.text) for place, sentence in facts if is_bare_advice(sentence.text)]
    if bare:
        place, text = bare[0]
        issue = Issue(category="methodology", severity="major", location=place,
                      description=f"advice as if nobody in particular had given it ({len(bare)}): {text[:80]}",
                      fix="say whose advice it is, or leave it out")  # fmt: skip
        caveat = (
            "Where a statement tells the reader what to do, it is the advice of the source cited for it, "
            "not of this report."
        )
        yield StandardFailure(issue, caveat, mendable=True)


def apply_standards(critique: Critique, failed: Sequence[StandardFailure], revisions: int) -> Critique:
    """The review with what the gate adds to it; a draft that would be approved is revised first where it can be."""
    if not failed:
        return critique
    issues = (*critique.issues, *(one.issue for one in failed))
    score = min(critique.score, MOST)
    advised = recommend(score, issues, revisions) if critique.recommendation == "approve" else critique.recommendation
    again = advised == "approve" and revisions and any(one.mendable for one in failed)
    update = {"issues": issues, "score": score, "recommendation": "revise" if again else advised}
    return critique.model_copy(update=update)


def reader_notes(state: State, draft: Draft | None, deps: ResearchContext) -> list[str]:
    """What a reader is told below the report: that it is no advice, and which standards it does not meet."""
    told = [one.caveat for one in check_standards(state, draft, deps)] if draft else []
    warned = (
        [DISCLAIMERS[field] for field in find_sensitive_fields(state, deps)]
        if deps.settings.standards.disclaimers
        else []
    )
    return [*told, *warned]
