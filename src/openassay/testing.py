"""In-memory fakes of the protocols, for tests of plug-ins and front ends; each passes the contract tests."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, date, datetime
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic_core import to_jsonable_python

from openassay.errors import NotFoundError, SourceError, ThreadBusyError
from openassay.models.event import ENDED, Event, RunStatus, Status
from openassay.models.evidence import Document, DocumentKind, Hit, Passage, ProviderTerms, SearchRequest
from openassay.models.plan import Mode, QueryType
from openassay.models.spend import CostEstimate, Fee, Spend
from openassay.models.thread import (
    AnswerOrigin,
    Branch,
    Cursor,
    ResearchOptions,
    Review,
    Run,
    StopRequest,
    Thread,
    ThreadSummary,
)
from openassay.protocols import Budget, DocumentStore, Emit, Lease, PageResult, SearchAnswer, SpendAccount
from openassay.reasoning.base import Reasoner
from openassay.storage.database import utc_now
from openassay.storage.documents import check_hash, get_only, validate_prefix
from openassay.storage.events import (
    encode_note,
    late_answer_error,
    no_note,
    no_review,
    note_name,
    plain_answer,
    plain_data,
)
from openassay.storage.threads import active_run_error, duplicate_id_error, keeps_stop_request, no_run, no_thread
from openassay.text.sentences import split_passages

# A web of documents: an address gives the document that was put there, or the reason that was.


class FakePages:
    """A ports.Pages. `asked` is every address it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._pages: dict[str, Document | str] = {}

    def put(self, address: str, page: Document | str) -> None:
        self._pages[address] = page

    async def read(self, address: str, *, kind: DocumentKind = "web") -> PageResult:
        self.asked.append(address)
        found = self._pages.get(address, "answered 404")
        if isinstance(found, str):
            return PageResult(address, reason=found)
        return PageResult(address, found.model_copy(update={"kind": kind}))


# A search provider in this process: what it finds, what it costs, and how it fails are told to it.


class FakeRemote:
    """A ports.Remote that gives the same hits to every query; `asked` is what it was asked."""

    def __init__(
        self,
        name: str,
        hits: Sequence[Hit] = (),
        *,
        types: tuple[QueryType, ...] = ("web",),
        fails: SourceError | None = None,
        cached: bool = False,
        micros: int = 0,
        reachable: bool = True,
        stands_in: bool = False,
        one_site: bool = False,
    ) -> None:
        self.name = name
        self.types = types
        self.terms = ProviderTerms(per_minute=600, usd=micros / 1e6)
        self.stands_in = stands_in
        self.one_site = one_site
        self.asked: list[SearchRequest] = []
        self._hits = hits
        self._fails = fails
        self._cached = cached
        self._micros = micros
        self._reachable = reachable

    def is_available(self) -> bool:
        return True

    def is_reachable(self) -> bool:
        return self._reachable

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        return self._build_hits(SearchRequest(query=query, limit=limit))

    async def ask(self, inquiry: SearchRequest, purse: Budget) -> SearchAnswer:
        async def request() -> str:
            self.asked.append(inquiry)
            if self._fails is not None:
                raise self._fails
            return ""

        if not self._cached:
            await purse.buy(Fee(step="search", provider=self.name, request=inquiry.query, micros=self._micros), request)
        return SearchAnswer(self._build_hits(inquiry), cached=self._cached)

    def _build_hits(self, inquiry: SearchRequest) -> list[Hit]:
        hits = self._hits[: inquiry.limit]
        given = {"provider": self.name, "query": inquiry.query}
        return [hit.model_copy(update={**given, "rank": rank}) for rank, hit in enumerate(hits, 1)]


# Documents to find, and a source that finds them.


def make_document(
    text: str, *, title: str = "", url: str = "", kind: DocumentKind = "web", published: date | None = None
) -> Document:
    """A document as a source would keep it: named by its text's hash, its host that of its address."""
    name = hashlib.sha256(text.encode()).hexdigest()
    address = url or f"https://{name[:8]}.example/page"
    return Document(
        hash=name, text=text, url=address, title=title or f"Page {name[:4]}", host=urlsplit(address).hostname or "",
        published=published, fetched=datetime(2025, 1, 1, tzinfo=UTC), kind=kind,
    )  # fmt: skip


class FakeSource:
    """A ports.Source over documents given to it: passages that share a word with the query, most shared first.

    `queries` is what it was asked. `before` runs ahead of every search, and may wait, or raise SourceError.
    """

    def __init__(
        self,
        store: DocumentStore,
        documents: Sequence[Document],
        *,
        name: str = "fake",
        before: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.queries: list[str] = []
        self._store = store
        self._documents = documents
        self._before = before

    def is_available(self) -> bool:
        return True

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        self.queries.append(query)
        if self._before is not None:
            await self._before(query)
        wanted = distinct_words(query)
        found = [
            (len(wanted & distinct_words(f"{document.title} {passage.text}")), document, passage)
            for document in self._documents
            for passage in split_passages(document.hash, document.text)
        ]
        ranked = sorted((item for item in found if item[0]), key=lambda item: (-item[0], item[1].url, item[2].start))
        for _, document, _ in ranked[:limit]:
            await self._store.put(document)
        return [self._build_hit(query, rank, *item) for rank, item in enumerate(ranked[:limit], 1)]

    def _build_hit(self, query: str, rank: int, shared: int, document: Document, passage: Passage) -> Hit:
        return Hit(
            provider=self.name, query=query, rank=rank, url=document.url, title=document.title, host=document.host,
            snippet=passage.text[:200], kind=document.kind, published=document.published, score=float(shared),
            document=document.hash, start=passage.start, end=passage.end,
        )  # fmt: skip


class MemoryDocuments:
    """A ports.DocumentStore."""

    def __init__(self) -> None:
        self.stored: dict[str, Document] = {}

    async def put(self, document: Document) -> None:
        check_hash(document)
        self.stored.setdefault(document.hash, document)

    async def get(self, hash: str) -> Document:
        prefix = validate_prefix(hash)
        document = get_only([kept for key, kept in self.stored.items() if key.startswith(prefix)], hash)
        check_hash(document)
        return document

    async def list_hashes(self, thread: str) -> list[str]:
        """Nobody tells this store who uses what: everything there is."""
        return sorted(self.stored)


class MemoryThreads:
    """A ports.ThreadStore."""

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._threads: dict[str, Thread] = {}
        self._runs: dict[str, Run] = {}
        self._stops: dict[str, StopRequest] = {}
        self._branches: dict[str, Branch] = {}
        self._deleted: set[str] = set()

    async def create(self, thread: Thread) -> None:
        if thread.id in self._threads:
            raise duplicate_id_error("thread", thread.id)
        self._threads[thread.id] = thread

    async def get(self, id: str, *, owner: str | None = None) -> Thread:
        if id not in self._threads or owner not in (None, self._threads[id].owner):
            raise no_thread(id)
        return self._threads[id]

    async def list_recent(self, *, limit: int) -> list[Thread]:
        newest = sorted(self._threads.values(), key=lambda thread: (thread.updated, thread.created), reverse=True)
        return newest[: max(limit, 0)]

    async def overview(
        self, *, limit: int, statuses: Collection[RunStatus] = (), owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:  # fmt: skip
        """What runs have cost is in the books of a ledger, which this store does not know."""
        made = [self._summary(thread) for thread in await self.list_recent(limit=len(self._threads))]
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

    async def list_idle(self, since: datetime, *, limit: int) -> list[str]:
        busy = {run.thread for run in self._runs.values() if run.active}
        idle = [one for one in self._threads.values() if one.updated < since and one.id not in busy]
        return [one.id for one in sorted(idle, key=lambda one: (one.updated, one.id))][: max(limit, 0)]

    async def delete(self, id: str) -> None:
        await self.get(id)
        del self._threads[id]
        self._branches.pop(id, None)
        self._deleted |= set(await self.run_ids(id))
        self._runs = {name: run for name, run in self._runs.items() if run.thread != id}

    async def delete_orphan_documents(self) -> None:
        """Documents are no part of this store."""

    async def run_ids(self, thread: str) -> list[str]:
        return [run.id for run in self._runs.values() if run.thread == thread]

    async def find_deleted_runs(self, runs: Collection[str]) -> set[str]:
        return (self._deleted & set(runs)) - self._runs.keys()

    async def folders(self) -> set[str]:
        return {str(path) for run in self._runs.values() for path in cast("list[object]", run.options.get("docs", ()))}

    async def rename(self, id: str, title: str) -> None:
        self._threads[id] = (await self.get(id)).model_copy(update={"title": title, "updated": self._now()})

    async def list_active(self, *statuses: RunStatus) -> list[Run]:
        runs = [run for run in self._runs.values() if run.active and run.status in (statuses or RunStatus)]
        return sorted(runs, key=lambda run: run.started)

    async def request_stop(self, run: str, stop: StopRequest) -> None:
        self._store_run(await self.run(run))
        self._stops[run] = stop

    async def get_stop_request(self, run: str) -> StopRequest:
        return self._stops.get((await self.run(run)).id, StopRequest.NO)

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
            raise duplicate_id_error("run", run.id)
        self._store_run(Run.model_validate(run.plain()))

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
        self._store_run(before.model_copy(update=changes))
        if status is not None and not keeps_stop_request(before.status, status):
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
        self._store_run((await self.run(run)).model_copy(update={"options": to_jsonable_python(options)}))

    def _store_run(self, run: Run) -> None:
        others = (other for other in self._runs.values() if other.thread == run.thread and other.id != run.id)
        if run.active and any(other.active for other in others):
            raise active_run_error(run.id, run.thread)
        self._runs[run.id] = run
        touched = self._threads[run.thread].model_copy(update={"updated": self._now()})
        self._threads[run.thread] = touched


class MemoryLocks:
    """A ports.RunLocks within one process."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    def acquire(self, thread: str, *, forgive: bool = True) -> Lease:  # nobody falls and leaves it
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

    def crash_count(self, thread: str) -> int:
        return int(thread in self._held)

    def reset_crash_count(self, thread: str) -> None: ...


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
        contents = [encode_note(value) for value in values]
        named = {note_name(content): content for content in contents}
        self._notes[thread] = {**self._notes.get(thread, {}), **named}
        return [note_name(content) for content in contents]

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
        await self._drop_orphans()
        if id not in self._reviews:
            raise no_review(id)
        return self._reviews[id]

    async def pending(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        await self._drop_orphans()
        ended = {run.id for run in self._threads._runs.values() if run.status in ENDED}
        asked = [one for one in self._reviews.values() if one.answered is None and one.run not in ended]
        still = [one for one in asked if thread in (None, one.thread)]
        if owner is not None:
            still = [one for one in still if (await self._threads.get(one.thread)).owner == owner]
        dated = sorted((one for one in still if one.due), key=lambda one: (one.due, one.opened))
        return dated + sorted((one for one in still if not one.due), key=lambda one: one.opened)

    async def latest(self, thread: str) -> Review | None:
        await self._drop_orphans()
        asked = [one for one in reversed(self._reviews.values()) if one.thread == thread]
        return max(asked, key=lambda one: one.opened, default=None)

    async def accept_answer(self, id: str, answer: Any, by: AnswerOrigin, now: datetime) -> Review:
        answer = plain_answer(answer)
        review = await self.get(id)
        if review.answered or (by == "person" and review.due and now >= review.due):
            raise late_answer_error(review)
        self._reviews[id] = review.model_copy(update={"answered": now, "answer": answer, "by": by})
        return self._reviews[id]

    async def _drop_orphans(self) -> None:
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


# Thinking that is settled beforehand: one reasoner for every run, and an account that is what a test says.


class FreeAccount:
    """A ports.Account of a run that costs nothing; a test may change what it says."""

    def __init__(self, spend: Spend | None = None, *, gone: bool = False) -> None:
        self.spend = spend or Spend()
        self.gone = gone
        self.fees: list[Fee] = []

    async def get_spend(self) -> Spend:
        return self.spend

    async def is_exhausted(self) -> bool:
        return self.gone

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        self.fees.append(fee)
        return await request()


class SingleReasonerFactory:
    """A deps.Thinking with the same reasoner for every run."""

    def __init__(self, reasoner: Reasoner, account: SpendAccount | None = None, *, usd: float = 0.0) -> None:
        self._reasoner = reasoner
        self._account = account or FreeAccount()
        self.usd = usd

    def notices(self, options: ResearchOptions) -> dict[str, str]:
        return {}

    def estimate(self, options: ResearchOptions) -> CostEstimate:
        return CostEstimate(model=self._reasoner.name, usd=self.usd, most_usd=self.usd, calls=0, tokens=0, seconds=0)

    def pin_options(self, options: ResearchOptions) -> ResearchOptions:
        return options

    def may_trace(self, options: ResearchOptions) -> bool:
        return True

    def open(self, run: Run, emit: Emit) -> tuple[Reasoner, SpendAccount]:
        return self._reasoner, self._account

    async def close(self) -> None:
        pass


def distinct_words(text: str) -> set[str]:
    letters = (c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return set(re.findall(r"[^\W_]+", "".join(letters)))
