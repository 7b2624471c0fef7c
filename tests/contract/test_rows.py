"""Sealed rows: what was written comes back, and what was not is refused, on SQLite and on PostgreSQL."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openassay.errors import IntegrityError, StorageError
from openassay.storage.database import (
    ACCOUNTS,
    CALLS,
    CHECKPOINTS,
    DOCUMENTS,
    EVENTS,
    PARTS,
    RUNS,
    THREADS,
    Connection,
    ConstraintError,
    Database,
)
from openassay.storage.integrity import SqlIntegrity
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.threads import delete_thread
from tests.contract.conftest import KEY

pytestmark = pytest.mark.requirement("F-10")

CHEAP = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\ue000\ue001\ue002"), max_size=20)
NUMBER = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53) | st.just(-0.0)


def run_row(id: str, thread: str = "t", **changes: object) -> dict[str, object]:
    row = dict.fromkeys(RUNS.columns, "") | {"id": id, "thread": thread, "question": f"What is {id}?", "status": "done"}
    return {**row, "finished": None, "error": None, **changes}


def part_row(hash: str, thread: str = "t", payload: bytes = b"payload") -> dict[str, object]:
    return {"thread": thread, "hash": hash, "payload": payload}


def thread_row(id: str = "t") -> dict[str, object]:
    return {"id": id, "title": "Kilns", "created": "1", "updated": "1", "mode": None, "owner": "local"}


def fill(rows: Rows, thread: str = "t") -> None:
    with rows.open_writer("thread", thread) as writer:
        writer.insert(THREADS, thread_row(thread))
        for name in ("one", "two"):
            writer.insert(RUNS, run_row(f"{thread}-{name}", thread))
            writer.insert(PARTS, part_row(name, thread, name.encode()))


def look(rows: Rows, thread: str = "t") -> None:
    """What opening a thread does."""
    rows.heads.check_all()
    rows.check("thread", thread, deep=True)


def execute(database: Database, sql: str, *values: object) -> None:
    with database.transaction() as connection:
        connection.execute(sql, values)


def raw(database: Database, table: str, rest: str) -> list[dict[str, Any]]:
    with database.connection() as connection:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} {rest}").fetchall()]  # noqa: S608


def put_back(connection: Connection, table: str, row: dict[str, Any]) -> None:
    row = {name: value for name, value in row.items() if name != "rowid"}
    names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" for _ in row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))  # noqa: S608


@pytest.fixture(params=["sqlite plain", "sqlite keyed", "postgres keyed"])
def any_rows(request: pytest.FixtureRequest) -> Rows:
    """Without a key, and with one and encryption."""
    kind, way = request.param.split()
    return Rows(request.getfixturevalue(f"{kind}_database"), Seals(KEY, encrypt=True) if way == "keyed" else None)


# What comes back --------------------------------------------------------------------------------------


@CHEAP
@given(key=TEXT, hidden=st.none() | TEXT, number=NUMBER, real=REAL, id=NUMBER)
def test_every_value_comes_back(
    any_rows: Rows, key: str, hidden: str | None, number: int, real: float, id: int
) -> None:
    account = dict.fromkeys(ACCOUNTS.columns, 0) | {"run": key, "finish_share": real, "owner": ""}
    call = dict.fromkeys(CALLS.columns, "") | {
        "id": id, "run": key, "key": key, "answer": hidden, "state": "sent", "micros": number, "seconds": real,
        "expires": real, "research": True, "tokens": 0, "requests": 1, "prompt_tokens": 0, "completion_tokens": 0,
        "confirmed": False,
    }  # fmt: skip
    with any_rows.open_writer("ledger", key) as writer:
        writer.insert(ACCOUNTS, account)
        writer.insert(CALLS, call)
        assert writer.find(CALLS, id) == call
    assert any_rows.find(ACCOUNTS, key) == account
    assert any_rows.read(CALLS, "WHERE run = :run AND id = :id", {"run": key, "id": id}) == [call]
    any_rows.check("ledger", key, deep=True)
    with any_rows.open_writer("ledger", key) as writer:
        assert writer.delete(CALLS, "WHERE run = ?", (key,)) == 1
        assert writer.delete(ACCOUNTS, "WHERE run = ?", (key,)) == 1


@CHEAP
@given(payload=st.binary(), metadata=TEXT, parent=st.none() | TEXT)
def test_bytes_come_back(any_rows: Rows, payload: bytes, metadata: str, parent: str | None) -> None:
    row = dict.fromkeys(CHECKPOINTS.columns, "") | {
        "thread": "t", "payload": payload, "metadata": metadata, "parent": parent,
    }  # fmt: skip
    with any_rows.open_writer("thread", "t") as writer:
        writer.insert(CHECKPOINTS, row, on_conflict="replace")
    assert any_rows.find(CHECKPOINTS, "t", "", "") == row
    look(any_rows)


def test_encrypted_rows_show_nothing_of_what_was_said(keyed_rows: Rows) -> None:
    with keyed_rows.open_writer("thread", "t") as writer:
        writer.insert(THREADS, {**thread_row(), "title": "Pomegranates"})
        writer.insert(PARTS, part_row("one", payload=b"Pomegranates"))
    with keyed_rows.open_writer("") as writer:
        writer.insert(DOCUMENTS, {"hash": "h", "metadata": "Pomegranates", "text": "Pomegranates"})
    stored = [raw(keyed_rows.database, table, "") for table in ("threads", "parts", "documents", "heads", "meta")]
    assert "Pomegranates" not in repr(stored)
    assert keyed_rows.read(DOCUMENTS)[0]["text"] == "Pomegranates"


def test_a_row_that_is_there_is_kept_or_replaced(any_rows: Rows) -> None:
    with any_rows.open_writer("thread", "t") as writer:
        assert writer.insert(PARTS, part_row("one", payload=b"1"), on_conflict="keep")
        assert not writer.insert(PARTS, part_row("one", payload=b"2"), on_conflict="keep")
        assert writer.find(PARTS, "t", "one") == part_row("one", payload=b"1")
        assert not writer.insert(PARTS, part_row("one", payload=b"3"), on_conflict="replace")
        assert writer.insert(PARTS, part_row("two"), on_conflict="replace")
    assert any_rows.find(PARTS, "t", "one") == part_row("one", payload=b"3")
    look(any_rows)


def test_rows_are_changed_and_deleted(any_rows: Rows) -> None:
    fill(any_rows)
    with any_rows.open_writer("thread", "t") as writer:
        assert writer.update(RUNS, ["t-one"], {"status": "failed"}) == run_row("t-one", status="failed")
        assert writer.update(RUNS, ["nobody"], {"status": "failed"}) is None
        assert writer.delete(PARTS, "WHERE thread = ? AND hash = ?", ("t", "two")) == 1
        assert writer.delete(PARTS, "WHERE thread = ? AND hash = ?", ("t", "two")) == 0
    assert any_rows.find(RUNS, "t-one") == run_row("t-one", status="failed")
    assert any_rows.find(PARTS, "t", "two") is None
    look(any_rows)


def test_a_scope_that_is_gone_leaves_nothing(any_rows: Rows) -> None:
    fill(any_rows)
    fill(any_rows, "another")
    assert delete_thread(any_rows, "t")
    assert any_rows.heads.list_scopes() == [("thread", "another")]
    look(any_rows, "another")


def test_looking_leaves_nothing_behind(any_rows: Rows) -> None:
    look(any_rows, "nobody")
    assert any_rows.heads.list_scopes() == []


def test_a_row_of_another_scope_is_not_written(any_rows: Rows) -> None:
    fill(any_rows)
    with pytest.raises(StorageError, match="thread:other"), any_rows.open_writer("thread", "t") as writer:
        writer.insert(PARTS, part_row("one", "other"))
    with pytest.raises(StorageError, match="WHERE"), any_rows.open_writer("thread", "t") as writer:
        writer.delete(PARTS, "")
    look(any_rows)


@pytest.mark.parametrize(
    ("row", "constraint"),
    [
        (run_row("t-one"), "primary"),
        (run_row("three", status="running"), "unique"),
        (run_row("three", thread="nobody"), "foreign"),
        (run_row("three", question=None), "other"),
    ],
)
def test_a_broken_rule_is_named_and_nothing_is_kept(rows: Rows, row: dict[str, object], constraint: str) -> None:
    fill(rows)
    with rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ["t-two"], {"status": "waiting"})
    thread = str(row["thread"])

    def write() -> None:
        with rows.open_writer("thread", thread) as writer:
            writer.insert(PARTS, part_row("three", thread))
            writer.insert(RUNS, row)

    with pytest.raises(ConstraintError) as caught:
        write()
    assert caught.value.constraint == constraint
    assert rows.find(PARTS, thread, "three") is None
    look(rows)


# What was altered -------------------------------------------------------------------------------------

Change = Callable[[Database], None]


def _sql(*statements: str) -> Change:
    def change(database: Database) -> None:
        for statement in statements:
            execute(database, statement)

    return change


def _swap(database: Database) -> None:
    one, two = raw(database, "runs", "WHERE thread = 't' ORDER BY id")
    for row, other in ((one, two), (two, one)):
        execute(
            database, "UPDATE runs SET question = ?, seal = ? WHERE id = ?", other["question"], other["seal"], row["id"]
        )


CHANGES: dict[str, tuple[Change, str]] = {
    "an edited text": (_sql("UPDATE runs SET question = 'Who?' WHERE id = 't-one'"), "row runs t-one"),
    "an edited state": (_sql("UPDATE runs SET status = 'failed' WHERE id = 't-one'"), "row runs t-one"),
    "an edited number of nothing": (_sql("UPDATE runs SET finished = '' WHERE id = 't-one'"), "row runs t-one"),
    "an edited key": (_sql("UPDATE parts SET hash = 'three' WHERE hash = 'one'"), "row parts t/three"),
    "an edited seal": (_sql("UPDATE parts SET seal = 'ab' WHERE hash = 'one'"), "row parts t/one"),
    "an emptied seal": (_sql("UPDATE threads SET seal = ''"), "row threads t"),
    "a row of another thread": (
        _sql("INSERT INTO parts SELECT 't', hash || 'x', payload, seal FROM parts WHERE thread = 'u'"),
        "row parts t/",
    ),
    "a swapped pair": (_swap, "row runs t-"),
    "a deleted row": (_sql("DELETE FROM runs WHERE id = 't-one'"), "thread t .*1 missing"),
    "all rows deleted": (_sql("DELETE FROM parts WHERE thread = 't'"), "thread t .*2 missing"),
    "an edited count": (_sql("UPDATE heads SET members = members + 1"), "row heads thread:t|row heads all"),
    "an edited sum": (_sql("UPDATE heads SET total = 'zz' WHERE scope = 'thread:t'"), "row heads thread:t"),
    "an edited seal of the head": (
        _sql("UPDATE heads SET seal = '00' WHERE scope = 'thread:t'"),
        "row heads thread:t|put back",
    ),
    "a deleted head": (_sql("DELETE FROM heads WHERE scope = 'thread:t'"), "thread t .*5 too many|taken out"),
}


@pytest.mark.requirement("C-15")
def test_a_change_from_outside_is_refused(any_rows: Rows, subtests: pytest.Subtests) -> None:
    fill(any_rows)
    fill(any_rows, "u")
    for name, (change, message) in CHANGES.items():
        # The error takes the change back with it.
        with subtests.test(name), pytest.raises(IntegrityError, match=message), any_rows.database.transaction():
            change_and_look(any_rows, change)
    look(any_rows)


def change_and_look(rows: Rows, change: Change) -> None:
    change(rows.database)
    look(rows)


def test_an_altered_row_is_refused_wherever_it_is_read(any_rows: Rows) -> None:
    fill(any_rows)
    execute(any_rows.database, "UPDATE runs SET question = 'Who?' WHERE id = 't-one'")
    for read in (
        lambda: any_rows.find(RUNS, "t-one"),
        lambda: any_rows.read(RUNS, "WHERE thread = ?", ("t",)),
    ):
        with pytest.raises(IntegrityError, match="row runs t-one"):
            read()
    with pytest.raises(IntegrityError, match="row runs t-one"), any_rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ["t-one"], {"status": "failed"})


def test_a_row_put_back_to_an_older_version_is_refused(any_rows: Rows) -> None:
    fill(any_rows)
    [old] = raw(any_rows.database, "runs", "WHERE id = 't-one'")
    with any_rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ["t-one"], {"question": "Who?"})
    with any_rows.database.transaction() as connection:
        connection.execute("DELETE FROM runs WHERE id = 't-one'")
        put_back(connection, "runs", old)
    with pytest.raises(IntegrityError, match=r"rows of thread t .*one was put back"):
        look(any_rows)


def test_a_deleted_row_put_back_is_refused(any_rows: Rows) -> None:
    fill(any_rows)
    [old] = raw(any_rows.database, "runs", "WHERE id = 't-one'")
    with any_rows.open_writer("thread", "t") as writer:
        writer.delete(RUNS, "WHERE id = ?", ("t-one",))
    with any_rows.database.transaction() as connection:
        put_back(connection, "runs", old)
    with pytest.raises(IntegrityError, match=r"rows of thread t .*1 too many"):
        look(any_rows)


@pytest.mark.parametrize("forge", ["edit", "add", "put back", "take out"])
def test_with_a_key_nobody_can_forge_what_belongs_together(keyed_rows: Rows, forge: str) -> None:
    """Everything there is to know but the key: the tables, how seals and sums are made, and an older state."""
    database = keyed_rows.database
    fill(keyed_rows)
    fill(keyed_rows, "u")
    tables = ("threads", "runs", "parts", "heads")
    places = ("id = 't'", "thread = 't'", "thread = 't'", "scope = 'thread:t'")
    before = {table: raw(database, table, f"WHERE {where}") for table, where in zip(tables, places, strict=True)}
    with keyed_rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ["t-one"], {"question": "Who?"})
    forger = Rows(database)
    with database.transaction() as connection:
        if forge == "edit":
            forged = forger.encode(RUNS, run_row("t-one", question="enc1:"))
            connection.execute("UPDATE runs SET question = 'enc1:', seal = ? WHERE id = 't-one'", (forged["seal"],))
        elif forge == "add":
            put_back(connection, "parts", forger.encode(PARTS, part_row("three")))
        else:
            for table, where in zip(reversed(tables), reversed(places), strict=True):
                connection.execute(f"DELETE FROM {table} WHERE {where}")  # noqa: S608
            for table in tables if forge == "put back" else ():
                for row in before[table]:
                    put_back(connection, table, row)
    with pytest.raises(IntegrityError, match=r"put back or taken out|row runs t-one|row parts t/three"):
        look(keyed_rows)
    keyed_rows.check("thread", "u", deep=True)  # the other is left in peace


def add_to_seal(database: Database, table: str, where: str, difference: int) -> None:
    [row] = raw(database, table, f"WHERE {where}")
    seal = f"{(int(row['seal'], 16) + difference) % 2**256:064x}"
    execute(database, f"UPDATE {table} SET seal = ? WHERE {where}", seal)  # noqa: S608


def remove_and_carry_its_seal(rows: Rows) -> None:
    """A row nobody reads carries the seal of one that is gone."""
    [gone] = raw(rows.database, "runs", "WHERE id = 't-two'")
    execute(rows.database, "DELETE FROM runs WHERE id = 't-two'")
    execute(rows.database, "INSERT INTO parts VALUES ('t', 'junk', ?, ?)", b"", gone["seal"])


def put_back_and_make_up_for_it(rows: Rows) -> None:
    """What is wrong in the sum is added to the seal of a row nobody reads."""
    [old] = raw(rows.database, "runs", "WHERE id = 't-one'")
    with rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ["t-one"], {"question": "Who?"})
    [new] = raw(rows.database, "runs", "WHERE id = 't-one'")
    execute(rows.database, "UPDATE runs SET question = ?, seal = ? WHERE id = 't-one'", old["question"], old["seal"])
    difference = int(new["seal"], 16) - int(old["seal"], 16)
    add_to_seal(rows.database, "parts", "thread = 't' AND hash = 'two'", difference)


def put_back_as_a_whole_and_make_up_for_it(rows: Rows) -> None:
    """A thread with its head; what is wrong in the sum of heads is added to another head's seal."""
    [run], [head] = (raw(rows.database, *which) for which in (("runs", "WHERE id = 't-one'"), ("heads", HEAD)))
    with rows.open_writer("thread", "t") as writer:
        writer.update(RUNS, ["t-one"], {"question": "Who?"})
    [new] = raw(rows.database, "heads", HEAD)
    execute(rows.database, "UPDATE runs SET question = ?, seal = ? WHERE id = 't-one'", run["question"], run["seal"])
    execute(
        rows.database, f"UPDATE heads SET version = ?, members = ?, total = ?, seal = ? {HEAD}",  # noqa: S608
        head["version"], head["members"], head["total"], head["seal"],
    )  # fmt: skip
    add_to_seal(rows.database, "heads", "scope = 'thread:u'", int(new["seal"], 16) - int(head["seal"], 16))


HEAD = "WHERE scope = 'thread:t'"
SUMS_THAT_ARE_RIGHT: dict[str, tuple[Callable[[Rows], None], str]] = {
    "removed": (remove_and_carry_its_seal, "row parts t/junk"),
    "put back": (put_back_and_make_up_for_it, "row parts t/two"),
    "the whole thread put back": (put_back_as_a_whole_and_make_up_for_it, "row heads thread:u"),
}


@pytest.mark.requirement("C-15")
@pytest.mark.parametrize("attack", SUMS_THAT_ARE_RIGHT)
async def test_with_a_key_a_sum_that_is_right_is_not_enough(keyed_rows: Rows, attack: str) -> None:
    fill(keyed_rows)
    fill(keyed_rows, "u")
    await SqlIntegrity(keyed_rows).check("t", [])
    change, message = SUMS_THAT_ARE_RIGHT[attack]
    change(keyed_rows)
    with pytest.raises(IntegrityError, match=message):
        await SqlIntegrity(keyed_rows).check("t", [])


def test_plain_text_is_refused_where_encryption_is_on(keyed_rows: Rows) -> None:
    """Even if whoever wrote it has the key."""
    fill(Rows(keyed_rows.database, Seals(KEY)))
    with pytest.raises(IntegrityError, match="row threads t "):
        keyed_rows.find(THREADS, "t")


def test_a_ciphertext_in_another_place_is_refused(keyed_rows: Rows) -> None:
    fill(keyed_rows)
    fill(keyed_rows, "u")
    [moved] = raw(keyed_rows.database, "threads", "WHERE id = 'u'")
    with keyed_rows.database.transaction() as connection:
        connection.execute("UPDATE threads SET title = ? WHERE id = 't'", (moved["title"],))
    with pytest.raises(IntegrityError, match="row threads t "):
        keyed_rows.find(THREADS, "t")


def test_another_key_opens_nothing(keyed_rows: Rows) -> None:
    fill(keyed_rows)
    for seals in (Seals(), Seals("another key, as long as the first", encrypt=True)):
        other = Rows(keyed_rows.database, seals)
        with pytest.raises(IntegrityError):
            look(other)
        with pytest.raises(IntegrityError, match="row threads t"):
            other.find(THREADS, "t")
        with pytest.raises(IntegrityError, match="row heads"), other.open_writer("thread", "t"):
            pass
        with pytest.raises(IntegrityError, match="row heads"), other.open_writer("thread", "new"):
            pass
    look(keyed_rows)


# Many at once -----------------------------------------------------------------------------------------


def together(work: Callable[[int], None]) -> None:
    """Six at the same time."""
    start = threading.Barrier(6)

    def one(worker: int) -> None:
        start.wait()
        work(worker)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(6)))


def test_writers_of_one_scope_lose_nothing(any_rows: Rows) -> None:
    def write(worker: int) -> None:
        for number in range(8):
            with any_rows.open_writer("thread", "t") as writer:
                writer.insert(PARTS, part_row(f"{worker}-{number}"))
                row = writer.find(PARTS, "t", "count")
                count = int(row["payload"]) if row else 0
                writer.insert(PARTS, part_row("count", payload=b"%d" % (count + 1)), on_conflict="replace")

    together(write)
    look(any_rows)
    counted = any_rows.find(PARTS, "t", "count")
    assert counted is not None
    assert counted["payload"] == b"48"
    assert len(any_rows.read(PARTS, "WHERE thread = ?", ("t",))) == 49


def test_who_deletes_and_who_writes_do_not_wait_for_each_other(postgres_database: PostgresDatabase) -> None:
    """Whoever deletes a thread with its runs wants its head, and what all heads have in common, in the same order as
    who writes to it."""
    rows, held = Rows(postgres_database, Seals(KEY)), threading.Event()
    fill(rows)
    with rows.open_writer("run", "t-one") as writer:
        event = dict.fromkeys(EVENTS.columns, "") | {"run": "t-one", "seq": 1, "parent": None}
        writer.insert(EVENTS, event)

    def rename() -> None:
        with rows.open_writer("thread", "t") as writer:
            writer.update(THREADS, ["t"], {"title": "Ovens"})
            held.set()
            time.sleep(0.3)  # the other one locks what it can meanwhile

    with ThreadPoolExecutor(1) as pool:
        renaming = pool.submit(rename)
        assert held.wait(5)
        assert delete_thread(rows, "t")
        renaming.result()
    assert rows.heads.list_scopes() == []
    rows.heads.check_all()


def test_writers_of_many_scopes_lose_nothing(any_rows: Rows) -> None:
    def write(worker: int) -> None:
        for number in range(4):
            with any_rows.open_writer("thread", f"{number}") as writer:
                writer.insert(PARTS, part_row(f"{worker}", f"{number}"))
            with any_rows.open_writer("") as documents:
                documents.insert(DOCUMENTS, {"hash": f"{number}", "metadata": "", "text": ""}, on_conflict="keep")

    together(write)
    assert len(any_rows.heads.list_scopes()) == 4
    assert len(any_rows.read(DOCUMENTS)) == 4
    for number in range(4):
        look(any_rows, f"{number}")


# Transactions -----------------------------------------------------------------------------------------


def fail(after: object) -> None:
    raise ZeroDivisionError(after)


def test_a_transaction_is_all_or_nothing(rows: Rows) -> None:
    fill(rows)
    with pytest.raises(ZeroDivisionError), rows.open_writer("thread", "t") as writer:
        fail(writer.insert(PARTS, part_row("three")))
    assert rows.find(PARTS, "t", "three") is None
    look(rows)


def test_a_failed_part_spoils_the_whole_even_if_its_error_is_caught(any_database: Database) -> None:
    def outer() -> None:
        with any_database.transaction() as connection:
            connection.execute("INSERT INTO meta (name, value) VALUES ('outer', '')")
            with pytest.raises(ZeroDivisionError), any_database.transaction() as inner:
                fail(inner.execute("INSERT INTO meta (name, value) VALUES ('inner', '')"))

    with pytest.raises(StorageError, match="nothing of it was kept"):
        outer()
    assert raw(any_database, "meta", "") == []
    execute(any_database, "INSERT INTO meta (name, value) VALUES ('after', '')")


def test_a_failed_statement_is_never_committed_in_silence(postgres_database: PostgresDatabase) -> None:
    def careless() -> None:
        with postgres_database.transaction() as connection:
            connection.execute("INSERT INTO meta (name, value) VALUES ('one', '')")
            with pytest.raises(ConstraintError):
                connection.execute("INSERT INTO meta (name, value) VALUES ('one', '')")

    with pytest.raises(StorageError, match="nothing of it was kept"):
        careless()
    assert raw(postgres_database, "meta", "") == []


def test_a_lone_surrogate_is_told_from_text(any_database: Database) -> None:
    with pytest.raises(StorageError, match="surrogate"):
        execute(any_database, "INSERT INTO meta (name, value) VALUES (?, '')", "\ud800")
