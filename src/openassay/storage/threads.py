"""Threads, their runs and branches; the database itself allows one active run per thread."""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from pydantic_core import to_jsonable_python

from openassay.errors import IntegrityError, NotFoundError, OpenAssayError, StorageError, ThreadBusyError
from openassay.models.event import AT_WORK, ENDED, RunStatus, Status
from openassay.models.plan import Mode
from openassay.models.spend import MICRO
from openassay.models.thread import Branch, Cursor, Run, StopRequest, Thread, ThreadSummary
from openassay.storage.database import (
    ALL_TABLES,
    BRANCHES,
    DELETED,
    RUNS,
    THREADS,
    Connection,
    ConstraintError,
    timestamp,
    utc_now,
)
from openassay.storage.documents import is_sweep_due, sweep_documents
from openassay.storage.rows import ALTERATION_HELP, Row, Rows, Writer

# Deleting a thread for good, also one whose rows are damaged: nothing here is read but names.
#
# Other machines may have journals of its runs. That a run was deleted is kept, so that they can tell it from one whose
# database was lost.

_BATCH = 500  # runs asked for at a time
_NOT_RESTORED = "NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = deleted.run)"
_RUNS = "SELECT id FROM runs WHERE thread = ? ORDER BY started, id"


def run_ids(rows: Rows, thread: str) -> list[str]:
    with rows.database.connection() as connection:
        return [str(row["id"]) for row in connection.execute(_RUNS, (thread,)).fetchall()]


def delete_thread(rows: Rows, thread: str) -> bool:
    """What was said, found and decided; whether there was anything of it. What was spent stays in the books."""
    with rows.database.transaction() as connection:
        rows.heads.lock_heads(connection, [f"thread:{thread}"])
        runs = run_ids(rows, thread)
        owners = [*(("run", run) for run in runs), ("thread", thread)]
        scopes = [":".join(owner) for owner in owners]
        rows.heads.lock_heads(connection, scopes)
        count = sum(_delete_rows(connection, *owner) for owner in owners)
        count += rows.heads.drop(connection, scopes)  # no sum is left that they could be missed in
        sweep_documents(rows, connection)
        with rows.open_writer("") as writer:
            for run in runs:
                writer.insert(DELETED, {"run": run, "time": timestamp(utc_now())}, on_conflict="keep")
    return count > 0


def select_deleted_runs(rows: Rows, runs: Collection[str]) -> set[str]:
    """Those of the runs that went with their thread, and were not restored since."""
    found, asked = set[str](), sorted(runs)
    for start in range(0, len(asked), _BATCH):
        some = asked[start : start + _BATCH]
        rest = f"WHERE run IN ({', '.join('?' for _ in some)}) AND {_NOT_RESTORED}"
        found |= {row["run"] for row in rows.read_lenient(DELETED, rest, some)[0]}
    return found


def _delete_rows(connection: Connection, scope: str, owner: str) -> int:
    """All rows that belong together."""
    count = 0
    for table in reversed([table for table in ALL_TABLES if table.scope == scope]):  # what others refer to goes last
        sql = f"DELETE FROM {table.name} WHERE {table.owner} = ?"  # noqa: S608  # names of ours
        count += connection.execute(sql, (owner,)).rowcount
    return count


# Many threads at a glance: a handful of statements, however many there are.

_log = logging.getLogger("openassay")
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
        told = " AND ".join(condition for condition in conditions if condition)
        return f"WHERE {told} " if told else ""

    @property
    def values(self) -> list[object]:
        moment = timestamp(self.after.updated) if self.after else ""
        end = [moment, moment, self.after.id] if self.after else []
        whose = [] if self.owner is None else [self.owner]
        return [*(status.value for status in self.statuses), *whose, *end, self.limit]


def load_overview(rows: Rows, asked: ThreadFilter) -> list[ThreadSummary]:
    """Threads and their last runs are checked as they are read; turns and costs are counted. Threads that are damaged
    are said to be; those of which not even the time is known come last."""
    if asked.owner is None:
        check_thread_count(rows)
    else:
        _check_owner(rows, asked.owner)
    those, values = asked.where, asked.values
    threads, unreadable = rows.read_lenient(THREADS, those + _ORDER, values)
    page = f"(SELECT id FROM threads {those}{_ORDER})"  # noqa: S608  # marks alone
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
    return [
        ThreadSummary(
            id=row["id"], title=row["title"], created=row["created"], updated=row["updated"],
            status=runs[row["id"]]["status"] if row["id"] in runs else None,
            question=runs[row["id"]]["question"] if row["id"] in runs else "",
            turns=turns.get(row["id"], 0), usd=costs.get(row["id"], 0.0), parent=parents.get(row["id"]),
            owner=row["owner"], damaged=row["id"] in damaged,
        )
        for row in threads
    ] + [_placeholder_summary(row) for row in unreadable]  # fmt: skip


def _placeholder_summary(row: Any) -> ThreadSummary:
    return ThreadSummary(id=str(row["id"]), title="", created=_NEVER, updated=_NEVER, damaged=True)


def check_thread_count(rows: Rows) -> None:
    """A thread whose row is gone would otherwise not be missed in a list."""
    with rows.database.connection() as connection:
        found = connection.execute(_COUNT_THREADS).fetchone()
    if found["kept"] != found["known"]:
        what = f"{found['kept']} threads are there and {found['known']} were written"
        raise IntegrityError(f"{rows.database.name}: {what}", help=ALTERATION_HELP)


def _check_owner(rows: Rows, owner: str) -> None:
    """What is missing of others is none of theirs; where it is missing from stands in the log alone."""
    with rows.database.connection() as connection:
        lost = int(connection.execute(_COUNT_ORPHANS, (owner,)).fetchone()["runs"])
    if lost:
        _log.error("%s: %d runs of %s belong to threads that are gone", rows.database.name, lost, owner)
        raise IntegrityError("a thread of yours is not there any more, and nobody has deleted it", help=ALTERATION_HELP)


def find_idle_threads(rows: Rows, since: datetime, limit: int) -> list[str]:
    with rows.database.connection() as connection:
        found = connection.execute(_IDLE, (timestamp(since), limit)).fetchall()
    return [str(row["id"]) for row in found]


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

    async def list_recent(self, *, limit: int) -> list[Thread]:
        """The one that something happened on last comes first."""
        return await asyncio.to_thread(self._recent, max(limit, 0))

    async def overview(
        self, *, limit: int, statuses: Collection[RunStatus] = (), owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:  # fmt: skip
        return await asyncio.to_thread(load_overview, self._rows, ThreadFilter(max(limit, 0), statuses, owner, after))

    async def list_idle(self, since: datetime, *, limit: int) -> list[str]:
        return await asyncio.to_thread(find_idle_threads, self._rows, since, max(limit, 0))

    async def rename(self, id: str, title: str) -> None:
        await asyncio.to_thread(self._change, id, {"title": title})

    async def delete(self, id: str) -> None:
        await asyncio.to_thread(self._delete, id)

    async def delete_orphan_documents(self) -> None:
        await asyncio.to_thread(self._sweep)

    async def run_ids(self, thread: str) -> list[str]:
        return await asyncio.to_thread(run_ids, self._rows, thread)

    async def find_deleted_runs(self, runs: Collection[str]) -> set[str]:
        return await asyncio.to_thread(select_deleted_runs, self._rows, runs)

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

    async def list_active(self, *statuses: RunStatus) -> list[Run]:
        """Runs that have not ended, whoever works on them; oldest first. 2,000 take 0.2 s."""
        return await asyncio.to_thread(self._active, statuses)

    async def set_mode(self, thread: str, mode: Mode) -> None:
        await asyncio.to_thread(self._change, thread, {"mode": mode})

    async def set_options(self, run: str, options: dict[str, object]) -> None:
        await asyncio.to_thread(self._change_run, run, {"options": json.dumps(to_jsonable_python(options))})

    async def request_stop(self, run: str, stop: StopRequest) -> None:
        await asyncio.to_thread(self._change_run, run, {"stop": stop})

    async def get_stop_request(self, run: str) -> StopRequest:
        """What was asked of a run, by whatever process."""
        return await asyncio.to_thread(self._get_stop, run)

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
        with self._rows.open_writer("thread", thread.id) as writer:
            try:
                writer.insert(THREADS, values)
            except ConstraintError as error:
                raise duplicate_id_error("thread", thread.id) from error

    def _get(self, id: str, owner: str | None = None) -> Thread:
        if owner is not None:
            rows = self._rows.read(THREADS, "WHERE id = ? AND owner = ?", (id, owner))
            if not rows:
                raise no_thread(id)  # the same as for one that never was: an id alone tells nothing
            return Thread.model_validate(rows[0])
        row = self._rows.find(THREADS, id)
        if row is None:
            raise self._lookup_error(id)
        return Thread.model_validate(row)

    def _lookup_error(self, id: str) -> OpenAssayError:
        with self._rows.database.connection() as connection:
            was_there = connection.execute(_WAS_THERE, (f"thread:{id}",)).fetchone()
        name = self._rows.database.name
        return (
            IntegrityError(f"{name}: row threads {id} is missing", help=ALTERATION_HELP) if was_there else no_thread(id)
        )

    def _recent(self, limit: int) -> list[Thread]:
        rows, _ = self._rows.read_lenient(THREADS, "ORDER BY updated DESC, created DESC, id LIMIT ?", (limit,))
        check_thread_count(self._rows)
        return [Thread.model_validate(row) for row in rows]

    def _change(self, id: str, changes: dict[str, object]) -> None:
        with self._rows.open_writer("thread", id) as writer:
            if writer.update(THREADS, (id,), {**changes, "updated": timestamp(self._now())}) is None:
                raise no_thread(id)

    def _sweep(self) -> None:
        if is_sweep_due(self._rows):  # looking through all documents takes a while
            with self._rows.database.transaction() as connection:
                sweep_documents(self._rows, connection)

    def _delete(self, id: str) -> None:
        if not delete_thread(self._rows, id):
            raise no_thread(id)
        self._rows.database.scrub()

    def _folders(self) -> set[str]:
        runs = map(_to_run, self._rows.read_lenient(RUNS)[0])
        return {str(path) for run in runs for path in cast("list[object]", run.options.get("docs", ()))}

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
                raise _insert_error(error, run) from error
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
                "stop": before["stop"] if status is None or keeps_stop_request(before["status"], status) else "",
            }

        self._change_run(run, changes)

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

    def _runs(self, thread: str) -> list[Run]:
        self._get(thread)
        return [_to_run(row) for row in self._rows.read(RUNS, "WHERE thread = ? ORDER BY rowid", (thread,))]

    def _active(self, statuses: Sequence[RunStatus]) -> list[Run]:
        wanted = f"AND status IN ({', '.join('?' for _ in statuses)})" if statuses else ""
        rest = f"WHERE status IN ('queued', 'running', 'waiting') {wanted} ORDER BY started, rowid"
        return [_to_run(row) for row in self._rows.read_lenient(RUNS, rest, statuses)[0]]

    def _get_stop(self, run: str) -> StopRequest:
        row = self._rows.find(RUNS, run)
        if row is None:
            raise no_run(run)
        return StopRequest(row["stop"])

    def _add_branch(self, branch: Branch) -> None:
        values = {
            **dict(branch), "changes": json.dumps(branch.plain()["changes"]), "created": timestamp(branch.created),
        }  # fmt: skip
        with self._rows.open_writer("thread", branch.thread) as writer:
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
        row = self._rows.find(BRANCHES, thread)
        return _to_branch(row) if row else None

    def _branches(self, parent: str) -> list[Branch]:
        return [
            _to_branch(row) for row in self._rows.read(BRANCHES, "WHERE parent = ? ORDER BY created, thread", (parent,))
        ]


def keeps_stop_request(before: str, status: RunStatus) -> bool:
    """Whether a run that was to stop still is: a process that begins with it may have been asked while it started."""
    return status is RunStatus.RUNNING and before in AT_WORK


@contextmanager
def open_thread_writer(rows: Rows, thread: str) -> Iterator[Writer]:
    """As `Rows.writing`, on a thread that is there: what a run that was stopped still wants to write when its thread is
    deleted comes too late."""
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
        f"run {run} has to wait: another run is active on its thread",
        help=f"Wait for it to end; if it was stopped or waits for an answer, go on with: openassay resume {thread}",
        retryable=True,
        run=run,
    )


def _insert_error(error: ConstraintError, run: Run) -> OpenAssayError:
    match error.constraint:
        case "foreign":
            return no_thread(run.thread)
        case "primary":
            return duplicate_id_error("run", run.id)
        case _:
            return active_run_error(run.id, run.thread)


def _to_run(row: Row) -> Run:
    kept = {name: value for name, value in row.items() if name != "stop"}
    return Run.model_validate({**kept, "options": json.loads(row["options"])})


def _to_branch(row: Row) -> Branch:
    return Branch.model_validate({**row, "changes": json.loads(row["changes"])})
