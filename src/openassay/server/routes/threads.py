"""Threads and their runs: questions, history and branches."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt
from pydantic.config import JsonDict

from openassay.engine.diff import ReportDiff
from openassay.errors import NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Depth, Mode, Style, parse_edits
from openassay.models.thread import (
    LONGEST_DELIVERABLE,
    BranchChanges,
    BranchTree,
    CheckpointInfo,
    Cursor,
    Priority,
    ResearchOptions,
    Thread,
    ThreadSummary,
)
from openassay.server import responses, runs
from openassay.server.auth import Caller, OwnThread, Reader, VisibleThread, WritableThread, Writer, load_own_thread
from openassay.server.bodies import (
    NOT_MODIFIED,
    Body,
    Id,
    JsonData,
    ReadableText,
    hide_file_urls,
    refusals,
    require_shallow,
    with_examples,
)
from openassay.server.responses import IfMatch, decode_cursor, encode_cursor
from openassay.server.routes.reports import no_checkpoint
from openassay.server.runs import Idempotency, RunBody, StartResponse, to_run_body, wait_for_start
from openassay.server.service import Principal, Service, ServiceDep
from openassay.text.words import fold

threads_router = APIRouter(responses=refusals(), tags=["threads"])
history_router = APIRouter(responses=refusals(404), tags=["history"])
HISTORY_PAGE, MAX_HISTORY = 30, 500
THREADS_PAGE, MAX_THREADS = 30, 200
SEARCH_PAGE, MAX_SEARCH = 200, 2_000  # threads that a search reads at once, and for one request
MAX_SEARCH_LENGTH = 200  # characters of a search
MAX_TITLE_LENGTH = 200
MAX_EXCLUDED_SOURCES = 100


# Questions ----------------------------------------------------------------------------------------------------

MAX_CONTEXT = 20_000  # characters
MAX_DOMAINS, MAX_DOCUMENTS = 20, 100
EXAMPLE: JsonDict = {"goal": "How did Tesla's deliveries change over 2023?", "depth": "quick"}

Words = Annotated[StrictInt, Field(ge=FEWEST_WORDS, le=MOST_WORDS)]
Usd = Annotated[StrictFloat, Field(ge=0, le=MOST_USD, allow_inf_nan=False)]
Name = Annotated[ReadableText, Field(min_length=1, max_length=200)]
Documents = Annotated[tuple[Id, ...], Field(max_length=MAX_DOCUMENTS, description="Ids of documents you uploaded.")]


class QuestionRequest(Body):
    model_config = with_examples(EXAMPLE)

    goal: ReadableText = Field(description="The question, of at most 2,000 characters.")
    depth: Depth | None = None
    style: Style | None = None
    words: Words | None = None
    source: Name | None = Field(default=None, description="Where to search; several with commas between them.")
    web: StrictBool = Field(default=False, description="Search the web beside the documents.")
    model: Name | None = None
    usd: Usd | None = Field(default=None, description="The most it may cost.")
    context: Annotated[ReadableText, Field(max_length=MAX_CONTEXT)] = ""
    domains: Annotated[tuple[Name, ...], Field(max_length=MAX_DOMAINS)] = ()
    documents: Documents = ()

    async def to_options(self, service: Service, caller: Principal) -> ResearchOptions:
        """Return the options of a run; raise NotFoundError for a document that is not the caller's."""
        settings = service.settings
        return ResearchOptions(
            depth=self.depth or settings.depth,
            user=caller.user,
            source=self.source or settings.source,
            docs=await resolve_documents(service, caller, self.documents),
            **self.model_dump(by_alias=False, include={"web", "style", "words", "model", "usd", "context", "domains"}),
        )


async def resolve_documents(service: Service, caller: Principal, documents: tuple[str, ...]) -> tuple[str, ...]:
    """Return uploads as a run's options name them, or raise NotFoundError for another person's. No path of the server's
    disk comes in from outside."""
    return tuple(map(str, await service.resources.uploads.paths(caller.user, documents))) if documents else ()


class StartRequest(QuestionRequest):
    """What is left out is taken from the settings, or for a follow-up from the thread."""

    model_config = with_examples(EXAMPLE, {**EXAMPLE, "modeOverride": "plan"})

    mode_override: Mode | None = Field(default=None, description="plan: questions first; auto: none.")
    thread_id: Id | None = Field(default=None, description="A thread of yours, for a follow-up.")
    approve_plan: StrictBool = Field(default=False, description="Wait for a person to approve or change the plan.")
    interactive: StrictBool = Field(default=True, description="Whether a person can answer questions.")
    priority: Priority = Field(default="normal", description="low: after everything else.")


@threads_router.post(
    "/api/threads/start",
    summary="Ask a question",
    response_model=StartResponse,
    responses={**refusals(402, 404, 409), 202: {"model": StartResponse, "description": "It waits for an answer."}},
)
async def start_thread(body: StartRequest, caller: Writer, service: ServiceDep, once: Idempotency) -> Response:
    """Starts a run, on a new thread or as a follow-up. Answers at its first question, or after two seconds
    (`server.start_seconds`): 202 with the question, or 200 with the status of the run."""

    async def work() -> Response:
        run = await once.find_run()
        if run is None:
            if body.thread_id is not None:
                await load_own_thread(service, caller, body.thread_id)
            wanted = body.model_dump(by_alias=False, include={"interactive", "approve_plan", "priority"})
            options = await body.to_options(service, caller)
            options = options.model_copy(update={**wanted, "mode": body.mode_override})
            run = await runs.ask(service, caller, body.goal, options, body.thread_id, id=once.name)
        return await wait_for_start(service, run)

    return await once(work)


class EstimateBody(Body):
    """What a question will probably cost; `mostUsd` is the cap, which is never exceeded."""

    model_config = with_examples("""
        {"model": "anthropic:claude-sonnet-5-5", "usd": 0.31, "mostUsd": 2.0, "calls": 24, "tokens": 91000,
        "seconds": 140.0, "readingUsd": 0.12, "searches": 15, "searchUsd": 0.02}
        """)

    model: str = Field(description="The model used; embedded costs nothing.")
    usd: float
    most_usd: float
    calls: int
    tokens: int
    seconds: float
    reading_usd: float
    searches: int
    search_usd: float


@threads_router.post(
    "/api/quote", summary="Estimate the cost of a question", operation_id="quote", responses=refusals(402, 404, 409)
)
async def estimate_question(body: QuestionRequest, caller: Reader, service: ServiceDep) -> EstimateBody:
    """Nothing is written and nothing is spent."""
    runs.refuse_local_model(body.model, service.settings)
    options = await body.to_options(service, caller)
    return EstimateBody.model_validate(await service.engine.estimate(body.goal, options))


# Threads ------------------------------------------------------------------------------------------------------


class ThreadBody(Body):
    model_config = with_examples("""
        {"id": "4f1c2a9b7d3e", "title": "How did Tesla's deliveries change over 2023?",
        "created": "2026-01-01T12:00:00Z", "updated": "2026-01-01T12:01:30Z", "mode": null, "status": "done",
        "question": "How did Tesla's deliveries change over 2023?", "turns": 1, "usd": 0.31, "parent": null,
        "left": false, "damaged": false}
        """)

    id: str
    title: str
    created: datetime
    updated: datetime
    mode: Mode | None = None
    status: RunStatus | None = Field(default=None, description="Of its last run; null: no question yet.")
    question: str = Field(default="", description="Of its last run.")
    turns: int = 0
    usd: float = Field(default=0.0, description="What all its runs have cost.")
    parent: str | None = Field(default=None, description="The thread it is a branch of.")
    left: bool = Field(default=False, description="It is running, but its process is gone.")
    damaged: bool = Field(default=False, description="Its stored data are damaged.")


async def load_thread_body(service: Service, thread: Thread) -> ThreadBody:
    runs = await service.engine.threads.runs(thread.id)
    branch = await service.engine.threads.branch(thread.id)
    spent = [(await service.resources.ledger.get_spend(run.id)).usd for run in runs]
    return ThreadBody(
        **thread.model_dump(include={"id", "title", "created", "updated", "mode"}),
        status=runs[-1].status if runs else None,
        question=runs[-1].question if runs else "",
        turns=len(runs),
        usd=round(sum(spent), 6),
        parent=branch.parent if branch else None,
    )


def cursor_after(page: Sequence[ThreadSummary]) -> Cursor | None:
    """Return the cursor after a page. Damaged threads may have no time, and are listed again."""
    last = next((one for one in reversed(page) if not one.damaged or one.title), None)
    return Cursor(last.updated, last.id) if last else None


Statuses = Annotated[
    tuple[RunStatus, ...], Query(max_length=len(RunStatus), description="Only threads whose last run has one of these.")
]


class ThreadList(Body):
    threads: tuple[ThreadBody, ...]
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")


@threads_router.get("/api/threads", summary="List your threads")
async def list_threads(
    caller: Reader,
    service: ServiceDep,
    limit: int = Query(default=THREADS_PAGE, ge=1, le=MAX_THREADS),
    cursor: str | None = Query(default=None, max_length=200, description="The nextCursor of the page before."),
    status: Statuses = (),
    q: str = Query(default="", max_length=MAX_SEARCH_LENGTH, description="Words of the title or of the last question."),
) -> ThreadList:
    """The latest first. With `q` those that have all its words, in any case; at most 2,000 threads are searched for one
    page, so that a page with fewer than `limit` threads, or none, may still have a `nextCursor`."""
    after = decode_cursor(cursor) if cursor is not None else None
    if q.strip():
        found, after = await search_threads(service, q, limit, status, caller.user, after)
    else:
        found = await service.engine.overview(limit + 1, status, owner=caller.user, after=after)
        after = cursor_after(found[:limit]) if len(found) > limit else None
    return ThreadList(
        threads=tuple(map(ThreadBody.model_validate, found[:limit])),
        next_cursor=encode_cursor(*after) if after else None,
    )


async def search_threads(
    service: Service, words: str, limit: int, status: Collection[RunStatus], owner: str, after: Cursor | None
) -> tuple[list[ThreadSummary], Cursor | None]:
    """Return at most `limit` threads whose title or last question has these words, and where to continue the search.

    What is stored may be encrypted, so it is searched here and not by the database, a bounded part at a time."""
    wanted, found = fold(words).split(), list[ThreadSummary]()
    for _ in range(MAX_SEARCH // SEARCH_PAGE):
        page = await service.engine.overview(SEARCH_PAGE, status, owner=owner, after=after)
        texts = await asyncio.to_thread(list, (fold(f"{one.title} {one.question}") for one in page))
        found += [one for one, text in zip(page, texts, strict=True) if all(word in text for word in wanted)]
        if len(found) > limit:
            return found[:limit], cursor_after(found[:limit])
        after = cursor_after(page)
        if len(page) < SEARCH_PAGE or after is None:
            return found, None
    return found, after


class NewThread(Body):
    model_config = with_examples('{"title": "Deliveries", "mode": "plan"}')

    title: ReadableText = Field(default="", max_length=MAX_TITLE_LENGTH)
    mode: Mode | None = None


@threads_router.post("/api/threads", status_code=201, summary="Create an empty thread", response_model=ThreadBody)
async def create_thread(body: NewThread, caller: Writer, service: ServiceDep) -> Response:
    thread = await service.engine.create_thread(body.title, body.mode, caller.user)
    body_out = await load_thread_body(service, thread)
    return responses.json_response(body_out, 201, {"Location": f"/api/threads/{thread.id}"})


class LinkThreadBody(Body):
    """A thread, for anyone with a link to it."""

    id: str
    title: str
    status: RunStatus | None = None


@threads_router.get(
    "/api/threads/{threadId}",
    summary="Get a thread",
    response_model=ThreadBody | LinkThreadBody,
    responses={**refusals(404), **NOT_MODIFIED},
)
async def get_thread(thread: VisibleThread, caller: Caller, service: ServiceDep, request: Request) -> Response:
    """A link shows its title and status."""
    body = await load_thread_body(service, thread)
    shown = body if caller.share is None else LinkThreadBody(id=body.id, title=body.title, status=body.status)
    return responses.respond_with_etag(request, shown)


class RenameRequest(Body):
    model_config = with_examples('{"title": "Deliveries in 2023"}')

    title: ReadableText = Field(min_length=1, max_length=MAX_TITLE_LENGTH)


@threads_router.patch(
    "/api/threads/{threadId}", summary="Rename a thread", response_model=ThreadBody, responses=refusals(404, 412)
)
async def rename_thread(
    body: RenameRequest, thread: WritableThread, service: ServiceDep, request: Request, match: IfMatch = None
) -> Response:
    responses.require_match(match, await load_thread_body(service, thread))
    await service.engine.rename(thread.id, body.title)
    renamed = await service.engine.threads.get(thread.id)
    return responses.respond_with_etag(request, await load_thread_body(service, renamed))


@threads_router.delete(
    "/api/threads/{threadId}", status_code=204, summary="Delete a thread", responses=refusals(404, 409, 412)
)
async def delete_thread(thread: WritableThread, service: ServiceDep, match: IfMatch = None) -> None:
    """With its reports, and the documents that no other thread uses. What it cost stays in the ledger."""
    if match is not None:
        responses.require_match(match, await load_thread_body(service, thread))
    await service.engine.archive.delete(thread.id)


class RunList(Body):
    runs: tuple[RunBody, ...]


@threads_router.get("/api/threads/{threadId}/runs", summary="List the runs of a thread", responses=refusals(404))
async def list_runs(thread: OwnThread, service: ServiceDep) -> RunList:
    """One for each question; the oldest comes first."""
    return RunList(runs=tuple(map(to_run_body, await service.engine.threads.runs(thread.id))))


class CancelRequest(Body):
    model_config = with_examples('{"drain": true}')

    drain: StrictBool = Field(default=False, description="Let it finish the current step.")


@threads_router.post("/api/threads/{threadId}/cancel", summary="Stop the run of a thread", responses=refusals(404, 409))
async def cancel_run(thread: WritableThread, service: ServiceDep, body: CancelRequest | None = None) -> RunBody:
    """Only a person resumes it. Another process checks once a second whether its run is to stop; until then the run is
    `running`."""
    return to_run_body(await runs.stop(service, thread.id, drain=body is not None and body.drain))


class ResumeRequest(Body):
    """Without an `interruptId`: resume a run that was stopped or has failed."""

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
    checkpoint_id: str | None = Field(description="The checkpoint from which it is resumed.")


@threads_router.post(
    "/api/threads/{threadId}/resume",
    summary="Answer a question, or resume a run",
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
        return responses.json_response(ResumeResponse(checkpoint_id=await service.engine.checkpoint(thread.id)))

    return await once(work)


class ModeBody(Body):
    model_config = with_examples('{"mode": "auto"}')

    mode: Mode


@threads_router.patch("/api/threads/{threadId}/mode", summary="Set the mode of a thread", responses=refusals(404))
async def set_mode(body: ModeBody, thread: WritableThread, service: ServiceDep) -> ModeBody:
    """Takes effect at once: open planning questions are dropped when a thread changes to auto."""
    if await service.engine.interrupts.set_mode(thread.id, body.mode, queued=service.has_workers):
        service.dispatcher.announce((await service.engine.threads.runs(thread.id))[-1].id)
    return body


# History ------------------------------------------------------------------------------------------------------


class MomentBody(CheckpointInfo, Body):
    model_config = with_examples("""
        {"checkpoint": "1f0a5b1e-0000-6000-8000-000000000000", "short": "1f0a5b1e", "number": 3,
        "time": "2026-01-01T12:00:08Z", "run": "a1b2c3d4e5f6", "after": ["plan"], "next": ["dispatch"],
        "begins": false, "planned": true, "round": 0, "iteration": 0, "summary": "3 sub-questions", "usd": 0.04}
        """)

    usd: float = Field(default=0.0, description="What its run had spent by then.")


class HistoryBody(Body):
    moments: tuple[MomentBody, ...]


@history_router.get("/api/threads/{threadId}/history", summary="Get the history of a thread")
async def get_history(
    thread: OwnThread,
    service: ServiceDep,
    limit: Annotated[int, Query(ge=1, le=MAX_HISTORY)] = HISTORY_PAGE,
    run: Annotated[Id | None, Query(description="Of this run alone.")] = None,
) -> HistoryBody:
    """The newest comes last; `limit` counts from there."""
    try:
        found = await service.engine.history.list_page(thread.id, limit=limit, run=run)
    except UsageError as error:
        if isinstance(error, NotFoundError):
            raise
        found = []  # nothing has happened on it yet
    return HistoryBody(moments=tuple(map(MomentBody.model_validate, found)))


class BranchBody(BranchTree, Body):
    """A thread with the branches that began on it."""

    model_config = with_examples("""
        {"thread": "4f1c2a9b7d3e", "title": "How did Tesla's deliveries change over 2023?", "status": "done",
        "usd": 0.31, "parent": null, "ofDeleted": false, "changed": "", "moment": "", "checkpoint": null,
        "branches": []}
        """)

    moment: str = Field(default="", description="The checkpoint of the parent at which it began, in words.")
    checkpoint: str | None = Field(default=None, description="The id of that checkpoint in the parent's history.")
    branches: tuple["BranchBody", ...] = ()


@history_router.get("/api/threads/{threadId}/branches", summary="Get the branches of a thread")
async def get_branches(thread: OwnThread, service: ServiceDep) -> BranchBody:
    """From its root. A branch belongs to the owner of its parent."""
    return _to_branch(await service.engine.branches.tree(thread.id))


def _to_branch(tree: BranchTree) -> BranchBody:
    own = tree.model_dump(exclude={"branches"})
    return BranchBody(**hide_file_urls(own), branches=tuple(map(_to_branch, tree.branches)))


Data = Annotated[dict[str, Any], AfterValidator(require_shallow)]


class ChangesBody(Body):
    """What is different on the branch; what is left out stays the same."""

    question: ReadableText | None = None
    plan: Data | None = Field(default=None, description="A whole one.")
    edits: tuple[Data, ...] = Field(default=(), description="Of the plan.")
    deliverable: Annotated[ReadableText, Field(min_length=1, max_length=LONGEST_DELIVERABLE)] | None = None
    style: Style | None = None
    words: Words | None = None
    source: Name | None = None
    documents: Documents | None = None
    web: StrictBool | None = None
    without: Annotated[tuple[Name, ...], Field(max_length=MAX_EXCLUDED_SOURCES)] = Field(
        default=(), description="Sources: an id of the report, an address, or a host."
    )
    depth: Depth | None = None
    model: Name | None = None
    usd: Usd | None = None

    async def to_changes(self, service: Service, caller: Principal) -> BranchChanges:
        """Raise AnswerError for invalid edits, NotFoundError for another person's documents."""
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
        default=None, description="A checkpoint: its id, the beginning of that, or its number; none: the last."
    )
    changes: ChangesBody = ChangesBody()
    interactive: StrictBool | None = Field(default=None, description="Whether a person can answer; none: as before.")


@history_router.post(
    "/api/threads/{threadId}/fork",
    summary="Fork a thread at a checkpoint",
    response_model=StartResponse,
    responses={**refusals(402, 409), 202: {"model": StartResponse, "description": "It waits for an answer."}},
)
async def fork_thread(
    body: ForkRequest, thread: WritableThread, caller: Writer, service: ServiceDep, once: Idempotency
) -> Response:
    """Creates a new thread; this one stays as it is. The branch begins at the last checkpoint at which the changes can
    take effect."""

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
    """Raise NotFoundError for a checkpoint that is not the thread's."""
    if checkpoint is not None:
        try:
            await service.engine.history.state(thread, checkpoint)
        except NotFoundError as error:
            raise no_checkpoint() from error


Side = Annotated[
    str,
    Query(
        pattern="^[0-9a-z]{1,32}(@[0-9a-fA-F-]{1,36})?$",
        description="A thread, or THREAD@CHECKPOINT for the draft at that checkpoint.",
        examples=["4f1c2a9b7d3e", "4f1c2a9b7d3e@3"],
    ),
]


@history_router.get("/api/diff", summary="Compare two reports", response_model=ReportDiff, responses=refusals(409))
async def get_diff(a: Side, b: Side, caller: Reader, service: ServiceDep) -> Any:
    for side in (a, b):
        thread, _, checkpoint = side.partition("@")
        await load_own_thread(service, caller, thread)
        await _check_checkpoint(service, thread, checkpoint or None)
    return hide_file_urls((await service.engine.history.diff(a, b)).plain())
