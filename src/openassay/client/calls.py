"""Every request of the API, described once: how it is sent, what its answer becomes, and when it is sent again.

The functions at the end are the methods of both clients, which take their signatures and docstrings from here.
"""

import json
from collections.abc import Callable, Mapping
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
from openassay.export import Report
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


class ResultPage(NamedTuple):
    """A page of a list, and the cursor of the next one."""

    items: list[dict[str, Any]]
    cursor: str | None


class ApiError(OpenAssayError):
    """A refusal of the server: `status` is 0 where there was no answer, `problem` is its RFC 9457 body."""

    def __init__(self, message: str, *, status: int = 0, help: str = "", problem: dict[str, Any] | None = None) -> None:
        super().__init__(message, help=help, retryable=status in (0, 429, 503))
        self.status = status
        self.problem = problem or {}


T = TypeVar("T")
MAX_ATTEMPTS = 4
RETRY_SECONDS = (0.2, 0.5, 1.0)  # before the next attempts, unless the server says otherwise
MAX_RETRY_SECONDS = 30.0
STREAM_TIMEOUT = 60.0  # seconds without data after which a stream counts as lost
MAX_STREAM_ATTEMPTS = 60  # in a row: a server that restarts is away for a while
_TRANSIENT = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall(Generic[T]):
    """One request, and the function that reads its answer."""

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Any = None

    @property
    def is_safe_to_repeat(self) -> bool:
        """Return whether it may be sent again although it may have arrived."""
        return self.method in ("GET", "PUT", "DELETE") or "Idempotency-Key" in self.headers

    def to_request(self) -> dict[str, Any]:
        body = {"json": self.json, "files": self.files}
        return {
            "method": self.method,
            "url": self.path,
            "params": {name: value for name, value in self.params.items() if value is not None},
            "headers": dict(self.headers),
            **{name: value for name, value in body.items() if value is not None},
        }


def retry_delay(attempts: int, call: ApiCall[Any], answer: httpx2.Response | httpx2.TransportError) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there is none.

    A refusal (429, 503) has changed nothing; a request that is still being answered is a 409 with Retry-After."""
    if attempts >= MAX_ATTEMPTS:
        return None
    usual = RETRY_SECONDS[min(attempts - 1, len(RETRY_SECONDS) - 1)]
    if isinstance(answer, httpx2.TransportError):
        return usual if call.is_safe_to_repeat or isinstance(answer, httpx2.ConnectError) else None
    is_in_progress = answer.status_code == httpx2.codes.CONFLICT and "Retry-After" in answer.headers
    if answer.status_code not in _TRANSIENT and not is_in_progress:
        return None
    try:
        return min(float(answer.headers["Retry-After"]), MAX_RETRY_SECONDS)
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
    message = f"{detail} ({wrong})" if wrong else detail
    return ApiError(message, status=answer.status_code, help=str(problem.get("help", "")), problem=problem)


def is_transient(answer: httpx2.Response) -> bool:
    """Return whether the server is starting, stopping or overloaded."""
    return answer.status_code in _TRANSIENT


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

    def read_line(self, line: str) -> StreamEvent | None:
        """Return the event that ends with this line, if one does."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line and self._data:
            event = StreamEvent(self._id, self._name or "message", json.loads("\n".join(self._data)))
            self.last, self._name, self._data = self._id, "", []
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


# How answers are read and requests are built -----------------------------------------------------------------


def _read_object(answer: httpx2.Response) -> JsonObject:
    found: JsonObject = answer.json()
    return found


def _read_nothing(answer: httpx2.Response) -> None:
    return None


def _read_start(answer: httpx2.Response) -> StartResult:
    return StartResult.model_validate_json(answer.content)


def _page_reader(name: str) -> Callable[[httpx2.Response], ResultPage]:
    def read(answer: httpx2.Response) -> ResultPage:
        found = answer.json()
        return ResultPage(found[name], found.get("nextCursor"))

    return read


def _get(path: str, **params: Any) -> ApiCall[JsonObject]:
    return ApiCall(method="GET", path=path, read=_read_object, params=params)


def _get_list(name: str, path: str, **params: Any) -> ApiCall[list[JsonObject]]:
    return ApiCall(method="GET", path=path, read=lambda answer: _read_object(answer)[name], params=params)


def _delete(path: str) -> ApiCall[None]:
    return ApiCall(method="DELETE", path=path, read=_read_nothing)


def _send(method: str, path: str, body: Any, headers: Mapping[str, str] = {}) -> ApiCall[JsonObject]:
    return ApiCall(method=method, path=path, read=_read_object, json=body, headers=headers)


def _start(path: str, body: JsonObject) -> ApiCall[StartResult]:
    return ApiCall(method="POST", path=path, read=_read_start, json=body, headers=_idempotency_header())


def _idempotency_header() -> dict[str, str]:
    """Return the header with which a request whose answer was lost can be sent again."""
    return {"Idempotency-Key": uuid4().hex}


def _drop_none(**values: Any) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _thread_path(thread: str, *rest: str) -> str:
    return "/".join(["/api/threads", *(quote(part, safe="") for part in (thread, *rest))])


# Runs --------------------------------------------------------------------------------------------------------


def start(
    question: str, *, mode: str | None = None, thread: str | None = None, interactive: bool = True, **options: Any
) -> ApiCall[StartResult]:
    """Start a run; return at its first question, or after two seconds. `thread` makes it a follow-up."""
    body = _drop_none(goal=question, modeOverride=mode, threadId=thread, interactive=interactive, **options)
    return _start("/api/threads/start", body)


def estimate(question: str, **options: Any) -> ApiCall[JsonObject]:
    """Return what a question would cost; nothing is spent."""
    return _send("POST", "/api/quote", {"goal": question, **options})


def resume(thread: str, interrupt: str | None = None, value: Any = None) -> ApiCall[JsonObject]:
    """Answer an open question or, without one, resume a run that was stopped."""
    body = {} if interrupt is None else {"interruptId": interrupt, "value": value}
    return _send("POST", _thread_path(thread, "resume"), body, _idempotency_header())


def cancel(thread: str, *, drain: bool = False) -> ApiCall[JsonObject]:
    """Stop the run of a thread; `drain` lets it finish the current step. It can be resumed."""
    return _send("POST", _thread_path(thread, "cancel"), {"drain": drain})


def set_mode(thread: str, mode: str) -> ApiCall[JsonObject]:
    """Set whether a thread asks first (plan) or not (auto)."""
    return _send("PATCH", _thread_path(thread, "mode"), {"mode": mode})


# Threads -----------------------------------------------------------------------------------------------------


def threads(limit: int, cursor: str | None, status: str | None, q: str | None) -> ApiCall[ResultPage]:
    params = {"limit": limit, "cursor": cursor, "status": status, "q": q}
    return ApiCall(method="GET", path="/api/threads", read=_page_reader("threads"), params=params)


def thread(id: str) -> ApiCall[JsonObject]:
    """Return one of your threads."""
    return _get(_thread_path(id))


def rename(id: str, title: str) -> ApiCall[JsonObject]:
    """Give a thread another title."""
    return _send("PATCH", _thread_path(id), {"title": title})


def delete(id: str) -> ApiCall[None]:
    """Delete a thread and everything in it."""
    return _delete(_thread_path(id))


def runs(thread: str) -> ApiCall[list[JsonObject]]:
    """Return the runs of a thread, the oldest first."""
    return _get_list("runs", _thread_path(thread, "runs"))


def state(thread: str, checkpoint: str | None = None) -> ApiCall[JsonObject]:
    """Return {values, next, checkpointId}, now or at a checkpoint of the history."""
    return _get(_thread_path(thread, "state"), checkpoint=checkpoint)


def report(thread: str, run: str | None = None) -> ApiCall[Report]:
    """Return the latest finished report of a thread, or that of an earlier run."""
    path = _thread_path(thread, "report")
    return ApiCall(
        method="GET", path=path, read=lambda answer: Report.model_validate_json(answer.content), params={"run": run}
    )


def timings(thread: str, run: str | None = None) -> ApiCall[JsonObject]:
    """Return where the time of a run went."""
    return _get(_thread_path(thread, "timings"), run=run)


# History -----------------------------------------------------------------------------------------------------


def history(thread: str) -> ApiCall[list[JsonObject]]:
    """Return the checkpoints of a thread."""
    return _get_list("moments", _thread_path(thread, "history"))


def branches(thread: str) -> ApiCall[JsonObject]:
    """Return the tree of branches that a thread is part of."""
    return _get(_thread_path(thread, "branches"))


def fork(thread: str, checkpoint: str | None = None, **changes: Any) -> ApiCall[StartResult]:
    """Start a new thread that continues from a checkpoint of this one with something changed."""
    return _start(_thread_path(thread, "fork"), _drop_none(checkpoint=checkpoint, changes=changes))


def diff(a: str, b: str) -> ApiCall[JsonObject]:
    """Compare two reports, each given as a thread or as THREAD@CHECKPOINT."""
    return _get("/api/diff", a=a, b=b)


# Questions and sources ---------------------------------------------------------------------------------------


def reviews(thread: str | None = None) -> ApiCall[list[JsonObject]]:
    """Return the open questions of a thread, or of all your threads."""
    return _get_list("reviews", _thread_path(thread, "reviews") if thread else "/api/reviews")


def answer(review: str, value: Any) -> ApiCall[JsonObject]:
    """Answer an open question."""
    return _send("POST", f"/api/reviews/{quote(review, safe='')}/answer", {"value": value})


def sources(thread: str, run: str | None = None) -> ApiCall[list[JsonObject]]:
    """Return the sources of a report."""
    return _get_list("sources", _thread_path(thread, "sources"), run=run)


def pin(thread: str, source: str) -> ApiCall[None]:
    """Pin a source."""
    return ApiCall(method="PUT", path=_thread_path(thread, "sources", source, "pin"), read=_read_nothing)


def unpin(thread: str, source: str) -> ApiCall[None]:
    """Unpin a source."""
    return _delete(_thread_path(thread, "sources", source, "pin"))


def veto(thread: str, source: str) -> ApiCall[StartResult]:
    """Remove a source from the report for good."""
    return ApiCall(method="POST", path=_thread_path(thread, "sources", source, "veto"), read=_read_start, json={})


# Files, memory and the account -------------------------------------------------------------------------------


def artifacts(thread: str) -> ApiCall[list[JsonObject]]:
    """Return what a thread has made."""
    return _get_list("artifacts", _thread_path(thread, "artifacts"))


def artifact(thread: str, name: str, version: int | None = None) -> ApiCall[JsonObject]:
    """Return an artifact, in its latest version or in another."""
    return _get(_thread_path(thread, "artifacts", name), version=version)


def export(thread: str, format: str = "md") -> ApiCall[bytes]:
    """Return the report as md, obsidian, quarto, html, pdf, docx, json or csv; its sources as bibtex, ris or csl;
    everything as zip."""
    path = _thread_path(thread, "export")
    return ApiCall(method="GET", path=path, read=lambda answer: answer.content, params={"format": format})


def upload(*paths: str | Path) -> ApiCall[list[JsonObject]]:
    """Upload documents; `start(documents=[...])` takes their ids."""
    files = [("files", (path.name, path.read_bytes())) for path in map(Path, paths)]
    return ApiCall(
        method="POST", path="/api/documents", read=lambda answer: _read_object(answer)["documents"], files=files
    )


def documents(limit: int, cursor: str | None) -> ApiCall[ResultPage]:
    params = {"limit": limit, "cursor": cursor}
    return ApiCall(method="GET", path="/api/documents", read=_page_reader("documents"), params=params)


def delete_document(id: str) -> ApiCall[None]:
    """Delete an uploaded document."""
    return _delete(f"/api/documents/{quote(id, safe='')}")


def memory() -> ApiCall[JsonObject]:
    """Return what is remembered about you."""
    return _get("/api/memory")


def remember(text: str) -> ApiCall[JsonObject]:
    """Remember a fact."""
    return _send("POST", "/api/memory/facts", {"text": text})


def forget(fact: str) -> ApiCall[None]:
    """Forget a fact."""
    return _delete(f"/api/memory/facts/{quote(fact, safe='')}")


def share(thread: str, days: float | None = None) -> ApiCall[JsonObject]:
    """Create a link that shows the thread to anyone who has it; its secret is returned only this once."""
    return _send("POST", _thread_path(thread, "shares"), _drop_none(days=days))


def unshare(thread: str, share: str) -> ApiCall[None]:
    """Revoke a link."""
    return _delete(_thread_path(thread, "shares", share))


def account() -> ApiCall[JsonObject]:
    """Return who you are here, and what is left of your budget."""
    return _get("/api/account")
