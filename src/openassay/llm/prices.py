"""Computes what a call costs in whole micro-dollars, rounded up, and what it can cost at most."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from openassay.errors import ConfigurationError
from openassay.llm.names import HOSTED, ModelName, is_on_this_machine
from openassay.llm.vendors import ModelRequest
from openassay.models.spend import MICRO
from openassay.settings import Settings

# Chat templates, and what vendors put around tools (Anthropic: 346 tokens) and schemas.
OVERHEAD_TOKENS = 1_000


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """A price, which is computed for each call: some prices per token rise with the length of the prompt."""

    usd: Callable[[int, int], Decimal]

    def micros(self, prompt_tokens: int, completion_tokens: int) -> int:
        exact = self.usd(prompt_tokens, completion_tokens) * MICRO
        return int(exact.to_integral_value(ROUND_CEILING))


FREE = TokenPrice(lambda _prompt, _completion: Decimal(0))


def find_price(model: ModelName, settings: Settings) -> TokenPrice:
    """Find a price: free on this machine, then the settings', then the published one; raises ConfigurationError."""
    if is_on_this_machine(model, settings):
        return FREE
    if (own := settings.llm.prices.get(str(model))) is not None:
        per_prompt, per_completion = (Decimal(str(usd)) / 1_000_000 for usd in (own.input, own.output))
        return TokenPrice(lambda prompt, completion: prompt * per_prompt + completion * per_completion)
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
def _find_list_price(model: ModelName) -> TokenPrice | None:
    """Look a price up in the list that comes with genai-prices; it is never fetched."""
    from genai_prices import Usage, calc_price

    def usd(prompt: int, completion: int) -> Decimal:
        usage = Usage(input_tokens=prompt, output_tokens=completion)
        return calc_price(usage, model.name, provider_id=model.vendor).total_price

    try:
        usd(1, 1)
    except LookupError:
        return None
    return TokenPrice(usd)
