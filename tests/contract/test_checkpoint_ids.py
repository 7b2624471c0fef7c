"""Checkpoints of one thread come from machines whose clocks differ."""

from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.base.id import uuid6

from openassay.engine.checkpoints import SqlCheckpointSaver, advance_clock
from openassay.storage.sealed_rows import Rows
from tests.contract.conftest import with_threads

HOUR = 36_000_000_000  # in steps of 100 ns


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> str:
    """An id of a machine whose clock is an hour ahead."""
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)
    monkeypatch.setattr(ids, "_last_v6_timestamp", uuid6().time + HOUR)
    later = str(uuid6())
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)
    assert str(uuid6()) < later
    return later


def test_ids_come_after_what_is_gone_on_from(ahead: str) -> None:
    advance_clock(ahead)
    first, second = str(uuid6()), str(uuid6())
    assert ahead < first < second
    advance_clock("0195f5d0-0000-7000-8000-000000000000")  # of another kind
    advance_clock("somebody's own")
    assert str(uuid6()) > second


@pytest.mark.slow
@pytest.mark.requirement("F-10", "W-16")
async def test_what_is_done_after_a_handover_comes_last_whatever_the_clocks_say(rows: Rows, ahead: str) -> None:
    saver = SqlCheckpointSaver(with_threads(rows, "t"))
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    await saver.aput(config, {**empty_checkpoint(), "id": ahead}, {"source": "loop", "step": 1}, {})
    kept = await saver.aget_tuple(config)
    assert kept is not None
    own = str(uuid6())
    await saver.aput(kept.config, {**empty_checkpoint(), "id": own}, {"source": "loop", "step": 2}, {})
    last = await saver.aget_tuple(config)
    assert last is not None
    assert last.checkpoint["id"] == own
