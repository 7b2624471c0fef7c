"""What a question will probably cost, from how many calls a depth makes and what they hold.

The figures per step were counted in runs against the fake provider (benchmarks/arena.py) and are rounded up; a run that
needs fewer rounds or no revision costs less. The cap holds whatever the quote says.
"""

from typing import NamedTuple

from assay.llm.lineup import EMBEDDED, Lineup
from assay.llm.prices import price
from assay.llm.router import limits
from assay.model.exchange import Role
from assay.model.question import Depth
from assay.model.spend import MICRO, Quote
from assay.settings import Settings

TOKENS_PER_SECOND = 60  # a hosted model writes; measured figures vary from 40 to 120
NEARBY_PER_SECOND = 10  # a small model on two cores
NEARBY_READ_PER_SECOND = 43


class Step(NamedTuple):
    """A kind of call: who makes it, how often, with how many tokens."""

    role: Role
    calls: int
    prompt: int
    answer: int
    in_a_row: int  # calls that wait for each other; the rest run side by side


STEPS: dict[Depth, tuple[Step, ...]] = {
    Depth.QUICK: (
        Step("planner", 2, 700, 300, 2), Step("searcher", 2, 4_000, 200, 1), Step("analyst", 1, 2_000, 400, 1),
        Step("judge", 3, 3_000, 500, 3), Step("writer", 1, 1_500, 500, 1), Step("reviewer", 1, 1_500, 300, 1),
    ),
    Depth.STANDARD: (
        Step("planner", 2, 900, 900, 2), Step("searcher", 10, 9_000, 300, 2), Step("analyst", 2, 6_000, 900, 2),
        Step("judge", 4, 8_000, 1_500, 3), Step("writer", 2, 5_000, 3_000, 2), Step("reviewer", 2, 6_000, 600, 2),
    ),
    Depth.COMPREHENSIVE: (
        Step("planner", 2, 900, 1_200, 2), Step("searcher", 18, 9_000, 300, 3), Step("analyst", 3, 9_000, 1_200, 3),
        Step("judge", 6, 9_000, 2_000, 4), Step("writer", 2, 7_000, 4_000, 2), Step("reviewer", 2, 8_000, 800, 2),
    ),
}  # fmt: skip


def quote(lineup: Lineup | None, depth: Depth, settings: Settings, most_usd: float) -> Quote:
    if lineup is None:
        return Quote(model=EMBEDDED, usd=0, most_usd=0, calls=0, tokens=0, seconds=0)
    micros = reading = tokens = calls = 0
    seconds = 0.0
    for step in STEPS[depth]:
        if not lineup.by_role[step.role]:
            continue  # the embedded reasoner's
        model = lineup.by_role[step.role][0]
        most = limits(model, settings)
        prompt, answer = min(step.prompt, most.room), min(step.answer, most.answer)
        cost = step.calls * price(model, settings).micros(prompt, answer)
        micros, reading = micros + cost, reading + cost * (step.role == "searcher")
        tokens += step.calls * (prompt + answer)
        calls += step.calls
        one_by_one = step.calls if most.at_once == 1 else step.in_a_row
        seconds += one_by_one * _seconds(prompt, answer, nearby=most.at_once == 1)
    return Quote(
        model=str(lineup.first), usd=micros / MICRO, most_usd=most_usd, calls=calls, tokens=tokens,
        seconds=round(seconds), reading_usd=reading / MICRO,
    )  # fmt: skip


def _seconds(prompt: int, answer: int, *, nearby: bool) -> float:
    if nearby:
        return prompt / NEARBY_READ_PER_SECOND + answer / NEARBY_PER_SECOND
    return 1.0 + answer / TOKENS_PER_SECOND
