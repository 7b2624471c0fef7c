"""How questions become runs, how runs are resumed and stopped, and how they are shown."""

import asyncio
from datetime import datetime
from typing import Any, get_args

from fastapi.responses import Response
from pydantic import Field
from pydantic.config import JsonDict

from openassay.engine.validation import OpenQuestion, answer_schema
from openassay.errors import ConfigurationError, LateAnswerError
from openassay.models.event import AT_WORK, RunStatus, Status
from openassay.models.plan import Depth, Mode
from openassay.models.spend import ModelRole
from openassay.models.thread import BranchChanges, OnTimeout, ResearchOptions, Run
from openassay.server.auth import Principal
from openassay.server.bodies import Body, hide_file_urls, hide_paths, with_examples
from openassay.server.responses import json_response
from openassay.server.service import Service
from openassay.settings import Settings
from openassay.telemetry import request_id, traceparent

POLL_SECONDS, MAX_POLL_SECONDS = 0.05, 0.4  # two seconds take nine looks
STOP_SECONDS = 2.0  # for which a run that is to stop is waited for
STOPPED = (RunStatus.CANCELLED, RunStatus.FAILED)


async def ask(
    service: Service,
    caller: Principal,
    question: str,
    options: ResearchOptions,
    thread: str | None = None,
    *,
    id: str | None = None,
) -> Run:
    """Queue a run; `thread` is one of the caller's, `id` that of the run. What the caller may not have is refused
    before anything is written."""
    refuse_local_model(options.model, service.settings)
    origin = {"user": caller.user, "request": request_id.get(), "trace": traceparent.get()}
    options = options.model_copy(update=origin)
    await service.engine.fetch_documents(options)
    async with service.limits.admit(caller, options) as allowed:
        run = await service.engine.queue(question, allowed, thread=thread, id=id)
    service.dispatcher.announce(run.id)
    return run


async def resume(service: Service, caller: Principal, thread: str, *, again: bool = False) -> Run:
    """Queue a run again that was stopped or has failed. `again`: an earlier attempt at this request may have been
    executed before its process died."""
    last, options = await _load_last(service, caller, thread)
    if again and last and last.status not in STOPPED:
        return last
    async with service.limits.admit(caller, options, resumed=last.id if last else None) as allowed:
        run = await service.engine.requeue(thread)
        if allowed != options:
            await service.engine.threads.set_options(run.id, allowed)
    service.dispatcher.announce(run.id)
    return run


async def answer_interrupt(service: Service, thread: str, question: str, value: object, *, again: bool = False) -> None:
    """Answer a question of a run, and resume it. `again`: as for `resume`."""
    try:
        run = await service.engine.interrupts.answer(thread, question, value, queued=service.has_workers)
    except LateAnswerError:
        if not again or (await service.engine.interrupts.review(question)).by != "person":
            raise
    else:
        service.dispatcher.announce(run.id)


async def change_mode(service: Service, thread: str, mode: Mode) -> None:
    if await service.engine.interrupts.set_mode(thread, mode, queued=service.has_workers):
        service.dispatcher.announce((await service.engine.threads.runs(thread))[-1].id)


async def stop(service: Service, thread: str, *, drain: bool) -> Run:
    """Stop a run. One that is being claimed here just now is stopped as soon as it is; another process checks once a
    second whether its run is to stop."""
    engine, clock = service.engine, asyncio.get_running_loop().time
    run, deadline = await engine.stop(thread, drain=drain), clock() + STOP_SECONDS
    while run.status in AT_WORK and not drain and clock() < deadline:
        if run.id in engine.list_running():
            await engine.cancel(run.id)
        await asyncio.sleep(POLL_SECONDS)
        run = await engine.threads.run(run.id)
    return run


async def fork(
    service: Service,
    caller: Principal,
    thread: str,
    checkpoint: str | None,
    changes: BranchChanges,
    *,
    interactive: bool | None = None,
    id: str | None = None,
) -> Run:
    refuse_local_model(changes.model, service.settings)
    _, options = await _load_last(service, caller, thread)
    new = {"usd": changes.usd, "model": changes.model, "source": changes.source}
    options = options.model_copy(update={name: value for name, value in new.items() if value is not None})
    async with service.limits.admit(caller, options) as allowed:
        run = await service.engine.branches.fork(
            thread, checkpoint, changes, interactive=interactive, usd=allowed.usd, id=id, queued=True
        )
    service.dispatcher.announce(run.id)
    return run


async def veto(service: Service, caller: Principal, thread: str, document: str) -> Run:
    _, options = await _load_last(service, caller, thread)
    async with service.limits.admit(caller, options) as allowed:
        run = await service.engine.vetoes.begin(thread, [document], usd=allowed.usd, queued=True)
    service.dispatcher.announce(run.id)
    return run


async def _load_last(service: Service, caller: Principal, thread: str) -> tuple[Run | None, ResearchOptions]:
    """Return the last run of a thread, if there is one, and its options."""
    last = next(iter((await service.engine.threads.runs(thread))[-1:]), None)
    return last, last.options if last else ResearchOptions(user=caller.user)


def refuse_local_model(model: str | None, settings: Settings) -> None:
    """Refuse a model that is a file on the server's disk, unless the settings name it."""
    if model is None or model.partition(":")[0].strip() != "local":
        return
    roles = [getattr(settings, f"{role}_model") for role in get_args(ModelRole)]
    if model not in (settings.llm.model, settings.llm.fallback_model, settings.llm.budget_model, *roles):
        raise ConfigurationError("this server does not offer that model", help="Leave the model out to use its own.")


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

    model_config = with_examples(INTERRUPT_EXAMPLE)

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

    model_config = with_examples(START_EXAMPLE, {**START_EXAMPLE, "status": "waiting", "interrupt": INTERRUPT_EXAMPLE})

    thread_id: str
    run_id: str
    status: RunStatus
    interrupt: InterruptBody | None = None
    error: str | None = None


async def wait_for_run(service: Service, id: str, seconds: float) -> Run:
    """Return a run once it waits for a person or has ended, or as it is after so many seconds."""
    clock = asyncio.get_running_loop().time
    deadline, pause = clock() + seconds, POLL_SECONDS
    run = await service.engine.threads.run(id)
    while run.status in AT_WORK and (left := deadline - clock()) > 0:
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, MAX_POLL_SECONDS)
        run = await service.engine.threads.run(id)
    return run


async def wait_for_start(service: Service, run: Run) -> Response:
    """Answer at the first question of a run, when it has ended, or after `server.start_seconds`."""
    run = await wait_for_run(service, run.id, service.settings.server.start_seconds)
    questions = await service.engine.interrupts.open_questions(run.thread) if run.status is RunStatus.WAITING else []
    return to_start_response(run, to_interrupt(questions[0]) if questions else None, 202 if questions else 200)


def to_start_response(run: Run, interrupt: InterruptBody | None, status: int) -> Response:
    body = StartResponse(
        thread_id=run.thread, run_id=run.id, status=run.status, error=hide_paths(run.error), interrupt=interrupt
    )
    return json_response(body, status, {"Location": f"/api/threads/{run.thread}"})


class RunBody(Body):
    model_config = with_examples("""
        {"id": "a1b2c3d4e5f6", "threadId": "4f1c2a9b7d3e", "status": "done", "stage": "completed",
        "question": "How did Tesla's deliveries change over 2023?", "started": "2026-01-01T12:00:00Z",
        "finished": "2026-01-01T12:01:30Z", "error": null, "depth": "quick", "mode": "auto", "source": "auto",
        "model": null, "usd": 2.0}
        """)

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
    usd: float | None = Field(default=None, description="The most it may cost, if that was given.")


def to_run_body(run: Run) -> RunBody:
    own = run.model_dump(include={"id", "question", "status", "stage", "started", "finished"})
    options = run.options.model_dump(include={"depth", "mode", "source", "model", "usd"})
    return RunBody(**own, **options, thread_id=run.thread, error=hide_paths(run.error))
