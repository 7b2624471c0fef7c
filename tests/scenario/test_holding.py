"""One process at a time decides about a thread: what it has read is still true when it writes."""

import asyncio
import logging
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import typer

from openassay.bootstrap import open_engine
from openassay.cli import research
from openassay.cli.runtime import run_with_engine
from openassay.engine import validation
from openassay.engine.engine import Engine
from openassay.errors import IntegrityError, PathError, StorageError, ThreadBusyError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions, Run, StopRequest
from openassay.protocols import Lease
from openassay.settings import load
from openassay.storage.locks import FileLocks, lease_error
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

APPLE = "What's happening with Apple?"
QUICK = ResearchOptions(depth=Depth.QUICK)
Make = Callable[..., Lab]


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[tuple[Engine, Engine]]:
    """Two engines on the same data."""
    async with AsyncExitStack() as stack:
        settings = load(data_dir=tmp_path / "data")
        one, two = [await stack.enter_async_context(open_engine(settings)) for _ in range(2)]
        yield one, two


async def at_work(here: Lab) -> tuple[Run, asyncio.Event]:
    """A run that waits at a gate in the middle of a step."""
    reached, gate = asyncio.Event(), asyncio.Event()

    async def wait(query: str) -> None:
        reached.set()
        await gate.wait()

    here.holds(*LAKE, before=wait)
    run = await here.engine.start(QUESTION, QUICK)
    await asyncio.wait_for(reached.wait(), 20)
    return run, gate


async def abandoned(engine: Engine) -> Run:
    """A run whose process has died."""
    run = await engine.queue(APPLE, QUICK)
    await engine.threads.update(run.id, status=RunStatus.RUNNING)
    return run


# What comes in between


@pytest.mark.slow
@pytest.mark.requirement("F-10")
@pytest.mark.parametrize("how", ["start", "follow-up", "veto", "fork"])
async def test_a_run_that_was_just_written_is_not_taken_for_one_that_was_left(
    processes: tuple[Engine, Engine], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = processes
    thread = None
    if how != "start":
        first = await mine.start(APPLE, QUICK)
        await mine.wait(first.id)
        thread = first.thread
    meanwhile: list[Run] = []
    written = "begin" if how in ("follow-up", "veto") else "create_with_run"
    real = getattr(mine.threads, written)

    async def slow(*given: Any) -> None:
        await real(*given)
        meanwhile.extend(await other.resume_abandoned())

    monkeypatch.setattr(mine.threads, written, slow)
    if how == "veto":
        run = await mine.vetoes.begin(str(thread), ["S1"])
    elif how == "fork":
        run = await mine.branches.fork(str(thread))
    else:
        run = await mine.start("What about Tesla?", QUICK, thread=thread)

    assert meanwhile == []
    assert (await mine.wait(run.id)).run.status is RunStatus.DONE


async def test_a_thread_and_its_first_run_are_written_together(
    processes: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = processes

    def full(*_: Any) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(mine.threads, "_begin", full)
    with pytest.raises(StorageError):
        await mine.start(APPLE, QUICK)

    assert await other.overview(10) == []


async def test_what_cannot_be_spawned_is_left_to_others(
    processes: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = processes

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(type(mine._runner), "spawn", broken)
    with pytest.raises(RuntimeError):
        await mine.start(APPLE, QUICK)
    monkeypatch.undo()

    [taken] = await other.resume_abandoned()
    assert (await other.wait(taken.id)).run.status is RunStatus.DONE


@pytest.mark.parametrize("how", ["stop", "suspend"])
async def test_nobody_goes_on_with_what_is_being_decided_about(
    processes: tuple[Engine, Engine], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = processes
    run = await abandoned(mine)
    real = mine.threads.update
    refused: list[str] = []

    async def meanwhile(*given: Any, **changes: Any) -> None:
        with pytest.raises(ThreadBusyError):
            await other.resume(run.thread)
        refused.append(run.id)
        await real(*given, **changes)

    monkeypatch.setattr(mine.threads, "update", meanwhile)
    stood = await getattr(mine, how)(run.thread)

    assert refused == [run.id]
    assert stood.status is (RunStatus.CANCELLED if how == "stop" else RunStatus.QUEUED)


async def test_a_run_that_was_finished_meanwhile_is_not_begun_again(
    processes: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = processes
    run = await abandoned(mine)
    real = mine._get_resumable

    async def finished(thread: str) -> Run:
        found = await real(thread)
        monkeypatch.setattr(mine, "_get_resumable", real)
        await other.resume(thread)
        await other.wait(run.id)
        return found

    monkeypatch.setattr(mine, "_get_resumable", finished)
    with pytest.raises(UsageError, match="already answered"):
        await mine.resume(run.thread)


async def test_what_was_put_aside_and_stopped_since_stays_so(processes: tuple[Engine, Engine]) -> None:
    mine, other = processes
    run = await mine.queue(APPLE, QUICK)
    await other.stop(run.thread)

    with pytest.raises(UsageError, match="no longer queued"):
        await mine.resume(run.thread, queued=True)

    assert (await mine.threads.run(run.id)).status is RunStatus.CANCELLED


async def test_a_question_may_follow_as_soon_as_the_last_is_answered(lab: Make, tmp_path: Path) -> None:
    here = lab()

    class Slow(FileLocks):
        def release(self, thread: str) -> None:
            time.sleep(0.3)  # as a journal that has to be closed first would
            super().release(thread)

    here.engine._runner.locks = Slow(tmp_path)
    first = await here.engine.start(APPLE, QUICK)
    async for event in here.engine.events(first.id):
        if event.data.get("status") == RunStatus.DONE:
            break

    assert (await here.ask("What about Tesla?", depth="quick", thread=first.thread)).report is not None


# Stopping


async def test_a_run_may_be_stopped_as_soon_as_it_is_begun(lab: Make) -> None:
    here = lab()
    run = await here.engine.start(APPLE, QUICK)

    await here.engine.cancel(run.id)

    assert (await here.engine.outcome(run.id)).run.status is RunStatus.CANCELLED
    assert await here.engine._runner.is_abandoned(run.thread)


async def test_an_end_is_written_however_often_the_run_is_stopped_meanwhile(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab()
    real, ending = here.threads.update, asyncio.Event()

    async def slow(run: str, **changes: Any) -> None:
        if changes.get("status") is RunStatus.DONE:
            ending.set()
            await asyncio.sleep(0.2)
        await real(run, **changes)

    monkeypatch.setattr(here.threads, "update", slow)
    run = await here.engine.start(APPLE, QUICK)
    await asyncio.wait_for(ending.wait(), 20)
    await asyncio.gather(here.engine.cancel(run.id), here.engine.cancel(run.id))

    assert (await here.threads.run(run.id)).status is RunStatus.DONE
    assert await here.engine._runner.is_abandoned(run.thread)


async def test_what_a_process_that_leaves_was_at_waits_for_the_next(lab: Make) -> None:
    here = lab()
    run, _ = await at_work(here)

    await here.engine.close()

    assert (await here.threads.run(run.id)).status is RunStatus.QUEUED


@pytest.mark.requirement("W-16")
async def test_a_run_that_somebody_drained_is_not_taken_up_before_somebody_says_so(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.runner.STOP_POLL_SECONDS", 0.05)
    here = lab()
    run, gate = await at_work(here)
    await here.threads.request_stop(run.id, StopRequest.DRAIN)
    await asyncio.sleep(0.2)
    gate.set()
    assert (await here.engine.wait(run.id)).run.status is RunStatus.CANCELLED

    assert await here.engine.resume_abandoned() == []
    await here.engine.resume(run.thread)
    assert (await here.engine.wait(run.id)).run.status is RunStatus.DONE


@pytest.mark.parametrize("stop", [StopRequest.CANCEL, StopRequest.DRAIN])
@pytest.mark.parametrize(("how", "status"), [("adopt", RunStatus.CANCELLED), ("resume", RunStatus.DONE)])
async def test_what_a_dead_process_was_asked_holds_until_somebody_wants_it_otherwise(
    lab: Make, how: str, status: RunStatus, stop: StopRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.runner.STOP_POLL_SECONDS", 0.01)
    here = lab()
    run = await abandoned(here.engine)
    await here.threads.request_stop(run.id, stop)

    await (here.engine.resume_abandoned() if how == "adopt" else here.engine.resume(run.thread))

    assert (await here.engine.wait(run.id)).run.status is status


async def test_a_stop_that_is_asked_for_while_a_run_is_taken_up_is_heard(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.runner.STOP_POLL_SECONDS", 0.01)
    here = lab()
    run = await abandoned(here.engine)
    real = here.threads.get_stop_request

    async def just_before(id: str) -> StopRequest:
        monkeypatch.setattr(here.threads, "get_stop_request", real)
        said: StopRequest = await real(id)
        await here.threads.request_stop(id, StopRequest.CANCEL)
        return said

    monkeypatch.setattr(here.threads, "get_stop_request", just_before)
    await here.engine.resume_abandoned()

    assert (await here.engine.wait(run.id)).run.status is RunStatus.CANCELLED


async def test_the_timer_does_not_look_into_what_waits_in_line(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    here = lab()
    for _ in range(3):
        await here.engine.queue(APPLE, QUICK)
    taken: list[str] = []
    monkeypatch.setattr(here.engine._runner.locks, "acquire", taken.append)

    assert await here.engine.interrupts.answer_overdue() == []

    assert taken == []


# Losing a thread


class Lossy(FileLocks):
    """As locks whose connection is lost are: another process has what was held."""

    is_lost = False

    def holds(self, thread: str) -> bool:
        return not self.is_lost and super().holds(thread)

    def release(self, thread: str) -> None:
        if not self.is_lost:
            super().release(thread)


@pytest.mark.requirement("F-10")
async def test_a_run_whose_thread_was_lost_stops_and_leaves_all_to_whoever_has_it(
    lab: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr("openassay.engine.runner.STOP_POLL_SECONDS", 0.05)
    here = lab()
    here.engine._runner.locks = locks = Lossy(tmp_path)
    run, _ = await at_work(here)
    before = await here.log(run.id)

    locks.is_lost = True
    async with asyncio.timeout(10):
        outcome = await here.engine.wait(run.id)

    assert outcome.run.status is RunStatus.RUNNING, "the other process says how it goes"
    assert await here.log(run.id) == before
    assert run.thread in caplog.text


@pytest.mark.requirement("W-16")
async def test_a_run_that_finds_its_thread_lost_only_when_it_ends_has_not_failed(
    lab: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = lab()
    real = here.threads.update

    async def refused(run: str, **changes: Any) -> None:
        if changes.get("status") is RunStatus.DONE:
            raise lease_error(first.thread)
        await real(run, **changes)

    monkeypatch.setattr(here.threads, "update", refused)
    first = await here.engine.start(APPLE, QUICK)
    outcome = await here.engine.wait(first.id)

    assert outcome.run.status is RunStatus.RUNNING
    assert here.engine.fault(first.id) is None
    assert "another has it" in caplog.text


# Where something is wrong


async def test_locks_that_take_their_time_do_not_stop_everything_else(lab: Make, tmp_path: Path) -> None:
    here = lab()
    ticks: list[int] = []
    meanwhile: list[int] = []

    class Far(FileLocks):
        def acquire(self, thread: str, *, forgive: bool = True) -> Lease:
            before = len(ticks)
            time.sleep(0.4)
            meanwhile.append(len(ticks) - before)
            return super().acquire(thread, forgive=forgive)

    here.engine._runner.locks = Far(tmp_path)

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.01)
            ticks.append(1)

    ticking = asyncio.create_task(tick())
    run = await here.engine.queue(APPLE, QUICK)
    ticking.cancel()

    assert run.status is RunStatus.QUEUED
    assert min(meanwhile) > 2, "others run while a lock is waited for"


async def test_a_journal_is_closed_even_if_the_end_cannot_be_written(
    processes: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, _ = processes
    real = mine.threads.update

    async def full(run: str, **changes: Any) -> None:
        if changes.get("status") is RunStatus.DONE:
            raise StorageError("the disk is full")
        await real(run, **changes)

    monkeypatch.setattr(mine.threads, "update", full)
    run = await mine.start(APPLE, QUICK)
    with pytest.raises(StorageError, match="disk is full"):
        await mine.wait(run.id)

    journal = mine._runner.journal
    assert journal is not None
    assert journal.stores.checkpointer.watchers == {}


async def test_failures_are_not_remembered_for_ever(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openassay.engine.runner.MAX_FAULTS", 2)
    here = lab()

    async def broken(*_: Any) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr("openassay.engine.runner.GraphRun.prepare", broken)
    runs = [(await here.ask(QUESTION, depth="quick")).run for _ in range(3)]

    assert [run.status for run in runs] == [RunStatus.FAILED] * 3
    assert [here.engine.fault(run.id) is None for run in runs] == [True, False, False]


async def test_what_may_pass_is_tried_again(lab: Make) -> None:
    here = lab()
    run = await here.engine.queue(APPLE, QUICK)
    real = here.engine._runner.choose_sources

    def busy(_: ResearchOptions) -> Any:
        raise StorageError("database is locked", retryable=True)

    here.engine._runner.choose_sources = busy
    assert await here.engine.resume_abandoned() == []
    assert [error.message for error in here.engine.unrecoverable.values()] == ["database is locked"]
    here.engine._runner.choose_sources = real

    assert [taken.id for taken in await here.engine.resume_abandoned()] == [run.id]
    assert here.engine.unrecoverable == {}


async def test_one_thread_that_cannot_go_on_does_not_end_the_timer(lab: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Its process died when it had taken an answer, and its documents are gone."""
    here = lab(settings={"hitl_after_planning": True})
    waiting = await here.ask(APPLE, depth="quick", interactive=True)
    [question] = waiting.questions
    await here.reviews.accept_answer(
        question.id, dict(validation.timeout_answer(question)), "person", here.engine._runner.now()
    )
    real = here.engine._runner.choose_sources

    def gone(_: ResearchOptions) -> Any:
        raise PathError("there is no folder docs")

    here.engine._runner.choose_sources = gone
    with caplog.at_level(logging.WARNING, "openassay"):
        assert await here.engine.interrupts.answer_overdue() == []
    assert "no folder docs" in caplog.text
    here.engine._runner.choose_sources = real

    assert [run.id for run in await here.engine.interrupts.answer_overdue()] == [waiting.run.id]
    assert (await here.settled(waiting.run.id)).report is not None


async def test_a_word_nobody_wrote_stops_nothing(processes: tuple[Engine, Engine], tmp_path: Path) -> None:
    mine, _ = processes
    run = await mine.queue(APPLE, QUICK)
    with closing(sqlite3.connect(tmp_path / "data" / "openassay.sqlite3")) as connection, connection:
        connection.execute("UPDATE runs SET stop = 'perhaps'")

    with pytest.raises(IntegrityError):
        await mine.threads.get_stop_request(run.id)


# `openassay resume --all`


async def _left(data: Path, docs: Path) -> None:
    async with open_engine(load(data_dir=data)) as engine:
        await engine.queue(QUESTION, ResearchOptions(docs=(str(docs),)))
        await engine.queue(APPLE, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["gone", "broken"])
def test_what_fails_is_told_by_the_code(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.pdf").write_bytes(b"%PDF-1.4 not really")
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path / "data"))
    asyncio.run(_left(tmp_path / "data", docs))
    if how == "gone":
        (docs / "a.pdf").unlink()
        docs.rmdir()

    with pytest.raises(typer.Exit) as code:
        run_with_engine(research.resume_orphans)

    assert code.value.exit_code == 1
    said = capsys.readouterr()
    assert "done: complete report" in said.out, "the others went on"
    assert f"{1 if how == 'gone' else 2} run" in said.err


async def test_a_second_interrupt_does_not_wait(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    here = lab()
    run, gate = await at_work(here)
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)

    with research._stop_on_signals(here.engine) as stopping:
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(stopping.wait(), 5)
        assert codes == []
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.1)
        gate.set()
        await here.engine.wait(run.id)

    assert codes == [130]


# Falling

TAKES = """
import os, sys
from pathlib import Path
from openassay.storage.locks import FileLocks
FileLocks(Path(sys.argv[1]) / "locks").acquire(sys.argv[2], forgive=False)
os._exit(1)
"""
RESUMES = """
import asyncio, os, sys
from openassay.bootstrap import open_engine
from openassay.engine.runner import Runner
from openassay.settings import load
Runner.spawn = lambda *_, **__: os._exit(1)

async def resume():
    async with open_engine(load(data_dir=sys.argv[1])) as engine:
        await engine.resume(sys.argv[2])

asyncio.run(resume())
"""


async def died(folder: Path, run: Run, times: int, script: str = TAKES) -> None:
    """So many processes, one after the other, that had the thread when they were gone."""
    for _ in range(times):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(folder), run.thread)
        assert await process.wait() == 1


@pytest.mark.slow
@pytest.mark.requirement("W-16", "C-15")
async def test_a_run_that_takes_every_process_down_is_given_up(tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path, fleet={"most_falls": 2})) as engine:
        run = await abandoned(engine)
        await died(tmp_path, run, 2)

        assert await engine.resume_abandoned() == []

        ended = await engine.threads.run(run.id)
        assert ended.status is RunStatus.FAILED
        assert "its worker died 2 times in a row" in str(ended.error)
        assert [event.kind async for event in engine.events(run.id)][-2:] == ["error", "run"]
        await engine.resume(run.thread)
        assert (await engine.wait(run.id)).run.status is RunStatus.DONE


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_run_that_took_some_down_goes_on_and_whoever_looks_counts_for_nothing(tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path, fleet={"most_falls": 2})) as engine:
        run = await abandoned(engine)
        await died(tmp_path, run, 1)
        for _ in range(3):
            assert await engine._runner.is_abandoned(run.thread)

        assert [taken.id for taken in await engine.resume_abandoned()] == [run.id]
        assert (await engine.wait(run.id)).run.status is RunStatus.DONE


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_person_who_resumes_a_run_begins_to_count_anew(tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path, fleet={"most_falls": 2})) as engine:
        run = await abandoned(engine)
        await died(tmp_path, run, 2)
        await died(tmp_path, run, 1, RESUMES)

        assert [taken.id for taken in await engine.resume_abandoned()] == [run.id]
        assert (await engine.wait(run.id)).run.status is RunStatus.DONE
