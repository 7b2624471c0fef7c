"""OpenAI's forms, as clients send and expect them: what is unknown is ignored, and errors have a form of their own."""

import json
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Literal

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from assay.errors import AssayError
from assay.server.bodies import PROBLEM, Problem
from assay.server.problems import Refusal, help_of, status_of

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


class Part(BaseModel):
    type: str
    text: str | None = None


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    include_usage: bool | None = False


class ChatRequest(BaseModel):
    """Of OpenAI's parameters, those that mean something here; all others are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "assay",
                    "messages": [{"role": "user", "content": "How fast is the universe expanding?"}],
                    "stream": False,
                }
            ]
        }
    )

    model: str = Field(max_length=200, description="`assay`, or one of /v1/models.", examples=["assay"])
    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    metadata: dict[str, Any] | None = None


# -- what goes out ----------------------------------------------------------------------------------------


class Model(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": "assay", "object": "model", "created": 1767225600, "owned_by": "assay"}]}
    )

    id: str
    object: Literal["model"] = "model"
    created: int = 1767225600
    owned_by: str = "assay"


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class UrlCitation(BaseModel):
    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class Reply(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    reasoning_content: str = ""  # which agents were at work, and what was noted
    annotations: list[Annotation] = []


class Choice(BaseModel):
    index: int = 0
    message: Reply
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class Usage(BaseModel):
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
                    "model": "assay",
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
    choices: list[Choice]
    usage: Usage
    citations: list[str] = []  # the addresses of all sources
    metadata: dict[str, str] = {}


# -- errors -----------------------------------------------------------------------------------------------


class Fault(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class Faulty(BaseModel):
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

    error: Fault


class WireError(Refusal):
    """A request that OpenAI's form allows and that cannot be answered."""

    def __init__(self, message: str, *, param: str, code: str, status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.answer = status


def faults(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route. What is refused before a route is found has the form of all others."""
    early = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    return {
        status: {
            "description": HTTPStatus(status).phrase, "model": Faulty,
            **({"content": early} if status in _EARLY else {}),
        }
        for status in sorted({400, 401, 403, *_EARLY, *statuses})
    }  # fmt: skip


def fault(error: AssayError) -> tuple[int, dict[str, Any]]:
    """The status of an error, and how OpenAI's clients are told of it."""
    if isinstance(error, WireError):
        status, more = error.answer, {"param": error.param, "code": error.code}
    else:
        status, more = {422: 400}.get(status_of(error), status_of(error)), {}
    usual = ("server_error", None) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ("invalid_request_error", None)
    kind, code = _TYPES.get(status, usual)
    help = help_of(error)
    text = f"{error.message}. {help}".rstrip(". ") + "." if help else error.message
    return status, {"error": {"message": text, "type": kind, "param": None, "code": code, **more}}


class WireRoute(APIRoute):
    """A route whose errors OpenAI's clients understand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handler(request)
            except AssayError as error:
                status, body = fault(error)
                return _answer(request, status, body, error.headers if isinstance(error, Refusal) else {})
            except RequestValidationError as error:
                return _answer(request, 400, _malformed(error))
            except HTTPException as error:
                body = {"message": str(error.detail), "type": "invalid_request_error", "param": None, "code": None}
                return _answer(request, error.status_code, {"error": body})

        return told


def _malformed(error: RequestValidationError) -> dict[str, Any]:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])[:200]
    message = f"{where}: {first['msg']}" if where else first["msg"]
    return {"error": {"message": message, "type": "invalid_request_error", "param": where or None, "code": None}}


def _answer(request: Request, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """In ASCII: what was malformed may be no text that could be sent back."""
    clean = request.app.state.service.redaction.plain(body)
    return Response(json.dumps(clean), status, headers=dict(headers or {}), media_type="application/json")
