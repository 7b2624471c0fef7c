"""What is told to a caller when something cannot be: RFC 9457 problem details, for every error of every route.

{"type": "urn:openassay:problem:thread-busy", "title": "Thread busy", "status": 409, "detail": "...", "help": "...",
 "instance": "/api/threads/...", "requestId": "..."}
"""

import json
import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from openassay.errors import (
    AnswerError,
    BudgetError,
    ConfigurationError,
    IntegrityError,
    LateAnswerError,
    ModelError,
    NotFoundError,
    OpenAssayError,
    PathError,
    QuestionError,
    SourceError,
    StorageError,
    ThreadBusyError,
    UsageError,
)
from openassay.server.bodies import PROBLEM, ProblemDetails
from openassay.server.redact import hide_paths
from openassay.telemetry import request_id

_log = logging.getLogger("openassay")
MOST_ERRORS, LONGEST = 20, 200  # of a malformed request, and characters of each: it may be wrong in 60,000 places


_COMMAND = re.compile(r"\bassay [a-z]+|(?<!\w)--[a-z]|OPENASSAY_")


class Refusal(OpenAssayError):
    """Something about the request itself, not about what was asked."""

    status: ClassVar[int] = 400

    def __init__(self, message: str, *, help: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, help=help)
        self.headers = dict(headers or {})


class UnknownCallerError(Refusal):
    status = 401

    def __init__(self, message: str = "say who you are") -> None:
        super().__init__(
            message,
            help="Send a token: Authorization: Bearer openassay_... (openassay users add NAME makes one).",
            headers={"WWW-Authenticate": "Bearer"},
        )


class ForbiddenError(Refusal):
    status = 403


class UnderWayError(Refusal):
    """The same request is being answered just now."""

    status = 409


class SlowError(Refusal):
    status = 408


class PreconditionError(Refusal):
    status = 412


class TooLargeError(Refusal):
    status = 413


class MalformedError(Refusal):
    status = 422


class UnsupportedError(Refusal):
    """A kind of file that is not read."""

    status = 415


class MisdirectedError(Refusal):
    """It is for a name that is not ours."""

    status = 421


class ConditionMissingError(Refusal):
    """Something is there already: the caller has to say which version of it they have seen."""

    status = 428


class TooManyError(Refusal):
    status = 429

    def __init__(self, message: str, *, retry_after: float, help: str = "") -> None:
        super().__init__(message, help=help, headers={"Retry-After": str(max(1, round(retry_after)))})


# The first that fits.
_STATUSES: tuple[tuple[type[OpenAssayError], int], ...] = (
    (NotFoundError, 404),
    (QuestionError, 422),
    (PathError, 422),
    (UsageError, 409),
    (ConfigurationError, 422),
    (ThreadBusyError, 409),
    (LateAnswerError, 409),
    (AnswerError, 422),
    (BudgetError, 402),
    (SourceError, 502),
    (ModelError, 502),
    (IntegrityError, 500),
    (StorageError, 503),
)


def status_of(error: OpenAssayError) -> int:
    if isinstance(error, Refusal):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def build_problem(
    request: Request, status: int, detail: str, *, kind: str = "", headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """In ASCII: what was malformed may be no text that could be sent back."""
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
    clean = request.app.state.service.redaction.redact_data(body)
    return Response(json.dumps(clean), status, headers=dict(headers or {}), media_type=PROBLEM)


def install(app: FastAPI) -> None:
    app.add_exception_handler(OpenAssayError, handle_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(Exception, handle_crash)
    drawn = app.openapi

    def described() -> dict[str, Any]:
        schema = drawn()
        schema.setdefault("components", {}).setdefault("schemas", {})[ProblemDetails.__name__] = (
            ProblemDetails.model_json_schema()
        )
        return schema

    app.openapi = described  # type: ignore[method-assign]  # what every `refusals` of a route refers to


async def handle_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OpenAssayError)  # noqa: S101  # how it is installed
    status = status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("request %s: %s", request_id.get(), error.message)
    headers = error.headers if isinstance(error, Refusal) else {}
    kind = re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__.removesuffix("Error")).lower()
    return build_problem(
        request, status, str(hide_paths(error.message)), kind=kind, headers=headers, help=help_of(error)
    )


def help_of(error: OpenAssayError) -> str:
    """What helps somebody who has no command line here."""
    if isinstance(error, Refusal):
        return error.help
    return " ".join(part for part in re.split(r"(?<=[.;])\s+", error.help) if not _COMMAND.search(part))


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    wrong = [
        {"at": ".".join(str(part)[:LONGEST] for part in one["loc"])[:LONGEST], "message": one["msg"][:LONGEST]}
        for one in error.errors()[:MOST_ERRORS]
    ]
    return build_problem(request, 422, "the request is not what this address takes", kind="malformed", errors=wrong)


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    return build_problem(request, error.status_code, str(error.detail), headers=error.headers)


async def handle_crash(request: Request, error: Exception) -> Response:
    """What went wrong is in the log, under the request's id; the caller is told no more than that."""
    _log.error("request %s: %s: %s", request_id.get(), type(error).__name__, error, exc_info=error)
    return build_problem(request, 500, "something went wrong here", help="Report it with the request's id.")
