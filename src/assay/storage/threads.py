"""Threads and their runs; the database itself allows one active run per thread."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic_core import to_jsonable_python

from assay.errors import AssayError, NotFoundError, StorageError, ThreadBusyError
from assay.model.event import RunStatus, Status
from assay.model.question import Mode
from assay.model.thread import Run, Thread
from assay.storage.sqlite import Database, timestamp

ENDED = frozenset({RunStatus.CANCELLED, RunStatus.DONE, RunStatus.FAILED})

_BEGIN = """
INSERT INTO runs (id, thread, question, status, stage, started, finished, settings, options, error)
VALUES (:id, :thread, :question, :status, :stage, :started, :finished, :settings, :options, :error)
"""

# A run that goes on after it had ended has not finished, and the error that ended it is gone.
_UPDATE = """
UPDATE runs SET
    status = coalesce(:status, status),
    stage = coalesce(:stage, stage),
    error = coalesce(:error, CASE WHEN :active AND finished IS NOT NULL THEN NULL ELSE error END),
    finished = CASE WHEN :active THEN NULL WHEN :ended THEN coalesce(finished, :now) ELSE finished END
WHERE id = :run
"""


def utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteThreads:
    """A ports.ThreadStore."""

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._now = now

    async def create(self, thread: Thread) -> None:
        await asyncio.to_thread(self._create, thread)

    async def get(self, id: str) -> Thread:
        return await asyncio.to_thread(self._get, id)

    async def recent(self, *, limit: int) -> list[Thread]:
        """The one that something happened on last comes first."""
        return await asyncio.to_thread(self._recent, max(limit, 0))

    async def delete(self, id: str) -> None:
        await asyncio.to_thread(self._delete, id)

    async def begin(self, run: Run) -> None:
        await asyncio.to_thread(self._begin, run)

    async def update(
        self,
        run: str,
        *,
        status: RunStatus | None = None,
        stage: Status | None = None,
        error: str | None = None,
    ) -> None:
        await asyncio.to_thread(self._update, run, status, stage, error)

    async def run(self, id: str) -> Run:
        return await asyncio.to_thread(self._run, id)

    async def runs(self, thread: str) -> list[Run]:
        """Oldest first."""
        return await asyncio.to_thread(self._runs, thread)

    async def set_mode(self, thread: str, mode: Mode) -> None:
        await asyncio.to_thread(self._set_mode, thread, mode)

    async def set_options(self, run: str, options: dict[str, object]) -> None:
        await asyncio.to_thread(self._set_options, run, options)

    def _create(self, thread: Thread) -> None:
        values = (thread.id, thread.title, timestamp(thread.created), timestamp(thread.updated), thread.mode)
        with self._database.transaction() as connection:
            try:
                connection.execute(
                    "INSERT INTO threads (id, title, created, updated, mode) VALUES (?, ?, ?, ?, ?)", values
                )
            except sqlite3.IntegrityError as error:
                raise taken("thread", thread.id) from error

    def _get(self, id: str) -> Thread:
        with self._database.connection() as connection:
            row = connection.execute("SELECT * FROM threads WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise no_thread(id)
        return Thread.model_validate(dict(row))

    def _recent(self, limit: int) -> list[Thread]:
        with self._database.connection() as connection:
            rows = connection.execute(
                "SELECT * FROM threads ORDER BY updated DESC, created DESC, id LIMIT ?", (limit,)
            ).fetchall()
        return [Thread.model_validate(dict(row)) for row in rows]

    def _delete(self, id: str) -> None:
        with self._database.transaction() as connection:
            if not connection.execute("DELETE FROM threads WHERE id = ?", (id,)).rowcount:
                raise no_thread(id)

    def _begin(self, run: Run) -> None:
        values = {
            **run.plain(),
            "started": timestamp(run.started),
            "finished": timestamp(run.finished) if run.finished else None,
            "options": json.dumps(run.plain()["options"]),
        }
        with self._database.transaction() as connection:
            try:
                connection.execute(_BEGIN, values)
            except sqlite3.IntegrityError as error:
                raise _refusal(error, run) from error
            self._touch(connection, run.id)

    def _update(self, run: str, status: RunStatus | None, stage: Status | None, error: str | None) -> None:
        values = {
            "run": run,
            "status": status,
            "stage": stage,
            "error": error,
            "active": status is not None and status not in ENDED,
            "ended": status in ENDED,
            "now": timestamp(self._now()),
        }
        with self._database.transaction() as connection:
            try:
                changed = connection.execute(_UPDATE, values).rowcount
            except sqlite3.IntegrityError as refused:
                raise busy(run, self._run(run).thread) from refused
            if not changed:
                raise no_run(run)
            self._touch(connection, run)

    def _set_mode(self, thread: str, mode: Mode) -> None:
        values = (mode, timestamp(self._now()), thread)
        with self._database.transaction() as connection:
            if not connection.execute("UPDATE threads SET mode = ?, updated = ? WHERE id = ?", values).rowcount:
                raise no_thread(thread)

    def _set_options(self, run: str, options: dict[str, object]) -> None:
        values = (json.dumps(to_jsonable_python(options)), run)
        with self._database.transaction() as connection:
            if not connection.execute("UPDATE runs SET options = ? WHERE id = ?", values).rowcount:
                raise no_run(run)
            self._touch(connection, run)

    def _touch(self, connection: sqlite3.Connection, run: str) -> None:
        connection.execute(
            "UPDATE threads SET updated = ? WHERE id = (SELECT thread FROM runs WHERE id = ?)",
            (timestamp(self._now()), run),
        )

    def _run(self, id: str) -> Run:
        with self._database.connection() as connection:
            row = connection.execute("SELECT * FROM runs WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise no_run(id)
        return _restored(row)

    def _runs(self, thread: str) -> list[Run]:
        self._get(thread)
        with self._database.connection() as connection:
            rows = connection.execute(
                "SELECT * FROM runs WHERE thread = ? ORDER BY started, rowid", (thread,)
            ).fetchall()
        return [_restored(row) for row in rows]


def no_thread(id: str) -> NotFoundError:
    return NotFoundError(f"no thread {id}", help="Look at the list of threads for its id.", thread=id)


def no_run(id: str) -> NotFoundError:
    return NotFoundError(f"no run {id}", help="Look at the runs of its thread for its id.", run=id)


def taken(noun: str, id: str) -> StorageError:
    return StorageError(f"there is a {noun} {id} already", help="Choose an id that was not used before.")


def busy(run: str, thread: str) -> ThreadBusyError:
    return ThreadBusyError(
        f"run {run} has to wait: another run is active on its thread",
        help=f"Wait for it to end; if it was stopped or waits for an answer, go on with: assay resume {thread}",
        retryable=True,
        run=run,
    )


def _refusal(error: sqlite3.IntegrityError, run: Run) -> AssayError:
    match error.sqlite_errorname:
        case "SQLITE_CONSTRAINT_FOREIGNKEY":
            return no_thread(run.thread)
        case "SQLITE_CONSTRAINT_PRIMARYKEY":
            return taken("run", run.id)
        case _:
            return busy(run.id, run.thread)


def _restored(row: sqlite3.Row) -> Run:
    return Run.model_validate({**dict(row), "options": json.loads(row["options"])})
