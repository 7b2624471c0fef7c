"""Bodies that several routes share: threads, cursors and questions; and those of OpenAI's API.

OpenAI's bodies ignore unknown fields, and its errors have a form of their own."""

import base64
import binascii
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt
from pydantic.config import JsonDict
from starlette.exceptions import HTTPException

from openassay.errors import OpenAssayError
from openassay.models.event import RunStatus
from openassay.models.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Depth, Mode, Style
from openassay.models.thread import Cursor, ResearchOptions, Thread, ThreadSummary, is_id
from openassay.server.auth import Principal
from openassay.server.bodies import PROBLEM_CONTENT, Body, Id, ReadableText, Responses, with_examples
from openassay.server.problems import MalformedError, Refusal, help_of, redacted_response, status_of
from openassay.server.service import Service


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


def encode_cursor(time: datetime, id: str) -> str:
    """Return the cursor after an item of a list, the newest first, as callers send it back."""
    return base64.urlsafe_b64encode(json.dumps([time.isoformat(), id]).encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Cursor:
    error = MalformedError("this is not a cursor", help="Use the nextCursor of a page, or none for the first page.")
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        time, id = json.loads(text)
        found = Cursor(datetime.fromisoformat(time), id)
        found.updated.astimezone(UTC)
    except (binascii.Error, ValueError, TypeError, OverflowError) as cause:  # the year 0 of some zone
        raise error from cause
    if found.updated.tzinfo is None or not isinstance(id, str) or not is_id(id):
        raise error
    return found


# OpenAI's API -------------------------------------------------------------------------------------------------

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
        super().__init__(message)
        self.param = param
        self.code = code
        self.http_status = status


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
    if isinstance(error, CompletionError):
        status, more = error.http_status, {"param": error.param, "code": error.code}
    else:
        status, more = {422: 400}.get(status_of(error), status_of(error)), {}
    default = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    kind, code = _TYPES.get(status, (default, None))
    help = help_of(error)
    message = f"{error.message}. {help}".rstrip(". ") + "." if help else error.message
    return status, _error_body(message, kind, **{"code": code, **more})


def _error_body(message: str, type: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    return ErrorResponse(error=ErrorDetail(message=message, type=type, param=param, code=code)).model_dump()


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
