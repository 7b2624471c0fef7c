"""The asynchronous client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from openassay.client import calls
from openassay.client.calls import (
    MOST_LOST,
    ApiCall,
    ApiError,
    EventReader,
    Interrupt,
    ResultPage,
    StartResult,
    StreamEvent,
    is_transient,
    read_response,
    retry_delay,
    stream_request,
    to_api_error,
    unreachable_error,
)
from openassay.export.report import Report

T = TypeVar("T")
AnswerCallback = Callable[[Interrupt], Awaitable[Any]]


class AsyncClient:
    """`token` is what `openassay admin users add` printed; a server on this machine may need none."""

    def __init__(self, url: str = "http://127.0.0.1:8765", token: str | None = None, *, seconds: float = 30.0) -> None:
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

    # -- research -----------------------------------------------------------------------------------------

    async def research(self, goal: str, *, answering: AnswerCallback | None = None, **options: Any) -> Report:
        """Ask, wait, and have the report. `answering` is called with each question that comes back, and gives its
        answer; without it nobody is asked. Options as for `start`."""
        started = await self.start(goal, interactive=answering is not None, **options)
        async for event in self.events(started.thread_id, run=started.run_id):
            if event.name == "interrupt" and answering:
                await self._answer_interrupt(started.thread_id, Interrupt.model_validate(event.data["data"]), answering)
            if event.is_final and event.data["data"]["status"] != "done":
                reason = event.data["data"].get("error") or f"the run was {event.data['data']['status']}"
                raise ApiError(reason, help=f"Look at thread {started.thread_id}, or resume it.")
        return await self.report(started.thread_id, started.run_id)

    async def _answer_interrupt(self, thread: str, asked: Interrupt, answering: AnswerCallback) -> None:
        """A question that a stream tells of again may be answered by now."""
        still = [review["id"] for review in await self.reviews(thread)]
        if asked.id in still:
            await self.resume(thread, asked.id, await answering(asked))

    async def start(
        self, goal: str, *, mode: str | None = None, thread: str | None = None, interactive: bool = True, **options: Any
    ) -> StartResult:
        """Begin; returns at the first question that comes back, or after two seconds. `thread`: a follow-up."""
        return await self._request(calls.start(goal, mode, thread, interactive, options))

    async def events(self, thread: str, *, run: str | None = None, after: str = "") -> AsyncIterator[StreamEvent]:
        """Everything that happens on a thread, from `after` on (the id of an event), until its run has ended. A lost
        connection is taken up again where it was."""
        reader, lost = EventReader(after), 0
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
                        for event in reader.read_line(line):
                            lost = 0
                            yield event
                            if event.is_final:
                                return
            except httpx2.TransportError as error:
                fault = error
            lost += 1
            if lost > MOST_LOST:
                raise unreachable_error(self._http.base_url, fault)
            await asyncio.sleep(min(0.1 * lost, 2.0))
            reader.reset()

    # -- all the rest -------------------------------------------------------------------------------------

    async def threads(
        self, *, limit: int = 50, status: str | None = None, q: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """All of yours, page by page; the one on which something happened last comes first. `q`: those whose title or
        last question has all these words."""
        cursor: str | None = None
        while True:
            page: ResultPage = await self._request(calls.threads(limit, cursor, status, q))
            for one in page.items:
                yield one
            cursor = page.cursor
            if cursor is None:
                return

    async def upload(self, *paths: str | Path) -> list[dict[str, Any]]:
        """Documents of yours; their ids are what `start(documents=[...])` takes."""
        return await self._request(await asyncio.to_thread(calls.upload, [Path(path) for path in paths]))

    async def documents(self, *, limit: int = 50) -> AsyncIterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page: ResultPage = await self._request(calls.documents(limit, cursor))
            for one in page.items:
                yield one
            cursor = page.cursor
            if cursor is None:
                return

    async def estimate(self, goal: str, **options: Any) -> dict[str, Any]:
        """What a question would cost; nothing is spent."""
        return await self._request(calls.estimate(goal, options))

    async def resume(self, thread: str, interrupt: str | None = None, value: Any = None) -> dict[str, Any]:
        """Answer an open question, or, without one, go on with a run that was stopped."""
        return await self._request(calls.resume(thread, interrupt, value))

    async def cancel(self, thread: str, *, drain: bool = False) -> dict[str, Any]:
        """Stop what works on a thread; `drain` lets it end the step it is at. It can be resumed."""
        return await self._request(calls.cancel(thread, drain))

    async def set_mode(self, thread: str, mode: str) -> dict[str, Any]:
        return await self._request(calls.set_mode(thread, mode))

    async def thread(self, id: str) -> dict[str, Any]:
        return await self._request(calls.thread(id))

    async def rename(self, id: str, title: str) -> dict[str, Any]:
        return await self._request(calls.rename(id, title))

    async def delete(self, id: str) -> None:
        """All of a thread, for good."""
        await self._request(calls.delete(id))

    async def runs(self, thread: str) -> list[dict[str, Any]]:
        return await self._request(calls.runs(thread))

    async def state(self, thread: str, checkpoint: str | None = None) -> dict[str, Any]:
        """{values, next, checkpointId}, of the last moment or of one in the history."""
        return await self._request(calls.state(thread, checkpoint))

    async def report(self, thread: str, run: str | None = None) -> Report:
        """The thread's latest finished report, or that of an earlier run."""
        return await self._request(calls.report(thread, run))

    async def timings(self, thread: str, run: str | None = None) -> dict[str, Any]:
        return await self._request(calls.timings(thread, run))

    async def history(self, thread: str) -> list[dict[str, Any]]:
        return await self._request(calls.history(thread))

    async def branches(self, thread: str) -> dict[str, Any]:
        return await self._request(calls.branches(thread))

    async def fork(self, thread: str, checkpoint: str | None = None, **changes: Any) -> StartResult:
        """A new thread that goes on from a moment of this one with something changed."""
        return await self._request(calls.fork(thread, checkpoint, changes))

    async def diff(self, a: str, b: str) -> dict[str, Any]:
        """What two reports tell differently: threads, or THREAD@CHECKPOINT."""
        return await self._request(calls.diff(a, b))

    async def reviews(self, thread: str | None = None) -> list[dict[str, Any]]:
        """Questions that are open, of a thread or of all."""
        return await self._request(calls.reviews(thread))

    async def answer(self, review: str, value: Any) -> dict[str, Any]:
        return await self._request(calls.answer(review, value))

    async def sources(self, thread: str, run: str | None = None) -> list[dict[str, Any]]:
        return await self._request(calls.sources(thread, run))

    async def pin(self, thread: str, source: str) -> None:
        await self._request(calls.pin(thread, source, pinned=True))

    async def unpin(self, thread: str, source: str) -> None:
        await self._request(calls.pin(thread, source, pinned=False))

    async def veto(self, thread: str, source: str) -> StartResult:
        """Take a source out of the report, for good."""
        return await self._request(calls.veto(thread, source))

    async def artifacts(self, thread: str) -> list[dict[str, Any]]:
        return await self._request(calls.artifacts(thread))

    async def artifact(self, thread: str, name: str, version: int | None = None) -> dict[str, Any]:
        return await self._request(calls.artifact(thread, name, version))

    async def export(self, thread: str, format: str = "md") -> bytes:
        """The report as md, obsidian, quarto, html, pdf, docx, json or csv; its sources as bibtex, ris or csl;
        everything as zip."""
        return await self._request(calls.export(thread, format))

    async def delete_document(self, id: str) -> None:
        await self._request(calls.delete_document(id))

    async def memory(self) -> dict[str, Any]:
        """What is remembered of you."""
        return await self._request(calls.memory())

    async def remember(self, text: str) -> dict[str, Any]:
        return await self._request(calls.remember(text))

    async def forget(self, fact: str) -> None:
        await self._request(calls.forget(fact))

    async def share(self, thread: str, days: float | None = None) -> dict[str, Any]:
        """A link that shows the thread to whoever has it; its secret is told this once."""
        return await self._request(calls.share(thread, days))

    async def unshare(self, thread: str, share: str) -> None:
        await self._request(calls.unshare(thread, share))

    async def account(self) -> dict[str, Any]:
        """Who you are here, and what is left of your budget."""
        return await self._request(calls.account())

    async def _request(self, call: ApiCall[T]) -> T:
        tries = 0
        while True:
            tries += 1
            answer = await self._attempt(call)
            wait = retry_delay(tries, call, answer)
            if wait is not None:
                await asyncio.sleep(wait)
            elif isinstance(answer, httpx2.TransportError):
                raise unreachable_error(self._http.base_url, answer) from answer
            else:
                return read_response(call, answer)

    async def _attempt(self, call: ApiCall[Any]) -> httpx2.Response | httpx2.TransportError:
        try:
            return await self._http.request(**call.to_request())
        except httpx2.TransportError as error:
            return error
