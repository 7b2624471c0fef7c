"""Between a call and the wire, without a connection: what is sent, what an answer means, and when to try again."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx2

from assay.client.answers import StreamEvent
from assay.client.errors import ApiError

T = TypeVar("T")
TRIES = 4
PAUSES = (0.2, 0.5, 1.0)  # seconds before another try, where the server does not say
MOST_PAUSE = 30.0
SILENCE = 60.0  # seconds without a sign of life after which a stream counts as lost
MOST_LOST = 60  # tries in a row at a stream: a server that restarts is away for a while
_AGAIN = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request, and what is made of its answer."""

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Any = None

    @property
    def is_safe_to_repeat(self) -> bool:
        """A request that may have arrived is sent again only where that changes nothing."""
        return self.method in ("GET", "PUT", "DELETE") or "Idempotency-Key" in self.headers

    def sent(self) -> dict[str, Any]:
        given = {"json": self.json, "files": self.files}
        return {
            "method": self.method,
            "url": self.path,
            "params": {name: value for name, value in self.params.items() if value is not None},
            "headers": dict(self.headers),
            **{name: value for name, value in given.items() if value is not None},
        }


def pause(tries: int, call: Call[Any], answer: httpx2.Response | httpx2.TransportError) -> float | None:
    """Seconds to wait before the next try; None: there is none. A refusal (429, 503) has changed nothing, and a request
    that is still under way (409 with a time to come back) has an answer then."""
    if tries >= TRIES:
        return None
    usual = PAUSES[min(tries - 1, len(PAUSES) - 1)]
    if isinstance(answer, httpx2.TransportError):
        return usual if call.is_safe_to_repeat or isinstance(answer, httpx2.ConnectError) else None
    under_way = answer.status_code == httpx2.codes.CONFLICT and "Retry-After" in answer.headers
    if answer.status_code not in _AGAIN and not under_way:
        return None
    try:
        return min(float(answer.headers["Retry-After"]), MOST_PAUSE)
    except (KeyError, ValueError):
        return usual


def understood(call: Call[T], answer: httpx2.Response) -> T:
    if answer.is_success or answer.status_code == httpx2.codes.NOT_MODIFIED:
        return call.read(answer)
    raise refused(answer)


def refused(answer: httpx2.Response) -> ApiError:
    try:
        problem = answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        problem = {}
    problem = problem if isinstance(problem, dict) else {}
    detail = str(problem.get("detail") or f"the server answered {answer.status_code}")
    wrong = "; ".join(f"{one['at']}: {one['message']}" for one in problem.get("errors", ()))
    return ApiError(
        f"{detail} ({wrong})" if wrong else detail,
        status=answer.status_code, help=str(problem.get("help", "")), problem=problem,
    )  # fmt: skip


def is_passing(answer: httpx2.Response) -> bool:
    """A server that starts, stops, or has too much to do."""
    return answer.status_code in _AGAIN


def unreachable(url: object, error: httpx2.TransportError | None) -> ApiError:
    reason = f": {type(error).__name__} {error}".rstrip() if error else ""
    return ApiError(f"{url} cannot be reached{reason}", help="Is the server running? assay serve")


def following(thread: str, run: str | None, last: str) -> dict[str, Any]:
    """The request for a stream of events, from after `last` on."""
    return {
        "url": f"/api/stream/{thread}",
        "params": {"run": run} if run else {},
        "headers": {"Last-Event-ID": last} if last else {},
        "timeout": httpx2.Timeout(SILENCE, connect=10.0),
    }


class EventReader:
    """Server-sent events, line by line; `last` is where to go on after the connection was lost."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        self._id, self._name = last, ""
        self._data: list[str] = []

    def lines(self, lines: Iterable[str]) -> list[StreamEvent]:
        return [event for line in lines for event in self.line(line)]

    def line(self, line: str) -> list[StreamEvent]:
        """The event that ends with this line, if one does."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            return self._dispatched()
        if name == "id":
            self._id = value
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return []

    def broken_off(self) -> None:
        """Half an event is none."""
        self._id, self._name, self._data = self.last, "", []

    def _dispatched(self) -> list[StreamEvent]:
        if not self._data:
            self._name = ""
            return []
        event = StreamEvent(self._id, self._name or "message", json.loads("\n".join(self._data)))
        self.last, self._name, self._data = self._id, "", []
        return [event]
