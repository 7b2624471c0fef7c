"""What fails fails alone; what was finished is not done again; threads never mix."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.errors import NotFoundError, SourceError, StorageError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.python_api import research
from openassay.reasoning.base import ReadRequest
from openassay.search.demo import DemoSource
from openassay.search.registry import SourceContext
from openassay.settings import load
from openassay.testing import FakeSource
from tests.scenario.checking import check_report, stored_texts
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]


async def closed(query: str) -> None:
    raise SourceError("the archive is closed", help="Come back tomorrow.", retryable=True)


# Sources and sub-questions


async def test_one_failing_source_does_not_stop_another(lab: Make) -> None:
    here = lab()
    broken = FakeSource(here.documents, LAKE, name="broken", before=closed)
    here.sources = [broken, FakeSource(here.documents, LAKE)]

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert len(broken.queries) > 1
    errors = [event.data for event in await here.log(outcome.run.id) if event.kind == "error"]
    assert {(error["source"], error["message"], error["retryable"]) for error in errors} == {
        ("broken", "the archive is closed", True)
    }


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_database_that_is_away_for_a_moment_is_no_fault_of_a_source(lab: Make) -> None:
    """What a source has found is kept there; the search is done again."""
    asked = list[str]()

    async def away(query: str) -> None:
        asked.append(query)
        if len(asked) <= 2:
            raise StorageError("the database cannot be reached", retryable=True)

    here = lab()
    here.holds(*LAKE, before=away)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert (await here.state(outcome))["failures"] == {}
    told = [event.data for event in await here.log(outcome.run.id) if event.kind == "error"]
    assert {(error["message"], error.get("source")) for error in told} == {("the database cannot be reached", None)}


async def test_a_failing_sub_question_is_lost_alone_and_owned_up_to(lab: Make) -> None:
    async def outage(query: str) -> None:
        if "shrink" in query:
            await closed(query)

    here = lab(settings={"query_variations": 1})  # others may do without the word
    here.holds(*LAKE, before=outage)

    outcome = await here.ask("How large is Lake Marrow, and why did the shore shrink?")

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    [section] = [s for s in outcome.report.sections if s.role == "not_found"]
    assert "shore shrink" in section.sentences[0].text
    assert any("archive is closed" in reason for reason in (await here.state(outcome))["failures"].values())


@pytest.mark.parametrize("error", [SourceError("the archive is closed"), RuntimeError("a bug in a plugin")])
async def test_when_every_search_fails_the_answer_is_an_honest_nothing(lab: Make, error: Exception) -> None:
    asked: list[str] = []

    async def outage(query: str) -> None:
        asked.append(query)
        if len(asked) > 1:  # the gate's preview still worked
            raise error

    here = lab()
    here.holds(*LAKE, before=outage)

    outcome = await here.ask(QUESTION)

    assert outcome.run.status is RunStatus.DONE
    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert "could not be searched" in outcome.report.markdown
    assert len((await here.state(outcome))["failures"]) >= 3


async def test_when_every_reading_fails_the_answer_is_an_honest_nothing(lab: Make) -> None:
    def read(real: Any, *args: Any) -> None:
        raise RuntimeError("my glasses are gone")

    here = lab(read=read)
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert any("my glasses are gone" in reason for reason in (await here.state(outcome))["failures"].values())


async def test_a_failing_reading_is_lost_alone(lab: Make) -> None:
    async def read(real: Any, request: ReadRequest) -> Any:
        if request.question.id == "Q1":
            raise RuntimeError("my glasses are gone")
        return await real(request)

    here = lab(read=read)
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert {name.rpartition(":")[2] for name in (await here.state(outcome))["failures"]} == {"Q1"}


# Stopping and going on


@pytest.mark.slow
@pytest.mark.parametrize("crashed", [False, True], ids=["stopped", "crashed"])
async def test_a_run_goes_on_in_another_process_without_searching_again(
    tmp_path: Path, plugin: Callable[..., None], crashed: bool
) -> None:
    async def stuck(query: str) -> None:
        if "shrink" in query and query != QUESTION:  # the gate's preview
            await asyncio.Event().wait()

    sources: list[FakeSource] = []

    def lake(before: Callable[[str], Any] | None) -> None:
        def build(bench: SourceContext) -> FakeSource:
            sources.append(FakeSource(bench.store, LAKE, before=before))
            return sources[-1]

        plugin("lake", build)

    settings = load(data_dir=tmp_path / "data", max_gap_searches=0)
    lake(stuck)
    async with open_engine(settings) as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="lake"))
        finished = await _two_of_three_searched(engine, run.id)
    lake(None)
    async with open_engine(settings) as engine:
        assert (await engine.threads.run(run.id)).status is RunStatus.QUEUED
        if crashed:  # a process that was killed could not say that it stopped
            await engine.threads.update(run.id, status=RunStatus.RUNNING)
        await engine.resume(run.thread)
        outcome = await engine.wait(run.id)

        assert outcome.run.status is RunStatus.DONE
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        check_report(outcome.report, stored_texts(tmp_path / "data"))
        before, after = sources
        assert any("shrink" in query for query in after.queries)
        assert not set(after.queries) & finished
        assert set(outcome.report.provenance.queries) == set(before.queries[1:]) | set(after.queries)
        with pytest.raises(UsageError, match="already answered"):
            await engine.resume(run.thread)


async def _two_of_three_searched(engine: Engine, run: str) -> set[str]:
    """Wait until only the stuck sub-question is left; the queries of the other two."""
    asked: dict[str, set[str]] = {}
    left = 0
    async with asyncio.timeout(20):
        async for event in engine.events(run):
            if event.kind == "search" and "query" in event.data:
                asked.setdefault(str(event.data["question"]), set()).add(str(event.data["query"]))
            left += event.kind == "leave" and event.stage == "search"
            if left == 2:
                await asyncio.sleep(0.2)  # what a task found is written down right after it left
                return asked["Q1"] | asked["Q3"]
    raise AssertionError("the run ended before it could be stopped")


async def test_a_failed_run_goes_on_from_where_it_broke(lab: Make) -> None:
    broken = [True]

    async def claims(real: Any, *args: Any) -> Any:
        if broken.pop() if broken else False:
            raise RuntimeError("out of memory")
        return await real(*args)

    here = lab(extract_claims=claims)
    source = here.holds(*LAKE)
    first = await here.ask(QUESTION)
    asked = len(source.queries)

    await here.engine.resume(first.run.thread)
    second = await here.settled(first.run.id)

    assert first.run.status is RunStatus.FAILED
    assert second.run.status is RunStatus.DONE
    assert second.run.error is None
    assert second.report is not None
    assert second.report.status == "complete"
    assert len(source.queries) == asked
    assert [name for name, _ in here.reasoner.calls].count("plan") == 1


async def test_a_stopped_run_gives_way_to_a_new_question(lab: Make) -> None:
    started = asyncio.Event()

    async def stuck(query: str) -> None:
        started.set()
        await asyncio.Event().wait()

    here = lab()
    here.holds(*LAKE, before=stuck)
    run = await here.engine.start(QUESTION, ResearchOptions())
    await asyncio.wait_for(started.wait(), 10)
    await here.engine.cancel(run.id)
    here.sources = [DemoSource(here.documents)]

    outcome = await here.ask("What's happening with Apple?", depth="quick", thread=run.thread)

    assert (await here.engine.outcome(run.id)).run.status is RunStatus.CANCELLED
    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert all("Apple" in card.title for card in outcome.report.sources)


async def test_the_log_can_be_followed_while_a_run_goes_on(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    run = await here.engine.start("How large is Lake Marrow?", ResearchOptions(depth=Depth.QUICK))

    followed = [event async for event in here.engine.events(run.id)]

    assert [event.seq for event in followed] == list(range(1, len(followed) + 1))
    assert (followed[0].data["status"], followed[-1].data["status"]) == ("running", "done")
    assert [event async for event in here.engine.events(run.id, after=5)] == followed[5:]


# Threads


async def test_two_threads_never_mix(lab: Make) -> None:
    here = lab()

    apple, tesla = await asyncio.gather(
        here.ask("What's happening with Apple?", depth="quick"), here.ask("What's happening with Tesla?", depth="quick")
    )

    assert apple.run.thread != tesla.run.thread
    for outcome, mine, other in ((apple, "Apple", "Tesla"), (tesla, "Tesla", "Apple")):
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        state = await here.state(outcome)
        assert state["subject"] == mine
        assert other not in str(state)
        assert other not in outcome.report.markdown
        assert all(event.run == outcome.run.id for event in await here.log(outcome.run.id))
    follow_up = await here.ask("What about their stock?", depth="quick", thread=tesla.run.thread)
    assert follow_up.report is not None
    assert "TSLA" in follow_up.report.markdown


async def test_a_deleted_thread_is_gone_with_its_state(lab: Make) -> None:
    here = lab()
    kept = await here.ask("What's happening with Apple?", depth="quick")
    gone = await here.ask("What's happening with Tesla?", depth="quick")

    await here.engine.archive.delete(gone.run.thread)

    assert await here.engine.state(gone.run.thread) == {}
    with pytest.raises(NotFoundError):
        await here.engine.history.report(gone.run.thread)
    with pytest.raises(NotFoundError):
        await here.engine.threads.run(gone.run.id)
    assert await here.engine.history.report(kept.run.thread) == kept.report


@pytest.mark.requirement("X-10")
def test_the_memory_backend_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    report = research("What's happening with Apple?", depth="quick", persistence={"backend": "memory"})

    assert report.status == "complete"
    assert not (tmp_path / "data").exists()
    assert list(scratch.iterdir()) == []
