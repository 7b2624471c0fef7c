"""Threads and the runs on them: asked, listed, answered, stopped, deleted."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import AfterValidator, Field, StrictBool

from openassay.engine.diff import ReportDiff
from openassay.engine.start import make_title
from openassay.engine.view import StateView
from openassay.errors import NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.evidence import Document, DocumentKind
from openassay.models.plan import Depth, Mode, Style, parse_edits
from openassay.models.report import ReportData
from openassay.models.spend import CostEstimate
from openassay.models.thread import (
    LONGEST_DELIVERABLE,
    BranchChanges,
    BranchTree,
    Cursor,
    Priority,
    Thread,
    ThreadSummary,
    is_id,
)
from openassay.server import responses, runs
from openassay.server.auth import Caller, OwnThread, Principal, Reader, VisibleThread, WritableThread, Writer
from openassay.server.bodies import (
    NOT_MODIFIED,
    Body,
    Id,
    JsonData,
    ReadableText,
    refusals,
    require_shallow,
    with_examples,
)
from openassay.server.idempotency import Idempotency
from openassay.server.problems import MalformedError
from openassay.server.redact import hide_file_urls, redact_report, redact_report_for_link
from openassay.server.reports import RunQuery, load_report
from openassay.server.responses import IfMatch, to_json_bytes
from openassay.server.runs import RunBody, StartResponse, to_run_body, wait_for_start
from openassay.server.schemas import (
    EXAMPLE,
    Documents,
    Name,
    QuestionRequest,
    ThreadBody,
    Usd,
    Words,
    cursor_of,
    decode_cursor,
    encode_cursor,
    end_of,
    load_thread_body,
    resolve_documents,
)
from openassay.server.service import Service, ServiceDep
from openassay.storage.threads import no_thread
from openassay.text.words import fold

# What a thread has come to: its state at any moment, its report, and the documents that it rests on.

state_router = APIRouter(tags=["state"])
CONTEXT = 400  # characters shown before and after a passage
MOST_OFFSET = 1 << 40

Checkpoint = Annotated[
    str | None,
    Query(
        pattern="^[0-9a-fA-F-]{1,36}$",
        description="A moment of the history: its checkpoint, the beginning of that, or its number.",
        examples=["3"],
    ),
]


class StateBody(Body):
    """`values`: see the reference of the state view; `next`: the stages that are due."""

    model_config = with_examples("""
        {"values": {"status": "searching", "user_inputs": {"goal": "How did Tesla's deliveries change over 2023?"}},
        "next": ["fuse"], "checkpointId": "1f0a5b1e-0000-6000-8000-000000000000"}
        """)

    values: StateView
    next: tuple[str, ...]
    checkpoint_id: str | None


@state_router.get(
    "/api/threads/{threadId}/state",
    summary="The state of a thread",
    response_model=StateBody,
    responses={**refusals(404, 409), **NOT_MODIFIED},
)
async def get_state(
    thread: OwnThread, service: ServiceDep, request: Request, checkpoint: Checkpoint = None
) -> Response:
    """As it is now, or was at a moment of its history."""
    view = await _load_view(service, thread, checkpoint)
    told = {"values": hide_file_urls(view.plain()), "next": list(view.next), "checkpointId": view.checkpoint}
    return responses.respond_with_etag(request, told)


async def _load_view(service: Service, thread: Thread, checkpoint: str | None) -> StateView:
    if checkpoint is None:
        return await service.engine.view(thread.id)
    try:
        return await service.engine.view_at(thread.id, checkpoint)
    except NotFoundError as error:  # which may tell whose it is
        raise no_checkpoint() from error


def no_checkpoint() -> NotFoundError:
    return NotFoundError("this thread has no such checkpoint", help="Look at its history.")


@state_router.get(
    "/api/threads/{threadId}/report",
    summary="The report",
    response_model=ReportData,
    responses={**refusals(404), **NOT_MODIFIED},
)
async def get_report(
    thread: VisibleThread, caller: Caller, service: ServiceDep, request: Request, run: RunQuery = None
) -> Response:
    """The latest that is finished, or that of an earlier run, as a structure: every sentence with the claims, and every
    claim with the spans of documents, that it rests on. A link shows the latest, without its plan, queries and
    checkpoints."""
    shown = redact_report if caller.share is None else redact_report_for_link
    report = await load_report(service, caller, thread, run)
    return responses.respond_with_etag(request, shown(report, service.redaction).plain())


# Documents -----------------------------------------------------------------------------------------------

Hash = Annotated[str, Path(pattern="^[0-9a-fA-F]{8,64}$", description="The hash of a document, or its beginning.")]
Offset = Annotated[int | None, Query(ge=0, le=MOST_OFFSET, description="In characters of the document's text.")]


class DocumentText(Body):
    """`text` goes from `start` to `end` of a document that has `length` characters; the passage that was asked for
    stands at `passage`, both counted from the beginning of the document."""

    model_config = with_examples("""
        {"hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "title": "Annual report",
        "url": "https://example.com/annual-report", "host": "example.com", "kind": "web", "author": null,
        "published": "2024-01-31", "fetched": "2026-01-01T12:00:10Z", "length": 48211, "start": 1200, "end": 2200,
        "text": "... rose by 38 percent ...", "passage": [1600, 1800]}
        """)

    hash: str
    title: str
    url: str
    host: str = ""
    kind: DocumentKind
    author: str | None = None
    published: date | None = None
    fetched: datetime
    length: int
    start: int
    end: int
    text: str
    passage: tuple[int, int] | None = Field(default=None)


@state_router.get(
    "/api/threads/{threadId}/documents/{hash}",
    summary="A document it rests on",
    response_model=DocumentText,
    responses={**refusals(404), **NOT_MODIFIED},
)
async def read_document(
    hash: Hash,
    thread: VisibleThread,
    caller: Caller,
    service: ServiceDep,
    request: Request,
    start: Offset = None,
    end: Offset = None,
) -> Response:
    """All of its text, or a passage with what stands around it. Somebody with a link sees the passages that the report
    cites, and nothing around them."""
    if (start is None) is not (end is None) or (start is not None and end is not None and start >= end):
        raise MalformedError("a passage goes from a start to an end behind it")
    document = await service.engine.document(hash, thread=thread.id)
    place = (start, end) if start is not None and end is not None else None
    if caller.share is not None and not await _is_cited(service, thread, document.hash, place):
        raise NotFoundError("the report cites no such passage", help="Its claims list those that it does.")
    return responses.respond_with_etag(
        request, _to_document_text(document, place, CONTEXT if caller.share is None else 0)
    )


async def _is_cited(service: Service, thread: Thread, document: str, place: tuple[int, int] | None) -> bool:
    claims = (await service.engine.report(thread.id)).claims
    spans = [span for claim in claims for span in (*claim.spans, *claim.against) if span.document == document]
    return place is not None and any(span.start <= place[0] and place[1] <= span.end for span in spans)


def _to_document_text(document: Document, place: tuple[int, int] | None, around: int) -> DocumentText:
    length = len(document.text)
    if place is not None and place[1] > length:
        raise NotFoundError(f"the document has {length:,} characters", help="Name a passage of it.")
    first, last = (max(place[0] - around, 0), min(place[1] + around, length)) if place else (0, length)
    return DocumentText(
        hash=document.hash,
        title=document.title,
        url=hide_file_urls(document.url),
        host=document.host,
        kind=document.kind,
        author=document.author,
        published=document.published,
        fetched=document.fetched,
        length=length,
        start=first,
        end=last,
        text=document.text[first:last],
        passage=place,
    )


# Time travel: the moments of a thread, branches that begin at one, and what two reports tell differently.

history_router = APIRouter(tags=["history"])
HISTORY_PAGE, MAX_HISTORY = 30, 500
MOST_WITHOUT = 100


class MomentBody(Body):
    model_config = with_examples("""
        {"checkpoint": "1f0a5b1e-0000-6000-8000-000000000000", "short": "1f0a5b1e", "number": 3,
        "time": "2026-01-01T12:00:08Z", "run": "a1b2c3d4e5f6", "after": ["plan"], "next": ["dispatch"],
        "begins": false, "planned": true, "round": 0, "iteration": 0, "summary": "3 sub-questions", "usd": 0.04}
        """)

    checkpoint: str
    short: str
    number: int
    time: datetime
    run: str
    after: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    begins: bool = False
    planned: bool = False
    round: int = 0
    iteration: int = 0
    summary: str = ""
    usd: float = Field(default=0.0, description="Spent by its run until then.")


class HistoryBody(Body):
    moments: tuple[MomentBody, ...]


@history_router.get("/api/threads/{threadId}/history", summary="The moments of a thread", responses=refusals(404))
async def get_history(
    thread: OwnThread,
    service: ServiceDep,
    limit: Annotated[int, Query(ge=1, le=MAX_HISTORY)] = HISTORY_PAGE,
    run: Annotated[Id | None, Query(description="Of this run alone.")] = None,
) -> HistoryBody:
    """The newest comes last; `limit` counts from there."""
    try:
        found = await service.engine.history(thread.id, limit=limit, run=run)
    except UsageError as error:
        if isinstance(error, NotFoundError):
            raise
        found = []  # nothing was asked, or done, on it yet
    return HistoryBody(moments=tuple(MomentBody(**dict(moment)) for moment in found))


class BranchBody(Body):
    """A thread with the branches that began on it."""

    model_config = with_examples("""
        {"thread": "4f1c2a9b7d3e", "title": "How did Tesla's deliveries change over 2023?", "status": "done",
        "usd": 0.31, "parent": null, "ofDeleted": false, "changed": "", "moment": "", "checkpoint": null,
        "branches": []}
        """)

    thread: str
    title: str
    status: RunStatus | None = None
    usd: float = 0.0
    parent: str | None = None
    of_deleted: bool = False
    changed: str = ""
    moment: str = Field(default="", description="Of the parent, at which it began, in words.")
    checkpoint: str | None = Field(default=None, description="Of that moment: one of the parent's history.")
    branches: tuple["BranchBody", ...] = ()


@history_router.get("/api/threads/{threadId}/branches", summary="The tree a thread is part of", responses=refusals(404))
async def get_branches(thread: OwnThread, service: ServiceDep) -> BranchBody:
    """From its root on. A branch belongs to whom its parent belongs to."""
    return _to_branch(await service.engine.tree(thread.id))


def _to_branch(tree: BranchTree) -> BranchBody:
    own = tree.model_dump(exclude={"branches"})
    return BranchBody(**hide_file_urls(own), branches=tuple(map(_to_branch, tree.branches)))


# Branching -----------------------------------------------------------------------------------------------


Data = Annotated[dict[str, Any], AfterValidator(require_shallow)]


class ChangesBody(Body):
    """What is different on the branch; what is left out stays as it was."""

    question: ReadableText | None = None
    plan: Data | None = Field(default=None, description="A whole one.")
    edits: tuple[Data, ...] = Field(default=(), description="Of the plan.")
    deliverable: Annotated[ReadableText, Field(min_length=1, max_length=LONGEST_DELIVERABLE)] | None = None
    style: Style | None = None
    words: Words | None = None
    source: Name | None = None
    documents: Documents | None = None
    web: StrictBool | None = None
    without: Annotated[tuple[Name, ...], Field(max_length=MOST_WITHOUT)] = Field(
        default=(), description="Sources: an id of the report, an address, or a host."
    )
    depth: Depth | None = None
    model: Name | None = None
    usd: Usd | None = None

    async def to_changes(self, service: Service, caller: Principal) -> BranchChanges:
        """AnswerError for edits that are none, NotFoundError for another's documents."""
        if self.edits:
            parse_edits(list(self.edits))
        own = {name: value for name, value in self if name != "documents"}
        docs = None if self.documents is None else await resolve_documents(service, caller, self.documents)
        return BranchChanges(**own, docs=docs)


class ForkRequest(Body):
    model_config = with_examples(
        '{"checkpoint": "3", "changes": {"deliverable": "a memo of one page"}}', '{"changes": {"without": ["S2"]}}'
    )

    checkpoint: Annotated[ReadableText, Field(min_length=1, max_length=36, pattern="^[0-9a-fA-F-]+$")] | None = Field(
        default=None, description="A moment: its checkpoint, the beginning of that, or its number; none: the last."
    )
    changes: ChangesBody = ChangesBody()
    interactive: StrictBool | None = Field(default=None, description="Whether somebody can answer; none: as it was.")


@history_router.post(
    "/api/threads/{threadId}/fork",
    summary="Go on from a moment with something changed",
    response_model=StartResponse,
    responses={**refusals(402, 404, 409), 202: {"model": StartResponse, "description": "It waits for an answer."}},
)
async def fork_thread(
    body: ForkRequest, thread: WritableThread, caller: Writer, service: ServiceDep, once: Idempotency
) -> Response:
    """A new thread; this one stays as it is. The branch begins at the last moment at which the changes can take
    effect."""

    async def work() -> Response:
        run = await once.find_run()
        if run is None:
            await _check_checkpoint(service, thread.id, body.checkpoint)
            changes = await body.changes.to_changes(service, caller)
            run = await runs.fork(
                service, caller, thread.id, body.checkpoint, changes, interactive=body.interactive, id=once.name
            )
        return await wait_for_start(service, run)

    return await once(work)


async def _check_checkpoint(service: Service, thread: str, checkpoint: str | None) -> None:
    """Another thread's is as unknown as one that never was."""
    if checkpoint is not None:
        try:
            await service.engine.state_at(thread, checkpoint)
        except NotFoundError as error:
            raise no_checkpoint() from error


# Comparing -----------------------------------------------------------------------------------------------

Side = Annotated[
    str,
    Query(
        pattern="^[0-9a-z]{1,32}(@[0-9a-fA-F-]{1,36})?$",
        description="A thread, or THREAD@CHECKPOINT for the draft there was at that moment.",
        examples=["4f1c2a9b7d3e", "4f1c2a9b7d3e@3"],
    ),
]


@history_router.get(
    "/api/diff", summary="What two reports tell differently", response_model=ReportDiff, responses=refusals(404, 409)
)
async def get_diff(a: Side, b: Side, caller: Reader, service: ServiceDep) -> Any:
    for side in (a, b):
        thread, _, checkpoint = side.partition("@")
        if not is_id(thread):
            raise no_thread(thread)
        await service.engine.threads.get(thread, owner=caller.user)
        await _check_checkpoint(service, thread, checkpoint or None)
    return hide_file_urls((await service.engine.diff(a, b)).plain())


# Threads found by words of their title, or of the question that was asked on them last.
#
# What is stored may be encrypted, so it is looked through here and not by the database, a bounded part at a time.

LONGEST_SEARCH = 200  # characters of what is looked for
SEARCH_PAGE, MAX_SEARCH = 200, 2_000  # threads: at once, and for one request


async def search_threads(
    service: Service, words: str, limit: int, status: Collection[RunStatus], owner: str, after: Cursor | None
) -> tuple[list[ThreadSummary], str | None]:
    """At most `limit` of them, the newest first, and where to go on looking; None: all were looked at."""
    wanted, found = fold(words).split(), list[ThreadSummary]()
    for _ in range(MAX_SEARCH // SEARCH_PAGE):
        page = await service.engine.overview(SEARCH_PAGE, status, owner=owner, after=after)
        found += await asyncio.to_thread(_filter_matches, page, wanted)
        if len(found) > limit:
            return found[:limit], cursor_of(found[:limit])
        after = end_of(page)
        if len(page) < SEARCH_PAGE or after is None:
            return found, None
    return found, encode_cursor(*after) if after else None


def _filter_matches(page: Sequence[ThreadSummary], words: Sequence[str]) -> list[ThreadSummary]:
    told = [(one, fold(f"{one.title} {one.question}")) for one in page]
    return [one for one, text in told if all(word in text for word in words)]


threads_router = APIRouter(tags=["threads"])
LONGEST_TITLE = 200
THREADS_PAGE, MAX_THREADS = 30, 200


# Asking --------------------------------------------------------------------------------------------------


class StartRequest(QuestionRequest):
    """What is left out is as the settings, or for a follow-up the thread, say."""

    model_config = with_examples(EXAMPLE, {**EXAMPLE, "modeOverride": "plan"})

    mode_override: Mode | None = Field(default=None, description="plan: questions first; auto: none.")
    thread_id: Id | None = Field(default=None, description="A thread of yours, for a follow-up.")
    approve_plan: StrictBool = Field(default=False, description="Wait for somebody to approve, or change, the plan.")
    interactive: StrictBool = Field(default=True, description="Whether somebody can answer questions that come back.")
    priority: Priority = Field(default="normal", description="low: when nothing else waits.")


@threads_router.post(
    "/api/threads/start",
    summary="Ask a question",
    response_model=StartResponse,
    responses={**refusals(402, 404, 409), 202: {"model": StartResponse, "description": "It waits for an answer."}},
)
async def start_thread(body: StartRequest, caller: Writer, service: ServiceDep, once: Idempotency) -> Response:
    """Begins a run, on a new thread or as a follow-up. Answers at the first question that comes back, or after two
    seconds (`server.start_seconds`): 202 with the question, or 200 with where the run stands."""

    async def work() -> Response:
        run = await once.find_run()
        if run is None:
            if body.thread_id is not None:
                await _check_owner(service, body.thread_id, caller.user)
            wanted = {
                "mode": body.mode_override,
                "interactive": body.interactive,
                "approve_plan": body.approve_plan,
                "priority": body.priority,
            }
            options = (await body.to_options(service, caller)).model_copy(update=wanted)
            run = await runs.ask(service, caller, body.goal, options, body.thread_id, id=once.name)
        return await wait_for_start(service, run)

    return await once(work)


async def _check_owner(service: Service, thread: str, owner: str) -> None:
    if not is_id(thread):
        raise no_thread(thread)
    await service.engine.threads.get(thread, owner=owner)


class EstimateBody(Body):
    """What a question will probably cost; `mostUsd` is the cap, which is never passed."""

    model_config = with_examples("""
        {"model": "anthropic:claude-sonnet-5-5", "usd": 0.31, "mostUsd": 2.0, "calls": 24, "tokens": 91000,
        "seconds": 140.0, "readingUsd": 0.12, "searches": 15, "searchUsd": 0.02}
        """)

    model: str = Field(description="Who thinks; embedded costs nothing.")
    usd: float
    most_usd: float
    calls: int
    tokens: int
    seconds: float
    reading_usd: float
    searches: int
    search_usd: float


@threads_router.post(
    "/api/quote", summary="What a question would cost", operation_id="quote", responses=refusals(402, 404, 409)
)
async def estimate_question(body: QuestionRequest, caller: Reader, service: ServiceDep) -> EstimateBody:
    """Nothing is written and nothing is spent."""
    runs.refuse_files(body.model, service.settings)
    made: CostEstimate = await service.engine.estimate(body.goal, await body.to_options(service, caller))
    return EstimateBody(**dict(made))


# Threads -------------------------------------------------------------------------------------------------


Statuses = Annotated[
    tuple[RunStatus, ...], Query(max_length=len(RunStatus), description="Those of which a thread's last run has one.")
]


class ThreadList(Body):
    threads: tuple[ThreadBody, ...]
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")


@threads_router.get("/api/threads", summary="Your threads", responses=refusals())
async def list_threads(
    caller: Reader,
    service: ServiceDep,
    limit: int = Query(default=THREADS_PAGE, ge=1, le=MAX_THREADS),
    cursor: str | None = Query(default=None, max_length=200, description="The nextCursor of the page before."),
    status: Statuses = (),
    q: str = Query(default="", max_length=LONGEST_SEARCH, description="Words of the title or of the last question."),
) -> ThreadList:
    """The one on which something happened last comes first. With `q` those that have all its words, however they are
    written; at most 2,000 threads are looked at for one page, so that one with fewer than `limit`, or none, may still
    have a `nextCursor`."""
    after = decode_cursor(cursor) if cursor is not None else None
    if q.strip():
        matching, more = await search_threads(service, q, limit, status, caller.user, after)
        return ThreadList(threads=tuple(map(_to_thread_body, matching)), next_cursor=more)
    found = await service.engine.overview(limit + 1, status, owner=caller.user, after=after)
    page = found[:limit]
    return ThreadList(
        threads=tuple(map(_to_thread_body, page)),
        next_cursor=cursor_of(page) if len(found) > limit else None,
    )


def _to_thread_body(one: ThreadSummary) -> ThreadBody:
    return ThreadBody(**one.model_dump(exclude={"owner"}))


class NewThread(Body):
    model_config = with_examples('{"title": "Deliveries", "mode": "plan"}')

    title: ReadableText = Field(default="", max_length=LONGEST_TITLE)
    mode: Mode | None = None


@threads_router.post(
    "/api/threads",
    status_code=201,
    summary="A thread on which nothing was asked yet",
    response_model=ThreadBody,
    responses=refusals(),
)
async def create_thread(body: NewThread, caller: Writer, service: ServiceDep) -> Response:
    made = await service.engine.create_thread(make_title(body.title), body.mode, caller.user)
    headers = {"Location": f"/api/threads/{made.id}"}
    return Response(
        to_json_bytes(await load_thread_body(service, made)), 201, headers=headers, media_type="application/json"
    )


class LinkThreadBody(Body):
    """A thread, for whoever has a link to it."""

    id: str
    title: str
    status: RunStatus | None = None


@threads_router.get(
    "/api/threads/{threadId}",
    summary="A thread",
    response_model=ThreadBody | LinkThreadBody,
    responses={**refusals(404), **NOT_MODIFIED},
)
async def get_thread(thread: VisibleThread, caller: Caller, service: ServiceDep, request: Request) -> Response:
    """Somebody with a link is told its title, and how it stands."""
    whole = await load_thread_body(service, thread)
    if caller.share is None:
        return responses.respond_with_etag(request, whole)
    return responses.respond_with_etag(request, LinkThreadBody(id=whole.id, title=whole.title, status=whole.status))


class RenameRequest(Body):
    model_config = with_examples('{"title": "Deliveries in 2023"}')

    title: ReadableText = Field(min_length=1, max_length=LONGEST_TITLE)


@threads_router.patch(
    "/api/threads/{threadId}", summary="Rename a thread", response_model=ThreadBody, responses=refusals(404, 412)
)
async def rename_thread(
    body: RenameRequest, thread: WritableThread, service: ServiceDep, request: Request, match: IfMatch = None
) -> Response:
    responses.require_match(match, await load_thread_body(service, thread))
    await service.engine.rename(thread.id, body.title)
    return responses.respond_with_etag(
        request, await load_thread_body(service, await service.engine.threads.get(thread.id))
    )


@threads_router.delete(
    "/api/threads/{threadId}", status_code=204, summary="Delete a thread for good", responses=refusals(404, 409, 412)
)
async def delete_thread(thread: WritableThread, service: ServiceDep, match: IfMatch = None) -> None:
    """With its reports, and the snapshots that no other thread uses. What was spent stays in the books."""
    if match is not None:
        responses.require_match(match, await load_thread_body(service, thread))
    await service.engine.delete(thread.id)


class RunList(Body):
    runs: tuple[RunBody, ...]


@threads_router.get("/api/threads/{threadId}/runs", summary="Its runs", responses=refusals(404))
async def list_runs(thread: OwnThread, service: ServiceDep) -> RunList:
    """One for each question; the oldest comes first."""
    return RunList(runs=tuple(map(to_run_body, await service.engine.threads.runs(thread.id))))


# Going on ------------------------------------------------------------------------------------------------


class CancelRequest(Body):
    model_config = with_examples('{"drain": true}')

    drain: StrictBool = Field(default=False, description="Let it end the step it is at.")


@threads_router.post(
    "/api/threads/{threadId}/cancel", summary="Stop what works on a thread", responses=refusals(404, 409)
)
async def cancel_run(thread: WritableThread, service: ServiceDep, body: CancelRequest | None = None) -> RunBody:
    """It can be resumed, and is by nobody else than a person. Another process looks once a second whether it is to
    stop; until then the run is `running`."""
    return to_run_body(await runs.stop(service, thread.id, drain=body is not None and body.drain))


class ResumeRequest(Body):
    """Without an `interruptId`: go on with a run that was stopped, or has failed."""

    model_config = with_examples(
        '{"interruptId": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b", "value": "The last three years"}',
        """
        {"interruptId": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b", "value": {"decision": "approve"}}
        """,
        "{}",
    )

    interrupt_id: Id | None = None
    value: JsonData = Field(default=None, description="The answer: a text or, at a breakpoint, a decision.")


class ResumeResponse(Body):
    model_config = with_examples('{"ok": true, "checkpointId": "1f0a5b1e-0000-6000-8000-000000000000"}')

    ok: bool = True
    checkpoint_id: str | None = Field(description="The moment from which it goes on.")


@threads_router.post(
    "/api/threads/{threadId}/resume",
    summary="Answer a question, or go on",
    response_model=ResumeResponse,
    responses=refusals(402, 404, 409),
)
async def resume_thread(
    body: ResumeRequest, thread: WritableThread, caller: Writer, service: ServiceDep, once: Idempotency
) -> Response:
    """A late or repeated answer is refused with 409, one that does not fit its question with 422."""

    async def work() -> Response:
        if body.interrupt_id is not None:
            await runs.answer_interrupt(service, thread.id, body.interrupt_id, body.value, again=once.again)
        elif "value" in body.model_fields_set:
            raise UsageError("an answer needs the interruptId of its question", help="The thread's reviews have it.")
        else:
            await runs.resume(service, caller, thread.id, again=once.again)
        content = to_json_bytes(ResumeResponse(checkpoint_id=await service.engine.checkpoint(thread.id)))
        return Response(content, media_type="application/json")

    return await once(work)


class ModeBody(Body):
    model_config = with_examples('{"mode": "auto"}')

    mode: Mode


@threads_router.patch("/api/threads/{threadId}/mode", summary="Ask first, or go ahead", responses=refusals(404))
async def set_mode(body: ModeBody, thread: WritableThread, service: ServiceDep) -> ModeBody:
    """Takes effect at once: planning questions that are open are dropped when a thread turns to auto."""
    await runs.change_mode(service, thread.id, body.mode)
    return body
