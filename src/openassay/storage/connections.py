"""A PostgreSQL server that processes share, for what they can do without.

A pool of its own, on the event loop: neither a run's storage nor the threads it works in wait for a cache.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from pydantic import SecretStr

from openassay.errors import ConfigurationError, StorageError
from openassay.storage.postgres import ATTEMPT_SECONDS, connect_options

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from redis.asyncio import Redis


# Trouble below something that one can do without: told when it begins, then silent until it is over.


class Outage:
    """Meanwhile nobody waits for it."""

    def __init__(
        self, on_notice: Callable[[str], None], *, rest: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._on_notice = on_notice
        self._rest = rest
        self._clock = clock
        self._lasts = False
        self._until = 0.0

    @property
    def in_backoff(self) -> bool:
        return self._lasts and self._clock() < self._until

    def begin(self, notice: str) -> None:
        self._until = self._clock() + self._rest
        if not self._lasts:
            self._lasts = True
            self._on_notice(notice)

    def end(self) -> None:
        self._lasts = False


# A server that processes share, for what each can do without: trouble with it is told once, and felt by nobody.
#
# Caches, rates and news go over one link. A server that is gone is gone for all of them and told once; one that answers
# and refuses, since its memory is full or a user of it may not do that, is left alone for that purpose only.

C = TypeVar("C")
T = TypeVar("T")

Purpose = Literal["caches", "rates", "news"]
REST_SECONDS = 10.0  # without the server after it failed
_WITHOUT = "until it is back, caches and rates are this process's own, and news is looked for"


class ServerLink(ABC, Generic[C]):
    """`C` is what the server is spoken to with."""

    server: str  # what it is called in notices
    seconds = 3.0  # one call may take

    def __init__(self, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        self._gone = Outage(on_notice, rest=rest)
        self._refusals = {purpose: Outage(on_notice, rest=rest) for purpose in get_args(Purpose)}
        self._closed = False

    async def use(self, purpose: Purpose, action: Callable[[C], Awaitable[T]]) -> T | None:
        """None where trouble stands in the way."""
        if self._closed or self._gone.in_backoff or self._refusals[purpose].in_backoff:
            return None
        try:
            async with asyncio.timeout(self.seconds):
                done = await self._run(action)
        except self.error_types() as error:
            self.report_failure(purpose, error)
            return None
        self.report_success(purpose)
        return done

    def report_failure(self, purpose: Purpose, error: Exception) -> None:
        if self._closed:
            return
        if self._is_unreachable(error):
            self._gone.begin(f"The {self.server} {self._reason(error)}; {_WITHOUT}.")
        else:
            self._refusals[purpose].begin(
                f"The {self.server} {self._reason(error)} where it is used for {purpose}; going on without it there."
            )

    def report_success(self, purpose: Purpose) -> None:
        self._gone.end()
        self._refusals[purpose].end()

    @abstractmethod
    def error_types(self) -> tuple[type[Exception], ...]:
        """What goes wrong with a server, and is no fault of ours."""

    @abstractmethod
    async def _run(self, action: Callable[[C], Awaitable[T]]) -> T: ...

    @abstractmethod
    def _is_unreachable(self, error: Any) -> bool: ...

    @abstractmethod
    def _reason(self, error: Any) -> str:
        """In words of our own: addresses hold passwords."""

    @abstractmethod
    async def close(self) -> None: ...


_log = logging.getLogger("openassay")
POSTGRES_CONNECTIONS = 4
POOL_IDLE_SECONDS = 60.0
LOCK_SECONDS = 30  # whoever decides about the same is waited for
LOCK_HOLD_SECONDS = 20  # a process that stops in the middle of a decision keeps the others waiting
_BEGIN = f"""
BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS}s';
SET LOCAL idle_in_transaction_session_timeout = '{LOCK_HOLD_SECONDS}s'
"""
_CONNECTION_STATES = ("08", "57")  # classes of SQLSTATE: the connection, and a server that stops or starts
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


class PostgresLink(ServerLink["AsyncConnection[Any]"]):
    """Nothing is connected to before its first use."""

    server = "database"
    seconds = 5.0  # a connection is a process there, which takes time to start

    def __init__(self, address: str, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        from psycopg_pool import AsyncConnectionPool

        super().__init__(on_notice, rest=rest)
        self._address = address
        self._options = {"autocommit": True, **connect_options(address)}
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            address, min_size=0, max_size=POSTGRES_CONNECTIONS, max_idle=POOL_IDLE_SECONDS, timeout=self.seconds,
            kwargs=self._options, open=False, check=AsyncConnectionPool.check_connection,
            reconnect_timeout=ATTEMPT_SECONDS,
        )  # fmt: skip

    async def session(self) -> "AsyncConnection[Any]":
        """A connection outside the pool; who asks for it closes it."""
        from psycopg import AsyncConnection

        return await AsyncConnection.connect(self._address, **self._options)

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Nobody else, in any process, is in here under the same name. StorageError where that cannot be had."""
        import psycopg

        try:
            await self._pool.open()
            connection = await self._pool.getconn(timeout=LOCK_SECONDS)
        except self.error_types() as error:
            raise _lock_error(self._reason(error)) from error
        try:
            try:
                await connection.execute(_BEGIN)
                await connection.execute(_LOCK, (name,))
            except psycopg.Error as error:
                raise _lock_error(self._reason(error)) from error
            yield
        finally:
            await self._release(connection)

    async def _release(self, connection: "AsyncConnection[Any]") -> None:
        """With the end of its transaction the lock is free, and so it is with that of the connection."""
        import psycopg

        try:
            await connection.rollback()
        except psycopg.Error as error:
            _log.warning("the database %s while something was decided", self._reason(error))
        finally:
            await self._pool.putconn(connection)

    async def close(self) -> None:
        self._closed = True
        await self._pool.close()

    def error_types(self) -> tuple[type[Exception], ...]:
        from psycopg import Error

        return Error, OSError, TimeoutError

    async def _run(self, action: "Callable[[AsyncConnection[Any]], Awaitable[T]]") -> T:
        await self._pool.open()  # which does nothing where it is
        async with self._pool.connection() as connection:
            return await action(connection)

    def _is_unreachable(self, error: Any) -> bool:
        from psycopg import OperationalError
        from psycopg_pool import PoolTimeout, TooManyRequests

        if isinstance(error, PoolTimeout | TooManyRequests):  # all connections are in use
            return False
        state = getattr(error, "sqlstate", None)
        is_lost = isinstance(error, OperationalError) and (state is None or state[:2] in _CONNECTION_STATES)
        return is_lost or isinstance(error, OSError)

    def _reason(self, error: Any) -> str:
        from psycopg_pool import PoolTimeout

        if isinstance(error, PoolTimeout):
            return "cannot be reached in time"
        if isinstance(error, TimeoutError):
            return "does not answer in time"
        if self._is_unreachable(error):
            return "cannot be reached"
        return f"answers with an error ({type(error).__name__})"


def _lock_error(reason: str) -> StorageError:
    return StorageError(f"the database {reason}", help="Try again in a moment.", retryable=True)


# A Redis or Valkey server that processes share.

REDIS_PREFIX = "openassay:"
CONNECT_SECONDS, ANSWER_SECONDS = 1.0, 1.5
REDIS_CONNECTIONS = 32


class RedisLink(ServerLink["Redis"]):
    server = "Redis server"

    def __init__(self, url: SecretStr, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        super().__init__(on_notice, rest=rest)
        self.client = _make_client(url)

    async def close(self) -> None:
        self._closed = True
        await self.client.aclose()

    def error_types(self) -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError

        return RedisError, OSError, TimeoutError

    async def _run(self, action: "Callable[[Redis], Awaitable[T]]") -> T:
        return await action(self.client)

    def _is_unreachable(self, error: Any) -> bool:
        from redis import exceptions

        return isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError)

    def _reason(self, error: Any) -> str:
        from redis import exceptions

        refusals = exceptions.AuthenticationError | exceptions.AuthorizationError | exceptions.NoPermissionError
        if isinstance(error, refusals):
            return "refuses the password in REDIS_URL, or what its user asks"
        if isinstance(error, exceptions.TimeoutError | TimeoutError):
            return "does not answer in time"
        if isinstance(error, exceptions.ConnectionError | OSError):
            return "cannot be reached"
        return f"answers with an error ({type(error).__name__})"


def redis_key(kind: Literal["value", "count", "rate"], name: str) -> str:
    """Names hold queries, addresses and people, which are nobody's business on a shared server."""
    return f"{REDIS_PREFIX}{kind}:{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


def _make_client(url: SecretStr) -> "Redis":
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError

    try:
        pool = BlockingConnectionPool.from_url(
            url.get_secret_value(),
            max_connections=REDIS_CONNECTIONS,
            timeout=RedisLink.seconds,
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
    return Redis.from_pool(pool)


# The servers that the settings name for what processes share.


class ServerLinks:
    """One link to each, for all that goes over it. `address` is that of the database, where it is PostgreSQL."""

    def __init__(self, redis_url: SecretStr | None, address: str | None, on_notice: Callable[[str], None]) -> None:
        self.has_redis = redis_url is not None
        self.has_postgres = address is not None
        self._redis_url = redis_url
        self._address = address
        self._on_notice = on_notice
        self._redis: RedisLink | None = None
        self._postgres: PostgresLink | None = None

    def redis(self, setting: str) -> RedisLink:
        """`setting` is what asks for it."""
        if self._redis is None:
            if self._redis_url is None:
                raise ConfigurationError(
                    f"{setting} is redis, and there is no REDIS_URL",
                    help=f"Set REDIS_URL, as redis://host:6379/0, or set {setting} to something else.",
                )
            self._redis = RedisLink(self._redis_url, self._on_notice)
        return self._redis

    def postgres(self, setting: str) -> PostgresLink:
        if self._postgres is None:
            if self._address is None:
                raise ConfigurationError(
                    f"{setting} is postgres, and the database is not PostgreSQL",
                    help=f"Set persistence.backend to postgres, or set {setting} to something else.",
                )
            self._postgres = PostgresLink(self._address, self._on_notice)
        return self._postgres

    async def close(self) -> None:
        for link in (self._redis, self._postgres):
            if link is not None:
                await link.close()
