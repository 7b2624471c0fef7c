"""Copies runs into their journals as they go, and restores a run from its journal.

The database decides how a run goes on; a journal that cannot be written is given up, and the run is told.
"""

import asyncio
import base64
import contextlib
import logging
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple

from openassay.engine import journal
from openassay.engine.checkpoints import SERDE, SqlCheckpointSaver, find_run_id
from openassay.engine.thread_lock import shield_until_done
from openassay.errors import IntegrityError, NotFoundError, OpenAssayError, StorageError, UsageError
from openassay.models.event import ENDED, Event, RunStatus
from openassay.models.thread import Run, is_id
from openassay.protocols import DocumentStore
from openassay.state import StateCompactor, evidence_values, note_names
from openassay.storage.events import SqlEvents, SqlNotes, find_documents
from openassay.storage.ledger import SqlLedger
from openassay.storage.sealed_rows import Seals
from openassay.storage.threads import SqlThreads

_log = logging.getLogger("openassay")
_PACKED = "$packed"

# How a task has failed, or what it waits for, is not restored: it is tried again, and asks again.
_UNFINISHED = frozenset({"__error__", "__error_source_node__", "__interrupt__", "__scheduled__"})

Writes = Sequence[tuple[str, Any]]


def encode_value(value: Any) -> Any:
    """Return a value of a checkpoint as JSON has it; what JSON has no word for, as LangGraph serialises it. Tuples
    become lists, as in the database."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [encode_value(item) for item in value]
    if isinstance(value, dict) and all(type(key) is str and not key.startswith("$") for key in value):
        return {key: encode_value(item) for key, item in value.items()}
    kind, content = SERDE.dumps_typed(value)
    return {_PACKED: [kind, base64.b64encode(content).decode()]}


def decode_value(value: Any) -> Any:
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_PACKED}:
        kind, content = value[_PACKED]
        return SERDE.loads_typed((kind, base64.b64decode(content)))
    return {key: decode_value(item) for key, item in value.items()}


def _list_results(saved: CheckpointTuple) -> dict[str, Writes]:
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in saved.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    return dict(tasks)


def _list_notes(values: Mapping[str, Any]) -> set[str]:
    """Return the notes that values refer to, those that a run begins with included."""
    given = values.get("__start__")
    return {*note_names(values), *(note_names(given) if isinstance(given, Mapping) else ())}


@dataclass(frozen=True, slots=True)
class JournalStores:
    """What a journal is a copy of."""

    threads: SqlThreads
    log: SqlEvents
    documents: DocumentStore
    notes: SqlNotes
    ledger: SqlLedger
    checkpointer: SqlCheckpointSaver


class RunJournal:
    """The journal of a run at work; its checkpointer tells it of checkpoints and results."""

    def __init__(self, recorder: "JournalRecorder", run: Run, kept: journal.JournalContents | None) -> None:
        folder = recorder.folder(run.id)
        self.run = run
        self.book = journal.JournalWriter(folder, run.id, recorder.seals, kept)
        self._recorder = recorder
        self._stores = recorder.stores
        self._page = journal.ProgressPage(None if recorder.seals.encrypts else folder / journal.PROGRESS, run.thread)
        self._compactor = StateCompactor(recorder.stores.notes, run.thread)
        self._page.add_opening(run)

    # -- while the run is at work -------------------------------------------------------------------------

    async def checkpoint(self, saved: CheckpointTuple) -> None:
        with self.drop_on_error():
            if len(self.book.seqs) < max(self.book.seqs, default=0):
                await self._write_events()  # another process has written some
            await self._write_checkpoint(saved)

    async def writes(self, config: RunnableConfig, writes: Writes, task: str, path: str) -> None:
        with self.drop_on_error():
            await self._write_result(str(config["configurable"].get("checkpoint_id", "")), writes, task, path)

    @contextlib.contextmanager
    def drop_on_error(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  # it is a copy: whatever is wrong with it stops no run
            if self._recorder.works.get(self.run.id) is self:  # else it was dropped already
                self._recorder.drop(self.run.id, error)

    # -- all that the database has and the folder does not ------------------------------------------------

    async def catch_up(self) -> None:
        run = await self._stores.threads.run(self.run.id)
        thread = await self._stores.threads.get(run.thread)
        rows = journal.RunRows(run=run, thread=thread, branch=await self._stores.threads.branch(run.thread))
        await asyncio.to_thread(self.book.write_rows, rows)
        await self._write_events()
        for owner in (run.id, *run.options.lineage):
            await asyncio.to_thread(self.book.write_calls, await self._stores.ledger.export(owner))
        for saved in await self._find_new_checkpoints():
            id, values = saved.checkpoint["id"], saved.checkpoint["channel_values"]
            if id in self.book.labels:
                self._page.add_plan(values.get("plan"))
            else:
                await self._write_checkpoint(saved)
                await self._add_findings(values.get("read"))
            for task, writes in _list_results(saved).items():
                if task not in self.book.tasks:
                    await self._write_result(id, writes, task, "")

    async def close(self) -> None:
        with self.drop_on_error():
            await self.catch_up()  # whoever was cancelled may have left something out
            self._page.add_end((await self._stores.threads.run(self.run.id)).status)

    async def _find_new_checkpoints(self) -> list[CheckpointTuple]:
        """Return the run's checkpoints that the folder lacks, and the last it has, oldest first."""
        found: list[CheckpointTuple] = []
        place: RunnableConfig = {"configurable": {"thread_id": self.run.thread, "checkpoint_ns": ""}}
        async for saved in self._stores.checkpointer.alist(place):
            if find_run_id(saved.checkpoint["channel_values"]) != self.run.id:
                break  # that of the question before
            found.append(saved)
            if saved.checkpoint["id"] in self.book.labels:
                break
        return found[::-1]

    # -- one thing ----------------------------------------------------------------------------------------

    async def _write_events(self) -> None:
        await asyncio.to_thread(self.write_events, await self._stores.log.since(self.run.id, 0))

    def write_events(self, events: Iterable[Event]) -> None:
        for event in events:
            self.book.write_event(event)
            self._page.add_event(event)

    async def _write_checkpoint(self, saved: CheckpointTuple) -> None:
        values = saved.checkpoint["channel_values"]
        await self._attach(evidence_values(values.items()), _list_notes(values))
        content = {
            "id": saved.checkpoint["id"],
            "parent": saved.parent_config["configurable"].get("checkpoint_id") if saved.parent_config else None,
            "step": saved.metadata.get("step", 0),
            "ns": saved.config["configurable"].get("checkpoint_ns", ""),
            "metadata": encode_value(saved.metadata),
            "checkpoint": encode_value(saved.checkpoint),
        }
        await asyncio.to_thread(self.book.write_checkpoint, content)
        self._page.add_plan(values.get("plan"))

    async def _write_result(self, checkpoint: str, writes: Writes, task: str, path: str) -> None:
        """Write what a task has brought, unless it has only failed, or asks something."""
        brought = [(channel, value) for channel, value in writes if channel not in _UNFINISHED]
        if not brought or checkpoint not in self.book.labels:
            return
        notes = {name for channel, value in brought for name in _list_notes({channel: value})}
        await self._attach(evidence_values(brought), notes)
        encoded = [[channel, encode_value(value)] for channel, value in brought]
        result = {"task": task, "path": path, "writes": encoded}
        await asyncio.to_thread(self.book.write_result, checkpoint, result)
        for channel, value in brought:
            if channel == "read":
                await self._add_findings(value)

    async def _attach(self, evidence: Iterable[Any], names: set[str]) -> None:
        """Write the notes and documents that a content refers to, and that are not there yet."""
        new = names - self.book.notes
        notes = await self._stores.notes.get(self.run.thread, new) if new else {}
        hashes = {*find_documents([*evidence, *notes.values()])} - self.book.documents
        documents = []
        for hash in sorted(hashes):
            with contextlib.suppress(NotFoundError):  # the hash of something else
                documents.append(await self._stores.documents.get(hash))
        if documents or notes:
            await asyncio.to_thread(self.book.attach, documents, notes)

    async def _add_findings(self, read: Mapping[str, Any] | None) -> None:
        """Put sub-questions that were read on the page for people."""
        expanded = await self._compactor.expand({"read": read or {}})
        for task, findings in expanded["read"].items():
            hashes = {finding["span"]["document"] for finding in journal.best_findings(findings)}
            titles = {hash: (await self._stores.documents.get(hash)).title for hash in sorted(hashes)}
            self._page.add_findings(task, findings, titles)


class JournalRecorder:
    """`troubles` says, once for each run whose journal was given up, why."""

    def __init__(self, root: Path, seals: Seals, stores: JournalStores, *, is_kept: bool = True) -> None:
        self.seals = seals
        self.stores = stores
        self.troubles: dict[str, str] = {}
        self.works: dict[str, RunJournal] = {}
        self._root = root
        self._is_kept = is_kept

    def folder(self, run: str) -> Path:
        if not is_id(run):
            raise NotFoundError(f"{run!r} is the id of no run", help="Look at the runs of its thread for its id.")
        return self._root / run

    async def open(self, run: Run) -> list[str]:
        """Begin a journal, or continue it; return what a person must know of that."""
        if not self._is_kept:
            return []
        try:
            kept, notices = await self._read_previous(run)
            # A thread that opens files when the run is cancelled would leave them open.
            work = await shield_until_done(asyncio.to_thread(self._begin, run, kept))
            await work.catch_up()
        except Exception as error:  # noqa: BLE001  # it is a copy: whatever is wrong with it stops no run
            self.drop(run.id, error)
            return []
        self.stores.checkpointer.watchers[run.thread] = work
        return notices

    def _begin(self, run: Run, kept: journal.JournalContents | None) -> RunJournal:
        work = self.works[run.id] = RunJournal(self, run, kept)
        return work

    def append_event(self, event: Event) -> None:
        """Write an event, in the thread that appended it."""
        if work := self.works.get(event.run):
            with work.drop_on_error():
                work.write_events([event])

    def record_call(self, row: Mapping[str, Any]) -> None:
        """Write an account or a call of the ledger that has changed, in the thread that changed it."""
        if work := self.works.get(str(row["run"])):
            with work.drop_on_error():
                work.book.write_calls([{name: value for name, value in row.items() if name != "id"}])

    async def close(self, run: str) -> None:
        """Complete the journal of a run that stands still."""
        if work := self.works.get(run):
            await work.close()
            await asyncio.to_thread(self.leave, run)

    def leave(self, run: str) -> None:
        """Leave it as it is: another process works on the run by now, and continues it."""
        if work := self.works.pop(run, None):
            self.stores.checkpointer.watchers.pop(work.run.thread, None)
            with contextlib.suppress(OSError):
                work.book.close()

    def drop(self, run: str, error: Exception) -> None:
        """Give a journal up. What was written is continued, or set aside, when the run is resumed."""
        self.leave(run)
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.troubles[run] = f"The journal of this run could not be written and is given up: {reason}"
        _log.warning("the journal of run %s could not be written: %s", run, reason)

    async def copy(self, run: Run) -> None:
        """Write the journal of a run that stands still, as the database has it."""
        await self.open(run)
        await self.close(run.id)

    async def delete_orphans(self) -> None:
        """Delete journals of runs that went with their thread on another machine. One of a run that the database never
        knew, or has lost, may be all that is left of it, and stays."""
        kept = set(await asyncio.to_thread(self.list_runs)) - self.works.keys()
        for run in await self.stores.threads.find_deleted_runs(kept):
            await self.delete(run)

    async def rewrite_all(self) -> None:
        """Write all journals anew, when the database is sealed or encrypted in another way than they are. One of a run
        that the database does not know may be all that is left of it, and stays."""
        self._is_kept = True  # those that are there, whether or not more are wanted
        for id in await asyncio.to_thread(self.list_runs):
            folder = self.folder(id)
            try:
                run = await self.stores.threads.run(id)
            except NotFoundError:
                _log.warning("%s is left as it was: the database does not know this run", folder)
                continue
            before = journal.move_aside(folder) if folder.exists() else None
            await self.copy(run)
            if id not in self.troubles:
                await asyncio.to_thread(journal.delete_aside, folder)
            elif before:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                before.rename(folder)

    async def delete(self, run: str) -> None:
        """Delete the journal of a run, with what was set aside of it."""
        await asyncio.to_thread(self.leave, run)
        with contextlib.suppress(NotFoundError):  # a row that was altered names no folder of ours
            await asyncio.to_thread(journal.delete_folder, self.folder(run))

    async def verify(self, run: str) -> list[str]:
        """Return what is wrong with the journal of a run; nothing where it has none."""
        if not await asyncio.to_thread(journal.has_content, self.folder(run)):
            return []
        try:
            await asyncio.to_thread(journal.read_journal, self.folder(run), self.seals)
        except OpenAssayError as error:
            return [f"journal of run {run}: {error.message}"]
        return []

    def list_runs(self) -> list[str]:
        """Return the runs that have a journal, or had one that was set aside."""
        folders = self._root.iterdir() if self._root.is_dir() else ()
        return sorted(
            {journal.folder_run(folder) for folder in folders if folder.is_dir() and is_id(journal.folder_run(folder))}
        )

    async def _read_previous(self, run: Run) -> tuple[journal.JournalContents | None, list[str]]:
        """Read what there is. A journal that is damaged, or that tells another story than the database or more of it,
        is set aside."""
        folder = self.folder(run.id)
        if not await asyncio.to_thread(journal.has_content, folder):
            return None, []
        try:
            kept = await asyncio.to_thread(journal.read_journal, folder, self.seals)
            reason = "it tells of what the database does not know, as if that had been put back"
            if kept.events == (await self.stores.log.since(run.id, 0))[: len(kept.events)]:
                return kept, []
        except (IntegrityError, UsageError) as error:
            reason = error.message
        aside = await asyncio.to_thread(journal.move_aside, folder)
        return None, [f"The journal of this run was set aside as {aside.name} and is written anew: {reason}."]


# Restoring: everything is read and checked before anything is written. Doing it again after it was interrupted finishes
# it; what is there already is left alone.

_HALF = "its restoring was interrupted: do it again with openassay resume --from"


class RestorableRun(NamedTuple):
    rows: journal.RunRows  # as the last events say that the run ended; one that had not ended waits to be resumed
    accounts: list[list[journal.Plain]]
    kept: journal.JournalContents


def read_restorable(folder: Path, seals: Seals) -> RestorableRun:
    """Read a journal; IntegrityError names what in the folder is not as it was written."""
    try:
        kept = journal.read_journal(folder, seals)
        if kept.rows is None:
            raise IntegrityError("it holds no run yet", help="Ask again: nothing was done.")
        for content in kept.checkpoints.values():
            decode_value(content["checkpoint"])
        accounts = _group_accounts(kept.calls)
        _check_ids(kept.rows, kept.events, accounts)
        said = [RunStatus(str(event.data["status"])) for event in kept.events if event.kind == "run"]
    except IntegrityError as error:  # by the name it was given under
        raise IntegrityError(f"{folder}: {error.message}", help=error.help) from error
    except (KeyError, TypeError, ValueError) as error:
        raise journal.contents_error(folder, error) from error
    status = said[-1] if said else kept.rows.run.status
    run = kept.rows.run.model_copy(update={"status": status if status in ENDED else RunStatus.QUEUED})
    return RestorableRun(kept.rows.model_copy(update={"run": run}), accounts, kept)


async def restore_run(found: RestorableRun, folder: Path, stores: JournalStores, now: datetime) -> Run:
    """Restore a run, standing still: `Engine.resume` continues it, unless it was finished."""
    kept, run = found.kept, found.rows.run
    await _begin_run(found.rows, stores.threads, now)
    for rows in found.accounts:
        await stores.ledger.restore(rows)
    await stores.notes.put(run.thread, list(kept.notes.values()))
    for event in kept.events[len(await stores.log.since(run.id, 0)) :]:
        await stores.log.append(event)
    last = list(kept.checkpoints)[-1:]
    for label, content in kept.checkpoints.items():
        await restore_checkpoint(stores.checkpointer, run.thread, content, kept.results if label in last else [])
    for document in kept.documents.values():  # last: now the thread uses them, so nobody takes them for unused
        await stores.documents.put(document)
    for remark in (f"Restored from its journal in {folder.name}.", *kept.remarks):
        await stores.log.append(Event(run=run.id, time=now, kind="notice", data={"text": remark}))
    await stores.threads.update(run.id, status=run.status, stage=run.stage, error=run.error or "")
    return await stores.threads.run(run.id)


async def restore_checkpoint(
    checkpointer: BaseCheckpointSaver[Any], thread: str, content: journal.Plain, results: Sequence[journal.Plain]
) -> None:
    checkpoint = cast("Checkpoint", decode_value(content["checkpoint"]))
    place = {"thread_id": thread, "checkpoint_ns": content["ns"]}
    if content["parent"]:
        place["checkpoint_id"] = content["parent"]
    metadata = decode_value(content["metadata"])
    at = await checkpointer.aput({"configurable": place}, checkpoint, metadata, checkpoint["channel_versions"])
    for result in results:
        writes = [(channel, decode_value(value)) for channel, value in result["writes"]]
        await checkpointer.aput_writes(at, writes, result["task"], result["path"])


def refuse_partial(run: Run) -> None:
    """Refuse a run whose restoring was interrupted: it is not what it was."""
    if run.error == _HALF:
        raise StorageError(
            f"run {run.id} is there in part only: its restoring was interrupted",
            help="Do it again with: openassay resume --from DIR, or delete its thread.",
            run=run.id,
        )


async def _begin_run(rows: journal.RunRows, threads: SqlThreads, now: datetime) -> None:
    """Write the rows of the run and its thread. A run that is here is not touched, unless its restoring was
    interrupted."""
    run = rows.run
    with contextlib.suppress(NotFoundError):
        if (await threads.run(run.id)).error == _HALF:
            return
        raise UsageError(f"run {run.id} is here already", help=f"Go on with: openassay resume {run.thread}")
    run = run.model_copy(update={"status": RunStatus.FAILED, "error": _HALF, "finished": run.finished or now})
    try:
        await threads.get(run.thread)  # restored with another of its runs
    except NotFoundError:
        await threads.create_with_run(rows.thread, run, rows.branch)
    else:
        await threads.begin(run)


def _check_ids(rows: journal.RunRows, events: Iterable[Event], accounts: Iterable[list[journal.Plain]]) -> None:
    """Refuse ids of anything else: they become names of files, and say whose rows are written, and a journal may come
    from anybody."""
    run, thread = rows.run, rows.thread.id
    owners = {str(account["run"]) for account, *_ in accounts} - {*run.options.lineage}
    runs = {event.run for event in events} | owners
    threads = {run.thread, *([rows.branch.thread] if rows.branch else [])}
    if not (is_id(run.id) and is_id(thread) and runs <= {run.id} and threads == {thread}):
        raise IntegrityError("its ids are not those of one run and its thread", help="Take another copy of the folder.")


def _group_accounts(rows: Iterable[journal.Plain]) -> list[list[journal.Plain]]:
    """Return for each run its account and then its calls, as they were last."""
    runs: dict[str, dict[object, journal.Plain]] = {}
    for row in rows:
        runs.setdefault(row["run"], {})[(row.get("key"), row.get("time"))] = row
    return [[calls.pop((None, None)), *calls.values()] for calls in runs.values() if (None, None) in calls]
