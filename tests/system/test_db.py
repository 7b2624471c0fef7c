"""`assay db` in processes of its own."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from assay.storage.migrating import POSTGRES, read
from tests.conftest import PostgresServer
from tests.system.command import Command, Ran

pytestmark = pytest.mark.requirement("F-10")
KNOWN = [migration.name for migration in read(POSTGRES.migrations)]

Shared = Callable[..., Ran]


def on(assay: Command, address: str) -> Shared:
    """The command on a PostgreSQL database."""
    return lambda *words: assay(*words, env={"ASSAY_PERSISTENCE__BACKEND": "postgres", "DATABASE_URL": address})


def test_the_database_of_one_machine(assay: Command) -> None:
    assay("db", "status").refused(2, "no database", "first question")
    assert "up to date" in assay("db", "migrate").err
    told = assay("db", "status", "--json").json
    assert told["pending"] == []
    assert told["server"].startswith("SQLite")
    assert {"name": "threads", "rows": 0, "bytes": None} in told["tables"]
    assert told["connections"] is None


def test_a_database_is_looked_at_and_brought_up_to_date(assay: Command, postgres_server: PostgresServer) -> None:
    address = postgres_server.create("")
    shared = on(assay, address)
    before = shared("db", "status", "--json").json
    assert (before["applied"], before["pending"], before["tables"]) == ([], KNOWN, [])
    assert not before["queue"]

    done = shared("db", "migrate")
    assert done.code == 0
    assert all(name in done.err for name in KNOWN)
    assert "queue of the workers is ready" in done.err
    shown = shared("db", "status")
    assert f"schema       {KNOWN[-1]} ({len(KNOWN)} applied)" in shown.out
    assert "queue        ready for workers" in shown.out
    assert "missing      nothing" in shown.out
    assert "assay " in next(line for line in shown.out.splitlines() if line.startswith("connections"))
    assert "postgres:" not in shown.out  # nor would a password be

    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (%s, 'tomorrow', '')", (len(KNOWN) + 1,))
    shared("db", "migrate").refused(2, "newer Assay", "Upgrade this process")
    postgres_server.drop(address)


def test_where_there_is_no_database_to_look_at(assay: Command, postgres_address: str) -> None:
    nowhere = postgres_address.replace("/test_", "/nothing_")
    on(assay, nowhere)("db", "status").refused(2, "does not exist", "CREATE DATABASE")
    on(assay, postgres_address)("db", "copy", assay.folder).refused(2, "holds no assay.sqlite3")
