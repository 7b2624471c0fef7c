"""One SQLite file: its connections, its transactions and its migrations."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openassay.errors import StorageError
from openassay.storage import database

_BUSY_SECONDS = 10

_WRITABLE = "The file and its folder must be writable: allow it, or choose another data directory."
_HELP = {
    sqlite3.SQLITE_BUSY: "Another process is writing to it; try again in a moment.",
    sqlite3.SQLITE_LOCKED: "Another process is writing to it; try again in a moment.",
    sqlite3.SQLITE_FULL: "The disk is full: free some space and try again.",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_READONLY: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_IOERR: "Check the disk: that it has room, and that the folder may be written to.",
    sqlite3.SQLITE_PROTOCOL: "Other processes are opening it; try again in a moment.",
}
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_TOOBIG)
# Our statements are tested on intact files: where a table is missing, or text cannot be decoded, the file is damaged.
_DAMAGES = ("no such table", "no such column", "no such index", "could not decode to utf-8")
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

_CONSTRAINTS: dict[str, database.Constraint] = {
    "SQLITE_CONSTRAINT_PRIMARYKEY": "primary",
    "SQLITE_CONSTRAINT_UNIQUE": "unique",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign",
}


class SqliteConnection(sqlite3.Connection):
    """A connection that raises ConstraintError where a rule of the schema is broken."""

    def execute(self, sql: str, values: database.Values | Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, values)
        except sqlite3.IntegrityError as error:
            raise database.ConstraintError(str(error), _CONSTRAINTS.get(error.sqlite_errorname, "other")) from error


@dataclass(slots=True)
class _SqliteSession:
    """The connection of one thread. `close` takes its lock when it closes the database from another thread."""

    connection: SqliteConnection
    lock: threading.RLock = field(default_factory=threading.RLock)
    spoilt: bool = False


class SqliteDatabase(database.Database):
    """A Database in one file. Every thread gets a connection of its own, and `close` closes them all.

    Opening creates a missing file and applies the pending migrations, unless `migrate` is false.
    """

    for_update = ""  # a transaction has the whole file to itself
    has_history = "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"

    def __init__(self, path: Path, schema: database.Schema = database.MAIN_SCHEMA, *, migrate: bool = True) -> None:
        self.path = path
        self.name = str(path)
        self.schema = schema
        self._lock = threading.Lock()
        self._sessions: dict[threading.Thread, _SqliteSession] = {}
        self._closed = False
        with ExitStack() as undo:
            undo.callback(self.close)
            if migrate:
                try:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise StorageError(
                        f"{self.path}: its folder cannot be made ({error.strerror})", help=_WRITABLE, path=self.path
                    ) from error
                self.migrate()
            undo.pop_all()

    def next_id(self, connection: database.Connection, table: str) -> int:
        row = connection.execute(f"SELECT coalesce(max(id), 0) + 1 AS id FROM {table}").fetchone()  # noqa: S608
        return int(row["id"])

    def close(self) -> None:
        """Wait for running statements, then close every connection. Closing twice is fine."""
        with self._lock:
            self._closed = True
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            with session.lock:
                session.connection.close()

    def scrub(self) -> None:
        """Truncate the write-ahead log, which holds copies of what secure_delete has overwritten in the file."""
        with self.connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def connection(self) -> Iterator[SqliteConnection]:
        session = self._session()
        with session.lock, self._translate_errors():
            yield session.connection

    @contextmanager
    def transaction(self) -> Iterator[SqliteConnection]:
        session = self._session()
        connection = session.connection
        with session.lock, self._translate_errors():
            if connection.in_transaction:
                # No savepoint: FTS5 would write a segment at each (100,000 passages: 8.3 s, without 4.0 s). So a part
                # that fails spoils the whole, even if its error is caught in between.
                before, session.spoilt = session.spoilt, True
                yield connection
                session.spoilt = before
                return
            session.spoilt = False
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if session.spoilt:
                    raise StorageError(
                        f"{self.path}: a step of the transaction failed, so nothing of it was kept",
                        help="Let the first error through; it says what went wrong.",
                        path=self.path,
                    )
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _session(self) -> _SqliteSession:
        thread = threading.current_thread()
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} is closed", help="Open it again.", path=self.path)
            if thread not in self._sessions:
                for dead in [other for other in self._sessions if not other.is_alive()]:
                    self._sessions.pop(dead).connection.close()
                with self._translate_errors():
                    self._sessions[thread] = _SqliteSession(_connect(self.path))
            return self._sessions[thread]

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # errors of the Python module have no code
            reason = str(error).split(" with text ")[0]  # what cannot be decoded would be quoted as a whole
            damaged = code in _DAMAGED or reason.lower().startswith(_DAMAGES)
            help = self.schema.help if damaged else _HELP.get(code, "This is a fault in OpenAssay: report it.")
            raise StorageError(f"{self.path}: {reason}", help=help, retryable=code in _BUSY, path=self.path) from error
        except UnicodeDecodeError as error:  # SQLite quotes what it found damaged
            raise StorageError(f"{self.path} is malformed", help=self.schema.help, path=self.path) from error
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{self.path}: text with a lone surrogate cannot be stored",
                help="Decode the text properly where it comes in.",
                path=self.path,
            ) from error

    def migrate(self) -> list[str]:
        done = []
        for migration in self.pending_migrations():
            with self.transaction() as connection:
                if migration in self.pending_migrations(connection):  # or another process was faster
                    for statement in split_statements(migration.sql):
                        connection.execute(statement)
                    database.record_migration(connection, migration)
                    done.append(migration.name)
        return done


def _connect(path: Path) -> SqliteConnection:
    # check_same_thread: `close` is called from a thread that opened only one of the connections.
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=SqliteConnection
    )
    connection.row_factory = sqlite3.Row
    with ExitStack() as undo:
        undo.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what was deleted is overwritten, not only forgotten
        undo.pop_all()
    return connection


def split_statements(sql: str) -> Iterator[str]:
    """Yield statements one by one, since `executescript` would commit the transaction it runs in."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
