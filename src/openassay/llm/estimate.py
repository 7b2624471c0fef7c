"""Estimates what a question will cost, from how many calls a depth makes and what they hold.

Calls and prompts were counted in runs of the scripted model on examples/library with 2, 5 and 7 sub-questions and 1, 2
and 3 rounds. How much a model writes is assumed: a report of the usual length, and one revision from standard depth on.
The cap holds whatever the estimate says.
"""

from typing import NamedTuple

from openassay.llm.prices import find_price
from openassay.llm.router import call_limits
from openassay.llm.selection import EMBEDDED, ModelSelection
from openassay.models.plan import Depth
from openassay.models.spend import MICRO, CostEstimate, ModelRole
from openassay.settings import Settings

HOSTED_TOKENS_PER_SECOND = 60  # that a hosted model writes: assumed
# That a model of 1.5B parameters on two cores writes and reads: measured.
LOCAL_TOKENS_PER_SECOND, LOCAL_READ_PER_SECOND = 10, 43


class EstimateStep(NamedTuple):
    """A kind of call: its role, how many there are, with how many tokens."""

    role: ModelRole
    calls: int
    prompt: int
    answer: int
    in_a_row: int  # calls that wait for each other; the rest run side by side


STEPS: dict[Depth, tuple[EstimateStep, ...]] = {
    Depth.QUICK: (
        EstimateStep("planner", 2, 550, 200, 2),
        EstimateStep("searcher", 2, 4_800, 160, 1),
        EstimateStep("analyst", 1, 2_500, 250, 1),
        EstimateStep("judge", 3, 2_400, 1_000, 3),
        EstimateStep("writer", 1, 1_200, 500, 1),
        EstimateStep("reviewer", 1, 1_200, 300, 1),
    ),
    Depth.STANDARD: (
        EstimateStep("planner", 2, 560, 400, 2),
        EstimateStep("searcher", 10, 4_800, 160, 2),
        EstimateStep("analyst", 2, 4_400, 600, 2),
        EstimateStep("judge", 4, 3_000, 1_200, 4),
        EstimateStep("writer", 2, 3_000, 3_500, 2),
        EstimateStep("reviewer", 2, 4_000, 400, 2),
    ),
    Depth.COMPREHENSIVE: (
        EstimateStep("planner", 2, 560, 550, 2),
        EstimateStep("searcher", 21, 4_900, 160, 3),
        EstimateStep("analyst", 3, 5_800, 600, 3),
        EstimateStep("judge", 4, 4_000, 1_500, 4),
        EstimateStep("writer", 2, 4_000, 3_500, 2),
        EstimateStep("reviewer", 2, 4_000, 400, 2),
    ),
}


def estimate_cost(selection: ModelSelection | None, depth: Depth, settings: Settings, most_usd: float) -> CostEstimate:
    if selection is None:
        return CostEstimate(model=EMBEDDED, usd=0, most_usd=0, calls=0, tokens=0, seconds=0)
    micros = reading = tokens = calls = 0
    seconds = 0.0
    for step in STEPS[depth]:
        if not selection.by_role[step.role]:
            continue  # the embedded reasoner's
        model = selection.by_role[step.role][0]
        limits = call_limits(model, settings)
        prompt, answer = min(step.prompt, limits.prompt_tokens), min(step.answer, limits.answer_tokens)
        cost = step.calls * find_price(model, settings).micros(prompt, answer)
        micros, reading = micros + cost, reading + cost * (step.role == "searcher")
        tokens += step.calls * (prompt + answer)
        calls += step.calls
        if limits.at_once == 1:
            seconds += step.calls * (prompt / LOCAL_READ_PER_SECOND + answer / LOCAL_TOKENS_PER_SECOND)
        else:
            seconds += step.in_a_row * (1.0 + answer / HOSTED_TOKENS_PER_SECOND)
    return CostEstimate(
        model=str(selection.first),
        usd=micros / MICRO,
        most_usd=most_usd,
        calls=calls,
        tokens=tokens,
        seconds=round(seconds),
        reading_usd=reading / MICRO,
    )
