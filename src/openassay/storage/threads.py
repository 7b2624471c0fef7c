"""Threads, their runs and branches; the database itself allows one active run per thread."""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import ValidationError

from openassay.errors import IntegrityError, NotFoundError, StorageError, ThreadBusyError
from openassay.models.event import AT_WORK, ENDED, RunStatus, Status
from openassay.models.plan import Mode
from openassay.models.spend import MICRO
from openassay.models.thread import Branch, Cursor, ResearchOptions, Run, StopRequest, Thread, ThreadSummary
from openassay.storage.database import (
    ALL_TABLES,
    BRANCHES,
    DELETED,
    RUNS,
    THREADS,
    ConstraintError,
    run_in_thread,
    timestamp,
    utc_now,
)
from openassay.storage.documents import is_sweep_due, sweep_documents
from openassay.storage.rows import ALTERATION_HELP, Row, Rows, Writer

_log = logging.getLogger("openassay")
_BATCH = 500  # runs in one statement
_NOT_RESTORED = "NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = deleted.run)"
_RUNS = "SELECT id FROM runs WHERE thread = ? ORDER BY started, id"


def run_ids(rows: Rows, thread: str) -> list[str]:
    with rows.database.connection() as connection:
        return [str(row["id"]) for row in connection.execute(_RUNS, (thread,)).fetchall()]


def delete_thread(rows: Rows, thread: str) -> bool:
    """Delete a thread, even one whose rows are damaged: only names are read. Returns whether there was one.

    Its spending stays in the ledger. That its runs were deleted is recorded, so that other machines that have journals
    of them can tell them from runs of a lost database."""
    with rows.database.transaction() as connection:
        rows.heads.lock_heads(connection, [f"thread:{thread}"])
        runs = run_ids(rows, thread)
        owners = [*(("run", run) for run in runs), ("thread", thread)]
        scopes = [f"{scope}:{owner}" for scope, owner in owners]
        rows.heads.lock_heads(connection, scopes)
        count = 0
        for scope, owner in owners:
            for table in reversed([table for table in ALL_TABLES if table.scope == scope]):  # referenced rows go last
                sql = f"DELETE FROM {table.name} WHERE {table.owner} = ?"  # noqa: S608  # names of ours
                count += connection.execute(sql, (owner,)).rowcount
        count += rows.heads.drop(connection, scopes)  # so that no sum misses them
        sweep_documents(rows, connection)
        with rows.open_writer("") as writer:
            for run in runs:
                writer.insert(DELETED, {"run": run, "time": timestamp(utc_now())}, on_conflict="keep")
    return count > 0


def select_deleted_runs(rows: Rows, runs: Collection[str]) -> set[str]:
    """Return those of the runs that were deleted with their thread, and not restored since."""
    found, ids = set[str](), sorted(runs)
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        rest = f"WHERE run IN ({', '.join('?' for _ in batch)}) AND {_NOT_RESTORED}"
        found |= {row["run"] for row in rows.read_lenient(DELETED, rest, batch)[0]}
    return found


_NEVER = datetime.fromtimestamp(0, UTC)
_LAST = "(SELECT status FROM runs WHERE thread = threads.id ORDER BY rowid DESC LIMIT 1)"
_ORDER = "ORDER BY updated DESC, id DESC LIMIT ?"
# Only of the threads of a page: a server has many more.
_LAST_RUNS = "WHERE rowid IN (SELECT max(rowid) FROM runs WHERE thread IN {page} GROUP BY thread)"
_TURNS = "SELECT thread, count(*) AS n FROM runs WHERE thread IN {page} GROUP BY thread"
_COSTS = """
SELECT runs.thread AS thread, sum(calls.micros) AS micros FROM runs JOIN calls ON calls.run = runs.id
WHERE runs.thread IN {page} AND calls.state IN ('settled', 'lost') AND calls.micros > 0 GROUP BY runs.thread
"""
# One statement, so that both are counted at the same moment even if a thread is added meanwhile.
_COUNT_THREADS = """
SELECT (SELECT count(*) FROM threads) AS kept,
    (SELECT count(*) FROM heads WHERE scope LIKE 'thread:%' AND members > 0) AS known
"""
_COUNT_ORPHANS = """
SELECT count(*) AS runs FROM accounts JOIN runs ON runs.id = accounts.run
WHERE accounts.owner = ? AND NOT EXISTS (SELECT 1 FROM threads WHERE threads.id = runs.thread)
"""
_IDLE = """
SELECT id FROM threads WHERE updated < ?
AND NOT EXISTS (SELECT 1 FROM runs WHERE thread = threads.id AND status IN ('queued', 'running', 'waiting'))
ORDER BY updated, id LIMIT ?
"""


class ThreadFilter(NamedTuple):
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
        joined = " AND ".join(filter(None, conditions))
        return f"WHERE {joined} " if joined else ""

    @property
    def values(self) -> list[object]:
        moment = timestamp(self.after.updated) if self.after else ""
        end = [moment, moment, self.after.id] if self.after else []
        whose = [] if self.owner is None else [self.owner]
        return [*(status.value for status in self.statuses), *whose, *end, self.limit]


def load_overview(rows: Rows, filter: ThreadFilter) -> list[ThreadSummary]:
    """Summarise threads in a handful of statements, however many there are.

    Threads and their last runs are checked as they are read; turns and costs are counted. Damaged threads are marked,
    and those whose time cannot be read come last."""
    if filter.owner is None:
        check_thread_count(rows)
    else:
        with rows.database.connection() as connection:
            lost = int(connection.execute(_COUNT_ORPHANS, (filter.owner,)).fetchone()["runs"])
        if lost:  # where they are missing from is for the log alone
            _log.error("%s: %d runs of %s belong to threads that are gone", rows.database.name, lost, filter.owner)
            raise IntegrityError("one of your threads is missing, though nobody has deleted it", help=ALTERATION_HELP)
    where, values = filter.where, filter.values
    threads, unreadable = rows.read_lenient(THREADS, where + _ORDER, values)
    page = f"(SELECT id FROM threads {where}{_ORDER})"  # noqa: S608  # marks alone
    with rows.database.connection() as connection:
        counted = connection.execute(_TURNS.format(page=page), values).fetchall()
        paid = connection.execute(_COSTS.format(page=page), values).fetchall()
    turns = {row["thread"]: int(row["n"]) for row in counted}
    costs = {row["thread"]: int(row["micros"]) / MICRO for row in paid}
    found, damaged_runs = rows.read_lenient(RUNS, _LAST_RUNS.format(page=page), values)
    branches, damaged_branches = rows.read_lenient(BRANCHES, f"WHERE thread IN {page}", values)
    runs = {row["thread"]: row for row in found}
    parents = {row["thread"]: row["parent"] for row in branches}
    damaged = {row["thread"] for row in (*damaged_runs, *damaged_branches)}
    summaries = []
    for row in threads:
        run = runs.get(row["id"])
        summary = ThreadSummary(
            id=row["id"],
            title=row["title"],
            created=row["created"],
            updated=row["updated"],
            status=run["status"] if run else None,
            question=run["question"] if run else "",
            turns=turns.get(row["id"], 0),
            usd=costs.get(row["id"], 0.0),
            parent=parents.get(row["id"]),
            owner=row["owner"],
            damaged=row["id"] in damaged,
        )
        summaries.append(summary)
    for row in unreadable:
        summaries.append(ThreadSummary(id=str(row["id"]), title="", created=_NEVER, updated=_NEVER, damaged=True))
    return summaries


def check_thread_count(rows: Rows) -> None:
    """Raise IntegrityError if the row of a thread is missing, which a list would not show."""
    with rows.database.connection() as connection:
        found = connection.execute(_COUNT_THREADS).fetchone()
    if found["kept"] != found["known"]:
        what = f"{found['kept']} threads are there and {found['known']} were written"
        raise IntegrityError(f"{rows.database.name}: {what}", help=ALTERATION_HELP)


_IS_THERE = "SELECT 1 FROM threads WHERE id = ?"
_WAS_THERE = "SELECT 1 FROM heads WHERE scope = ? AND members > 0"


class SqlThreads:
    """Threads with their runs and branches. `begin` raises ThreadBusyError if another run is active."""

    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def create(self, thread: Thread) -> None:
        await asyncio.to_thread(self._create, thread)

    async def get(self, id: str, *, owner: str | None = None) -> Thread:
        """Return a thread; for an owner, others' are not there."""
        return await asyncio.to_thread(self._get, id, owner)

    @run_in_thread
    def list_recent(self, *, limit: int) -> list[Thread]:
        """List the threads, those that changed last first."""
        rest = "ORDER BY updated DESC, created DESC, id LIMIT ?"
        rows, _ = self._rows.read_lenient(THREADS, rest, (max(limit, 0),))
        check_thread_count(self._rows)
        return [Thread.model_validate(row) for row in rows]

    @run_in_thread
    def overview(
        self,
        *,
        limit: int,
        statuses: Collection[RunStatus] = (),
        owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:
        """Summarise threads, the last changed first; `statuses` are those of a thread's last run."""
        return load_overview(self._rows, ThreadFilter(max(limit, 0), statuses, owner, after))

    @run_in_thread
    def list_idle(self, since: datetime, *, limit: int) -> list[str]:
        """List the threads, oldest first, that have no active run and on which nothing happened since then."""
        with self._rows.database.connection() as connection:
            found = connection.execute(_IDLE, (timestamp(since), max(limit, 0))).fetchall()
        return [str(row["id"]) for row in found]

    async def rename(self, id: str, title: str) -> None:
        await asyncio.to_thread(self._change, id, {"title": title})

    @run_in_thread
    def delete(self, id: str) -> None:
        """Delete a thread, even a damaged one, with all that is of it and the documents no other thread uses."""
        if not delete_thread(self._rows, id):
            raise no_thread(id)
        self._rows.database.scrub()

    @run_in_thread
    def delete_orphan_documents(self) -> None:
        """Delete documents that stayed when their thread went, since a run might just have read them."""
        if is_sweep_due(self._rows):  # looking through all documents takes a while
            with self._rows.database.transaction() as connection:
                sweep_documents(self._rows, connection)

    async def run_ids(self, thread: str) -> list[str]:
        return await asyncio.to_thread(run_ids, self._rows, thread)

    async def find_deleted_runs(self, runs: Collection[str]) -> set[str]:
        return await asyncio.to_thread(select_deleted_runs, self._rows, runs)

    @run_in_thread
    def folders(self) -> set[str]:
        """Return the documents of people's own that any run was asked on."""
        runs = _to_runs(self._rows.read_lenient(RUNS)[0])
        return {path for run in runs for path in run.options.docs}

    async def begin(self, run: Run) -> None:
        await asyncio.to_thread(self._begin, run)

    @run_in_thread
    def update(
        self,
        run: str,
        *,
        status: RunStatus | None = None,
        stage: Status | None = None,
        error: str | None = None,
    ) -> None:
        now = timestamp(self._now())

        def changes(before: Row) -> dict[str, object]:
            # A run that is resumed after it had ended has not finished, and the error that ended it is cleared.
            resumes = status is not None and status not in ENDED
            old_error = None if resumes and before["finished"] else before["error"]
            finished = None if resumes else before["finished"] or (now if status in ENDED else None)
            return {
                "status": (status or RunStatus(before["status"])).value,
                "stage": (stage or Status(before["stage"])).value,
                "error": old_error if error is None else error,
                "finished": finished,
                "stop": before["stop"] if status is None or keeps_stop_request(before["status"], status) else "",
            }

        self._change_run(run, changes)

    async def run(self, id: str) -> Run:
        return await asyncio.to_thread(self._run, id)

    @run_in_thread
    def runs(self, thread: str) -> list[Run]:
        """List the runs of a thread, oldest first."""
        self._get(thread)
        return [_to_run(row) for row in self._rows.read(RUNS, "WHERE thread = ? ORDER BY rowid", (thread,))]

    @run_in_thread
    def list_active(self, *statuses: RunStatus) -> list[Run]:
        """List the runs that have not ended, in any process; oldest first. 2,000 take 0.2 s."""
        wanted = f"AND status IN ({', '.join('?' for _ in statuses)})" if statuses else ""
        rest = f"WHERE status IN ('queued', 'running', 'waiting') {wanted} ORDER BY started, rowid"
        return list(_to_runs(self._rows.read_lenient(RUNS, rest, statuses)[0]))

    async def set_mode(self, thread: str, mode: Mode) -> None:
        await asyncio.to_thread(self._change, thread, {"mode": mode})

    async def set_options(self, run: str, options: ResearchOptions) -> None:
        await asyncio.to_thread(self._change_run, run, {"options": json.dumps(options.plain())})

    async def request_stop(self, run: str, stop: StopRequest) -> None:
        await asyncio.to_thread(self._change_run, run, {"stop": stop})

    @run_in_thread
    def get_stop_request(self, run: str) -> StopRequest:
        """Return what any process has asked of a run."""
        row = self._rows.find(RUNS, run)
        if row is None:
            raise no_run(run)
        return StopRequest(row["stop"])

    async def add_branch(self, branch: Branch) -> None:
        await asyncio.to_thread(self._add_branch, branch)

    @run_in_thread
    def fork(
        self, thread: Thread, run: Run, branch: Branch | None = None, copy: Callable[[], None] = lambda: None
    ) -> None:
        """Create a thread with its first run, its branch and what `copy` puts beside them: all or nothing."""
        with self._rows.database.transaction():
            self._create(thread)
            self._begin(run)
            if branch:
                self._add_branch(branch)
            copy()

    @run_in_thread
    def branch(self, thread: str) -> Branch | None:
        row = self._rows.find(BRANCHES, thread)
        return _to_branch(row) if row else None

    @run_in_thread
    def branches(self, parent: str) -> list[Branch]:
        """List the threads that began as copies of this one, oldest first."""
        return [
            _to_branch(row) for row in self._rows.read(BRANCHES, "WHERE parent = ? ORDER BY created, thread", (parent,))
        ]

    def _create(self, thread: Thread) -> None:
        values = {
            **dict(thread),
            "created": timestamp(thread.created),
            "updated": timestamp(thread.updated),
            "mode": thread.mode.value if thread.mode else None,
        }
        with self._rows.open_writer("thread", thread.id) as writer:
            try:
                writer.insert(THREADS, values)
            except ConstraintError as error:
                raise duplicate_id_error("thread", thread.id) from error

    def _get(self, id: str, owner: str | None = None) -> Thread:
        if owner is not None:
            rows = self._rows.read(THREADS, "WHERE id = ? AND owner = ?", (id, owner))
            if not rows:
                raise no_thread(id)  # the same as for one that never was: an id alone reveals nothing
            return Thread.model_validate(rows[0])
        if (row := self._rows.find(THREADS, id)) is not None:
            return Thread.model_validate(row)
        with self._rows.database.connection() as connection:
            if connection.execute(_WAS_THERE, (f"thread:{id}",)).fetchone():
                raise IntegrityError(f"{self._rows.database.name}: row threads {id} is missing", help=ALTERATION_HELP)
        raise no_thread(id)

    def _change(self, id: str, changes: dict[str, object]) -> None:
        with self._rows.open_writer("thread", id) as writer:
            if writer.update(THREADS, (id,), {**changes, "updated": timestamp(self._now())}) is None:
                raise no_thread(id)

    def _begin(self, run: Run) -> None:
        values = {
            **run.plain(),
            "started": timestamp(run.started),
            "finished": timestamp(run.finished) if run.finished else None,
            "options": json.dumps(run.plain()["options"]),
            "stop": "",
        }
        with open_thread_writer(self._rows, run.thread) as writer:
            self._rows.heads.lock_common(writer.connection)
            try:
                writer.insert(RUNS, values)
            except ConstraintError as error:
                if error.constraint == "foreign":
                    raise no_thread(run.thread) from error
                if error.constraint == "primary":
                    raise duplicate_id_error("run", run.id) from error
                raise active_run_error(run.id, run.thread) from error
            self._touch(writer, run.thread)

    def _change_run(self, id: str, changes: dict[str, object] | Callable[[Row], dict[str, object]]) -> None:
        with self._rows.open_writer("thread", self._run(id).thread) as writer:
            before = writer.find(RUNS, id)
            if before is None:
                raise no_run(id)
            if before["status"] in ENDED:  # it may begin again
                self._rows.heads.lock_common(writer.connection)
            try:
                writer.update(RUNS, (id,), changes(before) if callable(changes) else changes)
            except ConstraintError as error:
                raise active_run_error(id, before["thread"]) from error
            self._touch(writer, before["thread"])

    def _touch(self, writer: Writer, thread: str) -> None:
        writer.update(THREADS, (thread,), {"updated": timestamp(self._now())})

    def _run(self, id: str) -> Run:
        row = self._rows.find(RUNS, id)
        if row is None:
            raise no_run(id)
        return _to_run(row)

    def _add_branch(self, branch: Branch) -> None:
        values = {
            **dict(branch),
            "changes": json.dumps(branch.plain()["changes"]),
            "created": timestamp(branch.created),
        }
        with self._rows.open_writer("thread", branch.thread) as writer:
            try:
                writer.insert(BRANCHES, values)
            except ConstraintError as error:
                raise no_thread(branch.thread) from error


def keeps_stop_request(before: str, status: RunStatus) -> bool:
    """Return whether a stop request survives a change of status: it may have come while the process was starting."""
    return status is RunStatus.RUNNING and before in AT_WORK


@contextmanager
def open_thread_writer(rows: Rows, thread: str) -> Iterator[Writer]:
    """Open a writer on a thread that exists; NotFoundError for what a stopped run still writes when its thread has been
    deleted."""
    with rows.open_writer("thread", thread) as writer:
        if writer.connection.execute(_IS_THERE, (thread,)).fetchone() is None:
            raise no_thread(thread)
        yield writer


def no_thread(id: str) -> NotFoundError:
    return NotFoundError(f"no thread {id}", help="Look at the list of threads for its id.", thread=id)


def no_run(id: str) -> NotFoundError:
    return NotFoundError(f"no run {id}", help="Look at the runs of its thread for its id.", run=id)


def duplicate_id_error(noun: str, id: str) -> StorageError:
    return StorageError(f"there is a {noun} {id} already", help="Choose an id that was not used before.")


def active_run_error(run: str, thread: str) -> ThreadBusyError:
    return ThreadBusyError(
        f"run {run} cannot start: another run is active on its thread",
        help=f"Wait for it to end; if it was stopped or waits for an answer: openassay resume {thread}",
        retryable=True,
        run=run,
    )


def _to_run(row: Row) -> Run:
    try:
        options = ResearchOptions.model_validate_json(row["options"])
    except ValidationError as error:
        problem = error.errors()[0]["msg"].lower()
        message = f"what was chosen for run {row['id']} cannot be read: {problem}"
        raise IntegrityError(message, help="Ask again on a new thread.") from error
    kept = {name: value for name, value in row.items() if name != "stop"}
    return Run.model_validate({**kept, "options": options})


def _to_runs(rows: Iterable[Row]) -> Iterator[Run]:
    """Yield the runs that can be read."""
    for row in rows:
        with suppress(IntegrityError):
            yield _to_run(row)


def _to_branch(row: Row) -> Branch:
    return Branch.model_validate({**row, "changes": json.loads(row["changes"])})
