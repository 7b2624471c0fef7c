"""Runs that this server executes itself, and the queue of those that wait.

Runs are started as long as fewer than `server.runs_at_once` are active. One that a person has answered is resumed at
once: it has had its turn, and somebody is watching. It counts, so others wait a little longer.
"""

import asyncio
import contextlib
import logging
import math
from collections import Counter, deque
from collections.abc import Iterable
from itertools import count

from openassay.engine.engine import Engine
from openassay.errors import OpenAssayError
from openassay.models.event import AT_WORK
from openassay.models.thread import Run
from openassay.worker.attempts import Attempts

_log = logging.getLogger("openassay")
POLL_SECONDS = 2.0  # after which the queue is read again by itself: other processes add runs, too
MIN_POLL_SECONDS = 0.5  # between two reads while others wait: reading 300 runs takes a while
RETRY_SECONDS = 5.0  # after which a run of another process is tried again: that process may be gone
STALL_SECONDS = 60.0  # after which a loop that has not come round is not taken for alive
QueueKey = tuple[bool, str]  # whether its runs have low priority, and whose they are


class FairQueue:
    """Queued runs, in an order that is fair to their owners: next is whoever has the fewest active runs, then whoever
    had their last turn longest ago, with their oldest run. So 200 runs of one person do not hold up one of another."""

    def __init__(self) -> None:
        self._runs: dict[QueueKey, deque[Run]] = {}
        self._turns: dict[str, int] = {}  # when each person was served last
        self._number = count(1)

    def __len__(self) -> int:
        return sum(map(len, self._runs.values()))

    def replace(self, runs: Iterable[Run]) -> None:
        """Set all queued runs, the oldest first."""
        self._runs.clear()
        for run in runs:
            self._runs.setdefault((run.options.priority == "low", run.options.user), deque()).append(run)

    def pop(self, active: Counter[str]) -> Run | None:
        """Take out the next run; `active` says how many active runs each person has."""
        if not self._runs:
            return None
        key = self._order(active)[0]
        run = self._runs[key].popleft()
        if not self._runs[key]:
            del self._runs[key]
        self._turns[run.options.user] = next(self._number)
        return run

    def position(self, run: str, active: Counter[str]) -> int | None:
        """Return a run's position from 1, if the active runs stayed as they are; None if it is not queued."""
        order = self._order(active)
        for turn, key in enumerate(order):
            ahead = next((n for n, one in enumerate(self._runs[key]) if one.id == run), None)
            if ahead is None:
                continue
            position = ahead + 1
            for n, other in enumerate(order):
                if other != key and other[0] is key[0]:  # they take turns
                    position += min(len(self._runs[other]), ahead + (n < turn))
                elif other != key and key[0]:  # it has low priority, and the other has not
                    position += len(self._runs[other])
            return position
        return None

    def _order(self, active: Counter[str]) -> list[QueueKey]:
        def sort_key(key: QueueKey) -> tuple[object, ...]:
            is_low, person = key
            return is_low, active[person], self._turns.get(person, 0), self._runs[key][0].started

        return sorted(self._runs, key=sort_key)


class LocalDispatcher:
    """A RunDispatcher that executes runs in this process, as many as may be active together."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._max_active = engine.settings.server.runs_at_once
        self._queue = FairQueue()
        self._attempts = Attempts(engine, retry_seconds=RETRY_SECONDS)
        self._tasks: dict[str, tuple[str, asyncio.Task[None]]] = {}  # by run, with its owner
        self._retry_at: dict[str, float] = {}  # when to try again runs that could not be resumed
        self._wake = asyncio.Event()
        self._has_new = False
        self._read_at = -math.inf
        self._last_step: float | None = None

    def announce(self, run: str) -> None:
        """Start a run as soon as possible, also one that was to be retried later."""
        self._retry_at.pop(run, None)
        self._has_new = True
        self._wake.set()

    def position(self, run: str) -> int | None:
        """Return a run's position in the queue from 1; None if it is not queued."""
        return self._queue.position(run, self._count_active())

    @property
    def queue_length(self) -> int:
        return len(self._queue)

    @property
    def running_count(self) -> int:
        return len(self._tasks)

    def is_alive(self) -> bool:
        return self._last_step is not None and _now() - self._last_step < STALL_SECONDS

    async def run(self) -> None:
        """Start runs until cancelled; those that are active then continue."""
        timer = asyncio.create_task(self._run_deadlines(), name="timing")
        try:
            while True:
                self._last_step = _now()
                self._wake.clear()
                await self._step()
                with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                    async with asyncio.timeout(MIN_POLL_SECONDS if self._has_new else POLL_SECONDS):
                        await self._wake.wait()
        finally:
            self._last_step = None
            tasks = [timer, *(task for _, task in self._tasks.values())]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _run_deadlines(self) -> None:
        while True:
            try:
                await self._engine.interrupts.run_deadlines(queued=True)
            except Exception:  # noqa: BLE001
                _log.exception("the timer has failed")
                await asyncio.sleep(POLL_SECONDS)

    async def _step(self) -> None:
        # Not whenever a run has ended: of 300 queued runs, all but the first are known by then.
        age = _now() - self._read_at
        is_urgent = self._has_new and (age >= MIN_POLL_SECONDS or (not len(self._queue) and self._has_room()))
        try:
            if age >= POLL_SECONDS or is_urgent:
                now = self._read_at = _now()
                self._has_new = False
                runs = await self._engine.threads.list_active(*AT_WORK)
                known, here = {run.id for run in runs}, {*self._tasks, *self._engine.list_running()}
                self._retry_at = {run: time for run, time in self._retry_at.items() if run in known}
                due = [run for run in runs if self._retry_at.get(run.id, 0.0) <= now]
                self._queue.replace(run for run in due if run.id not in here)
        except OpenAssayError as error:  # a database that is busy now may not be at the next step
            _log.warning("the queued runs could not be read: %s", error.message)
        except Exception:  # noqa: BLE001  # the last line of defence: without this loop nothing is started any more
            _log.exception("the queued runs could not be read")
        while self._has_room() and (run := self._queue.pop(self._count_active())):
            task = asyncio.create_task(self._attempt(run), name=f"work-{run.id}")
            self._tasks[run.id] = (run.options.user, task)

    def _has_room(self) -> bool:
        return len({*self._tasks, *self._engine.list_running()}) < self._max_active

    def _count_active(self) -> Counter[str]:
        return Counter(owner for owner, _ in self._tasks.values())

    async def _attempt(self, run: Run) -> None:
        try:
            delay = await self._attempts.attempt(run)
            if delay is not None:
                self._retry_at[run.id] = _now() + delay
        finally:
            del self._tasks[run.id]
            self._wake.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
