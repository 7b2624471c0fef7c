"""What goes on beside the runs of a worker, in the whole fleet by one at a time: what dead workers have left is put in
line again, and questions that nobody has answered are settled as they come due."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from psycopg import Error, sql
from psycopg_pool import AsyncConnectionPool

from openassay.engine.engine import Engine
from openassay.engine.lock import shield_until_done
from openassay.errors import NotFoundError, OpenAssayError
from openassay.models.event import AT_WORK
from openassay.models.thread import Run
from openassay.storage.connections import Outage
from openassay.worker.queue import RunQueue

_log = logging.getLogger("openassay")
MOST_PAUSE = 2.0  # seconds between two sweeps
PAUSES = 8  # between two sweeps at the least, in the time of a lease: a run is rescued soon after it was lost
SHARE = 0.8  # of the pause: one worker alone sweeps each time that it wakes up
QUIET = 60.0
_TIMING = 7_301_243  # the advisory lock of whoever keeps time
_MINE = sql.SQL("SELECT pg_try_advisory_xact_lock({})").format(_TIMING)


class Sweeper:
    """`pool`: for the lock of whoever keeps time."""

    def __init__(self, engine: Engine, queue: RunQueue, pool: AsyncConnectionPool) -> None:
        self._engine = engine
        self._queue = queue
        self._pool = pool
        self._pause = min(queue.lease / PAUSES, MOST_PAUSE)
        self._outage = Outage(_log.warning, rest=QUIET)
        self._damaged: set[str] = set()  # runs of which that was told

    async def run(self) -> None:
        """Until it is cancelled."""
        await asyncio.gather(self._repeat(self._sweep_once), self._repeat(self._settle_overdue))

    async def _repeat(self, work: Callable[[], Coroutine[Any, Any, float]]) -> None:
        while True:
            pause = MOST_PAUSE
            try:
                pause = await shield_until_done(work())  # a thread that still asks must not find the database closed
                self._outage.end()
            except (OpenAssayError, Error) as error:  # a database that is away now may not be at the next look
                self._outage.begin(f"what others have left cannot be seen to: {' '.join(str(error).split())}")
            except Exception:  # noqa: BLE001  # the last line of defence: without this loop no run is rescued
                _log.exception("the sweep has failed")
            await asyncio.sleep(pause)

    async def sweep(self, pause: float = 0.0) -> None:
        """Once, unless another worker does just now, or has done so within the pause."""
        if swept := await self._queue.sweep(pause):
            for run in swept.stalled:
                _log.warning("the worker of run %s has given no sign for %g s; another goes on", run, self._queue.lease)
            await self._queue.add([run async for run in self._load_active_runs(swept.left)], begun=swept.begun)

    async def _sweep_once(self) -> float:
        await self.sweep(SHARE * self._pause)
        return self._pause

    async def _load_active_runs(self, ids: Iterable[str]) -> AsyncIterator[Run]:
        for id in ids:
            try:
                run = await self._engine.threads.run(id)
            except NotFoundError:  # deleted meanwhile
                continue
            except OpenAssayError as error:
                if id not in self._damaged:
                    _log.warning("run %s cannot be put in line: %s", id, error.message)
                    self._damaged.add(id)
                continue
            if run.status in AT_WORK:
                yield run

    async def _settle_overdue(self) -> float:
        async with self._pool.connection() as connection, connection.transaction():
            mine = await (await connection.execute(_MINE)).fetchone()
            if mine and mine[0]:
                await self._queue.add(await self._engine.answer_overdue(queued=True))
        return await self._engine.seconds_until_due()
