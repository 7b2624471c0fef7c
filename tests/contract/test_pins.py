"""Pins belong to a thread and to a document of it."""

import pytest

from openassay.errors import NotFoundError
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlPins, delete_thread
from tests.contract.conftest import with_threads

A, B = "a" * 64, "b" * 64


async def test_a_document_is_pinned_once_and_unpinned_once(keyed_rows: Rows) -> None:
    pins = SqlPins(with_threads(keyed_rows, "t", "u"))
    for document in (B, A, B):
        await pins.pin("t", document)
    assert await pins.list_for("t") == [B, A]
    assert await pins.list_for("u") == []
    assert [await pins.unpin("t", B), await pins.unpin("t", B)] == [True, False]
    assert await pins.list_for("t") == [A]
    keyed_rows.check("thread", "t", deep=True)


async def test_pins_go_with_their_thread(rows: Rows) -> None:
    pins = SqlPins(with_threads(rows, "t"))
    await pins.pin("t", A)
    delete_thread(rows, "t")
    assert await pins.list_for("t") == []
    with pytest.raises(NotFoundError):
        await pins.pin("t", A)
