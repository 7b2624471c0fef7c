"""Statements of which only one can be true of a thing: who directed it, where somebody was born, when it was founded.

Few relations, each with one value only, so that two true statements are not taken for opposites: a thing has one
founding date, but many reviewers.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from assay.text.names import names
from assay.text.words import fold, stem, stems

LONGEST_SUBJECT = 12  # words; a longer one has clauses of its own


class Sole(NamedTuple):
    relation: str
    subject: frozenset[str]  # stems
    value: frozenset[str]  # stems of names, or the parts of a date
    dated: bool


_BEGUN = "founded|established|formed|incorporated"
_BUILT = "built|constructed|completed|erected"
_ISSUED = "released|published|issued"
_WHEN = re.compile(
    rf"^(?P<subject>.{{2,120}}?) (?:was|were) (?P<relation>born|{_BEGUN}|{_BUILT}|{_ISSUED}|opened|launched|abolished)"
    r"(?: as [^,]{2,40}?)?,? (?:in|on) (?P<value>(?:[A-Z][a-z]+ )?(?:\d{1,2}(?:,| [A-Z][a-z]+) )?\d{4}|"
    r"\d{1,2} [A-Z][a-z]+ \d{4})\b"
)
_DIED = re.compile(
    r"^(?P<subject>.{2,120}?) (?P<relation>died) (?:in|on) "
    r"(?P<value>(?:[A-Z][a-z]+ )?(?:\d{1,2}(?:,| [A-Z][a-z]+) )?\d{4}|\d{1,2} [A-Z][a-z]+ \d{4})\b"
)
_WHERE = re.compile(r"^(?P<subject>.{2,120}?) was (?P<relation>born) (?:in|at) (?P<value>[A-Z].*)")
_BY = re.compile(
    r"^(?P<subject>.{2,120}?) (?:is|was|were) (?P<relation>directed|composed|painted|discovered|invented) "
    r"(?:in \d{4} )?by (?P<value>(?:the )?[A-Z].*)"
)
_OFFICE = re.compile(
    r"^(?:The )?(?P<relation>capital|director|author|composer|architect|chief executive|CEO|president|mayor|owner) of "
    r"(?P<subject>.{2,80}?) (?:is|was) (?P<value>[A-Z].*)"
)
_KINDS = {word: kind.split("|")[0] for kind in (_BEGUN, _BUILT, _ISSUED) for word in kind.split("|")}
_DATE_PARTS = re.compile(r"\d{3,4}|\d{1,2}|[A-Z][a-z]{2}")


@lru_cache(maxsize=8192)
def sole(text: str) -> Sole | None:
    """What a statement says of which there is only one; None for any other."""
    for pattern in (_WHEN, _DIED, _BY, _OFFICE, _WHERE):
        found = pattern.match(text)
        if found and len(found["subject"].split()) <= LONGEST_SUBJECT:
            dated = pattern in (_WHEN, _DIED)
            relation = _KINDS.get(found["relation"], found["relation"].lower())
            value = _date(found["value"]) if dated else _first_name(found["value"])
            subject = frozenset(stems(found["subject"]))
            return (
                Sole(f"{relation} {'when' if dated else 'who'}", subject, value, dated) if subject and value else None
            )
    return None


def _date(text: str) -> frozenset[str]:
    return frozenset(part.lower() for part in _DATE_PARTS.findall(text))


def _first_name(text: str) -> frozenset[str]:
    found = names(re.split(r"[,;.(]| and | in \d", text, maxsplit=1)[0])
    return frozenset(stem(fold(word)) for word in found[0].split()) if found else frozenset()


def opposite(left: str, right: str) -> bool:
    """Whether two statements give one thing two values that cannot both be its own."""
    a, b = sole(left), sole(right)
    if a is None or b is None or a.relation != b.relation or a.subject != b.subject:
        return False
    return not (a.value <= b.value or b.value <= a.value) if a.dated else not a.value & b.value
