"""Runs are stopped, drained, followed and taken up by any process; damaged threads are refused before anything runs."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.errors import AnswerError, IntegrityError, ThreadBusyError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions, Run
from openassay.search.registry import SourceContext
from openassay.settings import Settings, load
from openassay.testing import FakeSource
from tests.scenario.checking import check_report
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

APPLE = "What's happening with Apple?"


class Lake:
    """A source whose searches wait at a gate; every process has its own, and all are remembered."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.reached = asyncio.Event()
        self.made: list[FakeSource] = []

    def build(self, bench: SourceContext) -> FakeSource:
        self.made.append(FakeSource(bench.store, LAKE, before=self._wait))
        return self.made[-1]

    async def _wait(self, query: str) -> None:
        if query != QUESTION:  # the gate's preview
            self.reached.set()
            await self.gate.wait()

    @property
    def queries(self) -> list[str]:
        return [query for source in self.made for query in source.queries if query != QUESTION]


@pytest.fixture
def lake(plugin: Callable[..., None]) -> Lake:
    made = Lake()
    plugin("lake", made.build)
    return made


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """On SQLite, unless a test asks for PostgreSQL."""
    backend = getattr(request, "param", "sqlite")
    address = request.getfixturevalue("postgres_address") if backend == "postgres" else None
    persistence = {"backend": backend, "connection_string": address}
    return load(data_dir=tmp_path / "data", max_gap_searches=0, query_variations=1, persistence=persistence)


@pytest.fixture
async def process(settings: Settings) -> AsyncIterator[Callable[[], Any]]:
    """process() opens an engine of its own on the same data, as another process would."""
    async with AsyncExitStack() as stack:

        async def start() -> Engine:
            return await stack.enter_async_context(open_engine(settings))

        yield start


async def begun(engine: Engine, lake: Lake) -> Run:
    run = await engine.start(QUESTION, ResearchOptions(source="lake", depth=Depth.QUICK))
    await asyncio.wait_for(lake.reached.wait(), 20)
    return run


# Stopping


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
async def test_another_process_stops_a_run(process: Callable[[], Any], lake: Lake) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    asked = await other.stop(run.thread)
    outcome = await mine.wait(run.id)

    assert asked.status is RunStatus.RUNNING, "it was asked, and had not stopped yet"
    assert outcome.run.status is RunStatus.CANCELLED
    with pytest.raises(UsageError, match="nothing is running"):
        await other.stop(run.thread)
    lake.gate.set()
    await other.resume(run.thread)
    assert (await other.wait(run.id)).run.status is RunStatus.DONE


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
@pytest.mark.parametrize("settings", ["sqlite", "postgres"], indirect=True)
async def test_a_run_that_a_person_drains_ends_its_step_and_goes_on_when_a_person_says_so(
    process: Callable[[], Any], lake: Lake
) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    await other.stop(run.thread, drain=True)
    await asyncio.sleep(1.5)
    assert (await mine.threads.run(run.id)).status is RunStatus.RUNNING, "the step is let end"
    lake.gate.set()
    outcome = await mine.wait(run.id)
    asked = list(lake.queries)
    left = [event async for event in mine.events(run.id)]

    assert outcome.run.status is RunStatus.CANCELLED
    assert any("after its current step" in str(event.data.get("text")) for event in left if event.kind == "notice")
    assert [event.stage for event in left if event.kind == "leave"][-1] == "search"
    assert await other.resume_abandoned() == await mine.resume_abandoned() == [], (
        "what a person has stopped is left alone"
    )
    await other.resume(run.thread)
    done = await other.wait(run.id)
    assert done.run.status is RunStatus.DONE
    assert done.report is not None
    texts = {card.document: (await other.document(card.document)).text for card in done.report.sources}
    check_report(done.report, texts)
    assert lake.queries == asked, "what was searched is not searched again"
    assert await other.archive.problems() == []
    await other.archive.delete(run.thread)
    assert await mine.overview(10) == []


async def test_a_run_that_its_process_drains_is_taken_up_by_whoever_starts_next(
    process: Callable[[], Any], lake: Lake
) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    draining = asyncio.create_task(mine.drain())
    await asyncio.sleep(0)
    lake.gate.set()
    await draining

    assert (await mine.threads.run(run.id)).status is RunStatus.QUEUED
    assert [taken.id for taken in await other.resume_abandoned()] == [run.id]
    assert (await other.wait(run.id)).run.status is RunStatus.DONE


async def test_what_a_person_has_asked_for_holds_also_if_the_process_stops_before_it_is_heard(
    process: Callable[[], Any], lake: Lake
) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    await other.stop(run.thread, drain=True)
    await mine.drain(seconds=0.05)

    assert (await mine.threads.run(run.id)).status is RunStatus.CANCELLED
    told = [str(event.data.get("text")) async for event in mine.events(run.id) if event.kind == "notice"]
    assert "middle of a step" in told[-1]
    assert await other.resume_abandoned() == []


async def test_a_run_that_is_stopped_while_another_process_tries_for_it_is_left_alone(
    process: Callable[[], Any], lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.runner.LOCK_RETRY_SECONDS", 1.0)
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    trying = asyncio.create_task(other.claim(run))
    await asyncio.sleep(0.3)  # it was busy, and is tried for again
    await mine.stop(run.thread)

    assert await trying is False
    assert (await mine.threads.run(run.id)).status is RunStatus.CANCELLED


async def test_a_run_that_has_ended_is_not_stopped_for_the_next_one_on_its_thread(
    process: Callable[[], Any], lake: Lake
) -> None:
    engine = await process()
    first = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK))
    await engine.wait(first.id)
    second = await engine.start(QUESTION, ResearchOptions(source="lake", depth=Depth.QUICK), thread=first.thread)
    await asyncio.wait_for(lake.reached.wait(), 20)

    with pytest.raises(UsageError, match="nothing is running"):
        await engine.stop(first.thread, run=first.id)

    assert engine.list_running() == [second.id]


async def test_a_step_that_takes_too_long_is_not_waited_for(process: Callable[[], Any], lake: Lake) -> None:
    engine = await process()
    run = await begun(engine, lake)

    await engine.drain(run.id, seconds=0.2)

    assert (await engine.threads.run(run.id)).status is RunStatus.QUEUED, "whoever starts next takes it up"
    told = [str(event.data.get("text")) async for event in engine.events(run.id) if event.kind == "notice"]
    assert "middle of a step" in told[-1]


async def test_nobody_is_at_work_on_what_a_dead_process_left(process: Callable[[], Any]) -> None:
    engine = await process()
    run = await engine.queue(APPLE, ResearchOptions(depth=Depth.QUICK))
    await engine.threads.update(run.id, status=RunStatus.RUNNING)

    stopped = await engine.stop(run.thread)

    assert stopped.status is RunStatus.CANCELLED
    assert await engine.resume_abandoned() == [], "what was stopped is not taken up"


async def test_what_waits_for_a_person_can_be_stopped_and_asks_again_when_it_goes_on(lab: Callable[..., Lab]) -> None:
    here = lab(settings={"hitl_after_planning": True})
    waiting = await here.ask(APPLE, depth="quick", interactive=True)
    thread, [asked] = waiting.run.thread, waiting.questions

    assert (await here.engine.stop(thread)).status is RunStatus.CANCELLED

    assert await here.engine.interrupts.reviews() == [], "nobody is waited for"
    with pytest.raises(AnswerError, match="not open"):
        await here.engine.interrupts.answer(thread, asked.id, "approve")
    assert (await here.engine.resume(thread)).status is RunStatus.WAITING
    assert [one.id for one in await here.engine.interrupts.open_questions(thread)] == [asked.id]
    outcome = await here.engine.wait((await here.engine.interrupts.answer(thread, asked.id, "approve")).id)
    assert outcome.report is not None


async def test_a_run_that_is_stopped_while_it_begins_stays_stopped(
    process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await process()
    update, begun = engine.threads.update, asyncio.Event()

    async def update_late(*args: Any, **changes: Any) -> None:
        await asyncio.sleep(0.3)
        await update(*args, **changes)

    async def update_slowly(*args: Any, **changes: Any) -> None:
        if changes.get("status") is RunStatus.RUNNING:
            begun.set()
            await asyncio.shield(update_late(*args, **changes))  # as in a thread, it goes on when nobody waits any more
        else:
            await update(*args, **changes)

    monkeypatch.setattr(engine.threads, "update", update_slowly)
    run = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK))
    async with asyncio.timeout(10):
        await begun.wait()
    await engine.cancel(run.id)
    await asyncio.sleep(0.5)
    assert (await engine.threads.run(run.id)).status is RunStatus.CANCELLED


# Taking up


async def test_what_was_left_is_taken_up_a_few_at_a_time(
    process: Callable[[], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await process()
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "a.txt").write_text("Lake Marrow covered 412 square kilometres in 2019.")
    hopeless = await engine.queue(QUESTION, ResearchOptions(docs=(str(folder),)))
    (folder / "a.txt").unlink()
    folder.rmdir()
    left = [
        await engine.queue(f"What's happening with {name}?", ResearchOptions(depth=Depth.QUICK))
        for name in ("Apple", "Tesla")
    ]

    with caplog.at_level(logging.WARNING, "openassay"):
        first = await engine.resume_abandoned(at_once=1)
        assert await engine.resume_abandoned(at_once=1) == [], "one is at work"
        await engine.wait(first[0].id)
        second = await engine.resume_abandoned(at_once=1)
        await engine.wait(second[0].id)
        assert await engine.resume_abandoned() == []

    assert [run.id for run in (*first, *second)] == [run.id for run in left]
    assert [(await engine.threads.run(run.id)).status for run in left] == [RunStatus.DONE, RunStatus.DONE]
    assert (await engine.threads.run(hopeless.id)).status is RunStatus.QUEUED
    [told] = [record.getMessage() for record in caplog.records]
    assert hopeless.thread in told
    assert "cannot be resumed" in told


async def test_a_run_that_somebody_works_on_is_not_taken_up(process: Callable[[], Any], lake: Lake) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    assert await other.resume_abandoned() == []
    with pytest.raises(ThreadBusyError):
        await other.suspend(run.thread)


# Following


@pytest.mark.slow
async def test_a_run_of_another_process_is_followed_to_its_end(process: Callable[[], Any], lake: Lake) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)
    asyncio.get_running_loop().call_later(0.3, lake.gate.set)

    followed = [event async for event in other.follow(run.id)]

    assert followed == [event async for event in mine.events(run.id)]
    assert followed[-1].data["status"] == "done"


async def test_whoever_follows_a_dead_process_is_let_go(
    process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.engine.SILENCE_SECONDS", 0.2)
    engine = await process()
    run = await engine.queue(APPLE, ResearchOptions(depth=Depth.QUICK))
    await engine.threads.update(run.id, status=RunStatus.RUNNING)

    async with asyncio.timeout(10):
        assert [event async for event in engine.follow(run.id)] == []


# Damage


def altered(settings: Settings, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(settings.data_dir / "openassay.sqlite3")) as connection, connection:
        assert connection.execute(sql, values).rowcount == 1


@pytest.mark.slow
@pytest.mark.requirement("C-15", "F-10")
@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("DELETE FROM events WHERE seq = 2", "rows of run"),
        ("UPDATE events SET seal = 'ab' || substr(seal, 3) WHERE seq = 3", "rows of run"),
        ("DELETE FROM used_documents WHERE rowid = 1", "rows of thread"),
        ("UPDATE accounts SET seal = 'ab' || substr(seal, 3)", "rows of ledger"),
        ("UPDATE documents SET text = text || '!' WHERE rowid = 1", "row documents"),
        ("DELETE FROM documents WHERE rowid = 1", "is missing"),
    ],
)
async def test_a_damaged_thread_is_refused_before_anything_runs(
    process: Callable[[], Any], settings: Settings, sql: str, named: str
) -> None:
    engine = await process()
    asked = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK))
    outcome = await engine.wait(asked.id)
    assert outcome.report is not None
    altered(settings, sql)

    attempts: list[Callable[[], Any]] = [
        lambda: engine.start("What about their stock?", ResearchOptions(depth=Depth.QUICK), thread=asked.thread),
        lambda: engine.vetoes.begin(asked.thread, ["S1"]),
    ]
    for attempt in attempts:
        with pytest.raises(IntegrityError, match=named):
            await attempt()

    assert [run.status for run in await engine.threads.runs(asked.thread)] == [RunStatus.DONE]
    assert any(named in problem for problem in await engine.archive.problems(asked.thread))
    await engine.archive.delete(asked.thread)
    assert await engine.overview(10) == []


async def test_a_damaged_thread_is_not_gone_on_with(process: Callable[[], Any], settings: Settings, lake: Lake) -> None:
    engine = await process()
    run = await begun(engine, lake)
    await engine.cancel(run.id)
    lake.gate.set()
    altered(settings, "DELETE FROM events WHERE seq = 2")
    asked = len(lake.queries)

    with pytest.raises(IntegrityError, match=f"run {run.id}"):
        await engine.resume(run.thread)
    with pytest.raises(IntegrityError):
        await engine.suspend(run.thread)

    assert len(lake.queries) == asked
    assert (await engine.threads.run(run.id)).status is RunStatus.CANCELLED


async def test_an_answer_on_a_damaged_thread_is_not_taken(process: Callable[[], Any], tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path / "data", hitl_after_planning=True)
    async with open_engine(settings) as engine:
        run = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK, interactive=True))
        [question] = (await engine.wait(run.id)).questions
        altered(settings, "DELETE FROM events WHERE seq = 2")

        with pytest.raises(IntegrityError):
            await engine.interrupts.answer(run.thread, question.id, {"decision": "approve"})

        assert len(await engine.interrupts.reviews(run.thread)) == 1, "it is still open"


async def test_every_row_that_is_wrong_is_named(process: Callable[[], Any], settings: Settings) -> None:
    engine = await process()
    run = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK))
    await engine.wait(run.id)
    assert await engine.archive.problems() == []
    altered(settings, "UPDATE events SET stage = 'x' WHERE seq = 4")
    altered(settings, "UPDATE runs SET question = 'What is happening with Tesla?'")
    altered(settings, "UPDATE documents SET text = 'nothing' WHERE rowid = 1")

    found = await engine.archive.problems()

    assert [sum(f"row {table}" in problem for problem in found) for table in ("events", "runs", "documents")] == [
        1,
        1,
        1,
    ]
    assert f"events {run.id}/4" in " ".join(found)
    await engine.archive.delete(run.thread)
    assert await engine.archive.problems() == []


# Keeping and forgetting


@pytest.mark.requirement("F-10")
async def test_threads_nobody_touches_are_forgotten_in_their_time(
    lab: Callable[..., Lab], caplog: pytest.LogCaptureFixture
) -> None:
    here = lab(settings={"persistence": {"ttl_hours": 24}, "hitl_after_planning": True})
    old = await here.ask(APPLE, depth="quick")
    waiting = await here.ask(APPLE, depth="quick", interactive=True)
    here.ahead += timedelta(hours=23)
    assert await here.engine.archive.expire() == []
    here.ahead += timedelta(hours=2)

    with caplog.at_level(logging.WARNING, "openassay"):
        assert await here.engine.archive.expire() == [old.run.thread]

    assert [one.id for one in await here.engine.overview(10)] == [waiting.run.thread], "a question is open on it"
    assert old.run.thread in caplog.text


@pytest.mark.slow
async def test_of_a_finished_run_the_newest_checkpoints_stay(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path / "data", persistence={"keep_checkpoints": 3})
    async with open_engine(settings) as engine:
        first = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK))
        await engine.wait(first.id)
        run = await engine.start("What about their stock?", ResearchOptions(depth=Depth.QUICK), thread=first.thread)
        assert (await engine.wait(run.id)).report is not None
    with closing(sqlite3.connect(tmp_path / "data" / "openassay.sqlite3")) as connection:
        counts = connection.execute("SELECT run, count(*) FROM checkpoints GROUP BY run").fetchall()
    assert [count for _, count in counts] == [3, 3]
    async with open_engine(settings) as engine:
        assert await engine.archive.problems() == []
        assert (await engine.history.report(run.thread)).provenance.run == run.id


@pytest.mark.slow
@pytest.mark.requirement("F-10")
async def test_a_deleted_thread_leaves_no_byte_behind(tmp_path: Path) -> None:
    data, docs = tmp_path / "data", tmp_path / "docs"
    docs.mkdir()
    (docs / "own.md").write_text("The glockenspiel of Ostrey weighs 412 tonnes and was cast in 1907 by Quillfeather.")
    async with open_engine(load(data_dir=data)) as engine:
        kept = await engine.start(APPLE, ResearchOptions(depth=Depth.QUICK))
        await engine.wait(kept.id)
        gone = await engine.start("How heavy is the glockenspiel of Ostrey?", ResearchOptions(docs=(str(docs),)))
        await engine.wait(gone.id)
        again = await engine.start("What's happening with Apple and Microsoft?", ResearchOptions(depth=Depth.QUICK))
        await engine.wait(again.id)
        assert found(data, b"Quillfeather", b"glockenspiel")

        await engine.archive.delete(gone.thread)
        await engine.archive.delete(again.thread)

        assert found(data, b"Quillfeather", b"glockenspiel", b"Microsoft?") == set()
        assert (await engine.history.report(kept.thread)).status == "complete"
        assert await engine.archive.problems() == []
        follow_up = await engine.start(
            "What about their stock?", ResearchOptions(depth=Depth.QUICK), thread=kept.thread
        )
        assert (await engine.wait(follow_up.id)).run.status is RunStatus.DONE, "documents of others are still there"


def found(folder: Path, *words: bytes) -> set[tuple[str, bytes]]:
    contents = [(str(path), path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    return {(path, word) for path, content in contents for word in words if word in content}


async def test_a_thread_at_work_is_not_deleted(process: Callable[[], Any], lake: Lake) -> None:
    mine, other = await process(), await process()
    run = await begun(mine, lake)

    with pytest.raises(ThreadBusyError) as refused:
        await other.archive.delete(run.thread)

    assert f"openassay threads stop {run.thread}" in refused.value.help
    await other.stop(run.thread)
    await mine.wait(run.id)
    await other.archive.delete(run.thread)
    assert await mine.overview(10) == []


async def test_a_thread_is_begun_before_its_first_question(lab: Callable[..., Lab]) -> None:
    here = lab()
    empty = await here.engine.create_thread()

    outcome = await here.ask(APPLE, depth="quick", thread=empty.id)

    assert outcome.run.thread == empty.id
    [listed] = await here.engine.overview(5, RunStatus.DONE)
    assert (listed.title, listed.question, listed.turns) == (APPLE, APPLE, 1)
    assert await here.engine.overview(5, RunStatus.RUNNING) == []
