"""What one worker at a time does for the whole fleet: requeue the runs of dead workers, and settle questions that
nobody has answered in time."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from psycopg import Error, sql
from psycopg_pool import AsyncConnectionPool

from openassay.engine.engine import Engine
from openassay.engine.thread_lock import shield_until_done
from openassay.errors import NotFoundError, OpenAssayError
from openassay.models.event import AT_WORK
from openassay.storage.connections import Outage
from openassay.worker.queue import RunQueue

_log = logging.getLogger("openassay")
MAX_PAUSE = 2.0  # seconds between two sweeps
SWEEPS_PER_LEASE = 8  # at the least: a run is rescued soon after it was lost
PAUSE_SHARE = 0.8  # of the pause: a worker that is alone sweeps each time it wakes up
LOG_PAUSE = 60.0  # seconds between two lines in the log about one outage
_DEADLINES = 7_301_243  # the advisory lock of the worker that watches deadlines
_TRY_LOCK = sql.SQL("SELECT pg_try_advisory_xact_lock({})").format(_DEADLINES)


class Sweeper:
    """`pool`: connections for the lock of the worker that watches deadlines."""

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
                await self._queue.add(await self._engine.answer_overdue(queued=True))
        return await self._engine.seconds_until_due()
