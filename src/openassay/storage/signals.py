"""Signals between processes: that something happened, never what. The receiver looks; a lost signal costs only time."""

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
REDIS_CHANNEL = f"{REDIS_PREFIX}{CHANNEL}"
SEND_PAUSE = 0.03  # seconds between two messages of a process: topics notified meanwhile go with the next
RECONNECT_SECONDS = 1.0
QUIET_SECONDS = 10.0  # of silence after which to ask whether the server is still there
ANSWER_SECONDS = 3.0
MAX_MESSAGE_BYTES = 7_000  # PostgreSQL takes 8,000
EVERYTHING = "*"  # stands for topics that are too many for a message


class ProcessSignals:
    """Signals of one process and one event loop."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = {}

    @property
    def is_live(self) -> bool:
        return False

    def notify(self, topic: str) -> None:
        for event in self._listeners.get(topic, ()):
            event.set()

    @contextlib.contextmanager
    def listen(self, topic: str) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        events = self._listeners.setdefault(topic, set())
        events.add(event)
        try:
            yield event
        finally:
            events.discard(event)
            if not events and self._listeners.get(topic) is events:
                del self._listeners[topic]

    async def close(self) -> None:
        """Nothing is open."""


class ServerSignals(ProcessSignals, ABC):
    """Signals over a server. It is connected to on the first use, and again whenever the connection was lost; listeners
    are woken then, since they may have missed something."""

    def __init__(self, link: ServerLink[Any]) -> None:
        super().__init__()
        self._link = link
        self._id = secrets.token_hex(4)  # this process ignores its own messages: it was notified directly
        self._live = self._closed = False
        self._pending: set[str] = set()
        self._notified = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._receiver: asyncio.Task[None] | None = None

    @property
    def is_live(self) -> bool:
        return self._live

    def notify(self, topic: str) -> None:
        super().notify(topic)
        if not self._closed:
            self._pending.add(topic)
            self._notified.set()
            if self._sender is None:
                self._sender = asyncio.create_task(self._send_loop(), name="signals-sender")

    @contextlib.contextmanager
    def listen(self, topic: str) -> Iterator[asyncio.Event]:
        if self._receiver is None and not self._closed:
            self._receiver = asyncio.create_task(self._receive_loop(), name="signals-receiver")
        with super().listen(topic) as event:
            yield event

    async def close(self) -> None:
        """Send what is pending, and disconnect."""
        self._closed = True
        while tasks := [task for task in (self._sender, self._receiver) if task and not task.done()]:
            for task in tasks:  # again and again: wait_for, which redis uses, may swallow one before Python 3.12
                task.cancel()
            await asyncio.wait(tasks, timeout=SEND_PAUSE)
        if self._pending:
            await self._send_pending()

    async def _send_loop(self) -> None:
        while not self._closed:
            await self._notified.wait()
            self._notified.clear()
            await self._send_pending()
            await asyncio.sleep(SEND_PAUSE)

    async def _send_pending(self) -> None:
        topics, self._pending = self._pending, set()
        message = " ".join([self._id, *topics])
        await self._send(message if len(message.encode()) <= MAX_MESSAGE_BYTES else f"{self._id} {EVERYTHING}")

    @abstractmethod
    async def _send(self, message: str) -> None:
        """Send a message; the link handles trouble."""

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
                self._wake(self._listeners)  # from here on they poll more often
            await asyncio.sleep(RECONNECT_SECONDS)

    def _handle_message(self, message: str) -> None:
        sender, *topics = message.split(" ")
        if sender != self._id:
            self._wake(self._listeners if EVERYTHING in topics else topics)

    @abstractmethod
    def _receive(self) -> AsyncGenerator[str]:
        """Yield messages until the connection is lost; calls `_on_connect` once it is there."""

    def _on_connect(self) -> None:
        self._live = True
        self._link.report_success("news")
        self._wake(self._listeners)

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            super().notify(topic)


class PostgresSignals(ServerSignals):
    """Signals over LISTEN and NOTIFY: one connection listens, messages are sent over the pool. LISTEN needs a
    connection that stays, not one of a PgBouncer that hands connections out for a transaction."""

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
                async for notification in connection.notifies(timeout=QUIET_SECONDS):
                    yield notification.payload
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.execute(b"")


class RedisSignals(ServerSignals):
    """Signals over publish and subscribe of Redis or Valkey."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__(link)
        self._server = link

    async def _send(self, message: str) -> None:
        await self._server.use("news", lambda client: client.publish(REDIS_CHANNEL, message))

    async def _receive(self) -> AsyncGenerator[str]:
        async with self._server.client.pubsub() as channel:
            await channel.subscribe(REDIS_CHANNEL)
            while True:
                received = await channel.get_message(timeout=QUIET_SECONDS)
                if received is None:  # silence, or a server that has vanished
                    await channel.ping()
                    received = await channel.get_message(timeout=ANSWER_SECONDS)
                    if received is None:
                        raise TimeoutError
                if received["type"] == "subscribe":
                    self._on_connect()
                elif received["type"] == "message":
                    yield received["data"].decode(errors="replace")  # others may use the server, too
