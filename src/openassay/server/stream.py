"""The events of runs, for many readers at once: each reads at its own pace, and none slows the run or another.

A run that somebody reads has one tail here, which reads new events from the log; readers wait for the tail. It keeps
the newest events, and a reader who is further behind reads the log again, a page at a time. A tail is notified of
events of other processes, and polls the log where notifications do not work.
"""

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterator
from datetime import timedelta
from itertools import islice

from openassay.engine.engine import Engine
from openassay.errors import NotFoundError, OpenAssayError
from openassay.models.base import utc_now
from openassay.models.event import ENDED, Event
from openassay.protocols import Signals
from openassay.server.responses import TooManyError

_log = logging.getLogger("openassay")
MAX_RECENT = 500  # events of a run that are kept for its readers; most runs have fewer
PAGE_SIZE = 200  # events that a reader who is further behind reads at a time
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.1, 1.0  # between looks at a run of another process; longer while nothing happens
SIGNALLED_POLL_SECONDS = 5.0  # the same where notifications work, which may be lost all the same
FINAL_EVENT_GRACE = timedelta(seconds=2)  # in which a process that has stored how a run ended also emits the event
RETRY_SECONDS = 5.0  # after which to try again to open a stream


class EventFeeds:
    def __init__(self, engine: Engine, signals: Signals) -> None:
        self.closed = False
        self._engine = engine
        self._signals = signals
        self._tails: dict[str, _Tail] = {}
        self._streams: Counter[str] = Counter()

    async def read(self, run: str, after: int = 0) -> AsyncGenerator[Event]:
        """Yield every event after that one, then new ones as they come, until the run has ended or the server stops."""
        async with contextlib.aclosing(self.read_batches(run, after)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def read_batches(
        self, run: str, after: int = 0, max_wait: float | None = None
    ) -> AsyncGenerator[list[Event]]:
        """Yield events as `read` does, all available ones together; an empty list after `max_wait` seconds without."""
        tail = self._tails.get(run)
        if tail is None or tail.ended:  # a run that had ended may have been resumed since
            tail = self._tails[run] = _Tail(self._engine, self._signals, run, after)
        tail.readers += 1
        try:
            while not self.closed:
                news = tail.news
                if batch := await tail.read_after(after):
                    after = batch[-1].seq
                    yield batch
                elif tail.ended:
                    break
                elif not await _wait_for_event(news, max_wait):
                    yield []
        finally:
            tail.readers -= 1
            if not tail.readers:
                tail.task.cancel()
                if self._tails.get(run) is tail:
                    del self._tails[run]
        if not self.closed and tail.fault:
            raise tail.fault

    def count_readers(self, run: str | None = None) -> int:
        """Return how many readers one run has, or all runs have."""
        return sum(tail.readers for id, tail in self._tails.items() if run in (None, id))

    @contextlib.contextmanager
    def reserve(self, name: str, limit: int) -> Iterator[None]:
        """Count one of the streams that a caller may have open at the same time."""
        if self._streams[name] >= limit:
            raise TooManyError(
                f"you have {limit} streams open already", retry_after=RETRY_SECONDS, help="Close one of them."
            )
        self._streams[name] += 1
        try:
            yield
        finally:
            self._streams[name] -= 1
            self._streams += Counter()  # forgets callers who have none

    def close(self) -> None:
        """End every reader where it is; it can continue from there with the next server."""
        self.closed = True
        for tail in self._tails.values():
            tail.wake()


class _Tail:
    """The newest events of one run. `fault` is why it ended, if not because the run did."""

    def __init__(self, engine: Engine, signals: Signals, run: str, after: int) -> None:
        self.readers = 0
        self.ended = False
        self.fault: OpenAssayError | None = None
        self.news = asyncio.Event()  # a new one each time something has happened
        self._engine = engine
        self._signals = signals
        self._run = run
        self._last = after
        self._recent: deque[Event] = deque(maxlen=MAX_RECENT)
        self.task = asyncio.create_task(self._follow(), name=f"tail-{run}")

    async def read_after(self, after: int) -> list[Event]:
        """Return what came after that event: all that is kept, or else the next page from the log."""
        forgotten = self._last - len(self._recent)
        if after >= forgotten:
            return list(islice(self._recent, after - forgotten, None))
        page: list[Event] = []
        async for event in self._engine.events(self._run, after):
            page.append(event)
            if event.seq >= min(after + PAGE_SIZE, forgotten):
                break
        return page

    def wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    async def _follow(self) -> None:
        with self._signals.listen(f"run:{self._run}") as signal:
            pause = MIN_POLL_SECONDS
            while not self.ended:
                signal.clear()
                try:
                    before = self._last
                    async for event in self._engine.events(self._run, before):  # of a run here, as they happen
                        self._last = event.seq
                        self._recent.append(event)
                        self.wake()
                    pause = MIN_POLL_SECONDS if self._last > before else min(2 * pause, MAX_POLL_SECONDS)
                    run = await self._engine.threads.run(self._run)
                    if run.status in ENDED and run.finished is not None:
                        # Its status is stored before its final event is, which is to be read as well.
                        last = self._recent[-1] if self._recent else None
                        has_final = last and last.kind == "run" and last.data.get("status") == run.status
                        self.ended = bool(has_final) or utc_now() - run.finished > FINAL_EVENT_GRACE
                except NotFoundError:  # it was deleted
                    self.ended = True
                except OpenAssayError as error:
                    pause = MAX_POLL_SECONDS
                    self._fail(error)
                except Exception as error:  # noqa: BLE001  # the last line of defence: readers would wait for ever
                    self._fail(OpenAssayError(f"{type(error).__name__}: {error}"))
                if self.ended:
                    self.wake()
                else:
                    await _wait_for_event(signal, SIGNALLED_POLL_SECONDS if self._signals.is_live else pause)

    def _fail(self, error: OpenAssayError) -> None:
        """End the tail, unless the error may pass: a database that is busy now may not be at the next poll."""
        _log.warning("run %s cannot be followed: %s", self._run, error.message)
        if not error.retryable:
            self.fault, self.ended = error, True


async def _wait_for_event(event: asyncio.Event, max_wait: float | None) -> bool:
    try:
        async with asyncio.timeout(max_wait):
            await event.wait()
    except TimeoutError:
        return False
    return True
