"""The PostgreSQL and Redis servers that processes share for what each can do without: caches, rates and signals.

Each has a pool of its own on the event loop, so that neither a run's storage nor its threads wait for a cache. A server
that is gone is gone for all three and reported once; one that answers and refuses, because its memory is full or its
user may not do that, is left alone for that purpose only.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from pydantic import SecretStr

from openassay.errors import ConfigurationError, StorageError
from openassay.storage.postgres import ATTEMPT_SECONDS, connect_options

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from redis.asyncio import Redis

C = TypeVar("C")
T = TypeVar("T")

Purpose = Literal["caches", "rates", "news"]
REST_SECONDS = 10.0  # without a server after it failed
POSTGRES_CONNECTIONS = 4
POOL_IDLE_SECONDS = 60.0
LOCK_SECONDS = 30  # to wait for another process that holds the same lock
LOCK_HOLD_SECONDS = 20  # after which a process that stops in the middle loses its lock
REDIS_PREFIX = "openassay:"
REDIS_CONNECTIONS = 32
CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 1.5

_log = logging.getLogger("openassay")
_UNTIL_BACK = "until it is back, this process keeps its own caches and rates and polls for news"
_BEGIN = f"""
BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS}s';
SET LOCAL idle_in_transaction_session_timeout = '{LOCK_HOLD_SECONDS}s'
"""
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_CONNECTION_STATES = ("08", "57")  # classes of SQLSTATE: the connection, and a server that stops or starts


class Outage:
    """Trouble with something optional: reported when it begins, then silent until it is over. Meanwhile nobody waits
    for it."""

    def __init__(self, on_notice: Callable[[str], None], *, rest: float) -> None:
        self._on_notice = on_notice
        self._rest = rest
        self._lasts = False
        self._until = 0.0

    @property
    def in_backoff(self) -> bool:
        return self._lasts and monotonic() < self._until

    def begin(self, notice: str) -> None:
        self._until = monotonic() + self._rest
        if not self._lasts:
            self._lasts = True
            self._on_notice(notice)

    def end(self) -> None:
        self._lasts = False


class ServerLink(ABC, Generic[C]):
    """A shared server; `C` is the client or connection that actions are given."""

    server: str  # its name in notices
    seconds = 3.0  # that one call may take

    def __init__(self, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        self._gone = Outage(on_notice, rest=rest)
        self._refusals = {purpose: Outage(on_notice, rest=rest) for purpose in get_args(Purpose)}
        self._closed = False

    async def use(self, purpose: Purpose, action: Callable[[C], Awaitable[T]]) -> T | None:
        """Run an action on the server; None where trouble prevents it."""
        if self._closed or self._gone.in_backoff or self._refusals[purpose].in_backoff:
            return None
        try:
            async with asyncio.timeout(self.seconds):
                result = await self._run(action)
        except self.error_types() as error:
            self.report_failure(purpose, error)
            return None
        self.report_success(purpose)
        return result

    def report_failure(self, purpose: Purpose, error: Exception) -> None:
        is_gone, reason = self._explain(error)
        if is_gone and not self._closed:
            self._gone.begin(f"The {self.server} {reason}; {_UNTIL_BACK}.")
        elif not self._closed:
            self._refusals[purpose].begin(f"The {self.server} {reason} when used for {purpose}; continuing without.")

    def report_success(self, purpose: Purpose) -> None:
        self._gone.end()
        self._refusals[purpose].end()

    @abstractmethod
    def error_types(self) -> tuple[type[Exception], ...]:
        """Return the errors of a server, as opposed to faults of our own."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def _run(self, action: Callable[[C], Awaitable[T]]) -> T: ...

    def _explain(self, error: Any) -> tuple[bool, str]:
        """Say whether the server is gone, and what is wrong in words of our own: addresses hold passwords."""
        if isinstance(error, TimeoutError):
            return True, "does not answer in time"
        if isinstance(error, OSError):
            return True, "cannot be reached"
        return False, f"answers with an error ({type(error).__name__})"


class PostgresLink(ServerLink["AsyncConnection[Any]"]):
    """A PostgreSQL server, connected to on first use."""

    server = "database"
    seconds = 5.0  # a connection is a process there, which takes time to start

    def __init__(self, address: str, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        from psycopg_pool import AsyncConnectionPool

        super().__init__(on_notice, rest=rest)
        self._address = address
        self._options = {"autocommit": True, **connect_options(address)}
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            address,
            min_size=0,
            max_size=POSTGRES_CONNECTIONS,
            max_idle=POOL_IDLE_SECONDS,
            timeout=self.seconds,
            kwargs=self._options,
            open=False,
            check=AsyncConnectionPool.check_connection,
            reconnect_timeout=ATTEMPT_SECONDS,
        )

    async def session(self) -> "AsyncConnection[Any]":
        """Open a connection outside the pool, which the caller closes."""
        from psycopg import AsyncConnection

        return await AsyncConnection.connect(self._address, **self._options)

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold the lock of that name against all processes; StorageError where it cannot be had."""
        async with AsyncExitStack() as stack:
            try:
                await self._pool.open()
                connection = await self._pool.getconn(timeout=LOCK_SECONDS)
                stack.push_async_callback(self._release, connection)
                await connection.execute(_BEGIN)
                await connection.execute(_LOCK, (name,))
            except self.error_types() as error:
                _, reason = self._explain(error)
                raise StorageError(f"the database {reason}", help="Try again in a moment.", retryable=True) from error
            yield

    async def _release(self, connection: "AsyncConnection[Any]") -> None:
        import psycopg

        try:
            await connection.rollback()  # which frees the lock, as the end of the connection does
        except psycopg.Error as error:
            _log.warning("the database %s while a lock was held", self._explain(error)[1])
        finally:
            await self._pool.putconn(connection)

    async def close(self) -> None:
        self._closed = True
        await self._pool.close()

    def error_types(self) -> tuple[type[Exception], ...]:
        from psycopg import Error

        return Error, OSError, TimeoutError

    async def _run(self, action: "Callable[[AsyncConnection[Any]], Awaitable[T]]") -> T:
        await self._pool.open()  # does nothing where it is open
        async with self._pool.connection() as connection:
            return await action(connection)

    def _explain(self, error: Any) -> tuple[bool, str]:
        from psycopg import OperationalError
        from psycopg_pool import PoolTimeout, TooManyRequests

        if isinstance(error, PoolTimeout):  # all connections are in use
            return False, "cannot be reached in time"
        state = getattr(error, "sqlstate", None) or _CONNECTION_STATES[0]
        is_lost = isinstance(error, OperationalError) and state[:2] in _CONNECTION_STATES
        return super()._explain(OSError() if is_lost and not isinstance(error, TooManyRequests) else error)


class RedisLink(ServerLink["Redis"]):
    server = "Redis server"

    def __init__(self, url: SecretStr, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import ConnectionError

        super().__init__(on_notice, rest=rest)
        try:
            pool = BlockingConnectionPool.from_url(
                url.get_secret_value(),
                max_connections=REDIS_CONNECTIONS,
                timeout=self.seconds,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=ANSWER_SECONDS,
                # Once: a connection that lay idle may have been closed by the server.
                retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
            )
        except ValueError:
            raise ConfigurationError(
                "REDIS_URL is not the address of a Redis server",
                help="Write it as redis://user:password@host:6379/0, or rediss:// for an encrypted connection.",
            ) from None
        self.client = Redis.from_pool(pool)

    async def close(self) -> None:
        self._closed = True
        await self.client.aclose()

    def error_types(self) -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError

        return RedisError, OSError, TimeoutError

    async def _run(self, action: "Callable[[Redis], Awaitable[T]]") -> T:
        return await action(self.client)

    def _explain(self, error: Any) -> tuple[bool, str]:
        from redis import exceptions

        refusals = exceptions.AuthenticationError | exceptions.AuthorizationError | exceptions.NoPermissionError
        if isinstance(error, refusals):
            is_lost = isinstance(error, exceptions.ConnectionError)
            return is_lost, "refuses the password in REDIS_URL, or what its user asks"
        if isinstance(error, exceptions.TimeoutError):
            return True, "does not answer in time"
        return super()._explain(OSError() if isinstance(error, exceptions.ConnectionError) else error)


def redis_key(kind: Literal["value", "count", "rate"], name: str) -> str:
    """Return the key of a name. It is hashed: names hold queries, addresses and people, and the server is shared."""
    return f"{REDIS_PREFIX}{kind}:{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


class ServerLinks:
    """One link to each server that the settings name. `address` is that of the database, where it is PostgreSQL."""

    def __init__(self, redis_url: SecretStr | None, address: str | None, on_notice: Callable[[str], None]) -> None:
        self.has_redis = redis_url is not None
        self.has_postgres = address is not None
        self._redis_url = redis_url
        self._address = address
        self._on_notice = on_notice
        self._redis: RedisLink | None = None
        self._postgres: PostgresLink | None = None

    def redis(self, setting: str) -> RedisLink:
        """Return the link to Redis; `setting` is the one that asks for it."""
        if self._redis_url is None:
            raise ConfigurationError(
                f"{setting} is redis, and there is no REDIS_URL",
                help=f"Set REDIS_URL, as redis://host:6379/0, or set {setting} to something else.",
            )
        self._redis = self._redis or RedisLink(self._redis_url, self._on_notice)
        return self._redis

    def postgres(self, setting: str) -> PostgresLink:
        """Return the link to PostgreSQL; `setting` is the one that asks for it."""
        if self._address is None:
            raise ConfigurationError(
                f"{setting} is postgres, and the database is not PostgreSQL",
                help=f"Set persistence.backend to postgres, or set {setting} to something else.",
            )
        self._postgres = self._postgres or PostgresLink(self._address, self._on_notice)
        return self._postgres

    async def close(self) -> None:
        for link in (self._redis, self._postgres):
            if link is not None:
                await link.close()
