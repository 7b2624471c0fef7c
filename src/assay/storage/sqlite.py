"""One SQLite file: its connections, its transactions and its migrations."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from assay.errors import StorageError

_MIGRATIONS = files("assay.storage") / "migrations"
_BUSY_SECONDS = 10

_WRITABLE = "Name a file in a folder that you may write to."
_HELP = {
    sqlite3.SQLITE_BUSY: "Another process is writing to it; try again in a moment.",
    sqlite3.SQLITE_LOCKED: "Another process is writing to it; try again in a moment.",
    sqlite3.SQLITE_FULL: "The disk is full: free some space and try again.",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_READONLY: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_IOERR: "Check the disk, and that the folder may be written to.",
}
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Schema(NamedTuple):
    """A kind of database: the folder of its migrations, and what to do about a damaged file."""

    migrations: Traversable
    help: str


MAIN = Schema(_MIGRATIONS / "main", "Move it away and start afresh, restore a copy, or choose another data directory.")
LIBRARY = Schema(_MIGRATIONS / "library", "Delete it; it will be rebuilt.")


class _Migration(NamedTuple):
    version: int
    name: str
    statements: tuple[str, ...]


@dataclass(slots=True)
class _Session:
    """The connection of one thread. Its lock is free unless the database is closed under the thread."""

    connection: sqlite3.Connection
    lock: threading.RLock = field(default_factory=threading.RLock)
    spoilt: bool = False


class Database:
    """Open from any thread; every thread gets a connection of its own, and `close` closes them all.

    Opening creates the file if there is none and applies the migrations that are missing.
    """

    def __init__(self, path: Path, schema: Schema = MAIN) -> None:
        self.path = path
        self._schema = schema
        self._lock = threading.Lock()
        self._sessions: dict[threading.Thread, _Session] = {}
        self._closed = False
        with ExitStack() as undo:
            undo.callback(self.close)
            self._make_folder()
            self._migrate()
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for statements that are under way, then close every connection. Closing twice is fine."""
        with self._lock:
            self._closed = True
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            with session.lock:
                session.connection.close()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """For reading; each statement sees the last committed state."""
        session = self._session()
        with session.lock, self._translating():
            yield session.connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """For writing: all or nothing. Inside another one of the same thread it becomes part of that one."""
        session = self._session()
        with session.lock, self._translating():
            part = _joined if session.connection.in_transaction else self._whole
            with part(session):
                yield session.connection

    @contextmanager
    def _whole(self, session: _Session) -> Iterator[None]:
        connection = session.connection
        session.spoilt = False
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
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

    def _session(self) -> _Session:
        thread = threading.current_thread()
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} is closed", help="Open it again.", path=self.path)
            if thread not in self._sessions:
                self._close_those_of_ended_threads()
                with self._translating():
                    self._sessions[thread] = _Session(_connect(self.path))
            return self._sessions[thread]

    def _close_those_of_ended_threads(self) -> None:
        for thread in [thread for thread in self._sessions if not thread.is_alive()]:
            self._sessions.pop(thread).connection.close()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{self.path}: text with a lone surrogate cannot be stored",
                help="Decode the text properly where it comes in.",
                path=self.path,
            ) from error

    def _explained(self, error: sqlite3.Error) -> StorageError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # errors of the Python module have no code
        help = self._schema.help if code in _DAMAGED else _HELP.get(code, "This is a fault in Assay: report it.")
        return StorageError(f"{self.path}: {error}", help=help, retryable=code in _BUSY, path=self.path)

    # Migrations --------------------------------------------------------------------------------------

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self.path}: its folder cannot be made ({error.strerror})", help=_WRITABLE, path=self.path
            ) from error

    def _migrate(self) -> None:
        migrations = _read(self._schema.migrations)
        for migration in migrations[self._version(migrations) :]:
            with self.transaction() as connection:
                # Another process may have been faster since.
                if self._version(migrations) < migration.version:
                    _apply(connection, migration)

    def _version(self, known: list[_Migration]) -> int:
        """How many migrations the file has had, once it is clear that they were these."""
        with self.connection() as connection:
            applied = _applied(connection)
        names = [migration.name for migration in known]
        if applied[: len(names)] != names[: len(applied)]:
            raise StorageError(f"{self.path} is another kind of database", help=_WRITABLE, path=self.path)
        if len(applied) > len(names):
            raise StorageError(
                f"{self.path} was written by a newer Assay (schema {len(applied)}, known here: {len(names)})",
                help="Upgrade Assay, or choose another data directory.",
                path=self.path,
            )
        return len(applied)


def timestamp(moment: datetime) -> str:
    """UTC and of fixed width, so that the order of the text is the order in time."""
    if moment.tzinfo is None:
        raise StorageError(f"{moment} has no time zone", help="Use datetime.now(UTC).")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


@contextmanager
def _joined(session: _Session) -> Iterator[None]:
    # No savepoint: FTS5 would write a segment at each (100,000 passages: 8.3 s, without 4.0 s). So a part
    # that fails spoils the whole, even if its error is caught in between.
    before, session.spoilt = session.spoilt, True
    yield
    session.spoilt = before


def _connect(path: Path) -> sqlite3.Connection:
    # check_same_thread: `close` is called from a thread that opened only one of the connections.
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    with ExitStack() as undo:
        undo.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        undo.pop_all()
    return connection


def _read(folder: Traversable) -> list[_Migration]:
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    migrations = []
    for version, name in enumerate(found, start=1):
        if not re.fullmatch(rf"{version:04}_\w+\.sql", name):
            raise StorageError(f"migration {name} should be number {version:04}", help="Reinstall Assay.")
        sql = (folder / name).read_text(encoding="utf-8")
        migrations.append(_Migration(version, name.removesuffix(".sql"), tuple(_statements(sql))))
    return migrations


def _statements(sql: str) -> Iterator[str]:
    """One by one, since `executescript` would commit the transaction it runs in."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _applied(connection: sqlite3.Connection) -> list[str]:
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchall()
    if not tables:
        return []
    return [row["name"] for row in connection.execute("SELECT name FROM schema_migrations ORDER BY version")]


def _apply(connection: sqlite3.Connection, migration: _Migration) -> None:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied TEXT NOT NULL)"
    )
    for statement in migration.statements:
        connection.execute(statement)
    connection.execute(
        "INSERT INTO schema_migrations VALUES (?, ?, ?)",
        (migration.version, migration.name, timestamp(datetime.now(UTC))),
    )
