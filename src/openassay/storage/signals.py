"""News between processes: that something happened, never what. Whoever hears it looks; one that is lost costs time."""

import asyncio
import contextlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from openassay.storage.connections import REDIS_PREFIX, PostgresLink, RedisLink, ServerLink

if TYPE_CHECKING:
    from psycopg import AsyncConnection


CHANNEL = "openassay"
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
    def is_live(self) -> bool:
        return False

    def notify(self, topic: str) -> None:
        for bell in self._bells.get(topic, ()):
            bell.set()

    @contextlib.contextmanager
    def listen(self, topic: str) -> Iterator[asyncio.Event]:
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


class ServerSignals(ProcessSignals, ABC):
    """Over a server. It is connected to when somebody rings or listens first, and again whenever it was lost; those who
    listen are woken then, since they may have missed something."""

    def __init__(self, link: ServerLink[Any]) -> None:
        super().__init__()
        self._link = link
        self._own = secrets.token_hex(4)  # what this process has rung itself, it has heard
        self._live = self._closed = False
        self._due: set[str] = set()
        self._rung = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def is_live(self) -> bool:
        return self._live

    def notify(self, topic: str) -> None:
        super().notify(topic)
        if not self._closed:
            self._due.add(topic)
            self._rung.set()
            if "telling" not in self._tasks:
                self._tasks["telling"] = asyncio.create_task(self._send_loop(), name="signals-telling")

    @contextlib.contextmanager
    def listen(self, topic: str) -> Iterator[asyncio.Event]:
        if "hearing" not in self._tasks and not self._closed:
            self._tasks["hearing"] = asyncio.create_task(self._receive_loop(), name="signals-hearing")
        with super().listen(topic) as bell:
            yield bell

    async def close(self) -> None:
        """What was rung last is told."""
        self._closed = True
        while left := [task for task in self._tasks.values() if not task.done()]:
            for task in left:  # again and again: wait_for, which redis uses, may swallow one before Python 3.12
                task.cancel()
            await asyncio.wait(left, timeout=PAUSE)
        if self._due:
            await self._send(self._next_message())

    # Telling ----------------------------------------------------------------------------------------------

    async def _send_loop(self) -> None:
        while not self._closed:
            await self._rung.wait()
            self._rung.clear()
            await self._send(self._next_message())
            await asyncio.sleep(PAUSE)

    def _next_message(self) -> str:
        topics, self._due = self._due, set()
        message = " ".join([self._own, *topics])
        return message if len(message.encode()) <= LONGEST else f"{self._own} {EVERYTHING}"

    @abstractmethod
    async def _send(self, message: str) -> None:
        """Trouble is the link's."""

    # Hearing ----------------------------------------------------------------------------------------------

    async def _receive_loop(self) -> None:
        while not self._closed:
            try:
                async with contextlib.aclosing(self._receive()) as messages:
                    async for message in messages:
                        self._handle_message(message)
            except self._link.error_types() as error:
                self._link.report_failure("news", error)
            if self._live:
                self._live = False
                self._wake(self._bells)  # from here on they look more often
            await asyncio.sleep(AGAIN)

    @abstractmethod
    def _receive(self) -> AsyncGenerator[str]:
        """Messages as they come, until the connection is lost; calls `_connected` once there is one."""

    def _on_connect(self) -> None:
        self._live = True
        self._link.report_success("news")
        self._wake(self._bells)

    def _handle_message(self, message: str) -> None:
        sender, *topics = message.split(" ")
        if sender != self._own:
            self._wake(self._bells if EVERYTHING in topics else topics)

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            super().notify(topic)


# News over PostgreSQL: one connection listens, and one message at a time is sent over the pool.
#
# LISTEN needs a connection that stays: not one of a PgBouncer that hands connections out for a transaction.


class PostgresSignals(ServerSignals):
    """A ports.Signals."""

    def __init__(self, link: PostgresLink) -> None:
        super().__init__(link)
        self._server = link

    async def _send(self, message: str) -> None:
        async def notify(connection: "AsyncConnection[Any]") -> None:
            await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, message))

        await self._server.use("news", notify)

    async def _receive(self) -> AsyncGenerator[str]:
        async with await self._server.session() as connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            self._on_connect()
            while True:
                async for heard in connection.notifies(timeout=QUIET):
                    yield heard.payload
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.execute(b"")


# News over Redis or Valkey: publish and subscribe.

_CHANNEL = f"{REDIS_PREFIX}{CHANNEL}"


class RedisSignals(ServerSignals):
    """A ports.Signals."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__(link)
        self._server = link

    async def _send(self, message: str) -> None:
        await self._server.use("news", lambda client: client.publish(_CHANNEL, message))

    async def _receive(self) -> AsyncGenerator[str]:
        async with self._server.client.pubsub() as channel:
            await channel.subscribe(_CHANNEL)
            while True:
                heard = await channel.get_message(timeout=QUIET)
                if heard is None:  # silence, or a server that is gone without a word
                    await channel.ping()
                    heard = await channel.get_message(timeout=ANSWER_SECONDS)
                    if heard is None:
                        raise TimeoutError
                if heard["type"] == "subscribe":
                    self._on_connect()
                elif heard["type"] == "message":
                    yield heard["data"].decode(errors="replace")  # others may use the server, too
