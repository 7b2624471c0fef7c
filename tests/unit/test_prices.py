"""What calls cost, and what they can cost at most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.errors import ConfigurationError
from openassay.llm.names import parse_name
from openassay.llm.prices import find_price, max_prompt_tokens
from openassay.llm.vendors import ModelRequest
from openassay.models.spend import ModelPrompt
from openassay.settings import ModelSettings, Settings


def settings(**llm: object) -> Settings:
    return Settings(llm=ModelSettings.model_validate(llm))


def asking(text: str, system: str = "") -> ModelRequest:
    prompt = ModelPrompt(step="read", role="analyst", system=system, text=text, form={"type": "object"})
    return ModelRequest("m", prompt, "json_schema", None, 100, 1.0)


@pytest.mark.requirement("X-06")
def test_published_prices_rounded_up() -> None:
    cost = find_price(parse_name("openai:gpt-4o"), settings())
    assert cost(1_000_000, 0) == 2_500_000
    assert cost(0, 1_000) == 10_000
    assert cost(1, 0) == 3  # 2.5
    assert cost(0, 0) == 0


@pytest.mark.requirement("X-06")
def test_a_price_that_rises_with_the_length() -> None:
    cost = find_price(parse_name("google:gemini-2.5-pro"), settings())
    assert cost(300_000, 0) > 3 * cost(100_000, 0)


@pytest.mark.parametrize("model", ["model", "fallback_model", "budget_model"])
@pytest.mark.requirement("L-09", "X-06")
def test_the_default_models_have_prices(model: str) -> None:
    assert find_price(parse_name(getattr(ModelSettings(), model)), settings())(1_000, 1_000) > 0


@pytest.mark.requirement("X-06")
def test_own_prices_come_first_and_this_machine_is_free() -> None:
    prices = {"openai:gpt-4o": {"input": 0.1, "output": 0.2}, "ollama:m": {"input": 5, "output": 5}}
    assert find_price(parse_name("openai:gpt-4o"), settings(prices=prices))(10, 10) == 3
    assert find_price(parse_name("ollama:m"), settings(prices=prices))(10**9, 10**9) == 0
    elsewhere = settings(prices=prices, base_url="http://10.0.0.2:1/v1")
    assert find_price(parse_name("ollama:m"), elsewhere)(1, 1) == 10


@pytest.mark.parametrize("model", ["openai:gpt-77-imaginary", "compatible:gpt-4o", "ollama:gpt-4o"])
@pytest.mark.requirement("X-06")
def test_without_a_price_no_cap_can_be_held(model: str) -> None:
    with pytest.raises(ConfigurationError, match="no price is known") as caught:
        find_price(parse_name(model), settings(base_url="http://10.0.0.2:1/v1"))
    assert "llm.prices" in caught.value.help
    assert "OPENASSAY_LLM__PRICES" in caught.value.help
    assert model in caught.value.help


@given(text=st.text(), system=st.text())
@pytest.mark.requirement("X-06")
def test_the_worst_case_is_never_fewer_tokens_than_bytes(text: str, system: str) -> None:
    assert max_prompt_tokens(asking(text, system)) > len(text.encode()) + len(system.encode())


def test_the_worst_case_of_broken_text() -> None:
    assert max_prompt_tokens(asking("\ud800")) > 0
