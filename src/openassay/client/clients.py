"""The two clients. Their methods that make one request are made from the functions of calls.py."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from openassay.client import calls
from openassay.client.calls import (
    MAX_STREAM_ATTEMPTS,
    ApiCall,
    ApiError,
    EventReader,
    Interrupt,
    ResultPage,
    StreamEvent,
    is_transient,
    read_response,
    retry_delay,
    stream_request,
    to_api_error,
    unreachable_error,
)
from openassay.export import Report

P = ParamSpec("P")
T = TypeVar("T")
DEFAULT_URL = "http://127.0.0.1:8765"


def _check_final(event: StreamEvent, thread: str) -> None:
    """Raise ApiError for the last event of a run that has not finished its report."""
    data = event.data.get("data", {})
    if event.is_final and data["status"] != "done":
        reason = data.get("error") or f"the run was {data['status']}"
        raise ApiError(reason, help=f"Look at thread {thread}, or resume it.")


def _describe(method: Callable[..., Any], call: Callable[..., Any]) -> None:
    """Give a method the name, docstring and signature of its function in calls.py."""
    signature = inspect.signature(call)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__name__, method.__doc__ = call.__name__, call.__doc__
    method.__dict__["__signature__"] = signature.replace(parameters=[this, *signature.parameters.values()])


def _async_method(call: Callable[P, ApiCall[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    async def method(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client._request(call(*args, **kwargs))

    _describe(method, call)
    return method


def _sync_method(call: Callable[P, ApiCall[T]]) -> "Callable[Concatenate[Client, P], T]":
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client._request(call(*args, **kwargs))

    _describe(method, call)
    return method


class AsyncClient:
    """An asynchronous client; `token` is what `openassay admin users add` printed, and a local server may need none."""

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, *, seconds: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        reader, attempts = EventReader(after), 0
        while True:
            fault: httpx2.TransportError | None = None
            try:
                async with self._http.stream("GET", **stream_request(thread, run, reader.last)) as answer:
                    if answer.status_code == httpx2.codes.NO_CONTENT:
                        return
                    if not answer.is_success and not is_transient(answer):
                        await answer.aread()
                        raise to_api_error(answer)
                    async for line in answer.aiter_lines():
                        if event := reader.read_line(line):
                            attempts = 0
                            yield event
                            if event.is_final:
                                return
            except httpx2.TransportError as error:
                fault = error
            attempts += 1
            if attempts > MAX_STREAM_ATTEMPTS:
                raise unreachable_error(self._http.base_url, fault)
            await asyncio.sleep(min(0.1 * attempts, 2.0))
            reader.reset()

    async def threads(
        self, *, limit: int = 50, status: str | None = None, q: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield your threads, the latest first; `q`: those whose title or last question has all these words."""
        cursor: str | None = None
        while True:
            page: ResultPage = await self._request(calls.threads(limit, cursor, status, q))
            for item in page.items:
                yield item
            cursor = page.cursor
            if cursor is None:
                return

    async def documents(self, *, limit: int = 50) -> AsyncIterator[dict[str, Any]]:
        """Yield your documents, the newest first."""
        cursor: str | None = None
        while True:
            page: ResultPage = await self._request(calls.documents(limit, cursor))
            for item in page.items:
                yield item
            cursor = page.cursor
            if cursor is None:
                return

    async def upload(self, *paths: str | Path) -> list[dict[str, Any]]:
        """Upload documents; `start(documents=[...])` takes their ids."""
        return await self._request(await asyncio.to_thread(calls.upload, *paths))

    start = _async_method(calls.start)
    estimate = _async_method(calls.estimate)
    resume = _async_method(calls.resume)
    cancel = _async_method(calls.cancel)
    set_mode = _async_method(calls.set_mode)

    thread = _async_method(calls.thread)
    rename = _async_method(calls.rename)
    delete = _async_method(calls.delete)
    runs = _async_method(calls.runs)
    state = _async_method(calls.state)
    report = _async_method(calls.report)
    timings = _async_method(calls.timings)

    history = _async_method(calls.history)
    branches = _async_method(calls.branches)
    fork = _async_method(calls.fork)
    diff = _async_method(calls.diff)

    reviews = _async_method(calls.reviews)
    answer = _async_method(calls.answer)
    sources = _async_method(calls.sources)
    pin = _async_method(calls.pin)
    unpin = _async_method(calls.unpin)
    veto = _async_method(calls.veto)

    artifacts = _async_method(calls.artifacts)
    artifact = _async_method(calls.artifact)
    export = _async_method(calls.export)
    delete_document = _async_method(calls.delete_document)

    memory = _async_method(calls.memory)
    remember = _async_method(calls.remember)
    forget = _async_method(calls.forget)
    share = _async_method(calls.share)
    unshare = _async_method(calls.unshare)
    account = _async_method(calls.account)

    async def _request(self, call: ApiCall[T]) -> T:
        attempts = 0
        while True:
            attempts += 1
            answer: httpx2.Response | httpx2.TransportError
            try:
                answer = await self._http.request(**call.to_request())
            except httpx2.TransportError as error:
                answer = error
            delay = retry_delay(attempts, call, answer)
            if delay is not None:
                await asyncio.sleep(delay)
            elif isinstance(answer, httpx2.TransportError):
                raise unreachable_error(self._http.base_url, answer) from answer
            else:
                return read_response(call, answer)


class Client:
    """A synchronous client; `token` is what `openassay admin users add` printed, and a local server may need none."""

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, *, seconds: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        reader, attempts = EventReader(after), 0
        while True:
            fault: httpx2.TransportError | None = None
            try:
                with self._http.stream("GET", **stream_request(thread, run, reader.last)) as answer:
                    if answer.status_code == httpx2.codes.NO_CONTENT:
                        return
                    if not answer.is_success and not is_transient(answer):
                        answer.read()
                        raise to_api_error(answer)
                    for line in answer.iter_lines():
                        if event := reader.read_line(line):
                            attempts = 0
                            yield event
                            if event.is_final:
                                return
            except httpx2.TransportError as error:
                fault = error
            attempts += 1
            if attempts > MAX_STREAM_ATTEMPTS:
                raise unreachable_error(self._http.base_url, fault)
            time.sleep(min(0.1 * attempts, 2.0))
            reader.reset()

    def threads(self, *, limit: int = 50, status: str | None = None, q: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield your threads, the latest first; `q`: those whose title or last question has all these words."""
        cursor: str | None = None
        while True:
            page: ResultPage = self._request(calls.threads(limit, cursor, status, q))
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def documents(self, *, limit: int = 50) -> Iterator[dict[str, Any]]:
        """Yield your documents, the newest first."""
        cursor: str | None = None
        while True:
            page: ResultPage = self._request(calls.documents(limit, cursor))
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    start = _sync_method(calls.start)
    estimate = _sync_method(calls.estimate)
    resume = _sync_method(calls.resume)
    cancel = _sync_method(calls.cancel)
    set_mode = _sync_method(calls.set_mode)

    thread = _sync_method(calls.thread)
    rename = _sync_method(calls.rename)
    delete = _sync_method(calls.delete)
    runs = _sync_method(calls.runs)
    state = _sync_method(calls.state)
    report = _sync_method(calls.report)
    timings = _sync_method(calls.timings)

    history = _sync_method(calls.history)
    branches = _sync_method(calls.branches)
    fork = _sync_method(calls.fork)
    diff = _sync_method(calls.diff)

    reviews = _sync_method(calls.reviews)
    answer = _sync_method(calls.answer)
    sources = _sync_method(calls.sources)
    pin = _sync_method(calls.pin)
    unpin = _sync_method(calls.unpin)
    veto = _sync_method(calls.veto)

    artifacts = _sync_method(calls.artifacts)
    artifact = _sync_method(calls.artifact)
    export = _sync_method(calls.export)
    upload = _sync_method(calls.upload)
    delete_document = _sync_method(calls.delete_document)

    memory = _sync_method(calls.memory)
    remember = _sync_method(calls.remember)
    forget = _sync_method(calls.forget)
    share = _sync_method(calls.share)
    unshare = _sync_method(calls.unshare)
    account = _sync_method(calls.account)

    def _request(self, call: ApiCall[T]) -> T:
        attempts = 0
        while True:
            attempts += 1
            answer: httpx2.Response | httpx2.TransportError
            try:
                answer = self._http.request(**call.to_request())
            except httpx2.TransportError as error:
                answer = error
            delay = retry_delay(attempts, call, answer)
            if delay is not None:
                time.sleep(delay)
            elif isinstance(answer, httpx2.TransportError):
                raise unreachable_error(self._http.base_url, answer) from answer
            else:
                return read_response(call, answer)
