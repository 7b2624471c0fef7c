"""The body: which statements stand in which section, within the words there are."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from assay.model.claim import Claim, Mark
from assay.model.question import Depth
from assay.reasoning.embedded.aspects import aspect, is_about_a_company
from assay.reasoning.embedded.writing.comparison import compared, side
from assay.reasoning.embedded.writing.revision import Orders
from assay.reasoning.embedded.writing.voice import LONG, Voice, has_figure, worth
from assay.reasoning.protocol import WriteRequest
from assay.text.relations import stated, years
from assay.text.sentences import is_row, is_statement
from assay.text.words import stems

REPEATED, REPEATED_WHEN_TOLD = 0.6, 0.4
QUICK_STATEMENTS = 10
MOST_ROWS = 8  # of tables, in a section: the quarters of two years

Placed = dict[str, list[Claim]]


def placed(request: WriteRequest, claims: Sequence[Claim], words: int, voice: Voice, orders: Orders) -> Placed:
    """Each claim goes to the first section it answers that has room; a section has its share of the words, or one
    statement. Words that are left over then go to whoever has more to tell."""
    told: Placed = {section: [] for section in request.plan.sections}
    wanted = [claim for claim in claims if _may_stand(claim, request, orders)]
    homes = {claim.id: _homes(claim, request) for claim in wanted}
    share = words // max(1, len({home[0] for home in homes.values()}))
    left: list[Claim] = []
    for claim in _distinct(sorted(wanted, key=_order(voice, orders)), told=orders.fewer_alike):
        home = next((home for home in homes[claim.id] if _fits(claim, told[home], share)), None)
        (told[home] if home else left).append(claim)
    taken = sum(_words(claim) for section in told.values() for claim in section)
    for claim in left:
        if taken + _words(claim) <= words and not is_row(claim.text):
            told[homes[claim.id][0]].append(claim)
            taken += _words(claim)
    return _few(told) if request.plan.depth is Depth.QUICK else told


def _may_stand(claim: Claim, request: WriteRequest, orders: Orders) -> bool:
    if claim.id in orders.struck or (orders.whole and (is_row(claim.text) or not is_statement(claim.text))):
        return False
    asked = " ".join([request.plan.goal, *(question.in_context for question in request.plan.questions)])
    return not orders.on_topic or bool(set(stems(claim.text)) & set(stems(asked)))


def _few(told: Placed) -> Placed:
    return {section: claims[:QUICK_STATEMENTS] for section, claims in told.items()}


def _words(claim: Claim) -> int:
    return len(claim.text.split())


def _fits(claim: Claim, room: Sequence[Claim], share: int) -> bool:
    """The first always does. A report is no book of tables."""
    if is_row(claim.text) and sum(is_row(other.text) for other in room) >= MOST_ROWS:
        return False
    return not room or sum(map(_words, (*room, claim))) <= share


def _order(voice: Voice, orders: Orders) -> Callable[[Claim], tuple[object, ...]]:
    def key(claim: Claim) -> tuple[object, ...]:
        return (
            orders.newest_first and -max(years(claim.text), default=0),
            orders.surest_first and claim.mark is not Mark.CORROBORATED,
            orders.surest_first and -len(claim.spans),
            orders.shorter_sentences and _words(claim) > LONG,
            voice.figures_first and not has_figure(claim),
            -worth(claim, voice),
            claim.id,
        )

    return key


class _Said(NamedTuple):
    """What repetition is told by, worked out once a statement: each is held against all before it."""

    stems: frozenset[str]
    stated: frozenset[str]


def _distinct(claims: Sequence[Claim], *, told: bool) -> Iterator[Claim]:
    """Without what repeats another in words; a reviewer who said so need not find the same figures and names."""
    said: list[_Said] = []
    for claim in claims:
        this = _Said(frozenset(stems(claim.text)), stated(claim.text))
        if not any(_repeats(this, other, told) for other in said):
            said.append(this)
            yield claim


def _repeats(this: _Said, other: _Said, told: bool) -> bool:
    shared = len(this.stems & other.stems) / (len(this.stems | other.stems) or 1)
    return shared >= REPEATED_WHEN_TOLD if told else shared >= REPEATED and this.stated == other.stated


def _homes(claim: Claim, request: WriteRequest) -> list[str]:
    """Where a claim may stand, the person's own questions first: they come first in the plan. What speaks of one side
    of a comparison may stand in the section that compares."""
    plan = request.plan
    if is_about_a_company(plan.sections):
        return [aspect(claim.text)]
    answered = [question.section for question in plan.questions if question.id in claim.questions]
    sides = compared(plan.goal)
    first = [plan.sections[0]] if sides and side(claim, sides) is not None else []
    return list(dict.fromkeys([*first, *answered])) or [plan.sections[0]]
