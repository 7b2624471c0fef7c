"""A PostgreSQL database: its pool of connections, its transactions and its migrations."""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from assay.errors import ConfigurationError, StorageError
from assay.storage.database import Connection
from assay.storage.dialect import Translated, line
from assay.storage.migrating import POSTGRES, Migration, applied, note, read, version

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS = 10
START_SECONDS = 5.0  # for a server that has refused once: it may be starting
WAIT_SECONDS = 15.0  # for a server that is starting, or a connection that is free
# A server that is gone without a word is noticed in time, too; what the address says of these counts.
_PATIENCE = {
    "connect_timeout": 15, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
_MIGRATING = 7_301_226  # the advisory lock of whoever migrates
_HOPELESS = re.compile(r"(?P<who>authentication|pg_hba|role .* does not exist)|does not exist")
_REACH = "Check that the server runs, and DATABASE_URL or persistence.connection_string."
_OF_ITS_OWN = "Name an empty database, or create one of Assay's own."
_HELP = {  # by SQLSTATE, or the class it begins with
    "08": _REACH,
    "25006": "The server takes no changes: name the one that does.",
    "28": "Check the user and the password of the connection string.",
    "3D000": "Create it first: CREATE DATABASE name.",
    "40": "Others were changing the same rows; try again.",
    "42501": "Let the user create and change tables there (GRANT), or name another one.",
    "42703": _OF_ITS_OWN,
    "42P01": POSTGRES.help,
    "42P07": _OF_ITS_OWN,
    "53100": "The server's disk is full: free some space and try again.",
    "53": "The server is short of memory or connections; try again, or raise its limits.",
    "57": _REACH,
    "58": "Check the server's disk and its log.",
    "XX": POSTGRES.help,
}


class PostgresDatabase:
    """A storage Database. Open from any thread; a thread keeps its connection for the length of a transaction."""

    def __init__(self, address: str, *, connections: int = MOST_CONNECTIONS) -> None:
        self._address = address
        self._name = _without_password(address)
        self._own = threading.local()
        self._sessions: list[PsycopgConnection[Any]] = []
        self._pool = self._opened(address, connections)
        with ExitStack() as undo:
            undo.callback(self.close)
            self._migrate()
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
                with self._pool.connection() as connection:
                    yield Translated(connection)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.translating():
            if current := getattr(self._own, "connection", None):
                # As on SQLite: a part that fails spoils the whole, even if its error is caught in between.
                before, self._own.spoilt = self._own.spoilt, True
                yield current
                self._own.spoilt = before
                return
            with self._pool.connection() as connection, connection.transaction():
                self._own.connection, self._own.spoilt = Translated(connection), False
                try:
                    yield self._own.connection
                    self._check_whole(connection)
                finally:
                    self._own.connection = None

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
            session = psycopg.connect(self._address, autocommit=True, **_patience(self._address))
        self._sessions = [*(other for other in self._sessions if not other.closed), session]
        return session

    def _opened(self, address: str, connections: int) -> "ConnectionPool[PsycopgConnection[Any]]":
        try:
            from psycopg.rows import dict_row
            from psycopg_pool import ConnectionPool, PoolTimeout
        except ImportError as error:
            raise ConfigurationError(
                "PostgreSQL needs the extra `postgres`", help="Install it: pip install 'assay[postgres]'"
            ) from error
        # autocommit: a reading connection must not sit in a transaction, and writing begins its own.
        reason = self._refusal()
        options = {"autocommit": True, "row_factory": dict_row, **_patience(address)}
        pool = ConnectionPool(
            address, min_size=1, max_size=connections, timeout=WAIT_SECONDS, kwargs=options, open=False,
            check=ConnectionPool.check_connection,
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
        return cast("ConnectionPool[PsycopgConnection[Any]]", pool)

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
            gone = isinstance(error, psycopg.OperationalError)  # or restarting, out of disk, a deadlock
            raise StorageError(f"{self.name}: {line(error)}", help=_advice(error), retryable=gone) from error
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{self.name}: text with a lone surrogate cannot be stored",
                help="Decode the text properly where it comes in.",
            ) from error

    # Migrations --------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        known = read(POSTGRES.migrations)
        with self.transaction() as connection:
            encoding = connection.execute("SHOW server_encoding").fetchone()["server_encoding"]
            if encoding != "UTF8":
                raise ConfigurationError(
                    f"{self.name} holds text as {encoding}", help="Create it with ENCODING 'UTF8' TEMPLATE template0."
                )
            connection.execute("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))
            for migration in known[self._version(connection, known) :]:
                connection.execute(migration.sql)
                note(connection, migration)

    def _version(self, connection: Connection, known: list[Migration]) -> int:
        kept = connection.execute("SELECT to_regclass('schema_migrations') AS kept").fetchone()["kept"]
        return version(self.name, applied(connection) if kept else [], known)


def _advice(error: Any) -> str:
    from psycopg import OperationalError

    state = error.sqlstate or ("08" if isinstance(error, OperationalError) else "")
    return _HELP.get(state) or _HELP.get(state[:2], "This is a fault in Assay: report it.")


def _patience(address: str) -> dict[str, Any]:
    from psycopg.conninfo import conninfo_to_dict

    said = conninfo_to_dict(address)
    return {name: value for name, value in _PATIENCE.items() if name not in said}


def _without_password(address: str) -> str:
    """For messages and logs."""
    shown = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1@", address)
    return re.sub(r"(password\s*=\s*)\S+", r"\1...", shown)
