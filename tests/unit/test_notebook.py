"""Taking the state apart and making it whole again: stages see what they returned, checkpoints see names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Send

from openassay.state import COLLECTED, FIELDS, LARGE, State, StateCompactor, collect, note_names
from openassay.storage.database import NOTES
from openassay.storage.events import SqlNotes
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.contract.conftest import with_threads

LONG = [{"document": f"{n:064x}", "start": n} for n in range(30)]
SHORT = [{"document": "0" * 64, "start": 1}]

pytestmark = pytest.mark.requirement("L-05")


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    with SqliteDatabase(tmp_path / "main.db") as database:
        yield with_threads(Rows(database), "t")


def book(rows: Rows) -> StateCompactor:
    return StateCompactor(SqlNotes(rows), "t")


def size(value: Any) -> int:
    return len(json.dumps(value))


def test_the_fields_are_those_of_the_state() -> None:
    assert State.__annotations__.keys() >= FIELDS | COLLECTED
    collected = {name for name, hint in State.__annotations__.items() if collect in getattr(hint, "__metadata__", ())}
    assert collected >= COLLECTED


async def test_what_is_large_is_named_and_what_is_small_stays(rows: Rows) -> None:
    update = {"findings": LONG, "sources": SHORT, "report": None, "round": 1, "notices": {"x": "y" * 2 * LARGE}}
    kept = await book(rows).compact(update)

    assert size(kept["findings"]) < 100
    assert {name: value for name, value in kept.items() if name != "findings"} == {
        name: value for name, value in update.items() if name != "findings"
    }


async def test_another_process_makes_the_state_whole(rows: Rows) -> None:
    update = {"findings": LONG, "selected": {"Q1": LONG, "Q2": ()}, "searched": {"0:Q1": {"hits": LONG}}, "round": 2}
    kept = await book(rows).compact(update)

    assert size(kept) < LARGE
    assert await book(rows).expand(kept) == {**update, "selected": {"Q1": LONG, "Q2": []}}


async def test_tasks_that_run_side_by_side_add_to_one_field(rows: Rows) -> None:
    field: dict[str, Any] = {"0:Q0": SHORT}
    for number, places in ((1, LONG), (2, SHORT), (3, LONG[1:])):
        field = collect(field, (await book(rows).compact({"read": {f"0:Q{number}": places}}))["read"])

    assert size(field) < LARGE
    whole = await book(rows).expand({"read": field})
    assert whole == {"read": {"0:Q0": SHORT, "0:Q1": LONG, "0:Q2": SHORT, "0:Q3": LONG[1:]}}


async def test_a_task_that_is_done_again_has_the_last_word(rows: Rows) -> None:
    notebook = book(rows)
    first = (await notebook.compact({"read": {"0:Q1": LONG, "0:Q2": LONG}}))["read"]
    field = collect(first, (await notebook.compact({"read": {"0:Q1": LONG[1:]}}))["read"])

    assert await notebook.expand({"read": field}) == {"read": {"0:Q1": LONG[1:], "0:Q2": LONG}}
    assert collect(field, (await notebook.compact({"read": None}))["read"]) == {}


async def test_the_argument_of_a_send_is_a_name(rows: Rows) -> None:
    task = {"key": "0:Q1", "question": {"id": "Q1"}, "passages": LONG}
    [kept] = await book(rows).compact_tasks([task])

    assert size(kept) < 100
    assert await book(rows).expand(kept) == task
    assert await book(rows).expand(task) == task  # as one from before tasks were named


async def test_the_names_in_a_checkpoint_are_all_it_needs(rows: Rows) -> None:
    notebook = book(rows)
    state = await notebook.compact({"claims": LONG, "read": {"0:Q1": LONG[1:]}, "run": "r"})
    [task] = await notebook.compact_tasks([{"key": "0:Q1", "passages": LONG[2:]}])
    state["__pregel_tasks"] = [Send("read", task), Send("read", "plain")]

    assert sorted(note_names(state)) == sorted(row["name"] for row in rows.read(NOTES))
    assert list(note_names({"__pregel_tasks": Send("read", task)})) == list(note_names(task))
    assert not list(note_names({"claims": SHORT, "read": {"0:Q1": SHORT}, "subject": {"note": "x"}}))
