"""Sources a person wants to keep in sight: documents of a thread, whatever number a report gives them."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from assay.model.record import Record
from assay.storage.database import timestamp, utc_now
from assay.storage.rows import Rows
from assay.storage.tables import PINS
from assay.storage.threads import writing_in


class Pin(Record):
    thread: str
    document: str
    created: datetime


class SqlPins:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def pin(self, thread: str, document: str) -> None:
        """Pinning it again changes nothing."""
        await asyncio.to_thread(self._pin, thread, document)

    async def unpin(self, thread: str, document: str) -> bool:
        """Whether it was pinned."""
        return await asyncio.to_thread(self._unpin, thread, document)

    async def of(self, thread: str) -> list[Pin]:
        """Oldest first."""
        return await asyncio.to_thread(self._of, thread)

    def _pin(self, thread: str, document: str) -> None:
        row = {"thread": thread, "document": document, "created": timestamp(self._now())}
        with writing_in(self._rows, thread) as writer:
            writer.insert(PINS, row, on_conflict="keep")

    def _unpin(self, thread: str, document: str) -> bool:
        with writing_in(self._rows, thread) as writer:
            return writer.delete(PINS, "WHERE thread = ? AND document = ?", (thread, document)) > 0

    def _of(self, thread: str) -> list[Pin]:
        rows = self._rows.read(PINS, "WHERE thread = ? ORDER BY created, document", (thread,))
        return [Pin.model_validate(row) for row in rows]
