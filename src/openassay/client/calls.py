"""Every request there is, described once: how it is sent, and what its answer becomes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx2
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from openassay.errors import OpenAssayError
from openassay.export.report import Report
from openassay.models.event import RunStatus

# What the server answers, where it is worth a name. What a newer server says besides is ignored.


class ResponseModel(BaseModel):
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
    thread_id: str
    run_id: str
    status: RunStatus
    interrupt: Interrupt | None = None


class StreamEvent(NamedTuple):
    """`name` is what a browser would call it; `data` has run, seq, kind, stage and the event's own data."""

    id: str
    name: str
    data: dict[str, Any]

    @property
    def is_final(self) -> bool:
        """Whether the run moves no more."""
        status = self.data.get("data", {}).get("status")
        return self.data.get("kind") == "run" and status in ("done", "failed", "cancelled")


class ResultPage(NamedTuple):
    """Some of a list, and where the next page begins."""

    items: list[dict[str, Any]]
    cursor: str | None


# What a server has refused.


class ApiError(OpenAssayError):
    """`status` is that of the answer, 0 where there was none; `problem` all that the server said (RFC 9457)."""

    def __init__(self, message: str, *, status: int = 0, help: str = "", problem: dict[str, Any] | None = None) -> None:
        super().__init__(message, help=help, retryable=status in (0, 429, 503))
        self.status = status
        self.problem = problem or {}


# Between a call and the wire, without a connection: what is sent, what an answer means, and when to try again.

T = TypeVar("T")
TRIES = 4
PAUSES = (0.2, 0.5, 1.0)  # seconds before another try, where the server does not say
MOST_PAUSE = 30.0
SILENCE = 60.0  # seconds without a sign of life after which a stream counts as lost
MOST_LOST = 60  # tries in a row at a stream: a server that restarts is away for a while
_AGAIN = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall(Generic[T]):
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

    def to_request(self) -> dict[str, Any]:
        given = {"json": self.json, "files": self.files}
        return {
            "method": self.method,
            "url": self.path,
            "params": {name: value for name, value in self.params.items() if value is not None},
            "headers": dict(self.headers),
            **{name: value for name, value in given.items() if value is not None},
        }


def retry_delay(tries: int, call: ApiCall[Any], answer: httpx2.Response | httpx2.TransportError) -> float | None:
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


def read_response(call: ApiCall[T], answer: httpx2.Response) -> T:
    if answer.is_success or answer.status_code == httpx2.codes.NOT_MODIFIED:
        return call.read(answer)
    raise to_api_error(answer)


def to_api_error(answer: httpx2.Response) -> ApiError:
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


def is_transient(answer: httpx2.Response) -> bool:
    """A server that starts, stops, or has too much to do."""
    return answer.status_code in _AGAIN


def unreachable_error(url: object, error: httpx2.TransportError | None) -> ApiError:
    reason = f": {type(error).__name__} {error}".rstrip() if error else ""
    return ApiError(f"{url} cannot be reached{reason}", help="Is the server running? openassay serve")


def stream_request(thread: str, run: str | None, last: str) -> dict[str, Any]:
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

    def read_lines(self, lines: Iterable[str]) -> list[StreamEvent]:
        return [event for line in lines for event in self.read_line(line)]

    def read_line(self, line: str) -> list[StreamEvent]:
        """The event that ends with this line, if one does."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            return self._emit()
        if name == "id":
            self._id = value
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return []

    def reset(self) -> None:
        """Half an event is none."""
        self._id, self._name, self._data = self.last, "", []

    def _emit(self) -> list[StreamEvent]:
        if not self._data:
            self._name = ""
            return []
        event = StreamEvent(self._id, self._name or "message", json.loads("\n".join(self._data)))
        self.last, self._name, self._data = self._id, "", []
        return [event]


JsonObject = dict[str, Any]


def _read_object(answer: httpx2.Response) -> JsonObject:
    found: JsonObject = answer.json()
    return found


def _read_nothing(answer: httpx2.Response) -> None:
    return None


def _read_start(answer: httpx2.Response) -> StartResult:
    return StartResult.model_validate_json(answer.content)


def _read_report(answer: httpx2.Response) -> Report:
    return Report.model_validate_json(answer.content)


def _page_reader(name: str) -> Callable[[httpx2.Response], ResultPage]:
    def read(answer: httpx2.Response) -> ResultPage:
        found = answer.json()
        return ResultPage(found[name], found.get("nextCursor"))

    return read


def _list_reader(name: str) -> Callable[[httpx2.Response], list[JsonObject]]:
    def read(answer: httpx2.Response) -> list[JsonObject]:
        found: list[JsonObject] = answer.json()[name]
        return found

    return read


def _idempotency_header() -> dict[str, str]:
    """So that a request whose answer was lost can be sent again."""
    return {"Idempotency-Key": uuid4().hex}


def _get(path: str, **params: Any) -> ApiCall[JsonObject]:
    return ApiCall(method="GET", path=path, read=_read_object, params=params)


def _delete(path: str) -> ApiCall[None]:
    return ApiCall(method="DELETE", path=path, read=_read_nothing)


def _send(method: str, path: str, body: Any, *, once: bool = False) -> ApiCall[JsonObject]:
    return ApiCall(
        method=method, path=path, read=_read_object, json=body, headers=_idempotency_header() if once else {}
    )


def _drop_none(**values: Any) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _thread_path(thread: str, *rest: str) -> str:
    return "/".join(["/api/threads", *(quote(part, safe="") for part in (thread, *rest))])


# Runs ----------------------------------------------------------------------------------------------------


def start(
    goal: str, mode: str | None, thread: str | None, interactive: bool, options: JsonObject
) -> ApiCall[StartResult]:
    body = _drop_none(goal=goal, modeOverride=mode, threadId=thread, interactive=interactive, **options)
    return ApiCall(method="POST", path="/api/threads/start", read=_read_start, json=body, headers=_idempotency_header())


def estimate(goal: str, options: JsonObject) -> ApiCall[JsonObject]:
    return _send("POST", "/api/quote", {"goal": goal, **options})


def resume(thread: str, interrupt: str | None, value: Any) -> ApiCall[JsonObject]:
    body = {} if interrupt is None else {"interruptId": interrupt, "value": value}
    return _send("POST", _thread_path(thread, "resume"), body, once=True)


def cancel(thread: str, drain: bool) -> ApiCall[JsonObject]:
    return _send("POST", _thread_path(thread, "cancel"), {"drain": drain})


def set_mode(thread: str, mode: str) -> ApiCall[JsonObject]:
    return _send("PATCH", _thread_path(thread, "mode"), {"mode": mode})


# Threads -------------------------------------------------------------------------------------------------


def threads(limit: int, cursor: str | None, status: str | None, q: str | None) -> ApiCall[ResultPage]:
    params = {"limit": limit, "cursor": cursor, "status": status, "q": q}
    return ApiCall(method="GET", path="/api/threads", read=_page_reader("threads"), params=params)


def thread(id: str) -> ApiCall[JsonObject]:
    return _get(_thread_path(id))


def rename(id: str, title: str) -> ApiCall[JsonObject]:
    return _send("PATCH", _thread_path(id), {"title": title})


def delete(id: str) -> ApiCall[None]:
    return _delete(_thread_path(id))


def runs(thread: str) -> ApiCall[list[JsonObject]]:
    return ApiCall(method="GET", path=_thread_path(thread, "runs"), read=_list_reader("runs"))


def state(thread: str, checkpoint: str | None) -> ApiCall[JsonObject]:
    return _get(_thread_path(thread, "state"), checkpoint=checkpoint)


def report(thread: str, run: str | None) -> ApiCall[Report]:
    return ApiCall(method="GET", path=_thread_path(thread, "report"), read=_read_report, params={"run": run})


def timings(thread: str, run: str | None) -> ApiCall[JsonObject]:
    return _get(_thread_path(thread, "timings"), run=run)


# Time travel ---------------------------------------------------------------------------------------------


def history(thread: str) -> ApiCall[list[JsonObject]]:
    return ApiCall(method="GET", path=_thread_path(thread, "history"), read=_list_reader("moments"))


def branches(thread: str) -> ApiCall[JsonObject]:
    return _get(_thread_path(thread, "branches"))


def fork(thread: str, checkpoint: str | None, changes: JsonObject) -> ApiCall[StartResult]:
    body = _drop_none(checkpoint=checkpoint, changes=changes)
    return ApiCall(
        method="POST", path=_thread_path(thread, "fork"), read=_read_start, json=body, headers=_idempotency_header()
    )


def diff(a: str, b: str) -> ApiCall[JsonObject]:
    return _get("/api/diff", a=a, b=b)


# Questions and sources -----------------------------------------------------------------------------------


def reviews(thread: str | None) -> ApiCall[list[JsonObject]]:
    path = _thread_path(thread, "reviews") if thread else "/api/reviews"
    return ApiCall(method="GET", path=path, read=_list_reader("reviews"))


def answer(review: str, value: Any) -> ApiCall[JsonObject]:
    return _send("POST", f"/api/reviews/{quote(review, safe='')}/answer", {"value": value})


def sources(thread: str, run: str | None) -> ApiCall[list[JsonObject]]:
    return ApiCall(
        method="GET", path=_thread_path(thread, "sources"), read=_list_reader("sources"), params={"run": run}
    )


def pin(thread: str, source: str, *, pinned: bool) -> ApiCall[None]:
    method = "PUT" if pinned else "DELETE"
    return ApiCall(method=method, path=_thread_path(thread, "sources", source, "pin"), read=_read_nothing)


def veto(thread: str, source: str) -> ApiCall[StartResult]:
    return ApiCall(method="POST", path=_thread_path(thread, "sources", source, "veto"), read=_read_start, json={})


# What is kept --------------------------------------------------------------------------------------------


def artifacts(thread: str) -> ApiCall[list[JsonObject]]:
    return ApiCall(method="GET", path=_thread_path(thread, "artifacts"), read=_list_reader("artifacts"))


def artifact(thread: str, name: str, version: int | None) -> ApiCall[JsonObject]:
    return _get(_thread_path(thread, "artifacts", name), version=version)


def export(thread: str, format: str) -> ApiCall[bytes]:
    return ApiCall(
        method="GET", path=_thread_path(thread, "export"), read=lambda answer: answer.content, params={"format": format}
    )


def upload(paths: Sequence[Path]) -> ApiCall[list[JsonObject]]:
    files = [("files", (path.name, path.read_bytes())) for path in paths]
    return ApiCall(method="POST", path="/api/documents", read=_list_reader("documents"), files=files)


def documents(limit: int, cursor: str | None) -> ApiCall[ResultPage]:
    params = {"limit": limit, "cursor": cursor}
    return ApiCall(method="GET", path="/api/documents", read=_page_reader("documents"), params=params)


def delete_document(id: str) -> ApiCall[None]:
    return _delete(f"/api/documents/{quote(id, safe='')}")


def memory() -> ApiCall[JsonObject]:
    return _get("/api/memory")


def remember(text: str) -> ApiCall[JsonObject]:
    return _send("POST", "/api/memory/facts", {"text": text})


def forget(fact: str) -> ApiCall[None]:
    return _delete(f"/api/memory/facts/{quote(fact, safe='')}")


def share(thread: str, days: float | None) -> ApiCall[JsonObject]:
    return _send("POST", _thread_path(thread, "shares"), _drop_none(days=days))


def unshare(thread: str, share: str) -> ApiCall[None]:
    return _delete(_thread_path(thread, "shares", share))


def account() -> ApiCall[JsonObject]:
    return _get("/api/account")
