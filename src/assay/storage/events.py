"""What happened in a run, in order; numbered from 1 without gaps, whoever appends."""

import asyncio
import json
from collections.abc import Callable

from assay.errors import StorageError
from assay.model.event import Event
from assay.storage.database import ConstraintError, timestamp
from assay.storage.rows import Rows
from assay.storage.tables import EVENTS
from assay.storage.threads import no_run

_LAST = "SELECT coalesce(max(seq), 0) AS seq FROM events WHERE run = ?"


class SqlEvents:
    """A ports.EventLog. Events belong to a run: they are refused before it begins and go with its thread.
    `tell` is told of each, in the thread that has appended it."""

    def __init__(self, rows: Rows, tell: Callable[[Event], None] = lambda event: None) -> None:
        self._rows = rows
        self._tell = tell

    async def append(self, event: Event) -> Event:
        return await asyncio.to_thread(self._append, event)

    async def since(self, run: str, seq: int) -> list[Event]:
        return await asyncio.to_thread(self._since, run, seq)

    def _append(self, event: Event) -> Event:
        data = plain_data(event)
        with self._rows.writing("run", event.run) as writer:
            seq = int(writer.connection.execute(_LAST, (event.run,)).fetchone()["seq"]) + 1
            values = {**dict(event), "seq": seq, "time": timestamp(event.time), "data": json.dumps(data)}
            try:
                writer.insert(EVENTS, values)
            except ConstraintError as error:
                raise no_run(event.run) from error
        appended = event.model_copy(update={"seq": seq, "data": data})
        self._tell(appended)
        return appended

    def _since(self, run: str, seq: int) -> list[Event]:
        rows = self._rows.read(EVENTS, "WHERE run = ? AND seq > ? ORDER BY seq", (run, seq))
        return [Event.model_validate({**row, "data": json.loads(row["data"])}) for row in rows]


def plain_data(event: Event) -> object:
    """The data of an event as it will be read back."""
    try:
        return event.plain()["data"]
    except ValueError as error:
        raise StorageError(
            f"the data of a {event.kind!r} event cannot be written as JSON: {error}",
            help="Put only plain data into events: text, numbers, lists and dictionaries.",
            run=event.run,
        ) from error
