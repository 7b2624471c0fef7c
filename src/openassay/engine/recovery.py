"""Copies runs into their journals as they go, and restores a run from its journal.

The database decides how a run goes on; a journal that cannot be written is given up, and the run is told.
"""

import asyncio
import base64
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from openassay.engine.checkpoints import SqlCheckpointSaver, find_run_id
from openassay.engine.journal import (
    JournalContents,
    JournalWriter,
    ProgressPage,
    Sealer,
    delete_folder,
    folder_run,
    move_aside,
    read_journal,
    replace_folder,
)
from openassay.errors import IntegrityError, NotFoundError, OpenAssayError, StorageError, UsageError
from openassay.models.event import ENDED, Event, RunStatus
from openassay.models.evidence import Document
from openassay.models.thread import Branch, Run, Thread, is_id
from openassay.protocols import DocumentStore
from openassay.state import StateCompactor, evidence_values, note_names
from openassay.storage.events import SqlEvents, SqlNotes, find_documents
from openassay.storage.ledger import SqlLedger
from openassay.storage.threads import SqlThreads

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple


# Checkpoints of LangGraph, and what its tasks have written since, as plain JSON and back, exactly.
#
# JSON has no bytes, no sets, no Sends and no numbers as keys: such a value is an object with one key, which begins with
# "$". Tuples are lists: so they come back from a database, too.

Plain = dict[str, Any]
Writes = Sequence[tuple[str, Any]]

# How a task has failed, or what it waits for, is not restored: it is tried again, and asks again.
UNFINISHED = frozenset({"__error__", "__error_source_node__", "__interrupt__", "__scheduled__"})


def checkpoint_to_plain(kept: "CheckpointTuple") -> Plain:
    """A checkpoint; `restore` puts it back."""
    parent = kept.parent_config["configurable"].get("checkpoint_id") if kept.parent_config else None
    values = kept.checkpoint["channel_values"]
    return {
        "id": kept.checkpoint["id"],
        "parent": parent,
        "step": kept.metadata.get("step", 0),
        "time": kept.checkpoint["ts"],
        "ns": kept.config["configurable"].get("checkpoint_ns", ""),
        "metadata": encode_value(kept.metadata),
        "checkpoint": encode_value(kept.checkpoint),
        "documents": sorted(set(find_documents(evidence_values(values.items())))),
        "notes": sorted(set(list_notes(values))),
    }


def result_to_plain(task: str, path: str, writes: Writes) -> Plain | None:
    """What a task has brought; None if it has only failed, or asks something."""
    brought = [(channel, value) for channel, value in writes if channel not in UNFINISHED]
    if not brought:
        return None
    return {
        "task": task,
        "path": path,
        "writes": [[channel, encode_value(value)] for channel, value in brought],
        "documents": sorted(set(find_documents(evidence_values(brought)))),
        "notes": sorted({name for channel, value in brought for name in list_notes({channel: value})}),
    }


def list_results(kept: "CheckpointTuple") -> list[Plain]:
    """Those that are pending at a checkpoint."""
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in kept.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    return [found for task, writes in tasks.items() if (found := result_to_plain(task, "", writes))]


class SnapshotWatcher:
    """A checkpoints.Watcher that hands on plain data, made by whoever wants them: a value may be none."""

    def __init__(
        self,
        checkpoint: Callable[[Callable[[], Plain]], Awaitable[None]],
        result: Callable[[str, Callable[[], Plain | None]], Awaitable[None]],
    ) -> None:
        self._checkpoint = checkpoint
        self._result = result

    async def checkpoint(self, kept: "CheckpointTuple") -> None:
        await self._checkpoint(lambda: checkpoint_to_plain(kept))

    async def writes(self, config: "RunnableConfig", writes: Writes, task: str, path: str) -> None:
        at = str(config["configurable"].get("checkpoint_id", ""))
        await self._result(at, lambda: result_to_plain(task, path, writes))


async def read_newest(
    checkpointer: "BaseCheckpointSaver[Any]", thread: str, run: str, known: Callable[[str], bool]
) -> list[tuple[Plain, list[Plain]]]:
    """Checkpoints of a run that are not known yet, and the last one in any case, with results since; oldest first."""
    found: list[tuple[Plain, list[Plain]]] = []
    async for kept in checkpointer.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}):
        if find_run_id(kept.checkpoint["channel_values"]) != run:
            break  # that of the question before
        found.append((checkpoint_to_plain(kept), list_results(kept)))
        if known(kept.checkpoint["id"]):
            break
    return found[::-1]


async def restore_checkpoint(
    checkpointer: "BaseCheckpointSaver[Any]", thread: str, content: Mapping[str, Any], done: Sequence[Mapping[str, Any]]
) -> None:
    """A checkpoint with the results of tasks since."""
    checkpoint = cast("Checkpoint", decode_value(content["checkpoint"]))
    place = {"thread_id": thread, "checkpoint_ns": content["ns"]}
    before = {**place, "checkpoint_id": content["parent"]} if content["parent"] else place
    config: RunnableConfig = {"configurable": before}
    at = await checkpointer.aput(config, checkpoint, decode_value(content["metadata"]), checkpoint["channel_versions"])
    for line in done:
        writes = [(channel, decode_value(value)) for channel, value in line["writes"]]
        await checkpointer.aput_writes(at, writes, line["task"], line["path"])


def list_notes(values: Mapping[str, Any]) -> Iterator[str]:
    """The notes that values refer to, those that a run begins with included."""
    yield from note_names(values)
    if isinstance(given := values.get("__start__"), Mapping):
        yield from note_names(given)


def encode_value(value: Any) -> Any:
    """Of every checkpoint thousands of values are texts or numbers: they are told apart first."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple):
        return [encode_value(item) for item in value]
    if isinstance(value, dict) and all(type(key) is str and not key.startswith("$") for key in value):
        return {key: encode_value(item) for key, item in value.items()}
    return _encode_special(value)


def _encode_special(value: Any) -> Any:
    from langgraph.types import Send

    match value:
        case float():
            return value if math.isfinite(value) else {"$float": repr(value)}
        case Mapping() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode_value(item) for key, item in value.items()}
        case Mapping():
            return {"$map": [[encode_value(key), encode_value(item)] for key, item in value.items()]}
        case set() | frozenset():
            return {"$set": [encode_value(item) for item in sorted(value, key=repr)]}
        case bytes():
            return {"$bytes": base64.b64encode(value).decode()}
        case Send() if value.timeout is None:
            return {"$send": [value.node, encode_value(value.arg)]}
    raise TypeError(f"a {type(value).__name__} in a checkpoint cannot be written as JSON")


def decode_value(value: Any) -> Any:
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(key, held)] = value.items()
        if key.startswith("$"):
            return _decode_special(key, held)
    return {key: decode_value(item) for key, item in value.items()}


def _decode_special(kind: str, held: Any) -> Any:
    from langgraph.types import Send

    match kind:
        case "$float":
            return float(held)
        case "$map":
            return {decode_value(key): decode_value(item) for key, item in held}
        case "$set":
            return set(decode_value(held))
        case "$bytes":
            return base64.b64decode(held)
        case "$send":
            return Send(held[0], decode_value(held[1]))
    raise ValueError(f"{kind} is of a newer version")


_log = logging.getLogger("openassay")
_NEW = ".new"  # where journals are written before they take the place of others


@dataclass(frozen=True, slots=True)
class JournalStores:
    """What a journal is a copy of."""

    threads: SqlThreads
    log: SqlEvents
    documents: DocumentStore
    notes: SqlNotes
    ledger: SqlLedger
    checkpointer: SqlCheckpointSaver


@dataclass(slots=True)
class _RunJournal:
    run: Run
    book: JournalWriter
    progress: ProgressPage
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    unknown: set[str] = field(default_factory=set)  # hashes that are none of a document


class JournalRecorder:
    """`troubles` says, once for each run whose journal was given up, why."""

    def __init__(self, root: Path, seals: Sealer, stores: JournalStores, *, is_kept: bool = True) -> None:
        self.seals = seals
        self.stores = stores
        self.troubles: dict[str, str] = {}
        self._root = root
        self._is_kept = is_kept
        self._works: dict[str, _RunJournal] = {}

    def folder(self, run: str) -> Path:
        if not is_id(run):
            raise NotFoundError(f"{run!r} is the id of no run", help="Look at the runs of its thread for its id.")
        return self._root / run

    # -- a run at work ------------------------------------------------------------------------------------

    async def open(self, run: Run) -> list[str]:
        """Begin, or go on where it ends; what a person must know of that."""
        if not self._is_kept:
            return []
        try:
            kept, notices = await self._read_previous(run)
            book = await asyncio.to_thread(JournalWriter, self.folder(run.id), run.id, self.seals, kept)
            work = self._works[run.id] = _RunJournal(run, book, ProgressPage(run.thread))
            await self._write_opening(work, kept)
            await self._catch_up(work)
        except Exception as error:  # noqa: BLE001  # it is a copy: whatever is wrong with it stops no run
            self._drop_journal(run.id, error)
            return []
        self.stores.checkpointer.watchers[run.thread] = SnapshotWatcher(
            partial(self._on_checkpoint, work), partial(self._on_result, work)
        )
        return notices

    def append_event(self, event: Event) -> None:
        """In the thread that appended it, which saves two more: the next one is written at once, others by `event`."""
        work = self._works.get(event.run)
        if work and event.seq == work.book.told + 1:
            with self._drop_on_error(work):
                self._write_events(work, [event])

    async def record_event(self, event: Event) -> None:
        """Events of tasks that run at once may come in any order; they are written in theirs."""
        work = self._works.get(event.run)
        if work and event.seq > work.book.told:
            with self._drop_on_error(work):
                async with work.turn:
                    await self._write_new_events(work, event)

    def record_call(self, row: Mapping[str, Any]) -> None:
        """An account or a call of the ledger, whenever it changes; in the thread that changed it."""
        if work := self._works.get(str(row["run"])):
            with self._drop_on_error(work):
                work.book.write_calls([{name: value for name, value in row.items() if name != "id"}])

    async def close(self, run: str) -> None:
        """The run stands still."""
        work = self._works.get(run)
        if work is None:
            return
        with self._drop_on_error(work):
            async with work.turn:
                await self._catch_up(work)  # whoever was cancelled may have left something out
                await self._write_rows(work, await self.stores.threads.run(run))
                await asyncio.to_thread(work.book.write_progress, work.progress.format_ending())
        self._works.pop(run, None)
        self.stores.checkpointer.watchers.pop(work.run.thread, None)
        with contextlib.suppress(OSError):
            await asyncio.to_thread(work.book.close)

    def leave(self, run: str) -> None:
        """As it is: another process works on the run by now, and goes on with it."""
        if work := self._works.pop(run, None):
            self.stores.checkpointer.watchers.pop(work.run.thread, None)
            with contextlib.suppress(OSError):
                work.book.close()

    # -- at any time --------------------------------------------------------------------------------------

    async def copy(self, run: Run) -> None:
        """A run that stands still, as the database has it."""
        await self.open(run)
        await self.close(run.id)

    async def complete(self, run: Run) -> None:
        """Of a run that stands still, and that another machine may have worked on: what the folder here lacks."""
        if self._is_kept and run.id not in self._works and await self._is_behind(run):
            await self.copy(run)

    async def _is_behind(self, run: Run) -> bool:
        if not await asyncio.to_thread(_has_content, self.folder(run.id)):
            return True
        with contextlib.suppress(IntegrityError):  # a damaged one is left as it is, for `verify` to tell of
            kept = await asyncio.to_thread(read_journal, self.folder(run.id), self.seals)
            return bool(await self.stores.log.since(run.id, kept.events[-1]["seq"] if kept.events else 0))
        return False

    async def delete_orphans(self) -> None:
        """Journals of runs that went with their thread on another machine. One of a run that the database never knew,
        or has lost, may be all that is left of it, and stays."""
        kept = set(await asyncio.to_thread(self.list_runs)) - self._works.keys()
        for run in await self.stores.threads.find_deleted_runs(kept):
            await self.delete(run)

    async def rewrite_all(self) -> None:
        """All journals, when the database is sealed or encrypted in another way than they are. Each gives way, with
        what was set aside of it, to one that is whole. One of a run that the database does not know may be all that is
        left of it, and stays."""
        new = JournalRecorder(self._root / _NEW, self.seals, self.stores)
        await asyncio.to_thread(delete_folder, self._root / _NEW)
        for id in await asyncio.to_thread(self.list_runs):
            try:
                run = await self.stores.threads.run(id)
            except NotFoundError:
                _log.warning("%s is left as it was: the database does not know this run", self.folder(id))
                continue
            await new.copy(run)
            if id not in new.troubles:
                await asyncio.to_thread(replace_folder, self.folder(id), new.folder(id))
        await asyncio.to_thread(delete_folder, self._root / _NEW)

    async def delete(self, run: str) -> None:
        """With what was set aside of it."""
        if work := self._works.pop(run, None):
            self.stores.checkpointer.watchers.pop(work.run.thread, None)
            await asyncio.to_thread(work.book.close)
        with contextlib.suppress(NotFoundError):  # a row that was altered names no folder of ours
            await asyncio.to_thread(delete_folder, self.folder(run))

    async def verify(self, run: str) -> list[str]:
        """What is wrong with the journal of a run; nothing where it has none."""
        if not await asyncio.to_thread(_has_content, self.folder(run)):
            return []
        try:
            await asyncio.to_thread(read_journal, self.folder(run), self.seals)
        except OpenAssayError as error:
            return [f"journal of run {run}: {error.message}"]
        return []

    def list_runs(self) -> list[str]:
        """Those that have a journal, or had one that was set aside."""
        folders = self._root.iterdir() if self._root.is_dir() else ()
        return sorted({folder_run(folder) for folder in folders if folder.is_dir() and is_id(folder_run(folder))})

    # -- going on -----------------------------------------------------------------------------------------

    async def _read_previous(self, run: Run) -> tuple[JournalContents | None, list[str]]:
        folder, kept = self.folder(run.id), None
        if not await asyncio.to_thread(_has_content, folder):
            return None, []
        try:
            kept = await asyncio.to_thread(read_journal, folder, self.seals)
            reason = await self._find_conflict(run, kept)
        except (IntegrityError, UsageError) as error:
            reason = error.message
        if reason is None:
            return kept, []
        aside = await asyncio.to_thread(move_aside, folder)
        return None, [f"The journal of this run was set aside as {aside.name} and is written anew: {reason}."]

    async def _find_conflict(self, run: Run, kept: JournalContents) -> str | None:
        """Whether the journal tells another story than the database, or more of it."""
        told = [(line["seq"], line["kind"], line["data"]) for line in kept.events]
        known = [(event.seq, event.kind, event.data) for event in await self.stores.log.since(run.id, 0)]
        if told == known[: len(told)]:
            return None
        return "it tells of what the database does not know, as if that had been put back"

    async def _write_opening(self, work: _RunJournal, kept: JournalContents | None) -> None:
        await self._write_rows(work, work.run)
        if kept is None:
            await asyncio.to_thread(
                work.book.write_progress, work.progress.format_opening(work.run.question, work.run.started)
            )
            return
        for event in kept.events:  # told before, by whoever wrote the page so far
            work.progress.format_event(event["kind"], event["stage"], event["data"])
        work.progress.format_ending()
        for content in kept.checkpoints.values():
            work.progress.format_plan(content["checkpoint"]["channel_values"].get("plan"))

    async def _catch_up(self, work: _RunJournal) -> None:
        """All that the database has and the folder does not."""
        book, run = work.book, work.run
        await self._write_new_events(work, None)
        for owner in (run.id, *run.options.lineage):
            await asyncio.to_thread(book.write_calls, await self.stores.ledger.export(owner))
        known = book.labels.__contains__
        for content, results in await read_newest(self.stores.checkpointer, run.thread, run.id, known):
            id = content["id"]
            if not known(id):
                await self._write_checkpoint(work, content)
                await self._write_progress(work, content["checkpoint"]["channel_values"].get("read"))
            for result in results:
                if result["task"] not in book.tasks:
                    await self._write_result(work, id, result)

    # -- what is written ----------------------------------------------------------------------------------

    async def _on_checkpoint(self, work: _RunJournal, make: Callable[[], Plain]) -> None:
        with self._drop_on_error(work):
            async with work.turn:
                await self._write_checkpoint(work, await asyncio.to_thread(make))

    async def _on_result(self, work: _RunJournal, checkpoint: str, make: Callable[[], Plain | None]) -> None:
        with self._drop_on_error(work):
            async with work.turn:
                result = make() if checkpoint in work.book.labels else None
                if result:
                    await self._write_result(work, checkpoint, result)

    async def _write_rows(self, work: _RunJournal, run: Run) -> None:
        thread = await self.stores.threads.get(run.thread)
        branch = await self.stores.threads.branch(run.thread)
        held = {**thread.plain(), "branch": branch.plain() if branch else None}
        await asyncio.to_thread(work.book.write_rows, run.plain(), held)

    async def _write_new_events(self, work: _RunJournal, event: Event | None) -> None:
        told = work.book.told
        if event and event.seq <= told:
            return
        next_one = event and event.seq == told + 1
        fresh = [event] if event and next_one else await self.stores.log.since(work.run.id, told)
        await asyncio.to_thread(self._write_events, work, fresh)

    @staticmethod
    def _write_events(work: _RunJournal, events: Sequence[Event]) -> None:
        new = work.book.write_events([event.plain() for event in events])
        work.book.write_progress(
            "".join(work.progress.format_event(one["kind"], one["stage"], one["data"]) for one in new)
        )

    async def _write_checkpoint(self, work: _RunJournal, content: Plain) -> None:
        content["documents"] = await self._attach(work, content)
        await asyncio.to_thread(work.book.write_checkpoint, {"run": work.run.id, "thread": work.run.thread, **content})
        if text := work.progress.format_plan(content["checkpoint"]["channel_values"].get("plan")):
            await asyncio.to_thread(work.book.write_progress, text)

    async def _write_result(self, work: _RunJournal, checkpoint: str, result: Plain) -> None:
        result["documents"] = await self._attach(work, result)
        await asyncio.to_thread(work.book.write_result, checkpoint, result)
        for channel, value in result["writes"]:
            if channel == "read":
                await self._write_progress(work, value)

    async def _write_progress(self, work: _RunJournal, read: Mapping[str, Any] | None) -> None:
        if read and work.progress.has_news(read):
            await asyncio.to_thread(work.book.write_progress, await self._format_progress(work, read))

    async def _format_progress(self, work: _RunJournal, value: Mapping[str, Any]) -> str:
        """For the page: sub-questions that were read."""
        whole = await StateCompactor(self.stores.notes, work.run.thread).expand({"read": value})
        names = {finding["span"]["document"] for findings in whole["read"].values() for finding in findings}
        titles = {name: (await self.stores.documents.get(name)).title for name in sorted(names)}
        return "".join(
            work.progress.format_findings(task, findings, titles) for task, findings in whole["read"].items()
        )

    async def _attach(self, work: _RunJournal, content: Mapping[str, Any]) -> list[str]:
        """Write what a content refers to, and is not there yet; the documents it refers to itself."""
        book = work.book
        names = set(content["notes"]) - book.notes
        notes = await self.stores.notes.get(work.run.thread, names) if names else {}
        held = {name: sorted(set(find_documents(note))) for name, note in notes.items()}
        hashes = {*content["documents"], *(hash for found in held.values() for hash in found)}
        documents = []
        for hash in sorted(hashes - book.documents - work.unknown):
            try:
                documents.append((await self.stores.documents.get(hash)).plain())
            except NotFoundError:
                work.unknown.add(hash)
        lines = [{"name": name, "note": note, "documents": [hash for hash in held[name] if hash not in work.unknown]}
                 for name, note in notes.items()]  # fmt: skip
        if documents or lines:
            await asyncio.to_thread(book.attach, documents, lines)
        return [hash for hash in content["documents"] if hash in book.documents]

    # -- troubles -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _drop_on_error(self, work: _RunJournal) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001
            if work.run.id in self._works:  # told once
                self._drop_journal(work.run.id, error)

    def _drop_journal(self, run: str, error: Exception) -> None:
        """What was written stays; it is gone on with, or set aside, when the run is resumed."""
        self.leave(run)
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.troubles[run] = f"The journal of this run could not be written and is given up: {reason}"
        _log.warning("the journal of run %s could not be written: %s", run, reason)


def _has_content(folder: Path) -> bool:
    """A crash may leave a folder in which nothing stands yet."""
    events = folder / "events.jsonl"
    return (folder / "run.json").exists() or (events.exists() and events.stat().st_size > 0)


# A run as it was, from its journal alone: everything is read and checked before anything is written.
#
# Doing it again after it was interrupted finishes it; what is there already is left alone.

_HALF = "its restoring was interrupted: do it again with openassay resume --from"


class RunRecords(NamedTuple):
    """What a journal holds, as the stores take it."""

    kept: JournalContents
    run: Run
    thread: Thread
    branch: Branch | None
    events: list[Event]
    documents: list[Document]
    accounts: list[list[dict[str, Any]]]


async def read_run_records(folder: Path, seals: Sealer) -> RunRecords:
    """IntegrityError names what in the folder is not as it was written."""
    return await asyncio.to_thread(_read_records, folder, seals)


async def restore_run(found: RunRecords, stores: JournalStores, now: datetime) -> Run:
    """The run, standing still: `Engine.resume` goes on with it, unless it was finished."""
    kept, run = found.kept, found.run
    before = await _check_absent(run, stores)
    for rows in found.accounts:
        await stores.ledger.restore(rows)
    if before is None:
        await _begin_run(found, stores, now)
    await stores.notes.put(run.thread, list(kept.notes.values()))
    for event in found.events[len(await stores.log.since(run.id, 0)) :]:
        await stores.log.append(event)
    last = list(kept.checkpoints)[-1:]
    for label, content in kept.checkpoints.items():
        results = kept.results if label in last else []  # those before have become part of the next
        await restore_checkpoint(stores.checkpointer, run.thread, content, results)
    for document in found.documents:  # last: by now the thread uses them, so nobody takes them for what no thread does
        await stores.documents.put(document)
    for remark in (f"Restored from its journal in {kept.folder.name}.", *kept.remarks):
        await stores.log.append(Event(run=run.id, time=now, kind="notice", data={"text": remark}))
    await stores.threads.update(run.id, status=run.status, stage=run.stage, error=run.error or "")
    return await stores.threads.run(run.id)


def refuse_partial(run: Run) -> None:
    """Before anything goes on: a run whose restoring was interrupted is not what it was."""
    if run.error == _HALF:
        raise StorageError(
            f"run {run.id} is there in part only: its restoring was interrupted",
            help="Do it again with: openassay resume --from DIR, or delete its thread.",
            run=run.id,
        )


async def _check_absent(run: Run, stores: JournalStores) -> Run | None:
    """A run that is here is not touched, unless it was being restored when that was interrupted."""
    try:
        here = await stores.threads.run(run.id)
    except NotFoundError:
        return None
    if here.error == _HALF:
        return here
    raise UsageError(f"run {run.id} is here already", help=f"Go on with: openassay resume {here.thread}")


async def _begin_run(found: RunRecords, stores: JournalStores, now: datetime) -> None:
    changes = {"status": RunStatus.FAILED, "error": _HALF, "finished": found.run.finished or now}
    run = found.run.model_copy(update=changes)
    try:
        await stores.threads.get(run.thread)  # restored with another of its runs
    except NotFoundError:
        await stores.threads.fork(found.thread, run, found.branch)
    else:
        await stores.threads.begin(run)


def _read_records(folder: Path, seals: Sealer) -> RunRecords:
    try:
        kept = read_journal(folder, seals)
    except IntegrityError as error:  # by the name it was given under
        raise IntegrityError(f"{folder}: {error.message}", help=error.help) from error
    try:
        for content in kept.checkpoints.values():
            decode_value(content["checkpoint"])
        events = [Event.model_validate(_drop_key(line, "step")) for line in kept.events]
        thread = kept.thread["thread"]
        found = RunRecords(
            kept,
            _resolve_status(Run.model_validate(kept.run["run"]), events),
            Thread.model_validate(_drop_key(thread, "branch")),
            Branch.model_validate(thread["branch"]) if thread["branch"] else None,
            events,
            [Document.model_validate(document) for document in kept.documents.values()],
            list(_group_accounts(kept.calls)),
        )
        _check_ids(found)
    except (ValidationError, KeyError, ValueError, TypeError) as error:
        raise IntegrityError(
            f"{folder} does not hold what a journal does: {error}", help="Was it written by a newer version?"
        ) from error
    return found


def _check_ids(found: RunRecords) -> None:
    """They become names of files, and say whose rows are written: a journal may come from anybody."""
    run, thread = found.run, found.thread.id
    runs = {found.kept.id, *(event.run for event in found.events)}
    threads = {run.thread, *([found.branch.thread] if found.branch else [])}
    accounts = {str(rows[0]["run"]) for rows in found.accounts} - {*run.options.lineage}
    if not (is_id(run.id) and is_id(thread) and runs | accounts <= {run.id} and threads == {thread}):
        raise ValueError("its ids are not those of one run and its thread")


def _resolve_status(run: Run, events: Iterable[Event]) -> Run:
    """Its last events know better than its row how it ended; one that had not ended waits to be gone on with."""
    said = [RunStatus(str(event.data["status"])) for event in events if event.kind == "run"]
    status = said[-1] if said else run.status
    return run.model_copy(update={"status": status if status in ENDED else RunStatus.QUEUED})


def _group_accounts(lines: Iterable[Mapping[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """For each run its account and then its calls, as they stood last."""
    runs: dict[str, dict[object, dict[str, Any]]] = {}
    for line in lines:
        runs.setdefault(line["run"], {})[(line.get("key"), line.get("time"))] = dict(line)
    for rows in runs.values():
        account = rows.pop((None, None), None)
        if account is not None:
            yield [account, *rows.values()]


def _drop_key(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
