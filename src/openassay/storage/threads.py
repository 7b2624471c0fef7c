"""Threads, their runs and branches, and what people keep with a thread: artifacts and pinned sources."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from pydantic import ValidationError

from openassay.errors import (
    IntegrityError,
    StorageError,
    ThreadBusyError,
    UsageError,
    no_artifact,
    no_run,
    no_thread,
)
from openassay.models.base import utc_now
from openassay.models.event import AT_WORK, ENDED, RunStatus, Status
from openassay.models.plan import Mode
from openassay.models.report import MAX_ARTIFACTS, Artifact, ArtifactDraft
from openassay.models.spend import MICRO
from openassay.models.thread import Branch, Cursor, ResearchOptions, Run, StopRequest, Thread, ThreadSummary
from openassay.storage.database import (
    ALL_TABLES,
    ARTIFACTS,
    BRANCHES,
    DELETED,
    PINS,
    RUNS,
    THREADS,
    ConstraintError,
    run_in_thread,
    timestamp,
)
from openassay.storage.documents import DUE_FOR_SWEEP, GRACE_PERIOD, sweep_documents
from openassay.storage.sealed_rows import ALTERATION_HELP, Row, Rows, RowStore, Writer

_log = logging.getLogger("openassay")
_BATCH = 500  # runs in one statement
_NOT_RESTORED = "NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = deleted.run)"
_RUNS = "SELECT id FROM runs WHERE thread = ? ORDER BY started, id"


def run_ids(rows: Rows, thread: str) -> list[str]:
    return [str(row["id"]) for row in rows.database.query(_RUNS, (thread,))]


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
                writer.insert(DELETED, {"run": run, "time": utc_now()}, on_conflict="keep")
    return count > 0


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


def check_thread_count(rows: Rows) -> None:
    """Raise IntegrityError if the row of a thread is missing, which a list would not show."""
    found = rows.database.query_one(_COUNT_THREADS)
    if found["kept"] != found["known"]:
        what = f"{found['kept']} threads are there and {found['known']} were written"
        raise IntegrityError(f"{rows.database.name}: {what}", help=ALTERATION_HELP)


def check_owner_threads(rows: Rows, owner: str) -> None:
    """Raise IntegrityError if the row of a thread of this user is missing."""
    lost = int(rows.database.query_one(_COUNT_ORPHANS, (owner,))["runs"])
    if lost:  # where they are missing from is for the log alone
        _log.error("%s: %d runs of %s belong to threads that are gone", rows.database.name, lost, owner)
        raise IntegrityError("one of your threads is missing, though nobody has deleted it", help=ALTERATION_HELP)


_IS_THERE = "SELECT 1 FROM threads WHERE id = ?"
_WAS_THERE = "SELECT 1 FROM heads WHERE scope = ? AND members > 0"


class SqlThreads(RowStore):
    """Threads with their runs and branches. `begin` raises ThreadBusyError if another run is active."""

    @run_in_thread
    def list_recent(self, *, limit: int) -> list[Thread]:
        rest = "ORDER BY updated DESC, created DESC, id LIMIT ?"
        rows, _ = self._rows.read_lenient(THREADS, rest, (max(limit, 0),))
        check_thread_count(self._rows)
        return [Thread.model_validate(row) for row in rows]

    @run_in_thread
    def overview(
        self, *, limit: int, statuses: Collection[RunStatus] = (), owner: str | None = None, after: Cursor | None = None
    ) -> list[ThreadSummary]:
        """Summarise threads, the last changed first, in a handful of statements, however many there are. `statuses` are
        those of a thread's last run.

        Threads and their last runs are checked as they are read; turns and costs are counted. Damaged threads are
        marked, and those whose time cannot be read come last."""
        rows = self._rows
        if owner is None:
            check_thread_count(rows)
        else:
            check_owner_threads(rows, owner)
        conditions, values = list[str](), list[object](statuses)
        if statuses:
            conditions.append(f"{_LAST} IN ({', '.join('?' for _ in statuses)})")
        if owner is not None:
            conditions.append("owner = ?")
            values.append(owner)
        if after:
            conditions.append("(updated, id) < (?, ?)")
            values += [timestamp(after.updated), after.id]
        values.append(max(limit, 0))
        where = f"WHERE {' AND '.join(conditions)} {_ORDER}" if conditions else _ORDER
        threads, unreadable = rows.read_lenient(THREADS, where, values)
        page = f"(SELECT id FROM threads {where})"  # noqa: S608  # marks alone
        counted = rows.database.query(_TURNS.format(page=page), values)
        paid = rows.database.query(_COSTS.format(page=page), values)
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
                **{name: value for name, value in row.items() if name != "mode"},
                status=run["status"] if run else None,
                question=run["question"] if run else "",
                turns=turns.get(row["id"], 0),
                usd=costs.get(row["id"], 0.0),
                parent=parents.get(row["id"]),
                damaged=row["id"] in damaged,
            )
            summaries.append(summary)
        for row in unreadable:
            summaries.append(ThreadSummary(id=str(row["id"]), title="", created=_NEVER, updated=_NEVER, damaged=True))
        return summaries

    @run_in_thread
    def list_idle(self, since: datetime, *, limit: int) -> list[str]:
        """List the threads, oldest first, that have no active run and on which nothing happened since then."""
        found = self._rows.database.query(_IDLE, (timestamp(since), max(limit, 0)))
        return [str(row["id"]) for row in found]

    @run_in_thread
    def rename(self, id: str, title: str) -> None:
        self._change(id, {"title": title})

    @run_in_thread
    def delete(self, id: str) -> None:
        """Delete a thread, even a damaged one, with all that is of it and the documents no other thread uses."""
        if not delete_thread(self._rows, id):
            raise no_thread(id)
        self._rows.database.scrub()

    @run_in_thread
    def delete_orphan_documents(self) -> None:
        """Delete documents that stayed when their thread went, since a run might just have read them."""
        long_ago = timestamp(utc_now() - GRACE_PERIOD)
        if self._rows.database.query_one(DUE_FOR_SWEEP, (long_ago,)):  # looking through all documents takes a while
            with self._rows.database.transaction() as connection:
                sweep_documents(self._rows, connection)

    @run_in_thread
    def run_ids(self, thread: str) -> list[str]:
        return run_ids(self._rows, thread)

    @run_in_thread
    def find_deleted_runs(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs that were deleted with their thread, and not restored since."""
        found, ids = set[str](), sorted(runs)
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            rest = f"WHERE run IN ({', '.join('?' for _ in batch)}) AND {_NOT_RESTORED}"
            found |= {row["run"] for row in self._rows.read_lenient(DELETED, rest, batch)[0]}
        return found

    @run_in_thread
    def folders(self) -> set[str]:
        """Return the documents of people's own that any run was asked on."""
        runs = _to_runs(self._rows.read_lenient(RUNS)[0])
        return {path for run in runs for path in run.options.docs}

    @run_in_thread
    def update(
        self, run: str, *, status: RunStatus | None = None, stage: Status | None = None, error: str | None = None
    ) -> None:
        now = timestamp(self._now())

        def changes(before: Row) -> dict[str, object]:
            # A run that is resumed after it had ended has not finished, and the error that ended it is cleared.
            resumes = status is not None and status not in ENDED
            # It may have been asked to stop while its process was starting.
            keeps_stop = status is None or (status is RunStatus.RUNNING and before["status"] in AT_WORK)
            old_error = None if resumes and before["finished"] else before["error"]
            finished = None if resumes else before["finished"] or (now if status in ENDED else None)
            return {
                "status": status or before["status"],
                "stage": stage or before["stage"],
                "error": old_error if error is None else error,
                "finished": finished,
                "stop": before["stop"] if keeps_stop else "",
            }

        self._change_run(run, changes)

    @run_in_thread
    def runs(self, thread: str) -> list[Run]:
        self._get(thread)
        return [_to_run(row) for row in self._rows.read(RUNS, "WHERE thread = ? ORDER BY rowid", (thread,))]

    @run_in_thread
    def list_active(self, *statuses: RunStatus) -> list[Run]:
        """List the runs that have not ended, in any process; oldest first. 2,000 take 0.2 s."""
        wanted = f"AND status IN ({', '.join('?' for _ in statuses)})" if statuses else ""
        rest = f"WHERE status IN ('queued', 'running', 'waiting') {wanted} ORDER BY started, rowid"
        return list(_to_runs(self._rows.read_lenient(RUNS, rest, statuses)[0]))

    @run_in_thread
    def set_mode(self, thread: str, mode: Mode) -> None:
        self._change(thread, {"mode": mode})

    @run_in_thread
    def set_options(self, run: str, options: ResearchOptions) -> None:
        self._change_run(run, {"options": json.dumps(options.plain())})

    @run_in_thread
    def request_stop(self, run: str, stop: StopRequest) -> None:
        self._change_run(run, {"stop": stop})

    @run_in_thread
    def get_stop_request(self, run: str) -> StopRequest:
        return StopRequest(self._find_run(run)["stop"])

    @run_in_thread
    def create_with_run(
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
        rows = self._rows.read(BRANCHES, "WHERE parent = ? ORDER BY created, thread", (parent,))
        return [_to_branch(row) for row in rows]

    def _create(self, thread: Thread) -> None:
        with self._rows.open_writer("thread", thread.id) as writer:
            try:
                writer.insert(THREADS, dict(thread))
            except ConstraintError as error:
                raise duplicate_id_error("thread", thread.id) from error

    def _get(self, id: str, *, owner: str | None = None) -> Thread:
        if owner is not None:
            rows = self._rows.read(THREADS, "WHERE id = ? AND owner = ?", (id, owner))
            if not rows:
                raise no_thread(id)  # the same as for one that never was: an id alone reveals nothing
            return Thread.model_validate(rows[0])
        if (row := self._rows.find(THREADS, id)) is not None:
            return Thread.model_validate(row)
        if self._rows.database.query_one(_WAS_THERE, (f"thread:{id}",)):
            raise IntegrityError(f"{self._rows.database.name}: row threads {id} is missing", help=ALTERATION_HELP)
        raise no_thread(id)

    def _change(self, id: str, changes: dict[str, object]) -> None:
        with self._rows.open_writer("thread", id) as writer:
            if writer.update(THREADS, (id,), {**changes, "updated": self._now()}) is None:
                raise no_thread(id)

    def _begin(self, run: Run) -> None:
        values = {**dict(run), "options": json.dumps(run.plain()["options"]), "stop": ""}
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
        with self._rows.open_writer("thread", self._find_run(id)["thread"]) as writer:
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
        writer.update(THREADS, (thread,), {"updated": self._now()})

    def _find_run(self, id: str) -> Row:
        row = self._rows.find(RUNS, id)
        if row is None:
            raise no_run(id)
        return row

    def _run(self, id: str) -> Run:
        return _to_run(self._find_run(id))

    def _add_branch(self, branch: Branch) -> None:
        values = {**dict(branch), "changes": json.dumps(branch.plain()["changes"])}
        with self._rows.open_writer("thread", branch.thread) as writer:
            try:
                writer.insert(BRANCHES, values)
            except ConstraintError as error:
                raise no_thread(branch.thread) from error

    create = run_in_thread(_create)
    get = run_in_thread(_get)
    begin = run_in_thread(_begin)
    run = run_in_thread(_run)
    add_branch = run_in_thread(_add_branch)


@contextmanager
def open_thread_writer(rows: Rows, thread: str) -> Iterator[Writer]:
    """Open a writer on a thread that exists; NotFoundError for what a stopped run still writes when its thread has been
    deleted."""
    with rows.open_writer("thread", thread) as writer:
        if writer.connection.execute(_IS_THERE, (thread,)).fetchone() is None:
            raise no_thread(thread)
        yield writer


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


MAX_VERSIONS = 200  # of one artifact that people have made: none of them is ever dropped unasked
MAX_BYTES = 50_000_000  # of one thread, all versions together

# The last version of each, and the last that OpenAssay made.
_LATEST_VERSIONS = """
WHERE thread = ? AND version IN (
    (SELECT max(version) FROM artifacts AS a WHERE a.thread = artifacts.thread AND a.name = artifacts.name),
    (SELECT max(version) FROM artifacts AS a WHERE a.thread = artifacts.thread AND a.name = artifacts.name
        AND a.author = '')
) ORDER BY name, version
"""
_SIZES = """
SELECT name, count(*) AS n, sum(length(content)) AS size FROM artifacts WHERE thread = ? GROUP BY name
"""
_ALL_VERSIONS = "WHERE thread = ? AND name = ? ORDER BY version"


class SqlArtifacts(RowStore):
    @run_in_thread
    def latest(self, thread: str) -> list[Artifact]:
        """List the last version of each, and the last that OpenAssay made of it."""
        return [Artifact.model_validate(row) for row in self._rows.read(ARTIFACTS, _LATEST_VERSIONS, (thread,))]

    @run_in_thread
    def versions(self, thread: str, name: str) -> list[Artifact]:
        return [Artifact.model_validate(row) for row in self._rows.read(ARTIFACTS, _ALL_VERSIONS, (thread, name))]

    @run_in_thread
    def keep(self, thread: str, draft: ArtifactDraft, base: ArtifactDraft | None, *, seen: int) -> Artifact | None:
        """Store a new version. `base` is what OpenAssay makes of it now, which is stored too if it was not before.
        `seen` is the last version stored when the author looked, 0 for none; returns None where there is another."""
        with open_thread_writer(self._rows, thread) as writer:
            versions = writer.read(ARTIFACTS, _ALL_VERSIONS, (thread, draft.name))
            stored = [Artifact.model_validate(row) for row in versions]
            last = stored[-1].version if stored else 0
            if last != seen:
                return None
            rows = writer.connection.execute(_SIZES, (thread,)).fetchall()
            sizes = {str(row["name"]): int(row["size"]) for row in rows}
            if draft.name not in sizes and len(sizes) >= MAX_ARTIFACTS:
                raise UsageError(
                    f"this thread has {MAX_ARTIFACTS} artifacts, which is the limit", help="Delete one of them."
                )
            if sum(bool(version.author) for version in stored) >= MAX_VERSIONS:
                raise UsageError(
                    f"you have made {MAX_VERSIONS} versions of this, which is the limit",
                    help="Add it under another name, or delete it to start again from what OpenAssay makes of it.",
                )
            if sum(sizes.values()) + len(draft.content) > MAX_BYTES:
                raise UsageError(
                    f"the artifacts of this thread would take more than {MAX_BYTES / 1e6:g} MB",
                    help="Delete one of them.",
                )
            made = next((version for version in reversed(stored) if not version.author), None)
            if base is not None and (made is None or made.content != base.content):
                last = self._write(writer, thread, base, last + 1).version
            return self._write(writer, thread, draft, last + 1)

    @run_in_thread
    def delete(self, thread: str, name: str) -> None:
        with open_thread_writer(self._rows, thread) as writer:
            if not writer.delete(ARTIFACTS, "WHERE thread = ? AND name = ?", (thread, name)):
                raise no_artifact(name)

    def _write(self, writer: Writer, thread: str, draft: ArtifactDraft, version: int) -> Artifact:
        made = Artifact(thread=thread, version=version, created=self._now(), **draft._asdict())
        writer.insert(ARTIFACTS, dict(made))
        return made


class SqlPins(RowStore):
    """Documents that people have pinned to a thread, whatever number a report gives them."""

    @run_in_thread
    def pin(self, thread: str, document: str) -> None:
        """Pin a document; pinning it again changes nothing."""
        row = {"thread": thread, "document": document, "created": self._now()}
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(PINS, row, on_conflict="keep")

    @run_in_thread
    def unpin(self, thread: str, document: str) -> bool:
        """Unpin a document; return whether it was pinned."""
        with open_thread_writer(self._rows, thread) as writer:
            return writer.delete(PINS, "WHERE thread = ? AND document = ?", (thread, document)) > 0

    @run_in_thread
    def list_for(self, thread: str) -> list[str]:
        rows = self._rows.read(PINS, "WHERE thread = ? ORDER BY created, document", (thread,))
        return [row["document"] for row in rows]
