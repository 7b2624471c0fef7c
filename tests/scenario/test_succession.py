"""On PostgreSQL, a process that is not heard of loses its threads: whoever takes them up has them alone."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.models.event import RunStatus
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions, Run
from openassay.settings import Settings, load
from openassay.storage import locks
from openassay.storage.database import ALL_TABLES, DOCUMENTS, Connection
from openassay.testing import FakeSource
from tests.scenario.checking import check_report
from tests.scenario.material import LAKE, QUESTION

pytestmark = pytest.mark.requirement("W-16", "F-10")

QUICK = ResearchOptions(depth=Depth.QUICK)
LONG = 600.0  # seconds of a lease that nobody renews during a test
PATIENCE = 60.0  # for a machine that is busy
Before = Callable[[str], Awaitable[None]]


def on_postgres(data: Path, address: str, seconds: float = LONG) -> Settings:
    return load(
        data_dir=data, query_variations=1, max_gap_searches=0, fleet={"lease_seconds": seconds},
        persistence={"backend": "postgres", "connection_string": address},
    )  # fmt: skip


@asynccontextmanager
async def running(settings: Settings, before: Before | None = None) -> AsyncIterator[Engine]:
    """An engine as another process would have it. Its one source is the lake; `before` runs ahead of every search."""
    opened: list[Engine] = []

    def sources(_: ResearchOptions) -> Any:
        return [FakeSource(opened[0]._runner.documents, LAKE, before=before)], {}

    async with open_engine(settings, sources) as engine:
        opened.append(engine)
        yield engine


def written(engine: Engine, data: Path) -> dict[str, list[str]]:
    """Every row of the database, and every file of the journals. Documents are the same whoever reads them."""
    rows = engine._runner.threads._rows
    with rows.database.connection() as connection:
        names = [table.name for table in ALL_TABLES if table is not DOCUMENTS]
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}  # noqa: S608
    files = [f"{path} {path.read_bytes()!r}" for path in (data / "checkpoints").rglob("*") if path.is_file()]
    return {**{name: sorted(map(str, held)) for name, held in found.items()}, "journals": sorted(files)}


def expire(engine: Engine, run: Run) -> None:
    """As if nothing had been heard of its process."""
    rows = engine._runner.threads._rows
    with rows.database.connection() as connection:
        connection.execute("UPDATE leases SET until = now() - interval '1 s' WHERE thread = ?", (run.thread,))


async def quiet(engine: Engine, run: Run) -> None:
    """Until nothing more happens."""
    seen, known = -1, 0
    while seen != known:
        seen = known
        await asyncio.sleep(0.5)
        known = len(await engine._runner.log.since(run.id, 0))


@pytest.mark.slow
async def test_everything_a_run_writes_stands_behind_its_fence(
    postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, open_ones, kinds = locks.check_fence, list[str](), set[str]()

    def look(connection: Connection, scope: str) -> None:
        kind = scope.partition(":")[0]
        kinds.add(kind)
        if kind in ("thread", "run", "ledger") and not locks._tokens.get():
            open_ones.append(scope)
        real(connection, scope)

    monkeypatch.setattr("openassay.storage.sealed_rows.check_fence", look)
    async with running(on_postgres(tmp_path, postgres_address)) as engine:
        run = await engine.start(QUESTION, QUICK)
        assert (await engine.wait(run.id)).run.status is RunStatus.DONE
        queued = await engine.queue("Why did it shrink?", QUICK, thread=run.thread)
        assert await engine.claim(queued)
        assert (await engine.wait(queued.id)).run.status is RunStatus.DONE

    assert open_ones == []
    assert kinds >= {"thread", "run", "ledger"}


@pytest.mark.slow
async def test_a_run_whose_thread_was_taken_over_ends_quietly_and_writes_nothing(
    postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("openassay.engine.runner.STOP_POLL_SECONDS", PATIENCE)  # it finds out only when it writes
    reached, gate = asyncio.Event(), asyncio.Event()

    async def wait(query: str) -> None:
        if query != QUESTION:
            reached.set()
            await gate.wait()

    settings = on_postgres(tmp_path, postgres_address)
    async with running(settings, wait) as mine, running(settings) as other:
        run = await mine.start(QUESTION, QUICK)
        await asyncio.wait_for(reached.wait(), PATIENCE)
        await quiet(mine, run)
        expire(other, run)
        async with other._runner.lock_thread(run.thread):
            before = written(other, tmp_path)
            gate.set()
            outcome = await asyncio.wait_for(mine.wait(run.id), PATIENCE)

            assert written(other, tmp_path) == before
            assert outcome.run.status is RunStatus.RUNNING
            assert mine.fault(run.id) is None
            assert f"thread {run.thread} was lost" in caplog.text
            assert "another has it" in caplog.text
        assert [taken.id for taken in await other.resume_abandoned()] == [run.id]
        assert (await other.wait(run.id)).run.status is RunStatus.DONE


@pytest.mark.slow
async def test_a_line_of_the_journal_that_comes_late_goes_nowhere(
    postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be stopped when the database has accepted something and its journal has not been told."""
    monkeypatch.setattr("openassay.engine.runner.STOP_POLL_SECONDS", PATIENCE)
    reached, gate = asyncio.Event(), asyncio.Event()

    async def wait(query: str) -> None:
        reached.set()
        await gate.wait()

    settings = on_postgres(tmp_path, postgres_address)
    async with running(settings, wait) as mine, running(settings) as other:
        run = await mine.start(QUESTION, QUICK)
        await asyncio.wait_for(reached.wait(), PATIENCE)
        await quiet(mine, run)
        assert mine._runner.journal is not None
        book = mine._runner.journal.works[run.id].book
        expire(other, run)
        assert [taken.id for taken in await other.resume_abandoned()] == [run.id]
        await asyncio.wait_for(other.wait(run.id), PATIENCE)
        before = written(other, tmp_path)

        late = (await other._runner.log.since(run.id, max(book.seqs)))[0]
        book.write_event(late)

        assert written(other, tmp_path) == before
        assert await other.archive.problems() == []
        gate.set()
        await asyncio.wait_for(mine.wait(run.id), PATIENCE)
        assert written(other, tmp_path) == before


# Processes -------------------------------------------------------------------------------------------

WORKER = "import sys; from tests.scenario.test_succession import worker; worker(*sys.argv[1:])"


def worker(data: str, address: str, seconds: str) -> None:
    asyncio.run(_work(on_postgres(Path(data), address, float(seconds))))


async def _work(settings: Settings) -> None:
    async def wait(query: str) -> None:
        if query != QUESTION:
            _say("reached")
            await asyncio.to_thread(sys.stdin.readline)

    async with running(settings, wait) as engine:
        run = await engine.start(QUESTION, QUICK)
        outcome = await engine.wait(run.id)
        _say(f"ended {outcome.run.status} {engine.fault(run.id)}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def started(data: Path, address: str, seconds: float) -> Iterator["subprocess.Popen[str]"]:
    """A process that is in the middle of a run."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", WORKER, str(data), address, str(seconds)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdin, process.stdout, process.stderr:
        try:
            assert process.stdout.readline() == "reached\n", process.stderr.read()
            yield process
        finally:
            process.kill()
            process.wait()


async def taken_up(engine: Engine) -> Run:
    """The run that was left, as soon as it may be taken up."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for run in await engine.resume_abandoned():
                return run
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_what_a_process_was_at_that_is_stopped_is_finished_by_another_and_changed_by_nobody_afterwards(
    postgres_address: str, tmp_path: Path
) -> None:
    settings = on_postgres(tmp_path, postgres_address, 3.0)
    with started(tmp_path, postgres_address, 3.0) as process:
        process.send_signal(signal.SIGSTOP)
        async with running(settings) as engine:
            run = await taken_up(engine)
            done = await asyncio.wait_for(engine.wait(run.id), PATIENCE)
            before = written(engine, tmp_path)
            process.send_signal(signal.SIGCONT)
            said, complaints = await asyncio.to_thread(process.communicate, "\n" * 100, PATIENCE)

            assert said.splitlines()[-1] == "ended done None", complaints
            assert "another has it" in complaints
            assert written(engine, tmp_path) == before
            assert await engine.archive.problems() == []
            assert done.report is not None
            texts = {card.document: (await engine.document(card.document)).text for card in done.report.sources}
            check_report(done.report, texts)
