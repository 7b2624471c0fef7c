"""The server's side of the queue: it knocks for runs that were put in line, and knows their places."""

import asyncio
import contextlib
import logging

from assay.engine import Engine
from assay.errors import AssayError, NotFoundError
from assay.model.event import AT_WORK
from assay.model.thread import Run
from assay.runs.holding import to_its_end
from assay.storage.outage import Outage
from assay.worker.queue import Queue, Seen

_log = logging.getLogger("assay")
LOOK = 2.0  # seconds after which the queue is looked at again by itself
STALL = 60.0  # seconds after which a loop that has not come round is not taken for alive
QUIET = 60.0


class Knocker:
    """A ports.Dispatch whose runs are worked on elsewhere. A knock that is lost with this process is made good by the
    workers, who look for runs that nobody has knocked for."""

    def __init__(self, engine: Engine, queue: Queue) -> None:
        self._engine = engine
        self._queue = queue
        self._new: dict[str, None] = {}  # in order
        self._seen = Seen()
        self._wake = asyncio.Event()
        self._beat: float | None = None
        self._outage = Outage(_log.warning, rest=QUIET)

    def nudge(self, run: str) -> None:
        self._new[run] = None
        self._wake.set()

    def position(self, run: str) -> int | None:
        return self._seen.places.get(run)

    @property
    def waiting(self) -> int:
        return len(self._seen.places)

    @property
    def working(self) -> int:
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
                await to_its_end(self._step())  # a thread that still asks must not find the database closed
                with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                    async with asyncio.timeout(LOOK):
                        await self._wake.wait()
        finally:
            self._beat = None

    async def _step(self) -> None:
        """All that came since the last one together: 300 at once are put in order once."""
        new, self._new = self._new, {}
        try:
            await self._queue.add([run for id in new for run in await self._in_line(id)])
            self._seen = await self._queue.look()
            self._outage.is_over()
        except AssayError as error:  # a database that is away now may not be at the next look
            self._new = new | self._new
            self._seen = self._seen._replace(workers=0)
            self._outage.begins(f"runs wait, since the queue cannot be reached: {error.message}")
        except Exception:  # noqa: BLE001  # the last line of defence: without this loop nothing is taken up soon
            _log.exception("the queue could not be looked at")

    async def _in_line(self, id: str) -> list[Run]:
        try:
            run = await self._engine.threads.run(id)
        except NotFoundError:  # deleted meanwhile
            return []
        return [run] if run.status in AT_WORK else []


def _now() -> float:
    return asyncio.get_running_loop().time()
