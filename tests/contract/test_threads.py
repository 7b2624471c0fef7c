"""What every SqlThreads does; above all, that a thread has one active run."""

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from openassay.errors import IntegrityError, NotFoundError, StorageError, ThreadBusyError
from openassay.models.event import RunStatus, Status
from openassay.models.plan import Depth, Mode
from openassay.models.thread import Branch, ResearchOptions, Run, StopRequest, Thread
from openassay.storage.database import RUNS
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.threads import SqlThreads

START = datetime(2026, 1, 1, tzinfo=UTC)
ACTIVE = [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING]
ENDED = [RunStatus.CANCELLED, RunStatus.DONE, RunStatus.FAILED]


def clock() -> Callable[[], datetime]:
    """An hour passes each time somebody looks."""
    hours = itertools.count(1)
    return lambda: START + timedelta(hours=next(hours))


@pytest.fixture
def store(rows: Rows) -> SqlThreads:
    return SqlThreads(rows, now=clock())


def thread(id: str = "t", *, minutes: int = 0) -> Thread:
    moment = START + timedelta(minutes=minutes)
    return Thread(id=id, title="Kilns?", created=moment, updated=moment)


def run(id: str = "r", of: str = "t", *, status: RunStatus = RunStatus.QUEUED, minutes: int = 0) -> Run:
    return Run(id=id, thread=of, question="How hot?", status=status, started=START + timedelta(minutes=minutes))


async def test_a_thread_comes_back_as_it_was(store: SqlThreads) -> None:
    elsewhere = START.astimezone(timezone(timedelta(hours=-7)))
    kept = Thread(id="t", title="\N{FIRE} 'quoted' \x00", created=elsewhere, updated=elsewhere, mode=Mode.PLAN)
    await store.create(kept)
    assert await store.get("t") == kept


async def test_a_run_comes_back_as_it_was(store: SqlThreads) -> None:
    await store.create(thread())
    kept = Run(
        id="r",
        thread="t",
        question="How hot?\n\u202ehot",
        status=RunStatus.RUNNING,
        stage=Status.PLANNING,
        started=START,
        settings="abc",
        options=ResearchOptions(depth=Depth.QUICK, docs=("a", "b"), usd=0.5),
    )
    await store.begin(kept)
    assert await store.run("r") == kept


async def test_the_most_recently_used_thread_is_first(store: SqlThreads) -> None:
    for minutes, id in enumerate("abc"):
        await store.create(thread(id, minutes=minutes))
    assert [found.id for found in await store.list_recent(limit=10)] == ["c", "b", "a"]
    await store.begin(run(of="a"))
    assert [found.id for found in await store.list_recent(limit=2)] == ["a", "c"]
    assert await store.list_recent(limit=0) == []
    assert await store.list_recent(limit=-1) == []


async def test_runs_are_listed_in_the_order_they_began(store: SqlThreads) -> None:
    await store.create(thread())
    await store.create(thread("other"))
    await store.begin(run("z", status=RunStatus.DONE, minutes=0))
    await store.begin(run("m", status=RunStatus.DONE, minutes=1))
    await store.begin(run("a", status=RunStatus.DONE, minutes=1))
    assert [found.id for found in await store.runs("t")] == ["z", "m", "a"]
    assert await store.runs("other") == []


async def test_what_is_not_there_is_not_found(store: SqlThreads) -> None:
    missing = [
        store.get("x"),
        store.delete("x"),
        store.run("x"),
        store.runs("x"),
        store.begin(run(of="x")),
        store.update("x", stage=Status.WRITING),
        store.set_mode("x", Mode.PLAN),
        store.set_options("x", ResearchOptions()),
    ]
    for call in missing:
        with pytest.raises(NotFoundError) as caught:
            await call
        assert caught.value.help


async def test_an_id_is_used_once(store: SqlThreads) -> None:
    await store.create(thread())
    with pytest.raises(StorageError):
        await store.create(thread())
    await store.begin(run(status=RunStatus.DONE))
    with pytest.raises(StorageError):
        await store.begin(run(status=RunStatus.DONE))


@pytest.mark.parametrize("status", ACTIVE)
async def test_an_active_run_keeps_others_out(store: SqlThreads, status: RunStatus) -> None:
    await store.create(thread())
    await store.create(thread("other"))
    await store.begin(run("first", status=status))
    with pytest.raises(ThreadBusyError) as caught:
        await store.begin(run("second"))
    assert caught.value.help
    assert [found.id for found in await store.runs("t")] == ["first"]
    await store.begin(run("elsewhere", of="other"))


@pytest.mark.slow
@pytest.mark.parametrize("status", ENDED)
async def test_an_ended_run_lets_the_next_begin(store: SqlThreads, status: RunStatus) -> None:
    await store.create(thread())
    await store.begin(run("first"))
    await store.update("first", status=status)
    await store.begin(run("second"))
    with pytest.raises(ThreadBusyError):
        await store.update("first", status=RunStatus.RUNNING)
    assert (await store.run("first")).status is status


async def test_an_update_changes_what_it_names(store: SqlThreads) -> None:
    await store.create(thread())
    await store.begin(run())
    await store.update("r", stage=Status.SEARCHING)
    await store.update("r", status=RunStatus.WAITING)
    await store.update("r", error="slow")
    found = await store.run("r")
    assert (found.status, found.stage, found.error) == (RunStatus.WAITING, Status.SEARCHING, "slow")
    assert found.finished is None


@pytest.mark.slow
@pytest.mark.parametrize("status", ENDED)
async def test_the_end_is_dated_once(store: SqlThreads, status: RunStatus) -> None:
    await store.create(thread())
    await store.begin(run())
    await store.update("r", status=status, error="why")
    finished = (await store.run("r")).finished
    assert finished is not None
    assert finished > START
    await store.update("r", status=status)
    assert (await store.run("r")).finished == finished


async def test_a_run_that_goes_on_has_not_ended(store: SqlThreads) -> None:
    await store.create(thread())
    await store.begin(run())
    await store.update("r", status=RunStatus.FAILED, error="no power")
    await store.update("r", status=RunStatus.RUNNING)
    found = await store.run("r")
    assert (found.finished, found.error) == (None, None)


async def test_every_update_touches_the_thread(store: SqlThreads) -> None:
    await store.create(thread())
    seen = [(await store.get("t")).updated]
    await store.begin(run())
    seen.append((await store.get("t")).updated)
    await store.update("r", stage=Status.WRITING)
    seen.append((await store.get("t")).updated)
    assert seen == sorted(set(seen))
    assert (await store.get("t")).created == START


@pytest.mark.requirement("W-01")
async def test_a_mode_is_said_for_one_thread(store: SqlThreads) -> None:
    for minutes, id in enumerate("ab"):
        await store.create(thread(id, minutes=minutes))
    assert (await store.get("a")).mode is None
    await store.set_mode("a", Mode.PLAN)
    assert [(found.id, found.mode) for found in await store.list_recent(limit=2)] == [("a", Mode.PLAN), ("b", None)]
    await store.set_mode("a", Mode.AUTO)
    assert (await store.get("a")).mode is Mode.AUTO


async def test_options_are_replaced_and_nothing_else(store: SqlThreads) -> None:
    await store.create(thread())
    await store.begin(run())
    await store.update("r", status=RunStatus.WAITING, stage=Status.PLANNING)
    before = await store.run("r")
    options = ResearchOptions(mode=Mode.AUTO, docs=("a", "b"))
    await store.set_options("r", options)
    assert await store.run("r") == before.model_copy(update={"options": options})


async def test_a_run_whose_options_cannot_be_read_is_refused_and_hides_no_other(store: SqlThreads, rows: Rows) -> None:
    for id in ("t", "u"):
        await store.create(thread(id))
        await store.begin(run(f"r{id}", of=id))
    with rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ("rt",), {"options": '{"depth": "endless"}'})
    with pytest.raises(IntegrityError, match="run rt cannot be read"):
        await store.run("rt")
    assert [found.id for found in await store.list_active()] == ["ru"]


async def test_deleting_a_thread_takes_its_runs(store: SqlThreads) -> None:
    await store.create(thread())
    await store.create(thread("other"))
    await store.begin(run())
    await store.begin(run("kept", of="other"))
    await store.delete("t")
    with pytest.raises(NotFoundError):
        await store.run("r")
    assert (await store.run("kept")).thread == "other"
    await store.create(thread())
    assert await store.runs("t") == []


async def test_that_a_run_was_deleted_is_known_until_it_is_restored(store: SqlThreads) -> None:
    """Other machines have a journal of it, and must not take it for one whose database was lost."""
    await store.create(thread("gone"))
    await store.begin(run("old", "gone"))
    await store.create(thread("here"))
    await store.begin(run("new", "here"))
    asked = {"old", "new", "never", *map(str, range(1_200))}
    assert await store.find_deleted_runs(asked) == set()

    await store.delete("gone")

    assert await store.find_deleted_runs(asked) == {"old"}
    assert await store.find_deleted_runs([]) == set()
    await store.create(thread("gone"))
    await store.begin(run("old", "gone"))
    assert await store.find_deleted_runs(asked) == set()
    await store.delete("gone")
    assert await store.find_deleted_runs(asked) == {"old"}


async def test_one_of_many_begins(store: SqlThreads) -> None:
    await store.create(thread())
    tries = await asyncio.gather(*(store.begin(run(f"r{n}")) for n in range(30)), return_exceptions=True)
    assert sum(outcome is None for outcome in tries) == 1
    assert sum(isinstance(outcome, ThreadBusyError) for outcome in tries) == 29


# Branches ---------------------------------------------------------------------------------------------


def branch(id: str = "b", of: str = "t", *, minutes: int = 0, **changes: object) -> Branch:
    return Branch(thread=id, parent=of, checkpoint="c1", changes=changes, created=START + timedelta(minutes=minutes))


@pytest.mark.requirement("W-18")
async def test_a_branch_comes_back_as_it_was(store: SqlThreads) -> None:
    await store.create(thread("b"))
    kept = branch(words=50, edits=[{"op": "remove", "question": "Q1"}], question="\N{FIRE} 'quoted' \x00?")
    await store.add_branch(kept)
    assert await store.branch("b") == kept
    assert await store.branch("t") is None
    assert await store.branch("nosuch") is None


@pytest.mark.requirement("W-18")
async def test_the_branches_of_a_thread_are_listed_oldest_first(store: SqlThreads) -> None:
    for minutes, id in ((3, "a"), (1, "z"), (2, "m")):
        await store.create(thread(id))
        await store.add_branch(branch(id, minutes=minutes))
    await store.create(thread("other"))
    await store.add_branch(branch("other", of="a"))
    assert [found.thread for found in await store.branches("t")] == ["z", "m", "a"]
    assert [found.thread for found in await store.branches("a")] == ["other"]
    assert await store.branches("other") == []


@pytest.mark.requirement("W-18")
async def test_a_branch_is_of_a_thread_and_goes_with_it(store: SqlThreads) -> None:
    with pytest.raises(NotFoundError):
        await store.add_branch(branch("nosuch"))
    await store.create(thread("b"))
    await store.add_branch(branch())
    await store.delete("b")
    assert await store.branch("b") is None
    assert await store.branches("t") == []


@pytest.mark.requirement("W-18")
async def test_a_branch_stays_when_its_parent_goes(store: SqlThreads) -> None:
    await store.create(thread())
    await store.create(thread("b"))
    await store.add_branch(branch())
    await store.delete("t")
    assert await store.branch("b") == branch()


@pytest.mark.requirement("W-18")
async def test_a_fork_is_made_as_a_whole(store: SqlThreads) -> None:
    copied: list[str] = []
    await store.create(thread())
    await store.create_with_run(thread("b"), run("r", of="b"), branch(), lambda: copied.append("b"))
    assert copied == ["b"]
    assert (await store.get("b")).title == "Kilns?"
    assert [found.id for found in await store.runs("b")] == ["r"]
    assert await store.branches("t") == [branch()]


@pytest.mark.requirement("W-18")
async def test_a_fork_that_fails_leaves_nothing(store: SqlThreads) -> None:
    def full() -> None:
        raise StorageError("the disk is full")

    await store.create(thread())
    with pytest.raises(StorageError, match="the disk is full"):
        await store.create_with_run(thread("b"), run("r", of="b"), branch(), full)
    assert [found.id for found in await store.list_recent(limit=9)] == ["t"]
    assert await store.branches("t") == []
    with pytest.raises(NotFoundError):
        await store.run("r")


# Titles, stops ----------------------------------------------------------------------------------------


@pytest.mark.requirement("F-10")
async def test_a_thread_is_renamed_and_touched(store: SqlThreads) -> None:
    await store.create(thread())
    await store.rename("t", "Ovens?")
    found = await store.get("t")
    assert (found.title, found.created) == ("Ovens?", START)
    assert found.updated > START
    with pytest.raises(NotFoundError):
        await store.rename("nosuch", "Ovens?")


@pytest.mark.requirement("F-10")
async def test_active_runs_are_those_that_have_not_ended(store: SqlThreads) -> None:
    for minutes, status in enumerate((*ENDED, *reversed(ACTIVE))):
        await store.create(thread(status.value))
        await store.begin(run(status.value, of=status.value, status=status, minutes=10 - minutes))
    assert [found.id for found in await store.list_active()] == ["queued", "running", "waiting"]
    assert [found.id for found in await store.list_active(RunStatus.WAITING, RunStatus.QUEUED)] == ["queued", "waiting"]


@pytest.mark.requirement("F-10")
async def test_a_run_is_asked_to_stop_until_it_does(store: SqlThreads) -> None:
    await store.create(thread())
    await store.begin(run(status=RunStatus.RUNNING))
    assert await store.get_stop_request("r") is StopRequest.NO
    await store.request_stop("r", StopRequest.DRAIN)
    await store.update("r", stage=Status.WRITING)
    assert await store.get_stop_request("r") is StopRequest.DRAIN
    await store.request_stop("r", StopRequest.CANCEL)
    assert await store.get_stop_request("r") is StopRequest.CANCEL
    await store.update("r", status=RunStatus.CANCELLED)
    assert await store.get_stop_request("r") is StopRequest.NO
    for call in (store.get_stop_request("nosuch"), store.request_stop("nosuch", StopRequest.DRAIN)):
        with pytest.raises(NotFoundError):
            await call


@pytest.mark.requirement("F-10")
async def test_a_run_that_goes_on_is_asked_no_more(store: SqlThreads) -> None:
    await store.create(thread())
    await store.begin(run(status=RunStatus.WAITING))
    await store.request_stop("r", StopRequest.DRAIN)
    await store.update("r", status=RunStatus.RUNNING)
    assert await store.get_stop_request("r") is StopRequest.NO


@pytest.mark.requirement("F-10")
@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING])
async def test_a_run_that_is_asked_to_stop_while_a_process_begins_with_it_is_still_asked(
    store: SqlThreads, status: RunStatus
) -> None:
    await store.create(thread())
    await store.begin(run(status=status))
    await store.request_stop("r", StopRequest.CANCEL)
    await store.update("r", status=RunStatus.RUNNING)
    assert await store.get_stop_request("r") is StopRequest.CANCEL
    await store.update("r", status=RunStatus.QUEUED)
    assert await store.get_stop_request("r") is StopRequest.NO


# SQLite -----------------------------------------------------------------------------------------------

BEGIN = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from openassay.errors import ThreadBusyError
from openassay.models.thread import Run
from openassay.storage.database import RUNS
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.threads import SqlThreads

with SqliteDatabase(Path(sys.argv[1])) as database:
    print("ready", flush=True)
    sys.stdin.readline()
    for thread in range(20):
        run = Run(id=f"{sys.argv[2]}-{thread}", thread=str(thread), question="?", started=datetime.now(UTC))
        try:
            asyncio.run(SqlThreads(Rows(database)).begin(run))
        except ThreadBusyError:
            continue
        print(thread, flush=True)
"""


@pytest.mark.slow
async def test_one_of_many_processes_begins(sqlite_database: SqliteDatabase) -> None:
    store = SqlThreads(Rows(sqlite_database))
    for number in range(20):
        await store.create(thread(str(number)))
    won = _winners(BEGIN, sqlite_database.path)
    assert sorted(won, key=int) == [str(number) for number in range(20)]
    assert [len(await store.runs(str(number))) for number in range(20)] == [1] * 20


def _winners(script: str, path: Path) -> list[str]:
    """What four processes print that were let go at the same moment."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", script, path, str(number)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    won = [line for child in children for line in child.communicate()[0].split()]
    assert [child.returncode for child in children] == [0] * 4
    return won


async def test_a_time_without_zone_is_refused(rows: Rows) -> None:
    naive = thread().model_copy(update={"updated": datetime(2026, 1, 1)})
    with pytest.raises(StorageError, match="time zone"):
        await SqlThreads(rows).create(naive)


async def test_a_lone_surrogate_is_our_error(rows: Rows) -> None:
    with pytest.raises(StorageError, match="surrogate"):
        await SqlThreads(rows).create(thread().model_copy(update={"title": "\ud800"}))
