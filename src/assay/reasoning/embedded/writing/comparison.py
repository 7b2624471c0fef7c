"""Comparisons and rankings: what is set against what, matter by matter, and which way a list is sorted."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from assay.model.claim import Claim
from assay.reasoning.embedded.writing.matter import Likeness
from assay.text.words import stems

ALIKE = 0.1  # from here on a statement on one side answers one on the other

_COMPARED = (
    re.compile(r"\b(?:compare|comparing|comparison (?:of|between))\s+(?P<a>.+?)\s+"
               r"(?:and|with|to|versus|vs\.?|against)\s+(?P<b>[^?.,;:]+)", re.I),
    re.compile(r"\bdifferences? between\s+(?P<a>.+?)\s+and\s+(?P<b>[^?.,;:]+)", re.I),
    re.compile(r"\bhow (?:do|does|did)\s+(?P<a>.+?)\s+(?:and|differ from|compare (?:with|to))\s+(?P<b>[^?.,;:]+?)"
               r"(?:\s+(?:compare|differ)\b|$|\?)", re.I),
    re.compile(r"(?P<a>[^?.,;:]+?)\s+(?:versus|vs\.?)\s+(?P<b>[^?.,;:]+)", re.I),
)  # fmt: skip
_ASKING = re.compile(
    r"^(?:(?:please|which|what|is|are|better|the|both)\s+)+|\s+(?:in terms of|with regard to|by|on|for)\s.+$", re.I
)
_MOST = re.compile(r"\b(?:rank\w*|top (?:\d+|ten|five)|largest|biggest|highest|tallest|longest|most \w+|"
                   r"best[- ]selling|fastest|leading)\b", re.I)  # fmt: skip
_LEAST = re.compile(r"\b(?:smallest|lowest|shortest|cheapest|least \w+|slowest|fewest)\b", re.I)

Sides = tuple[frozenset[str], frozenset[str]]  # the stems each side is called by


def ranking(asked: str) -> Literal["ascending", "descending"] | None:
    if _LEAST.search(asked):
        return "ascending"
    return "descending" if _MOST.search(asked) else None


def compared(goal: str) -> Sides | None:
    """What a question sets against one another; what both are called tells neither."""
    for pattern in _COMPARED:
        if found := pattern.search(goal):
            a, b = (frozenset(stems(_ASKING.sub("", found[side].strip()))) for side in ("a", "b"))
            return (a - b, b - a) if a - b and b - a else None
    return None


def side(claim: Claim, sides: Sides) -> int | None:
    """The one side a statement speaks of; None where it speaks of both or of neither."""
    said = set(stems(claim.text))
    on = [bool(said & names) for names in sides]
    return on.index(True) if sum(on) == 1 else None


def side_by_side(claims: Sequence[Claim], sides: Sides, most: int) -> list[list[Claim]]:
    """Statements on both first, then each statement on one side with the nearest on the other."""
    both = [claim for claim in claims if all(set(stems(claim.text)) & names for names in sides)]
    groups = [both[at : at + most] for at in range(0, len(both), most)]
    return [*groups, *_pairs(claims, sides)]


def _pairs(claims: Sequence[Claim], sides: Sides) -> Iterator[list[Claim]]:
    alike = Likeness(claims)
    here, there = ([claim for claim in claims if side(claim, sides) == number] for number in (0, 1))
    for claim in here:
        nearest = max(there, key=lambda other: alike.of(claim, other), default=None)
        if nearest is not None and alike.of(claim, nearest) >= ALIKE:
            there.remove(nearest)
            yield [claim, nearest]
