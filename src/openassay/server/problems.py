"""Errors as RFC 9457 problem details, for every route.

{"type": "urn:openassay:problem:thread-busy", "title": "Conflict", "status": 409, "detail": "...", "help": "...",
 "instance": "/api/threads/...", "requestId": "..."}
"""

import json
import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from openassay import errors
from openassay.errors import OpenAssayError
from openassay.server.bodies import PROBLEM, ProblemDetails, hide_paths
from openassay.telemetry import request_id

_log = logging.getLogger("openassay")
MAX_ERRORS, MAX_ERROR_LENGTH = 20, 200  # of a malformed request, which may be wrong in 60,000 places
_COMMAND = re.compile(r"\bopenassay [a-z]+|(?<!\w)--[a-z]|OPENASSAY_")


class Refusal(OpenAssayError):
    """The request itself is refused, whatever it asks for. `kind` ends the `type` of the problem."""

    status: ClassVar[int] = 400
    kind: ClassVar[str] = "refusal"

    def __init__(self, message: str, *, help: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, help=help)
        self.headers = dict(headers or {})


class UnknownCallerError(Refusal):
    status, kind = 401, "unknown-caller"

    def __init__(self, message: str = "authentication required") -> None:
        super().__init__(
            message,
            help="Send a token: Authorization: Bearer openassay_... (openassay admin users add NAME creates one).",
            headers={"WWW-Authenticate": "Bearer"},
        )


class ForbiddenError(Refusal):
    status, kind = 403, "forbidden"


class SlowError(Refusal):
    status, kind = 408, "slow"


class UnderWayError(Refusal):
    """The same request is being answered just now."""

    status, kind = 409, "under-way"


class PreconditionError(Refusal):
    status, kind = 412, "precondition"


class TooLargeError(Refusal):
    status, kind = 413, "too-large"


class UnsupportedError(Refusal):
    """A kind of file that cannot be read."""

    status, kind = 415, "unsupported"


class MisdirectedError(Refusal):
    """A request for a host name that is not ours."""

    status, kind = 421, "misdirected"


class MalformedError(Refusal):
    status, kind = 422, "malformed"


class ConditionMissingError(Refusal):
    """The caller has to say which version of an existing thing they have seen."""

    status, kind = 428, "condition-missing"


class TooManyError(Refusal):
    status, kind = 429, "too-many"

    def __init__(self, message: str, *, retry_after: float, help: str = "") -> None:
        super().__init__(message, help=help, headers={"Retry-After": str(max(1, round(retry_after)))})


class _Problem(NamedTuple):
    status: int
    kind: str


# An error that is not listed is what its nearest base class is.
_PROBLEMS: dict[type[BaseException], _Problem] = {
    OpenAssayError: _Problem(500, "openassay"),
    errors.UsageError: _Problem(409, "usage"),
    errors.QuestionError: _Problem(422, "question"),
    errors.PathError: _Problem(422, "path"),
    errors.NotFoundError: _Problem(404, "not-found"),
    errors.ConfigurationError: _Problem(422, "configuration"),
    errors.SourceError: _Problem(502, "source"),
    errors.ReadError: _Problem(500, "read"),
    errors.FetchError: _Problem(500, "fetch"),
    errors.AddressPolicyError: _Problem(500, "refused"),
    errors.EvidenceError: _Problem(500, "evidence"),
    errors.ReasoningError: _Problem(500, "reasoning"),
    errors.ModelError: _Problem(502, "model"),
    errors.RateLimitError: _Problem(502, "rate-limit"),
    errors.ModelTimeoutError: _Problem(502, "model-timeout"),
    errors.ContextOverflowError: _Problem(502, "context-overflow"),
    errors.ApiKeyError: _Problem(502, "key-rejected"),
    errors.RefusalError: _Problem(502, "refusal"),
    errors.StorageError: _Problem(503, "storage"),
    errors.IntegrityError: _Problem(500, "integrity"),
    errors.StaleLeaseError: _Problem(503, "fenced"),
    errors.ThreadBusyError: _Problem(409, "thread-busy"),
    errors.AnswerError: _Problem(422, "answer"),
    errors.LateAnswerError: _Problem(409, "late-answer"),
    errors.BudgetError: _Problem(402, "budget"),
}


def _classify(error: OpenAssayError) -> _Problem:
    if isinstance(error, Refusal):
        return _Problem(error.status, error.kind)
    return next(_PROBLEMS[base] for base in type(error).__mro__ if base in _PROBLEMS)


def status_of(error: OpenAssayError) -> int:
    return _classify(error).status


def help_of(error: OpenAssayError) -> str:
    """Return the help of an error without what only helps on a command line."""
    if isinstance(error, Refusal):
        return error.help
    return " ".join(part for part in re.split(r"(?<=[.;])\s+", error.help) if not _COMMAND.search(part))


def redacted_response(
    request: Request, status: int, body: dict[str, Any], headers: Mapping[str, str] | None, media_type: str
) -> Response:
    """Answer with JSON in ASCII: what was malformed may contain text that cannot be encoded."""
    clean = request.app.state.service.redaction.redact_data(body)
    return Response(json.dumps(clean), status, headers=dict(headers or {}), media_type=media_type)


def build_problem(
    request: Request, status: int, detail: str, *, kind: str = "", headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    title = HTTPStatus(status).phrase
    body = {
        "type": f"urn:openassay:problem:{kind or re.sub(r'[^a-z]+', '-', title.lower())}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.url.path,
        "requestId": request_id.get(),
        **{name: value for name, value in more.items() if value},
    }
    return redacted_response(request, status, body, headers, PROBLEM)


def install(app: FastAPI) -> None:
    """Answer all errors of an application with problems, and describe them in its OpenAPI document."""
    for kind in (OpenAssayError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handle_error)
    app.add_exception_handler(Exception, handle_crash)
    build_openapi = app.openapi

    def openapi_with_problems() -> dict[str, Any]:
        schema = build_openapi()
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas[ProblemDetails.__name__] = ProblemDetails.model_json_schema()
        return schema

    app.openapi = openapi_with_problems  # type: ignore[method-assign]  # the schema that `refusals` refers to


async def handle_error(request: Request, error: Exception) -> Response:
    """Answer an error that was raised on purpose, by us, by FastAPI or by Starlette."""
    if isinstance(error, HTTPException):
        return build_problem(request, error.status_code, str(error.detail), headers=error.headers)
    if isinstance(error, RequestValidationError):
        shorten = slice(MAX_ERROR_LENGTH)
        found = [
            {"at": ".".join(str(part)[shorten] for part in one["loc"])[shorten], "message": one["msg"][shorten]}
            for one in error.errors()[:MAX_ERRORS]
        ]
        return build_problem(request, 422, "the request is not valid", kind="malformed", errors=found)
    assert isinstance(error, OpenAssayError)  # noqa: S101  # it is installed for these
    status, kind = _classify(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("request %s: %s", request_id.get(), error.message)
    headers = error.headers if isinstance(error, Refusal) else {}
    detail = str(hide_paths(error.message))
    return build_problem(request, status, detail, kind=kind, headers=headers, help=help_of(error))


async def handle_crash(request: Request, error: Exception) -> Response:
    """Log what went wrong under the request's id, and tell the caller no more than that it did."""
    _log.error("request %s: %s: %s", request_id.get(), type(error).__name__, error, exc_info=error)
    return build_problem(request, 500, "something went wrong here", help="Report it with the request's id.")
