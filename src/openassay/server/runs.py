"""What a caller is told of a run, and of the question it waits for."""

import asyncio
from datetime import datetime
from typing import Any, get_args

from fastapi.responses import Response
from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from openassay.engine.questions import OpenQuestion, answer_schema
from openassay.errors import ConfigurationError, LateAnswerError
from openassay.models.event import AT_WORK, RunStatus, Status
from openassay.models.plan import Depth, Mode
from openassay.models.spend import ModelRole
from openassay.models.thread import BranchChanges, OnTimeout, ResearchOptions, Run, read_options
from openassay.server.auth import Principal
from openassay.server.bodies import Body
from openassay.server.redact import hide_file_urls, hide_paths
from openassay.server.responses import to_json_bytes
from openassay.server.service import Service
from openassay.settings import Settings
from openassay.telemetry import request_id, traceparent

# The one way in which a question becomes a run, whichever door it came through; and in which one goes on.

LOOK, MOST_LOOK = 0.05, 0.4  # seconds: two seconds take nine looks
STOPPING = 2.0  # seconds
STOPPED = (RunStatus.CANCELLED, RunStatus.FAILED)


async def ask(
    service: Service, caller: Principal, question: str, options: ResearchOptions, thread: str | None = None, *,
    id: str | None = None,
) -> Run:  # fmt: skip
    """A run that waits in line; `thread` is one of the caller's, `id` what the run is called. What a person may not
    have is refused before anything is written."""
    refuse_files(options.model, service.settings)
    begun = {"user": caller.user, "request": request_id.get(), "trace": traceparent.get()}
    options = options.model_copy(update=begun)
    await service.engine.fetch_documents(options)
    async with service.limits.admit(caller, options) as allowed:
        run = await service.engine.queue(question, allowed, thread=thread, id=id)
    service.dispatcher.announce(run.id)
    return run


async def resume(service: Service, caller: Principal, thread: str, *, again: bool = False) -> Run:
    """A run that was stopped, or has failed, waits in line again. `again`: of a request whose first attempt may have
    been carried out before its process died."""
    last = (await service.engine.threads.runs(thread))[-1:]
    if again and last and last[0].status not in STOPPED:
        return last[0]
    options = read_options(last[0]) if last else ResearchOptions(user=caller.user)
    async with service.limits.admit(caller, options, again=last[0].id if last else None) as allowed:
        run = await service.engine.requeue(thread)
        if allowed != options:
            await service.engine.threads.set_options(run.id, allowed.plain())
    service.dispatcher.announce(run.id)
    return run


async def answer_interrupt(service: Service, thread: str, question: str, value: object, *, again: bool = False) -> None:
    """`again`: of a request whose first attempt may have been taken before its process died."""
    try:
        run = await service.engine.answer(thread, question, value, queued=service.has_workers)
    except LateAnswerError:
        if not again or (await service.engine.review(question)).by != "person":
            raise
    else:
        service.dispatcher.announce(run.id)


async def change_mode(service: Service, thread: str, mode: Mode) -> None:
    if await service.engine.set_mode(thread, mode, queued=service.has_workers):
        service.dispatcher.announce((await service.engine.threads.runs(thread))[-1].id)


async def stop(service: Service, thread: str, *, drain: bool) -> Run:
    """A run that is being taken up just now, here, is stopped as soon as it is; what another process works on is asked
    to stop, and looks once a second."""
    engine, clock = service.engine, asyncio.get_running_loop().time
    run, ends = await engine.stop(thread, drain=drain), clock() + STOPPING
    while run.status in AT_WORK and not drain and clock() < ends:
        if run.id in engine.list_running():
            await engine.cancel(run.id)
        await asyncio.sleep(LOOK)
        run = await engine.threads.run(run.id)
    return run


async def fork(
    service: Service, caller: Principal, thread: str, checkpoint: str | None, changes: BranchChanges, *,
    interactive: bool | None = None, id: str | None = None,
) -> Run:  # fmt: skip
    refuse_files(changes.model, service.settings)
    last = (await service.engine.threads.runs(thread))[-1:]
    before = read_options(last[0]) if last else ResearchOptions(user=caller.user)
    new = {"usd": changes.usd, "model": changes.model, "source": changes.source}
    wanted = before.model_copy(update={name: value for name, value in new.items() if value is not None})
    async with service.limits.admit(caller, wanted) as allowed:
        run = await service.engine.fork(
            thread, checkpoint, changes, interactive=interactive, usd=allowed.usd, id=id, queued=True
        )
    service.dispatcher.announce(run.id)
    return run


async def veto(service: Service, caller: Principal, thread: str, document: str) -> Run:
    last = (await service.engine.threads.runs(thread))[-1:]
    async with service.limits.admit(
        caller, read_options(last[0]) if last else ResearchOptions(user=caller.user)
    ) as allowed:
        run = await service.engine.veto(thread, [document], usd=allowed.usd, queued=True)
    service.dispatcher.announce(run.id)
    return run


def refuse_files(model: str | None, settings: Settings) -> None:
    """A model that is a file stands on the server's disk: it is chosen by who runs the server."""
    if model is None or model.partition(":")[0].strip() != "local":
        return
    roles = [getattr(settings, f"{role}_model") for role in get_args(ModelRole)]
    tiers = settings.llm
    if model not in (tiers.model, tiers.fallback_model, tiers.budget_model, *roles):
        raise ConfigurationError("this server does not offer that model", help="Leave the model out to use its own.")


async def wait_for_run(service: Service, run: str, seconds: float) -> Run:
    """The run once it waits for somebody or has ended, or as it is when time is up."""
    clock = asyncio.get_running_loop().time
    ends, pause = clock() + seconds, LOOK
    while True:
        current = await service.engine.threads.run(run)
        left = ends - clock()
        if current.status not in AT_WORK or left <= 0:
            return current
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, MOST_LOOK)


INTERRUPT_EXAMPLE: JsonDict = {
    "id": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b",
    "kind": "planning",
    "question": "Which period should it cover?",
    "options": ["The last year", "The last three years", "The last decade", "All of it", "Custom"],
    "shown": {"number": 1, "of": 2},
    "asked": "2026-01-01T12:00:00Z",
    "due": "2026-01-01T12:30:00Z",
    "onTimeout": "guess",
    "form": {"type": "string", "maxLength": 2000},
}
START_EXAMPLE: JsonDict = {
    "threadId": "4f1c2a9b7d3e",
    "runId": "a1b2c3d4e5f6",
    "status": "running",
    "interrupt": None,
    "error": None,
}


class InterruptBody(Body):
    """A question for a person. `form` is the JSON schema of an answer, `shown` what it is about."""

    model_config = ConfigDict(json_schema_extra={"examples": [INTERRUPT_EXAMPLE]})

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}
    asked: datetime | None = None
    due: datetime | None = None
    on_timeout: OnTimeout = "end"
    form: dict[str, Any] = Field(default={}, description="The JSON schema of an answer.")


def to_interrupt(question: OpenQuestion) -> InterruptBody:
    return InterruptBody(**hide_file_urls(question.plain()), form=answer_schema(question.kind))


class StartResponse(Body):
    """`status` is that of the run; one that is `waiting` comes with the question it waits for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [START_EXAMPLE, {**START_EXAMPLE, "status": "waiting", "interrupt": INTERRUPT_EXAMPLE}]
        }
    )

    thread_id: str
    run_id: str
    status: RunStatus
    interrupt: InterruptBody | None = None
    error: str | None = None


async def wait_for_start(service: Service, run: Run) -> Response:
    """At the first question that comes back, or when `server.start_seconds` are over."""
    run = await wait_for_run(service, run.id, service.settings.server.start_seconds)
    asked = await service.engine.open_questions(run.thread) if run.status is RunStatus.WAITING else []
    told = StartResponse(
        thread_id=run.thread, run_id=run.id, status=run.status, error=hide_paths(run.error),
        interrupt=to_interrupt(asked[0]) if asked else None,
    )  # fmt: skip
    return to_start_response(told, 202 if asked else 200)


def to_start_response(told: StartResponse, status: int) -> Response:
    headers = {"Location": f"/api/threads/{told.thread_id}"}
    return Response(to_json_bytes(told), status, headers=headers, media_type="application/json")


class RunBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "a1b2c3d4e5f6", "threadId": "4f1c2a9b7d3e", "status": "done", "stage": "completed",
                    "question": "How did Tesla's deliveries change over 2023?", "started": "2026-01-01T12:00:00Z",
                    "finished": "2026-01-01T12:01:30Z", "error": None, "depth": "quick", "mode": "auto",
                    "source": "auto", "model": None, "usd": 2.0,
                }
            ]
        }
    )  # fmt: skip

    id: str
    thread_id: str
    question: str
    status: RunStatus
    stage: Status
    started: datetime
    finished: datetime | None = None
    error: str | None = None
    depth: Depth
    mode: Mode | None = None
    source: str
    model: str | None = None
    usd: float | None = Field(default=None, description="The most it may cost, where that was said.")


def to_run_body(run: Run) -> RunBody:
    options = read_options(run)
    return RunBody(
        id=run.id, thread_id=run.thread, question=run.question, status=run.status, stage=run.stage,
        started=run.started, finished=run.finished, error=hide_paths(run.error), depth=options.depth, mode=options.mode,
        source=options.source, model=options.model, usd=options.usd,
    )  # fmt: skip
