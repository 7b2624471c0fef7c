"""The events of runs, for many readers at once: each reads at its own pace, and none slows the run or another.

A run that somebody reads has one tail here, which asks the log for what is new; readers wait for the tail. It remembers
the newest events, and whoever is further behind reads the log again, a page at a time. Of a run that is at work in
another process a tail hears when something happens there, and looks; where nothing is heard, it looks by itself.
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
from openassay.models.event import ENDED, Event
from openassay.protocols import Signals
from openassay.server.problems import TooManyError
from openassay.storage.database import utc_now

_log = logging.getLogger("openassay")
KEPT = 500  # events of a run that are remembered for its readers; most runs have fewer
PAGE = 200  # events that one who is further behind holds at a time
QUICK, SLOW = 0.1, 1.0  # seconds between looks at a run that is not at work here; longer, the longer nothing happens
SURE = 5.0  # the same where news of it is heard, which may be lost all the same
GRACE = timedelta(seconds=2)  # in which another process that has written how a run ended also tells it
AGAIN = 5.0  # seconds after which to try again to open a stream


class EventFeeds:
    def __init__(self, engine: Engine, signals: Signals) -> None:
        self.closed = False
        self._engine = engine
        self._signals = signals
        self._tails: dict[str, _Tail] = {}
        self._seats: Counter[str] = Counter()

    async def read(self, run: str, after: int = 0) -> AsyncGenerator[Event]:
        """Every event after that one, then new ones as they come, until the run has ended or the server stops."""
        async with contextlib.aclosing(self.read_batches(run, after)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def read_batches(
        self, run: str, after: int = 0, patience: float | None = None
    ) -> AsyncGenerator[list[Event]]:
        """As `read`, what there is at once together; an empty one when nothing came for so many seconds."""
        with self._open_tail(run, after) as tail:
            while not self.closed:
                news = tail.news
                if batch := await tail.read_after(after):
                    after = batch[-1].seq
                    yield batch
                elif tail.ended:
                    return
                elif not await _wait_for_event(news, patience):
                    yield []
        if not self.closed and tail.fault:
            raise tail.fault

    def count_readers(self, run: str | None = None) -> int:
        """How many there are now, of one run or of all."""
        return sum(tail.readers for id, tail in self._tails.items() if run in (None, id))

    @contextlib.contextmanager
    def reserve(self, name: str, most: int) -> Iterator[None]:
        """One of the streams a person may have open at the same time."""
        if self._seats[name] >= most:
            raise TooManyError(
                f"you have {most} streams open already", retry_after=AGAIN, help="Close one that you do not need."
            )
        self._seats[name] += 1
        try:
            yield
        finally:
            self._seats[name] -= 1
            self._seats += Counter()  # those who have none are forgotten

    def close(self) -> None:
        """Every reader comes to an end where it is; it can go on from there with the next server."""
        self.closed = True
        for tail in self._tails.values():
            tail.wake()

    @contextlib.contextmanager
    def _open_tail(self, run: str, after: int) -> Iterator["_Tail"]:
        tail = self._tails.get(run)
        if tail is None or tail.ended:  # a run that has ended may have been gone on with since
            tail = self._tails[run] = _Tail(self._engine, self._signals, run, after)
        tail.readers += 1
        try:
            yield tail
        finally:
            tail.readers -= 1
            if not tail.readers:
                tail.task.cancel()
                if self._tails.get(run) is tail:
                    del self._tails[run]


class _Tail:
    """The newest events of one run. `fault` is why it ended, if not because the run did."""

    def __init__(self, engine: Engine, signals: Signals, run: str, after: int) -> None:
        self.readers = 0
        self.ended = False
        self.fault: OpenAssayError | None = None
        self.news = asyncio.Event()  # another one after each time something happened
        self._engine = engine
        self._signals = signals
        self._run = run
        self._last = after
        self._recent: deque[Event] = deque(maxlen=KEPT)
        self.task = asyncio.create_task(self._follow(), name=f"tail-{run}")

    async def read_after(self, after: int) -> list[Event]:
        """What came after that one: all that is remembered, or else the next page from the log."""
        forgotten = self._last - len(self._recent)
        if after >= forgotten:
            return list(islice(self._recent, after - forgotten, None))
        return await self._read_log(after, min(after + PAGE, forgotten))

    async def _read_log(self, after: int, last: int) -> list[Event]:
        page: list[Event] = []
        async for event in self._engine.events(self._run, after):
            page.append(event)
            if event.seq >= last:  # it is there, or it would not have been forgotten
                break
        return page

    def wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    async def _follow(self) -> None:
        with self._signals.listen(f"run:{self._run}") as bell:
            await self._poll_until_end(bell)

    async def _poll_until_end(self, bell: asyncio.Event) -> None:
        pause = QUICK
        while not self.ended:
            bell.clear()
            try:
                pause = QUICK if await self._poll() else min(2 * pause, SLOW)
                self.ended = await self._has_ended()
            except NotFoundError:  # it was deleted
                self.ended = True
            except OpenAssayError as error:
                pause = SLOW
                self._fail(error)
            except Exception as error:  # noqa: BLE001  # the last line of defence: readers must not wait for nothing
                self._fail(OpenAssayError(f"{type(error).__name__}: {error}"))
            if self.ended:
                self.wake()
            else:
                await _wait_for_event(bell, SURE if self._signals.is_live else pause)

    def _fail(self, error: OpenAssayError) -> None:
        """A database that is busy now may not be at the next look; one that is damaged is."""
        _log.warning("run %s cannot be followed: %s", self._run, error.message)
        if not error.retryable:
            self.fault, self.ended = error, True

    async def _poll(self) -> bool:
        """Whether there was something new. While the run is at work here, it is told as it comes."""
        before = self._last
        async for event in self._engine.events(self._run, before):
            self._last = event.seq
            self._recent.append(event)
            self.wake()
        return self._last > before

    async def _has_ended(self) -> bool:
        """How it ended is written down before it is told: whoever was told so last has heard everything."""
        run = await self._engine.threads.run(self._run)
        if run.status not in ENDED or run.finished is None:
            return False
        last = self._recent[-1] if self._recent else None
        if last and last.kind == "run" and last.data.get("status") == run.status:
            return True
        return utc_now() - run.finished > GRACE


async def _wait_for_event(news: asyncio.Event, patience: float | None) -> bool:
    try:
        async with asyncio.timeout(patience):
            await news.wait()
    except TimeoutError:
        return False
    return True
