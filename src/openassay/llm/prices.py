"""Computes what a call costs in whole micro-dollars, rounded up, what it can cost at most, and what a question will."""

import json
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import NamedTuple

from openassay.errors import ConfigurationError
from openassay.llm.budget import Micros
from openassay.llm.names import HOSTED, ModelName, call_limits, is_on_this_machine
from openassay.llm.selection import EMBEDDED, ModelSelection
from openassay.llm.vendors import ModelRequest
from openassay.models.plan import Depth
from openassay.models.spend import MICRO, CostEstimate, ModelRole
from openassay.settings import Settings

# Chat templates, and what vendors put around tools (Anthropic: 346 tokens) and schemas.
OVERHEAD_TOKENS = 1_000


def find_price(model: ModelName, settings: Settings) -> Micros:
    """Find a price: free on this machine, then the settings', then the published one; raises ConfigurationError."""
    if is_on_this_machine(model, settings):
        return lambda _prompt, _completion: 0
    if (own := settings.llm.prices.get(str(model))) is not None:
        per_prompt, per_completion = (Decimal(str(usd)) / 1_000_000 for usd in (own.input, own.output))
        return lambda prompt, completion: _round_up(prompt * per_prompt + completion * per_completion)
    if model.vendor in HOSTED and (found := _find_list_price(model)) is not None:
        return found
    raise ConfigurationError(
        f"no price is known for {model}, so the cap cannot be held",
        help=f"Set llm.prices: {{'{model}': {{input: ..., output: ...}}}} in config.yaml (USD per million tokens), or "
        f'OPENASSAY_LLM__PRICES=\'{{"{model}": {{"input": ..., "output": ...}}}}\'. 0 for a server that costs nothing.',
    )


def max_prompt_tokens(request: ModelRequest) -> int:
    """Return the most tokens a prompt can have: no tokeniser makes more than one token of a byte of UTF-8.

    The schema counts twice: it is sent closed and spelt out, or written into the prompt.
    """
    prompt = request.prompt
    texts = (prompt.system, prompt.text, 2 * json.dumps(prompt.form))
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + OVERHEAD_TOKENS


@lru_cache
def _find_list_price(model: ModelName) -> Micros | None:
    """Look a price up in the list that comes with genai-prices; it is never fetched."""
    from genai_prices import Usage, calc_price

    def micros(prompt: int, completion: int) -> int:
        usage = Usage(input_tokens=prompt, output_tokens=completion)
        return _round_up(calc_price(usage, model.name, provider_id=model.vendor).total_price)

    try:
        micros(1, 1)
    except LookupError:
        return None
    return micros


def _round_up(usd: Decimal) -> int:
    return int((usd * MICRO).to_integral_value(ROUND_CEILING))


# What a question will cost --------------------------------------------------------------------------------------

# Calls and prompts were counted in runs of the scripted model on examples/library with 2, 5 and 7 sub-questions and 1,
# 2 and 3 rounds; readings from standard depth on, in the corpora of benchmarks/bench_recall.py. How much a model writes
# is assumed: a report of the usual length, and one revision from standard depth on. The cap holds whatever the estimate
# says.

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
        EstimateStep("searcher", 10, 9_000, 320, 2),
        EstimateStep("analyst", 2, 4_400, 600, 2),
        EstimateStep("judge", 4, 3_000, 1_200, 4),
        EstimateStep("writer", 2, 3_000, 3_500, 2),
        EstimateStep("reviewer", 2, 4_000, 400, 2),
    ),
    Depth.COMPREHENSIVE: (
        EstimateStep("planner", 2, 560, 550, 2),
        EstimateStep("searcher", 21, 9_000, 320, 3),
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
        cost = step.calls * find_price(model, settings)(prompt, answer)
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
