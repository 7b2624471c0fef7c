"""A PostgreSQL server that processes share, for what they can do without.

A pool of its own, on the event loop: neither a run's storage nor the threads it works in wait for a cache.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from assay.errors import StorageError
from assay.storage.link import REST_SECONDS, Link
from assay.storage.postgres import ATTEMPT_SECONDS, patience

if TYPE_CHECKING:
    from psycopg import AsyncConnection

T = TypeVar("T")

_log = logging.getLogger("assay")
CONNECTIONS = 4
IDLE_SECONDS = 60.0
TURN_SECONDS = 30  # whoever decides about the same is waited for
HELD_SECONDS = 20  # a process that stops in the middle of a decision keeps the others waiting
_BEGIN = f"""
BEGIN; SET LOCAL lock_timeout = '{TURN_SECONDS}s'; SET LOCAL idle_in_transaction_session_timeout = '{HELD_SECONDS}s'
"""
_LOST = ("08", "57")  # classes of SQLSTATE: the connection, and a server that stops or starts
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


class PostgresLink(Link["AsyncConnection[Any]"]):
    """Nothing is connected to before its first use."""

    server = "database"
    seconds = 5.0  # a connection is a process there, which takes time to start

    def __init__(self, address: str, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        from psycopg_pool import AsyncConnectionPool

        super().__init__(on_notice, rest=rest)
        self._address = address
        self._options = {"autocommit": True, **patience(address)}
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            address, min_size=0, max_size=CONNECTIONS, max_idle=IDLE_SECONDS, timeout=self.seconds,
            kwargs=self._options, open=False, check=AsyncConnectionPool.check_connection,
            reconnect_timeout=ATTEMPT_SECONDS,
        )  # fmt: skip

    async def session(self) -> "AsyncConnection[Any]":
        """A connection outside the pool; who asks for it closes it."""
        from psycopg import AsyncConnection

        return await AsyncConnection.connect(self._address, **self._options)

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncIterator[None]:
        """Nobody else, in any process, is in here under the same name. StorageError where that cannot be had."""
        import psycopg

        try:
            await self._pool.open()
            connection = await self._pool.getconn(timeout=TURN_SECONDS)
        except self.faults() as error:
            raise _undecided(self._reason(error)) from error
        try:
            try:
                await connection.execute(_BEGIN)
                await connection.execute(_LOCK, (name,))
            except psycopg.Error as error:
                raise _undecided(self._reason(error)) from error
            yield
        finally:
            await self._let_go(connection)

    async def _let_go(self, connection: "AsyncConnection[Any]") -> None:
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

    def faults(self) -> tuple[type[Exception], ...]:
        from psycopg import Error

        return Error, OSError, TimeoutError

    async def _do(self, action: "Callable[[AsyncConnection[Any]], Awaitable[T]]") -> T:
        await self._pool.open()  # which does nothing where it is
        async with self._pool.connection() as connection:
            return await action(connection)

    def _is_gone(self, error: Any) -> bool:
        from psycopg import OperationalError
        from psycopg_pool import PoolTimeout, TooManyRequests

        if isinstance(error, PoolTimeout | TooManyRequests):  # all connections are in use
            return False
        state = getattr(error, "sqlstate", None)
        is_lost = isinstance(error, OperationalError) and (state is None or state[:2] in _LOST)
        return is_lost or isinstance(error, OSError)

    def _reason(self, error: Any) -> str:
        from psycopg_pool import PoolTimeout

        if isinstance(error, PoolTimeout):
            return "cannot be reached in time"
        if isinstance(error, TimeoutError):
            return "does not answer in time"
        if self._is_gone(error):
            return "cannot be reached"
        return f"answers with an error ({type(error).__name__})"


def _undecided(reason: str) -> StorageError:
    return StorageError(f"the database {reason}", help="Try again in a moment.", retryable=True)
