"""What happened in a run, in order; numbered from 1 without gaps, whoever appends."""

import asyncio
import json
import sqlite3

from assay.errors import StorageError
from assay.model.event import Event
from assay.storage.sqlite import Database, timestamp
from assay.storage.threads import no_run

_APPEND = """
INSERT INTO events (run, seq, time, kind, stage, parent, data)
SELECT :run, coalesce(max(seq), 0) + 1, :time, :kind, :stage, :parent, :data FROM events WHERE run = :run
RETURNING seq
"""


class SqliteEvents:
    """A ports.EventLog. Events belong to a run: they are refused before it begins and go with its thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, event: Event) -> Event:
        return await asyncio.to_thread(self._append, event)

    async def since(self, run: str, seq: int) -> list[Event]:
        return await asyncio.to_thread(self._since, run, seq)

    def _append(self, event: Event) -> Event:
        data = plain_data(event)
        values = {**dict(event), "time": timestamp(event.time), "data": json.dumps(data)}
        with self._database.transaction() as connection:
            try:
                (row,) = connection.execute(_APPEND, values).fetchall()
            except sqlite3.IntegrityError as error:
                raise no_run(event.run) from error
        return event.model_copy(update={"seq": row["seq"], "data": data})

    def _since(self, run: str, seq: int) -> list[Event]:
        with self._database.connection() as connection:
            rows = connection.execute(
                "SELECT * FROM events WHERE run = ? AND seq > ? ORDER BY seq", (run, seq)
            ).fetchall()
        return [Event.model_validate({**dict(row), "data": json.loads(row["data"])}) for row in rows]


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
