"""A provider that keeps failing is left alone, and one call finds out when it is back."""

import pytest

from openassay.errors import ApiKeyError, ModelError, RateLimitError
from openassay.llm.router import CircuitBreaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def call(breaker: CircuitBreaker, error: Exception | None = None) -> str:
    """How a call through the breaker ends."""
    try:
        with breaker.guard("openai"):
            if error is not None:
                raise error
    except ModelError as raised:
        return "open" if "is failing" in raised.message else "failed"
    return "ok"


OUTAGE = ModelError("503", retryable=True)


@pytest.mark.requirement("L-09")
def test_opens_after_failures_in_a_row_and_one_trial_closes_it() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock, failures=3, seconds=30)
    assert [call(breaker, error) for error in (OUTAGE, OUTAGE, None)] == ["failed", "failed", "ok"]
    assert [call(breaker, OUTAGE) for _ in range(4)] == ["failed"] * 3 + ["open"]
    clock.now = 30
    with breaker.guard("openai"):
        assert call(breaker) == "open", "one trial at a time"
    assert call(breaker) == "ok"


def test_a_failed_trial_opens_it_for_as_long_again() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock, failures=1, seconds=30)
    call(breaker, OUTAGE)
    clock.now = 30
    assert call(breaker, OUTAGE) == "failed"
    clock.now = 59
    assert call(breaker) == "open"
    clock.now = 60
    assert call(breaker) == "ok"


def test_a_trial_that_was_given_up_lets_the_next_one_try() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock, failures=1, seconds=10)
    call(breaker, OUTAGE)
    clock.now = 10
    with pytest.raises(KeyboardInterrupt), breaker.guard("openai"):
        raise KeyboardInterrupt
    assert call(breaker) == "ok"


@pytest.mark.requirement("L-09")
def test_a_provider_that_asks_for_patience_has_not_failed() -> None:
    """Many calls side by side may each be told to wait; after the pause the provider is there."""
    breaker = CircuitBreaker(Clock(), failures=2)
    for _ in range(5):
        assert call(breaker, RateLimitError("429", retry_after=1)) == "failed"
    assert call(breaker, OUTAGE) == "failed"
    assert call(breaker, ApiKeyError("401")) == "failed"
    assert call(breaker, OUTAGE) == "failed"
    assert call(breaker) == "ok"
