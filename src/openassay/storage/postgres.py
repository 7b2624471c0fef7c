"""A PostgreSQL database: its pool of connections, its transactions and its migrations."""

import logging
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache
from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any

from openassay.errors import ConfigurationError, StorageError, install_help
from openassay.storage import database

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection
    from psycopg import Cursor
    from psycopg.rows import RowMaker
    from psycopg_pool import ConnectionPool


# Statements are those of SQLite. What differs on PostgreSQL is translated here: the marks for values, broken rules and
# the character 0, which its text cannot hold.

_MARKS = re.compile(r"\?|(?<![:\w]):([a-z_]+)|%")


class PostgresConnection:
    def __init__(self, connection: "PsycopgConnection[Any]") -> None:
        self._connection = connection

    def execute(self, sql: str, values: database.Values = (), /) -> database.StatementResult:
        import psycopg

        try:
            if not values:  # psycopg sends the text as it is, several statements if need be
                return self._connection.execute(sql.encode())
            if isinstance(values, Mapping):
                encoded: Any = {name: _encode_value(value) for name, value in values.items()}
            else:
                encoded = [_encode_value(value) for value in values]
            return self._connection.execute(_translate(sql), encoded)
        except psycopg.IntegrityError as error:
            kind: database.Constraint = "other"
            if isinstance(error, psycopg.errors.ForeignKeyViolation):
                kind = "foreign"
            elif isinstance(error, psycopg.errors.UniqueViolation):
                kind = "primary" if str(error.diag.constraint_name).endswith("_pkey") else "unique"
            raise database.ConstraintError(first_line(error), kind) from error

    def copy(self, target: str, rows: Iterable[Sequence[object]]) -> None:
        """Insert many rows at once; `target` is a table with its columns in brackets."""
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row([_encode_value(value) for value in row])


@lru_cache(maxsize=512)
def _translate(sql: str) -> bytes:
    def mark(found: re.Match[str]) -> str:
        if found[0] == "%":
            return "%%"
        return f"%({found[1]})s" if found[1] else "%s"

    return _MARKS.sub(mark, sql).encode()


# U+E000 is for private use; where a text has it, it is doubled, so that every text comes back as it was.
_ESCAPE, _ZERO, _SELF = "\ue000", "\ue000\ue001", "\ue000\ue002"


def _encode_value(value: object) -> object:
    if isinstance(value, str):  # an enumeration is its text
        return str(value).replace(_ESCAPE, _SELF).replace("\0", _ZERO)
    return int(value) if isinstance(value, bool) else value


def restore_rows(cursor: "Cursor[Any]") -> "RowMaker[dict[str, Any]]":
    """Make dictionaries of rows, with their characters 0: a row factory of psycopg."""
    from psycopg.rows import dict_row

    make_row = dict_row(cursor)

    def restore(values: Sequence[Any]) -> dict[str, Any]:
        row = make_row(values)
        for name, value in row.items():
            if isinstance(value, str) and _ESCAPE in value:
                row[name] = value.replace(_ZERO, "\0").replace(_SELF, _ESCAPE)
        return row

    return restore


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


OLDEST_SERVER = 14  # the oldest PostgreSQL that this was tested with
MIGRATION_LOCK_SECONDS = 600  # to wait for another process that migrates, or that has a table in use
_MIGRATION_LOCK = 7_301_226  # the advisory lock of the process that migrates
# Lets a server notice that the process has died while it works on a long statement. Not every system supports it.
_CONNECTION_CHECK = b"SET client_connection_check_interval = '1s'"
MAX_CONNECTIONS = 10
START_SECONDS = 5.0  # to wait for a server that has refused once: it may be starting
WAIT_SECONDS = 30.0  # to wait for a server that restarts, or for a free connection
# A pool waits twice as long after each attempt, up to minutes: it gives up soon, and the caller starts it again.
ATTEMPT_SECONDS = 4.0
IDLE_SECONDS = 15.0  # that a transaction may stand still before the server ends it: others wait for its locks
# So that a server that has vanished is noticed in time; options in the address take precedence.
_CONNECT_OPTIONS = {
    "connect_timeout": 15, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
# So that the server notices a client that has vanished: by default it would keep its locks for two hours.
KEEPALIVE = b"""
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 30000
"""
_READS = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_HOPELESS = re.compile(r"(?P<who>authentication|pg_hba|role .* does not exist)|does not exist")
_REACH_HELP = "Check that the server runs, and DATABASE_URL or persistence.connection_string."
_EMPTY_DATABASE_HELP = "Name an empty database, or create one of OpenAssay's own."
_HELP = {  # by SQLSTATE, or the class it begins with
    "08": _REACH_HELP,
    "25006": "The server takes no changes: name the one that does.",
    "25P03": "This process stood still for too long; nothing was changed. Try again.",
    "28": "Check the user and the password of the connection string.",
    "3F000": "Let the user create tables in the schema (GRANT), or name another one in its search_path.",
    "3D000": "Create it first: CREATE DATABASE name.",
    "40": "Others were changing the same rows; try again.",
    "42501": "Let the user create and change tables there (GRANT), or name another one.",
    "42703": _EMPTY_DATABASE_HELP,
    "42P01": database.POSTGRES_SCHEMA.help,
    "42P07": _EMPTY_DATABASE_HELP,
    "53100": "The server's disk is full: free some space and try again.",
    "53": "The server is short of memory or connections; try again, or raise its limits.",
    "57": _REACH_HELP,
    "55P03": "Another process is using it; try again in a moment.",
    "58": "Check the server's disk and its log.",
    "XX": database.POSTGRES_SCHEMA.help,
}


class PostgresDatabase(database.Database):
    """A Database for any thread; a thread keeps its connection for the length of a transaction."""

    for_update = " FOR UPDATE"
    has_history = "SELECT 1 FROM pg_class WHERE oid = to_regclass('schema_migrations')"

    def __init__(
        self,
        address: str,
        *,
        connections: int = MAX_CONNECTIONS,
        idle_seconds: float = IDLE_SECONDS,
        migrate: bool = True,
    ) -> None:
        self.schema = database.POSTGRES_SCHEMA
        self._address = address
        shown = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1@", address)  # without the password
        self.name = re.sub(r"(password\s*=\s*)\S+", r"\1...", shown)
        self._own = threading.local()
        self._idle = f"SET idle_in_transaction_session_timeout = {math.ceil(idle_seconds * 1000)}".encode()
        self._sessions: list[PsycopgConnection[Any]] = []
        self._pool = self._open_pool(address, connections)
        with ExitStack() as undo:
            undo.callback(self.close)
            if migrate:
                self.migrate()
            undo.pop_all()

    def migrate(self) -> list[str]:
        """Apply the pending migrations in one transaction, all or nothing; return their names. Of several processes
        that try, one does it."""
        import psycopg

        if not self.pending_migrations():
            return []
        with self.translate_errors(), closing(self.session()) as session:
            self._check_server(session)
            with suppress(psycopg.errors.InvalidParameterValue):
                session.execute(_CONNECTION_CHECK)
            session.row_factory = restore_rows
            try:
                with session.transaction():
                    connection = PostgresConnection(session)
                    connection.execute(f"SET LOCAL lock_timeout = '{MIGRATION_LOCK_SECONDS}s'")
                    connection.execute("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
                    missing = self.pending_migrations(connection)  # another may have been faster
                    for migration in missing:
                        connection.execute(migration.sql)
                        database.record_migration(connection, migration)
                    return [migration.name for migration in missing]
            except psycopg.errors.InsufficientPrivilege as error:
                raise ConfigurationError(
                    f"{self.name} needs a migration that this user may not run: {first_line(error)}",
                    help="Run `openassay admin db migrate` as the owner of its tables, or GRANT it to this user.",
                ) from error

    def _check_server(self, session: "PsycopgConnection[Any]") -> None:
        if session.info.server_version < OLDEST_SERVER * 10_000:
            raise ConfigurationError(
                f"{self.name} is PostgreSQL {session.info.server_version // 10_000}",
                help=f"Use version {OLDEST_SERVER} or newer.",
            )
        encoding = session.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ConfigurationError(
                f"{self.name} holds text as {encoding}", help="Create it with ENCODING 'UTF8' TEMPLATE template0."
            )

    def next_id(self, connection: database.Connection, table: str) -> int:
        return int(connection.execute("SELECT nextval(?) AS id", (f"{table}_id",)).fetchone()["id"])

    def connections(self) -> dict[str, int]:
        """Count the connections of the pool, and the callers that wait for one."""
        stats = self._pool.get_stats()
        idle = stats["pool_available"]
        return {"in_use": stats["pool_size"] - idle, "idle": idle, "waiting": stats["requests_waiting"]}

    def scrub(self) -> None:
        """Do nothing: the server's own vacuum removes what was deleted."""

    def close(self) -> None:
        self._pool.close()
        while self._sessions:
            self._sessions.pop().close()

    @contextmanager
    def connection(self) -> Iterator[database.Connection]:
        with self.translate_errors():
            if current := getattr(self._own, "connection", None):
                yield current
            else:
                with closing(_ReadConnection(self._get_connection, self._pool.putconn)) as reading:
                    yield reading

    @contextmanager
    def transaction(self) -> Iterator[database.Connection]:
        from psycopg.pq import TransactionStatus

        with self.translate_errors():
            if current := getattr(self._own, "connection", None):
                # As on SQLite, a part that fails spoils the whole, even if its error is caught in between.
                before, self._own.spoilt = self._own.spoilt, True
                yield current
                self._own.spoilt = before
                return
            connection = self._get_connection()
            try:
                with connection.transaction():
                    self._own.connection, self._own.spoilt = PostgresConnection(connection), False
                    try:
                        yield self._own.connection
                        # COMMIT after a failed statement would roll back and say nothing.
                        if self._own.spoilt or connection.info.transaction_status == TransactionStatus.INERROR:
                            raise StorageError(
                                f"{self.name}: a step of the transaction failed, so nothing of it was kept",
                                help="Let the first error through; it says what went wrong.",
                            )
                    finally:
                        self._own.connection = None
            finally:
                self._pool.putconn(connection)

    def _get_connection(self) -> "PsycopgConnection[Any]":
        """Return a connection that answers. After a restart of the server all in the pool are dead, and are dropped at
        once: the pool's own check would wait longer at each, half a minute for five of them."""
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

    def session(self) -> "PsycopgConnection[Any]":
        """Open a connection outside the pool, for locks that last as long as their holder; closed with the database at
        the latest."""
        import psycopg

        with self.translate_errors():
            session = psycopg.connect(self._address, autocommit=True, **connect_options(self._address))
            session.execute(KEEPALIVE)
        self._sessions = [*(other for other in self._sessions if not other.closed), session]
        return session

    @contextmanager
    def advisory_lock(self, what: str, seconds: float) -> Iterator[None]:
        """Hold a lock that no other process on any machine has; StorageError where another keeps it for longer than
        `seconds`. A process that dies releases it, and one that stands still loses it."""
        with self.translate_errors(), closing(self.session()) as session:
            session.execute(self._idle)
            session.execute(f"SET lock_timeout = {round(seconds * 1000)}".encode())
            with session.transaction():
                session.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (what,))
                yield

    def _open_pool(self, address: str, connections: int) -> "ConnectionPool[PsycopgConnection[Any]]":
        try:
            from psycopg_pool import ConnectionPool, PoolTimeout
        except ImportError as error:
            raise ConfigurationError("PostgreSQL needs the extra `postgres`", help=install_help("postgres")) from error
        reason = self._probe_server()
        # autocommit: a reading connection must not sit in a transaction, and writing begins its own.
        options = {"autocommit": True, "row_factory": restore_rows, **connect_options(address)}
        pool = ConnectionPool(
            address,
            min_size=1,
            max_size=connections,
            timeout=WAIT_SECONDS,
            kwargs=options,
            open=False,
            configure=self._configure,
            reconnect_timeout=ATTEMPT_SECONDS,
        )
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # or each failed attempt would be a line of the log
        pool.open()
        try:
            pool.wait(START_SECONDS if reason else WAIT_SECONDS)
        except PoolTimeout as error:
            pool.close()
            raise StorageError(
                f"{self.name} cannot be reached: {reason or 'too many connections'}", help=_REACH_HELP, retryable=True
            ) from error
        return pool

    def _configure(self, connection: "PsycopgConnection[Any]") -> None:
        connection.execute(self._idle)
        connection.execute(KEEPALIVE)

    def _probe_server(self) -> str:
        """Connect once before the pool does, which would wait in vain and then report only a timeout; return why the
        server refused for now."""
        import psycopg

        try:
            psycopg.connect(self._address, connect_timeout=int(WAIT_SECONDS)).close()
        except psycopg.ProgrammingError as error:
            raise ConfigurationError(
                "the connection string is not one of PostgreSQL", help="Write postgresql://user:password@host/name."
            ) from error
        except psycopg.OperationalError as error:
            reason = first_line(error).rsplit("FATAL:")[-1].strip()
            if found := _HOPELESS.search(reason):
                help = _HELP["28"] if found["who"] else _HELP["3D000"]
                raise ConfigurationError(f"{self.name}: {reason}", help=help) from error
            return reason
        return ""

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        import psycopg
        from psycopg_pool import PoolClosed, PoolTimeout

        try:
            yield
        except PoolClosed as error:
            raise StorageError(f"{self.name} is closed", help="Open it again.") from error
        except PoolTimeout as error:
            raise StorageError(f"{self.name} cannot be reached", help=_REACH_HELP, retryable=True) from error
        except psycopg.Error as error:
            is_operational = isinstance(error, psycopg.OperationalError)
            state = error.sqlstate or ("08" if is_operational else "")
            help = _HELP.get(state) or _HELP.get(state[:2], "This is a fault in OpenAssay: report it.")
            # The server is gone, restarting or out of disk; a deadlock; or this process stood still in a transaction.
            retryable = is_operational or isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout)
            raise StorageError(f"{self.name}: {first_line(error)}", help=help, retryable=retryable) from error
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{self.name}: text with a lone surrogate cannot be stored",
                help="Decode the text properly where it comes in.",
            ) from error


class _ReadConnection(PostgresConnection):
    """A Connection for reading. Where the server has gone away meanwhile, a SELECT is repeated on another connection,
    waiting for a server that restarts."""

    def __init__(
        self, take: "Callable[[], PsycopgConnection[Any]]", give_back: "Callable[[PsycopgConnection[Any]], None]"
    ) -> None:
        super().__init__(take())
        self._take = take
        self._give_back = give_back

    def execute(self, sql: str, values: database.Values = (), /) -> database.StatementResult:
        import psycopg

        try:
            return super().execute(sql, values)
        except psycopg.OperationalError:
            if not self._connection.closed or not _READS.match(sql):
                raise
        dead, self._connection = self._connection, self._take()
        self._give_back(dead)
        return super().execute(sql, values)

    def close(self) -> None:
        self._give_back(self._connection)


def connect_options(address: str) -> dict[str, Any]:
    """Return our connection options that the address does not set itself."""
    from psycopg.conninfo import conninfo_to_dict

    given = conninfo_to_dict(address)
    name = f"openassay {version('openassay')}"  # `openassay admin db status` counts connections by it
    ours = {**_CONNECT_OPTIONS, "fallback_application_name": name}
    return {option: value for option, value in ours.items() if option not in given}
