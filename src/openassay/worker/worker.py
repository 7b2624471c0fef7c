"""A worker: executes runs from the queue, several at a time, until it is to stop."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from procrastinate import App, PsycopgConnector
from psycopg import AsyncConnection, Error

from openassay.bootstrap import ServerResources, open_server_resources
from openassay.engine.engine import Engine
from openassay.engine.spending import build_spending_limits
from openassay.engine.thread_lock import shield_until_done
from openassay.errors import NotFoundError, OpenAssayError, StorageError
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.storage.admin import database_address
from openassay.storage.postgres import ATTEMPT_SECONDS, KEEPALIVE, connect_options
from openassay.telemetry.endpoint import open_engine_endpoint
from openassay.worker.attempts import Attempts
from openassay.worker.jobs import QueueJobManager
from openassay.worker.queue import BEGUN, CHORES, RUNS, WORK, RunQueue, check_fleet, prepare_tables
from openassay.worker.sweep import Sweeper

_log = logging.getLogger("openassay")
CONNECTIONS = 4  # of the queue alone: to find jobs, to finish them, to send heartbeats, to watch deadlines
ORPHAN_FACTOR = 2  # a full worker may take as many runs again of dead workers (jobs.py)
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
EXPIRE, PRUNE, FORGET = PERIODIC = ("expire", "prune", "forget")  # the names of periodic tasks
CHORE_PRIORITY = 2_000_000_000  # before any run: each takes a moment
TASKS: dict[str, dict[str, type]] = {  # with their arguments
    WORK: {"run": str, "thread": str, "user": str},
    **{name: {"timestamp": int} for name in PERIODIC},
}


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
        engine.set_cost_limit(build_spending_limits(resources).limit_run)
        endpoint = open_engine_endpoint(engine, resources.folder, database, resources.sources.list_sources())
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
    """`metrics_url`: the address of its metrics."""

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
        self._jobs = QueueJobManager(connector, TASKS, concurrency)
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
        await resources.engine.expire()

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
        """Delete old jobs."""
        await app.job_manager.delete_old_jobs(ENDED_HOURS, include_cancelled=True, include_aborted=True)
        await app.job_manager.delete_old_jobs(FAILED_HOURS, include_failed=True)


def _is_news(record: logging.LogRecord) -> bool:
    """Keep Procrastinate from logging the end of runs, which are logged here."""
    about_end = str(getattr(record, "action", "")).startswith("job_")
    return not about_end or getattr(record, "job", {}).get("task_name") != WORK
