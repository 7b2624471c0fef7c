"""The order in which workers take up runs, after one of them has died and after a run was put off."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from openassay.models.event import RunStatus
from openassay.models.thread import Run, Thread
from openassay.storage.locks import Leases
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads
from openassay.worker.queue import RunQueue, prepare_tables

pytestmark = pytest.mark.requirement("W-16", "F-10")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = 5.0


@pytest.fixture
def queue(postgres_database: PostgresDatabase) -> RunQueue:
    prepare_tables(postgres_database)
    return RunQueue(postgres_database, LEASE)


@pytest.fixture
async def runs(postgres_database: PostgresDatabase) -> list[Run]:
    """Of one person, in this order, none of which has begun."""
    threads = SqlThreads(Rows(postgres_database))
    made = []
    for number in range(4):
        name, when = f"r{number}", NOW + timedelta(seconds=number)
        await threads.create(Thread(id=name, title="A", created=when, updated=when))
        made.append(Run(id=name, thread=name, question="?", status=RunStatus.QUEUED, started=when))
        await threads.begin(made[-1])
    return made


def dies_with(database: PostgresDatabase, run: Run) -> None:
    """A worker has fetched it, and has given no sign since."""
    with database.transaction() as connection:
        connection.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now())")
        connection.execute(
            "UPDATE procrastinate_jobs SET status = 'doing',"
            " worker_id = (SELECT max(id) FROM procrastinate_workers) WHERE queueing_lock = ?",
            (run.id,),
        )
        connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")


async def test_what_a_dead_worker_had_in_hand_comes_first_though_nothing_came_of_it(
    postgres_database: PostgresDatabase, queue: RunQueue, runs: list[Run]
) -> None:
    await queue.add(runs)
    last = runs[-1]
    dies_with(postgres_database, last)

    swept = await queue.sweep()
    assert swept is not None
    assert (swept.stalled, swept.orphaned) == ([last.id], [last.id])
    await queue.add([last], begun=swept.begun)

    assert list((await queue.take_snapshot()).positions) == [last.id, *(run.id for run in runs[:-1])]


async def test_and_so_does_one_whose_thread_was_taken_and_never_given_back(
    postgres_database: PostgresDatabase, queue: RunQueue, runs: list[Run]
) -> None:
    """Its worker died so soon after taking it that the lease outlasts the first sweep."""
    *others, last = runs
    await queue.add(runs)
    with closing(Leases(postgres_database, seconds=600)) as leases:
        leases.acquire(last.thread)
        dies_with(postgres_database, last)
        first = await queue.sweep()
        assert first is not None
        assert (first.stalled, first.orphaned) == ([last.id], [])
        with postgres_database.transaction() as connection:
            connection.execute("UPDATE leases SET until = clock_timestamp() - interval '1 second'")

        second = await queue.sweep()
        assert second is not None
        assert (second.stalled, second.orphaned, second.begun) == ([], [last.id], [last.id])
    await queue.add([last], begun=second.begun)

    assert list((await queue.take_snapshot()).positions) == [last.id, *(run.id for run in others)]


async def test_a_run_that_is_said_to_be_at_work_comes_before_those_that_are_not(
    queue: RunQueue, runs: list[Run]
) -> None:
    at_work = runs[2].model_copy(update={"status": RunStatus.RUNNING})
    await queue.add([runs[0], runs[1], at_work, runs[3]])

    assert (await queue.take_snapshot()).positions[at_work.id] == 1


async def test_what_was_put_off_is_in_line_like_the_others_once_that_is_over(queue: RunQueue, runs: list[Run]) -> None:
    await queue.add(runs[:1], after=0.3)
    assert (await queue.take_snapshot()).positions == {}
    await asyncio.sleep(0.4)
    await queue.add(runs[1:])

    assert list((await queue.take_snapshot()).positions) == [run.id for run in runs]


@pytest.mark.slow
async def test_what_is_put_off_waits_whatever_else_comes(queue: RunQueue, runs: list[Run]) -> None:
    await queue.add(runs[:1], after=60.0)
    await queue.add(runs[1:])
    assert await queue.sweep() is not None

    assert list((await queue.take_snapshot()).positions) == [run.id for run in runs[1:]]
