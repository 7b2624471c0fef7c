"""Numbered SQL files, applied once each and in order; one that was released never changes."""

import re
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from assay.errors import ConfigurationError, StorageError
from assay.storage.database import Connection, timestamp, utc_now

_FOLDERS = files("assay.storage") / "migrations"
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied TEXT NOT NULL)
"""
_APPLIED = "INSERT INTO schema_migrations (version, name, applied) VALUES (?, ?, ?)"


class Schema(NamedTuple):
    """A kind of database: the folder of its migrations, and what to do about a damaged file."""

    migrations: Traversable
    help: str


_AFRESH = "Move it away and start afresh, restore a copy, or choose another data directory."
MAIN = Schema(_FOLDERS / "main", _AFRESH)
LIBRARY = Schema(_FOLDERS / "library", "Delete it; it will be rebuilt.")
POSTGRES = Schema(_FOLDERS / "postgres", "Restore a copy of the database, or name another one.")


Applied = tuple[int, str]  # its version and its name


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


def read(folder: Traversable) -> list[Migration]:
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    migrations = []
    for version, name in enumerate(found, start=1):
        if not re.fullmatch(rf"{version:04}_\w+\.sql", name):
            raise StorageError(f"migration {name} should be number {version:04}", help="Reinstall Assay.")
        sql = (folder / name).read_text(encoding="utf-8")
        migrations.append(Migration(version, name.removesuffix(".sql"), sql))
    return migrations


def applied(connection: Connection) -> list[Applied]:
    """What a database says it has had, where it says anything."""
    rows = connection.execute("SELECT version, name FROM schema_migrations ORDER BY version").fetchall()
    return [(row["version"], row["name"]) for row in rows]


def version(database: str, applied: Sequence[Applied], known: Sequence[Migration]) -> int:
    """How many migrations a database has had, once it is clear that they were these."""
    expected = [(migration.version, migration.name) for migration in known]
    if list(applied[: len(expected)]) != expected[: len(applied)]:
        raise StorageError(
            f"{database} is another kind of database", help="Name a file, or a database, of its own.", path=database
        )
    if len(applied) > len(expected):
        raise ConfigurationError(
            f"{database} was written by a newer Assay (schema {len(applied)}, known here: {len(expected)})",
            help="Upgrade this process, or name another database or data directory.",
            path=database,
        )
    return len(applied)


def note(connection: Connection, migration: Migration) -> None:
    """What was applied, written in the transaction that applied it."""
    connection.execute(_TABLE)
    connection.execute(_APPLIED, (migration.version, migration.name, timestamp(utc_now())))
