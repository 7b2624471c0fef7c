"""The stores in memory."""

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from time import monotonic
from typing import Any, cast

from pydantic_core import to_jsonable_python

from assay.errors import NotFoundError, ThreadBusyError
from assay.model.event import ENDED, Event, RunStatus, Status
from assay.model.question import Mode
from assay.model.review import By, Review
from assay.model.source import Document
from assay.model.thread import Branch, Cursor, Run, Stop, Thread, ThreadSummary
from assay.ports import Lease
from assay.storage.database import utc_now
from assay.storage.documents import check_hash, checked_prefix, the_only
from assay.storage.events import plain_data
from assay.storage.notes import name_of, no_note, written
from assay.storage.reviews import no_review, plain_answer, refusal
from assay.storage.threads import another_is_active, is_still_asked, no_run, no_thread, taken


class MemoryDocuments:
    """A ports.DocumentStore."""

    def __init__(self) -> None:
        self.stored: dict[str, Document] = {}

    async def put(self, document: Document) -> None:
        check_hash(document)
        self.stored.setdefault(document.hash, document)

    async def get(self, hash: str) -> Document:
        prefix = checked_prefix(hash)
        document = the_only([kept for key, kept in self.stored.items() if key.startswith(prefix)], hash)
        check_hash(document)
        return document

    async def used(self, thread: str) -> list[str]:
        """Nobody tells this store who uses what: everything there is."""
        return sorted(self.stored)


class MemoryThreads:
    """A ports.ThreadStore."""

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._threads: dict[str, Thread] = {}
        self._runs: dict[str, Run] = {}
        self._stops: dict[str, Stop] = {}
        self._branches: dict[str, Branch] = {}
        self._deleted: set[str] = set()

    async def create(self, thread: Thread) -> None:
        if thread.id in self._threads:
            raise taken("thread", thread.id)
        self._threads[thread.id] = thread

    async def get(self, id: str, *, owner: str | None = None) -> Thread:
        if id not in self._threads or owner not in (None, self._threads[id].owner):
            raise no_thread(id)
        return self._threads[id]

    async def recent(self, *, limit: int) -> list[Thread]:
        newest = sorted(self._threads.values(), key=lambda thread: (thread.updated, thread.created), reverse=True)
        return newest[: max(limit, 0)]

    async def overview(
        self, *, limit: int, statuses: Collection[RunStatus] = (), owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:  # fmt: skip
        """What runs have cost is in the books of a ledger, which this store does not know."""
        made = [self._summary(thread) for thread in await self.recent(limit=len(self._threads))]
        mine = [one for one in made if owner in (None, one.owner) and (not statuses or one.status in statuses)]
        rest = [one for one in mine if after is None or (one.updated, one.id) < after]
        return sorted(rest, key=lambda one: (one.updated, one.id), reverse=True)[: max(limit, 0)]

    def _summary(self, thread: Thread) -> ThreadSummary:
        runs = [run for run in self._runs.values() if run.thread == thread.id]
        last = runs[-1] if runs else None
        branch = self._branches.get(thread.id)
        return ThreadSummary(
            **thread.model_dump(exclude={"mode"}), status=last.status if last else None,
            question=last.question if last else "", turns=len(runs), parent=branch.parent if branch else None,
        )  # fmt: skip

    async def untouched(self, since: datetime, *, limit: int) -> list[str]:
        busy = {run.thread for run in self._runs.values() if run.active}
        idle = [one for one in self._threads.values() if one.updated < since and one.id not in busy]
        return [one.id for one in sorted(idle, key=lambda one: (one.updated, one.id))][: max(limit, 0)]

    async def delete(self, id: str) -> None:
        await self.get(id)
        del self._threads[id]
        self._branches.pop(id, None)
        self._deleted |= set(await self.run_ids(id))
        self._runs = {name: run for name, run in self._runs.items() if run.thread != id}

    async def sweep(self) -> None:
        """Documents are no part of this store."""

    async def run_ids(self, thread: str) -> list[str]:
        return [run.id for run in self._runs.values() if run.thread == thread]

    async def deleted(self, runs: Collection[str]) -> set[str]:
        return (self._deleted & set(runs)) - self._runs.keys()

    async def folders(self) -> set[str]:
        return {str(path) for run in self._runs.values() for path in cast("list[object]", run.options.get("docs", ()))}

    async def rename(self, id: str, title: str) -> None:
        self._threads[id] = (await self.get(id)).model_copy(update={"title": title, "updated": self._now()})

    async def active(self, *statuses: RunStatus) -> list[Run]:
        runs = [run for run in self._runs.values() if run.active and run.status in (statuses or RunStatus)]
        return sorted(runs, key=lambda run: run.started)

    async def ask_to_stop(self, run: str, stop: Stop) -> None:
        self._keep(await self.run(run))
        self._stops[run] = stop

    async def stopping(self, run: str) -> Stop:
        return self._stops.get((await self.run(run)).id, Stop.NO)

    async def add_branch(self, branch: Branch) -> None:
        await self.get(branch.thread)
        self._branches[branch.thread] = Branch.model_validate(branch.plain())

    async def fork(
        self, thread: Thread, run: Run, branch: Branch | None = None, copy: Callable[[], None] = lambda: None
    ) -> None:
        await self.create(thread)
        try:
            await self.begin(run)
            if branch:
                await self.add_branch(branch)
            copy()
        except BaseException:
            await self.delete(thread.id)
            raise

    async def branch(self, thread: str) -> Branch | None:
        return self._branches.get(thread)

    async def branches(self, parent: str) -> list[Branch]:
        found = [branch for branch in self._branches.values() if branch.parent == parent]
        return sorted(found, key=lambda branch: (branch.created, branch.thread))

    async def begin(self, run: Run) -> None:
        await self.get(run.thread)
        if run.id in self._runs:
            raise taken("run", run.id)
        self._keep(Run.model_validate(run.plain()))

    async def update(
        self,
        run: str,
        *,
        status: RunStatus | None = None,
        stage: Status | None = None,
        error: str | None = None,
    ) -> None:
        before = await self.run(run)
        goes_on = status is not None and status not in ENDED
        finished = None if goes_on else before.finished or (self._now() if status in ENDED else None)
        kept_error = None if goes_on and before.finished else before.error
        changes = {
            "status": status or before.status,
            "stage": stage or before.stage,
            "error": kept_error if error is None else error,
            "finished": finished,
        }
        self._keep(before.model_copy(update=changes))
        if status is not None and not is_still_asked(before.status, status):
            self._stops.pop(run, None)

    async def run(self, id: str) -> Run:
        if id not in self._runs:
            raise no_run(id)
        return self._runs[id]

    async def runs(self, thread: str) -> list[Run]:
        await self.get(thread)
        return sorted((run for run in self._runs.values() if run.thread == thread), key=lambda run: run.started)

    async def set_mode(self, thread: str, mode: Mode) -> None:
        changes = {"mode": mode, "updated": self._now()}
        self._threads[thread] = (await self.get(thread)).model_copy(update=changes)

    async def set_options(self, run: str, options: dict[str, object]) -> None:
        self._keep((await self.run(run)).model_copy(update={"options": to_jsonable_python(options)}))

    def _keep(self, run: Run) -> None:
        others = (other for other in self._runs.values() if other.thread == run.thread and other.id != run.id)
        if run.active and any(other.active for other in others):
            raise another_is_active(run.id, run.thread)
        self._runs[run.id] = run
        touched = self._threads[run.thread].model_copy(update={"updated": self._now()})
        self._threads[run.thread] = touched


class MemoryLocks:
    """A ports.RunLocks within one process."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    def take(self, thread: str, *, forgive: bool = True) -> Lease:  # nobody falls and leaves it
        if thread in self._held:
            raise ThreadBusyError(f"thread {thread} is being worked on")
        self._held.add(thread)
        return Lease(thread)

    def release(self, thread: str) -> None:
        self._held.discard(thread)

    def holds(self, thread: str) -> bool:
        return thread in self._held

    def is_free(self, thread: str) -> bool:
        return thread not in self._held

    def falls(self, thread: str) -> int:
        return int(thread in self._held)

    def progressed(self, thread: str) -> None: ...


class MemoryEvents:
    """A ports.EventLog of the runs of a MemoryThreads."""

    def __init__(self, threads: MemoryThreads) -> None:
        self._threads = threads
        self._events: dict[str, list[Event]] = {}

    async def append(self, event: Event) -> Event:
        await self._threads.run(event.run)
        log = self._events.setdefault(event.run, [])
        log.append(event.model_copy(update={"seq": len(log) + 1, "data": plain_data(event)}))
        return log[-1]

    async def since(self, run: str, seq: int) -> list[Event]:
        try:
            await self._threads.run(run)
        except NotFoundError:  # its events went with its thread
            return []
        return self._events.get(run, [])[max(seq, 0) :]


class MemoryNotes:
    """A ports.Notes."""

    def __init__(self) -> None:
        self._notes: dict[str, dict[str, bytes]] = {}

    async def put(self, thread: str, values: Sequence[Any]) -> list[str]:
        contents = [written(value) for value in values]
        named = {name_of(content): content for content in contents}
        self._notes[thread] = {**self._notes.get(thread, {}), **named}
        return [name_of(content) for content in contents]

    async def get(self, thread: str, names: Collection[str]) -> dict[str, Any]:
        kept = self._notes.get(thread, {})
        if missing := sorted(set(names) - kept.keys()):
            raise no_note(thread, missing[0])
        return {name: json.loads(kept[name]) for name in names}


class MemoryReviews:
    """A ports.ReviewStore of the threads of a MemoryThreads."""

    def __init__(self, threads: MemoryThreads) -> None:
        self._threads = threads
        self._reviews: dict[str, Review] = {}

    async def open(self, review: Review) -> None:
        await self._threads.get(review.thread)
        self._reviews.setdefault(review.id, review.model_copy(update={"answer": plain_answer(review.answer)}))

    async def get(self, id: str) -> Review:
        await self._drop_those_of_deleted_threads()
        if id not in self._reviews:
            raise no_review(id)
        return self._reviews[id]

    async def pending(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        await self._drop_those_of_deleted_threads()
        ended = {run.id for run in self._threads._runs.values() if run.status in ENDED}
        asked = [one for one in self._reviews.values() if one.answered is None and one.run not in ended]
        still = [one for one in asked if thread in (None, one.thread)]
        if owner is not None:
            still = [one for one in still if (await self._threads.get(one.thread)).owner == owner]
        dated = sorted((one for one in still if one.due), key=lambda one: (one.due, one.opened))
        return dated + sorted((one for one in still if not one.due), key=lambda one: one.opened)

    async def latest(self, thread: str) -> Review | None:
        await self._drop_those_of_deleted_threads()
        asked = [one for one in reversed(self._reviews.values()) if one.thread == thread]
        return max(asked, key=lambda one: one.opened, default=None)

    async def take(self, id: str, answer: Any, by: By, now: datetime) -> Review:
        answer = plain_answer(answer)
        review = await self.get(id)
        if review.answered or (by == "person" and review.due and now >= review.due):
            raise refusal(review)
        self._reviews[id] = review.model_copy(update={"answered": now, "answer": answer, "by": by})
        return self._reviews[id]

    async def _drop_those_of_deleted_threads(self) -> None:
        for id, review in list(self._reviews.items()):
            try:
                await self._threads.get(review.thread)
            except NotFoundError:
                del self._reviews[id]


class MemoryCache:
    """A ports.Cache that forgets nothing before its time."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._values: dict[str, tuple[bytes, float]] = {}
        self._counters: dict[str, tuple[int, float]] = {}

    async def get(self, key: str) -> bytes | None:
        value, ends = self._values.get(key, (b"", 0.0))
        return value if self._clock() < ends else None

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        self._values[key] = value, self._clock() + seconds

    async def count(self, key: str, *, seconds: float) -> int:
        value, ends = self._counters.get(key, (0, 0.0))
        if self._clock() >= ends:
            value, ends = 0, self._clock() + seconds
        self._counters[key] = value + 1, ends
        return value + 1
