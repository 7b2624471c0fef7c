"""What a job of the queue is about: one run, until it stands still."""

import logging

from assay.engine import Engine
from assay.errors import NotFoundError
from assay.model.thread import Run
from assay.worker.attempt import Attempts
from assay.worker.queue import Queue

_log = logging.getLogger("assay")
TOLD: dict[str, type] = {"run": str, "thread": str, "user": str}
BUSY = 0.25  # of a lease: after so long a thread that another process holds is tried for again
HOPELESS = 600.0  # seconds after which a run whose rows are damaged is looked at again


class Work:
    def __init__(self, engine: Engine, queue: Queue) -> None:
        self.stopping = False
        self.in_hand = 0
        self._engine = engine
        self._queue = queue
        self._attempts = Attempts(engine, elsewhere=BUSY * queue.lease)

    async def run(self, run: str, thread: str, user: str) -> None:
        """One that stands still because this worker stops is another's to go on with, at once."""
        self.in_hand += 1
        try:
            again = await self._attempted(run)
            if again is not None:
                await self._queue.add([await self._found(run)], after=0.0 if self.stopping else min(again, HOPELESS))
        finally:
            self.in_hand -= 1

    async def _attempted(self, run: str) -> float | None:
        if self.stopping:
            return 0.0
        return await self._attempts.attempt(await self._found(run))

    async def _found(self, run: str) -> Run:
        try:
            return await self._engine.threads.run(run)
        except NotFoundError:
            _log.warning("a job is put aside: there is no run %.80r", run)
            raise
