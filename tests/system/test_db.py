"""`openassay admin db` in processes of its own."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from openassay.storage.database import POSTGRES_SCHEMA, load_migrations
from tests.conftest import PostgresServer
from tests.system.command import Command, Ran

pytestmark = pytest.mark.requirement("F-10")
KNOWN = [migration.name for migration in load_migrations(POSTGRES_SCHEMA.migrations)]

Shared = Callable[..., Ran]


def on(openassay: Command, address: str) -> Shared:
    """The command on a PostgreSQL database."""
    return lambda *words: openassay(*words, env={"OPENASSAY_PERSISTENCE__BACKEND": "postgres", "DATABASE_URL": address})


@pytest.mark.slow
def test_the_database_of_one_machine(openassay: Command) -> None:
    openassay("admin", "db", "status").refused(2, "no database", "first question")
    assert "up to date" in openassay("admin", "db", "migrate").err
    told = openassay("admin", "db", "status", "--json").json
    assert told["pending"] == []
    assert told["server"].startswith("SQLite")
    assert {"name": "threads", "rows": 0, "bytes": None} in told["tables"]
    assert told["connections"] is None


@pytest.mark.slow
def test_a_database_is_looked_at_and_brought_up_to_date(openassay: Command, postgres_server: PostgresServer) -> None:
    address = postgres_server.create("")
    shared = on(openassay, address)
    before = shared("admin", "db", "status", "--json").json
    assert (before["applied"], before["pending"], before["tables"]) == ([], KNOWN, [])
    assert not before["queue"]

    done = shared("admin", "db", "migrate")
    assert done.code == 0
    assert all(name in done.err for name in KNOWN)
    assert "queue of the workers is ready" in done.err
    shown = shared("admin", "db", "status")
    assert f"schema       {KNOWN[-1]} ({len(KNOWN)} applied)" in shown.out
    assert "queue        ready for workers" in shown.out
    assert "missing      nothing" in shown.out
    assert "openassay " in next(line for line in shown.out.splitlines() if line.startswith("connections"))
    assert "postgres:" not in shown.out  # nor would a password be

    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (%s, 'tomorrow', '')", (len(KNOWN) + 1,))
    shared("admin", "db", "migrate").refused(2, "newer OpenAssay", "Upgrade this process")
    postgres_server.drop(address)


@pytest.mark.slow
def test_where_there_is_no_database_to_look_at(openassay: Command, postgres_address: str) -> None:
    nowhere = postgres_address.replace("/test_", "/nothing_")
    on(openassay, nowhere)("admin", "db", "status").refused(2, "does not exist", "CREATE DATABASE")
    on(openassay, postgres_address)("admin", "db", "copy", openassay.folder).refused(2, "holds no openassay.sqlite3")
