"""What a question will probably cost, from how many calls a depth makes and what they hold.

Calls and prompts were counted in runs of the scripted model on examples/library with 2, 5 and 7 sub-questions and 1, 2
and 3 rounds. How much a model writes is assumed: a report of the usual length, and one revision from standard depth on.
The cap holds whatever the quote says.
"""

from typing import NamedTuple

from assay.llm.lineup import EMBEDDED, Lineup
from assay.llm.prices import price
from assay.llm.router import limits
from assay.model.exchange import Role
from assay.model.question import Depth
from assay.model.spend import MICRO, Quote
from assay.settings import Settings

TOKENS_PER_SECOND = 60  # a hosted model writes: assumed
NEARBY_PER_SECOND, NEARBY_READ_PER_SECOND = 10, 43  # a model of 1.5B parameters on two cores writes and reads: measured


class Step(NamedTuple):
    """A kind of call: who makes it, how often, with how many tokens."""

    role: Role
    calls: int
    prompt: int
    answer: int
    in_a_row: int  # calls that wait for each other; the rest run side by side


STEPS: dict[Depth, tuple[Step, ...]] = {
    Depth.QUICK: (
        Step("planner", 2, 550, 200, 2), Step("searcher", 2, 4_800, 160, 1), Step("analyst", 1, 2_500, 250, 1),
        Step("judge", 3, 2_400, 1_000, 3), Step("writer", 1, 1_200, 500, 1), Step("reviewer", 1, 1_200, 300, 1),
    ),
    Depth.STANDARD: (
        Step("planner", 2, 560, 400, 2), Step("searcher", 10, 4_800, 160, 2), Step("analyst", 2, 4_400, 600, 2),
        Step("judge", 4, 3_000, 1_200, 4), Step("writer", 2, 3_000, 3_500, 2), Step("reviewer", 2, 4_000, 400, 2),
    ),
    Depth.COMPREHENSIVE: (
        Step("planner", 2, 560, 550, 2), Step("searcher", 21, 4_900, 160, 3), Step("analyst", 3, 5_800, 600, 3),
        Step("judge", 4, 4_000, 1_500, 4), Step("writer", 2, 4_000, 3_500, 2), Step("reviewer", 2, 4_000, 400, 2),
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
