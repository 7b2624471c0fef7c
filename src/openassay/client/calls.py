"""Requests and their answers, as both clients send and read them, and when a request is sent again."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

import httpx2
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from openassay.errors import OpenAssayError
from openassay.models.event import RunStatus

JsonObject = dict[str, Any]


class ResponseModel(BaseModel):
    """Data of the server; fields that only a newer server knows are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Interrupt(ResponseModel):
    """A question for a person: answer it with `resume(thread, interrupt.id, value)`."""

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}
    due: datetime | None = None


class StartResult(ResponseModel):
    """A run that has begun, and the question it waits for, if it waits for one."""

    thread_id: str
    run_id: str
    status: RunStatus
    interrupt: Interrupt | None = None


class StreamEvent(NamedTuple):
    """An event of a stream: `data` has run, seq, kind, stage and the event's own data."""

    id: str
    name: str
    data: dict[str, Any]

    @property
    def is_final(self) -> bool:
        """Return whether the run has ended with this event."""
        status = self.data.get("data", {}).get("status")
        return self.data.get("kind") == "run" and status in ("done", "failed", "cancelled")


class ApiError(OpenAssayError):
    """A refusal of the server: `status` is 0 where there was no answer, `problem` is its RFC 9457 body."""

    def __init__(self, message: str, *, status: int = 0, help: str = "", problem: dict[str, Any] | None = None) -> None:
        super().__init__(message, help=help, retryable=status in (0, 429, 503))
        self.status = status
        self.problem = problem or {}


T = TypeVar("T")
RETRY_SECONDS = (0.2, 0.5, 1.0)  # before the next attempts, unless the server says otherwise
MAX_RETRY_SECONDS = 30.0
STREAM_TIMEOUT = 60.0  # seconds without data after which a stream counts as lost
MAX_STREAM_ATTEMPTS = 60  # in a row: a server that restarts is away for a while
TRANSIENT = frozenset({429, 503})  # the server is starting, stopping or overloaded


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """One request, and the function that reads its answer. `arguments` are those of httpx's `request`."""

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def is_safe_to_repeat(self) -> bool:
        """Return whether it may be sent again although it may have arrived."""
        return self.method in ("GET", "PUT", "DELETE") or "Idempotency-Key" in self.arguments.get("headers", ())


def retry_delay(attempts: int, call: ApiCall[Any], answer: httpx2.Response | httpx2.TransportError) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there is none.

    A refusal (429, 503) has changed nothing; a request that is still being answered is a 409 with Retry-After."""
    if attempts > len(RETRY_SECONDS):
        return None
    usual = RETRY_SECONDS[attempts - 1]
    if isinstance(answer, httpx2.TransportError):
        return usual if call.is_safe_to_repeat or isinstance(answer, httpx2.ConnectError) else None
    is_in_progress = answer.status_code == httpx2.codes.CONFLICT and "Retry-After" in answer.headers
    if answer.status_code not in TRANSIENT and not is_in_progress:
        return None
    try:
        return min(float(answer.headers["Retry-After"]), MAX_RETRY_SECONDS)
    except (KeyError, ValueError):
        return usual


def read_response(call: ApiCall[T], answer: httpx2.Response | httpx2.TransportError, url: object) -> T:
    """Return what the answer says, or raise ApiError; `url` is that of the server."""
    if isinstance(answer, httpx2.TransportError):
        raise unreachable_error(url, answer) from answer
    if not answer.is_success:
        raise to_api_error(answer)
    return call.read(answer)


def to_api_error(answer: httpx2.Response) -> ApiError:
    try:
        problem = answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        problem = {}
    problem = problem if isinstance(problem, dict) else {}
    detail = str(problem.get("detail") or f"the server answered {answer.status_code}")
    wrong = "; ".join(f"{one['at']}: {one['message']}" for one in problem.get("errors", ()))
    message = f"{detail} ({wrong})" if wrong else detail
    return ApiError(message, status=answer.status_code, help=str(problem.get("help", "")), problem=problem)


def unreachable_error(url: object, error: httpx2.TransportError | None) -> ApiError:
    reason = f": {type(error).__name__} {error}".rstrip() if error else ""
    return ApiError(f"{url} cannot be reached{reason}", help="Is the server running? openassay serve")


def stream_request(thread: str, run: str | None, last: str) -> dict[str, Any]:
    """Return the arguments of the request for the events after `last`."""
    return {
        "url": f"/api/stream/{thread}",
        "params": {"run": run} if run else {},
        "headers": {"Last-Event-ID": last} if last else {},
        "timeout": httpx2.Timeout(STREAM_TIMEOUT, connect=10.0),
    }


class EventReader:
    """Parse server-sent events line by line; `last` is the id to reconnect with."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        self._id, self._name = last, ""
        self._data: list[str] = []
        self._failures = 0

    def read_line(self, line: str) -> StreamEvent | None:
        """Return the event that ends with this line, if one does."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line and self._data:
            event = StreamEvent(self._id, self._name or "message", json.loads("\n".join(self._data)))
            self.last, self._name, self._data, self._failures = self._id, "", [], 0
            return event
        if not line:
            self._name = ""
        if name == "id":
            self._id = value
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return None

    def reset(self) -> None:
        """Forget an event of which only a part has arrived."""
        self._id, self._name, self._data = self.last, "", []

    def reconnect_delay(self, url: object, error: httpx2.TransportError | None) -> float:
        """Return the seconds to wait before the next connection; raise ApiError after too many in a row."""
        self._failures += 1
        if self._failures > MAX_STREAM_ATTEMPTS:
            raise unreachable_error(url, error)
        self.reset()
        return min(0.1 * self._failures, 2.0)
