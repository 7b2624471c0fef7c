"""A worker: it takes up runs from the queue, so many at a time, until it is to stop."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from procrastinate import App, PsycopgConnector
from psycopg import AsyncConnection, Error

from openassay.bootstrap import ServerResources, open_server_resources
from openassay.engine.engine import Engine
from openassay.engine.lock import shield_until_done
from openassay.errors import NotFoundError, OpenAssayError, StorageError
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.storage.admin import database_address
from openassay.storage.postgres import ATTEMPT_SECONDS, KEEPALIVE, connect_options
from openassay.telemetry.endpoint import open_engine_endpoint
from openassay.worker.attempts import Attempts
from openassay.worker.jobs import QueueJobManager
from openassay.worker.limits import build_spending_limits
from openassay.worker.queue import BEGUN, CHORES, RUNS, WORK, RunQueue, check_fleet, prepare_tables
from openassay.worker.sweep import Sweeper

# What is done now and then for the whole fleet, whichever worker comes to it.

EXPIRE, PRUNE, FORGET = "expire", "prune", "forget"  # the names of these tasks
TASKS: dict[str, dict[str, type]] = {name: {"timestamp": int} for name in (EXPIRE, PRUNE, FORGET)}  # when it was due
FIRST = 2_000_000_000  # before any run: each takes a moment
MOST_ROUNDS = 100  # of pruning at one time
KEPT_HOURS = 1  # jobs that have ended: who had the last turn is read from them
KEPT_FAILED_HOURS = 168  # jobs that were put aside, for whoever wants to know why


def schedule_chores(app: "App", resources: "ServerResources") -> None:
    """At the same minute on every machine; the queue takes each once."""

    @app.periodic(cron="*/10 * * * *")
    @app.task(name=EXPIRE, queue=CHORES, lock=EXPIRE, queueing_lock=EXPIRE, priority=FIRST)
    async def expire(timestamp: int) -> None:
        """Threads that nobody has touched for `persistence.ttl_hours`."""
        await resources.engine.expire()

    @app.periodic(cron="5-59/10 * * * *")
    @app.task(name=PRUNE, queue=CHORES, lock=PRUNE, queueing_lock=PRUNE, priority=FIRST)
    async def prune(timestamp: int) -> None:
        """What has expired in the cache."""
        for _ in range(MOST_ROUNDS):
            if not await resources.cache.prune():
                return

    @app.periodic(cron="7 * * * *")
    @app.task(name=FORGET, queue=CHORES, lock=FORGET, queueing_lock=FORGET, priority=FIRST)
    async def forget(timestamp: int) -> None:
        """Jobs that have ended."""
        jobs = app.job_manager
        await jobs.delete_old_jobs(KEPT_HOURS, include_cancelled=True, include_aborted=True)
        await jobs.delete_old_jobs(KEPT_FAILED_HOURS, include_failed=True)


# What a job of the queue is about: one run, until it stands still.

_log = logging.getLogger("openassay")
TASK_ARGUMENTS: dict[str, type] = {"run": str, "thread": str, "user": str}
BUSY = 0.25  # of a lease: after so long a thread that another process holds is tried for again
HOPELESS = 600.0  # seconds after which a run whose rows are damaged is looked at again


class JobRunner:
    def __init__(self, engine: Engine, queue: RunQueue) -> None:
        self.stopping = False
        self.in_hand = 0
        self._engine = engine
        self._queue = queue
        self._attempts = Attempts(engine, elsewhere=BUSY * queue.lease)

    async def run(self, run: str, thread: str, user: str) -> None:
        """One that stands still because this worker stops is another's to go on with, at once."""
        self.in_hand += 1
        try:
            again = await self._attempt(run)
            if again is not None:
                await self._queue.add([await self._load_run(run)], after=0.0 if self.stopping else min(again, HOPELESS))
        finally:
            self.in_hand -= 1

    async def _attempt(self, run: str) -> float | None:
        if self.stopping:
            return 0.0
        return await self._attempts.attempt(await self._load_run(run))

    async def _load_run(self, run: str) -> Run:
        try:
            return await self._engine.threads.run(run)
        except NotFoundError:
            _log.warning("a job is put aside: there is no run %.80r", run)
            raise


CONNECTIONS = 4  # of the queue alone: to find jobs, to end them, to say that the worker lives, to keep time
TWICE = 2  # as many as it begins it may take up besides, of those that the dead have left (jobs.py)
POLL = 1.0  # seconds after which the queue is looked at again by itself: nobody knocks when a thread becomes free
BEATS = 3  # in the time of a lease: two may be missed
WAIT = 10.0  # seconds for a connection
THREADS = 8  # beside two a run: one that waits in a thread, for a folder that another indexes, holds nobody else up
BRIEFLY = 0.05  # seconds
IDLE = 0.5  # seconds between looks whether anything is left to do


@asynccontextmanager
async def open_worker(settings: Settings, concurrency: int | None = None) -> "AsyncIterator[Worker]":
    """`concurrency`: runs that it is at together; None: as the settings say."""
    check_fleet(settings)
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(THREADS + 2 * TWICE * (concurrency or settings.fleet.concurrency), "openassay")
    )
    async with AsyncExitStack() as stack:
        resources = await stack.enter_async_context(open_server_resources(settings))
        await asyncio.to_thread(prepare_tables, resources.rows.database)
        resources.engine.set_cost_limit(build_spending_limits(resources).limit_run)
        shown = open_engine_endpoint(
            resources.engine, resources.folder, resources.rows.database, resources.sources.list_sources()
        )
        figures = await stack.enter_async_context(shown)
        connector = _create_connector(database_address(settings), settings.fleet.lease_seconds)
        app = App(connector=connector)
        try:
            await stack.enter_async_context(app.open_async())
        except Error as error:
            raise StorageError(f"the queue cannot be reached: {error}", retryable=True) from error
        yield Worker(resources, app, connector, concurrency or settings.fleet.concurrency, figures)


def _create_connector(address: str, lease: float) -> PsycopgConnector:
    async def configure(connection: AsyncConnection[Any]) -> None:
        """A worker that is stopped in the middle of something keeps others waiting no longer than a lease."""
        await connection.execute(f"SET idle_in_transaction_session_timeout = {round(lease * 1000)}".encode())
        await connection.execute(KEEPALIVE)
        await connection.commit()

    return PsycopgConnector(
        conninfo=address,
        kwargs=connect_options(address),
        min_size=1,
        max_size=CONNECTIONS,
        timeout=WAIT,
        configure=configure,
        reconnect_timeout=ATTEMPT_SECONDS,
    )


class Worker:
    """`figures`: the address at which they are shown."""

    def __init__(
        self, resources: ServerResources, app: App, connector: PsycopgConnector, concurrency: int, figures: str | None
    ) -> None:
        self.figures = figures
        self.engine = resources.engine
        self.concurrency = concurrency
        self.left = 0  # runs that were under way when it was to stop
        self.database = resources.rows.database.name
        self._fleet = resources.engine.settings.fleet
        self._queue = RunQueue(resources.rows.database, self._fleet.lease_seconds)
        self._work = JobRunner(self.engine, self._queue)
        self._sweeper = Sweeper(self.engine, self._queue, connector.pool)
        self._jobs = QueueJobManager(connector, {WORK: TASK_ARGUMENTS, **TASKS}, concurrency)
        self._app = app
        app.job_manager = self._jobs
        app.task(name=WORK, queue=RUNS)(self._work.run)
        schedule_chores(app, resources)

    async def run(self, stopping: asyncio.Event, *, until_idle: bool = False) -> None:
        """Until it is to stop, or has nothing to do any more. Runs end the step they are at, and are put in line again:
        another worker goes on with them."""
        await self._sweeper.sweep()
        async with _run_in_background(self._fetch_jobs(), self._sweeper.run()) as works:
            ends = asyncio.create_task(self._wait_for_end(stopping, until_idle))
            await asyncio.wait([ends, *works], return_when=asyncio.FIRST_COMPLETED)
            ends.cancel()
            await asyncio.wait([ends])
            await self._stop()
            for work in works:
                if work.done():  # they end by being cancelled, and in no other way
                    raise OpenAssayError(
                        "the worker has stopped by itself", help="Its log says why."
                    ) from work.exception()

    async def _stop(self) -> None:
        """It gives signs of life until the last run stands still, so that nobody takes them from it meanwhile."""
        self._jobs.closed = self._work.stopping = True
        self.left = len(self.engine.list_running())
        await self.engine.drain(seconds=self._fleet.drain_seconds)
        while self._work.in_hand:  # one that was being taken up just now is drained as soon as it is
            await asyncio.sleep(BRIEFLY)
            await self.engine.drain(seconds=self._fleet.drain_seconds)

    async def _fetch_jobs(self) -> None:
        with _mute_job_logs():
            await self._app.run_worker_async(
                queues=[RUNS, BEGUN, CHORES], concurrency=TWICE * self.concurrency, fetch_job_polling_interval=POLL,
                install_signal_handlers=False, update_heartbeat_interval=self._fleet.lease_seconds / BEATS,
                stalled_worker_timeout=self._fleet.lease_seconds,
            )  # fmt: skip

    async def _wait_for_end(self, stopping: asyncio.Event, until_idle: bool) -> None:
        """Idle is who has nothing waiting, and nothing at work, here or at another worker."""
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE if until_idle else None):
                    await stopping.wait()
            with contextlib.suppress(StorageError):  # the sweep tells of it
                seen = await shield_until_done(self._queue.take_snapshot()) if until_idle else None
                if seen and not seen.places and not seen.working:
                    return


@asynccontextmanager
async def _run_in_background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@contextlib.contextmanager
def _mute_job_logs() -> Iterator[None]:
    """What has become of a run is told by whoever worked on it."""

    def is_news(record: logging.LogRecord) -> bool:
        about_end = str(getattr(record, "action", "")).startswith("job_")
        return not about_end or getattr(record, "job", {}).get("task_name") != WORK

    logger = logging.getLogger("procrastinate.worker")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)
