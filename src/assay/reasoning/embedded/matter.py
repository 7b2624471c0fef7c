"""What a question is about, in words that fit into another question, and the field it belongs to."""

import re
from typing import Literal

from assay.model.question import Understanding
from assay.text.language import language
from assay.text.words import fold, stems

Field = Literal["company", "law", "medicine", "software", "science", "economy", "place", "general"]

LONGEST = 90  # characters of a matter

# Words that tell a field. Tried in turn: the price of a drug is a matter of medicine, a law on software one of law.
_FIELDS: dict[Field, str] = {
    "law": "law legal illegal court regulation directive statute liability gdpr ccpa act treaty copyright patent "
    "lawsuit constitution legislation compliance unlawful",
    "medicine": "treatment drug vaccine vaccination disease symptom therapy patient clinical cancer diabetes dose "
    "medicine medical medication health pregnancy pregnant surgery infection virus obesity blood depression antibiotic "
    "ibuprofen aspirin statin semaglutide arthritis",
    "software": "software programming python javascript typescript rust java golang postgres postgresql sql database "
    "api framework library open-source kubernetes docker linux git github algorithm compiler llm",
    "science": "physics chemistry chemical biology quantum galaxy telescope protein gene genome genetic theory "
    "measurement constant hypothesis experiment species planet particle neutrino crispr evolution climate fusion star "
    "dinosaur volcano earthquake cosmology astronomy mathematics",
    "economy": "price market sales revenue stock inflation export import trade economy economic gdp tariff industry "
    "demand supply unemployment wage energy",
    "place": "lake river city town village island mountain mount country capital population province region coast "
    "valley travel visit see",
}

_CLAUSE = re.compile(
    r"^(?:how|why|what|who|when|where|which|there|i|you)\b|"
    r"\b(?:is|are|was|were|did|do|does|has|have|had|will|would|can|could|should|be|been)\b",
    re.I,
)
# "Is ibuprofen safe during pregnancy" is about ibuprofen during pregnancy.
_JUDGED = re.compile(
    r"\s+(?:(?:un)?safe|(?:in)?effective|dangerous|harmful|good|bad|better|worse|(?:im)?possible|(?:il)?legal|true|false|"
    r"real|faked?|worth it|healthy|necessary)\b",
    re.I,
)
_PREDICATE = re.compile(r"\s+(?:is|are|was|were|did|do|does|has|have|had|will|would|can|could|should)\b.*$", re.I)
_FURTHER = re.compile(r"[,;?]|\s+and\s+(?=(?:how|why|what|when|who|where|which)\b)", re.I)
_COMPARED = re.compile(
    r"^(?:please\s+)?(?:compare|comparing|(?:the )?(?:comparison|differences?) (?:of|between))\s+", re.I
)
_BETWEEN = re.compile(r"\s+(?:versus|vs\.?|with|to|against)\s+", re.I)
_HOW_TO = re.compile(
    r"^(?:please\s+)?(?:tell me )?how (?:to|do i|do you|can i|can you|should i|does one|do we)\s+", re.I
)


def field_of(understanding: Understanding, *, company: bool = False) -> Field:
    if company:
        return "company"
    said = set(stems(understanding.question))
    return next((field for field, telling in _FIELDS.items() if said & set(stems(telling))), "general")


def matter(understanding: Understanding) -> str:
    """A noun phrase: the topic, the subjects where that is none, else the question itself in quotation marks."""
    topic, subjects = understanding.topic_focus, understanding.subjects
    if understanding.query_class == "comparison":
        topic = _BETWEEN.sub(" and ", _COMPARED.sub("", topic), count=1)
        return " and ".join(_articled(name, understanding) for name in subjects) if len(subjects) > 1 else topic
    if understanding.query_class == "yes_no":
        topic = _JUDGED.sub("", topic) or topic
    if topic and not is_clause(understanding) and len(topic) <= LONGEST:
        return _articled(topic, understanding)
    subject = _PREDICATE.sub("", topic)  # "Python web framework should I use"
    if " " in subject and subject != topic and not _CLAUSE.search(subject) and len(subject) <= LONGEST:
        return subject
    named = "" if _foreign(understanding) else " and ".join(_articled(name, understanding) for name in subjects)
    return named or f"“{_short(topic or understanding.question.strip(' .?!'))}”"


def spoken(understanding: Understanding) -> str:
    """The same as one says it to a person, who knows what they asked."""
    if doing := act(understanding):
        return f"how to {doing}"
    about = matter(understanding)
    return "this" if about.startswith("“") else about


def is_clause(understanding: Understanding) -> bool:
    """Whether the topic ("people were injured in the fire", "Rome fall") is none that fits into a question."""
    why = understanding.query_class == "cause" and fold(understanding.question).startswith("why")
    return why or _foreign(understanding) or bool(_CLAUSE.search(understanding.topic_focus))


def _foreign(understanding: Understanding) -> bool:
    """In another language nothing tells a topic from a clause."""
    return language(understanding.question) not in (None, "en")


def clause(understanding: Understanding) -> str:
    """The first part of the question, as it goes on after a colon."""
    asked = _FURTHER.split(understanding.question.strip(" .?!"), maxsplit=1)[0].strip()
    return f"{asked[:1].lower()}{asked[1:]}"


def _articled(name: str, understanding: Understanding) -> str:
    return f"the {name}" if re.search(rf"\bthe {re.escape(name)}\b", understanding.question, re.I) else name


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rsplit(' ', 1)[0]}…"


def act(understanding: Understanding) -> str | None:
    """What somebody wants to do, as it follows "to": set up replication."""
    asked = understanding.question.strip(" .?!")
    return _short(rest) if (rest := _HOW_TO.sub("", asked)) != asked else None
