"""The queue in the database: which runs wait for a worker, in which order, and which workers live.

Its tables are Procrastinate's. New runs wait in `runs`; those that a worker had when it died, in `begun`: a worker
takes some of them although it is full, so that they need not wait for others to end. `queueing_lock` of a job is its
run, and `lock` its thread. The job with the highest priority comes next:

    rank * 1,000,000,000 - 1,000 * (active runs of the person + place among their waiting runs) - turn

`turn` orders people who have as many active runs: whoever had their last turn longest ago comes first. So people take
turns, as in server/dispatch.py, and 200 runs of one person do not hold up one run of another. A run that is claimed
changes nothing of this for the others; when one ends, the next sweep updates the order.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Collection, Sequence
from importlib.resources import files
from importlib.util import find_spec
from typing import NamedTuple

from openassay.engine.engine import Engine
from openassay.engine.thread_lock import shield_until_done
from openassay.errors import ConfigurationError, NotFoundError, OpenAssayError, install_help
from openassay.models.event import AT_WORK, RunStatus, Status
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.storage.database import Database, run_in_thread
from openassay.storage.shared_servers import Outage
from openassay.telemetry.metrics import count_live_workers, has_table

RUNS, BEGUN, CHORES = "runs", "begun", "chores"  # the names of the queues
WORK = "work"  # the task of a job in the first two
MAX_REQUEUED = 500  # runs at one time
_ORDERING, _SWEEPING = 7_301_241, 7_301_242  # advisory locks

_ADD = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
SELECT CASE WHEN new.begun THEN 'begun' ELSE 'runs' END, 'work', new.rank * 1000000000 - 400000000, new.thread, new.run,
    jsonb_build_object('run', new.run, 'thread', new.thread, 'user', new.person),
    now() + CAST(NULLIF(:after, 0) AS double precision) * interval '1 second'
FROM json_to_recordset(CAST(:runs AS json)) AS new (run text, thread text, person text, rank integer, begun boolean)
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO UPDATE SET scheduled_at = NULL
WHERE procrastinate_jobs.scheduled_at IS NOT NULL AND excluded.scheduled_at IS NULL
"""
# A job that was scheduled for later waits like the others once its time has come. As long as it has a time of its own,
# each change would be recorded as another event of it.
_ORDER = """
WITH jobs AS (
    SELECT id, status, args ->> 'user' AS person,
        LEAST(GREATEST(CAST(round(priority / 1000000000.0) AS integer), -1), 1) AS rank
    FROM procrastinate_jobs WHERE queue_name IN ('runs', 'begun') AND status IN ('todo', 'doing')
), busy AS (
    SELECT person, count(*) AS runs FROM jobs WHERE status = 'doing' GROUP BY person
), served AS (
    SELECT jobs.args ->> 'user' AS person, max(events.id) AS last
    FROM procrastinate_events AS events JOIN procrastinate_jobs AS jobs ON jobs.id = events.job_id
    WHERE events.type = 'started' AND jobs.queue_name IN ('runs', 'begun') GROUP BY 1
), waiting AS (
    SELECT id, person, rank, row_number() OVER (PARTITION BY rank, person ORDER BY id) AS place
    FROM jobs WHERE status = 'todo'
), turns AS (
    SELECT waiting.id, row_number() OVER (PARTITION BY rank ORDER BY coalesce(served.last, 0), waiting.id) - 1 AS turn
    FROM waiting LEFT JOIN served USING (person) WHERE place = 1
), ordered AS (
    SELECT waiting.id, CAST(
        rank * 1000000000 - 1000 * LEAST(coalesce(busy.runs, 0) + place, 400000) - LEAST(coalesce(turn, 999), 999)
        AS integer) AS priority
    FROM waiting LEFT JOIN busy USING (person) LEFT JOIN turns ON turns.id = waiting.id
)
UPDATE procrastinate_jobs AS jobs SET priority = ordered.priority, scheduled_at = NULL FROM ordered
WHERE jobs.id = ordered.id AND jobs.status = 'todo' AND coalesce(jobs.scheduled_at <= now(), true)
    AND (jobs.priority <> ordered.priority OR jobs.scheduled_at IS NOT NULL)
"""
_QUEUE_ORDER = """
SELECT queueing_lock AS run FROM procrastinate_jobs
WHERE queue_name IN ('runs', 'begun') AND status = 'todo' AND coalesce(scheduled_at <= now(), true)
ORDER BY priority DESC, id
"""
_WORKING = """
SELECT count(*) AS runs FROM procrastinate_jobs WHERE queue_name IN ('runs', 'begun') AND status = 'doing'
"""
_ALIVE = "last_heartbeat > now() - CAST(:seconds AS double precision) * interval '1 second'"
_LOCK = "SELECT pg_advisory_xact_lock(?)"  # whoever changes many jobs does so alone: two would wait for each other's
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(?) AS mine"
# A clock that was put back is no reason to wait.
_IS_TIME = """
UPDATE queue_sweeps SET at = clock_timestamp() WHERE at NOT BETWEEN
    clock_timestamp() - CAST(:pause AS double precision) * interval '1 second' AND clock_timestamp()
"""
# Such a job is failed for good, and its run gets another: the worker may only have been asleep, and would finish it.
_STALLED = f"""
UPDATE procrastinate_jobs AS jobs SET status = 'failed' WHERE status = 'doing' AND NOT EXISTS (
    SELECT 1 FROM procrastinate_workers WHERE procrastinate_workers.id = jobs.worker_id AND {_ALIVE}
) RETURNING queueing_lock AS run
"""  # noqa: S608
_GONE = f"DELETE FROM procrastinate_workers WHERE NOT {_ALIVE}"  # noqa: S608
_ENDED = """
UPDATE procrastinate_jobs AS jobs SET status = 'cancelled' FROM runs
WHERE jobs.queue_name IN ('runs', 'begun') AND jobs.status = 'todo' AND runs.id = jobs.queueing_lock
    AND runs.status NOT IN ('queued', 'running')
"""
# NOT IN is looked up in a table of hashes; NOT EXISTS compared each with each before the server had counted them.
_ORPHANED = """
SELECT id, thread IN (SELECT thread FROM leases) AS begun FROM runs WHERE status IN ('queued', 'running')
    AND id NOT IN (SELECT coalesce(queueing_lock, '') FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
    AND thread NOT IN (SELECT thread FROM leases WHERE until > clock_timestamp())
ORDER BY started, rowid LIMIT :most
"""


class QueueSnapshot(NamedTuple):
    """The queue at one moment. `positions` are those of waiting runs, from 1."""

    positions: dict[str, int] = {}
    running: int = 0
    workers: int = 0


class SweepResult(NamedTuple):
    stalled: list[str]  # runs whose worker has not responded for too long
    orphaned: list[str]  # active runs that have no job
    begun: list[str]  # those of both that a worker had started: it had the job, or still has the lease of the thread


class RunQueue:
    """`lease`: seconds for which a worker that does not respond is taken for alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self.lease = lease
        self._database = database

    @run_in_thread
    def add(self, runs: Sequence[Run], *, after: float = 0.0, begun: Collection[str] = ()) -> None:
        """Add jobs for runs, now or `after` so many seconds. A run that waits already keeps its place; one that was
        scheduled for later becomes due. `begun` are those that a worker had started."""
        jobs = []
        for run in runs:
            # Runs that have begun are resumed first: they have had their turn, and perhaps a person has just answered.
            has_begun = run.id in begun or run.status is RunStatus.RUNNING
            rank = 1 if has_begun or run.stage is not Status.PENDING else -1 if run.options.priority == "low" else 0
            jobs.append(
                {"run": run.id, "thread": run.thread, "person": run.options.user, "rank": rank, "begun": has_begun}
            )
        if jobs:
            with self._database.transaction() as connection:
                connection.execute(_LOCK, (_ORDERING,))
                connection.execute(_ADD, {"runs": json.dumps(jobs), "after": after})
                connection.execute(_ORDER)

    @run_in_thread
    def take_snapshot(self) -> QueueSnapshot:
        with self._database.connection() as connection:
            waiting = connection.execute(_QUEUE_ORDER).fetchall()
            running = connection.execute(_WORKING).fetchone()["runs"]
            workers = count_live_workers(connection, self.lease)
        return QueueSnapshot({row["run"]: position for position, row in enumerate(waiting, 1)}, running, workers)

    @run_in_thread
    def sweep(self, pause: float = 0.0) -> SweepResult | None:
        """Fail the jobs of dead workers and find orphaned runs. One worker at a time does this; return None if another
        does just now, or has done so within the `pause`."""
        with self._database.transaction() as connection:
            if not connection.execute(_TRY_LOCK, (_SWEEPING,)).fetchone()["mine"]:
                return None
            if not connection.execute(_IS_TIME, {"pause": pause}).rowcount:
                return None
            connection.execute(_LOCK, (_ORDERING,))
            stalled = connection.execute(_STALLED, {"seconds": self.lease}).fetchall()
            connection.execute(_GONE, {"seconds": self.lease})
            connection.execute(_ENDED)
            orphaned = connection.execute(_ORPHANED, {"most": MAX_REQUEUED}).fetchall()
            connection.execute(_ORDER)
        runs = [row["run"] for row in stalled if row["run"]]
        begun = [*runs, *(row["id"] for row in orphaned if row["begun"])]
        return SweepResult(runs, [row["id"] for row in orphaned], begun)


# The server's side --------------------------------------------------------------------------------------------

_log = logging.getLogger("openassay")
POLL_SECONDS = 2.0  # after which the queue is read again by itself
STALL_SECONDS = 60.0  # after which a loop that has not come round is not taken for alive
LOG_PAUSE = 60.0  # seconds between two lines in the log about one outage


class QueueDispatcher:
    """A RunDispatcher whose runs are executed by workers. A job that is lost with this process is replaced by the
    workers, which look for runs without one."""

    def __init__(self, engine: Engine, queue: RunQueue) -> None:
        self._engine = engine
        self._queue = queue
        self._new: dict[str, None] = {}  # in order
        self._snapshot = QueueSnapshot()
        self._wake = asyncio.Event()
        self._last_step: float | None = None
        self._outage = Outage(_log.warning, rest=LOG_PAUSE)

    def announce(self, run: str) -> None:
        self._new[run] = None
        self._wake.set()

    def position(self, run: str) -> int | None:
        return self._snapshot.positions.get(run)

    @property
    def queue_length(self) -> int:
        return len(self._snapshot.positions)

    @property
    def running_count(self) -> int:
        return self._snapshot.running

    def is_alive(self) -> bool:
        """Return whether this loop runs and a worker has responded lately, as far as is known."""
        is_running = self._last_step is not None and _now() - self._last_step < STALL_SECONDS
        return is_running and self._snapshot.workers > 0

    async def run(self) -> None:
        """Add announced runs to the queue until cancelled."""
        try:
            while True:
                self._last_step = _now()
                self._wake.clear()
                await shield_until_done(self._step())  # a thread that still asks must not find the database closed
                with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()
        finally:
            self._last_step = None

    async def _step(self) -> None:
        """Add everything that came since the last step together: 300 at once are put in order once."""
        new, self._new = self._new, {}
        try:
            runs = []
            for id in new:
                with contextlib.suppress(NotFoundError):  # deleted meanwhile
                    runs.append(await self._engine.threads.run(id))
            await self._queue.add([run for run in runs if run.status in AT_WORK])
            self._snapshot = await self._queue.take_snapshot()
            self._outage.end()
        except OpenAssayError as error:  # a database that is away now may be back at the next step
            self._new = new | self._new
            self._snapshot = self._snapshot._replace(workers=0)
            self._outage.begin(f"runs are not started, since the queue cannot be reached: {error.message}")
        except Exception:  # noqa: BLE001  # the last line of defence: without this loop nothing is started soon
            _log.exception("the queue could not be read")


def _now() -> float:
    return asyncio.get_running_loop().time()


# The tables, which are Procrastinate's, with two additions ------------------------------------------------------

_PREPARING = 7_301_240  # the advisory lock of the process that does this
_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS queue_migrations (name TEXT PRIMARY KEY, applied TIMESTAMPTZ NOT NULL DEFAULT now())
"""
_RECORD_STEP = "INSERT INTO queue_migrations (name) VALUES (?)"
# Before the server has counted the rows of a queue of 2,000, a job was found in 400 ms without this, in 10 ms with it.
_BY_LOCK = "CREATE INDEX queue_by_lock ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')"
# When the last sweep was: twenty workers sweep no more often than one.
_SWEEPS = """
CREATE TABLE queue_sweeps (at TIMESTAMPTZ NOT NULL);
INSERT INTO queue_sweeps VALUES (to_timestamp(0))
"""


def prepare_tables(database: Database) -> None:
    """Create or upgrade the tables. Doing it twice, or from two processes at once, changes nothing more."""
    require_procrastinate()
    folder = files("procrastinate") / "sql"
    migrations = sorted(item.name for item in (folder / "migrations").iterdir() if item.name.endswith(".sql"))
    theirs = {
        name.removesuffix(".sql"): (folder / "migrations" / name).read_text(encoding="utf-8") for name in migrations
    }
    steps = {**theirs, "openassay_01_by_lock": _BY_LOCK, "openassay_02_sweeps": _SWEEPS}
    has_more = True
    while has_more:  # each step in a transaction of its own
        with database.transaction() as connection:
            connection.execute(_LOCK, (_PREPARING,))
            if not has_table(connection, "queue_migrations"):  # all of Procrastinate's steps are applied at once
                if has_table(connection, "procrastinate_jobs"):
                    raise ConfigurationError(
                        f"{database.name} holds a queue of another program", help="Name a database of OpenAssay's own."
                    )
                connection.execute((folder / "schema.sql").read_text(encoding="utf-8"))
                connection.execute(_MIGRATIONS)
                for name in theirs:
                    connection.execute(_RECORD_STEP, (name,))
            applied = {row["name"] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
            if unknown := applied - {*steps}:
                raise ConfigurationError(
                    f"the queue of {database.name} was prepared by a newer OpenAssay ({min(unknown)})",
                    help="Upgrade this process, or name another database.",
                )
            missing = [name for name in steps if name not in applied]
            if missing:
                connection.execute(steps[missing[0]])
                connection.execute(_RECORD_STEP, (missing[0],))
            has_more = len(missing) > 1


def check_fleet(settings: Settings) -> None:
    """Raise ConfigurationError where these settings do not allow for workers."""
    if settings.persistence.backend != "postgres":
        raise ConfigurationError(
            f"workers need a PostgreSQL database, and persistence.backend is {settings.persistence.backend}",
            help="Set persistence.backend to postgres and DATABASE_URL to its address (docs/howto/fleet.md).",
        )
    require_procrastinate()


def require_procrastinate() -> None:
    if find_spec("procrastinate") is None:
        raise ConfigurationError("workers need the extra `fleet`", help=install_help("fleet"))
