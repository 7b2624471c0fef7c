"""What processes share quickly and can do without: caches, signals and rate limits."""

import asyncio
import contextlib
import secrets
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from openassay.protocols import RateDecision, RateLimiter, Signals, TokenBucket
from openassay.settings import Settings
from openassay.storage.cache import CacheLayer, open_cache
from openassay.storage.locks import UserLock
from openassay.storage.shared_servers import REDIS_PREFIX, PostgresLink, RedisLink, ServerLink, ServerLinks, redis_key

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from redis.asyncio import Redis

# Signals say that something happened, never what. The receiver looks; a lost signal costs only time.

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

    _link: PostgresLink

    async def _send(self, message: str) -> None:
        values = (CHANNEL, message)
        await self._link.use("news", lambda connection: connection.execute("SELECT pg_notify(%s, %s)", values))

    async def _receive(self) -> AsyncGenerator[str]:
        async with await self._link.session() as connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            self._on_connect()
            while True:
                async for notification in connection.notifies(timeout=QUIET_SECONDS):
                    yield notification.payload
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.execute(b"")


class RedisSignals(ServerSignals):
    """Signals over publish and subscribe of Redis or Valkey."""

    _link: RedisLink

    async def _send(self, message: str) -> None:
        await self._link.use("news", lambda client: client.publish(REDIS_CHANNEL, message))

    async def _receive(self) -> AsyncGenerator[str]:
        async with self._link.client.pubsub() as channel:
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


# Rate limits are buckets of tokens that fill evenly, and each action takes one token.

MAX_BUCKETS = 20_000  # names that are remembered; one that is forgotten has a full bucket again
MIN_WAIT = 0.01  # seconds between two attempts at a token


@dataclass(slots=True)
class _Level:
    tokens: float
    at: float


class ProcessRates:
    """A RateLimiter of one process and one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[str, _Level] = OrderedDict()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def try_acquire(self, name: str, bucket: TokenBucket) -> RateDecision:
        return self._take_locally(name, bucket)

    async def acquire(self, name: str, bucket: TokenBucket) -> None:
        async with self._locks[name]:  # first come, first served, and one task of a process asks at a time
            while wait := (await self.try_acquire(name, bucket)).wait:  # noqa: ASYNC110  # no event to wait for
                await asyncio.sleep(max(wait, MIN_WAIT))

    def _take_locally(self, name: str, bucket: TokenBucket) -> RateDecision:
        now = self._clock()
        level = self._levels.setdefault(name, _Level(bucket.size, now))
        self._levels.move_to_end(name)
        if len(self._levels) > MAX_BUCKETS:
            self._levels.popitem(last=False)
        level.tokens = min(level.tokens + max(now - level.at, 0.0) * bucket.per_second, bucket.size)
        level.at = now
        is_taken = level.tokens >= 1
        level.tokens -= is_taken
        return _make_decision(is_taken, level.tokens, bucket)


class ServerRates(ProcessRates, ABC):
    """Buckets on a server, one for all processes. Where it cannot be asked, each process goes by what it has taken
    itself: losing a server gives nobody a full bucket."""

    async def try_acquire(self, name: str, bucket: TokenBucket) -> RateDecision:
        shared = await self._take_from_server(name, bucket)
        if shared is not None and shared.wait:
            return shared
        local = self._take_locally(name, bucket)
        return local if shared is None else shared

    @abstractmethod
    async def _take_from_server(self, name: str, bucket: TokenBucket) -> RateDecision | None:
        """Take a token there; None where trouble prevents it."""


def _make_decision(is_taken: bool, left: float, bucket: TokenBucket) -> RateDecision:
    return RateDecision(left, 0.0 if is_taken else (1 - left) / bucket.per_second)


# The row is locked before its level is read, and the clock is read after that: a process that waited for it sees what
# was taken meanwhile. A clock that is set back fills nothing, and counts from there.
_TAKE_SQL = """
INSERT INTO rates AS kept (name, level, at, taken) VALUES (%(name)s, %(size)s - 1, clock_timestamp(), TRUE)
ON CONFLICT (name) DO UPDATE SET (level, taken, at) = (
    SELECT CASE WHEN filled >= 1 THEN filled - 1 ELSE filled END, filled >= 1, clock_timestamp()
    FROM (SELECT least(
        %(size)s,
        kept.level + %(per_second)s * greatest(0, extract(epoch FROM clock_timestamp() - kept.at)::float8)
    ) AS filled) AS now
)
RETURNING taken, level
"""


class PostgresRates(ServerRates):
    """A RateLimiter in the database: one row per bucket, by the database's clock."""

    def __init__(self, link: PostgresLink) -> None:
        super().__init__()
        self._link = link

    async def _take_from_server(self, name: str, bucket: TokenBucket) -> RateDecision | None:
        values = {"name": name, "size": float(bucket.size), "per_second": float(bucket.per_second)}

        async def ask(connection: "AsyncConnection[Any]") -> RateDecision:
            [(is_taken, left)] = await (await connection.execute(_TAKE_SQL, values)).fetchall()
            return _make_decision(is_taken, left, bucket)

        return await self._link.use("rates", ask)


# A script, though the caches do without: a level must be read, filled and written in one step. WATCH does that too, in
# four rounds instead of one, and gives up where many come at once; a counter with an end (SET NX, INCR) lets twice as
# many through around that end. A server that forbids scripts says so, and processes count for themselves.
_TAKE_SCRIPT = """
local size, per_second = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = size
if kept[1] then
    level = math.min(size, tonumber(kept[1]) + per_second * math.max(0, now - tonumber(kept[2])))
end
local taken = 0
if level >= 1 then
    level = level - 1
    taken = 1
end
redis.call('HSET', KEYS[1], 'level', string.format('%.9f', level), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((size - level) / per_second * 1000) + 1000)
return {taken, string.format('%.9f', level)}
"""


class RedisRates(ServerRates):
    """A RateLimiter on a Redis or Valkey server, by its clock. A bucket that would be full expires, which is the
    same."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__()
        self._link = link
        self._script = link.client.register_script(_TAKE_SCRIPT)

    async def _take_from_server(self, name: str, bucket: TokenBucket) -> RateDecision | None:
        async def ask(_: "Redis") -> RateDecision:
            args = [float(bucket.size), float(bucket.per_second)]
            is_taken, left = cast("list[Any]", await self._script(keys=[redis_key("rate", name)], args=args))
            return _make_decision(bool(is_taken), float(left), bucket)

        return await self._link.use("rates", ask)


class SharedServices(NamedTuple):
    cache: CacheLayer
    signals: Signals
    rates: RateLimiter
    shared_rates: RateLimiter | None  # the same, where several processes take from them
    process_rates: RateLimiter  # each process counts for itself
    user_lock: UserLock


@contextlib.asynccontextmanager
async def open_shared_services(
    settings: Settings, folder: Path, address: str | None, on_notice: Callable[[str], None]
) -> AsyncIterator[SharedServices]:
    """Open those of the settings; nothing is connected to before its first use. `address` is that of the database,
    where it is PostgreSQL."""
    async with contextlib.AsyncExitStack() as stack:
        links = ServerLinks(settings.keys.redis_url, address, on_notice)
        stack.push_async_callback(links.close)
        cache = open_cache(settings.cache, folder, links, on_notice)
        stack.push_async_callback(cache.close)
        backend = settings.fleet.signals
        if backend == "auto":
            backend = "redis" if links.has_redis else "postgres" if links.has_postgres else "process"
        signals, rates = ProcessSignals(), ProcessRates()
        if backend == "redis":
            redis = links.redis("fleet.signals")
            signals, rates = RedisSignals(redis), RedisRates(redis)
        elif backend == "postgres":
            postgres = links.postgres("fleet.signals")
            signals, rates = PostgresSignals(postgres), PostgresRates(postgres)
        stack.push_async_callback(signals.close)
        user_lock = UserLock(links.postgres("persistence.backend") if links.has_postgres else None)
        shared = None if backend == "process" else rates
        yield SharedServices(cache, signals, rates, shared, ProcessRates(), user_lock)
