"""What every DocumentStore does, and what SQLite does about files that are not databases."""

import asyncio
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openassay.errors import ConfigurationError, EvidenceError, NotFoundError, StorageError
from openassay.models.evidence import Document
from openassay.protocols import DocumentStore
from openassay.storage.database import INDEX_SCHEMA, Schema
from openassay.storage.documents import SqlDocuments
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.testing import MemoryDocuments

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

FULL = Document(
    hash=hashlib.sha256(b"A kiln is hot.\x00\n").hexdigest(),
    text="A kiln is hot.\x00\n",
    url="https://example.org/kiln",
    title="Kilns, \N{FIRE}",
    host="example.org",
    author="A. Potter",
    published=date(2025, 12, 31),
    fetched=NOW,
    kind="web",
    origin="https://example.org/first",
)


def snapshot(text: str, url: str = "file:///a.txt") -> Document:
    hash = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Document(hash=hash, text=text, url=url, title="A", fetched=NOW)


@pytest.fixture
def database(sqlite_database: SqliteDatabase) -> SqliteDatabase:
    return sqlite_database


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> DocumentStore:
    if request.param == "memory":
        return MemoryDocuments()
    return SqlDocuments(Rows(request.getfixturevalue(f"{request.param}_database")))


# Every store ------------------------------------------------------------------------------------------


async def test_what_is_put_can_be_had_again(store: DocumentStore) -> None:
    await store.put(FULL)
    assert await store.get(FULL.hash) == FULL


async def test_the_first_metadata_of_a_text_stay(store: DocumentStore) -> None:
    await store.put(snapshot("text", url="file:///first"))
    await store.put(snapshot("text", url="file:///second"))
    assert (await store.get(snapshot("text").hash)).url == "file:///first"


async def test_a_hash_that_is_not_of_the_text_is_refused(store: DocumentStore) -> None:
    wrong = snapshot("text").model_copy(update={"text": "another text"})
    with pytest.raises(EvidenceError):
        await store.put(wrong)
    with pytest.raises(NotFoundError):
        await store.get(wrong.hash)


async def test_an_unknown_hash_is_not_found(store: DocumentStore) -> None:
    with pytest.raises(NotFoundError) as caught:
        await store.get("0" * 64)
    assert caught.value.help


@pytest.mark.parametrize("length", [8, 20, 63, 64])
async def test_a_prefix_of_a_hash_will_do(store: DocumentStore, length: int) -> None:
    await store.put(FULL)
    await store.put(snapshot("another"))
    assert await store.get(FULL.hash[:length].upper()) == FULL


@pytest.mark.slow
@pytest.mark.parametrize("hash", ["", "abc", FULL.hash[:7], "g" * 64, FULL.hash + "0", "%" * 8, "*" * 8, "\x00"])
async def test_what_cannot_be_a_hash_is_not_found(store: DocumentStore, hash: str) -> None:
    await store.put(FULL)
    with pytest.raises(NotFoundError):
        await store.get(hash)


async def test_many_puts_at_once(store: DocumentStore) -> None:
    documents = [snapshot(f"text {number % 10}") for number in range(100)]
    await asyncio.gather(*(store.put(document) for document in documents))
    assert [await store.get(document.hash) for document in documents] == documents


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.characters(), max_size=300), title=st.text(alphabet=st.characters()))
async def test_any_text_survives_or_is_refused(store: DocumentStore, text: str, title: str) -> None:
    document = snapshot(text).model_copy(update={"title": title})
    if any("\ud800" <= c <= "\udfff" for c in text):
        with pytest.raises(EvidenceError):
            await store.put(document)
        return
    await store.put(document)
    assert (await store.get(document.hash)).text == text


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
async def test_text_that_is_not_unicode_is_refused(store: DocumentStore, text: str) -> None:
    with pytest.raises(EvidenceError):
        await store.put(snapshot(text))


# SQLite: snapshots ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    ["text = text || '.'", "text = CAST(x'ff' AS TEXT)", "metadata = '{'", "metadata = '{}'", "metadata = '7'"],
)
async def test_an_altered_snapshot_is_noticed(database: SqliteDatabase, change: str) -> None:
    store = SqlDocuments(Rows(database))
    await store.put(FULL)
    with database.transaction() as connection:
        connection.execute(f"UPDATE documents SET {change}")  # noqa: S608
    with pytest.raises((EvidenceError, StorageError)):
        await store.get(FULL.hash)


async def test_an_ambiguous_prefix_says_so(database: SqliteDatabase) -> None:
    store = SqlDocuments(Rows(database))
    await store.put(FULL)
    with database.transaction() as connection:
        # Two texts whose hashes begin alike would take hours to find; a forged row will do.
        twin = FULL.hash[:10] + "0" * 54
        connection.execute("INSERT INTO documents SELECT ?, metadata, text, seal FROM documents", (twin,))
    with pytest.raises(NotFoundError, match="ambiguous"):
        await store.get(FULL.hash[:8])
    assert await store.get(FULL.hash[:12]) == FULL


# SQLite: connections and transactions -----------------------------------------------------------------


def test_it_is_set_up_for_many_readers_and_one_writer(database: SqliteDatabase) -> None:
    with database.connection() as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert found == ["wal", 1, 1, 10_000]


def test_a_thread_has_a_connection_of_its_own_and_an_ended_one_keeps_none(database: SqliteDatabase) -> None:
    seen = []

    def look() -> None:
        with database.connection() as connection:
            seen.append(connection)

    for _ in range(3):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    look()
    assert len(set(map(id, seen))) == 4
    for ended in seen[:2]:
        with pytest.raises(sqlite3.ProgrammingError):
            ended.execute("SELECT 1")


def test_closing_waits_for_what_is_under_way(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "main.db")
    inside, done = threading.Event(), []

    def write() -> None:
        with database.transaction() as connection:
            inside.set()
            time.sleep(0.1)
            connection.execute("INSERT INTO documents VALUES ('a', '{}', 'a', '')")
        done.append(True)

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait()
    database.close()
    assert done
    thread.join()
    database.close()
    with pytest.raises(StorageError, match="closed"), database.connection():
        pass


def test_a_failed_transaction_leaves_nothing(database: SqliteDatabase) -> None:
    with pytest.raises(ZeroDivisionError):
        _fail_after_writing(database)
    assert _count(database) == 0


def test_a_failed_part_spoils_the_whole(database: SqliteDatabase) -> None:
    def whole() -> None:
        with database.transaction():
            with pytest.raises(ZeroDivisionError):
                _fail_after_writing(database)
            with database.transaction() as connection:
                connection.execute("INSERT INTO documents VALUES ('b', '{}', 'b', '')")

    with pytest.raises(StorageError, match="nothing of it was kept"):
        whole()
    assert _count(database) == 0
    with database.transaction() as connection:
        connection.execute("INSERT INTO documents VALUES ('c', '{}', 'c', '')")
    assert _count(database) == 1


def test_text_that_cannot_be_encoded_is_our_error(database: SqliteDatabase) -> None:
    with pytest.raises(StorageError, match="surrogate"), database.transaction() as connection:
        connection.execute("INSERT INTO documents VALUES (?, '{}', 'a', '')", ("\ud800",))


def _fail_after_writing(database: SqliteDatabase) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO documents VALUES ('a', '{}', 'a', '')")
        raise ZeroDivisionError


def _count(database: SqliteDatabase) -> int:
    with database.connection() as connection:
        return int(connection.execute("SELECT count(*) FROM documents").fetchone()[0])


# SQLite: files that cannot be used --------------------------------------------------------------------


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, not a database. " * 100)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"notes\.txt") as caught:
        SqliteDatabase(path)
    assert caught.value.help
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith("notes")] == ["notes.txt"]


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=str(tmp_path)) as caught:
        SqliteDatabase(tmp_path)
    assert caught.value.help


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file") as caught:
        SqliteDatabase(tmp_path / "file" / "below" / "main.db")
    assert caught.value.help


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError) as caught:
        SqliteDatabase(tmp_path / "main.db")
    tmp_path.chmod(0o700)
    assert caught.value.help
    assert not (tmp_path / "main.db").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that root may not write either")
def test_a_folder_that_nobody_may_write() -> None:
    with pytest.raises(StorageError, match=r"/proc/self/main\.db") as caught:
        SqliteDatabase(Path("/proc/self/main.db"))
    assert caught.value.help


def test_missing_folders_are_made(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "a" / "b" / "main.db").close()
    assert (tmp_path / "a" / "b" / "main.db").is_file()


# SQLite: migrations -----------------------------------------------------------------------------------


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_one.sql").write_text("CREATE TABLE one (a);\nCREATE TABLE uno (a);\n")
    return Schema(folder, "Delete it.")


def _add(schema: Schema, name: str, sql: str) -> None:
    Path(str(schema.migrations), name).write_text(sql)


def _tables(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    connection.close()
    return [name for (name,) in rows]


def _versions(path: Path) -> list[tuple[int, str]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT version, name FROM schema_migrations ORDER BY version").fetchall()
    connection.close()
    return rows


def test_migrations_are_applied_once_and_recorded(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "m.db"
    SqliteDatabase(path, schema).close()
    trigger = "CREATE TRIGGER t AFTER INSERT ON one BEGIN\n  DELETE FROM uno;\n  DELETE FROM one;\nEND;\n"
    _add(schema, "0002_two.sql", "CREATE TABLE two (a);\n" + trigger)
    for _ in range(2):
        SqliteDatabase(path, schema).close()
    assert _versions(path) == [(1, "0001_one"), (2, "0002_two")]


def test_a_failed_migration_leaves_the_old_version(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "m.db"
    SqliteDatabase(path, schema).close()
    _add(schema, "0002_two.sql", "CREATE TABLE two (a);\nCREATE TABEL dos (a);\n")
    with pytest.raises(StorageError, match=r"m\.db"):
        SqliteDatabase(path, schema)
    assert _tables(path) == ["one", "schema_migrations", "uno"]
    _add(schema, "0002_two.sql", "CREATE TABLE two (a);\n")
    SqliteDatabase(path, schema).close()
    assert _tables(path) == ["one", "schema_migrations", "two", "uno"]


def test_a_killed_migration_leaves_the_old_version(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "m.db"
    SqliteDatabase(path, schema).close()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    _add(schema, "0002_two.sql", f"CREATE TABLE two AS {endless};\n")
    script = (
        "import sys; from pathlib import Path; from openassay.storage.database import Schema;"
        "from openassay.storage.sqlite import SqliteDatabase;"
        "SqliteDatabase(Path(sys.argv[1]), Schema(Path(sys.argv[2]), ''))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen([sys.executable, "-c", script, path, str(schema.migrations)], env=environment)
    _wait_until_locked(path, child)
    child.send_signal(signal.SIGKILL)
    child.wait()
    _add(schema, "0002_two.sql", "CREATE TABLE two (a);\n")
    assert _versions(path) == [(1, "0001_one")]
    SqliteDatabase(path, schema).close()
    assert _versions(path) == [(1, "0001_one"), (2, "0002_two")]


def _wait_until_locked(path: Path, child: "subprocess.Popen[bytes]") -> None:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    while child.poll() is None:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            connection.close()
            return
        connection.execute("ROLLBACK")
        time.sleep(0.01)
    pytest.fail("the migration ended before it could be killed")


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "main.db"
    with SqliteDatabase(path) as database, database.transaction() as connection:
        known = connection.execute("SELECT count(*) FROM schema_migrations").fetchone()[0]
        connection.execute("INSERT INTO schema_migrations VALUES (?, 'tomorrow', '')", (known + 1,))
    with pytest.raises(ConfigurationError, match="newer") as caught:
        SqliteDatabase(path)
    assert "Upgrade" in caught.value.help


def test_another_kind_of_database_is_refused(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "main.db").close()
    with pytest.raises(StorageError, match="another kind"):
        SqliteDatabase(tmp_path / "main.db", INDEX_SCHEMA)


def test_migrations_are_numbered_without_gaps(tmp_path: Path, schema: Schema) -> None:
    _add(schema, "0003_three.sql", "CREATE TABLE three (a);\n")
    with pytest.raises(StorageError, match="0002"):
        SqliteDatabase(tmp_path / "m.db", schema)
    assert not (tmp_path / "m.db").exists()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from openassay.storage.sqlite import SqliteDatabase;"
        "SqliteDatabase(Path(sys.argv[1])).close()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / "main.db")]
    children = [subprocess.Popen(command, env=environment) for _ in range(6)]
    assert [child.wait() for child in children] == [0] * 6
