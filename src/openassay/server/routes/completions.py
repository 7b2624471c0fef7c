"""OpenAssay as a model of chat front ends, in OpenAI's form: a question in, a checked report out, whole or streamed.

What is streamed as `reasoning_content` says which agent is at work; the answer itself begins when the report is done,
since nothing that was not checked is ever given as the answer. A client that disconnects stops its run, since nobody
would see what it costs; not if another client follows it, nor when it is the server that stops.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from openassay.errors import NotFoundError, OpenAssayError
from openassay.export import Report
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.plan import Depth, Mode
from openassay.models.thread import ResearchOptions, Run
from openassay.server import completions
from openassay.server.auth import Reader, Writer
from openassay.server.bodies import PROBLEM_CONTENT, Responses, with_examples
from openassay.server.responses import Refusal, classify, help_of, redacted_response, respond_with_events
from openassay.server.runs import ask
from openassay.server.service import Service, ServiceDep

_log = logging.getLogger("openassay")
HEARTBEAT = b": still here\n\n"
DONE = b"data: [DONE]\n\n"
POLL_SECONDS = 2.0  # after which it is checked whether a client that waits in silence is still connected
_stopping: set[asyncio.Task[None]] = set()  # runs whose client has disconnected

# Bodies: unknown fields are ignored, and errors have OpenAI's form -------------------------------------------------

MAX_MESSAGES = 2000
_EARLY_STATUSES = (413, 422, 429)  # of refusals before a route is found, which are problems
_TYPES = {
    401: ("authentication_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("permission_error", "permission_denied"),
    404: ("invalid_request_error", "not_found"),
    409: ("conflict_error", "conflict"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


class ContentPart(BaseModel):
    type: str
    text: str | None = None


class RequestMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text" and part.text)
        return self.content or ""


class StreamOptions(BaseModel):
    include_usage: bool | None = False


class ChatRequest(BaseModel):
    """The parameters of OpenAI's that are used here; all others are ignored."""

    model_config = with_examples("""
        {"model": "openassay", "messages": [{"role": "user", "content": "How fast is the universe expanding?"}],
        "stream": false}
        """)

    model: str = Field(max_length=200, description="`openassay`, or one of /v1/models.", examples=["openassay"])
    messages: list[RequestMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    metadata: dict[str, Any] | None = None


class ModelInfo(BaseModel):
    model_config = with_examples("""
        {"id": "openassay", "object": "model", "created": 1767225600, "owned_by": "openassay"}
        """)

    id: str
    object: Literal["model"] = "model"
    created: int = 1767225600
    owned_by: str = "openassay"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelInfo]


class UrlCitation(BaseModel):
    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class ReplyMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    reasoning_content: str = ""  # the progress of the run, and notes
    annotations: list[Annotation] = []


class CompletionChoice(BaseModel):
    index: int = 0
    message: ReplyMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class CompletionUsage(BaseModel):
    """What the models behind the answer have used; `cost` is in USD."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float = 0.0


class Completion(BaseModel):
    model_config = with_examples(r"""
        {"id": "chatcmpl-9b1deb4d3b7d", "object": "chat.completion", "created": 1767605400, "model": "openassay",
        "choices": [{"index": 0, "message": {"role": "assistant",
        "content": "# How fast ...\n\n... ✓ [[S1]](https://...)"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9120, "completion_tokens": 2110, "total_tokens": 11230, "cost": 0.05},
        "citations": ["https://example.org/expansion"], "metadata": {"thread": "4f1c2a9b7d3e", "run": "9b1deb4d3b7d"}}
        """)

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    citations: list[str] = []  # the addresses of all sources
    metadata: dict[str, str] = {}


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(BaseModel):
    model_config = with_examples("""
        {"error": {"message": "there is no model gpt-4o", "type": "invalid_request_error", "param": "model",
        "code": "model_not_found"}}
        """)

    error: ErrorDetail


class CompletionError(Refusal):
    """A request that OpenAI's API allows and that cannot be answered."""

    kind = "wire"

    def __init__(self, message: str, *, param: str, code: str, status: int = 400) -> None:
        super().__init__(message, status=status)
        self.param, self.code = param, code


def error_responses(*statuses: int) -> Responses:
    """Return the `responses=` of a route whose errors have OpenAI's form."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "model": ErrorResponse,
            **({"content": PROBLEM_CONTENT} if status in _EARLY_STATUSES else {}),
        }
        for status in sorted({400, 401, 403, *_EARLY_STATUSES, *statuses})
    }


def to_openai_error(error: OpenAssayError) -> tuple[int, dict[str, Any]]:
    """Return the status of an error, and its body for OpenAI's clients."""
    status, _ = classify(error)
    status = 400 if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    default = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    kind, code = _TYPES.get(status, (default, None))
    help = help_of(error)
    message = f"{error.message}. {help}".rstrip(". ") + "." if help else error.message
    if isinstance(error, CompletionError):
        return status, _error_body(message, kind, error.param, error.code)
    return status, _error_body(message, kind, code=code)


def _error_body(message: str, type: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


class CompletionRoute(APIRoute):
    """A route whose errors have OpenAI's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            headers: Mapping[str, str] = {}
            try:
                return await handler(request)
            except OpenAssayError as error:
                status, body = to_openai_error(error)
                headers = error.headers if isinstance(error, Refusal) else {}
            except RequestValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"][1:])[:200]
                message = f"{where}: {first['msg']}" if where else first["msg"]
                status, body = 400, _error_body(message, "invalid_request_error", where or None)
            except HTTPException as error:
                status, body = error.status_code, _error_body(str(error.detail), "invalid_request_error")
            return redacted_response(request, status, body, headers, "application/json")

        return handle


# Answers: a report whose marks [S1] lead to its sources -----------------------------------------------------------

_MARK = re.compile(r"\[\[(S\d+)\]\]\(#s\d+\)")  # only ours: what sources say has its brackets escaped
_ANCHOR = re.compile(r'<a id="s\d+"></a>')
_UNSAFE = re.compile(r"[\s<>()\\`\"]")


class ChatAnswer(NamedTuple):
    text: str
    annotations: list[Annotation]  # where in the text which source is cited
    urls: tuple[str, ...]  # of all sources, in their order


def to_chat_answer(report: Report) -> ChatAnswer:
    """Return a report as an answer. Files on the server's disk are listed as sources, but not linked or cited."""
    cards = {card.id: card for card in report.sources if not card.url.startswith("file:")}
    text = _ANCHOR.sub("", report.markdown)
    parts, annotations, length, at = list[str](), list[Annotation](), 0, 0
    for mark in _MARK.finditer(text):
        card = cards.get(mark[1])
        link = f"[{mark[1]}]"
        if card is not None and re.match(r"https?://", card.url):  # a link that can do nothing but open a page
            address = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), card.url)
            link = f"[{link}]({address})"
        parts += [text[at : mark.start()], link]
        start = length + mark.start() - at
        length, at = start + len(link), mark.end()
        if card is not None:
            citation = UrlCitation(start_index=start, end_index=length, url=card.url, title=card.title)
            annotations.append(Annotation(url_citation=citation))
    return ChatAnswer("".join([*parts, text[at:]]), annotations, tuple(card.url for card in cards.values()))


# Runs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionWriter:
    """Encodes the answer to one request."""

    id: str
    created: int
    body: ChatRequest
    metadata: dict[str, str] = field(default_factory=dict)

    def encode(self, reply: ReplyMessage, usage: CompletionUsage | None = None, urls: tuple[str, ...] = ()) -> bytes:
        completion = Completion(
            id=self.id,
            created=self.created,
            model=self.body.model,
            choices=[CompletionChoice(message=reply)],
            usage=usage or CompletionUsage(),
            citations=list(urls),
            metadata=self.metadata,
        )
        return completion.model_dump_json().encode()

    def encode_chunk(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return self._encode_frame({"choices": choices, **({"usage": None} if self._includes_usage else {}), **more})

    def encode_end(self, usage: CompletionUsage | None = None) -> bytes:
        content = {"choices": [], "usage": (usage or CompletionUsage()).model_dump()}
        return (self._encode_frame(content) if self._includes_usage else b"") + DONE

    @property
    def _includes_usage(self) -> bool:
        return bool(self.body.stream_options and self.body.stream_options.include_usage)

    def _encode_frame(self, content: dict[str, Any]) -> bytes:
        frame = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.body.model}
        return f"data: {json.dumps({**frame, **content}, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRun:
    """The run that answers a request."""

    service: Service
    request: Request
    writer: CompletionWriter
    run: Run
    conversation: completions.ChatConversation

    async def complete(self) -> bytes:
        narration = completions.Narration()
        lines = [f"Note: {note}\n" for note in self.conversation.notes]
        async with aclosing(self._follow(POLL_SECONDS)) as batches:
            async for events in batches:
                lines.append(narration.narrate(events))
        report, answer = await self._load_answer()
        reply = ReplyMessage(content=answer.text, reasoning_content="".join(lines), annotations=answer.annotations)
        return self.writer.encode(reply, to_usage(report), answer.urls)

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield what happens, and then the answer, in chunks."""
        narration, encode = completions.Narration(), self.writer.encode_chunk
        yield encode({"role": "assistant", "content": ""})
        try:
            for note in self.conversation.notes:
                yield encode({"reasoning_content": f"Note: {note}\n"})
            async with aclosing(self._follow(self.service.settings.server.heartbeat)) as batches:
                async for events in batches:
                    lines = narration.narrate(events)
                    yield encode({"reasoning_content": lines}) if lines else b"" if events else HEARTBEAT
            report, answer = await self._load_answer()
            for paragraph in filter(None, re.split(r"(?<=\n\n)", answer.text)):
                yield encode({"content": paragraph})
            last = {"annotations": [one.model_dump() for one in answer.annotations]}
            yield encode(last, finish="stop", citations=list(answer.urls), metadata=self.writer.metadata)
            yield self.writer.encode_end(to_usage(report))
        except ClientDisconnect:
            return
        except OpenAssayError as error:
            body = self.service.redaction.redact_data(to_openai_error(error)[1])
            yield f"data: {json.dumps(body)}\n\n".encode() + DONE

    async def _follow(self, max_wait: float) -> AsyncGenerator[list[Event]]:
        """Yield the events of the run until it has ended; an empty list after `max_wait` seconds without one."""
        try:
            async with aclosing(self.service.feeds.read_batches(self.run.id, max_wait=max_wait)) as batches:
                async for events in batches:
                    if await self.request.is_disconnected():
                        raise ClientDisconnect
                    yield events
        finally:
            if await self.request.is_disconnected():  # in a task of its own: this one is being cancelled
                task = asyncio.create_task(_stop_run(self.service, self.run), name=f"leaving-{self.run.id}")
                _stopping.add(task)
                task.add_done_callback(_stopping.discard)

    async def _load_answer(self) -> tuple[Report, ChatAnswer]:
        """Store and return the answer. It is stored first: the next question may come at once."""
        outcome = await self.service.engine.outcome(self.run.id)
        run, report = outcome.run, outcome.report
        if report is not None:
            answer = to_chat_answer(report)
            with suppress(NotFoundError):  # the thread was deleted meanwhile
                await self.service.resources.chats.add(run.thread, self.conversation.question, answer.text)
            return report, answer
        if fault := self.service.engine.fault(run.id):
            raise fault
        if run.status is RunStatus.FAILED:
            raise OpenAssayError(run.error or "the run has failed", help=f"The thread is {run.thread}.")
        message, help = f"the run is {run.status}", f"Resume it on its thread, {run.thread}."
        if run.status in AT_WORK:
            message, help = "the server stops", f"The run continues on its thread, {run.thread}."
        raise Refusal(message, help=help, status=409, kind="unanswered")


async def _stop_run(service: Service, run: Run) -> None:
    await asyncio.sleep(0)  # the client that has left is no reader any more by then
    if service.feeds.closed or service.feeds.count_readers(run.id):  # another client reads it
        return
    try:
        await service.engine.stop(run.thread, run=run.id)
    except OpenAssayError as error:  # it has ended just now, or its thread is gone
        _log.info("run %s was not stopped: %s", run.id, error.message)


def to_usage(report: Report) -> CompletionUsage:
    """Return the tokens of the language models; the rules use none."""
    models = report.spend.by_model.values()
    prompt, completion = (sum(getattr(one, name) for one in models) for name in ("prompt_tokens", "completion_tokens"))
    return CompletionUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cost=round(report.spend.usd, 6),
    )


# Routes -------------------------------------------------------------------------------------------------------

router = APIRouter(tags=["completions"], route_class=CompletionRoute)
THREAD_HEADER = "X-OpenAssay-Thread"
_DEPTHS: dict[str, Depth | None] = {"openassay": None, **{f"openassay-{depth}": depth for depth in Depth}}
_STREAM = {
    "text/event-stream": {
        "example": 'data: {"id":"chatcmpl-9b1deb4d3b7d","object":"chat.completion.chunk","created":1767605400,'
        '"model":"openassay","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    }
}


@router.get("/v1/models", summary="List the models", responses=error_responses())
async def list_models(caller: Reader) -> ModelList:
    """One for each depth of research; `openassay` has that of the settings."""
    return ModelList(data=[ModelInfo(id=id) for id in _DEPTHS])


@router.get("/v1/models/{model}", summary="Get a model", responses=error_responses(404))
async def get_model(model: Annotated[str, Path(max_length=200, examples=["openassay"])], caller: Reader) -> ModelInfo:
    _parse_depth(model)
    return ModelInfo(id=model)


@router.post(
    "/v1/chat/completions",
    summary="Ask a question as a chat front end does",
    response_model=Completion,
    responses={
        200: {"description": "The answer.", "content": _STREAM},
        **error_responses(402, 404, 409, 500, 502, 503),
    },
)
async def create_chat_completion(body: ChatRequest, request: Request, caller: Writer, service: ServiceDep) -> Response:
    """The last message of the user is researched; earlier messages continue the thread on which they were sent. The
    answer is a report in Markdown, with its sources as `annotations` and `citations`. A client that disconnects stops
    its run, unless another follows it; the thread is named in X-OpenAssay-Thread."""
    depth = _parse_depth(body.model) or service.settings.depth
    if (body.n or 1) > 1:
        raise CompletionError("only one answer is given", param="n", code="unsupported_value")
    messages = [completions.ChatMessage(message.role, message.text) for message in body.messages]
    if task := completions.detect_task(messages, body.metadata, body.max_completion_tokens or body.max_tokens):
        writer = CompletionWriter(id=f"chatcmpl-{task}", created=int(service.now().timestamp()), body=body)
        return _respond_at_once(writer, completions.answer_task(task, messages))
    conversation = completions.read_conversation(messages)
    if conversation is None:
        raise CompletionError("there is no message of a user", param="messages", code="missing_question")
    # Other content is refused in the question alone: that of earlier messages was refused then.
    question = next(message for message in reversed(body.messages) if message.role == "user")
    kinds = [part.type for part in question.content] if isinstance(question.content, list) else []
    if other := next((kind for kind in kinds if kind != "text"), None):
        raise CompletionError(
            f"only text is supported here, not {other[:40]}", param="messages", code="unsupported_content"
        )
    # It continues the thread of this conversation; a history without a thread is given to the planner.
    before, context = conversation.before, conversation.instructions
    thread = await service.resources.chats.find_thread(caller.user, *before) if before else None
    if thread is None:
        context = "\n".join(filter(None, (context, conversation.history)))
    options = ResearchOptions(
        depth=depth, mode=Mode.AUTO, interactive=False, source=service.settings.source, context=context
    )
    run = await ask(service, caller, conversation.question, options, thread)
    writer = CompletionWriter(
        id=f"chatcmpl-{run.id}",
        created=int(run.started.timestamp()),
        body=body,
        metadata={"thread": run.thread, "run": run.id},
    )
    completion = CompletionRun(service=service, request=request, writer=writer, run=run, conversation=conversation)
    headers = {THREAD_HEADER: run.thread}
    if body.stream:
        return respond_with_events(completion.stream(), headers)
    return Response(await completion.complete(), headers=headers, media_type="application/json")


def _respond_at_once(writer: CompletionWriter, text: str) -> Response:
    """Answer a task that needs no run."""
    if not writer.body.stream:
        return Response(writer.encode(ReplyMessage(content=text)), media_type="application/json")
    chunks = [
        writer.encode_chunk({"role": "assistant", "content": text}),
        writer.encode_chunk({}, finish="stop"),
        writer.encode_end(),
    ]
    return respond_with_events(chunks)


def _parse_depth(model: str) -> Depth | None:
    if model not in _DEPTHS:
        raise CompletionError(f"there is no model {model}", param="model", code="model_not_found", status=404)
    return _DEPTHS[model]
