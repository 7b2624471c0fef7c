"""What statements have in common, and what kind of statement each is: what paragraphs are made by."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from assay.model.claim import Claim
from assay.reasoning.embedded.writing.voice import has_figure
from assay.text.words import stems

DEFINITION, GENERAL, CAUSE, FIGURE, CAVEAT = range(5)  # in the order they are told
COMMON = 0.6  # a stem that more of the statements have tells none of them apart
NEAR, NEXT = 400, 3  # characters between two passages of one document that belong together, or follow one another
NEAR_BONUS, NEXT_BONUS = 0.15, 0.6

_DEFINITION = re.compile(
    r"^(?:(?:the|an?)\s)?(?:\S+\s){1,6}?(?:is|are|was|were)\s(?:an?|the|one of)\s(?!result|cause|consequence)|"
    r"\b(?:known as|called|refers? to|defined as|consists? of|stands? for)\b",
    re.I,
)
_CAUSE = re.compile(
    r"\b(?:because|due to|caus\w+|reasons?|owing to|as a result|result(?:s|ed)? (?:in|from)|driven by|led to|"
    r"explain\w*|attribut\w+|thanks to|stem\w* from)\b",
    re.I,
)
_CAVEAT = re.compile(
    r"\b(?:however|although|despite|nevertheless|uncertain\w*|disputed?|unclear|unknown|limit(?:s|ed|ations?)|cannot|"
    r"not yet|remains? to be|open question|critics?|caution\w*|may not|might not|no evidence|unless|except)\b",
    re.I,
)


def kind(claim: Claim) -> int:
    if _CAVEAT.search(claim.text):
        return CAVEAT
    if _CAUSE.search(claim.text):
        return CAUSE
    if has_figure(claim):
        return FIGURE
    return DEFINITION if _DEFINITION.search(claim.text) else GENERAL


class Likeness:
    """How much two statements of one section have in common; what they all have counts for nothing."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._stems = {claim.id: frozenset(stems(claim.text)) for claim in claims}
        count = Counter(stem for found in self._stems.values() for stem in found)
        total = len(claims)
        self._weight = {
            stem: math.log(1 + total / seen) if seen <= max(2, COMMON * total) else 0.0 for stem, seen in count.items()
        }

    def of(self, left: Claim, right: Claim) -> float:
        a, b = self._stems[left.id], self._stems[right.id]
        whole = math.sqrt(self._sum(a) * self._sum(b))
        return (self._sum(a & b) / whole if whole else 0.0) + nearness(left, right)

    def _sum(self, found: frozenset[str]) -> float:
        return sum(self._weight[stem] for stem in found)


def nearness(left: Claim, right: Claim) -> float:
    """What one author said in one breath belongs together."""
    if follows(right, left) or follows(left, right):
        return NEXT_BONUS
    gaps = [
        max(a.start, b.start) - min(a.end, b.end) for a in left.spans for b in right.spans if a.document == b.document
    ]
    return NEAR_BONUS if gaps and min(gaps) < NEAR else 0.0


def follows(claim: Claim, other: Claim) -> bool:
    """Whether its passage comes directly after the other's, with nothing between them."""
    return any(a.document == b.document and 0 <= a.start - b.end <= NEXT for a in claim.spans for b in other.spans)
