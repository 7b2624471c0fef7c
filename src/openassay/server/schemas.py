"""OpenAI's forms, as clients send and expect them: what is unknown is ignored, and errors have a form of their own."""

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
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.exceptions import HTTPException

from openassay.errors import OpenAssayError
from openassay.models.event import RunStatus
from openassay.models.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Depth, Mode, Style
from openassay.models.thread import Cursor, ResearchOptions, Thread, ThreadSummary, is_id
from openassay.server.auth import Principal
from openassay.server.bodies import PROBLEM, Body, Id, ProblemDetails, ReadableText, StrictBool, StrictFloat, StrictInt
from openassay.server.problems import MalformedError, Refusal, help_of, status_of
from openassay.server.service import Service

# A thread on one line, and where a page of them ends.


class ThreadBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "4f1c2a9b7d3e", "title": "How did Tesla's deliveries change over 2023?",
                    "created": "2026-01-01T12:00:00Z", "updated": "2026-01-01T12:01:30Z", "mode": None,
                    "status": "done", "question": "How did Tesla's deliveries change over 2023?", "turns": 1,
                    "usd": 0.31, "parent": None, "left": False, "damaged": False,
                }
            ]
        }
    )  # fmt: skip

    id: str
    title: str
    created: datetime
    updated: datetime
    mode: Mode | None = None
    status: RunStatus | None = Field(default=None, description="Of its last run; null: nothing was asked yet.")
    question: str = Field(default="", description="Of its last run.")
    turns: int = 0
    usd: float = Field(default=0.0, description="What all its runs have cost.")
    parent: str | None = Field(default=None, description="The thread it is a branch of.")
    left: bool = Field(default=False, description="It is running, by a process that is gone.")
    damaged: bool = Field(default=False, description="Something of it is not what was written.")


async def load_thread_body(service: Service, thread: Thread) -> ThreadBody:
    runs = await service.engine.threads.runs(thread.id)
    branch = await service.engine.threads.branch(thread.id)
    spent = [(await service.resources.ledger.get_spend(run.id)).usd for run in runs]
    return ThreadBody(
        id=thread.id, title=thread.title, created=thread.created, updated=thread.updated, mode=thread.mode,
        status=runs[-1].status if runs else None, question=runs[-1].question if runs else "", turns=len(runs),
        usd=round(sum(spent), 6), parent=branch.parent if branch else None,
    )  # fmt: skip


def cursor_of(page: Sequence[ThreadSummary]) -> str | None:
    end = end_of(page)
    return encode_cursor(*end) if end else None


def end_of(page: Sequence[ThreadSummary]) -> Cursor | None:
    """Threads that are damaged say nothing of their time, and are told of again."""
    last = next((one for one in reversed(page) if not one.damaged or one.title), None)
    return Cursor(last.updated, last.id) if last else None


def encode_cursor(moment: datetime, id: str) -> str:
    """Where a page of anything ends, the newest first; `opened` reads it."""
    return base64.urlsafe_b64encode(json.dumps([moment.isoformat(), id]).encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Cursor:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        moment, id = json.loads(text)
        found = Cursor(datetime.fromisoformat(moment), id)
        found.updated.astimezone(UTC)
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:  # the year 0 of some zone
        raise _cursor_error() from error
    if found.updated.tzinfo is None or not isinstance(id, str) or not is_id(id):
        raise _cursor_error()
    return found


def _cursor_error() -> MalformedError:
    return MalformedError("this is no cursor", help="Use the nextCursor of a page as it is, or none for the first.")


MOST_MESSAGES = 2000
_EARLY = (413, 422, 429)
_TYPES = {
    401: ("authentication_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("permission_error", "permission_denied"),
    404: ("invalid_request_error", "not_found"),
    409: ("conflict_error", "conflict"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


# -- what comes in ----------------------------------------------------------------------------------------


class ContentPart(BaseModel):
    type: str
    text: str | None = None


class RequestMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(BaseModel):
    include_usage: bool | None = False


class ChatRequest(BaseModel):
    """Of OpenAI's parameters, those that mean something here; all others are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "openassay",
                    "messages": [{"role": "user", "content": "How fast is the universe expanding?"}],
                    "stream": False,
                }
            ]
        }
    )

    model: str = Field(max_length=200, description="`openassay`, or one of /v1/models.", examples=["openassay"])
    messages: list[RequestMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    metadata: dict[str, Any] | None = None


# -- what goes out ----------------------------------------------------------------------------------------


class ModelInfo(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": "openassay", "object": "model", "created": 1767225600, "owned_by": "openassay"}]
        }
    )

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
    reasoning_content: str = ""  # which agents were at work, and what was noted
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
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "chatcmpl-9b1deb4d3b7d",
                    "object": "chat.completion",
                    "created": 1767605400,
                    "model": "openassay",
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": "# How fast ...\n\n... ✓ [[S1]](https://...)"},
                            "finish_reason": "stop",
                        }
                    ],
                    "usage": {"prompt_tokens": 9120, "completion_tokens": 2110, "total_tokens": 11230, "cost": 0.05},
                    "citations": ["https://example.org/expansion"],
                    "metadata": {"thread": "4f1c2a9b7d3e", "run": "9b1deb4d3b7d"},
                }
            ]
        }
    )

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    citations: list[str] = []  # the addresses of all sources
    metadata: dict[str, str] = {}


# -- errors -----------------------------------------------------------------------------------------------


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "message": "there is no model gpt-4o",
                        "type": "invalid_request_error",
                        "param": "model",
                        "code": "model_not_found",
                    }
                }
            ]
        }
    )

    error: ErrorDetail


class CompletionError(Refusal):
    """A request that OpenAI's form allows and that cannot be answered."""

    def __init__(self, message: str, *, param: str, code: str, status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.answer = status


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route. What is refused before a route is found has the form of all others."""
    early = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}
    return {
        status: {
            "description": HTTPStatus(status).phrase, "model": ErrorResponse,
            **({"content": early} if status in _EARLY else {}),
        }
        for status in sorted({400, 401, 403, *_EARLY, *statuses})
    }  # fmt: skip


def to_openai_error(error: OpenAssayError) -> tuple[int, dict[str, Any]]:
    """The status of an error, and how OpenAI's clients are told of it."""
    if isinstance(error, CompletionError):
        status, more = error.answer, {"param": error.param, "code": error.code}
    else:
        status, more = {422: 400}.get(status_of(error), status_of(error)), {}
    usual = ("server_error", None) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ("invalid_request_error", None)
    kind, code = _TYPES.get(status, usual)
    help = help_of(error)
    text = f"{error.message}. {help}".rstrip(". ") + "." if help else error.message
    return status, {"error": {"message": text, "type": kind, "param": None, "code": code, **more}}


class CompletionRoute(APIRoute):
    """A route whose errors OpenAI's clients understand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handler(request)
            except OpenAssayError as error:
                status, body = to_openai_error(error)
                return _json_response(request, status, body, error.headers if isinstance(error, Refusal) else {})
            except RequestValidationError as error:
                return _json_response(request, 400, _validation_error_body(error))
            except HTTPException as error:
                body = {"message": str(error.detail), "type": "invalid_request_error", "param": None, "code": None}
                return _json_response(request, error.status_code, {"error": body})

        return told


def _validation_error_body(error: RequestValidationError) -> dict[str, Any]:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])[:200]
    message = f"{where}: {first['msg']}" if where else first["msg"]
    return {"error": {"message": message, "type": "invalid_request_error", "param": where or None, "code": None}}


def _json_response(
    request: Request, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """In ASCII: what was malformed may be no text that could be sent back."""
    clean = request.app.state.service.redaction.redact_data(body)
    return Response(json.dumps(clean), status, headers=dict(headers or {}), media_type="application/json")


# What a caller may ask for with a question. Documents are named by the ids of uploads: no path of the server's disk
# comes in from outside.

LONGEST_CONTEXT = 20_000  # characters
MOST_DOMAINS, MOST_DOCUMENTS = 20, 100
EXAMPLE: JsonDict = {"goal": "How did Tesla's deliveries change over 2023?", "depth": "quick"}

Words = Annotated[StrictInt, Field(ge=FEWEST_WORDS, le=MOST_WORDS)]
Usd = Annotated[StrictFloat, Field(ge=0, le=MOST_USD, allow_inf_nan=False)]
Name = Annotated[ReadableText, Field(min_length=1, max_length=200)]
Documents = Annotated[tuple[Id, ...], Field(max_length=MOST_DOCUMENTS, description="Ids of documents you uploaded.")]


class QuestionRequest(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    goal: ReadableText = Field(description="The question, of at most 2,000 characters.")
    depth: Depth | None = None
    style: Style | None = None
    words: Words | None = None
    source: Name | None = Field(default=None, description="Where to search; several with commas between them.")
    web: StrictBool = Field(default=False, description="Search the web beside the documents.")
    model: Name | None = None
    usd: Usd | None = Field(default=None, description="The most it may cost.")
    context: Annotated[ReadableText, Field(max_length=LONGEST_CONTEXT)] = ""
    domains: Annotated[tuple[Name, ...], Field(max_length=MOST_DOMAINS)] = ()
    documents: Documents = ()

    async def to_options(self, service: Service, caller: Principal) -> ResearchOptions:
        """NotFoundError for a document that is not the caller's."""
        settings = service.settings
        return ResearchOptions(
            depth=self.depth or settings.depth, user=caller.user, source=self.source or settings.source, web=self.web,
            style=self.style, words=self.words, model=self.model, usd=self.usd, context=self.context,
            domains=self.domains, docs=await resolve_documents(service, caller, self.documents),
        )  # fmt: skip


async def resolve_documents(service: Service, caller: Principal, documents: tuple[str, ...]) -> tuple[str, ...]:
    """What a run is told of documents: their names, or NotFoundError for another's."""
    return tuple(map(str, await service.resources.uploads.paths(caller.user, documents))) if documents else ()
