"""A database as it stands, for whoever looks after it: nothing is changed by looking."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

from openassay.errors import ConfigurationError, NotFoundError, UsageError
from openassay.settings import Settings
from openassay.storage.database import ALL_TABLES, EVENTS, MEMORIES, UPLOADS, Connection, TableSpec, migration_history
from openassay.storage.postgres import PostgresDatabase, pending_migrations
from openassay.storage.rows import Rows, Writer, select_sql
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.uploads import FileStore, to_upload, upload_uri

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
    rows: int | None  # None: not counted yet; PostgreSQL tells about how many there are
    bytes: int | None = None  # with indexes; None: SQLite does not tell


class ConnectionCounts(NamedTuple):
    """To one database, by the name of the program; `most` is what the server takes, for all of its databases."""

    by_program: dict[str, int]
    most: int


class Inspection(NamedTuple):
    """`applied` and `pending` are migrations, by name; `connections` where there is a server."""

    database: str
    server: str
    applied: Sequence[str]
    pending: Sequence[str]
    bytes: int
    tables: Sequence[TableSize]
    connections: ConnectionCounts | None = None


def inspect_database(database: PostgresDatabase | SqliteDatabase) -> Inspection:
    return _inspect_server(database) if isinstance(database, PostgresDatabase) else _inspect_file(database)


def _inspect_server(database: PostgresDatabase) -> Inspection:
    missing = [migration.name for migration in pending_migrations(database)]
    with database.connection() as connection:
        tables = [TableSize(**row) for row in connection.execute(_TABLES)]
        return Inspection(
            database=database.name,
            server=f"PostgreSQL {_read_value(connection, 'SELECT current_setting(?)', 'server_version')}",
            applied=_migration_names(connection, tables),
            pending=missing,
            bytes=int(_read_value(connection, "SELECT pg_database_size(current_database())")),
            tables=[table._replace(rows=None) if table.rows == -1 else table for table in tables],
            connections=ConnectionCounts(
                {row["name"]: row["count"] for row in connection.execute(_CONNECTIONS)},
                int(_read_value(connection, "SELECT current_setting(?)", "max_connections")),
            ),
        )


def _inspect_file(database: SqliteDatabase) -> Inspection:
    missing = [migration.name for migration in database.pending_migrations()]
    with database.connection() as connection:
        tables = _table_sizes(connection)
        return Inspection(
            database=database.name,
            server=f"SQLite {sqlite3.sqlite_version}",
            applied=_migration_names(connection, tables),
            pending=missing,
            bytes=sum(_file_size(f"{database.path}{part}") for part in ("", "-wal")),
            tables=tables,
        )


def _table_sizes(connection: Connection) -> list[TableSize]:
    names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: int(_read_value(connection, f'SELECT count(*) FROM "{name}"')) for name in names}  # noqa: S608
    return [TableSize(name, rows[name]) for name in sorted(names, key=lambda name: (-rows[name], name))]


def _migration_names(connection: Connection, tables: Sequence[TableSize]) -> list[str]:
    is_begun = any(table.name == "schema_migrations" for table in tables)
    return [name for _, name in migration_history(connection)] if is_begun else []


def _read_value(connection: Connection, sql: str, *values: str) -> str:
    """The one value it answers with."""
    [value] = dict(connection.execute(sql, values).fetchone()).values()
    return str(value)


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


# The database of the settings, as it stands. What opens all the rest takes seconds to import; this does not.

DATABASE_FILE = "openassay.sqlite3"  # in the data directory


@contextmanager
def open_database(settings: Settings, *, make: bool = False) -> Iterator[PostgresDatabase | SqliteDatabase]:
    """Nothing is applied to it. NotFoundError where there is none yet, unless it is to be made."""
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


# Everything one machine keeps in SQLite, written into an empty PostgreSQL database: checked as it is read, and sealed
# anew as it is written.

_ORDER = ("thread", "run", "ledger", "user")  # what others refer to comes first

MemoryRow = tuple[str, str, str, str]  # whose, where, under which key, and what


def transfer_to_postgres(
    source: Rows, target: Rows, files: tuple[FileStore, FileStore], memories: Sequence[MemoryRow]
) -> int:
    """All or nothing; how many rows. `files` are where the bytes of uploads stand, and where they go. Nobody writes to
    the source meanwhile."""
    with source.database.transaction() as reading, target.database.transaction() as writing:
        _refuse_unless_empty(target, writing)
        source.check_heads()
        count = 0
        for scope, owner in sorted(source.scopes(), key=lambda one: _ORDER.index(one[0])):
            source.check(scope, owner)
            with target.open_writer(scope, owner) as writer:
                count += sum(
                    _copy_rows(source, reading, writer, table, owner) for table in ALL_TABLES if table.scope == scope
                )
        with target.open_writer("") as writer:
            for table in (table for table in ALL_TABLES if not table.scope):
                for row in chain.from_iterable(source.iter_batches(table)):
                    count += writer.insert(table, source.decode(table, row))
        _reset_sequence(writing)
        count += _copy_memories(target, memories)
        _copy_files(source, *files)
    return count


def _copy_rows(source: Rows, reading: Connection, writer: Writer, table: TableSpec, owner: str) -> int:
    """In the order in which they were inserted, which the new place numbers them by."""
    order = ", ".join(table.key) if table is EVENTS else "rowid"  # the only one without
    rows = reading.execute(select_sql(table, f"WHERE {table.owner} = ? ORDER BY {order}"), (owner,)).fetchall()
    return sum(writer.insert(table, source.decode(table, row)) for row in rows)


def _reset_sequence(writing: Connection) -> None:
    """From where those of the calls end."""
    writing.execute("SELECT setval('calls_id', (SELECT max(id) FROM calls)) WHERE EXISTS (SELECT 1 FROM calls)")


def _copy_memories(target: Rows, memories: Sequence[MemoryRow]) -> int:
    for memory in memories:
        with target.open_writer("user", memory[0]) as writer:
            writer.insert(MEMORIES, dict(zip(MEMORIES.columns, memory, strict=True)))
    return len(memories)


def _copy_files(source: Rows, here: FileStore, there: FileStore) -> None:
    """Bytes that are gone here are gone there, too."""
    for upload in map(to_upload, source.read(UPLOADS)):
        if here.has(upload):
            there.put(upload, here.locate(upload_uri(upload)) / upload.name)


def _refuse_unless_empty(target: Rows, writing: Connection) -> None:
    for table in ALL_TABLES:
        if writing.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone():  # noqa: S608  # names of ours
            raise UsageError(
                f"{target.database.name} holds something already", help="Name an empty database, or create another one."
            )
