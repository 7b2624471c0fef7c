"""What every store of notes does: a value comes back as it was, under the same name everywhere, or not at all."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint

from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.errors import IntegrityError, NotFoundError
from openassay.storage.database import NOTES, Database
from openassay.storage.events import SqlNotes, encode_note, find_documents, find_hashes, note_name
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads
from tests.contract.conftest import with_threads

HITS = {"Q1": [{"title": "Kilns \N{FIRE}", "url": "https://example.org", "rank": 1, "score": 0.5, "document": None}]}
DOCUMENT = "ab" * 32

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def rows(any_database: Database) -> Rows:
    return with_threads(Rows(any_database), "t", "u")


@pytest.fixture
def notes(rows: Rows) -> SqlNotes:
    return SqlNotes(rows)


def names(rows: Rows, thread: str) -> list[str]:
    return [row["name"] for row in rows.read(NOTES, "WHERE thread = ? ORDER BY name", (thread,))]


async def one(notes: SqlNotes, thread: str, value: Any) -> str:
    [name] = await notes.put(thread, [value])
    return name


@pytest.mark.requirement("L-05")
async def test_values_come_back_by_their_names(notes: SqlNotes) -> None:
    names = await notes.put("t", [HITS, [1, "two", None], HITS])

    assert names[0] == names[2] != names[1]
    assert await notes.get("t", names) == {names[0]: HITS, names[1]: [1, "two", None]}
    assert await notes.get("t", ()) == {}


@pytest.mark.requirement("L-05")
async def test_a_name_is_made_from_the_value_alone(notes: SqlNotes) -> None:
    assert await one(notes, "t", HITS) == await one(notes, "u", HITS) == note_name(encode_note(HITS))


@pytest.mark.requirement("C-11")
async def test_threads_do_not_see_each_others_notes(notes: SqlNotes) -> None:
    name = await one(notes, "t", HITS)

    with pytest.raises(NotFoundError, match=name) as caught:
        await notes.get("u", [name])
    assert caught.value.help


async def test_many_at_once_lose_nothing(notes: SqlNotes) -> None:
    names = await asyncio.gather(*(one(notes, "t", {"n": n % 15}) for n in range(30)))
    assert await notes.get("t", names) == {name: {"n": n % 15} for n, name in enumerate(names)}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=plain)
async def test_any_plain_value_comes_back(sqlite_database: Database, value: Any) -> None:
    notes = SqlNotes(with_threads(Rows(sqlite_database), "t"))
    name = await one(notes, "t", value)
    assert await notes.get("t", [name]) == {name: value}


# On a database


@pytest.mark.requirement("W-18")
async def test_a_copy_has_the_notes_it_was_to_have(rows: Rows) -> None:
    notes = SqlNotes(rows)
    kept, other = await notes.put("t", ["kept", "other"])

    with pytest.raises(NotFoundError):
        notes.copy("t", "u", [kept, "0" * 40])
    assert names(rows, "u") == []
    for _ in range(2):
        notes.copy("t", "u", [kept])

    assert names(rows, "u") == [kept]
    assert names(rows, "t") == sorted([kept, other])


@pytest.mark.requirement("F-10")
async def test_what_comes_too_late_for_its_thread_is_not_written(rows: Rows) -> None:
    """A run was stopped and its thread deleted; a step in another thread of the process had not heard of it."""
    notes, saver, threads = SqlNotes(rows), SqlCheckpointSaver(rows), SqlThreads(rows)
    where: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}
    await threads.delete("t")

    for late in (
        notes.put("t", [HITS]),
        saver.aput(where, empty_checkpoint(), {}, {}),
        saver.aput_writes(where, [("found", 1)], "task"),
        saver.prune_run("t", "r", keep=1),
    ):
        with pytest.raises(NotFoundError, match="no thread t"):
            await late

    assert rows.heads.list_scopes() == [("thread", "u")]
    assert [one.id for one in await threads.overview(limit=5)] == ["u"]


@pytest.mark.requirement("F-10")
async def test_rows_whose_thread_is_gone_can_be_deleted(rows: Rows) -> None:
    await SqlNotes(rows).put("t", [HITS])
    with rows.database.transaction() as connection:
        connection.execute("DELETE FROM threads WHERE id = 't'")
    threads = SqlThreads(rows)
    with pytest.raises(IntegrityError, match="1 threads are there and 2 were written"):
        await threads.overview(limit=5)
    with pytest.raises(IntegrityError, match="row threads t is missing"):
        await threads.get("t")

    await threads.delete("t")

    assert names(rows, "t") == []
    assert [one.id for one in await threads.overview(limit=5)] == ["u"]


@pytest.mark.requirement("L-05")
async def test_documents_a_note_speaks_of_are_used_by_its_thread(rows: Rows) -> None:
    notes = SqlNotes(rows)
    name = await one(notes, "t", {"hits": [{"document": DOCUMENT}, {"document": DOCUMENT}]})
    notes.copy("t", "u", [name])

    with rows.database.connection() as connection:
        used = connection.execute("SELECT thread, document FROM used_documents ORDER BY thread").fetchall()
    assert [(row["thread"], row["document"]) for row in used] == [("t", DOCUMENT), ("u", DOCUMENT)]
    rows.check("thread", "t", deep=True)
    rows.check("thread", "u", deep=True)


@pytest.mark.requirement("F-10")
async def test_notes_are_deleted_with_their_thread(rows: Rows) -> None:
    for id in ("t", "u"):
        await SqlNotes(rows).put(id, [HITS])

    await SqlThreads(rows).delete("t")

    assert names(rows, "t") == []
    assert len(names(rows, "u")) == 1


@pytest.mark.requirement("L-05")
async def test_what_is_written_is_small(rows: Rows) -> None:
    value = [{**HITS["Q1"][0], "rank": n, "snippet": "The kiln is hot. " * 5} for n in range(80)]
    await SqlNotes(rows).put("t", [value])

    with rows.database.connection() as connection:
        row = connection.execute("SELECT length(content) AS n FROM notes").fetchone()
    assert row["n"] < len(str(value)) / 5


@pytest.mark.requirement("L-05", "F-10")
async def test_notes_go_with_the_last_checkpoint_that_names_them(rows: Rows) -> None:
    """Or with the last result that waits to become part of one."""
    saver, notes = SqlCheckpointSaver(rows), SqlNotes(rows)
    old, both, new, result = await notes.put("t", ["old", "both", "new", "result"])
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for named in ((old, both), (both, new)):
        values = {"read": {f"note {name}": 1 for name in named}, "findings": {"note": named[0]}}
        config = await saver.aput(config, {**empty_checkpoint(), "channel_values": values}, {}, {})
    await saver.aput_writes(config, [("claims", {"note": result})], "task")

    await saver.prune_run("t", "", keep=1)

    assert set(names(rows, "t")) == {both, new, result}
    rows.check("thread", "t", deep=True)


@pytest.mark.requirement("F-10")
@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.execute("UPDATE notes SET content = ?", (b"x",)),
        lambda c: c.execute("UPDATE notes SET name = ?", ("0" * 40,)),
    ],
    ids=["content", "name"],
)
async def test_an_altered_note_is_refused(rows: Rows, damage: Callable[..., Any]) -> None:
    notes = SqlNotes(rows)
    name = await one(notes, "t", HITS)
    with rows.database.transaction() as connection:
        damage(connection)

    with pytest.raises((IntegrityError, NotFoundError), match=f"notes t/{name}|no note {name}"):
        await notes.get("t", [name])


@pytest.mark.requirement("F-10")
async def test_a_note_under_another_notes_name_is_refused(rows: Rows) -> None:
    """With a seal that fits: only the name says that it is not the value."""
    name = await one(SqlNotes(rows), "t", HITS)
    other = "0" * 40
    [row] = rows.read(NOTES)
    with rows.open_writer("thread", "t") as writer:
        writer.insert(NOTES, {**row, "name": other})

    with pytest.raises(IntegrityError, match=other):
        await SqlNotes(rows).get("t", [name, other])


@pytest.mark.requirement("F-10")
async def test_notes_are_encrypted_with_everything_else(keyed_rows: Rows) -> None:
    notes = SqlNotes(with_threads(keyed_rows, "t", "u"))
    name = await one(notes, "t", HITS)
    notes.copy("t", "u", [name])

    assert await notes.get("u", [name]) == {name: HITS}
    with keyed_rows.database.connection() as connection:
        contents = [bytes(row["content"]) for row in connection.execute("SELECT content FROM notes").fetchall()]
    assert len(contents) == 2
    assert all(content.startswith(b"enc1:") for content in contents)


hashes = st.just(DOCUMENT) | st.sampled_from(
    [f'"{DOCUMENT}', f'{DOCUMENT}"', f"{DOCUMENT}\\", f'\\"{DOCUMENT}', "a" * 63]
)


@pytest.mark.requirement("L-05")
@given(
    st.recursive(
        plain | hashes,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(hashes | st.text() | st.just("document") | st.just('"document'), inner, max_size=4)
        ),
        max_leaves=8,
    )
)
def test_the_documents_of_a_note_are_the_same_in_what_was_written(value: Any) -> None:
    assert find_hashes(encode_note(value)) == set(find_documents(value))
