"""Many threads at a glance: a handful of statements, however many there are."""

import logging
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from assay.errors import IntegrityError
from assay.model.event import RunStatus
from assay.model.spend import MICRO
from assay.model.thread import Cursor, ThreadSummary
from assay.storage.database import timestamp
from assay.storage.rows import Rows
from assay.storage.seals import ALTERED
from assay.storage.tables import BRANCHES, RUNS, THREADS

_log = logging.getLogger("assay")
_NEVER = datetime.fromtimestamp(0, UTC)
_LAST = "(SELECT status FROM runs WHERE thread = threads.id ORDER BY rowid DESC LIMIT 1)"
_ORDER = "ORDER BY updated DESC, id DESC LIMIT ?"
# Of the threads of a page alone: a server has many more.
_LAST_RUNS = "WHERE rowid IN (SELECT max(rowid) FROM runs WHERE thread IN {page} GROUP BY thread)"
_TURNS = "SELECT thread, count(*) AS n FROM runs WHERE thread IN {page} GROUP BY thread"
_COSTS = """
SELECT runs.thread AS thread, sum(calls.micros) AS micros FROM runs JOIN calls ON calls.run = runs.id
WHERE runs.thread IN {page} AND calls.state IN ('settled', 'lost') AND calls.micros > 0 GROUP BY runs.thread
"""
# One statement, so that both are counted at the same moment whoever adds a thread meanwhile.
_COUNTED = """
SELECT (SELECT count(*) FROM threads) AS kept,
    (SELECT count(*) FROM heads WHERE scope LIKE 'thread:%' AND members > 0) AS known
"""
_LOST = """
SELECT count(*) AS runs FROM accounts JOIN runs ON runs.id = accounts.run
WHERE accounts.owner = ? AND NOT EXISTS (SELECT 1 FROM threads WHERE threads.id = runs.thread)
"""
_IDLE = """
SELECT id FROM threads WHERE updated < ?
AND NOT EXISTS (SELECT 1 FROM runs WHERE thread = threads.id AND status IN ('queued', 'running', 'waiting'))
ORDER BY updated, id LIMIT ?
"""


class Page(NamedTuple):
    limit: int
    statuses: Collection[RunStatus] = ()
    owner: str | None = None
    after: Cursor | None = None

    @property
    def where(self) -> str:
        marks = ", ".join("?" for _ in self.statuses)
        conditions = [
            f"{_LAST} IN ({marks})" if self.statuses else "",
            "owner = ?" if self.owner is not None else "",
            "(updated < ? OR (updated = ? AND id < ?))" if self.after else "",
        ]
        told = " AND ".join(condition for condition in conditions if condition)
        return f"WHERE {told} " if told else ""

    @property
    def values(self) -> list[object]:
        moment = timestamp(self.after.updated) if self.after else ""
        end = [moment, moment, self.after.id] if self.after else []
        whose = [] if self.owner is None else [self.owner]
        return [*(status.value for status in self.statuses), *whose, *end, self.limit]


def overview(rows: Rows, asked: Page) -> list[ThreadSummary]:
    """Threads and their last runs are checked as they are read; turns and costs are counted. Threads that are damaged
    are said to be; those of which not even the time is known come last."""
    if asked.owner is None:
        check_count(rows)
    else:
        _check_own(rows, asked.owner)
    those, values = asked.where, asked.values
    threads, unreadable = rows.sift(THREADS, those + _ORDER, values)
    page = f"(SELECT id FROM threads {those}{_ORDER})"  # noqa: S608  # marks alone
    with rows.database.connection() as connection:
        counted = connection.execute(_TURNS.format(page=page), values).fetchall()
        paid = connection.execute(_COSTS.format(page=page), values).fetchall()
    turns = {row["thread"]: int(row["n"]) for row in counted}
    costs = {row["thread"]: int(row["micros"]) / MICRO for row in paid}
    found, damaged_runs = rows.sift(RUNS, _LAST_RUNS.format(page=page), values)
    branches, damaged_branches = rows.sift(BRANCHES, f"WHERE thread IN {page}", values)
    runs = {row["thread"]: row for row in found}
    parents = {row["thread"]: row["parent"] for row in branches}
    damaged = {row["thread"] for row in (*damaged_runs, *damaged_branches)}
    return [
        ThreadSummary(
            id=row["id"], title=row["title"], created=row["created"], updated=row["updated"],
            status=runs[row["id"]]["status"] if row["id"] in runs else None,
            question=runs[row["id"]]["question"] if row["id"] in runs else "",
            turns=turns.get(row["id"], 0), usd=costs.get(row["id"], 0.0), parent=parents.get(row["id"]),
            owner=row["owner"], damaged=row["id"] in damaged,
        )
        for row in threads
    ] + [_unreadable(row) for row in unreadable]  # fmt: skip


def _unreadable(row: Any) -> ThreadSummary:
    return ThreadSummary(id=str(row["id"]), title="", created=_NEVER, updated=_NEVER, damaged=True)


def check_count(rows: Rows) -> None:
    """A thread whose row is gone would otherwise not be missed in a list."""
    with rows.database.connection() as connection:
        found = connection.execute(_COUNTED).fetchone()
    if found["kept"] != found["known"]:
        what = f"{found['kept']} threads are there and {found['known']} were written"
        raise IntegrityError(f"{rows.database.name}: {what}", help=ALTERED)


def _check_own(rows: Rows, owner: str) -> None:
    """What is missing of others is none of theirs; where it is missing from stands in the log alone."""
    with rows.database.connection() as connection:
        lost = int(connection.execute(_LOST, (owner,)).fetchone()["runs"])
    if lost:
        _log.error("%s: %d runs of %s belong to threads that are gone", rows.database.name, lost, owner)
        raise IntegrityError("a thread of yours is not there any more, and nobody has deleted it", help=ALTERED)


def untouched(rows: Rows, since: datetime, limit: int) -> list[str]:
    with rows.database.connection() as connection:
        found = connection.execute(_IDLE, (timestamp(since), limit)).fetchall()
    return [str(row["id"]) for row in found]
