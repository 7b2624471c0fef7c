"""Threads, their runs and branches; the database itself allows one active run per thread."""

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import cast

from pydantic_core import to_jsonable_python

from assay.errors import AssayError, IntegrityError, NotFoundError, StorageError, ThreadBusyError
from assay.model.event import AT_WORK, ENDED, RunStatus, Status
from assay.model.question import Mode
from assay.model.thread import Branch, Cursor, Run, Stop, Thread, ThreadSummary
from assay.storage.database import ConstraintError, timestamp, utc_now
from assay.storage.deletion import delete, deleted, run_ids
from assay.storage.documents import is_due, sweep
from assay.storage.overview import Page, check_count, overview, untouched
from assay.storage.rows import Row, Rows, Writer
from assay.storage.seals import ALTERED
from assay.storage.tables import BRANCHES, RUNS, THREADS

_IS_THERE = "SELECT 1 FROM threads WHERE id = ?"
_WAS_THERE = "SELECT 1 FROM heads WHERE scope = ? AND members > 0"


class SqlThreads:
    """A ports.ThreadStore."""

    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def create(self, thread: Thread) -> None:
        await asyncio.to_thread(self._create, thread)

    async def get(self, id: str, *, owner: str | None = None) -> Thread:
        return await asyncio.to_thread(self._get, id, owner)

    async def recent(self, *, limit: int) -> list[Thread]:
        """The one that something happened on last comes first."""
        return await asyncio.to_thread(self._recent, max(limit, 0))

    async def overview(
        self, *, limit: int, statuses: Collection[RunStatus] = (), owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:  # fmt: skip
        return await asyncio.to_thread(overview, self._rows, Page(max(limit, 0), statuses, owner, after))

    async def untouched(self, since: datetime, *, limit: int) -> list[str]:
        return await asyncio.to_thread(untouched, self._rows, since, max(limit, 0))

    async def rename(self, id: str, title: str) -> None:
        await asyncio.to_thread(self._change, id, {"title": title})

    async def delete(self, id: str) -> None:
        await asyncio.to_thread(self._delete, id)

    async def sweep(self) -> None:
        await asyncio.to_thread(self._sweep)

    async def run_ids(self, thread: str) -> list[str]:
        return await asyncio.to_thread(run_ids, self._rows, thread)

    async def deleted(self, runs: Collection[str]) -> set[str]:
        return await asyncio.to_thread(deleted, self._rows, runs)

    async def folders(self) -> set[str]:
        return await asyncio.to_thread(self._folders)

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

    async def active(self, *statuses: RunStatus) -> list[Run]:
        """Runs that have not ended, whoever works on them; oldest first. 2,000 take 0.2 s."""
        return await asyncio.to_thread(self._active, statuses)

    async def set_mode(self, thread: str, mode: Mode) -> None:
        await asyncio.to_thread(self._change, thread, {"mode": mode})

    async def set_options(self, run: str, options: dict[str, object]) -> None:
        await asyncio.to_thread(self._change_run, run, {"options": json.dumps(to_jsonable_python(options))})

    async def ask_to_stop(self, run: str, stop: Stop) -> None:
        await asyncio.to_thread(self._change_run, run, {"stop": stop})

    async def stopping(self, run: str) -> Stop:
        """What was asked of a run, by whatever process."""
        return await asyncio.to_thread(self._stopping, run)

    async def add_branch(self, branch: Branch) -> None:
        await asyncio.to_thread(self._add_branch, branch)

    async def fork(
        self, thread: Thread, run: Run, branch: Branch | None = None, copy: Callable[[], None] = lambda: None
    ) -> None:
        await asyncio.to_thread(self._fork, thread, run, branch, copy)

    async def branch(self, thread: str) -> Branch | None:
        return await asyncio.to_thread(self._branch, thread)

    async def branches(self, parent: str) -> list[Branch]:
        """Threads that began as copies of this one, oldest first."""
        return await asyncio.to_thread(self._branches, parent)

    def _create(self, thread: Thread) -> None:
        values = {
            **dict(thread),
            "created": timestamp(thread.created),
            "updated": timestamp(thread.updated),
            "mode": thread.mode.value if thread.mode else None,
        }
        with self._rows.writing("thread", thread.id) as writer:
            try:
                writer.insert(THREADS, values)
            except ConstraintError as error:
                raise taken("thread", thread.id) from error

    def _get(self, id: str, owner: str | None = None) -> Thread:
        if owner is not None:
            rows = self._rows.read(THREADS, "WHERE id = ? AND owner = ?", (id, owner))
            if not rows:
                raise no_thread(id)  # the same as for one that never was: an id alone tells nothing
            return Thread.model_validate(rows[0])
        row = self._rows.one(THREADS, id)
        if row is None:
            raise self._missing(id)
        return Thread.model_validate(row)

    def _missing(self, id: str) -> AssayError:
        with self._rows.database.connection() as connection:
            was_there = connection.execute(_WAS_THERE, (f"thread:{id}",)).fetchone()
        name = self._rows.database.name
        return IntegrityError(f"{name}: row threads {id} is missing", help=ALTERED) if was_there else no_thread(id)

    def _recent(self, limit: int) -> list[Thread]:
        rows, _ = self._rows.sift(THREADS, "ORDER BY updated DESC, created DESC, id LIMIT ?", (limit,))
        check_count(self._rows)
        return [Thread.model_validate(row) for row in rows]

    def _change(self, id: str, changes: dict[str, object]) -> None:
        with self._rows.writing("thread", id) as writer:
            if writer.update(THREADS, (id,), {**changes, "updated": timestamp(self._now())}) is None:
                raise no_thread(id)

    def _sweep(self) -> None:
        if is_due(self._rows):  # looking through all documents takes a while
            with self._rows.database.transaction() as connection:
                sweep(self._rows, connection)

    def _delete(self, id: str) -> None:
        if not delete(self._rows, id):
            raise no_thread(id)
        self._rows.database.scrub()

    def _folders(self) -> set[str]:
        runs = map(_restored, self._rows.sift(RUNS)[0])
        return {str(path) for run in runs for path in cast("list[object]", run.options.get("docs", ()))}

    def _begin(self, run: Run) -> None:
        values = {
            **run.plain(),
            "started": timestamp(run.started),
            "finished": timestamp(run.finished) if run.finished else None,
            "options": json.dumps(run.plain()["options"]),
            "stop": "",
        }
        with writing_in(self._rows, run.thread) as writer:
            self._rows.heads.take_common(writer.connection)
            try:
                writer.insert(RUNS, values)
            except ConstraintError as error:
                raise _refusal(error, run) from error
            self._touch(writer, run.thread)

    def _update(self, run: str, status: RunStatus | None, stage: Status | None, error: str | None) -> None:
        now = timestamp(self._now())

        def changes(before: Row) -> dict[str, object]:
            """A run that goes on after it had ended has not finished, and the error that ended it is gone."""
            goes_on = status is not None and status not in ENDED
            kept_error = None if goes_on and before["finished"] else before["error"]
            finished = None if goes_on else before["finished"] or (now if status in ENDED else None)
            return {
                "status": (status or RunStatus(before["status"])).value,
                "stage": (stage or Status(before["stage"])).value,
                "error": kept_error if error is None else error,
                "finished": finished,
                "stop": before["stop"] if status is None or is_still_asked(before["status"], status) else "",
            }

        self._change_run(run, changes)

    def _change_run(self, id: str, changes: dict[str, object] | Callable[[Row], dict[str, object]]) -> None:
        with self._rows.writing("thread", self._run(id).thread) as writer:
            before = writer.one(RUNS, id)
            if before is None:
                raise no_run(id)
            if before["status"] in ENDED:  # it may begin again
                self._rows.heads.take_common(writer.connection)
            try:
                writer.update(RUNS, (id,), changes(before) if callable(changes) else changes)
            except ConstraintError as error:
                raise another_is_active(id, before["thread"]) from error
            self._touch(writer, before["thread"])

    def _touch(self, writer: Writer, thread: str) -> None:
        writer.update(THREADS, (thread,), {"updated": timestamp(self._now())})

    def _run(self, id: str) -> Run:
        row = self._rows.one(RUNS, id)
        if row is None:
            raise no_run(id)
        return _restored(row)

    def _runs(self, thread: str) -> list[Run]:
        self._get(thread)
        return [_restored(row) for row in self._rows.read(RUNS, "WHERE thread = ? ORDER BY rowid", (thread,))]

    def _active(self, statuses: Sequence[RunStatus]) -> list[Run]:
        wanted = f"AND status IN ({', '.join('?' for _ in statuses)})" if statuses else ""
        rest = f"WHERE status IN ('queued', 'running', 'waiting') {wanted} ORDER BY started, rowid"
        return [_restored(row) for row in self._rows.sift(RUNS, rest, statuses)[0]]

    def _stopping(self, run: str) -> Stop:
        row = self._rows.one(RUNS, run)
        if row is None:
            raise no_run(run)
        return Stop(row["stop"])

    def _add_branch(self, branch: Branch) -> None:
        values = {
            **dict(branch), "changes": json.dumps(branch.plain()["changes"]), "created": timestamp(branch.created),
        }  # fmt: skip
        with self._rows.writing("thread", branch.thread) as writer:
            try:
                writer.insert(BRANCHES, values)
            except ConstraintError as error:
                raise no_thread(branch.thread) from error

    def _fork(self, thread: Thread, run: Run, branch: Branch | None, copy: Callable[[], None]) -> None:
        with self._rows.database.transaction():
            self._create(thread)
            self._begin(run)
            if branch:
                self._add_branch(branch)
            copy()

    def _branch(self, thread: str) -> Branch | None:
        row = self._rows.one(BRANCHES, thread)
        return _branch(row) if row else None

    def _branches(self, parent: str) -> list[Branch]:
        return [
            _branch(row) for row in self._rows.read(BRANCHES, "WHERE parent = ? ORDER BY created, thread", (parent,))
        ]


def is_still_asked(before: str, status: RunStatus) -> bool:
    """Whether a run that was to stop still is: a process that begins with it may have been asked while it started."""
    return status is RunStatus.RUNNING and before in AT_WORK


@contextmanager
def writing_in(rows: Rows, thread: str) -> Iterator[Writer]:
    """As `Rows.writing`, on a thread that is there: what a run that was stopped still wants to write when its thread is
    deleted comes too late."""
    with rows.writing("thread", thread) as writer:
        if writer.connection.execute(_IS_THERE, (thread,)).fetchone() is None:
            raise no_thread(thread)
        yield writer


def no_thread(id: str) -> NotFoundError:
    return NotFoundError(f"no thread {id}", help="Look at the list of threads for its id.", thread=id)


def no_run(id: str) -> NotFoundError:
    return NotFoundError(f"no run {id}", help="Look at the runs of its thread for its id.", run=id)


def taken(noun: str, id: str) -> StorageError:
    return StorageError(f"there is a {noun} {id} already", help="Choose an id that was not used before.")


def another_is_active(run: str, thread: str) -> ThreadBusyError:
    return ThreadBusyError(
        f"run {run} has to wait: another run is active on its thread",
        help=f"Wait for it to end; if it was stopped or waits for an answer, go on with: assay resume {thread}",
        retryable=True,
        run=run,
    )


def _refusal(error: ConstraintError, run: Run) -> AssayError:
    match error.constraint:
        case "foreign":
            return no_thread(run.thread)
        case "primary":
            return taken("run", run.id)
        case _:
            return another_is_active(run.id, run.thread)


def _restored(row: Row) -> Run:
    kept = {name: value for name, value in row.items() if name != "stop"}
    return Run.model_validate({**kept, "options": json.loads(row["options"])})


def _branch(row: Row) -> Branch:
    return Branch.model_validate({**row, "changes": json.loads(row["changes"])})
