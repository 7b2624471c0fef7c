"""Opening, inspecting and moving the database of the settings."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from openassay.errors import ConfigurationError, NotFoundError, UsageError
from openassay.models.user import Upload
from openassay.settings import Settings
from openassay.storage.database import ALL_TABLES, EVENTS, MEMORIES, UPLOADS, Connection, migration_history
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.uploads import FileStore

_TABLES = """
SELECT relname AS name, reltuples::bigint AS rows, pg_total_relation_size(oid) AS bytes
FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY bytes DESC, name
"""
_CONNECTIONS = """
SELECT coalesce(nullif(application_name, ''), 'others') AS name, count(*) AS count FROM pg_stat_activity
WHERE datname = current_database() GROUP BY 1 ORDER BY 2 DESC, 1
"""


class TableSize(NamedTuple):
    name: str
    rows: int | None  # None: not counted yet; PostgreSQL gives an estimate
    bytes: int | None = None  # with indexes; None: SQLite does not say


class ConnectionCounts(NamedTuple):
    """Connections to one database, by the name of the program; `most` is the limit of the server, for all databases."""

    by_program: dict[str, int]
    most: int


class Inspection(NamedTuple):
    """A database as it is. `applied` and `pending` are migrations, by name; `connections` are those of a server."""

    database: str
    server: str
    applied: Sequence[str]
    pending: Sequence[str]
    bytes: int
    tables: Sequence[TableSize]
    connections: ConnectionCounts | None = None


def inspect_database(database: PostgresDatabase | SqliteDatabase) -> Inspection:
    """Describe a database; nothing is changed by looking."""
    missing = [migration.name for migration in database.pending_migrations()]
    if isinstance(database, PostgresDatabase):
        with database.connection() as connection:
            sizes = [TableSize(**row) for row in connection.execute(_TABLES)]
            return Inspection(
                database=database.name,
                server=f"PostgreSQL {_read_value(connection, 'SELECT current_setting(?)', 'server_version')}",
                applied=_migration_names(connection, sizes),
                pending=missing,
                bytes=int(_read_value(connection, "SELECT pg_database_size(current_database())")),
                tables=[size._replace(rows=None) if size.rows == -1 else size for size in sizes],
                connections=ConnectionCounts(
                    {row["name"]: row["count"] for row in connection.execute(_CONNECTIONS)},
                    int(_read_value(connection, "SELECT current_setting(?)", "max_connections")),
                ),
            )
    with database.connection() as connection:
        names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: int(_read_value(connection, f'SELECT count(*) FROM "{name}"')) for name in names}  # noqa: S608
        sizes = [TableSize(name, rows[name]) for name in sorted(names, key=lambda name: (-rows[name], name))]
        files = [Path(f"{database.path}{part}") for part in ("", "-wal")]
        return Inspection(
            database=database.name,
            server=f"SQLite {sqlite3.sqlite_version}",
            applied=_migration_names(connection, sizes),
            pending=missing,
            bytes=sum(file.stat().st_size for file in files if file.exists()),
            tables=sizes,
        )


def _migration_names(connection: Connection, tables: Sequence[TableSize]) -> list[str]:
    has_history = any(table.name == "schema_migrations" for table in tables)
    return [name for _, name in migration_history(connection)] if has_history else []


def _read_value(connection: Connection, sql: str, *values: str) -> str:
    [value] = dict(connection.execute(sql, values).fetchone()).values()
    return str(value)


DATABASE_FILE = "openassay.sqlite3"  # in the data directory


@contextmanager
def open_database(settings: Settings, *, make: bool = False) -> Iterator[PostgresDatabase | SqliteDatabase]:
    """Open the database of the settings without migrating it. NotFoundError where there is none yet, unless `make`."""
    if settings.persistence.backend == "postgres":
        with PostgresDatabase(database_address(settings), migrate=False) as server:
            yield server
        return
    if settings.persistence.backend == "memory":
        raise ConfigurationError("persistence.backend is memory: there is no database", help="Set it to another.")
    path = settings.data_dir / DATABASE_FILE
    is_new = not path.exists()
    if is_new and not make:
        raise NotFoundError(f"there is no database {path} yet", help="The first question makes one.")
    with SqliteDatabase(path, migrate=is_new) as file:
        yield file


def database_address(settings: Settings) -> str:
    url = settings.keys.database_url
    address = settings.persistence.connection_string or (url.get_secret_value() if url else None)
    if address is None:
        raise ConfigurationError(
            "persistence.backend is postgres and no database is named",
            help="Set DATABASE_URL, as in postgresql://user:password@host/openassay.",
        )
    return address


_SCOPE_ORDER = ("thread", "run", "ledger", "user")  # what others refer to comes first

MemoryRow = tuple[str, str, str, str]  # owner, place, key and value


def transfer_to_postgres(
    source: Rows, target: Rows, files: tuple[FileStore, FileStore], memories: Sequence[MemoryRow]
) -> int:
    """Copy everything from SQLite into an empty PostgreSQL database, all or nothing; return how many rows.

    Rows are checked as they are read, and sealed anew as they are written. `files` are the bytes of uploads, here and
    there. Nobody may write to the source meanwhile."""
    with source.database.transaction() as reading, target.database.transaction() as writing:
        for table in ALL_TABLES:
            if writing.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone():  # noqa: S608  # names of ours
                raise UsageError(
                    f"{target.database.name} is not empty", help="Name an empty database, or create another one."
                )
        source.heads.check_all()
        count = 0
        for scope, owner in sorted(source.heads.list_scopes(), key=lambda scope: _SCOPE_ORDER.index(scope[0])):
            source.check(scope, owner)
            with target.open_writer(scope, owner) as writer:
                for table in (table for table in ALL_TABLES if table.scope == scope):
                    # In the order of insertion, by which the target numbers them; events alone have no rowid.
                    order = ", ".join(table.key) if table is EVENTS else "rowid"
                    sql = f"{table.select} WHERE {table.owner} = ? ORDER BY {order}"
                    for row in reading.execute(sql, (owner,)).fetchall():
                        count += writer.insert(table, source.decode(table, row))
        with target.open_writer("") as writer:
            for table in (table for table in ALL_TABLES if not table.scope):
                for row in chain.from_iterable(source.iter_batches(table)):
                    count += writer.insert(table, source.decode(table, row))
        # New calls are numbered from where these end.
        writing.execute("SELECT setval('calls_id', (SELECT max(id) FROM calls)) WHERE EXISTS (SELECT 1 FROM calls)")
        for memory in memories:
            with target.open_writer("user", memory[0]) as writer:
                count += writer.insert(MEMORIES, dict(zip(MEMORIES.columns, memory, strict=True)))
        here, there = files
        for upload in map(Upload.model_validate, source.read(UPLOADS)):
            if here.has(upload):  # bytes that are missing here stay missing
                there.put(upload, here.locate(upload.uri) / upload.name)
    return count
