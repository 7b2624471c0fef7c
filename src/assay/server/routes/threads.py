"""Threads and the runs on them: asked, listed, answered, stopped, deleted."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from assay.errors import UsageError
from assay.model.event import RunStatus
from assay.model.question import Mode
from assay.model.spend import Quote
from assay.model.thread import Priority, ThreadSummary, is_id
from assay.server import asking, etags
from assay.server.access import Caller, ChangedThread, OwnThread, Reader, SeenThread, Writer
from assay.server.bodies import TAGGED, Body, Id, Plain, Text, Truth, refusals
from assay.server.etags import Match, content_of
from assay.server.idempotency import OnceOnly
from assay.server.runs import RunBody, Started, started, told
from assay.server.searching import LONGEST, search
from assay.server.service import Service, Serving
from assay.server.summaries import Summary, cursor_of, opened, summary
from assay.server.wishes import EXAMPLE, Wishes
from assay.storage.threads import no_thread
from assay.threads.beginnings import title

router = APIRouter(tags=["threads"])
LONGEST_TITLE = 200
PAGE, MOST = 30, 200


# Asking --------------------------------------------------------------------------------------------------


class Start(Wishes):
    """What is left out is as the settings, or for a follow-up the thread, say."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE, {**EXAMPLE, "modeOverride": "plan"}]})

    mode_override: Mode | None = Field(default=None, description="plan: questions first; auto: none.")
    thread_id: Id | None = Field(default=None, description="A thread of yours, for a follow-up.")
    approve_plan: Truth = Field(default=False, description="Wait for somebody to approve, or change, the plan.")
    interactive: Truth = Field(default=True, description="Whether somebody can answer questions that come back.")
    priority: Priority = Field(default="normal", description="low: when nothing else waits.")


@router.post(
    "/api/threads/start", summary="Ask a question", operation_id="start_thread", response_model=Started,
    responses={**refusals(402, 404, 409), 202: {"model": Started, "description": "It waits for an answer."}},
)  # fmt: skip
async def start_thread(body: Start, caller: Writer, service: Serving, once: OnceOnly) -> Response:
    """Begins a run, on a new thread or as a follow-up. Answers at the first question that comes back, or after two
    seconds (`server.start_seconds`): 202 with the question, or 200 with where the run stands."""

    async def work() -> Response:
        run = await once.made()
        if run is None:
            if body.thread_id is not None:
                await _owned(service, body.thread_id, caller.user)
            wanted = {
                "mode": body.mode_override, "interactive": body.interactive, "approve_plan": body.approve_plan,
                "priority": body.priority,
            }  # fmt: skip
            options = (await body.options(service, caller)).model_copy(update=wanted)
            run = await asking.ask(service, caller, body.goal, options, body.thread_id, id=once.name)
        return await started(service, run)

    return await once(work)


async def _owned(service: Service, thread: str, owner: str) -> None:
    if not is_id(thread):
        raise no_thread(thread)
    await service.engine.threads.get(thread, owner=owner)


class Estimate(Body):
    """What a question will probably cost; `mostUsd` is the cap, which is never passed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "anthropic:claude-sonnet-5-5", "usd": 0.31, "mostUsd": 2.0, "calls": 24, "tokens": 91000,
                    "seconds": 140.0, "readingUsd": 0.12, "searches": 15, "searchUsd": 0.02,
                }
            ]
        }
    )  # fmt: skip

    model: str = Field(description="Who thinks; embedded costs nothing.")
    usd: float
    most_usd: float
    calls: int
    tokens: int
    seconds: float
    reading_usd: float
    searches: int
    search_usd: float


@router.post(
    "/api/quote", summary="What a question would cost", operation_id="quote", responses=refusals(402, 404, 409)
)
async def quote(body: Wishes, caller: Reader, service: Serving) -> Estimate:
    """Nothing is written and nothing is spent."""
    asking.refuse_files(body.model, service.settings)
    made: Quote = await service.engine.quote(body.goal, await body.options(service, caller))
    return Estimate(**dict(made))


# Threads -------------------------------------------------------------------------------------------------


Statuses = Annotated[
    tuple[RunStatus, ...], Query(max_length=len(RunStatus), description="Those of which a thread's last run has one.")
]


class Threads(Body):
    threads: tuple[Summary, ...]
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")


@router.get("/api/threads", summary="Your threads", operation_id="list_threads", responses=refusals())
async def list_threads(
    caller: Reader,
    service: Serving,
    limit: int = Query(default=PAGE, ge=1, le=MOST),
    cursor: str | None = Query(default=None, max_length=200, description="The nextCursor of the page before."),
    status: Statuses = (),
    q: str = Query(default="", max_length=LONGEST, description="Words of the title or of the last question."),
) -> Threads:
    """The one on which something happened last comes first. With `q` those that have all its words, however they are
    written; at most 2,000 threads are looked at for one page, so that one with fewer than `limit`, or none, may still
    have a `nextCursor`."""
    after = opened(cursor) if cursor is not None else None
    if q.strip():
        matching, more = await search(service, q, limit, status, caller.user, after)
        return Threads(threads=tuple(map(_summary, matching)), next_cursor=more)
    found = await service.engine.overview(limit + 1, status, owner=caller.user, after=after)
    page = found[:limit]
    return Threads(
        threads=tuple(map(_summary, page)),
        next_cursor=cursor_of(page) if len(found) > limit else None,
    )


def _summary(one: ThreadSummary) -> Summary:
    return Summary(**one.model_dump(exclude={"owner"}))


class NewThread(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Deliveries", "mode": "plan"}]})

    title: Text = Field(default="", max_length=LONGEST_TITLE)
    mode: Mode | None = None


@router.post(
    "/api/threads", status_code=201, summary="A thread on which nothing was asked yet", operation_id="create_thread",
    response_model=Summary, responses=refusals(),
)  # fmt: skip
async def create_thread(body: NewThread, caller: Writer, service: Serving) -> Response:
    made = await service.engine.create(title(body.title), body.mode, caller.user)
    headers = {"Location": f"/api/threads/{made.id}"}
    return Response(content_of(await summary(service, made)), 201, headers=headers, media_type="application/json")


class SeenSummary(Body):
    """A thread, for whoever has a link to it."""

    id: str
    title: str
    status: RunStatus | None = None


@router.get(
    "/api/threads/{threadId}", summary="A thread", operation_id="get_thread", response_model=Summary | SeenSummary,
    responses={**refusals(404), **TAGGED},
)  # fmt: skip
async def get_thread(thread: SeenThread, caller: Caller, service: Serving, request: Request) -> Response:
    """Somebody with a link is told its title, and how it stands."""
    whole = await summary(service, thread)
    if caller.share is None:
        return etags.answer(request, whole)
    return etags.answer(request, SeenSummary(id=whole.id, title=whole.title, status=whole.status))


class Renaming(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Deliveries in 2023"}]})

    title: Text = Field(min_length=1, max_length=LONGEST_TITLE)


@router.patch(
    "/api/threads/{threadId}", summary="Rename a thread", operation_id="rename_thread", response_model=Summary,
    responses=refusals(404, 412),
)  # fmt: skip
async def rename_thread(
    body: Renaming, thread: ChangedThread, service: Serving, request: Request, match: Match = None
) -> Response:
    etags.refuse_other(match, await summary(service, thread))
    await service.engine.rename(thread.id, body.title)
    return etags.answer(request, await summary(service, await service.engine.threads.get(thread.id)))


@router.delete(
    "/api/threads/{threadId}", status_code=204, summary="Delete a thread for good", operation_id="delete_thread",
    responses=refusals(404, 409, 412),
)  # fmt: skip
async def delete_thread(thread: ChangedThread, service: Serving, match: Match = None) -> None:
    """With its reports, and the snapshots that no other thread uses. What was spent stays in the books."""
    if match is not None:
        etags.refuse_other(match, await summary(service, thread))
    await service.engine.delete(thread.id)


class Runs(Body):
    runs: tuple[RunBody, ...]


@router.get("/api/threads/{threadId}/runs", summary="Its runs", operation_id="list_runs", responses=refusals(404))
async def list_runs(thread: OwnThread, service: Serving) -> Runs:
    """One for each question; the oldest comes first."""
    return Runs(runs=tuple(map(told, await service.engine.threads.runs(thread.id))))


# Going on ------------------------------------------------------------------------------------------------


class Cancelling(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"drain": True}]})

    drain: Truth = Field(default=False, description="Let it end the step it is at.")


@router.post(
    "/api/threads/{threadId}/cancel", summary="Stop what works on a thread", operation_id="cancel_run",
    responses=refusals(404, 409),
)  # fmt: skip
async def cancel_run(thread: ChangedThread, service: Serving, body: Cancelling | None = None) -> RunBody:
    """It can be resumed, and is by nobody else than a person. Another process looks once a second whether it is to
    stop; until then the run is `running`."""
    return told(await asking.stop(service, thread.id, drain=body is not None and body.drain))


class Resuming(Body):
    """Without an `interruptId`: go on with a run that was stopped, or has failed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"interruptId": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b", "value": "The last three years"},
                {"interruptId": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b", "value": {"decision": "approve"}},
                {},
            ]
        }
    )

    interrupt_id: Id | None = None
    value: Plain = Field(default=None, description="The answer: a text or, at a breakpoint, a decision.")


class Resumed(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ok": True, "checkpointId": "1f0a5b1e-0000-6000-8000-000000000000"}]}
    )

    ok: bool = True
    checkpoint_id: str | None = Field(description="The moment from which it goes on.")


@router.post(
    "/api/threads/{threadId}/resume", summary="Answer a question, or go on", operation_id="resume_thread",
    response_model=Resumed, responses=refusals(402, 404, 409),
)  # fmt: skip
async def resume_thread(
    body: Resuming, thread: ChangedThread, caller: Writer, service: Serving, once: OnceOnly
) -> Response:
    """A late or repeated answer is refused with 409, one that does not fit its question with 422."""

    async def work() -> Response:
        if body.interrupt_id is not None:
            await asking.answer(service, thread.id, body.interrupt_id, body.value, again=once.again)
        elif "value" in body.model_fields_set:
            raise UsageError("an answer needs the interruptId of its question", help="The thread's reviews have it.")
        else:
            await asking.go_on(service, caller, thread.id, again=once.again)
        content = content_of(Resumed(checkpoint_id=await service.engine.checkpoint(thread.id)))
        return Response(content, media_type="application/json")

    return await once(work)


class ModeBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"mode": "auto"}]})

    mode: Mode


@router.patch(
    "/api/threads/{threadId}/mode", summary="Ask first, or go ahead", operation_id="set_mode", responses=refusals(404)
)
async def set_mode(body: ModeBody, thread: ChangedThread, service: Serving) -> ModeBody:
    """Takes effect at once: planning questions that are open are dropped when a thread turns to auto."""
    await asking.set_mode(service, thread.id, body.mode)
    return body
