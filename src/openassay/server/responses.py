"""Responses: JSON with ETags (RFC 9110), files (RFC 6266), pages without scripts, and problem details (RFC 9457):

{"type": "urn:openassay:problem:thread-busy", "title": "Conflict", "status": 409, "detail": "...", "help": "...",
 "instance": "/api/threads/...", "requestId": "..."}
"""

import base64
import binascii
import hashlib
import json
import logging
import re
import unicodedata
from collections.abc import AsyncIterable, Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from openassay import errors
from openassay.errors import OpenAssayError
from openassay.export import to_file_stem
from openassay.models.thread import Cursor, is_id
from openassay.server.bodies import PROBLEM, ProblemDetails, hide_paths
from openassay.telemetry import request_id

_log = logging.getLogger("openassay")
MAX_ERRORS, MAX_ERROR_LENGTH = 20, 200  # of a malformed request, which may be wrong in 60,000 places
_COMMAND = re.compile(r"\bopenassay [a-z]+|(?<!\w)--[a-z]|OPENASSAY_")


class Refusal(OpenAssayError):
    """The request itself is refused, whatever it asks for. `kind` ends the `type` of the problem."""

    status, kind = 400, "refusal"

    def __init__(
        self, message: str, *, help: str = "", headers: Mapping[str, str] = {}, status: int = 0, kind: str = ""
    ) -> None:
        super().__init__(message, help=help)
        self.headers = dict(headers)
        self.status, self.kind = status or self.status, kind or self.kind


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


class PreconditionError(Refusal):
    status, kind = 412, "precondition"


class TooLargeError(Refusal):
    status, kind = 413, "too-large"


class UnsupportedError(Refusal):
    """A kind of file that cannot be read."""

    status, kind = 415, "unsupported"


class MalformedError(Refusal):
    status, kind = 422, "malformed"


class TooManyError(Refusal):
    status, kind = 429, "too-many"

    def __init__(self, message: str, *, retry_after: float, help: str, headers: Mapping[str, str] = {}) -> None:
        super().__init__(message, help=help, headers={**headers, "Retry-After": str(max(1, round(retry_after)))})


# An error that is not listed is what its nearest base class is.
_PROBLEMS: dict[type[BaseException], tuple[int, str]] = {
    OpenAssayError: (500, "openassay"),
    errors.UsageError: (409, "usage"),
    errors.QuestionError: (422, "question"),
    errors.PathError: (422, "path"),
    errors.NotFoundError: (404, "not-found"),
    errors.ConfigurationError: (422, "configuration"),
    errors.SourceError: (502, "source"),
    errors.ReadError: (500, "read"),
    errors.FetchError: (500, "fetch"),
    errors.AddressPolicyError: (500, "refused"),
    errors.EvidenceError: (500, "evidence"),
    errors.ReasoningError: (500, "reasoning"),
    errors.ModelError: (502, "model"),
    errors.RateLimitError: (502, "rate-limit"),
    errors.ModelTimeoutError: (502, "model-timeout"),
    errors.ContextOverflowError: (502, "context-overflow"),
    errors.ApiKeyError: (502, "key-rejected"),
    errors.RefusalError: (502, "refusal"),
    errors.StorageError: (503, "storage"),
    errors.IntegrityError: (500, "integrity"),
    errors.StaleLeaseError: (503, "fenced"),
    errors.ThreadBusyError: (409, "thread-busy"),
    errors.AnswerError: (422, "answer"),
    errors.LateAnswerError: (409, "late-answer"),
    errors.BudgetError: (402, "budget"),
}


def classify(error: OpenAssayError) -> tuple[int, str]:
    if isinstance(error, Refusal):
        return error.status, error.kind
    return next(_PROBLEMS[base] for base in type(error).__mro__ if base in _PROBLEMS)


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
    status, kind = classify(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("request %s: %s", request_id.get(), error.message)
    headers = error.headers if isinstance(error, Refusal) else {}
    detail = str(hide_paths(error.message))
    return build_problem(request, status, detail, kind=kind, headers=headers, help=help_of(error))


async def handle_crash(request: Request, error: Exception) -> Response:
    """Log what went wrong under the request's id, and tell the caller no more than that it did."""
    _log.error("request %s: %s: %s", request_id.get(), type(error).__name__, error, exc_info=error)
    return build_problem(request, 500, "something went wrong here", help="Report it with the request's id.")


# JSON, files and pages ---------------------------------------------------------------------------------------

IfMatch = Annotated[str | None, Header(alias="If-Match", description="Only if it is still this version (an ETag).")]
_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
)
_STYLES = re.compile(r"<style>(.*?)</style>", re.S)


def to_json_bytes(value: BaseModel | Mapping[str, Any]) -> bytes:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def json_response(value: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json_bytes(value), status, headers=dict(headers or {}), media_type="application/json")


def compute_etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def matches_etag(tag: str, header: str | None) -> bool:
    """Return whether a header names this version, or any."""
    names = [name.strip().removeprefix("W/") for name in (header or "").split(",")]
    return "*" in names or tag in names


def respond_unless_seen(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with content and its ETag; with 304 and nothing if the caller has it already."""
    tagged = {"Cache-Control": "private, no-cache", **(headers or {}), "ETag": compute_etag(content)}
    if matches_etag(tagged["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=tagged)
    return Response(content, headers=tagged, media_type=media_type)


def respond_with_etag(request: Request, value: BaseModel | Mapping[str, Any]) -> Response:
    return respond_unless_seen(request, to_json_bytes(value), "application/json")


def respond_with_events(
    frames: AsyncIterable[bytes] | Iterable[bytes], headers: Mapping[str, str] = {}
) -> StreamingResponse:
    """Stream server-sent events; FastAPI's own response takes one event at a time, with a heartbeat of 15 s."""
    all_headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers}
    return StreamingResponse(frames, headers=all_headers, media_type="text/event-stream")


def require_match(match: str | None, value: BaseModel | Mapping[str, Any]) -> None:
    """Raise PreconditionError where the caller has seen another version than there is."""
    if match is not None and not matches_etag(compute_etag(to_json_bytes(value)), match):
        raise precondition_error()


def precondition_error() -> PreconditionError:
    return PreconditionError("it has changed since you last saw it", help="Fetch it again and look at it first.")


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


def content_disposition(title: str, suffix: str) -> str:
    """Return the header of an attachment, with a file name in ASCII and one for all others."""
    name = to_file_stem(title)
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join(re.sub(r"[^A-Za-z0-9 ()+,._-]", " ", plain).split()).strip(" .") or "report"
    return f"attachment; filename=\"{plain}.{suffix}\"; filename*=UTF-8''{quote(f'{name}.{suffix}', safe='')}"


def respond_with_page(title: str, body: str, status: int = 200) -> HTMLResponse:
    """Answer with a page; everything in `body` that others have written is escaped."""
    content = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )
    return HTMLResponse(content, status, headers=page_headers(content))


def respond_with_message(title: str, *lines: str, status: int = 200) -> HTMLResponse:
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return respond_with_page(title, f"<h1>{escape(title)}</h1>{text}", status)


def page_headers(content: str) -> dict[str, str]:
    """Return headers that allow the page's own styles and nothing else, and send no referrer."""
    digests = (base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in _STYLES.findall(content))
    styles = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    policy = f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex, nofollow",
        "Cache-Control": "private, no-store",
    }
