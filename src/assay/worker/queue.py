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
import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from assay.model.event import RunStatus, Status
from assay.model.thread import Run
from assay.storage.database import Connection, Database

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
_LINE = """
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


class Seen(NamedTuple):
    """The queue at one moment. `places` are those of runs that wait, from 1."""

    places: dict[str, int] = {}
    working: int = 0
    workers: int = 0


class Swept(NamedTuple):
    stalled: list[str]  # runs whose worker has given no sign for too long
    left: list[str]  # runs for which nobody has knocked
    begun: list[str]  # those of both that a worker had in hand: it was given the job, or has not given the thread back


class Queue:
    """`lease`: seconds for which a worker that gives no sign is taken for alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self.lease = lease
        self._database = database

    async def add(self, runs: Sequence[Run], *, after: float = 0.0, begun: Collection[str] = ()) -> None:
        """Knock for runs, now or so many seconds from now. One that waits already keeps its place; one that was to wait
        for some time does so no more. `begun` are those that a worker had in hand, however little came of it."""
        if runs:
            await asyncio.to_thread(self._add, runs, after, begun)

    async def look(self) -> Seen:
        return await asyncio.to_thread(self._look)

    async def sweep(self, pause: float = 0.0) -> Swept | None:
        """See to what the dead have left. One worker at a time does; None: another one does just now, or has done so
        within the `pause`."""
        return await asyncio.to_thread(self._sweep, pause)

    def _add(self, runs: Sequence[Run], after: float, begun: Collection[str]) -> None:
        new = [_job(run, run.id in begun or run.status is RunStatus.RUNNING) for run in runs]
        with self._database.transaction() as connection:
            _lock(connection, _ORDERING)
            connection.execute(_ADD, {"runs": json.dumps(new), "after": after})
            connection.execute(_ORDER)

    def _look(self) -> Seen:
        with self._database.connection() as connection:
            line = connection.execute(_LINE).fetchall()
            working = connection.execute(_WORKING).fetchone()["runs"]
            workers = connection.execute(_WORKERS, {"seconds": self.lease}).fetchone()["workers"]
        return Seen({row["run"]: place for place, row in enumerate(line, 1)}, working, workers)

    def _sweep(self, pause: float) -> Swept | None:
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
        return Swept(dropped, [row["id"] for row in left], [*dropped, *(row["id"] for row in left if row["begun"])])


def _lock(connection: Connection, number: int) -> None:
    """Whoever changes many jobs does so alone: two at once would wait for each other's."""
    connection.execute("SELECT pg_advisory_xact_lock(?)", (number,))


def _job(run: Run, begun: bool) -> dict[str, object]:
    """Those that have begun go on first: they have had their turn, and perhaps somebody has just answered."""
    rank = 1 if begun or run.stage is not Status.PENDING else -1 if run.can_wait else 0
    return {"run": run.id, "thread": run.thread, "person": run.user, "rank": rank, "begun": begun}
