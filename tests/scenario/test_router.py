"""The router over real HTTP: tiers, pauses, the breaker, rates, ways of asking for JSON, and the books."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from openassay.errors import (
    ApiKeyError,
    BudgetError,
    ContextOverflowError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    RefusalError,
)
from openassay.llm.router import ModelRouter, RunModels
from openassay.llm.selection import select_models
from openassay.models.spend import MICRO, Caps, ModelPrompt
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes.ledger import MemoryLedger
from tests.fakes.llm_faults import FAULTS
from tests.fakes.llm_server import FakeLlmServer, FaultAlways, FaultSequence
from tests.fakes.model import FakeModel

RUN = "run1"
FORM = {
    "title": "Colour",
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
}
WHICH = ModelPrompt(step="plan", role="planner", system="Answer in JSON.", text="Which colour has the sky?", form=FORM)
ANSWER = '{"colour":"blue"}'


class Bench:
    """A router on one fake provider that plays Anthropic and OpenAI; pauses are written down, not slept."""

    def __init__(self, provider: FakeLlmServer, ledger: MemoryLedger, settings: dict[str, Any], caps: Caps) -> None:
        self.provider = provider
        self.ledger = ledger
        self.pauses: list[float] = []
        self.events: list[tuple[str, dict[str, object]]] = []
        self.now = 0.0
        llm = {
            "model": "anthropic:claude-sonnet-4-5", "fallback_model": "openai:gpt-4o",
            "endpoints": {"anthropic": provider.url, "openai": f"{provider.url}/v1", "google": provider.url},
            **settings.pop("llm", {}),
        }  # fmt: skip
        self.settings = load(llm=llm, **settings)
        self.router = ModelRouter(self.settings, ledger, sleep=self._sleep, clock=lambda: self.now)
        self._caps = caps

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def _emit(self, kind: str, stage: str, data: dict[str, object]) -> None:
        self.events.append((kind, data))

    def models(self, caps: Caps | None = None, run: str = RUN, lineage: tuple[str, ...] = ()) -> RunModels:
        chosen = select_models(self.settings, ResearchOptions())
        assert chosen is not None
        return self.router.models_for_run(run, chosen, caps or self._caps, self._emit, lineage=lineage)

    def told(self, kind: str) -> list[dict[str, object]]:
        return [data for said, data in self.events if said == kind]

    @property
    def asked(self) -> list[str]:
        return [call.format for call in self.provider.calls]


Make = Callable[..., Any]
PLENTY = Caps(micros=2 * MICRO, tokens=2_000_000, requests=1000)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    for vendor in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{vendor}_API_KEY", "sk-test-not-a-key")

    @asynccontextmanager
    async def bench(
        faults: Any = None, *, caps: Caps = PLENTY, latency: float = 0.0, answer: Any = ANSWER, **settings: Any
    ) -> AsyncIterator[Bench]:
        model = FakeModel({"Colour": lambda prompt: answer})
        async with FakeLlmServer(model, faults=faults, latency=latency) as provider:
            one = Bench(provider, MemoryLedger(), settings, caps)
            try:
                yield one
            finally:
                await one.router.close()

    return bench


@pytest.mark.requirement("L-09", "X-06")
async def test_an_answer_is_stored_and_paid_for_once(make: Make) -> None:
    async with make() as bench:
        reply = await bench.models().ask(WHICH)
        assert reply.text == ANSWER
        assert reply.model == "anthropic:claude-sonnet-4-5"
        again = await bench.models().ask(WHICH)  # as after a crash: another RunModels on the same ledger
        assert again == reply
        assert len(bench.provider.calls) == 1
        [spend] = bench.told("spend")
        [call] = await bench.ledger.calls(RUN)
        usage = bench.provider.billable_tokens()
        expected = -(-(usage.prompt_tokens * 3 + usage.completion_tokens * 15) // 1)
        assert call.micros == expected
        assert spend["usd"] == expected / MICRO
        assert spend["confirmed"] is True
        assert (await bench.ledger.get_spend(RUN)).by_model["anthropic:claude-sonnet-4-5"].calls == 1


@pytest.mark.requirement("W-16", "X-06")
async def test_what_an_earlier_run_paid_for_is_not_paid_again(make: Make) -> None:
    async with make() as bench:
        reply = await bench.models().ask(WHICH)
        fork = bench.models(run="run2", lineage=(RUN,))
        assert await fork.ask(WHICH) == reply
        assert len(bench.provider.calls) == 1
        assert await bench.ledger.calls("run2") == []
        assert len(bench.told("spend")) == 1
        await fork.ask(WHICH.model_copy(update={"text": "Which colour has the sea?"}))
        assert len(bench.provider.calls) == 2
        assert (await bench.ledger.get_spend("run2")).requests == 1


async def test_the_same_question_at_once_is_asked_once(make: Make) -> None:
    async with make(latency=0.1) as bench:
        models = bench.models()
        replies = await asyncio.gather(*(models.ask(WHICH) for _ in range(5)))
        assert len({reply.text for reply in replies}) == 1
        assert len(bench.provider.calls) == 1


@pytest.mark.requirement("L-09", "F-11")
async def test_retry_after_is_honoured_and_the_sdk_does_not_retry(make: Make) -> None:
    async with make(FaultSequence(["rate-limited", None])) as bench:
        await bench.models().ask(WHICH)
        assert bench.pauses == [1]
        assert bench.asked == ["anthropic", "anthropic"]
        [notice] = bench.told("notice")
        assert "Retrying" in str(notice["text"])


@pytest.mark.requirement("F-11")
async def test_pauses_follow_the_kind_of_error(make: Make) -> None:
    async with make(FaultAlways("rate-limited-without-end")) as bench:
        with pytest.raises(RateLimitError):
            await bench.models().ask(WHICH)
        assert bench.pauses == [10, 20, 40] * 2, "both tiers"
        assert (await bench.ledger.get_spend(RUN)).usd == 0
    async with make(FaultAlways("server-error")) as bench:
        with pytest.raises(ModelError):
            await bench.models().ask(WHICH)
        assert bench.pauses == [1, 2, 4] * 2
    async with make(FaultAlways("hang"), llm={"call_seconds": 0.2, "step_seconds": 60}) as bench:
        with pytest.raises(ModelTimeoutError):
            await bench.models().ask(WHICH)
        assert bench.pauses == [1, 2] * 2, "two retries on a timeout"


@pytest.mark.requirement("L-09")
async def test_the_next_tier_is_asked_when_the_first_gives_up(make: Make) -> None:
    async with make(lambda call: None if call.format == "openai" else FAULTS["server-error"]) as bench:
        reply = await bench.models().ask(WHICH)
        assert reply.model == "openai:gpt-4o"
        assert bench.asked == ["anthropic"] * 4 + ["openai"]
        assert "Continuing with openai:gpt-4o" in str(bench.told("notice")[-1]["text"])


@pytest.mark.requirement("L-09")
async def test_a_wrong_key_is_not_tried_again(make: Make) -> None:
    async with make(FaultAlways("key-rejected")) as bench:
        with pytest.raises(ApiKeyError) as caught:
            await bench.models().ask(WHICH)
        assert bench.asked == ["anthropic", "openai"]
        assert bench.pauses == []
        assert "OPENAI_API_KEY" in caught.value.help
        assert "sk-test" not in f"{caught.value.message} {caught.value.help}"


@pytest.mark.requirement("L-09")
async def test_a_provider_that_keeps_failing_is_left_alone(make: Make) -> None:
    async with make(lambda call: None if call.format == "openai" else FAULTS["server-error"]) as bench:
        models = bench.models()
        for number in range(3):
            reply = await models.ask(WHICH.model_copy(update={"task": str(number)}))
            assert reply.model == "openai:gpt-4o"
        asked = bench.asked.count("anthropic")
        assert asked == 5, "four attempts, then one, then the breaker is open"
        bench.now += 31
        await models.ask(WHICH.model_copy(update={"task": "later"}))
        assert bench.asked.count("anthropic") == asked + 1, "one trial after the pause"


@pytest.mark.requirement("L-09", "X-06")
async def test_near_the_cap_the_budget_model_is_asked_first(make: Make) -> None:
    llm = {"budget_model": "openai:gpt-4o-mini"}
    caps = Caps(micros=200_000, tokens=10**9, requests=1000, finish_share=0)
    async with make(caps=caps, llm=llm, answer='{"colour":"' + "x" * 12_000 + '"}') as bench:
        models = bench.models()
        used = []
        for number in range(8):
            reply = await models.ask(WHICH.model_copy(update={"task": str(number)}))
            used.append(reply.model)
            assert (await bench.ledger.get_spend(RUN)).usd <= 0.2
        assert used[0] == "anthropic:claude-sonnet-4-5"
        assert used[-1] == "openai:gpt-4o-mini"
        assert sum("cap is near" in str(notice["text"]) for notice in bench.told("notice")) == 1


@pytest.mark.requirement("X-06", "W-15")
async def test_no_call_is_made_that_could_pass_the_cap(make: Make) -> None:
    async with make(caps=Caps(micros=10_000, tokens=10**9, requests=1000)) as bench:
        with pytest.raises(BudgetError):
            await bench.models().ask(WHICH)
        assert bench.provider.calls == []
        assert await bench.models().account.is_exhausted()


@pytest.mark.requirement("X-06")
async def test_parallel_calls_wait_for_each_other_rather_than_fail(make: Make) -> None:
    """The worst case of one call is most of the cap, its real cost a small part."""
    caps = Caps(micros=150_000, tokens=10**9, requests=1000, finish_share=0)
    async with make(caps=caps, latency=0.02) as bench:
        models = bench.models()
        prompts = [WHICH.model_copy(update={"task": str(number)}) for number in range(12)]
        replies = await asyncio.gather(*(models.ask(prompt) for prompt in prompts))
        assert len(replies) == 12
        assert not await models.account.is_exhausted()
        assert (await bench.ledger.get_spend(RUN)).usd < 0.15


@pytest.mark.requirement("W-15", "L-09")
async def test_a_providers_rate_is_held(make: Make) -> None:
    async with make(llm={"requests_per_minute": {"anthropic": 3}}) as bench:
        models = bench.models()
        prompts = [WHICH.model_copy(update={"task": str(number)}) for number in range(4)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*(models.ask(prompt) for prompt in prompts))
        assert len(bench.provider.calls) == 3


async def test_json_is_asked_for_in_another_way_where_a_server_knows_no_schema(make: Make) -> None:
    refuses = {"json_schema": "schema-unsupported", "function_calling": "tools-unsupported"}
    faults = lambda call: FAULTS[refuses[call.prompt.method]] if call.prompt.method in refuses else None  # noqa: E731
    async with make(faults, llm={"model": "openai:gpt-4o"}) as bench:
        models = bench.models()
        assert (await models.ask(WHICH)).method == "json_mode"
        tried = [call.prompt.method for call in bench.provider.calls]
        assert tried == ["json_schema", "function_calling", "json_mode"]
        await models.ask(WHICH.model_copy(update={"task": "next"}))
        assert len(bench.provider.calls) == 4, "what a server refuses is remembered"
        assert (await bench.ledger.get_spend(RUN)).requests == 4


async def test_a_way_that_gave_no_json_is_avoided_on_request(make: Make) -> None:
    async with make() as bench:
        reply = await bench.models().ask(WHICH.model_copy(update={"avoid": ("json_schema",)}))
        assert reply.method == "function_calling"


@pytest.mark.requirement("C-13")
async def test_a_second_attempt_is_heard_afresh(make: Make) -> None:
    heard: list[list[str]] = []

    def listener() -> Callable[[str], Any]:
        heard.append([])

        async def hear(text: str) -> None:
            heard[-1].append(text)

        return hear

    async with make(FaultSequence(["error-midway", None]), answer='{"colour":"' + "deep " * 50 + 'blue"}') as bench:
        reply = await bench.models().ask(WHICH, listener)
        assert len(heard) == 2
        assert "".join(heard[1]) == reply.text


@pytest.mark.requirement("X-06")
async def test_a_refusal_before_a_crash_is_not_asked_for_again_and_the_next_tier_is(make: Make) -> None:
    async with make(lambda call: FAULTS["refusal"] if call.format == "anthropic" else FAULTS["server-error"]) as bench:
        with pytest.raises(ModelError):
            await bench.models().ask(WHICH)
        bench.provider._faults = lambda call: None
        reply = await bench.models().ask(WHICH)
        assert reply.model == "openai:gpt-4o"
        assert bench.asked.count("anthropic") == 1


@pytest.mark.requirement("X-06")
async def test_an_answer_that_was_stored_and_not_booked_costs_what_it_used(make: Make) -> None:
    async with make() as bench:
        models = bench.models()
        before = bench.ledger.settle

        async def killed(key: str, charge: Any) -> None:
            raise asyncio.CancelledError

        bench.ledger.settle = killed
        with pytest.raises(asyncio.CancelledError):
            await models.ask(WHICH)
        bench.ledger.settle = before
        assert (await bench.models().ask(WHICH)).text == ANSWER
        [call] = await bench.ledger.calls(RUN)
        assert (call.state, call.confirmed) == ("settled", True)
        assert len(bench.provider.calls) == 1


@pytest.mark.requirement("L-09", "X-06")
async def test_money_too_short_for_one_model_is_not_the_end_while_a_cheaper_one_is_there(make: Make) -> None:
    caps = Caps(micros=50_000, tokens=10**9, requests=1000, finish_share=0)
    async with make(caps=caps, llm={"fallback_model": "openai:gpt-4o-mini"}) as bench:
        models = bench.models()
        assert (await models.ask(WHICH)).model == "openai:gpt-4o-mini"
        assert not await models.account.is_exhausted()


async def test_overflow_goes_back_to_who_asked(make: Make) -> None:
    async with make(FaultAlways("context-overflow")) as bench:
        with pytest.raises(ContextOverflowError):
            await bench.models().ask(WHICH)
        assert len(bench.provider.calls) == 1


@pytest.mark.requirement("X-06")
async def test_a_refusal_is_paid_for_and_the_next_tier_asked(make: Make) -> None:
    async with make(FaultAlways("refusal")) as bench:
        with pytest.raises(RefusalError):
            await bench.models().ask(WHICH)
        assert bench.asked == ["anthropic", "openai"]
        assert (await bench.ledger.get_spend(RUN)).usd > 0


@pytest.mark.requirement("X-06", "L-09")
@pytest.mark.parametrize("fault", ["usage-missing", "usage-absurd", "usage-negative", "usage-zero"])
async def test_usage_nobody_can_believe_is_booked_at_the_worst_case(make: Make, fault: str) -> None:
    async with make(FaultAlways(fault)) as bench:
        await bench.models().ask(WHICH)
        [call] = await bench.ledger.calls(RUN)
        spent = await bench.ledger.get_spend(RUN)
        assert not call.confirmed
        assert spent.unconfirmed_usd == spent.usd == call.micros / MICRO
        assert spent.usd > 0.05, "4,000 tokens of the planner alone"


@pytest.mark.requirement("X-06")
async def test_a_call_that_is_cancelled_is_booked(make: Make) -> None:
    async with make(latency=5.0) as bench:
        task = asyncio.create_task(bench.models().ask(WHICH))
        while not bench.provider.calls:  # noqa: ASYNC110  # the provider has no event for it
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [call] = await bench.ledger.calls(RUN)
        assert call.state == "settled"
        assert not call.confirmed


@pytest.mark.requirement("C-13")
async def test_the_answer_is_streamed(make: Make) -> None:
    pieces: list[str] = []

    async def hear(text: str) -> None:
        pieces.append(text)

    async with make(answer='{"colour":"' + "deep " * 50 + 'blue"}') as bench:
        reply = await bench.models().ask(WHICH, lambda: hear)
        assert "".join(pieces) == reply.text
        assert len(pieces) > 1


@pytest.mark.slow
@pytest.mark.requirement("X-06", "L-09", "F-11")
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.formats & {"anthropic", "openai"}])
async def test_every_fault_has_a_typed_ending_and_is_booked_if_it_is_billed(make: Make, name: str) -> None:
    """Whole runs against each fault are in benchmarks/bench_faults.py."""
    llm = {"call_seconds": 0.3, "step_seconds": 60} if FAULTS[name].slow else {}
    async with make(FaultAlways(name), llm=llm) as bench:
        with contextlib.suppress(ModelError):
            await bench.models().ask(WHICH)
        assert all(call.state in ("settled", "void") for call in await bench.ledger.calls(RUN))
        spent = await bench.ledger.get_spend(RUN)
        costs = {"anthropic": (3, 15), "openai": (2.5, 10)}
        billed = sum(
            costs[call.format][0] * call.prompt_tokens + costs[call.format][1] * call.completion_tokens
            for call in bench.provider.billable_calls
        )
        assert billed <= round(spent.usd * MICRO)
        if not bench.provider.billable_calls:
            assert spent.usd == 0
