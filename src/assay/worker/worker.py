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

from assay.bootstrap import Premises, open_premises
from assay.errors import AssayError, StorageError
from assay.runs.holding import to_its_end
from assay.settings import Settings
from assay.storage.opening import database_address
from assay.storage.postgres import ATTEMPT_SECONDS, SEEN_TO, patience
from assay.telemetry.watching import watching
from assay.worker.chores import TASKS, schedule
from assay.worker.jobs import Jobs
from assay.worker.means import means_of
from assay.worker.queue import BEGUN, CHORES, RUNS, WORK, Queue
from assay.worker.schema import check_fleet, prepare
from assay.worker.sweep import Sweeper
from assay.worker.work import TOLD, Work

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
        ThreadPoolExecutor(THREADS + 2 * TWICE * (concurrency or settings.fleet.concurrency), "assay")
    )
    async with AsyncExitStack() as stack:
        premises = await stack.enter_async_context(open_premises(settings))
        await asyncio.to_thread(prepare, premises.world.rows.database)
        premises.engine.limit(means_of(premises).ceiling)
        world = premises.world
        shown = watching(premises.engine, world.folder, world.rows.database, world.sources.installed())
        figures = await stack.enter_async_context(shown)
        connector = _connector(database_address(settings), settings.fleet.lease_seconds)
        app = App(connector=connector)
        try:
            await stack.enter_async_context(app.open_async())
        except Error as error:
            raise StorageError(f"the queue cannot be reached: {error}", retryable=True) from error
        yield Worker(premises, app, connector, concurrency or settings.fleet.concurrency, figures)


def _connector(address: str, lease: float) -> PsycopgConnector:
    async def configure(connection: AsyncConnection[Any]) -> None:
        """A worker that is stopped in the middle of something keeps others waiting no longer than a lease."""
        await connection.execute(f"SET idle_in_transaction_session_timeout = {round(lease * 1000)}".encode())
        await connection.execute(SEEN_TO)
        await connection.commit()

    return PsycopgConnector(
        conninfo=address,
        kwargs=patience(address),
        min_size=1,
        max_size=CONNECTIONS,
        timeout=WAIT,
        configure=configure,
        reconnect_timeout=ATTEMPT_SECONDS,
    )


class Worker:
    """`figures`: the address at which they are shown."""

    def __init__(
        self, premises: Premises, app: App, connector: PsycopgConnector, concurrency: int, figures: str | None
    ) -> None:
        self.figures = figures
        self.engine = premises.engine
        self.concurrency = concurrency
        self.left = 0  # runs that were under way when it was to stop
        self.database = premises.world.rows.database.name
        self._fleet = premises.engine.settings.fleet
        self._queue = Queue(premises.world.rows.database, self._fleet.lease_seconds)
        self._work = Work(self.engine, self._queue)
        self._sweeper = Sweeper(self.engine, self._queue, connector.pool)
        self._jobs = Jobs(connector, {WORK: TOLD, **TASKS}, concurrency)
        self._app = app
        app.job_manager = self._jobs
        app.task(name=WORK, queue=RUNS)(self._work.run)
        schedule(app, premises)

    async def run(self, stopping: asyncio.Event, *, until_idle: bool = False) -> None:
        """Until it is to stop, or has nothing to do any more. Runs end the step they are at, and are put in line again:
        another worker goes on with them."""
        await self._sweeper.sweep()
        async with _beside(self._fetch(), self._sweeper.run()) as works:
            ends = asyncio.create_task(self._ends(stopping, until_idle))
            await asyncio.wait([ends, *works], return_when=asyncio.FIRST_COMPLETED)
            ends.cancel()
            await asyncio.wait([ends])
            await self._stop()
            for work in works:
                if work.done():  # they end by being cancelled, and in no other way
                    raise AssayError("the worker has stopped by itself", help="Its log says why.") from work.exception()

    async def _stop(self) -> None:
        """It gives signs of life until the last run stands still, so that nobody takes them from it meanwhile."""
        self._jobs.closed = self._work.stopping = True
        self.left = len(self.engine.running())
        await self.engine.drain(seconds=self._fleet.drain_seconds)
        while self._work.in_hand:  # one that was being taken up just now is drained as soon as it is
            await asyncio.sleep(BRIEFLY)
            await self.engine.drain(seconds=self._fleet.drain_seconds)

    async def _fetch(self) -> None:
        with _quietly():
            await self._app.run_worker_async(
                queues=[RUNS, BEGUN, CHORES], concurrency=TWICE * self.concurrency, fetch_job_polling_interval=POLL,
                install_signal_handlers=False, update_heartbeat_interval=self._fleet.lease_seconds / BEATS,
                stalled_worker_timeout=self._fleet.lease_seconds,
            )  # fmt: skip

    async def _ends(self, stopping: asyncio.Event, until_idle: bool) -> None:
        """Idle is who has nothing waiting, and nothing at work, here or at another worker."""
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE if until_idle else None):
                    await stopping.wait()
            with contextlib.suppress(StorageError):  # the sweep tells of it
                seen = await to_its_end(self._queue.look()) if until_idle else None
                if seen and not seen.places and not seen.working:
                    return


@asynccontextmanager
async def _beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
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
