"""A thread that begins as a copy of another's checkpoint, on either database."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint
from langgraph.types import Send

from openassay.engine.checkpoints import SqlCheckpointSaver, replace_fields
from openassay.errors import NotFoundError
from openassay.storage.database import NOTES, USED_DOCUMENTS
from openassay.storage.events import SqlNotes
from openassay.storage.sealed_rows import Rows
from tests.contract.conftest import with_threads

pytestmark = pytest.mark.requirement("W-18")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGE, HIT = "a" * 64, "b" * 64


async def put(rows: Rows, values: Mapping[str, Any]) -> str:
    checkpoint = {**empty_checkpoint(), "channel_values": dict(values), "channel_versions": {"run": 7}}
    metadata: CheckpointMetadata = {"source": "loop", "step": 3, "parents": {}}
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    await SqlCheckpointSaver(rows).aput(config, checkpoint, metadata, {})  # type: ignore[arg-type]
    return str(checkpoint["id"])


@pytest.mark.slow
async def test_a_copy_has_all_it_refers_to(keyed_rows: Rows) -> None:
    with_threads(keyed_rows, "t", "b")
    [hits, task] = await SqlNotes(keyed_rows).put("t", [{"hits": [{"document": HIT}]}, {"key": "0:Q1", "queries": []}])
    await SqlNotes(keyed_rows).put("t", ["of an earlier question"])
    values = {
        "run": "r", "round": 1, "original_query": "How hot? " * 500, "sources": [{"document": PAGE}],
        "searched": {f"note {hits}": 1}, "branch:to:fuse": None,
        "__pregel_tasks": [Send("search", {"key": "0:Q1", "note": task})],
    }  # fmt: skip
    id = await put(keyed_rows, values)
    keyed_rows.check("thread", "t", deep=True)
    version = "SELECT version FROM heads WHERE scope = 'thread:t'"
    before = keyed_rows.database.query_one(version)["version"]
    saver = SqlCheckpointSaver(keyed_rows)

    saver.copy("t", id, "b", NOW, ("dispatch",), lambda values: replace_fields(values, {"run": "r2"}))

    keyed_rows.check("thread", "t", deep=True)
    assert keyed_rows.database.query_one(version)["version"] == before, "the thread itself was not written to"
    keyed_rows.check("thread", "b", deep=True)
    copy = await saver.aget_tuple({"configurable": {"thread_id": "b", "checkpoint_ns": ""}})
    assert copy is not None
    assert copy.checkpoint["channel_values"] == {**values, "run": "r2"}
    assert copy.checkpoint["channel_versions"] == {"run": 7}
    assert copy.checkpoint["id"] != id
    assert (copy.parent_config, copy.pending_writes) == (None, [])
    assert {row["name"] for row in keyed_rows.read(NOTES, "WHERE thread = ?", ("b",))} == {hits, task}
    assert {row["document"] for row in keyed_rows.read(USED_DOCUMENTS, "WHERE thread = ?", ("b",))} == {PAGE, HIT}
    [outline] = await saver.outline("b")
    assert (outline.run, outline.standing.next, outline.standing.after) == ("r2", ("search", "fuse"), ("dispatch",))


@pytest.mark.slow
async def test_a_checkpoint_of_nobody_is_not_copied(rows: Rows) -> None:
    with_threads(rows, "t")
    with pytest.raises(NotFoundError, match="has no checkpoint"):
        SqlCheckpointSaver(rows).copy("t", "nosuch", "b", NOW, (), dict)
    assert await SqlCheckpointSaver(rows).find_thread("nosuch") is None
    id = await put(rows, {"run": "r"})
    assert await SqlCheckpointSaver(rows).find_thread(id) == "t"
