"""Which runs are worked on here, and which wait in line.

Runs are taken up as long as fewer than `server.runs_at_once` are at work. One that a person has answered goes on at
once, whatever waits: it has had its turn, and somebody is looking. It counts, so others wait a little longer.
"""

import asyncio
import contextlib
import logging
import math
from collections import Counter, deque
from collections.abc import Iterable
from functools import partial
from itertools import count

from openassay.engine.engine import Engine
from openassay.errors import OpenAssayError
from openassay.models.event import AT_WORK
from openassay.models.thread import Run
from openassay.worker.attempts import Attempts

# Runs that wait to be taken up, in an order that is fair to the people they are of.

QueueKey = tuple[bool, str]  # whether its runs can wait until nothing else does, and whose they are


class FairQueue:
    """People take turns: next is whoever has the fewest at work, of those whoever had their last turn longest ago, and
    of one person's runs the oldest. So one who has put in 200 holds up nobody who puts in one."""

    def __init__(self) -> None:
        self._of: dict[QueueKey, deque[Run]] = {}
        self._turns: dict[str, int] = {}  # when each person was served last
        self._number = count(1)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def replace(self, runs: Iterable[Run]) -> None:
        """All that wait, the oldest first."""
        self._of.clear()
        for run in runs:
            self._of.setdefault((run.is_low_priority, run.user), deque()).append(run)

    def pop(self, busy: Counter[str]) -> Run | None:
        """Takes it out of the line. `busy` says how many each person has at work."""
        if not self._of:
            return None
        lane = self._order(busy)[0]
        run = self._of[lane].popleft()
        if not self._of[lane]:
            del self._of[lane]
        self._turns[run.user] = next(self._number)
        return run

    def position(self, run: str, busy: Counter[str]) -> int | None:
        """From 1, if those at work went on as they are; None where it does not wait."""
        order = self._order(busy)
        for turn, lane in enumerate(order):
            ahead = next((n for n, one in enumerate(self._of[lane]) if one.id == run), None)
            if ahead is not None:
                others = ((other, ahead + (n < turn)) for n, other in enumerate(order) if other != lane)
                return ahead + 1 + sum(self._count_before(lane, other, turns) for other, turns in others)
        return None

    def _count_before(self, lane: QueueKey, other: QueueKey, turns: int) -> int:
        """How many of another lane are served before one whose turn comes after so many rounds."""
        if other[0] is lane[0]:
            return min(len(self._of[other]), turns)
        return len(self._of[other]) if lane[0] else 0

    def _order(self, busy: Counter[str]) -> list[QueueKey]:
        def key(lane: QueueKey) -> tuple[object, ...]:
            can_wait, person = lane
            return can_wait, busy[person], self._turns.get(person, 0), self._of[lane][0].started

        return sorted(self._of, key=key)


_log = logging.getLogger("openassay")
LOOK = 2.0  # seconds after which the line is read again by itself: other processes put runs in it, too
HASTE = 0.5  # seconds after which it is read again at the earliest while others wait: 300 runs take
ELSEWHERE = 5.0  # seconds after which a run that another process works on is tried again: it may be gone
STALL = 60.0  # seconds after which a loop that has not come round is not taken for alive


class LocalDispatcher:
    """A ports.Dispatch that takes up runs itself, as many as may be at work together."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._most = engine.settings.server.runs_at_once
        self._line = FairQueue()
        self._attempts = Attempts(engine, elsewhere=ELSEWHERE)
        self._working: dict[str, tuple[str, asyncio.Task[None]]] = {}  # whose it is, and what works on it
        self._later: dict[str, float] = {}  # when to try a run again that could not be taken up
        self._wake = asyncio.Event()
        self._added = False
        self._looked = -math.inf
        self._beat: float | None = None

    def announce(self, run: str) -> None:
        """One that could not be taken up here is tried for at once."""
        self._later.pop(run, None)
        self._added = True
        self._wake.set()

    def position(self, run: str) -> int | None:
        """Its place in line, from 1; None where it is not in line."""
        return self._line.position(run, self._count_busy())

    @property
    def queue_length(self) -> int:
        return len(self._line)

    @property
    def running_count(self) -> int:
        return len(self._working)

    def is_alive(self) -> bool:
        return self._beat is not None and _now() - self._beat < STALL

    async def run(self) -> None:
        """Until it is cancelled; what is at work then goes on."""
        timer = asyncio.create_task(self._run_deadlines(), name="timing")
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

    async def _run_deadlines(self) -> None:
        while True:
            try:
                await self._engine.run_deadlines(queued=True)
            except Exception:  # noqa: BLE001
                _log.exception("the timer has failed")
                await asyncio.sleep(LOOK)

    async def _step(self) -> None:
        try:
            if self._needs_reload():
                await self._reload()
        except OpenAssayError as error:  # a database that is busy now may not be at the next look
            _log.warning("the line of runs could not be read: %s", error.message)
        except Exception:  # noqa: BLE001  # the last line of defence: without this loop nothing is taken up any more
            _log.exception("the line of runs could not be read")
        while self._has_room() and (run := self._line.pop(self._count_busy())):
            task = asyncio.create_task(self._work(run), name=f"work-{run.id}")
            self._working[run.id] = (run.user, task)
            task.add_done_callback(partial(self._forget_task, run.id))

    def _forget_task(self, run: str, _: asyncio.Task[None]) -> None:
        del self._working[run]
        self._wake.set()

    def _has_room(self) -> bool:
        return len({*self._working, *self._engine.list_running()}) < self._most

    def _count_busy(self) -> Counter[str]:
        return Counter(owner for owner, _ in self._working.values())

    # -- the line -----------------------------------------------------------------------------------------

    def _needs_reload(self) -> bool:
        """Not whenever a run has ended: of 300 in line, all but the first are known by then."""
        since = _now() - self._looked
        at_once = not len(self._line) and self._has_room()
        return since >= LOOK or (self._added and (since >= HASTE or at_once))

    async def _reload(self) -> None:
        self._looked, self._added = _now(), False
        active = await self._engine.threads.list_active(*AT_WORK)
        known, here = {run.id for run in active}, {*self._working, *self._engine.list_running()}
        self._later = {run: when for run, when in self._later.items() if run in known}
        self._line.replace(run for run in active if run.id not in here and self._is_due(run.id))

    def _is_due(self, run: str) -> bool:
        return self._later.get(run, 0.0) <= _now()

    async def _work(self, run: Run) -> None:
        again = await self._attempts.attempt(run)
        if again is not None:
            self._later[run.id] = _now() + again


def _now() -> float:
    return asyncio.get_running_loop().time()
