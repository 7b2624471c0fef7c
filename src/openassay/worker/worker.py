"""A worker: executes runs from the queue, several at a time, until it is to stop."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from procrastinate import App, PsycopgConnector
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback
from psycopg import AsyncConnection, Error, sql
from psycopg_pool import AsyncConnectionPool

from openassay.bootstrap import ServerResources, open_server_resources
from openassay.engine.engine import Engine
from openassay.engine.spending import SpendingLimits
from openassay.engine.thread_lock import shield_until_done
from openassay.errors import NotFoundError, OpenAssayError, StorageError
from openassay.models.event import AT_WORK
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.storage.admin import database_address
from openassay.storage.postgres import ATTEMPT_SECONDS, KEEPALIVE, connect_options
from openassay.storage.shared_servers import Outage
from openassay.telemetry.endpoint import open_endpoint
from openassay.worker.attempts import Attempts
from openassay.worker.queue import BEGUN, CHORES, RUNS, WORK, RunQueue, check_fleet, prepare_tables

_log = logging.getLogger("openassay")
CONNECTIONS = 4  # of the queue alone: to find jobs, to finish them, to send heartbeats, to watch deadlines
ORPHAN_FACTOR = 2  # a full worker may take as many runs again of dead workers
POLL_SECONDS = 1.0  # after which the queue is read by itself: nobody is notified when a thread becomes free
HEARTBEATS_PER_LEASE = 3  # two may be missed
CONNECT_SECONDS = 10.0
SPARE_THREADS = 8  # beside two per run: one that waits for a folder that another indexes holds nobody else up
STOP_POLL_SECONDS = 0.05
IDLE_SECONDS = 0.5  # between looks at whether anything is left to do
BUSY_SHARE = 0.25  # of a lease, after which a thread that another process holds is tried again
DAMAGED_SECONDS = 600.0  # after which a run whose rows are damaged is tried again
MAX_PRUNES = 100  # at one time
ENDED_HOURS = 1  # for which ended jobs are kept: who had the last turn is read from them
FAILED_HOURS = 168  # for which failed jobs are kept, to find out why
MAX_PAUSE = 2.0  # seconds between two sweeps
SWEEPS_PER_LEASE = 8  # at the least: a run is rescued soon after it was lost
PAUSE_SHARE = 0.8  # of the pause: a worker that is alone sweeps each time it wakes up
LOG_PAUSE = 60.0  # seconds between two lines in the log about one outage
RETRY_SECONDS = 1.0  # after which a database that was away is asked again
ORPHAN_POLL_SECONDS = 0.5  # after which a full worker looks again for the jobs of dead ones
_DEADLINES = 7_301_243  # the advisory lock of the worker that watches deadlines
_TRY_LOCK = sql.SQL("SELECT pg_try_advisory_xact_lock({})").format(_DEADLINES)
EXPIRE, PRUNE, FORGET = PERIODIC = ("expire", "prune", "forget")  # the names of periodic tasks
CHORE_PRIORITY = 2_000_000_000  # before any run: each takes a moment
TASKS: dict[str, dict[str, type]] = {  # with their arguments
    WORK: {"run": str, "thread": str, "user": str},
    **{name: {"timestamp": int} for name in PERIODIC},
}
# Deleted by another worker that took this one for dead, it comes back under its number.
_BEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE VALUES (%(worker_id)s, now())
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
# Procrastinate would finish a job by its number alone, whoever works on it by now.
_FINISH = """
UPDATE procrastinate_jobs SET status = %(status)s::procrastinate_job_status, attempts = attempts + 1,
    abort_requested = false
WHERE id = %(job_id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id
"""
# The database was lost just when it had handed the job out: nobody works on it, and its worker lives.
_UNKNOWN = """
UPDATE procrastinate_jobs SET status = 'failed'
WHERE status = 'doing' AND worker_id = %(worker_id)s AND NOT id = ANY(%(known)s) RETURNING id
"""


@asynccontextmanager
async def open_worker(settings: Settings, concurrency: int | None = None) -> "AsyncIterator[Worker]":
    """Open a worker; `concurrency`: how many runs it executes at once, if not as the settings say."""
    check_fleet(settings)
    places = concurrency or settings.fleet.concurrency
    executor = ThreadPoolExecutor(SPARE_THREADS + 2 * ORPHAN_FACTOR * places, "openassay")
    asyncio.get_running_loop().set_default_executor(executor)
    async with AsyncExitStack() as stack:
        resources = await stack.enter_async_context(open_server_resources(settings))
        database, engine = resources.rows.database, resources.engine
        await asyncio.to_thread(prepare_tables, database)
        engine.set_cost_limit(SpendingLimits(resources).limit_run)
        endpoint = open_endpoint(engine, resources.folder, database, resources.sources.list_sources())
        metrics_url = await stack.enter_async_context(endpoint)
        address = database_address(settings)

        async def configure(connection: AsyncConnection[Any]) -> None:
            """Keep a worker that is stopped in the middle of something from blocking others longer than a lease."""
            milliseconds = round(settings.fleet.lease_seconds * 1000)
            await connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}".encode())
            await connection.execute(KEEPALIVE)
            await connection.commit()

        connector = PsycopgConnector(
            conninfo=address,
            kwargs=connect_options(address),
            min_size=1,
            max_size=CONNECTIONS,
            timeout=CONNECT_SECONDS,
            configure=configure,
            reconnect_timeout=ATTEMPT_SECONDS,
        )
        app = App(connector=connector)
        try:
            await stack.enter_async_context(app.open_async())
        except Error as error:
            raise StorageError(f"the queue cannot be reached: {error}", retryable=True) from error
        yield Worker(resources, app, connector, places, metrics_url)


class Worker:
    def __init__(
        self,
        resources: ServerResources,
        app: App,
        connector: PsycopgConnector,
        concurrency: int,
        metrics_url: str | None,
    ) -> None:
        self.metrics_url = metrics_url
        self.engine = resources.engine
        self.concurrency = concurrency
        self.interrupted = 0  # runs that were active when it was to stop
        self.database = resources.rows.database.name
        self._fleet = resources.engine.settings.fleet
        self._queue = RunQueue(resources.rows.database, self._fleet.lease_seconds)
        self._runner = JobRunner(self.engine, self._queue)
        self._sweeper = Sweeper(self.engine, self._queue, connector.pool)
        self._jobs = QueueJobManager(connector, concurrency)
        self._app = app
        app.job_manager = self._jobs
        app.task(name=WORK, queue=RUNS)(self._runner.run)
        schedule_chores(app, resources)

    async def run(self, stopping: asyncio.Event, *, until_idle: bool = False) -> None:
        """Execute runs until `stopping` is set or, with `until_idle`, until none is left. Active runs finish their
        current step and are requeued for another worker."""
        await self._sweeper.sweep()
        fetching = self._app.run_worker_async(
            queues=[RUNS, BEGUN, CHORES],
            concurrency=ORPHAN_FACTOR * self.concurrency,
            fetch_job_polling_interval=POLL_SECONDS,
            install_signal_handlers=False,
            update_heartbeat_interval=self._fleet.lease_seconds / HEARTBEATS_PER_LEASE,
            stalled_worker_timeout=self._fleet.lease_seconds,
        )
        logger = logging.getLogger("procrastinate.worker")
        logger.addFilter(_is_news)
        tasks = [asyncio.create_task(fetching), asyncio.create_task(self._sweeper.run())]
        try:
            end = asyncio.create_task(self._wait_for_end(stopping, until_idle))
            await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
            end.cancel()
            await asyncio.wait([end])
            # It sends heartbeats until the last run has stopped, so that nobody takes them from it meanwhile.
            self._jobs.closed = self._runner.stopping = True
            self.interrupted = len(self.engine.list_running())
            await self.engine.drain(seconds=self._fleet.drain_seconds)
            while self._runner.active:  # one that was being claimed just now is drained as soon as it is
                await asyncio.sleep(STOP_POLL_SECONDS)
                await self.engine.drain(seconds=self._fleet.drain_seconds)
            for task in tasks:
                if task.done():  # they end by being cancelled, and in no other way
                    error = OpenAssayError("the worker has stopped by itself", help="Its log says why.")
                    raise error from task.exception()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            logger.removeFilter(_is_news)

    async def _wait_for_end(self, stopping: asyncio.Event, until_idle: bool) -> None:
        """Return when it is to stop, or when no run is waiting or active, here or at another worker."""
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS if until_idle else None):
                    await stopping.wait()
            with contextlib.suppress(StorageError):  # the sweep logs it
                snapshot = await shield_until_done(self._queue.take_snapshot()) if until_idle else None
                if snapshot and not snapshot.positions and not snapshot.running:
                    return


class QueueJobManager(JobManager):
    """Procrastinate's job manager with four differences: it survives a database that is away for a while, it finishes
    no job that was taken from this worker meanwhile, it fails jobs that no worker understands, and a worker that is
    full still takes the jobs of workers that have died.

    `places`: how many runs it starts at once."""

    def __init__(self, connector: BaseConnector, places: int) -> None:
        super().__init__(connector)
        self.closed = False  # nothing new is started
        self._places = places
        self._known: dict[int, str] = {}  # the jobs of this worker, with their queues
        self._fetching = asyncio.Lock()
        self._job_ended = asyncio.Event()
        self._outage = Outage(_log.warning, rest=LOG_PAUSE)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        with self._survive_outage():
            while not self.closed:
                is_full = sum(queue == RUNS for queue in self._known.values()) >= self._places
                async with self._fetching:
                    job = await super().fetch_job([BEGUN, CHORES] if is_full else queues, worker_id)
                    if job is not None and job.id is not None:
                        self._known[job.id] = job.queue
                self._outage.end()
                if job is None and not is_full:
                    return None
                if job is None:
                    self._job_ended.clear()
                    with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                        async with asyncio.timeout(ORPHAN_POLL_SECONDS):
                            await self._job_ended.wait()
                elif fault := _find_fault(job):
                    _log.error("job %s was rejected: %s", job.id, fault)  # no worker can do it
                    await super().finish_job(job, Status.FAILED, delete_job=False)
                    self._forget(job)
                else:
                    return job
        return None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Retry until it is stored: a job that is not finished would keep its thread from everybody."""
        values = {"job_id": job.id, "worker_id": job.worker_id, "status": status.value}
        while True:
            with self._survive_outage():
                if not await self.connector.execute_query_all_async(_FINISH, **values):
                    _log.info("job %s belonged to another worker by the time it ended here", job.id)
                return self._forget(job)
            if self.closed:  # the others will soon take this worker for dead
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _forget(self, job: Job) -> None:
        self._known.pop(job.id or 0, None)
        self._job_ended.set()

    async def update_heartbeat(self, worker_id: int) -> None:
        """Say that this worker lives, and fail jobs it does not know, so that the next sweep requeues their runs."""
        with self._survive_outage():
            await self.connector.execute_query_async(_BEAT, worker_id=worker_id)
            self._outage.end()
            async with self._fetching:
                values = {"worker_id": worker_id, "known": list(self._known)}
                rows = await self.connector.execute_query_all_async(_UNKNOWN, **values)
            for row in rows:
                _log.warning("job %s was handed out when the database was lost, and is requeued", row["id"])

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        while True:
            with self._survive_outage():
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            await asyncio.sleep(RETRY_SECONDS)

    async def list_jobs_to_abort_async(self, queue: str | None = None) -> Iterable[int]:
        """Return none: a run that a person stops is asked to stop, not its job."""
        return []

    async def defer_periodic_job(self, job: Job, periodic_id: str, defer_timestamp: int) -> int | None:
        with self._survive_outage():
            return await super().defer_periodic_job(job, periodic_id, defer_timestamp)
        return None

    async def unregister_worker(self, worker_id: int) -> None:
        with self._survive_outage():
            await super().unregister_worker(worker_id)

    @contextlib.contextmanager
    def _survive_outage(self) -> Iterator[None]:
        try:
            yield
        except ConnectorException as error:
            reason = " ".join(str(error.__cause__ or error).split())
            self._outage.begin(f"the queue cannot be reached, and is retried: {reason}")


def _find_fault(job: Job) -> str:
    expected = TASKS.get(job.task_name)
    given: Any = job.task_kwargs
    if expected is None:
        return f"there is no task {job.task_name!r:.80}"
    if not isinstance(given, dict) or {name: type(value) for name, value in given.items()} != expected:
        return f"{job.task_name} takes {', '.join(expected)}, and was given {given!r:.200}"
    return ""


class Sweeper:
    """Does what one worker at a time does for the whole fleet: requeue the runs of dead workers, and settle questions
    that nobody has answered in time. `pool`: connections for the lock of the worker that watches deadlines."""

    def __init__(self, engine: Engine, queue: RunQueue, pool: AsyncConnectionPool) -> None:
        self._engine = engine
        self._queue = queue
        self._pool = pool
        self._pause = min(queue.lease / SWEEPS_PER_LEASE, MAX_PAUSE)
        self._outage = Outage(_log.warning, rest=LOG_PAUSE)
        self._damaged: set[str] = set()  # runs that were logged as such

    async def run(self) -> None:
        """Sweep and settle questions until cancelled."""
        await asyncio.gather(
            self._repeat(partial(self.sweep, PAUSE_SHARE * self._pause)), self._repeat(self._settle_overdue)
        )

    async def _repeat(self, work: Callable[[], Coroutine[Any, Any, float]]) -> None:
        while True:
            pause = MAX_PAUSE
            try:
                pause = await shield_until_done(work())  # a thread that still asks must not find the database closed
                self._outage.end()
            except (OpenAssayError, Error) as error:  # a database that is away now may be back at the next sweep
                self._outage.begin(f"orphaned runs cannot be requeued: {' '.join(str(error).split())}")
            except Exception:  # noqa: BLE001  # the last line of defence: without this loop no run is rescued
                _log.exception("the sweep has failed")
            await asyncio.sleep(pause)

    async def sweep(self, pause: float = 0.0) -> float:
        """Sweep once, unless another worker does just now, or has done so within the pause; return the seconds until
        the next sweep."""
        swept = await self._queue.sweep(pause)
        if swept is None:
            return self._pause
        for run in swept.stalled:
            _log.warning("the worker of run %s has not responded for %g s; another resumes it", run, self._queue.lease)
        active = []
        for id in swept.orphaned:
            try:
                found = await self._engine.threads.run(id)
            except NotFoundError:  # deleted meanwhile
                continue
            except OpenAssayError as error:
                if id not in self._damaged:
                    _log.warning("run %s cannot be requeued: %s", id, error.message)
                    self._damaged.add(id)
                continue
            if found.status in AT_WORK:
                active.append(found)
        await self._queue.add(active, begun=swept.begun)
        return self._pause

    async def _settle_overdue(self) -> float:
        async with self._pool.connection() as connection, connection.transaction():
            row = await (await connection.execute(_TRY_LOCK)).fetchone()
            if row and row[0]:
                await self._queue.add(await self._engine.interrupts.answer_overdue(queued=True))
        return await self._engine.interrupts.seconds_until_due()


class JobRunner:
    """Does the jobs of the queue: each is one run, until it stops."""

    def __init__(self, engine: Engine, queue: RunQueue) -> None:
        self.stopping = False
        self.active = 0
        self._engine = engine
        self._queue = queue
        self._attempts = Attempts(engine, retry_seconds=BUSY_SHARE * queue.lease)

    async def run(self, run: str, thread: str, user: str) -> None:
        """Attempt a run, and requeue it if it has not ended: at once, if it stopped because this worker does."""
        self.active += 1
        try:
            delay = 0.0 if self.stopping else await self._attempts.attempt(await self._load_run(run))
            if delay is not None:
                after = 0.0 if self.stopping else min(delay, DAMAGED_SECONDS)
                await self._queue.add([await self._load_run(run)], after=after)
        finally:
            self.active -= 1

    async def _load_run(self, run: str) -> Run:
        try:
            return await self._engine.threads.run(run)
        except NotFoundError:
            _log.warning("a job was rejected: there is no run %.80r", run)
            raise


def schedule_chores(app: App, resources: ServerResources) -> None:
    """Register the periodic tasks of the fleet: each is due at the same minute everywhere, and done by one worker."""

    @app.periodic(cron="*/10 * * * *")
    @app.task(name=EXPIRE, queue=CHORES, lock=EXPIRE, queueing_lock=EXPIRE, priority=CHORE_PRIORITY)
    async def expire(timestamp: int) -> None:
        """Delete threads that nobody has touched for `persistence.ttl_hours`."""
        await resources.engine.archive.expire()

    @app.periodic(cron="5-59/10 * * * *")
    @app.task(name=PRUNE, queue=CHORES, lock=PRUNE, queueing_lock=PRUNE, priority=CHORE_PRIORITY)
    async def prune(timestamp: int) -> None:
        """Delete what has expired in the cache."""
        for _ in range(MAX_PRUNES):
            if not await resources.cache.prune():
                return

    @app.periodic(cron="7 * * * *")
    @app.task(name=FORGET, queue=CHORES, lock=FORGET, queueing_lock=FORGET, priority=CHORE_PRIORITY)
    async def forget(timestamp: int) -> None:
        await app.job_manager.delete_old_jobs(ENDED_HOURS, include_cancelled=True, include_aborted=True)
        await app.job_manager.delete_old_jobs(FAILED_HOURS, include_failed=True)


def _is_news(record: logging.LogRecord) -> bool:
    """Keep Procrastinate from logging the end of runs, which are logged here."""
    about_end = str(getattr(record, "action", "")).startswith("job_")
    return not about_end or getattr(record, "job", {}).get("task_name") != WORK
