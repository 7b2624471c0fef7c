"""What one person has spent and may still spend, over all their runs: counted from the books, which keep a run's money
when its thread is deleted."""

import asyncio
import json
from datetime import datetime
from typing import NamedTuple

from assay.model.thread import Options
from assay.storage.database import timestamp
from assay.storage.rows import Rows
from assay.storage.tables import RUNS, THREADS

# What is reserved for a call under way counts as spent.
_SPENT = """
SELECT coalesce(sum(calls.micros), 0) AS micros FROM accounts JOIN calls ON calls.run = accounts.run
WHERE accounts.owner = ? AND calls.micros > 0 AND calls.time >= ?
"""
_ACTIVE = """
WHERE status IN ('queued', 'running', 'waiting') AND thread IN (SELECT id FROM threads WHERE owner = ?)
"""
_CALLED = """
SELECT run, sum(micros) AS used FROM calls WHERE run IN
    (SELECT runs.id FROM runs JOIN threads ON threads.id = runs.thread
    WHERE threads.owner = ? AND runs.status IN ('queued', 'running', 'waiting'))
GROUP BY run
"""
_USED = "SELECT coalesce(sum(micros), 0) AS micros FROM calls WHERE run = ?"
_OPEN = """
SELECT count(*) AS runs FROM runs JOIN threads ON threads.id = runs.thread
WHERE threads.owner = ? AND runs.id <> ? AND runs.status IN ('queued', 'running', 'waiting')
"""


class Open(NamedTuple):
    """A run that has not ended. What it may cost stands in its options, before anything is asked of anybody."""

    run: str
    options: Options
    used: int  # micro-dollars


class SqlSpending:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def spent(self, owner: str, since: datetime) -> int:
        """In micro-dollars."""
        return await asyncio.to_thread(self._sum, _SPENT, (owner, timestamp(since)))

    async def used(self, run: str) -> int:
        """By one run, whenever."""
        return await asyncio.to_thread(self._sum, _USED, (run,))

    async def owner(self, thread: str) -> str:
        return await asyncio.to_thread(self._owner, thread)

    async def open(self, owner: str) -> list[Open]:
        return await asyncio.to_thread(self._open, owner)

    async def at_work(self, owner: str, without: str = "") -> int:
        """How many runs are at work, in line, or waiting for an answer."""
        return await asyncio.to_thread(self._at_work, owner, without)

    def _sum(self, sql: str, values: tuple[object, ...]) -> int:
        with self._rows.database.connection() as connection:
            return int(connection.execute(sql, values).fetchone()["micros"])

    def _owner(self, thread: str) -> str:
        row = self._rows.one(THREADS, thread)
        return str(row["owner"]) if row else ""

    def _at_work(self, owner: str, without: str) -> int:
        with self._rows.database.connection() as connection:
            return int(connection.execute(_OPEN, (owner, without)).fetchone()["runs"])

    def _open(self, owner: str) -> list[Open]:
        with self._rows.database.connection() as connection:
            found = connection.execute(_CALLED, (owner,)).fetchall()
        used = {row["run"]: int(row["used"]) for row in found}
        runs = self._rows.read(RUNS, _ACTIVE, (owner,))
        return [
            Open(row["id"], Options.model_validate(json.loads(row["options"])), used.get(row["id"], 0)) for row in runs
        ]
