"""What every store needs of a database, SQLite or PostgreSQL, and the tables that are sealed.

SQL is written once, for both: `?` and `:name` stand for values, times are text, booleans are 0 or 1, and every table
has a `rowid` in the order of insertion.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, wraps
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, Self, TypeVar

from openassay.errors import ConfigurationError, StorageError
from openassay.models.base import utc_now

P = ParamSpec("P")
T = TypeVar("T")
Values = Sequence[object] | Mapping[str, object]
Constraint = Literal["primary", "unique", "foreign", "other"]


class ConstraintError(StorageError):
    """Raised for a row that breaks a rule of the schema; `constraint` says which."""

    def __init__(self, message: str, constraint: Constraint) -> None:
        super().__init__(message, help="This is a fault in OpenAssay: report it.")
        self.constraint = constraint


class StatementResult(Protocol):
    """The rows of a statement, each a mapping from the names of its columns."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    def execute(self, sql: str, values: Values = ..., /) -> StatementResult: ...


class Closable(ABC):
    """Closes itself at the end of a `with` statement."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Database(Closable, ABC):
    """A synchronous database: callers run it in a thread. Its errors are raised as StorageError."""

    name: str  # in messages: a path or an address, without a password
    for_update: str  # at the end of a SELECT, locks its rows until the transaction ends
    schema: "Schema"
    has_history: str  # a SELECT that finds something where migrations were recorded

    @abstractmethod
    def next_id(self, connection: Connection, table: str) -> int:
        """Return the id of a new row, higher than any before; called in the transaction that writes the row."""

    @abstractmethod
    def connection(self) -> AbstractContextManager[Connection]:
        """Open a connection for reading; each statement sees the last committed state."""

    def query(self, sql: str, values: Values = ()) -> list[Any]:
        with self.connection() as connection:
            return connection.execute(sql, values).fetchall()

    def query_one(self, sql: str, values: Values = ()) -> Any:
        """Return the first row of one statement, or None."""
        with self.connection() as connection:
            return connection.execute(sql, values).fetchone()

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Connection]:
        """Open a transaction for writing, all or nothing. Inside another one of the same thread it joins that one."""

    @abstractmethod
    def scrub(self) -> None:
        """Remove deleted content from its files, as far as other processes that use them allow."""

    @abstractmethod
    def migrate(self) -> list[str]:
        """Apply the pending migrations; return their names. Of several processes that try, one does it."""

    def pending_migrations(self, connection: Connection | None = None) -> list["Migration"]:
        """List the migrations to apply; ConfigurationError where the database is newer, or another program's."""
        known = load_migrations(self.schema.migrations)  # before a file is made
        if connection is None:
            with self.connection() as opened:
                return self.pending_migrations(opened)
        expected = [(migration.version, migration.name) for migration in known]
        applied = migration_history(connection) if connection.execute(self.has_history).fetchall() else []
        if applied[: len(expected)] != expected[: len(applied)]:
            help = "Name a file, or a database, of its own."
            raise StorageError(f"{self.name} is another kind of database", help=help, path=self.name)
        if len(applied) > len(expected):
            raise ConfigurationError(
                f"{self.name} was written by a newer OpenAssay (schema {len(applied)}, known here: {len(expected)})",
                help="Upgrade this process, or name another database or data directory.",
                path=self.name,
            )
        return known[len(applied) :]


def timestamp(moment: datetime) -> str:
    """Format a time in UTC and at a fixed width, so that texts sort in the order of time."""
    if moment.tzinfo is None:
        raise StorageError(f"{moment} has no time zone", help="Use datetime.now(UTC).")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def run_in_thread(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make a blocking function asynchronous: each call runs in a worker thread."""

    @wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(function, *args, **kwargs)

    return run


# Migrations: numbered SQL files, applied once each and in order. One that was released never changes.

_FOLDERS = files("openassay.storage") / "migrations"
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied TEXT NOT NULL)
"""
_RECORD = "INSERT INTO schema_migrations (version, name, applied) VALUES (?, ?, ?)"


class Schema(NamedTuple):
    """A kind of database: the folder of its migrations, and the advice given when it is damaged."""

    migrations: Traversable
    help: str


_DAMAGE_HELP = "Move it away and start afresh, restore a copy, or choose another data directory."
MAIN_SCHEMA = Schema(_FOLDERS / "main", _DAMAGE_HELP)
INDEX_SCHEMA = Schema(_FOLDERS / "library", "Delete it; it will be rebuilt.")
POSTGRES_SCHEMA = Schema(_FOLDERS / "postgres", "Restore a copy of the database, or name another one.")

MigrationId = tuple[int, str]  # its version and its name


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


def load_migrations(folder: Traversable) -> list[Migration]:
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    migrations = []
    for version, name in enumerate(found, start=1):
        if not re.fullmatch(rf"{version:04}_\w+\.sql", name):
            raise StorageError(f"migration {name} should be number {version:04}", help="Reinstall OpenAssay.")
        sql = (folder / name).read_text(encoding="utf-8")
        migrations.append(Migration(version, name.removesuffix(".sql"), sql))
    return migrations


def migration_history(connection: Connection) -> list[MigrationId]:
    rows = connection.execute("SELECT version, name FROM schema_migrations ORDER BY version").fetchall()
    return [(row["version"], row["name"]) for row in rows]


def record_migration(connection: Connection, migration: Migration) -> None:
    """Record a migration in the transaction that applied it."""
    connection.execute(_TABLE)
    connection.execute(_RECORD, (migration.version, migration.name, timestamp(utc_now())))


# The tables whose rows are sealed: their keys, their owners, and the columns that encryption hides.

TableScope = Literal["thread", "run", "ledger", "user", ""]


@dataclass(frozen=True)
class TableSpec:
    """A sealed table, and the statements on it. `owner` is the column that names the thread, run, account or user a row
    belongs to. Rows without an owner stand for themselves: documents are found by the hash of their text."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]  # all but the seal
    scope: TableScope = ""
    owner: str = ""
    secret: frozenset[str] = frozenset()

    @cached_property
    def where_key(self) -> str:
        return f"WHERE {' AND '.join(f'{name} = ?' for name in self.key)}"

    @cached_property
    def select(self) -> str:
        return f"SELECT {', '.join(self.columns)}, seal FROM {self.name} "  # noqa: S608  # names of ours

    @cached_property
    def insert(self) -> str:
        marks = ", ".join("?" for _ in (*self.columns, "seal"))
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}, seal) VALUES ({marks})"  # noqa: S608

    @cached_property
    def update(self) -> str:
        """Change all columns but the key; their values come first, and that of the key last."""
        changes = ", ".join(f"{name} = ?" for name in self.others)
        return f"UPDATE {self.name} SET {changes} {self.where_key}"  # noqa: S608

    @cached_property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in (*self.columns, "seal") if name not in self.key)


def _make_table(
    name: str, key: str, columns: str, scope: TableScope = "", owner: str = "", secret: str = ""
) -> TableSpec:
    return TableSpec(name, tuple(key.split()), tuple(columns.split()), scope, owner, frozenset(secret.split()))


THREADS = _make_table("threads", "id", "id title created updated mode owner", "thread", "id", "title")
RUNS = _make_table(
    "runs", "id", "id thread question status stage started finished settings options error stop", "thread", "thread",
    "question options error",
)  # fmt: skip
REVIEWS = _make_table(
    "reviews", "id", "id thread run kind question opened due on_timeout answered answer by", "thread", "thread",
    "question answer",
)  # fmt: skip
BRANCHES = _make_table("branches", "thread", "thread parent checkpoint changes created", "thread", "thread", "changes")
CHECKPOINTS = _make_table(
    "checkpoints", "thread ns id", "thread ns id parent run time metadata payload", "thread", "thread", "payload"
)
PARTS = _make_table("parts", "thread hash", "thread hash payload", "thread", "thread", "payload")
WRITES = _make_table(
    "writes", "thread ns checkpoint task idx", "thread ns checkpoint task idx path channel payload", "thread",
    "thread", "payload",
)  # fmt: skip
NOTES = _make_table("notes", "thread name", "thread name content", "thread", "thread", "content")
USED_DOCUMENTS = _make_table("used_documents", "thread document", "thread document", "thread", "thread")
EVENTS = _make_table("events", "run seq", "run seq time kind stage parent data", "run", "run", "data")
ACCOUNTS = _make_table(
    "accounts", "run", "run cap_micros cap_tokens cap_requests finish_share refused owner", "ledger", "run"
)
CALLS = _make_table(
    "calls", "id",
    "id key run time expires step task provider model research state micros tokens requests prompt_tokens"
    " completion_tokens seconds confirmed answer error",
    "ledger", "run", "answer error",
)  # fmt: skip
DOCUMENTS = _make_table("documents", "hash", "hash metadata text", secret="metadata text")  # noqa: S106  # columns

USERS = _make_table("users", "name", "name created usd requests_per_minute disabled", "user", "name")
TOKENS = _make_table("tokens", "id", "id owner label hash scopes created expires revoked", "user", "owner", "label")
SHARES = _make_table("shares", "id", "id thread hash created expires revoked", "thread", "thread")
PINS = _make_table("pins", "thread document", "thread document created", "thread", "thread")
ARTIFACTS = _make_table(
    "artifacts", "thread name version", "thread name version kind title content created author", "thread", "thread",
    "title content",
)  # fmt: skip
UPLOADS = _make_table("uploads", "id", "id owner name media size hash created", "user", "owner", "name")
WEBHOOKS = _make_table("webhooks", "id", "id owner url secret events created", "user", "owner", "url secret")
DELIVERIES = _make_table(
    "deliveries", "id", "id webhook body created attempts due delivered error", secret="body error"  # noqa: S106
)  # fmt: skip
REPLIES = _make_table("replies", "owner key", "owner key request status body created", secret="body")  # noqa: S106
CHATS = _make_table("chats", "said thread", "said thread created", "thread", "thread")
MEMORIES = _make_table("memories", "owner place key", "owner place key value", "user", "owner", "value")
CHUNKS = _make_table("chunks", "upload number", "upload number content", secret="content")  # noqa: S106
DELETED = _make_table("deleted", "run", "run time")

ALL_TABLES = (
    THREADS, RUNS, REVIEWS, BRANCHES, CHECKPOINTS, PARTS, WRITES, NOTES, USED_DOCUMENTS, EVENTS, ACCOUNTS, CALLS,
    DOCUMENTS, USERS, TOKENS, SHARES, PINS, ARTIFACTS, UPLOADS, WEBHOOKS, DELIVERIES, REPLIES, CHATS,
    MEMORIES, CHUNKS, DELETED,
)  # fmt: skip
