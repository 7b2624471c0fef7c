"""A PostgreSQL database: its pool of connections, and its transactions."""

import logging
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import version
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from assay.errors import ConfigurationError, StorageError, install
from assay.storage.database import Connection, Result, Values
from assay.storage.dialect import Translated, line
from assay.storage.migrating import POSTGRES
from assay.storage.upgrade import migrate as upgrade

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS = 10
START_SECONDS = 5.0  # for a server that has refused once: it may be starting
WAIT_SECONDS = 30.0  # for a server that is restarted, or a connection that is free
# A pool waits twice as long after each attempt, up to minutes: it gives up soon, and whoever waits has it begin anew.
ATTEMPT_SECONDS = 4.0
IDLE_SECONDS = 15.0  # a transaction may stand still before the server ends it: others wait for what it has locked
# A server that is gone without a word is noticed in time, too; what the address says of these counts.
_PATIENCE = {
    "connect_timeout": 15, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
# And the server notices one of us that is gone: by itself it would keep what that has locked for two hours.
SEEN_TO = b"""
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 30000
"""
_READS = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_HOPELESS = re.compile(r"(?P<who>authentication|pg_hba|role .* does not exist)|does not exist")
_REACH = "Check that the server runs, and DATABASE_URL or persistence.connection_string."
_OF_ITS_OWN = "Name an empty database, or create one of Assay's own."
_HELP = {  # by SQLSTATE, or the class it begins with
    "08": _REACH,
    "25006": "The server takes no changes: name the one that does.",
    "25P03": "This process stood still for too long; nothing was changed. Try again.",
    "28": "Check the user and the password of the connection string.",
    "3F000": "Let the user create tables in the schema (GRANT), or name another one in its search_path.",
    "3D000": "Create it first: CREATE DATABASE name.",
    "40": "Others were changing the same rows; try again.",
    "42501": "Let the user create and change tables there (GRANT), or name another one.",
    "42703": _OF_ITS_OWN,
    "42P01": POSTGRES.help,
    "42P07": _OF_ITS_OWN,
    "53100": "The server's disk is full: free some space and try again.",
    "53": "The server is short of memory or connections; try again, or raise its limits.",
    "57": _REACH,
    "55P03": "Somebody else is at it: try again in a moment.",
    "58": "Check the server's disk and its log.",
    "XX": POSTGRES.help,
}


class PostgresDatabase:
    """A storage Database. Open from any thread; a thread keeps its connection for the length of a transaction."""

    def __init__(
        self, address: str, *, connections: int = MOST_CONNECTIONS, idle_seconds: float = IDLE_SECONDS,
        migrate: bool = True,
    ) -> None:  # fmt: skip
        self._address = address
        self._name = _without_password(address)
        self._own = threading.local()
        self._idle = f"SET idle_in_transaction_session_timeout = {math.ceil(idle_seconds * 1000)}".encode()
        self._sessions: list[PsycopgConnection[Any]] = []
        self._pool = self._opened(address, connections)
        with ExitStack() as undo:
            undo.callback(self.close)
            if migrate:
                upgrade(self)
            undo.pop_all()

    @property
    def name(self) -> str:
        return self._name

    @property
    def for_update(self) -> str:
        return " FOR UPDATE"

    def next_id(self, connection: Connection, table: str) -> int:
        return int(connection.execute("SELECT nextval(?) AS id", (f"{table}_id",)).fetchone()["id"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connections(self) -> dict[str, int]:
        """Of the pool, and how many wait for one."""
        told = self._pool.get_stats()
        idle = told["pool_available"]
        return {"in_use": told["pool_size"] - idle, "idle": idle, "waiting": told["requests_waiting"]}

    def scrub(self) -> None:
        """The server's own vacuum does it, in its own time."""

    def close(self) -> None:
        self._pool.close()
        while self._sessions:
            self._sessions.pop().close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        with self.translating():
            if current := getattr(self._own, "connection", None):
                yield current
            else:
                with closing(_Reading(self._alive, self._pool.putconn)) as reading:
                    yield reading

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.translating():
            if current := getattr(self._own, "connection", None):
                # As on SQLite: a part that fails spoils the whole, even if its error is caught in between.
                before, self._own.spoilt = self._own.spoilt, True
                yield current
                self._own.spoilt = before
                return
            with self._lent() as connection, connection.transaction():
                self._own.connection, self._own.spoilt = Translated(connection), False
                try:
                    yield self._own.connection
                    self._check_whole(connection)
                finally:
                    self._own.connection = None

    @contextmanager
    def _lent(self) -> "Iterator[PsycopgConnection[Any]]":
        connection = self._alive()
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    def _alive(self) -> "PsycopgConnection[Any]":
        """One that answers. After a restart of the server all in the pool are dead, and go at once: the pool's own
        check would wait longer and longer at each, half a minute for five of them."""
        import psycopg
        from psycopg_pool import ConnectionPool, PoolTimeout

        ends = monotonic() + WAIT_SECONDS
        while True:
            left = ends - monotonic()
            try:
                connection = self._pool.getconn(min(max(left, 0.0), ATTEMPT_SECONDS + 1))
            except PoolTimeout:
                if left <= ATTEMPT_SECONDS + 1:
                    raise
                continue
            try:
                ConnectionPool.check_connection(connection)
            except psycopg.OperationalError:
                self._pool.putconn(connection)
            else:
                return connection

    def _check_whole(self, connection: "PsycopgConnection[Any]") -> None:
        from psycopg.pq import TransactionStatus

        # COMMIT after a failed statement would roll back and say nothing.
        if self._own.spoilt or connection.info.transaction_status == TransactionStatus.INERROR:
            raise StorageError(
                f"{self.name}: a step of the transaction failed, so nothing of it was kept",
                help="Let the first error through; it says what went wrong.",
            )

    def session(self) -> "PsycopgConnection[Any]":
        """A connection of its own, outside the pool, for locks that last as long as their holder; closed with the
        database at the latest."""
        import psycopg

        with self.translating():
            session = psycopg.connect(self._address, autocommit=True, **patience(self._address))
            session.execute(SEEN_TO)
        self._sessions = [*(other for other in self._sessions if not other.closed), session]
        return session

    @contextmanager
    def alone(self, what: str, seconds: float) -> Iterator[None]:
        """Nobody else who asks for the same is in here, on whatever machine; StorageError where one stays longer than
        that. Who dies gives it back, and who stands still has it taken away."""
        with self.translating(), closing(self.session()) as session:
            session.execute(self._idle)
            session.execute(f"SET lock_timeout = {round(seconds * 1000)}".encode())
            with session.transaction():
                session.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (what,))
                yield

    def _opened(self, address: str, connections: int) -> "ConnectionPool[PsycopgConnection[Any]]":
        try:
            from psycopg.rows import dict_row
            from psycopg_pool import ConnectionPool, PoolTimeout
        except ImportError as error:
            raise ConfigurationError("PostgreSQL needs the extra `postgres`", help=install("postgres")) from error
        # autocommit: a reading connection must not sit in a transaction, and writing begins its own.
        reason = self._refusal()
        options = {"autocommit": True, "row_factory": dict_row, **patience(address)}
        pool = ConnectionPool(
            address, min_size=1, max_size=connections, timeout=WAIT_SECONDS, kwargs=options, open=False,
            configure=self._prepare, reconnect_timeout=ATTEMPT_SECONDS,
        )  # fmt: skip
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # each try at a server that is gone would be a line
        pool.open()
        try:
            pool.wait(START_SECONDS if reason else WAIT_SECONDS)
        except PoolTimeout as error:
            pool.close()
            raise StorageError(
                f"{self._name} cannot be reached: {reason or 'too many connections'}", help=_REACH, retryable=True
            ) from error
        return pool

    def _prepare(self, connection: "PsycopgConnection[Any]") -> None:
        connection.execute(self._idle)
        connection.execute(SEEN_TO)

    def _refusal(self) -> str:
        """Asked before the pool, which waits for what will never be and then says only that time is up."""
        import psycopg

        try:
            psycopg.connect(self._address, connect_timeout=int(WAIT_SECONDS)).close()
        except psycopg.ProgrammingError as error:
            raise ConfigurationError(
                "the connection string is not one of PostgreSQL", help="Write postgresql://user:password@host/name."
            ) from error
        except psycopg.OperationalError as error:
            reason = line(error).rsplit("FATAL:")[-1].strip()
            if found := _HOPELESS.search(reason):
                help = _HELP["28"] if found["who"] else _HELP["3D000"]
                raise ConfigurationError(f"{self._name}: {reason}", help=help) from error
            return reason
        return ""

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Errors of psycopg leave as StorageError."""
        import psycopg
        from psycopg_pool import PoolClosed, PoolTimeout

        try:
            yield
        except PoolClosed as error:
            raise StorageError(f"{self.name} is closed", help="Open it again.") from error
        except PoolTimeout as error:
            raise StorageError(f"{self.name} cannot be reached", help=_REACH, retryable=True) from error
        except psycopg.Error as error:
            # Or restarting, out of disk, a deadlock; or this process stood still in the middle of a transaction.
            gone = isinstance(error, psycopg.OperationalError | psycopg.errors.IdleInTransactionSessionTimeout)
            raise StorageError(f"{self.name}: {line(error)}", help=_advice(error), retryable=gone) from error
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{self.name}: text with a lone surrogate cannot be stored",
                help="Decode the text properly where it comes in.",
            ) from error


class _Reading:
    """A storage Connection for reading. Where the server has gone away meanwhile, a SELECT is asked again on another
    connection, for which a server that restarts is waited for: it changes nothing."""

    def __init__(
        self, take: "Callable[[], PsycopgConnection[Any]]", give_back: "Callable[[PsycopgConnection[Any]], None]"
    ) -> None:
        self._take = take
        self._give_back = give_back
        self._connection: PsycopgConnection[Any] | None = take()

    def execute(self, sql: str, values: Values = (), /) -> Result:
        import psycopg

        connection = self._connected()
        try:
            return Translated(connection).execute(sql, values)
        except psycopg.OperationalError:
            if not connection.closed or not _READS.match(sql):
                raise
        self.close()
        return Translated(self._connected()).execute(sql, values)

    def close(self) -> None:
        if self._connection is not None:
            taken, self._connection = self._connection, None
            self._give_back(taken)

    def _connected(self) -> "PsycopgConnection[Any]":
        if self._connection is None:
            self._connection = self._take()
        return self._connection


def _advice(error: Any) -> str:
    from psycopg import OperationalError

    state = error.sqlstate or ("08" if isinstance(error, OperationalError) else "")
    return _HELP.get(state) or _HELP.get(state[:2], "This is a fault in Assay: report it.")


def patience(address: str) -> dict[str, Any]:
    from psycopg.conninfo import conninfo_to_dict

    said = conninfo_to_dict(address)
    ours = {**_PATIENCE, "fallback_application_name": f"assay {version('assay')}"}  # `assay db status` counts by it
    return {name: value for name, value in ours.items() if name not in said}


def _without_password(address: str) -> str:
    """For messages and logs."""
    shown = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1@", address)
    return re.sub(r"(password\s*=\s*)\S+", r"\1...", shown)
