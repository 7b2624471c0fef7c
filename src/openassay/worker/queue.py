"""The queue in the database: which runs wait for a worker, in which order, and which workers live.

Its tables are Procrastinate's. Runs that no worker has had wait in `runs`; those that one had when it died, in `begun`:
a worker takes some of them up though it has no place free, so that they need not wait for others to end. Of a job,
`queueing_lock` is the run and `lock` its thread. What comes next is the job with the highest priority, which says how
matters stand with the person:

    rank * 1,000,000,000 - 1,000 * (runs of theirs at work + place among theirs that wait) - turn

`turn` sorts those who are next with as many at work: whoever had their last turn longest ago comes first; by the time
that a second run of theirs is next, they have just had one. So people take turns as in server/line.py, and one who has
put in 200 holds up nobody who puts in one. A run that is taken up changes nothing of this for the others; one that ends
does, and the next sweep sees to it.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Collection, Iterator, Sequence
from importlib.resources import files
from importlib.util import find_spec
from typing import NamedTuple

from openassay.engine.engine import Engine
from openassay.engine.lock import shield_until_done
from openassay.errors import ConfigurationError, NotFoundError, OpenAssayError, install_help
from openassay.models.event import AT_WORK, RunStatus, Status
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.storage.connections import Outage
from openassay.storage.database import Connection, Database
from openassay.storage.postgres import PostgresDatabase

RUNS, BEGUN, CHORES = "runs", "begun", "chores"  # the names of the queues
WORK = "work"  # the task of a job in the first two
MOST = 500  # runs that are put in line again at one time
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
# A job that was to wait for some time is in line like the others once that is over. As long as it has a time of its
# own, each change would be noted as another event of it.
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
_WORKERS = f"SELECT count(*) AS workers FROM procrastinate_workers WHERE {_ALIVE}"  # noqa: S608
_TRY = "SELECT pg_try_advisory_xact_lock(?) AS mine"
# A clock that was put back is no reason to wait.
_IS_TIME = """
UPDATE queue_sweeps SET at = clock_timestamp() WHERE at NOT BETWEEN
    clock_timestamp() - CAST(:pause AS double precision) * interval '1 second' AND clock_timestamp()
"""
# Such a job is ended for good, and its run gets another: the worker may only have been asleep, and would end it.
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
_LEFT = """
SELECT id, thread IN (SELECT thread FROM leases) AS begun FROM runs WHERE status IN ('queued', 'running')
    AND id NOT IN (SELECT coalesce(queueing_lock, '') FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
    AND thread NOT IN (SELECT thread FROM leases WHERE until > clock_timestamp())
ORDER BY started, rowid LIMIT :most
"""


class QueueSnapshot(NamedTuple):
    """The queue at one moment. `places` are those of runs that wait, from 1."""

    places: dict[str, int] = {}
    working: int = 0
    workers: int = 0


class SweepResult(NamedTuple):
    stalled: list[str]  # runs whose worker has given no sign for too long
    left: list[str]  # runs for which nobody has knocked
    begun: list[str]  # those of both that a worker had in hand: it was given the job, or has not given the thread back


class RunQueue:
    """`lease`: seconds for which a worker that gives no sign is taken for alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self.lease = lease
        self._database = database

    async def add(self, runs: Sequence[Run], *, after: float = 0.0, begun: Collection[str] = ()) -> None:
        """Knock for runs, now or so many seconds from now. One that waits already keeps its place; one that was to wait
        for some time does so no more. `begun` are those that a worker had in hand, however little came of it."""
        if runs:
            await asyncio.to_thread(self._add, runs, after, begun)

    async def take_snapshot(self) -> QueueSnapshot:
        return await asyncio.to_thread(self._take_snapshot)

    async def sweep(self, pause: float = 0.0) -> SweepResult | None:
        """See to what the dead have left. One worker at a time does; None: another one does just now, or has done so
        within the `pause`."""
        return await asyncio.to_thread(self._sweep, pause)

    def _add(self, runs: Sequence[Run], after: float, begun: Collection[str]) -> None:
        new = [_to_job(run, run.id in begun or run.status is RunStatus.RUNNING) for run in runs]
        with self._database.transaction() as connection:
            _lock(connection, _ORDERING)
            connection.execute(_ADD, {"runs": json.dumps(new), "after": after})
            connection.execute(_ORDER)

    def _take_snapshot(self) -> QueueSnapshot:
        with self._database.connection() as connection:
            line = connection.execute(_QUEUE_ORDER).fetchall()
            working = connection.execute(_WORKING).fetchone()["runs"]
            workers = connection.execute(_WORKERS, {"seconds": self.lease}).fetchone()["workers"]
        return QueueSnapshot({row["run"]: place for place, row in enumerate(line, 1)}, working, workers)

    def _sweep(self, pause: float) -> SweepResult | None:
        with self._database.transaction() as connection:
            if not connection.execute(_TRY, (_SWEEPING,)).fetchone()["mine"]:
                return None
            if not connection.execute(_IS_TIME, {"pause": pause}).rowcount:
                return None
            _lock(connection, _ORDERING)
            stalled = connection.execute(_STALLED, {"seconds": self.lease}).fetchall()
            connection.execute(_GONE, {"seconds": self.lease})
            connection.execute(_ENDED)
            left = connection.execute(_LEFT, {"most": MOST}).fetchall()
            connection.execute(_ORDER)
        dropped = [row["run"] for row in stalled if row["run"]]
        return SweepResult(
            dropped, [row["id"] for row in left], [*dropped, *(row["id"] for row in left if row["begun"])]
        )


def _lock(connection: Connection, number: int) -> None:
    """Whoever changes many jobs does so alone: two at once would wait for each other's."""
    connection.execute("SELECT pg_advisory_xact_lock(?)", (number,))


def _to_job(run: Run, begun: bool) -> dict[str, object]:
    """Those that have begun go on first: they have had their turn, and perhaps somebody has just answered."""
    rank = 1 if begun or run.stage is not Status.PENDING else -1 if run.is_low_priority else 0
    return {"run": run.id, "thread": run.thread, "person": run.user, "rank": rank, "begun": begun}


# The server's side of the queue: it knocks for runs that were put in line, and knows their places.

_log = logging.getLogger("openassay")
LOOK = 2.0  # seconds after which the queue is looked at again by itself
STALL = 60.0  # seconds after which a loop that has not come round is not taken for alive
QUIET = 60.0


class QueueDispatcher:
    """A ports.Dispatch whose runs are worked on elsewhere. A knock that is lost with this process is made good by the
    workers, who look for runs that nobody has knocked for."""

    def __init__(self, engine: Engine, queue: RunQueue) -> None:
        self._engine = engine
        self._queue = queue
        self._new: dict[str, None] = {}  # in order
        self._seen = QueueSnapshot()
        self._wake = asyncio.Event()
        self._beat: float | None = None
        self._outage = Outage(_log.warning, rest=QUIET)

    def announce(self, run: str) -> None:
        self._new[run] = None
        self._wake.set()

    def position(self, run: str) -> int | None:
        return self._seen.places.get(run)

    @property
    def queue_length(self) -> int:
        return len(self._seen.places)

    @property
    def running_count(self) -> int:
        return self._seen.working

    def is_alive(self) -> bool:
        """Whether a worker has given a sign lately, as far as is known."""
        return self._beat is not None and _now() - self._beat < STALL and self._seen.workers > 0

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                self._beat = _now()
                self._wake.clear()
                await shield_until_done(self._step())  # a thread that still asks must not find the database closed
                with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                    async with asyncio.timeout(LOOK):
                        await self._wake.wait()
        finally:
            self._beat = None

    async def _step(self) -> None:
        """All that came since the last one together: 300 at once are put in order once."""
        new, self._new = self._new, {}
        try:
            await self._queue.add([run for id in new for run in await self._load_active(id)])
            self._seen = await self._queue.take_snapshot()
            self._outage.end()
        except OpenAssayError as error:  # a database that is away now may not be at the next look
            self._new = new | self._new
            self._seen = self._seen._replace(workers=0)
            self._outage.begin(f"runs wait, since the queue cannot be reached: {error.message}")
        except Exception:  # noqa: BLE001  # the last line of defence: without this loop nothing is taken up soon
            _log.exception("the queue could not be looked at")

    async def _load_active(self, id: str) -> list[Run]:
        try:
            run = await self._engine.threads.run(id)
        except NotFoundError:  # deleted meanwhile
            return []
        return [run] if run.status in AT_WORK else []


def _now() -> float:
    return asyncio.get_running_loop().time()


# The tables of the queue, which are Procrastinate's: made beside ours, and brought up to what its package says.

_PREPARING = 7_301_240  # the advisory lock of whoever does this
_NOTES = """
CREATE TABLE IF NOT EXISTS queue_migrations (name TEXT PRIMARY KEY, applied TIMESTAMPTZ NOT NULL DEFAULT now())
"""
_NOTE = "INSERT INTO queue_migrations (name) VALUES (?)"
_IS_THERE = "SELECT to_regclass(?) IS NOT NULL AS there"
# Before the server has counted the rows of a queue of 2,000, a job was found in 400 ms without this, in 10 ms with it.
_BY_LOCK = "CREATE INDEX queue_by_lock ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')"
# When the last sweep was: twenty workers sweep no more often than one.
_SWEEPS = """
CREATE TABLE queue_sweeps (at TIMESTAMPTZ NOT NULL);
INSERT INTO queue_sweeps VALUES (to_timestamp(0))
"""


class _Step(NamedTuple):
    name: str
    sql: str


def prepare_queue(address: str) -> None:
    """In the database at this address. Doing it twice, or from two processes at once, changes nothing more."""
    with PostgresDatabase(address, connections=1) as database:
        prepare_tables(database)


def prepare_tables(database: Database) -> None:
    """As `prepare_queue`, where the database is open already."""
    require_procrastinate()
    while _apply_next_step(database):
        pass


def check_fleet(settings: Settings) -> None:
    """ConfigurationError where these settings do not allow for workers."""
    if settings.persistence.backend != "postgres":
        raise ConfigurationError(
            f"workers need a PostgreSQL database, and persistence.backend is {settings.persistence.backend}",
            help="Set persistence.backend to postgres and DATABASE_URL to its address (docs/howto/fleet.md).",
        )
    require_procrastinate()


def require_procrastinate() -> None:
    if find_spec("procrastinate") is None:
        raise ConfigurationError("workers need the extra `fleet`", help=install_help("fleet"))


def _apply_next_step(database: Database) -> bool:
    """One step, in a transaction of its own: whether there may be another."""
    known = list(_all_steps())
    with database.transaction() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_PREPARING,))
        had = _load_step_names(database, connection)
        if unknown := had - {step.name for step in known}:
            raise ConfigurationError(
                f"the queue of {database.name} was prepared by a newer OpenAssay ({min(unknown)})",
                help="Upgrade this process, or name another database.",
            )
        missing = [step for step in known if step.name not in had]
        if missing:
            connection.execute(missing[0].sql)
            connection.execute(_NOTE, (missing[0].name,))
        return len(missing) > 1


def _load_step_names(database: Database, connection: Connection) -> set[str]:
    """The names of the steps that were done. Where there is no queue yet, all of Procrastinate's are done at once."""
    if not _has_table(connection, "queue_migrations"):
        if _has_table(connection, "procrastinate_jobs"):
            raise ConfigurationError(
                f"{database.name} holds a queue of another program", help="Name a database of OpenAssay's own."
            )
        connection.execute(_read_sql("schema.sql"))
        connection.execute(_NOTES)
        for step in _procrastinate_steps():
            connection.execute(_NOTE, (step.name,))
    return {row["name"] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}


def _has_table(connection: Connection, table: str) -> bool:
    return bool(connection.execute(_IS_THERE, (table,)).fetchone()["there"])


def _all_steps() -> Iterator[_Step]:
    yield from _procrastinate_steps()
    yield _Step("openassay_01_by_lock", _BY_LOCK)
    yield _Step("openassay_02_sweeps", _SWEEPS)


def _procrastinate_steps() -> Iterator[_Step]:
    """Its migrations, in the order of the versions they are named by."""
    folder = files("procrastinate") / "sql" / "migrations"
    for name in sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql")):
        yield _Step(name.removesuffix(".sql"), _read_sql(f"migrations/{name}"))


def _read_sql(name: str) -> str:
    return (files("procrastinate") / "sql" / name).read_text(encoding="utf-8")
