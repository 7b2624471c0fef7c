"""What people want remembered, in rows of the database: for every machine, and sealed and encrypted like all others.

It is asked as LangGraph's Store is: the namespace ("memory", "ann", "facts") is the place `facts` of ann.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, NamedTuple

from assay.storage.rows import Row, Rows
from assay.storage.tables import MEMORIES

_AT = "WHERE owner = ? AND place = ?"

Namespace = tuple[str, ...]


class Item(NamedTuple):
    key: str
    value: dict[str, Any]


class SqlMemories:
    """`lock` keeps everybody else out, on whatever machine, while it is open; it is entered and left in threads."""

    def __init__(self, rows: Rows, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._rows = rows
        self._lock = lock
        self._turn = asyncio.Lock()

    async def aget(self, namespace: Namespace, key: str) -> Item | None:
        row = await asyncio.to_thread(self._rows.one, MEMORIES, *_place(namespace), key)
        return _item(row) if row else None

    async def asearch(self, namespace: Namespace, /, *, limit: int) -> list[Item]:
        values = (*_place(namespace), limit)
        rows = await asyncio.to_thread(self._rows.read, MEMORIES, f"{_AT} ORDER BY key LIMIT ?", values)
        return [_item(row) for row in rows]

    async def aput(self, namespace: Namespace, key: str, value: dict[str, Any]) -> None:
        await asyncio.to_thread(self._put, *_place(namespace), key, json.dumps(value))

    async def adelete(self, namespace: Namespace, key: str) -> None:
        await asyncio.to_thread(self._delete, *_place(namespace), key)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Writers read first what there is, so they go one by one. Those of this process wait for each other here: were
        each to wait in a thread, none would be left for the one whose turn it is."""
        async with self._turn:
            lock = self._lock()
            entering = asyncio.create_task(asyncio.to_thread(lock.__enter__))
            try:
                await asyncio.shield(entering)
                yield
            finally:
                await asyncio.wait([entering])  # whoever is cancelled has it in a moment all the same
                if entering.exception() is None:
                    await asyncio.to_thread(lock.__exit__, None, None, None)

    def _put(self, owner: str, place: str, key: str, value: str) -> None:
        with self._rows.writing("user", owner) as writer:
            row = {"owner": owner, "place": place, "key": key, "value": value}
            writer.insert(MEMORIES, row, on_conflict="replace")

    def _delete(self, owner: str, place: str, key: str) -> None:
        with self._rows.writing("user", owner) as writer:
            writer.delete(MEMORIES, f"{_AT} AND key = ?", (owner, place, key))


def _place(namespace: Namespace) -> tuple[str, str]:
    _, owner, *place = namespace
    return owner, ".".join(place)


def _item(row: Row) -> Item:
    return Item(row["key"], json.loads(row["value"]))
