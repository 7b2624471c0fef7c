"""News between processes: that something happened, never what. Whoever hears it looks; one that is lost costs time."""

import asyncio
import contextlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any

from assay.storage.link import Link

CHANNEL = "assay"
PAUSE = 0.03  # seconds between two messages of a process: what rings meanwhile goes with the next
AGAIN = 1.0  # seconds after which a lost connection is tried again
QUIET = 10.0  # seconds of silence after which to ask whether the server is still there
ANSWER_SECONDS = 3.0
LONGEST = 7_000  # bytes of a message; PostgreSQL takes 8,000
EVERYTHING = "*"  # in the place of topics that are too many for a message


class ProcessSignals:
    """A ports.Signals of one process and one event loop."""

    def __init__(self) -> None:
        self._bells: dict[str, set[asyncio.Event]] = {}

    @property
    def live(self) -> bool:
        return False

    def ring(self, topic: str) -> None:
        for bell in self._bells.get(topic, ()):
            bell.set()

    @contextlib.contextmanager
    def listening(self, topic: str) -> Iterator[asyncio.Event]:
        bell = asyncio.Event()
        bells = self._bells.setdefault(topic, set())
        bells.add(bell)
        try:
            yield bell
        finally:
            bells.discard(bell)
            if not bells and self._bells.get(topic) is bells:
                del self._bells[topic]

    async def close(self) -> None:
        """Nothing is open."""


class SharedSignals(ProcessSignals, ABC):
    """Over a server. It is connected to when somebody rings or listens first, and again whenever it was lost; those who
    listen are woken then, since they may have missed something."""

    def __init__(self, link: Link[Any]) -> None:
        super().__init__()
        self._link = link
        self._own = secrets.token_hex(4)  # what this process has rung itself, it has heard
        self._live = self._closed = False
        self._due: set[str] = set()
        self._rung = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def live(self) -> bool:
        return self._live

    def ring(self, topic: str) -> None:
        super().ring(topic)
        if not self._closed:
            self._due.add(topic)
            self._rung.set()
            if "telling" not in self._tasks:
                self._tasks["telling"] = asyncio.create_task(self._telling(), name="signals-telling")

    @contextlib.contextmanager
    def listening(self, topic: str) -> Iterator[asyncio.Event]:
        if "hearing" not in self._tasks and not self._closed:
            self._tasks["hearing"] = asyncio.create_task(self._hearing(), name="signals-hearing")
        with super().listening(topic) as bell:
            yield bell

    async def close(self) -> None:
        """What was rung last is told."""
        self._closed = True
        while left := [task for task in self._tasks.values() if not task.done()]:
            for task in left:  # again and again: wait_for, which redis uses, may swallow one before Python 3.12
                task.cancel()
            await asyncio.wait(left, timeout=PAUSE)
        if self._due:
            await self._tell(self._message())

    # Telling ----------------------------------------------------------------------------------------------

    async def _telling(self) -> None:
        while not self._closed:
            await self._rung.wait()
            self._rung.clear()
            await self._tell(self._message())
            await asyncio.sleep(PAUSE)

    def _message(self) -> str:
        topics, self._due = self._due, set()
        message = " ".join([self._own, *topics])
        return message if len(message.encode()) <= LONGEST else f"{self._own} {EVERYTHING}"

    @abstractmethod
    async def _tell(self, message: str) -> None:
        """Trouble is the link's."""

    # Hearing ----------------------------------------------------------------------------------------------

    async def _hearing(self) -> None:
        while not self._closed:
            try:
                async with contextlib.aclosing(self._heard()) as messages:
                    async for message in messages:
                        self._take(message)
            except self._link.faults() as error:
                self._link.fails("news", error)
            if self._live:
                self._live = False
                self._wake(self._bells)  # from here on they look more often
            await asyncio.sleep(AGAIN)

    @abstractmethod
    def _heard(self) -> AsyncGenerator[str]:
        """Messages as they come, until the connection is lost; calls `_connected` once there is one."""

    def _connected(self) -> None:
        self._live = True
        self._link.works("news")
        self._wake(self._bells)

    def _take(self, message: str) -> None:
        sender, *topics = message.split(" ")
        if sender != self._own:
            self._wake(self._bells if EVERYTHING in topics else topics)

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            super().ring(topic)
