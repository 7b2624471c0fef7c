"""A database as it stands, for whoever looks after it: nothing is changed by looking."""

import os
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from assay.storage.database import Connection
from assay.storage.migrating import applied
from assay.storage.postgres import PostgresDatabase
from assay.storage.sqlite import SqliteDatabase
from assay.storage.upgrade import pending

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


class Connections(NamedTuple):
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
    connections: Connections | None = None


def inspect(database: PostgresDatabase | SqliteDatabase) -> Inspection:
    return _of_server(database) if isinstance(database, PostgresDatabase) else _of_file(database)


def _of_server(database: PostgresDatabase) -> Inspection:
    missing = [migration.name for migration in pending(database)]
    with database.connection() as connection:
        tables = [TableSize(**row) for row in connection.execute(_TABLES)]
        return Inspection(
            database=database.name,
            server=f"PostgreSQL {_told(connection, 'SELECT current_setting(?)', 'server_version')}",
            applied=_applied(connection, tables),
            pending=missing,
            bytes=int(_told(connection, "SELECT pg_database_size(current_database())")),
            tables=[table._replace(rows=None) if table.rows == -1 else table for table in tables],
            connections=Connections(
                {row["name"]: row["count"] for row in connection.execute(_CONNECTIONS)},
                int(_told(connection, "SELECT current_setting(?)", "max_connections")),
            ),
        )


def _of_file(database: SqliteDatabase) -> Inspection:
    missing = [migration.name for migration in database.pending()]
    with database.connection() as connection:
        tables = _tables(connection)
        return Inspection(
            database=database.name,
            server=f"SQLite {sqlite3.sqlite_version}",
            applied=_applied(connection, tables),
            pending=missing,
            bytes=sum(_size(f"{database.path}{part}") for part in ("", "-wal")),
            tables=tables,
        )


def _tables(connection: Connection) -> list[TableSize]:
    names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: int(_told(connection, f'SELECT count(*) FROM "{name}"')) for name in names}  # noqa: S608
    return [TableSize(name, rows[name]) for name in sorted(names, key=lambda name: (-rows[name], name))]


def _applied(connection: Connection, tables: Sequence[TableSize]) -> list[str]:
    is_begun = any(table.name == "schema_migrations" for table in tables)
    return [name for _, name in applied(connection)] if is_begun else []


def _told(connection: Connection, sql: str, *values: str) -> str:
    """The one value it answers with."""
    [value] = dict(connection.execute(sql, values).fetchone()).values()
    return str(value)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
