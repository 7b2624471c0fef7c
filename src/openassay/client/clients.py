"""The two clients. Their methods that make one request are those of ApiMethods."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast, overload
from urllib.parse import quote
from uuid import uuid4

import httpx2

from openassay.client.calls import (
    TRANSIENT,
    ApiCall,
    ApiError,
    EventReader,
    Interrupt,
    JsonObject,
    StartResult,
    StreamEvent,
    read_response,
    retry_delay,
    stream_request,
    to_api_error,
)
from openassay.export import Report

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
DEFAULT_URL = "http://127.0.0.1:8765"


class ApiMethod(Protocol[P, T_co]):
    """A method that makes one request, and returns what its answer says: at once, or to be awaited."""

    @overload
    def __get__(self, client: "Client", owner: type) -> Callable[P, T_co]: ...

    @overload
    def __get__(self, client: "AsyncClient", owner: type) -> Callable[P, Awaitable[T_co]]: ...


def api_method(describe: Callable[Concatenate[Any, P], ApiCall[T]]) -> ApiMethod[P, T]:
    """Turn a function that describes a request into a method of both clients, which makes it."""

    @wraps(describe)
    def method(client: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        return client._request(describe(client, *args, **kwargs))

    return cast("ApiMethod[P, T]", method)


def _read_object(answer: httpx2.Response) -> JsonObject:
    found: JsonObject = answer.json()
    return found


def _read_nothing(answer: httpx2.Response) -> None:
    return None


def _read_start(answer: httpx2.Response) -> StartResult:
    return StartResult.model_validate_json(answer.content)


def _get(path: str, **params: Any) -> ApiCall[JsonObject]:
    return _get_as(_read_object, path, **params)


def _get_list(name: str, path: str, **params: Any) -> ApiCall[list[JsonObject]]:
    return _get_as(lambda answer: _read_object(answer)[name], path, **params)


def _get_as(read: Callable[[httpx2.Response], T], path: str, **params: Any) -> ApiCall[T]:
    return ApiCall("GET", path, read, {"params": _drop_none(**params)})


def _delete(path: str) -> ApiCall[None]:
    return ApiCall("DELETE", path, _read_nothing)


def _send(method: str, path: str, body: Any, **arguments: Any) -> ApiCall[JsonObject]:
    return ApiCall(method, path, _read_object, {"json": body, **arguments})


def _start(path: str, body: JsonObject) -> ApiCall[StartResult]:
    return ApiCall("POST", path, _read_start, {"json": body, "headers": _idempotency_header()})


def _idempotency_header() -> dict[str, str]:
    """Return the header with which a request whose answer was lost can be sent again."""
    return {"Idempotency-Key": uuid4().hex}


def _drop_none(**values: Any) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _thread_path(thread: str, *rest: str) -> str:
    return "/".join(["/api/threads", *(quote(part, safe="") for part in (thread, *rest))])


def _upload(*paths: str | Path) -> ApiCall[list[JsonObject]]:
    files = [("files", (path.name, path.read_bytes())) for path in map(Path, paths)]
    return ApiCall("POST", "/api/documents", lambda answer: _read_object(answer)["documents"], {"files": files})


def _check_final(event: StreamEvent, thread: str) -> None:
    """Raise ApiError for the last event of a run that has not finished its report."""
    data = event.data.get("data", {})
    if event.is_final and data["status"] != "done":
        reason = data.get("error") or f"the run was {data['status']}"
        raise ApiError(reason, help=f"Look at thread {thread}, or resume it.")


class ApiMethods:
    # Runs

    @api_method
    def start(
        self,
        /,
        question: str,
        *,
        mode: str | None = None,
        thread: str | None = None,
        interactive: bool = True,
        **options: Any,
    ) -> ApiCall[StartResult]:
        """Start a run; return at its first question, or after two seconds. `thread` makes it a follow-up."""
        body = _drop_none(goal=question, modeOverride=mode, threadId=thread, interactive=interactive, **options)
        return _start("/api/threads/start", body)

    @api_method
    def estimate(self, /, question: str, **options: Any) -> ApiCall[JsonObject]:
        """Return what a question would cost; nothing is spent."""
        return _send("POST", "/api/quote", {"goal": question, **options})

    @api_method
    def resume(self, thread: str, interrupt: str | None = None, value: Any = None) -> ApiCall[JsonObject]:
        """Answer an open question or, without one, resume a run that was stopped."""
        body = {} if interrupt is None else {"interruptId": interrupt, "value": value}
        return _send("POST", _thread_path(thread, "resume"), body, headers=_idempotency_header())

    @api_method
    def cancel(self, thread: str, *, drain: bool = False) -> ApiCall[JsonObject]:
        """Stop the run of a thread; `drain` lets it finish the current step. It can be resumed."""
        return _send("POST", _thread_path(thread, "cancel"), {"drain": drain})

    @api_method
    def set_mode(self, thread: str, mode: str) -> ApiCall[JsonObject]:
        """Set whether a thread asks first (plan) or not (auto)."""
        return _send("PATCH", _thread_path(thread, "mode"), {"mode": mode})

    # Threads

    @api_method
    def thread(self, id: str) -> ApiCall[JsonObject]:
        """Return one of your threads."""
        return _get(_thread_path(id))

    @api_method
    def rename(self, id: str, title: str) -> ApiCall[JsonObject]:
        """Give a thread another title."""
        return _send("PATCH", _thread_path(id), {"title": title})

    @api_method
    def delete(self, id: str) -> ApiCall[None]:
        """Delete a thread and everything in it."""
        return _delete(_thread_path(id))

    @api_method
    def runs(self, thread: str) -> ApiCall[list[JsonObject]]:
        """Return the runs of a thread, the oldest first."""
        return _get_list("runs", _thread_path(thread, "runs"))

    @api_method
    def state(self, thread: str, checkpoint: str | None = None) -> ApiCall[JsonObject]:
        """Return {values, next, checkpointId}, now or at a checkpoint of the history."""
        return _get(_thread_path(thread, "state"), checkpoint=checkpoint)

    @api_method
    def report(self, thread: str, run: str | None = None) -> ApiCall[Report]:
        """Return the latest finished report of a thread, or that of an earlier run."""
        return _get_as(
            lambda answer: Report.model_validate_json(answer.content), _thread_path(thread, "report"), run=run
        )

    @api_method
    def timings(self, thread: str, run: str | None = None) -> ApiCall[JsonObject]:
        """Return where the time of a run went."""
        return _get(_thread_path(thread, "timings"), run=run)

    # History

    @api_method
    def history(self, thread: str) -> ApiCall[list[JsonObject]]:
        """Return the checkpoints of a thread."""
        return _get_list("moments", _thread_path(thread, "history"))

    @api_method
    def branches(self, thread: str) -> ApiCall[JsonObject]:
        """Return the tree of branches that a thread is part of."""
        return _get(_thread_path(thread, "branches"))

    @api_method
    def fork(self, /, thread: str, checkpoint: str | None = None, **changes: Any) -> ApiCall[StartResult]:
        """Start a new thread that continues from a checkpoint of this one with something changed."""
        return _start(_thread_path(thread, "fork"), _drop_none(checkpoint=checkpoint, changes=changes))

    @api_method
    def diff(self, a: str, b: str) -> ApiCall[JsonObject]:
        """Compare two reports, each given as a thread or as THREAD@CHECKPOINT."""
        return _get("/api/diff", a=a, b=b)

    # Questions and sources

    @api_method
    def reviews(self, thread: str | None = None) -> ApiCall[list[JsonObject]]:
        """Return the open questions of a thread, or of all your threads."""
        return _get_list("reviews", _thread_path(thread, "reviews") if thread else "/api/reviews")

    @api_method
    def answer(self, review: str, value: Any) -> ApiCall[JsonObject]:
        """Answer an open question."""
        return _send("POST", f"/api/reviews/{quote(review, safe='')}/answer", {"value": value})

    @api_method
    def sources(self, thread: str, run: str | None = None) -> ApiCall[list[JsonObject]]:
        """Return the sources of a report."""
        return _get_list("sources", _thread_path(thread, "sources"), run=run)

    @api_method
    def pin(self, thread: str, source: str) -> ApiCall[None]:
        """Pin a source."""
        return ApiCall("PUT", _thread_path(thread, "sources", source, "pin"), _read_nothing)

    @api_method
    def unpin(self, thread: str, source: str) -> ApiCall[None]:
        """Unpin a source."""
        return _delete(_thread_path(thread, "sources", source, "pin"))

    @api_method
    def veto(self, thread: str, source: str) -> ApiCall[StartResult]:
        """Remove a source from the report for good."""
        return ApiCall("POST", _thread_path(thread, "sources", source, "veto"), _read_start, {"json": {}})

    # Files, memory and the account

    @api_method
    def artifacts(self, thread: str) -> ApiCall[list[JsonObject]]:
        """Return what a thread has made."""
        return _get_list("artifacts", _thread_path(thread, "artifacts"))

    @api_method
    def artifact(self, thread: str, name: str, version: int | None = None) -> ApiCall[JsonObject]:
        """Return an artifact, in its latest version or in another."""
        return _get(_thread_path(thread, "artifacts", name), version=version)

    @api_method
    def export(self, thread: str, format: str = "md") -> ApiCall[bytes]:
        """Return the report as md, obsidian, quarto, html, pdf, docx, json or csv; its sources as bibtex, ris or csl;
        everything as zip."""
        return _get_as(lambda answer: answer.content, _thread_path(thread, "export"), format=format)

    @api_method
    def delete_document(self, id: str) -> ApiCall[None]:
        """Delete an uploaded document."""
        return _delete(f"/api/documents/{quote(id, safe='')}")

    @api_method
    def memory(self) -> ApiCall[JsonObject]:
        """Return what is remembered about you."""
        return _get("/api/memory")

    @api_method
    def remember(self, text: str) -> ApiCall[JsonObject]:
        """Remember a fact."""
        return _send("POST", "/api/memory/facts", {"text": text})

    @api_method
    def forget(self, fact: str) -> ApiCall[None]:
        """Forget a fact."""
        return _delete(f"/api/memory/facts/{quote(fact, safe='')}")

    @api_method
    def share(self, thread: str, days: float | None = None) -> ApiCall[JsonObject]:
        """Create a link that shows the thread to anyone who has it; its secret is returned only this once."""
        return _send("POST", _thread_path(thread, "shares"), _drop_none(days=days))

    @api_method
    def unshare(self, thread: str, share: str) -> ApiCall[None]:
        """Revoke a link."""
        return _delete(_thread_path(thread, "shares", share))

    @api_method
    def account(self) -> ApiCall[JsonObject]:
        """Return who you are here, and what is left of your budget."""
        return _get("/api/account")


class AsyncClient(ApiMethods):
    """An asynchronous client; `token` is what `openassay admin users add` printed, and a local server may need none."""

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, *, seconds: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def research(
        self, question: str, *, on_interrupt: Callable[[Interrupt], Awaitable[Any]] | None = None, **options: Any
    ) -> Report:
        """Ask a question and return its report. Options are those of `start`.

        `on_interrupt` is called with each question that comes back and returns its answer; without it none is asked."""
        started = await self.start(question, interactive=on_interrupt is not None, **options)
        async for event in self.events(started.thread_id, run=started.run_id):
            if event.name == "interrupt" and on_interrupt:
                interrupt = Interrupt.model_validate(event.data["data"])
                still_open = [review["id"] for review in await self.reviews(started.thread_id)]
                if interrupt.id in still_open:  # a stream that was reconnected may repeat one that was answered
                    await self.resume(started.thread_id, interrupt.id, await on_interrupt(interrupt))
            _check_final(event, started.thread_id)
        return await self.report(started.thread_id, started.run_id)

    async def events(self, thread: str, *, run: str | None = None, after: str = "") -> AsyncIterator[StreamEvent]:
        """Yield what happens on a thread after the event `after`, until its run has ended.

        A lost connection is opened again where it was."""
        reader = EventReader(after)
        while True:
            fault: httpx2.TransportError | None = None
            try:
                async with self._http.stream("GET", **stream_request(thread, run, reader.last)) as answer:
                    if answer.status_code == httpx2.codes.NO_CONTENT:
                        return
                    if not answer.is_success and answer.status_code not in TRANSIENT:
                        await answer.aread()
                        raise to_api_error(answer)
                    async for line in answer.aiter_lines():
                        if event := reader.read_line(line):
                            yield event
                            if event.is_final:
                                return
            except httpx2.TransportError as error:
                fault = error
            await asyncio.sleep(reader.reconnect_delay(self._http.base_url, fault))

    def threads(
        self, *, limit: int = 50, status: str | None = None, q: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield your threads, the latest first; `q`: those whose title or last question has all these words."""
        return self._list("threads", limit=limit, status=status, q=q)

    def documents(self, *, limit: int = 50) -> AsyncIterator[dict[str, Any]]:
        """Yield your documents, the newest first."""
        return self._list("documents", limit=limit)

    async def upload(self, *paths: str | Path) -> list[JsonObject]:
        """Upload documents; `start(documents=[...])` takes their ids."""
        return await self._request(await asyncio.to_thread(_upload, *paths))

    async def _list(self, name: str, **params: Any) -> AsyncIterator[JsonObject]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self._request(_get(f"/api/{name}", cursor=cursor or None, **params))
            for item in page[name]:
                yield item
            cursor = page.get("nextCursor")

    async def _request(self, call: ApiCall[T]) -> T:
        attempts = 0
        while True:
            attempts += 1
            answer: httpx2.Response | httpx2.TransportError
            try:
                answer = await self._http.request(call.method, call.path, **call.arguments)
            except httpx2.TransportError as error:
                answer = error
            delay = retry_delay(attempts, call, answer)
            if delay is None:
                return read_response(call, answer, self._http.base_url)
            await asyncio.sleep(delay)


class Client(ApiMethods):
    """A synchronous client; `token` is what `openassay admin users add` printed, and a local server may need none."""

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, *, seconds: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def research(
        self, question: str, *, on_interrupt: Callable[[Interrupt], Any] | None = None, **options: Any
    ) -> Report:
        """Ask a question and return its report. Options are those of `start`.

        `on_interrupt` is called with each question that comes back and returns its answer; without it none is asked."""
        started = self.start(question, interactive=on_interrupt is not None, **options)
        for event in self.events(started.thread_id, run=started.run_id):
            if event.name == "interrupt" and on_interrupt:
                interrupt = Interrupt.model_validate(event.data["data"])
                still_open = [review["id"] for review in self.reviews(started.thread_id)]
                if interrupt.id in still_open:  # a stream that was reconnected may repeat one that was answered
                    self.resume(started.thread_id, interrupt.id, on_interrupt(interrupt))
            _check_final(event, started.thread_id)
        return self.report(started.thread_id, started.run_id)

    def events(self, thread: str, *, run: str | None = None, after: str = "") -> Iterator[StreamEvent]:
        """Yield what happens on a thread after the event `after`, until its run has ended.

        A lost connection is opened again where it was."""
        reader = EventReader(after)
        while True:
            fault: httpx2.TransportError | None = None
            try:
                with self._http.stream("GET", **stream_request(thread, run, reader.last)) as answer:
                    if answer.status_code == httpx2.codes.NO_CONTENT:
                        return
                    if not answer.is_success and answer.status_code not in TRANSIENT:
                        answer.read()
                        raise to_api_error(answer)
                    for line in answer.iter_lines():
                        if event := reader.read_line(line):
                            yield event
                            if event.is_final:
                                return
            except httpx2.TransportError as error:
                fault = error
            time.sleep(reader.reconnect_delay(self._http.base_url, fault))

    def threads(self, *, limit: int = 50, status: str | None = None, q: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield your threads, the latest first; `q`: those whose title or last question has all these words."""
        return self._list("threads", limit=limit, status=status, q=q)

    def documents(self, *, limit: int = 50) -> Iterator[dict[str, Any]]:
        """Yield your documents, the newest first."""
        return self._list("documents", limit=limit)

    def upload(self, *paths: str | Path) -> list[JsonObject]:
        """Upload documents; `start(documents=[...])` takes their ids."""
        return self._request(_upload(*paths))

    def _list(self, name: str, **params: Any) -> Iterator[JsonObject]:
        cursor: str | None = ""
        while cursor is not None:
            page = self._request(_get(f"/api/{name}", cursor=cursor or None, **params))
            yield from page[name]
            cursor = page.get("nextCursor")

    def _request(self, call: ApiCall[T]) -> T:
        attempts = 0
        while True:
            attempts += 1
            answer: httpx2.Response | httpx2.TransportError
            try:
                answer = self._http.request(call.method, call.path, **call.arguments)
            except httpx2.TransportError as error:
                answer = error
            delay = retry_delay(attempts, call, answer)
            if delay is None:
                return read_response(call, answer, self._http.base_url)
            time.sleep(delay)
