"""Each category of error has its handler in a run, and after each the run can be gone on with."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import RunOutcome
from openassay.errors import (
    Category,
    ContextOverflowError,
    ModelError,
    ModelTimeoutError,
    OpenAssayError,
    RateLimitError,
    ReasoningError,
    StorageError,
    UsageError,
)
from openassay.llm.router import ModelRouter
from openassay.models.event import RunStatus
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes.http_server import ServerConnection, ServerResponse
from tests.fakes.llm_faults import FAULTS, LlmFault
from tests.fakes.llm_server import FakeLlmServer, FaultAlways, FaultSequence
from tests.fakes.model import FakeModel
from tests.scenario.checking import check_report, stored_texts
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]
CALL_SECONDS = 119.0  # nothing else has this limit

ERRORS: list[OpenAssayError] = [
    ModelError("the provider is down"),
    RateLimitError("too many requests"),
    ModelTimeoutError("no answer in time"),
    UsageError("this cannot be asked"),
    ReasoningError("the answer could not be used"),
    ContextOverflowError("the prompt was too long"),
    StorageError("the disk is full"),
]
BUSY = StorageError("the database is busy", retryable=True)


def test_every_category_is_tried() -> None:
    assert {error.category for error in ERRORS} == set(Category)


class Once:
    """A step of the reasoner that fails a few times, and is itself from then on."""

    def __init__(self, error: Exception, times: int = 1) -> None:
        self._error = error
        self._left = times

    async def __call__(self, real: Any, *args: Any) -> Any:
        if self._left:
            self._left -= 1
            raise self._error
        return await real(*args)


async def left(here: Lab, outcome: RunOutcome) -> list[str]:
    """Stages that have ended, as often as they did."""
    return [event.stage for event in await here.log(outcome.run.id) if event.kind == "leave"]


@pytest.mark.slow
@pytest.mark.requirement("F-11", "W-16")
@pytest.mark.parametrize("step", ["plan", "extract_claims", "write"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error.category))
async def test_a_step_that_fails_ends_the_run_and_is_all_that_is_done_again(
    lab: Make, error: OpenAssayError, step: str
) -> None:
    here = lab(**{step: Once(error)})
    source = here.holds(*LAKE)
    failed = await here.ask(QUESTION)
    assert failed.run.status is RunStatus.FAILED
    assert failed.run.error == error.message
    done, asked = await left(here, failed), len(source.queries)

    await here.engine.resume(failed.run.thread)
    outcome = await here.settled(failed.run.id)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    after = (await left(here, outcome))[len(done) :]
    assert not {*done} & {*after}, "what was finished is not done again"
    assert len(source.queries) == asked or step == "plan"
    assert [name for name, _ in here.reasoner.calls].count(step) == 2


@pytest.mark.slow
@pytest.mark.requirement("F-11", "S-05")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error.category))
async def test_a_task_that_fails_is_lost_alone(lab: Make, error: OpenAssayError) -> None:
    here = lab(read=Once(error))
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    [reason] = (await here.state(outcome))["failures"].values()
    assert reason == error.message


@pytest.mark.requirement("F-11")
@pytest.mark.parametrize("step", ["plan", "read"])
async def test_storage_that_is_busy_for_a_moment_is_waited_for(lab: Make, step: str) -> None:
    here = lab(**{step: Once(BUSY)})
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert (await here.state(outcome))["failures"] == {}
    told = [event.data["message"] for event in await here.log(outcome.run.id) if event.kind == "error"]
    assert told == [BUSY.message]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between two tries."""
    real = asyncio.sleep
    monkeypatch.setattr("langgraph.pregel._retry.asyncio.sleep", lambda _: real(0))
    monkeypatch.setattr("openassay.engine.runner.STORAGE_RETRY_SECONDS", (0, 0))


@pytest.mark.requirement("F-11", "W-16")
@pytest.mark.parametrize("step", ["understand", "plan", "write"])
async def test_storage_that_is_away_for_longer_is_waited_for_and_nothing_is_lost(
    lab: Make, hurried: None, step: str
) -> None:
    """The graph has tried four times; then the run goes on from its last checkpoint."""
    here = lab(**{step: Once(BUSY, times=6)})
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert [name for name, _ in here.reasoner.calls].count(step) == 7
    log = await here.log(outcome.run.id)
    [told] = [str(event.data["text"]) for event in log if event.kind == "notice" and "unavailable" in str(event.data)]
    assert "continues from its last checkpoint" in told
    left = [event.stage for event in log if event.kind == "leave"]
    assert left.count("understand") == left.count("plan") == 1


@pytest.mark.requirement("W-16")
async def test_a_run_whose_storage_stays_away_waits_to_be_taken_up(lab: Make, hurried: None) -> None:
    here = lab(plan=Once(BUSY, times=12))
    here.holds(*LAKE)

    waiting = await here.ask(QUESTION)

    assert waiting.run.status is RunStatus.QUEUED
    assert waiting.run.error is None
    [*_, last] = [event for event in await here.log(waiting.run.id) if event.kind == "notice"]
    assert "waits to be resumed" in str(last.data["text"])
    await here.engine.resume(waiting.run.thread)
    assert (await here.settled(waiting.run.id)).run.status is RunStatus.DONE
    assert [name for name, _ in here.reasoner.calls].count("plan") == 13


@pytest.mark.requirement("W-16")
@pytest.mark.parametrize("method", ["aput", "aput_writes"])
async def test_an_answer_is_not_lost_while_storage_is_away(
    lab: Make, hurried: None, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab(settings={"hitl_after_planning": True})
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)
    real, fails = getattr(type(here.checkpointer), method), [BUSY, BUSY]

    async def away(*args: Any) -> Any:
        if fails:
            raise fails.pop()
        return await real(*args)

    monkeypatch.setattr(type(here.checkpointer), method, away)
    outcome = await here.answer(asked, "approve")

    assert not fails
    assert outcome.report is not None
    assert outcome.report.status == "complete"
    kinds = [event.kind for event in await here.log(outcome.run.id)]
    assert kinds.count("interrupt") == 1, "it was not asked again"


# What the router and the reasoner do before the graph hears of it


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("openassay.bootstrap.ModelRouter", partial(ModelRouter, sleep=note))

    async def ask(faults: Any, **llm: Any) -> tuple[RunOutcome, FakeLlmServer, list[float]]:
        async with FakeLlmServer(FakeModel(), faults=faults) as provider:
            models = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}, **llm}
            async with open_engine(load(data_dir=tmp_path / "data", llm=models)) as engine:
                options = ResearchOptions.model_validate({"depth": "quick", "source": "demo"})
                run = await engine.start("What's happening with Tesla and its stock?", options)
                outcome = await engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        check_report(outcome.report, stored_texts(tmp_path / "data"))
        return outcome, provider, pauses

    return ask


@pytest.mark.slow
@pytest.mark.requirement("F-11")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [("rate-limited-without-end", [10.0, 20.0, 40.0]), ("rate-limited", [1.0]), ("rate-limited-for-an-hour", [])],
)
async def test_a_rate_limit_is_waited_out(asked: Callable[..., Any], fault: str, expected: list[float]) -> None:
    outcome, provider, pauses = await asked(FaultSequence([fault] * len(expected) or [fault]))

    assert pauses == expected
    first = [call.form for call in provider.calls][: len(expected) + 1]
    assert len(set(first)) == 1 or not expected, "the same step is asked again"
    assert outcome.report.status == "complete"
    assert ("embedded" in outcome.report.metadata.reasoning) is (not expected), "a limit of an hour is not waited out"


@pytest.fixture
def no_answer(monkeypatch: pytest.MonkeyPatch) -> LlmFault:
    """The time of a call that has no answer is over when it has arrived; others have theirs, however long they take."""
    limits: list[asyncio.Timeout] = []
    timeout = asyncio.timeout

    def noted(delay: float | None) -> asyncio.Timeout:
        limit = timeout(delay)
        if delay == CALL_SECONDS:
            limits.append(limit)
        return limit

    async def hang(wire: ServerConnection, response: ServerResponse) -> None:
        limits[-1].reschedule(asyncio.get_running_loop().time())
        await wire.wait_for_close()

    monkeypatch.setattr("openassay.llm.vendors.base.asyncio.timeout", noted)
    return replace(FAULTS["hang"], sent=hang)


@pytest.mark.slow
@pytest.mark.requirement("F-11")
async def test_a_model_that_does_not_answer_is_asked_two_times_more(
    asked: Callable[..., Any], no_answer: LlmFault
) -> None:
    outcome, provider, pauses = await asked(
        FaultSequence([no_answer] * 3), call_seconds=CALL_SECONDS, step_seconds=4 * CALL_SECONDS
    )

    assert pauses == [1.0, 2.0]
    assert [call.fault is not None for call in provider.calls][:4] == [True, True, True, False]
    assert outcome.report.metadata.reasoning["embedded"] == 1, "one step was done without the model"
    assert outcome.report.status == "complete"


@pytest.mark.slow
@pytest.mark.requirement("F-11")
async def test_sources_that_are_too_long_are_fewer_and_then_shorter(asked: Callable[..., Any], tmp_path: Path) -> None:
    outcome, _, _ = await asked(FaultAlways("context-overflow"))

    async with open_engine(load(data_dir=tmp_path / "data")) as engine:
        told = [str(event.data.get("text")) for event in [event async for event in engine.events(outcome.run.id)]]
    fewer = [position for position, text in enumerate(told) if "fewer sources" in text]
    shorter = [position for position, text in enumerate(told) if "shorter" in text]
    assert fewer
    assert shorter
    assert fewer[0] < shorter[0]
