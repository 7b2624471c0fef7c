"""Whole runs with a language model behind real HTTP: what it costs, what it says, and what happens when it fails."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine, RunOutcome
from openassay.errors import BudgetError, ConfigurationError, UsageError
from openassay.export import Report
from openassay.llm.names import parse_name
from openassay.llm.prices import find_price
from openassay.models.event import Event
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions
from openassay.python_api import research
from openassay.settings import load
from tests.fakes.llm_api import ModelPrompt
from tests.fakes.llm_faults import FAULTS
from tests.fakes.llm_server import FakeLlmServer, FaultAlways, FaultShare
from tests.fakes.model import FakeModel
from tests.scenario.checking import check_report, stored_texts
from tests.scenario.conftest import LIBRARY, LIBRARY_QUESTION

GPT = "openai:gpt-4o"
TESLA = "What's happening with Tesla and its stock?"


class World:
    """An engine whose models are a fake provider's; every report goes through the checker."""

    def __init__(self, engine: Engine, provider: FakeLlmServer, folder: Path) -> None:
        self.engine = engine
        self.provider = provider
        self._folder = folder

    async def ask(self, question: str, *, thread: str | None = None, **options: Any) -> RunOutcome:
        given = {"depth": "quick", "source": "demo", **options}
        run = await self.engine.start(question, ResearchOptions.model_validate(given), thread=thread)
        async with asyncio.timeout(300):
            outcome = await self.engine.wait(run.id)
        if outcome.report is not None:
            check_report(outcome.report, stored_texts(self._folder))
        return outcome

    async def report(self, question: str, **options: Any) -> Report:
        outcome = await self.ask(question, **options)
        assert outcome.report is not None, outcome.run.error
        return outcome.report

    async def log(self, outcome: RunOutcome) -> list[Event]:
        return [event async for event in self.engine.events(outcome.run.id)]

    def bill(self) -> int:
        cost = find_price(parse_name(GPT), self.engine.settings)
        return sum(cost(call.prompt_tokens, call.completion_tokens) for call in self.provider.billable_calls)


Make = Callable[..., Any]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")

    @asynccontextmanager
    async def make(
        model: FakeModel | None = None, *, llm: dict[str, Any] | None = None, context: int | None = None,
        faults: Any = None, **settings: Any,
    ) -> AsyncIterator[World]:  # fmt: skip
        async with FakeLlmServer(model or FakeModel(), faults=faults, context=context) as provider:
            models = {"model": GPT, "endpoints": {"openai": f"{provider.url}/v1"}, **(llm or {})}
            models = {name: value for name, value in models.items() if value is not None}
            chosen = load(data_dir=tmp_path / "data", llm=models, **settings)
            async with open_engine(chosen) as engine:
                yield World(engine, provider, tmp_path / "data")

    return make


def kinds(events: list[Event], kind: str) -> list[dict[str, Any]]:
    return [dict(event.data) for event in events if event.kind == kind]


@pytest.mark.slow
@pytest.mark.requirement("X-06", "L-09", "W-15", "C-13")
async def test_a_run_on_documents_costs_what_the_provider_bills_to_the_micro_dollar(world: Make) -> None:
    async with world() as here:
        outcome = await here.ask(LIBRARY_QUESTION, docs=(str(LIBRARY),), source="auto", depth="standard")
        report, events = outcome.report, await here.log(outcome)
        assert report is not None
        assert report.status == "complete"
        assert report.spend.usd * MICRO == pytest.approx(here.bill(), abs=1e-6)
        assert report.spend.unconfirmed_usd == 0
        assert report.metadata.reasoning == {GPT: sum(event.kind == "think" for event in events)}

        [quote] = kinds(events, "quote")
        assert 0 < quote["usd"] <= quote["most_usd"] == 2.0
        totals = [spend["total_usd"] for spend in kinds(events, "spend")]
        assert totals == sorted(totals)
        assert totals[-1] == report.spend.usd
        draft = "".join(token["text"] for token in kinds(events, "token"))
        assert all(token["draft"] for token in kinds(events, "token"))
        told = [s.text for section in report.sections for s in section.sentences if s.kind == "fact"]
        assert any(text in draft for text in told), "the answer was streamed while it was written"


@pytest.mark.slow
@pytest.mark.requirement("S-01", "S-02")
async def test_the_models_understanding_is_what_is_researched(world: Make) -> None:
    def understood(prompt: ModelPrompt) -> dict[str, Any]:
        return {
            "intent": "research", "subjects": ["Apple"], "question": "What is the latest news about Apple?",
            "kind": "overview", "topic": "Apple", "period": "", "ambiguity": 0, "must_ask": False, "ask": "",
            "complexity": "simple", "suggested": [],
        }  # fmt: skip

    async with world(FakeModel({"Understood": understood})) as here:
        outcome = await here.ask("the fruit company, news please")
        assert outcome.report is not None
        assert outcome.report.question == "What is the latest news about Apple?"
        assert (await here.engine.state(outcome.run.thread))["subject"] == "Apple"


@pytest.mark.slow
@pytest.mark.requirement("C-15")
@pytest.mark.parametrize("fault", ["key-rejected", "unknown-model", "refusal", "prose", "ten-megabytes", "bad-utf8"])
async def test_a_model_that_is_of_no_use_degrades_steps_and_never_the_run(world: Make, fault: str) -> None:
    async with world(faults=FaultAlways(fault)) as here:
        _pauses_are_not_waited_out(here)
        outcome = await here.ask(TESLA)
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert set(outcome.report.metadata.reasoning) == {"embedded"}
        told = [notice["text"] for notice in kinds(await here.log(outcome), "notice")]
        assert any("embedded reasoner" in text for text in told)
        assert any("embedded reasoner" in notice for notice in outcome.report.notices)
        assert here.bill() <= round(outcome.report.spend.usd * MICRO)
        if not FAULTS[fault].billed:
            assert outcome.report.spend.usd == 0


@pytest.mark.requirement("C-15", "L-09")
async def test_a_server_that_is_down_is_told_and_the_run_goes_on(world: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    async with world(llm={"model": "compatible:any", "base_url": url}) as here:
        _pauses_are_not_waited_out(here)
        outcome = await here.ask(TESLA)
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert any(url in str(notice["text"]) for notice in kinds(await here.log(outcome), "notice"))
        assert outcome.report.spend.usd == 0


@pytest.mark.slow
@pytest.mark.requirement("X-06", "L-02")
async def test_a_small_cap_is_never_passed_and_what_was_skipped_is_said(world: Make) -> None:
    async with world() as here:
        outcome = await here.ask(LIBRARY_QUESTION, docs=(str(LIBRARY),), source="auto", depth="standard", usd=0.09)
        report = outcome.report
        assert report is not None
        assert here.bill() <= round(report.spend.usd * MICRO) <= 90_000
        assert report.metadata.reasoning["embedded"] > 0
        assert any("budget" in notice.lower() for notice in report.notices)
        assert report.claims, "what there is was verified and written"


@pytest.mark.requirement("X-06")
async def test_a_cap_that_pays_for_nothing_refuses_to_start(world: Make) -> None:
    async with world() as here:
        with pytest.raises(BudgetError) as caught:
            await here.ask(TESLA, usd=0.000001)
        assert "--budget" in caught.value.help
        assert await here.engine.threads.list_recent(limit=5) == []
        assert here.provider.calls == []


@pytest.mark.requirement("X-06")
async def test_a_model_without_a_price_refuses_to_start_and_says_how(world: Make) -> None:
    async with world() as here:
        with pytest.raises(ConfigurationError) as caught:
            await here.ask(TESLA, model="openai:nobody-knows-this-one")
        assert "llm.prices" in caught.value.help
    priced = {"prices": {"openai:nobody-knows-this-one": {"input": 1, "output": 2}}}
    async with world(llm=priced) as here:
        report = await here.report(TESLA, model="openai:nobody-knows-this-one")
        usage = here.provider.billable_tokens()
        most = usage.prompt_tokens + 2 * usage.completion_tokens
        assert report.spend.usd * MICRO == pytest.approx(most, abs=len(here.provider.calls))


@pytest.mark.requirement("X-06")
async def test_a_quote_costs_nothing_and_follows_depth_and_model(world: Make) -> None:
    async with world() as here:
        quick = await here.engine.estimate(TESLA, ResearchOptions(depth="quick"))  # type: ignore[arg-type]
        deep = await here.engine.estimate(TESLA, ResearchOptions(depth="comprehensive", usd=5))  # type: ignore[arg-type]
        free = await here.engine.estimate(TESLA, ResearchOptions(model="embedded"))
        assert 0 < quick.usd < deep.usd <= deep.most_usd == 5
        assert quick.calls < deep.calls
        assert (free.usd, free.calls, free.model) == (0, 0, "embedded")
        assert here.provider.calls == []
        assert await here.engine.threads.list_recent(limit=5) == []


@pytest.mark.slow
@pytest.mark.requirement("F-11")
async def test_a_prompt_that_is_too_long_is_asked_with_less(world: Make) -> None:
    async with world(context=1_500) as here:
        outcome = await here.ask(LIBRARY_QUESTION, docs=(str(LIBRARY),), source="auto", depth="standard")
        told = [str(notice["text"]) for notice in kinds(await here.log(outcome), "notice")]
        assert any("fewer sources" in text for text in told)
        answered = [call for call in here.provider.calls if call.form == "Picks" and call.fault is None]
        assert answered, "the sources that were left were read by the model"


@pytest.mark.slow
@pytest.mark.requirement("C-12")
async def test_a_long_conversation_is_condensed_by_the_model(world: Make) -> None:
    async with world(FakeModel({"Summary": lambda prompt: {"summary": "Companies were asked about."}})) as here:
        thread = None
        for company in ("Apple", "Tesla", "Microsoft", "Amazon", "Google", "Apple"):
            outcome = await here.ask(f"What is happening with {company}?", thread=thread)
            thread = outcome.run.thread
        assert thread is not None
        state = await here.engine.state(thread)
        assert len(state["messages"]) <= 10
        assert state["conversation_summary"] == "Companies were asked about."


@pytest.mark.slow
@pytest.mark.requirement("C-15", "L-09")
async def test_at_thirty_percent_faults_runs_still_finish(world: Make) -> None:
    async with world(faults=FaultShare(0.3, 11)) as here:
        _pauses_are_not_waited_out(here)
        for _ in range(4):
            report = await here.report(TESLA)
            assert report.status == "complete"
        assert any(call.fault for call in here.provider.calls)


@pytest.mark.slow
async def test_a_conversation_about_documents_stays_as_private_as_they_are(world: Make) -> None:
    """The model has a key, but nobody named it: neither the documents nor what was said of them reaches it."""
    async with world(llm={"model": None}) as here:
        first = await here.ask(LIBRARY_QUESTION, docs=(str(LIBRARY),), source="auto")
        for options in ({"source": "demo"}, {"source": "auto"}):
            outcome = await here.ask("What's happening with Tesla?", thread=first.run.thread, **options)
            assert outcome.report is not None
        assert here.provider.calls == []
        assert first.run.options.model == "embedded", "and it stays so when it is resumed under other settings"
        await here.ask(TESLA)
        assert here.provider.calls, "another thread may use it"


@pytest.mark.slow
async def test_documents_stay_here_unless_a_model_is_named(world: Make) -> None:
    async with world(llm={"model": "embedded"}) as here:
        report = await here.report(LIBRARY_QUESTION, docs=(str(LIBRARY),), source="auto")
        assert here.provider.calls == []
        assert report.metadata.reasoning == {}


def _pauses_are_not_waited_out(here: World) -> None:
    async def at_once(seconds: float) -> None:
        await asyncio.sleep(0)

    here.engine._runner.reasoners._router.sleep = at_once  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_research_works_where_an_event_loop_is_running() -> None:
    """As in a notebook."""
    report = research("What's happening with Apple?", depth="quick")
    assert report.status == "complete"


@pytest.mark.parametrize("usd", [float("nan"), float("inf"), -1, "much"])
def test_a_budget_that_is_none_is_refused(usd: Any) -> None:
    with pytest.raises(UsageError):
        research("What's happening with Apple?", budget_usd=usd)
