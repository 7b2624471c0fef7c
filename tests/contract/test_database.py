"""What a database does when it cannot do what it should: it says so, says what to do, and loses nothing."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from openassay.errors import ConfigurationError, StorageError
from openassay.storage import postgres, sqlite
from openassay.storage.database import ALL_TABLES, PARTS, POSTGRES_SCHEMA, Database, Schema, load_migrations
from openassay.storage.integrity import ensure_seals
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.conftest import PostgresServer

pytestmark = pytest.mark.requirement("F-10", "C-15")

AFRESH = "restore a copy"


def write(rows: Rows, name: str, payload: bytes = b"payload") -> None:
    with rows.open_writer("thread", "t") as writer:
        writer.insert(PARTS, {"thread": "t", "hash": name, "payload": payload})


def names(rows: Rows) -> list[str]:
    """Everything, checked."""
    for scope, owner in rows.heads.list_scopes():
        rows.check(scope, owner, deep=True)
    return sorted(row["hash"] for table in ALL_TABLES for row in rows.read(table) if table is PARTS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a database with two rows in it."""
    path = tmp_path / "main.db"
    with SqliteDatabase(path) as database:
        rows = Rows(database)
        ensure_seals(rows)
        write(rows, "one")
        write(rows, "two")
    return path


def opened(path: Path) -> list[str]:
    with SqliteDatabase(path) as database:
        rows = Rows(database)
        ensure_seals(rows)
        return names(rows)


@contextmanager
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody else's connection."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


# SQLite: damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"This is a letter, not a database.\n" * 200, b"SQLite format 3\0" * 300])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "main.db"
    path.write_bytes(content)
    if not content:
        assert opened(path) == []  # as sqlite does: an empty file is an empty database
        return
    with pytest.raises(StorageError, match=r"main\.db") as caught:
        opened(path)
    assert AFRESH in caught.value.help
    assert path.read_bytes() == content


def test_a_file_that_was_cut_off(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(StorageError, match="malformed") as caught:
        opened(path)
    assert AFRESH in caught.value.help


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE parts SET hash = CAST(x'74ff' AS TEXT) WHERE hash = 'one'",
        "UPDATE heads SET seal = CAST(x'74ff' AS TEXT)",
        "UPDATE meta SET value = CAST(x'74ff' AS TEXT)",
        "DROP TABLE heads",
        "ALTER TABLE parts RENAME COLUMN payload TO load",
    ],
)
def test_text_that_is_none_and_tables_that_are_gone(path: Path, damage: str) -> None:
    with other(path) as connection:
        connection.execute(damage)
    with pytest.raises(StorageError) as caught:
        opened(path)
    assert AFRESH in caught.value.help
    assert "with text" not in str(caught.value)


@pytest.mark.slow
def test_any_flipped_bit_is_found_or_harmless(path: Path) -> None:
    whole = path.read_bytes()
    chance = random.Random(7)
    for _ in range(80):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        for rest in path.parent.glob("main.db-*"):
            rest.unlink()
        path.write_bytes(flipped)
        with suppress(StorageError):
            assert opened(path) == ["one", "two"]


# SQLite: busy, full, read-only ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_database_that_somebody_else_has_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.05)
    with SqliteDatabase(path) as database, other(path) as somebody:
        rows = Rows(database)
        somebody.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked") as caught:
            write(rows, "three")
        assert caught.value.retryable
        assert "Another process" in caught.value.help
        assert len(rows.read(PARTS)) == 2
        somebody.execute("COMMIT")
        write(rows, "three")
        assert names(rows) == ["one", "three", "two"]


def test_a_database_that_is_full(path: Path) -> None:
    with SqliteDatabase(path) as database:
        rows = Rows(database)
        with database.connection() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match="full") as caught:
            write(rows, "three", b"x" * 1_000_000)
        assert "free some space" in caught.value.help
        assert names(rows) == ["one", "two"]
        with database.connection() as connection:
            connection.execute("PRAGMA max_page_count = 1000000")
        write(rows, "three", b"x" * 1_000_000)
        assert names(rows) == ["one", "three", "two"]


FULL = """
import resource, sys
from pathlib import Path
from openassay.errors import StorageError
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.database import PARTS
rows = Rows(SqliteDatabase(Path(sys.argv[1])))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
for number in range(100):
    try:
        with rows.open_writer("thread", "t") as writer:
            writer.insert(PARTS, {"thread": "t", "hash": f"{number}", "payload": b"x" * 10_000})
    except StorageError as error:
        print(f"{number}|{error.help}")
        break
"""


@pytest.mark.slow
def test_a_disk_that_is_full(path: Path) -> None:
    """The operating system takes no more; what was written until then is there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FULL, path], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    written, help = done.stdout.split("|")
    assert "that it has room" in help
    assert int(written) > 0
    assert opened(path) == sorted(["one", "two", *map(str, range(int(written)))])


@pytest.fixture
def unwritable() -> Iterator[Path]:
    """A folder, and everything in it, that we may only read. Root may write anywhere, so it becomes nobody."""
    folder = Path(tempfile.mkdtemp(prefix="openassay-read-only-"))
    with SqliteDatabase(folder / "main.db") as database:
        ensure_seals(Rows(database))
    user = os.geteuid()
    (folder / "main.db").chmod(0o444)
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["main.db", "new.db", "below/new.db"])
def test_a_folder_that_may_only_be_read(unwritable: Path, name: str) -> None:
    with pytest.raises(StorageError, match=name) as caught:
        opened(unwritable / name)
    assert "must be writable" in caught.value.help
    assert [item.name for item in unwritable.iterdir()] == ["main.db"]


# PostgreSQL: out of reach -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_that_was_restarted_is_found_again(postgres_address: str, postgres_server: PostgresServer) -> None:
    with PostgresDatabase(postgres_address) as database:
        rows = Rows(database)
        write(rows, "one")
        postgres_server.stop()
        postgres_server.start()
        write(rows, "two")
        assert names(rows) == ["one", "two"]


@pytest.mark.slow
def test_however_many_connections_were_open_the_first_call_after_a_restart_finds_one_that_lives(
    postgres_address: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 12.0)  # the pool itself would pause 1, 2, 4 and 8 s at dead ones
    with PostgresDatabase(postgres_address) as database:
        together = threading.Barrier(8)

        def hold(_: int) -> None:
            with database.connection() as connection:
                connection.execute("SELECT 1 AS one")
                together.wait(30)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(hold, range(8)))
        assert database.connections()["idle"] == 8
        postgres_server.stop()
        postgres_server.start()
        write(Rows(database), "one")
        assert names(Rows(database)) == ["one"]


@pytest.mark.slow
def test_what_was_under_way_when_the_server_stopped_can_be_tried_again(
    postgres_address: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 0.3)
    with PostgresDatabase(postgres_address) as database:
        rows = Rows(database)
        write(rows, "one")

        def interrupted() -> None:
            with rows.open_writer("thread", "t") as writer:
                writer.insert(PARTS, {"thread": "t", "hash": "lost", "payload": b""})
                postgres_server.stop()
                writer.insert(PARTS, {"thread": "t", "hash": "lost too", "payload": b""})

        with pytest.raises(StorageError) as caught:
            interrupted()
        assert caught.value.retryable
        with pytest.raises(StorageError, match="cannot be reached") as caught:
            write(rows, "two")
        assert caught.value.retryable
        assert "server runs" in caught.value.help
        with pytest.raises(StorageError, match="cannot be reached") as caught:
            PostgresDatabase(postgres_address)
        assert caught.value.retryable
        postgres_server.start()
    with PostgresDatabase(postgres_address) as database:
        rows = Rows(database)
        write(rows, "two")
        assert names(rows) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message", "help"),
    [
        (("/test_", "/nothing_"), "does not exist", "CREATE DATABASE"),
        (("postgres:", "nobody:secret-password"), "does not exist", "user and the password"),
        (("postgresql://", "mysql://"), "not one of PostgreSQL", "postgresql://user"),
    ],
)
def test_an_address_that_is_wrong_is_told_at_once(
    postgres_address: str, change: tuple[str, str], message: str, help: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        PostgresDatabase(postgres_address.replace(*change))
    assert help in caught.value.help
    assert "secret-password" not in str(caught.value) + caught.value.help


@pytest.mark.slow
def test_a_password_is_never_told(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address.replace("postgres:", "postgres:secret-password")) as database:
        assert "secret-password" not in database.name
        with pytest.raises(StorageError) as caught, database.connection() as connection:
            connection.execute("SELECT nothing FROM nowhere")
        assert "secret-password" not in str(caught.value)
    with pytest.raises(StorageError, match="closed"), database.connection():
        pass


@pytest.mark.slow
def test_what_is_only_read_is_asked_again_of_a_server_that_is_back(
    postgres_address: str, postgres_server: PostgresServer
) -> None:
    """Whoever reads in the middle of a restart waits for its end, and is told nothing."""
    with PostgresDatabase(postgres_address) as database:
        rows = Rows(database)
        write(rows, "one")
        with database.connection() as connection:
            count = "SELECT count(*) AS n FROM parts"
            assert connection.execute(count).fetchone()["n"] == 1
            postgres_server.stop()
            with ThreadPoolExecutor(1) as pool:
                reading = pool.submit(lambda: connection.execute(count).fetchone()["n"])
                time.sleep(1.0)
                assert not reading.done()
                postgres_server.start()
                assert reading.result(timeout=60) == 1


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["UPDATE parts SET hash = hash", "WITH x AS (DELETE FROM parts RETURNING 1) SELECT 1"])
def test_what_may_have_been_done_is_not_done_again(postgres_address: str, sql: str) -> None:
    with PostgresDatabase(postgres_address) as database:

        def interrupted() -> None:
            with database.connection() as connection:
                terminate(postgres_address, connection.execute("SELECT pg_backend_pid() AS pid").fetchone()["pid"])
                connection.execute(sql)

        with pytest.raises(StorageError, match="terminating connection") as caught:
            interrupted()
        assert caught.value.retryable


def terminate(address: str, pid: int) -> None:
    with closing(psycopg.connect(address, autocommit=True)) as somebody:
        somebody.execute("SELECT pg_terminate_backend(%s, 10_000)", (pid,))


# PostgreSQL: other people's databases, migrations -----------------------------------------------------


@pytest.fixture
def empty(postgres_server: PostgresServer) -> Iterator[str]:
    address = postgres_server.create("")
    yield address
    postgres_server.drop(address)


KNOWN = [migration.name for migration in load_migrations(POSTGRES_SCHEMA.migrations)]


def applied(database: Database) -> list[str]:
    with database.connection() as connection:
        return [row["name"] for row in connection.execute("SELECT name FROM schema_migrations ORDER BY version")]


def tables(address: str) -> set[str]:
    with closing(psycopg.connect(address)) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        return {name for (name,) in found}


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Those there are, in a folder to which more can be added."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for migration in POSTGRES_SCHEMA.migrations.iterdir():
        (folder / migration.name).write_text(migration.read_text(encoding="utf-8"))
    monkeypatch.setattr("openassay.storage.database.POSTGRES_SCHEMA", Schema(folder, ""))
    return folder


NEXT = f"{len(KNOWN) + 1:04}_two"


@pytest.mark.slow
def test_many_may_open_a_new_database_at_once(empty: str) -> None:
    def one(_: int) -> list[str]:
        with PostgresDatabase(empty) as database:
            return applied(database)

    with ThreadPoolExecutor(4) as pool:
        assert all(found == KNOWN for found in pool.map(one, range(4)))


@pytest.mark.slow
def test_a_database_can_be_looked_at_without_being_changed(empty: str) -> None:
    with PostgresDatabase(empty, migrate=False) as database:
        assert [migration.name for migration in database.pending_migrations()] == KNOWN
    assert tables(empty) == set()


@pytest.mark.slow
def test_a_failed_migration_leaves_the_old_version(postgres_address: str, migrations: Path) -> None:
    (migrations / f"{NEXT}.sql").write_text("CREATE TABLE two (a TEXT);\nCREATE TABEL dos (a TEXT);\n")
    with pytest.raises(StorageError, match="TABEL"):
        PostgresDatabase(postgres_address)
    assert "two" not in tables(postgres_address)
    (migrations / f"{NEXT}.sql").write_text("CREATE TABLE two (a TEXT);\n")
    for _ in range(2):
        with PostgresDatabase(postgres_address) as database:
            assert applied(database) == [*KNOWN, NEXT]


@pytest.mark.slow
def test_a_process_that_is_older_than_the_database_says_so(
    postgres_address: str, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (migrations / f"{NEXT}.sql").write_text("CREATE TABLE two (a TEXT);\n")
    PostgresDatabase(postgres_address).close()
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match="newer OpenAssay") as caught:
        PostgresDatabase(postgres_address)
    assert "Upgrade this process" in caught.value.help


@pytest.mark.slow
def test_a_migration_may_be_cut_off_at_any_statement(empty: str, migrations: Path) -> None:
    """The server ends the connection after each of them in turn, of all that a new database needs."""
    first = migrations / f"{KNOWN[0]}.sql"
    last = migrations / f"{KNOWN[-1]}.sql"
    suicide = "SELECT pg_terminate_backend(pg_backend_pid());\n"
    for file in (first, last):
        whole = file.read_text()
        statements = list(sqlite.split_statements(whole))
        assert statements
        for count in range(len(statements) + 1):
            file.write_text("".join(statements[:count]) + suicide + "".join(statements[count:]))
            with pytest.raises(StorageError) as caught:
                PostgresDatabase(empty)
            assert caught.value.retryable
            assert tables(empty) == set()
        file.write_text(whole)
    with PostgresDatabase(empty) as database:
        assert applied(database) == KNOWN


SLOW = "CREATE TABLE two (a TEXT);\nSELECT pg_sleep(300);\nCREATE TABLE three (a TEXT);\n"
MIGRATING = """
import sys
from pathlib import Path
from openassay.storage import database
from openassay.storage.postgres import PostgresDatabase
database.POSTGRES_SCHEMA = database.Schema(Path(sys.argv[2]), "")
PostgresDatabase(sys.argv[1]).close()
"""


@contextmanager
def migrating(address: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in the middle of a long one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", MIGRATING, address, folder], env=environment) as child:
        try:
            wait_until(lambda: bool(sleeping(address)))
            yield child
        finally:
            child.kill()


def sleeping(address: str) -> list[int]:
    with closing(psycopg.connect(address)) as connection:
        asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
        return [pid for (pid,) in connection.execute(asked)]


def wait_until(is_so: Any) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["process", "connection"])
def test_a_migration_that_is_killed_is_done_by_the_next(postgres_address: str, migrations: Path, killed: str) -> None:
    (migrations / f"{NEXT}.sql").write_text(SLOW)
    with migrating(postgres_address, migrations) as child:
        if killed == "process":
            child.send_signal(signal.SIGKILL)  # and the server sees within moments that nobody waits for it
        else:
            terminate(postgres_address, sleeping(postgres_address)[0])
        assert child.wait(60) != 0
    (migrations / f"{NEXT}.sql").write_text(SLOW.replace("300", "0"))
    with PostgresDatabase(postgres_address) as database:
        assert applied(database) == [*KNOWN, NEXT]
    assert {"two", "three"} <= tables(postgres_address)


@pytest.mark.slow
def test_whoever_comes_while_another_migrates_waits_for_it(postgres_address: str, migrations: Path) -> None:
    (migrations / f"{NEXT}.sql").write_text(SLOW.replace("300", "2"))
    with migrating(postgres_address, migrations) as child:
        with PostgresDatabase(postgres_address) as database:
            assert applied(database) == [*KNOWN, NEXT]
        assert child.wait(60) == 0


def test_a_user_who_may_not_create_tables_is_told_who_can(
    postgres_address: str, postgres_server: PostgresServer, migrations: Path
) -> None:
    postgres_server.execute("CREATE ROLE worker LOGIN")
    with closing(psycopg.connect(postgres_address, autocommit=True)) as connection:
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO worker")
    worker = postgres_address.replace("postgres:", "worker:")
    with PostgresDatabase(worker) as database:
        write(Rows(database), "one")  # nothing is missing, so nothing has to be created
    (migrations / f"{NEXT}.sql").write_text("CREATE TABLE two (a TEXT);\n")
    with pytest.raises(ConfigurationError, match="may not") as caught:
        PostgresDatabase(worker)
    assert "openassay admin db migrate" in caught.value.help
    PostgresDatabase(postgres_address).close()


def test_a_server_that_is_too_old_is_told(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "OLDEST_SERVER", 99)
    with pytest.raises(ConfigurationError, match="is PostgreSQL") as caught:
        PostgresDatabase(empty)
    assert "99 or newer" in caught.value.help


@pytest.mark.parametrize(
    ("sql", "message", "help"),
    [
        ("UPDATE schema_migrations SET name = '0001_other'", "another kind", "of its own"),
        ("UPDATE schema_migrations SET version = 99 WHERE version = 1", "another kind", "of its own"),
        ("DROP TABLE schema_migrations", "already exists", "empty database"),
    ],
)
def test_a_database_of_somebody_else(postgres_address: str, sql: str, message: str, help: str) -> None:
    with PostgresDatabase(postgres_address) as database, database.transaction() as connection:
        connection.execute(sql)
    with pytest.raises(StorageError, match=message) as caught:
        PostgresDatabase(postgres_address)
    assert help in caught.value.help


def test_a_file_that_says_it_is_further_than_it_is(path: Path) -> None:
    with other(path) as connection:
        connection.execute("UPDATE schema_migrations SET version = 99 WHERE version = 7")
    with pytest.raises(StorageError, match="another kind of database"):
        opened(path)


def test_a_database_that_cannot_hold_every_text(postgres_server: PostgresServer) -> None:
    address = postgres_server.create("TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(ConfigurationError, match="SQL_ASCII") as caught:
        PostgresDatabase(address)
    assert "UTF8" in caught.value.help
    postgres_server.drop(address)


@pytest.mark.slow
def test_a_user_who_may_only_read(postgres_address: str, postgres_server: PostgresServer) -> None:
    postgres_server.execute("CREATE ROLE reader LOGIN")
    with PostgresDatabase(postgres_address) as database, database.transaction() as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    reader = postgres_address.replace("postgres:", "reader:")
    with PostgresDatabase(reader) as database, pytest.raises(StorageError, match="permission denied") as caught:
        write(Rows(database), "one")
    assert "GRANT" in caught.value.help
    assert not caught.value.retryable
