"""Which runs are worked on here, and which wait in line.

Runs are taken up as long as fewer than `server.runs_at_once` are at work. One that a person has answered goes on at
once, whatever waits: it has had its turn, and somebody is looking. It counts, so others wait a little longer.
"""

import asyncio
import contextlib
import logging
import math
from collections import Counter
from functools import partial

from assay.engine import Engine
from assay.errors import AssayError
from assay.model.event import AT_WORK
from assay.model.thread import Run
from assay.server.line import Line
from assay.worker.attempt import Attempts

_log = logging.getLogger("assay")
LOOK = 2.0  # seconds after which the line is read again by itself: other processes put runs in it, too
HASTE = 0.5  # seconds after which it is read again at the earliest while others wait: 300 runs take
ELSEWHERE = 5.0  # seconds after which a run that another process works on is tried again: it may be gone
STALL = 60.0  # seconds after which a loop that has not come round is not taken for alive


class Dispatcher:
    """A ports.Dispatch that takes up runs itself, as many as may be at work together."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._most = engine.settings.server.runs_at_once
        self._line = Line()
        self._attempts = Attempts(engine, elsewhere=ELSEWHERE)
        self._working: dict[str, tuple[str, asyncio.Task[None]]] = {}  # whose it is, and what works on it
        self._later: dict[str, float] = {}  # when to try a run again that could not be taken up
        self._wake = asyncio.Event()
        self._added = False
        self._looked = -math.inf
        self._beat: float | None = None

    def nudge(self, run: str) -> None:
        """One that could not be taken up here is tried for at once."""
        self._later.pop(run, None)
        self._added = True
        self._wake.set()

    def position(self, run: str) -> int | None:
        """Its place in line, from 1; None where it is not in line."""
        return self._line.position(run, self._busy())

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def working(self) -> int:
        return len(self._working)

    def is_alive(self) -> bool:
        return self._beat is not None and _now() - self._beat < STALL

    async def run(self) -> None:
        """Until it is cancelled; what is at work then goes on."""
        timer = asyncio.create_task(self._keep_time(), name="timing")
        try:
            while True:
                self._beat = _now()
                self._wake.clear()
                await self._step()
                with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                    async with asyncio.timeout(HASTE if self._added else LOOK):
                        await self._wake.wait()
        finally:
            self._beat = None
            for _, task in self._working.values():
                task.cancel()
            timer.cancel()
            await asyncio.wait([timer, *(task for _, task in self._working.values())])

    async def _keep_time(self) -> None:
        while True:
            try:
                await self._engine.keep_time(queued=True)
            except Exception:  # noqa: BLE001
                _log.exception("the timer has failed")
                await asyncio.sleep(LOOK)

    async def _step(self) -> None:
        try:
            if self._is_to_look():
                await self._look()
        except AssayError as error:  # a database that is busy now may not be at the next look
            _log.warning("the line of runs could not be read: %s", error.message)
        except Exception:  # noqa: BLE001  # the last line of defence: without this loop nothing is taken up any more
            _log.exception("the line of runs could not be read")
        while self._has_room() and (run := self._line.next(self._busy())):
            task = asyncio.create_task(self._work(run), name=f"work-{run.id}")
            self._working[run.id] = (run.user, task)
            task.add_done_callback(partial(self._done, run.id))

    def _done(self, run: str, _: asyncio.Task[None]) -> None:
        del self._working[run]
        self._wake.set()

    def _has_room(self) -> bool:
        return len({*self._working, *self._engine.running()}) < self._most

    def _busy(self) -> Counter[str]:
        return Counter(owner for owner, _ in self._working.values())

    # -- the line -----------------------------------------------------------------------------------------

    def _is_to_look(self) -> bool:
        """Not whenever a run has ended: of 300 in line, all but the first are known by then."""
        since = _now() - self._looked
        at_once = not len(self._line) and self._has_room()
        return since >= LOOK or (self._added and (since >= HASTE or at_once))

    async def _look(self) -> None:
        self._looked, self._added = _now(), False
        active = await self._engine.threads.active(*AT_WORK)
        known, here = {run.id for run in active}, {*self._working, *self._engine.running()}
        self._later = {run: when for run, when in self._later.items() if run in known}
        self._line.set(run for run in active if run.id not in here and self._is_time(run.id))

    def _is_time(self, run: str) -> bool:
        return self._later.get(run, 0.0) <= _now()

    async def _work(self, run: Run) -> None:
        again = await self._attempts.attempt(run)
        if again is not None:
            self._later[run.id] = _now() + again


def _now() -> float:
    return asyncio.get_running_loop().time()
