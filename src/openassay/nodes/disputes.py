"""Matters on which the sources do not agree: a composed report tells both sides or neither. Which claims do not agree
its writer was shown; the program adds no words of its own."""

from collections.abc import Iterable, Mapping

from openassay.models.evidence import Claim, Disagreement
from openassay.reasoning.base import DraftSentence

FEW = 2  # claims of a sentence that draws them together: one that sums up more does not assert each


def find_one_sided(
    sentences: Iterable[DraftSentence], disagreements: Iterable[Disagreement], claims: Mapping[str, Claim]
) -> dict[DraftSentence, str]:
    """The sentences that tell one side of a matter of which nothing tells another side, and what is wrong with each."""
    told = [(sentence, set(sentence.claims)) for sentence in sentences if not sentence.cited_beside]
    named = set().union(*(own for _, own in told))
    problems = dict[DraftSentence, str]()
    for matter in disagreements:
        silent = [side for side in matter.sides if not named & set(side)]
        if matter.resolved or not silent or len(silent) == len(matter.sides):
            continue
        sides = {id for side in matter.sides for id in side}
        other = next((claims[id].text for side in silent for id in side if id in claims), "")
        for sentence, own in told:
            if other and own & sides and (sentence.kind == "fact" or len(own) <= FEW):
                problems.setdefault(
                    sentence,
                    f"the sources do not agree, and only one side is told; another says: {other} Tell both, or of what "
                    "period, place or kind each is",
                )
    return problems


def list_other_sides(disagreements: Iterable[Disagreement]) -> tuple[str, ...]:
    """The claims of matters that are not settled."""
    return tuple(
        dict.fromkeys(id for matter in disagreements if not matter.resolved for side in matter.sides for id in side)
    )
