"""Databases for the contracts of stores: what holds on SQLite holds on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from openassay.storage.database import THREADS, Database
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.sqlite import SqliteDatabase

KEY = "a key that only these tests have"


def with_threads(rows: Rows, *ids: str) -> Rows:
    """With threads that notes and checkpoints can be of."""
    for id in ids:
        with rows.open_writer("thread", id) as writer:
            row = {
                "id": id,
                "title": "",
                "created": "2026-01-01",
                "updated": "2026-01-01",
                "mode": None,
                "owner": "local",
            }
            writer.insert(THREADS, row, on_conflict="keep")
    return rows


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    with SqliteDatabase(tmp_path / "main.db") as database:
        yield database


@pytest.fixture
def postgres_database(postgres_address: str) -> Iterator[PostgresDatabase]:
    with PostgresDatabase(postgres_address) as database:
        yield database


@pytest.fixture(params=["sqlite", "postgres"])
def any_database(request: pytest.FixtureRequest) -> Database:
    """The same test on both."""
    database: Database = request.getfixturevalue(f"{request.param}_database")
    return database


@pytest.fixture
def rows(any_database: Database) -> Rows:
    return Rows(any_database)


@pytest.fixture
def keyed_rows(any_database: Database) -> Rows:
    """Sealed with a key, and encrypted."""
    return Rows(any_database, Seals(KEY, encrypt=True))
