"""How questions become runs, how runs are resumed and stopped, and how they are shown."""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, get_args
from uuid import uuid4

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import Field
from pydantic.config import JsonDict

from openassay.engine.validation import OpenQuestion, answer_schema
from openassay.errors import ConfigurationError, LateAnswerError, NotFoundError, OpenAssayError
from openassay.models.event import AT_WORK, RunStatus, Status
from openassay.models.plan import Depth, Mode
from openassay.models.spend import ModelRole
from openassay.models.thread import BranchChanges, ResearchOptions, Run
from openassay.server.auth import Writer
from openassay.server.bodies import Body, hide_file_urls, hide_paths, with_examples
from openassay.server.responses import MalformedError, Refusal, json_response
from openassay.server.service import Principal, Service, ServiceDep
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
    last = next(iter((await service.engine.threads.runs(thread))[-1:]), None)
    return last, last.options if last else ResearchOptions(user=caller.user)


def refuse_local_model(model: str | None, settings: Settings) -> None:
    """Refuse a model that is a file on the server's disk, unless the settings name it."""
    if model is None or model.partition(":")[0].strip() != "local":
        return
    roles = [getattr(settings, f"{role}_model") for role in get_args(ModelRole)]
    if model not in (settings.llm.model, settings.llm.fallback_model, settings.llm.budget_model, *roles):
        raise ConfigurationError("this server does not offer that model", help="Leave the model out to use its own.")


INTERRUPT_EXAMPLE: JsonDict = json.loads("""
    {"id": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b", "kind": "planning", "question": "Which period should it cover?",
    "options": ["The last year", "The last three years", "The last decade", "All of it", "Custom"],
    "shown": {"number": 1, "of": 2}, "asked": "2026-01-01T12:00:00Z", "due": "2026-01-01T12:30:00Z",
    "onTimeout": "guess", "form": {"type": "string", "maxLength": 2000}}
    """)
START_EXAMPLE: JsonDict = json.loads("""
    {"threadId": "4f1c2a9b7d3e", "runId": "a1b2c3d4e5f6", "status": "running", "interrupt": null, "error": null}
    """)


class InterruptBody(OpenQuestion, Body):
    """A question for a person. `form` is the JSON schema of an answer, `shown` what it is about."""

    model_config = with_examples(INTERRUPT_EXAMPLE)

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


# Requests that may be sent again: with an Idempotency-Key the same request is executed once, and answered alike. Only
# successful answers are stored; a caller who was refused may correct the request and use the key again.

_KEY = re.compile(r"[ -~]{1,255}")
RETRY_SECONDS = 2
STORED_HEADERS = ("location",)
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Of your choice, at most 255 characters: the same request with the same key is executed once. "
        "Kept for 24 hours.",
        examples=["c4d1f0b2-2b9e-4b7d-9d7e-0a3c1f5e8a11"],
    ),
]


class IdempotentRequest:
    """`name` is the id of the run that the request makes, so that it is found if its process died.

    `again`: an earlier attempt may have been executed before its process died."""

    def __init__(self, service: Service, caller: Principal, key: str | None, digest: str) -> None:
        self.name = uuid4().hex[:12]
        self.again = False
        self._service = service
        self._caller = caller
        self._key = key
        self._digest = digest

    async def __call__(self, work: Callable[[], Awaitable[Response]]) -> Response:
        """Execute the request, or repeat the answer that it got before."""
        if self._key is None:
            return await work()
        replies, owner = self._service.resources.replies, self._caller.user
        reply, is_ours = await replies.claim(owner, self._key, self._digest, self.name)
        if not is_ours and reply.request != self._digest:
            raise MalformedError(
                "this Idempotency-Key was used for another request", help="Use a new key for each request."
            )
        if not is_ours and not reply.pending:
            stored = json.loads(reply.body)
            headers = {**stored["headers"], "Idempotency-Replayed": "true"}
            return Response(stored["content"], reply.status, headers=headers, media_type="application/json")
        if not is_ours:
            self.again, self.name = True, reply.body
            if await self.find_run():  # a run that was made is answered with, whether or not its process lives
                return await work()
            message, headers = "this very request is being answered", {"Retry-After": str(RETRY_SECONDS)}
            raise Refusal(message, help="Send it again in a moment.", headers=headers, status=409, kind="under-way")
        self.again, self.name = reply.body != self.name, reply.body
        try:
            answer = await work()
        except OpenAssayError:
            if await self.find_run() is None:
                await replies.release(owner, self._key)
            raise
        headers = {name: answer.headers[name] for name in STORED_HEADERS if name in answer.headers}
        stored = {"headers": headers, "content": bytes(answer.body).decode()}
        await replies.store(owner, self._key, answer.status_code, json.dumps(stored))
        return answer

    async def find_run(self) -> Run | None:
        """Return the run that an earlier attempt has made, if any."""
        if self._key is None:
            return None
        try:
            return await self._service.engine.threads.run(self.name)
        except NotFoundError:
            return None


async def get_idempotent_request(
    request: Request, caller: Writer, service: ServiceDep, key: IdempotencyKey = None
) -> IdempotentRequest:
    if key is not None and not _KEY.fullmatch(key):
        raise MalformedError("an Idempotency-Key has 1 to 255 printable characters")
    content = b"\n".join([request.method.encode(), request.url.path.encode(), await request.body()])
    return IdempotentRequest(service, caller, key, hashlib.sha256(content).hexdigest())


Idempotency = Annotated[IdempotentRequest, Depends(get_idempotent_request)]
