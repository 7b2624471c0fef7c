"""Keeping the journal of runs at work: what is in the database already is copied into the folder of the run.

The database decides how a run goes on; a journal that cannot be written is given up, and the run is told.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from assay.checkpoints import snapshots
from assay.checkpoints.saver import Checkpoints
from assay.errors import AssayError, IntegrityError, NotFoundError, UsageError
from assay.journal import Book, Kept, Progress, Sealing, discard, exchange, read, run_of, set_aside
from assay.model.event import Event
from assay.model.thread import Options, Run, is_id
from assay.notebook import Notebook
from assay.ports import DocumentStore, EventLog, Ledger, Notes, ThreadStore
from assay.storage.notes import documents_in

_log = logging.getLogger("assay")
_NEW = ".new"  # where journals are written before they take the place of others

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stores:
    """What a journal is a copy of."""

    threads: ThreadStore
    log: EventLog
    documents: DocumentStore
    notes: Notes
    ledger: Ledger
    checkpointer: Checkpoints


@dataclass(slots=True)
class _Work:
    run: Run
    book: Book
    progress: Progress
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    unknown: set[str] = field(default_factory=set)  # hashes that are none of a document


class Recorder:
    """`troubles` says, once for each run whose journal was given up, why."""

    def __init__(self, root: Path, seals: Sealing, stores: Stores, *, is_kept: bool = True) -> None:
        self.seals = seals
        self.stores = stores
        self.troubles: dict[str, str] = {}
        self._root = root
        self._is_kept = is_kept
        self._works: dict[str, _Work] = {}

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
            kept, notices = await self._before(run)
            book = await asyncio.to_thread(Book, self.folder(run.id), run.id, self.seals, kept)
            work = self._works[run.id] = _Work(run, book, Progress(run.thread))
            await self._begin(work, kept)
            await self._catch_up(work)
        except Exception as error:  # noqa: BLE001  # it is a copy: whatever is wrong with it stops no run
            self._give_up(run.id, error)
            return []
        self.stores.checkpointer.watchers[run.thread] = snapshots.Watch(
            partial(self._watched, work), partial(self._brought, work)
        )
        return notices

    def appended(self, event: Event) -> None:
        """In the thread that appended it, which saves two more: the next one is written at once, others by `event`."""
        work = self._works.get(event.run)
        if work and event.seq == work.book.told + 1:
            with self._giving_up(work):
                self._write_events(work, [event])

    async def event(self, event: Event) -> None:
        """Events of tasks that run at once may come in any order; they are written in theirs."""
        work = self._works.get(event.run)
        if work and event.seq > work.book.told:
            with self._giving_up(work):
                async with work.turn:
                    await self._events(work, event)

    def call(self, row: Mapping[str, Any]) -> None:
        """An account or a call of the ledger, whenever it changes; in the thread that changed it."""
        if work := self._works.get(str(row["run"])):
            with self._giving_up(work):
                work.book.calls([{name: value for name, value in row.items() if name != "id"}])

    async def close(self, run: str) -> None:
        """The run stands still."""
        work = self._works.get(run)
        if work is None:
            return
        with self._giving_up(work):
            async with work.turn:
                await self._catch_up(work)  # whoever was cancelled may have left something out
                await self._rows(work, await self.stores.threads.run(run))
                await asyncio.to_thread(work.book.tell, work.progress.ending())
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
        if self._is_kept and run.id not in self._works and await self._lags(run):
            await self.copy(run)

    async def _lags(self, run: Run) -> bool:
        if not await asyncio.to_thread(_is_begun, self.folder(run.id)):
            return True
        with contextlib.suppress(IntegrityError):  # a damaged one is left as it is, for `verify` to tell of
            kept = await asyncio.to_thread(read, self.folder(run.id), self.seals)
            return bool(await self.stores.log.since(run.id, kept.events[-1]["seq"] if kept.events else 0))
        return False

    async def tidy(self) -> None:
        """Journals of runs that went with their thread on another machine. One of a run that the database never knew,
        or has lost, may be all that is left of it, and stays."""
        kept = set(await asyncio.to_thread(self.runs)) - self._works.keys()
        for run in await self.stores.threads.deleted(kept):
            await self.delete(run)

    async def renew(self) -> None:
        """All journals, when the database is sealed or encrypted in another way than they are. Each gives way, with
        what was set aside of it, to one that is whole. One of a run that the database does not know may be all that is
        left of it, and stays."""
        new = Recorder(self._root / _NEW, self.seals, self.stores)
        await asyncio.to_thread(discard, self._root / _NEW)
        for id in await asyncio.to_thread(self.runs):
            try:
                run = await self.stores.threads.run(id)
            except NotFoundError:
                _log.warning("%s is left as it was: the database does not know this run", self.folder(id))
                continue
            await new.copy(run)
            if id not in new.troubles:
                await asyncio.to_thread(exchange, self.folder(id), new.folder(id))
        await asyncio.to_thread(discard, self._root / _NEW)

    async def delete(self, run: str) -> None:
        """With what was set aside of it."""
        if work := self._works.pop(run, None):
            self.stores.checkpointer.watchers.pop(work.run.thread, None)
            await asyncio.to_thread(work.book.close)
        with contextlib.suppress(NotFoundError):  # a row that was altered names no folder of ours
            await asyncio.to_thread(discard, self.folder(run))

    async def verify(self, run: str) -> list[str]:
        """What is wrong with the journal of a run; nothing where it has none."""
        if not await asyncio.to_thread(_is_begun, self.folder(run)):
            return []
        try:
            await asyncio.to_thread(read, self.folder(run), self.seals)
        except AssayError as error:
            return [f"journal of run {run}: {error.message}"]
        return []

    def runs(self) -> list[str]:
        """Those that have a journal, or had one that was set aside."""
        folders = self._root.iterdir() if self._root.is_dir() else ()
        return sorted({run_of(folder) for folder in folders if folder.is_dir() and is_id(run_of(folder))})

    # -- going on -----------------------------------------------------------------------------------------

    async def _before(self, run: Run) -> tuple[Kept | None, list[str]]:
        folder, kept = self.folder(run.id), None
        if not await asyncio.to_thread(_is_begun, folder):
            return None, []
        try:
            kept = await asyncio.to_thread(read, folder, self.seals)
            reason = await self._ahead(run, kept)
        except (IntegrityError, UsageError) as error:
            reason = error.message
        if reason is None:
            return kept, []
        aside = await asyncio.to_thread(set_aside, folder)
        return None, [f"The journal of this run was set aside as {aside.name} and is written anew: {reason}."]

    async def _ahead(self, run: Run, kept: Kept) -> str | None:
        """Whether the journal tells another story than the database, or more of it."""
        told = [(line["seq"], line["kind"], line["data"]) for line in kept.events]
        known = [(event.seq, event.kind, event.data) for event in await self.stores.log.since(run.id, 0)]
        if told == known[: len(told)]:
            return None
        return "it tells of what the database does not know, as if that had been put back"

    async def _begin(self, work: _Work, kept: Kept | None) -> None:
        await self._rows(work, work.run)
        if kept is None:
            await asyncio.to_thread(work.book.tell, work.progress.opening(work.run.question, work.run.started))
            return
        for event in kept.events:  # told before, by whoever wrote the page so far
            work.progress.event(event["kind"], event["stage"], event["data"])
        work.progress.ending()
        for content in kept.checkpoints.values():
            work.progress.plan(content["checkpoint"]["channel_values"].get("plan"))

    async def _catch_up(self, work: _Work) -> None:
        """All that the database has and the folder does not."""
        book, run = work.book, work.run
        await self._events(work, None)
        for owner in (run.id, *Options.model_validate(run.options).lineage):
            await asyncio.to_thread(book.calls, await self.stores.ledger.export(owner))
        known = book.labels.__contains__
        for content, results in await snapshots.newest(self.stores.checkpointer, run.thread, run.id, known):
            id = content["id"]
            if not known(id):
                await self._checkpoint(work, content)
                await self._tell(work, content["checkpoint"]["channel_values"].get("read"))
            for result in results:
                if result["task"] not in book.tasks:
                    await self._result(work, id, result)

    # -- what is written ----------------------------------------------------------------------------------

    async def _watched(self, work: _Work, make: Callable[[], Plain]) -> None:
        with self._giving_up(work):
            async with work.turn:
                await self._checkpoint(work, await asyncio.to_thread(make))

    async def _brought(self, work: _Work, checkpoint: str, make: Callable[[], Plain | None]) -> None:
        with self._giving_up(work):
            async with work.turn:
                result = make() if checkpoint in work.book.labels else None
                if result:
                    await self._result(work, checkpoint, result)

    async def _rows(self, work: _Work, run: Run) -> None:
        thread = await self.stores.threads.get(run.thread)
        branch = await self.stores.threads.branch(run.thread)
        held = {**thread.plain(), "branch": branch.plain() if branch else None}
        await asyncio.to_thread(work.book.rows, run.plain(), held)

    async def _events(self, work: _Work, event: Event | None) -> None:
        told = work.book.told
        if event and event.seq <= told:
            return
        next_one = event and event.seq == told + 1
        fresh = [event] if event and next_one else await self.stores.log.since(work.run.id, told)
        await asyncio.to_thread(self._write_events, work, fresh)

    @staticmethod
    def _write_events(work: _Work, events: Sequence[Event]) -> None:
        new = work.book.event([event.plain() for event in events])
        work.book.tell("".join(work.progress.event(one["kind"], one["stage"], one["data"]) for one in new))

    async def _checkpoint(self, work: _Work, content: Plain) -> None:
        content["documents"] = await self._attach(work, content)
        await asyncio.to_thread(work.book.checkpoint, {"run": work.run.id, "thread": work.run.thread, **content})
        if text := work.progress.plan(content["checkpoint"]["channel_values"].get("plan")):
            await asyncio.to_thread(work.book.tell, text)

    async def _result(self, work: _Work, checkpoint: str, result: Plain) -> None:
        result["documents"] = await self._attach(work, result)
        await asyncio.to_thread(work.book.result, checkpoint, result)
        for channel, value in result["writes"]:
            if channel == "read":
                await self._tell(work, value)

    async def _tell(self, work: _Work, read: Mapping[str, Any] | None) -> None:
        if read and work.progress.is_news(read):
            await asyncio.to_thread(work.book.tell, await self._finished(work, read))

    async def _finished(self, work: _Work, value: Mapping[str, Any]) -> str:
        """For the page: sub-questions that were read."""
        whole = await Notebook(self.stores.notes, work.run.thread).whole({"read": value})
        names = {finding["span"]["document"] for findings in whole["read"].values() for finding in findings}
        titles = {name: (await self.stores.documents.get(name)).title for name in sorted(names)}
        return "".join(work.progress.finished(task, findings, titles) for task, findings in whole["read"].items())

    async def _attach(self, work: _Work, content: Mapping[str, Any]) -> list[str]:
        """Write what a content refers to, and is not there yet; the documents it refers to itself."""
        book = work.book
        names = set(content["notes"]) - book.notes
        notes = await self.stores.notes.get(work.run.thread, names) if names else {}
        held = {name: sorted(set(documents_in(note))) for name, note in notes.items()}
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
    def _giving_up(self, work: _Work) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001
            if work.run.id in self._works:  # told once
                self._give_up(work.run.id, error)

    def _give_up(self, run: str, error: Exception) -> None:
        """What was written stays; it is gone on with, or set aside, when the run is resumed."""
        self.leave(run)
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.troubles[run] = f"The journal of this run could not be written and is given up: {reason}"
        _log.warning("the journal of run %s could not be written: %s", run, reason)


def _is_begun(folder: Path) -> bool:
    """A crash may leave a folder in which nothing stands yet."""
    events = folder / "events.jsonl"
    return (folder / "run.json").exists() or (events.exists() and events.stat().st_size > 0)
