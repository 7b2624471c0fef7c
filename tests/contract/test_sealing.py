"""How a database comes to be sealed, and how its key is changed."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from openassay.errors import ConfigurationError, IntegrityError
from openassay.storage import sealed_rows as module
from openassay.storage.database import (
    ACCOUNTS,
    ALL_TABLES,
    CALLS,
    DOCUMENTS,
    EVENTS,
    PARTS,
    REVIEWS,
    RUNS,
    THREADS,
    Database,
)
from openassay.storage.integrity import DatabaseSealSettings, ensure_seals, read_seal_settings, reseal
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.sqlite import SqliteDatabase
from tests.contract.conftest import KEY

pytestmark = pytest.mark.requirement("F-10")

OTHER = "another key, as long as the first"
WAYS = {
    "plain": Seals(),
    "keyed": Seals(KEY),
    "encrypted": Seals(KEY, encrypt=True),
    "other": Seals(OTHER, encrypt=True),
}


def execute(database: Database, sql: str) -> None:
    with database.transaction() as connection:
        connection.execute(sql)


def fill(rows: Rows, threads: int = 2) -> None:
    for number in range(threads):
        with rows.open_writer("thread", f"t{number}") as writer:
            thread = {
                "id": f"t{number}",
                "title": "Kilns",
                "created": "",
                "updated": "",
                "mode": None,
                "owner": "local",
            }
            writer.insert(THREADS, thread)
            for part in range(3):
                writer.insert(PARTS, {"thread": f"t{number}", "hash": f"{part}", "payload": b"a payload"})
    with rows.open_writer("") as writer:
        writer.insert(DOCUMENTS, {"hash": "h", "metadata": "{}", "text": "A kiln is hot."})


def content(rows: Rows) -> dict[str, list[dict[str, object]]]:
    """Everything, checked in every way there is."""
    rows.heads.check_all()
    for scope, owner in rows.heads.list_scopes():
        rows.check(scope, owner, deep=True)
    return {table.name: rows.read(table, "ORDER BY " + ", ".join(table.key)) for table in ALL_TABLES}


# Opening ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_new_database_is_sealed_as_the_settings_say(sqlite_database: SqliteDatabase, way: str) -> None:
    assert read_seal_settings(sqlite_database) is None
    rows = Rows(sqlite_database, WAYS[way])
    for _ in range(2):
        ensure_seals(rows)
    assert read_seal_settings(sqlite_database) == DatabaseSealSettings(WAYS[way].key_id, WAYS[way].encrypts)
    fill(rows)
    ensure_seals(rows)


@pytest.mark.parametrize(
    ("was", "now", "message", "help"),
    [
        ("keyed", "plain", "sealed with a key", "Set OPENASSAY_STORAGE_KEY"),
        ("plain", "keyed", "not sealed with a key yet", "openassay admin seal"),
        ("encrypted", "other", "sealed with another key", "the key it was sealed with"),
        ("keyed", "encrypted", "not encrypted", "openassay admin seal"),
        ("encrypted", "keyed", "is encrypted", "openassay admin seal"),
    ],
)
def test_other_settings_than_the_database_has_are_refused(
    sqlite_database: SqliteDatabase, was: str, now: str, message: str, help: str
) -> None:
    ensure_seals(Rows(sqlite_database, WAYS[was]))
    with pytest.raises(ConfigurationError, match=message) as caught:
        ensure_seals(Rows(sqlite_database, WAYS[now]))
    assert help in caught.value.help
    assert KEY not in str(caught.value) + caught.value.help


@pytest.mark.requirement("C-15")
@pytest.mark.parametrize("way", ["plain", "keyed"])
def test_a_database_that_no_longer_says_how_it_is_sealed_is_refused(any_database: Database, way: str) -> None:
    rows = Rows(any_database, WAYS[way])
    ensure_seals(rows)
    fill(rows)
    execute(any_database, "DELETE FROM meta")
    with pytest.raises(IntegrityError, match="row meta sealing"):
        ensure_seals(rows)
    assert read_seal_settings(any_database) is None
    reseal(any_database, WAYS[way], WAYS[way])  # everything else is whole
    ensure_seals(rows)


@pytest.mark.parametrize("value", ["", "{}", "[]", "null", '{"key": ""}'])
def test_a_row_that_says_nonsense_is_refused(sqlite_database: SqliteDatabase, value: str) -> None:
    with sqlite_database.transaction() as connection:
        connection.execute("INSERT INTO meta VALUES ('sealing', ?)", (value,))
    with pytest.raises(IntegrityError, match="row meta sealing"):
        ensure_seals(Rows(sqlite_database))


def test_a_key_never_takes_over_what_was_sealed_without_it(sqlite_database: SqliteDatabase) -> None:
    """Whoever can write to the database, but does not have the key, makes it look as it did before there was one."""
    keyed = Rows(sqlite_database, Seals(KEY))
    ensure_seals(keyed)
    fill(keyed)
    note = json.dumps(DatabaseSealSettings("", False)._asdict())
    execute(sqlite_database, "UPDATE documents SET text = 'A kiln is cold.'")
    execute(sqlite_database, f"UPDATE meta SET value = '{note}'")  # noqa: S608
    with pytest.raises(ConfigurationError, match="not sealed with a key yet") as caught:
        ensure_seals(keyed)
    assert "somebody has altered it" in caught.value.help
    with pytest.raises(IntegrityError):
        reseal(sqlite_database, Seals(), keyed.seals)
    with pytest.raises(IntegrityError, match="row documents h"):
        keyed.read(DOCUMENTS)


def test_many_may_open_a_new_database_at_once(any_database: Database) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ensure_seals, [Rows(any_database, Seals(KEY)) for _ in range(6)]))
    assert read_seal_settings(any_database) == DatabaseSealSettings(Seals(KEY).key_id, False)


# Without seals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["plain", "keyed", "encrypted"])
def test_rows_without_seals_are_refused(any_database: Database, way: str) -> None:
    """Anybody who can write to a database can remove its seals."""
    rows = Rows(any_database)
    ensure_seals(rows)
    fill(rows)
    for name in ("meta", "heads"):
        execute(any_database, f"DELETE FROM {name}")  # noqa: S608
    for table in ALL_TABLES:
        execute(any_database, f"UPDATE {table.name} SET seal = ''")  # noqa: S608
    with pytest.raises(IntegrityError, match="row meta sealing is missing"):
        ensure_seals(Rows(any_database, WAYS[way]))
    with pytest.raises(IntegrityError, match="row meta sealing is missing"):
        reseal(any_database, Seals(), WAYS[way])
    assert read_seal_settings(any_database) is None


# Another key ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_is_the_same_under_another_key(any_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    rows = Rows(any_database)
    ensure_seals(rows)
    fill(rows)
    for way in ("keyed", "encrypted", "other", "plain", "encrypted", "keyed"):
        before, held = rows, content(rows)
        rows = Rows(any_database, WAYS[way])
        assert reseal(any_database, before.seals, rows.seals) == 9
        ensure_seals(rows)
        assert content(rows) == held
        with pytest.raises(ConfigurationError):
            ensure_seals(before)
        for table in (THREADS, PARTS, DOCUMENTS):
            with pytest.raises(IntegrityError, match=f"row {table.name} "):
                before.read(table)
        with rows.open_writer("thread", "t0") as writer:
            writer.update(THREADS, ["t0"], {"title": f"Kilns, {way}"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE threads SET title = 'Kettles' WHERE id = 't1'", "row threads t1"),
        ("DELETE FROM parts WHERE thread = 't1' AND hash = '1'", "thread t1 .*1 missing"),
        ("DELETE FROM heads WHERE scope = 'thread:t1'", "thread t1 .*4 too many|taken out"),
        ("UPDATE heads SET version = 9 WHERE scope = 'thread:t1'", "row heads thread:t1"),
        ("UPDATE documents SET text = 'A kiln is cold.'", "row documents h"),
    ],
)
@pytest.mark.parametrize("was", ["plain", "encrypted"])
def test_what_was_altered_is_not_sealed_anew(
    sqlite_database: SqliteDatabase, was: str, change: str, message: str
) -> None:
    rows = Rows(sqlite_database, WAYS[was])
    ensure_seals(rows)
    fill(rows)
    with sqlite_database.connection() as connection:
        before = list(map(tuple, connection.execute("SELECT * FROM parts").fetchall()))
    execute(sqlite_database, change)
    with pytest.raises(IntegrityError, match=message):
        reseal(sqlite_database, WAYS[was], WAYS["other"])
    assert read_seal_settings(sqlite_database) == DatabaseSealSettings(WAYS[was].key_id, WAYS[was].encrypts)
    with sqlite_database.connection() as connection:
        after = list(map(tuple, connection.execute("SELECT * FROM parts").fetchall()))
    assert set(after) <= set(before)


def test_the_wrong_old_key_changes_nothing(any_database: Database) -> None:
    rows = Rows(any_database, WAYS["encrypted"])
    ensure_seals(rows)
    fill(rows)
    held = content(rows)
    with pytest.raises(ConfigurationError, match="another key"):
        reseal(any_database, WAYS["other"], WAYS["keyed"])
    with pytest.raises(ConfigurationError, match="sealed with a key"):
        reseal(any_database, WAYS["plain"], WAYS["keyed"])
    ensure_seals(rows)
    assert content(rows) == held


def test_a_process_that_missed_a_new_key_writes_nothing(any_database: Database) -> None:
    late = Rows(any_database)
    ensure_seals(late)
    fill(late)
    reseal(any_database, late.seals, Seals(KEY))
    for thread in ("t0", "new"):
        with pytest.raises(IntegrityError, match="row heads"), late.open_writer("thread", thread) as writer:
            writer.insert(PARTS, {"thread": thread, "hash": "new", "payload": b""})
    content(Rows(any_database, Seals(KEY)))


def test_every_table_can_be_gone_through_in_pieces(any_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of several columns, of numbers, and with characters that a language would sort its own way."""
    monkeypatch.setattr(module, "_BATCH", 2)
    rows = Rows(any_database)
    ensure_seals(rows)
    fill(rows, 1)
    with rows.open_writer("thread", "t0") as writer:
        names = dict.fromkeys(RUNS.columns, "") | {"thread": "t0", "finished": None, "error": None}
        for id in ("a", "B", "ä", "_", "a b", "ab", "-a"):
            writer.insert(RUNS, {**names, "id": id})
        review = dict.fromkeys(REVIEWS.columns, "") | {"id": "q", "thread": "t0", "due": None}
        writer.insert(REVIEWS, review)
    with rows.open_writer("run", "ä") as writer:
        event = dict.fromkeys(EVENTS.columns, "") | {"run": "ä", "parent": None}
        for seq in range(1, 12):
            writer.insert(EVENTS, {**event, "seq": seq})
    with rows.open_writer("ledger", "ä") as writer:
        writer.insert(ACCOUNTS, dict.fromkeys(ACCOUNTS.columns, 0) | {"run": "ä", "owner": ""})
        call: dict[str, object] = dict.fromkeys(CALLS.columns, 0)
        call |= dict.fromkeys("key time step task provider model error".split(), "")
        for number in (1, 2, 10, 9):
            writer.insert(CALLS, {**call, "id": number, "run": "ä", "state": "lost", "answer": None})
    held = content(rows)
    assert reseal(any_database, rows.seals, WAYS["encrypted"]) == sum(map(len, held.values())) == 29
    assert content(Rows(any_database, WAYS["encrypted"])) == held
