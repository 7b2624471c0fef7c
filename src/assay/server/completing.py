"""A run, given back as OpenAI's clients expect it: whole, or in pieces as it goes.

A client that goes away stops its run, since nobody would see what it costs; not if somebody else follows it, nor when
it is the server that stops.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request

from assay.engine import Outcome
from assay.errors import AssayError, NotFoundError
from assay.export.report import Report
from assay.model.event import AT_WORK, Event, RunStatus
from assay.model.thread import Run
from assay.server.chatting import Talk
from assay.server.cited import Answer, answer, pieces
from assay.server.narrating import Narration
from assay.server.problems import Refusal
from assay.server.service import Service
from assay.server.wire import Annotation, ChatRequest, Choice, Completion, Reply, UrlCitation, Usage, fault

_log = logging.getLogger("assay")
BEAT = b": still here\n\n"
DONE = b"data: [DONE]\n\n"
LOOK = 2.0  # seconds after which it is looked whether a client that waits in silence is still there
_leaving: set[asyncio.Task[None]] = set()  # runs being stopped, since nobody waits for them any more


class UnansweredError(Refusal):
    """The run stands still without an answer."""

    status = 409


class GoneError(Refusal):
    """Nobody is there any more to be told this."""

    status = 499


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How what answers one request is written."""

    id: str
    created: int
    body: ChatRequest
    named: dict[str, str] = field(default_factory=dict)

    def whole(self, reply: Reply, usage: Usage | None = None, urls: tuple[str, ...] = ()) -> bytes:
        made = Completion(
            id=self.id, created=self.created, model=self.body.model, choices=[Choice(message=reply)],
            usage=usage or Usage(), citations=list(urls), metadata=self.named,
        )  # fmt: skip
        return made.model_dump_json().encode()

    def piece(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return self._framed({"choices": choices, **({"usage": None} if self._tells_usage else {}), **more})

    def end(self, usage: Usage | None = None) -> bytes:
        used = {"choices": [], "usage": (usage or Usage()).model_dump()}
        return (self._framed(used) if self._tells_usage else b"") + DONE

    @property
    def _tells_usage(self) -> bool:
        return bool(self.body.stream_options and self.body.stream_options.include_usage)

    def _framed(self, more: dict[str, Any]) -> bytes:
        frame = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.body.model}
        return f"data: {json.dumps({**frame, **more}, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completing:
    service: Service
    request: Request
    wire: Wire
    run: Run
    talk: Talk

    async def whole(self) -> bytes:
        narration = Narration()
        told = [narration.note(note) for note in self.talk.notes]
        async with aclosing(self._followed(LOOK)) as batches:
            async for events in batches:
                told.append(narration.lines(events))
        report, made = await self._answered()
        reply = Reply(content=made.text, reasoning_content="".join(told), annotations=annotations(made))
        return self.wire.whole(reply, usage(report), made.urls)

    async def streamed(self) -> AsyncIterator[bytes]:
        yield self.wire.piece({"role": "assistant", "content": ""})
        try:
            async with aclosing(self._pieces()) as found:
                async for piece in found:
                    yield piece
        except GoneError:
            return
        except AssayError as error:
            told = self.service.redaction.plain(fault(error)[1])
            yield f"data: {json.dumps(told)}\n\n".encode() + DONE

    async def _pieces(self) -> AsyncGenerator[bytes]:
        narration = Narration()
        for note in self.talk.notes:
            yield self.wire.piece({"reasoning_content": narration.note(note)})
        async with aclosing(self._followed(self.service.settings.server.heartbeat)) as batches:
            async for events in batches:
                lines = narration.lines(events)
                yield self.wire.piece({"reasoning_content": lines}) if lines else b"" if events else BEAT
        report, made = await self._answered()
        for text in pieces(made.text):
            yield self.wire.piece({"content": text})
        last = {"annotations": [one.model_dump() for one in annotations(made)]}
        yield self.wire.piece(last, finish="stop", citations=list(made.urls), metadata=self.wire.named)
        yield self.wire.end(usage(report))

    async def _followed(self, patience: float) -> AsyncGenerator[list[Event]]:
        """What happens in the run, until it has ended; nothing now and then, while nothing happens."""
        try:
            async with aclosing(self.service.feeds.batches(self.run.id, patience=patience)) as batches:
                async for events in batches:
                    if await self.request.is_disconnected():
                        raise GoneError("the client is gone")
                    yield events
        finally:
            if await self.request.is_disconnected():
                self._leave()

    async def _answered(self) -> tuple[Report, Answer]:
        """What was said is kept before it is told: the next question may come at once."""
        outcome = await self.service.engine.outcome(self.run.id)
        if outcome.report is None:
            raise self._unanswered(outcome)
        made = answer(outcome.report)
        with suppress(NotFoundError):  # the thread was deleted meanwhile
            await self.service.premises.chats.add(self.run.thread, self.talk.question, made.text)
        return outcome.report, made

    def _unanswered(self, outcome: Outcome) -> AssayError:
        if known := self.service.engine.fault(self.run.id):
            return known
        run = outcome.run
        if run.status is RunStatus.FAILED:
            return AssayError(run.error or "the run has failed", help=f"The thread is {run.thread}.")
        if run.status in AT_WORK:
            return UnansweredError("the server stops", help=f"The run goes on, on its thread, {run.thread}.")
        return UnansweredError(f"the run is {run.status}", help=f"Go on with it on its thread, {run.thread}.")

    def _leave(self) -> None:
        """In a task of its own: the one that answered is being cancelled."""
        task = asyncio.create_task(_stop(self.service, self.run), name=f"leaving-{self.run.id}")
        _leaving.add(task)
        task.add_done_callback(_leaving.discard)


async def _stop(service: Service, run: Run) -> None:
    await asyncio.sleep(0)  # whoever has left does not read any more by then
    if service.feeds.closed or service.feeds.readers(run.id):  # somebody else reads it
        return
    try:
        await service.engine.stop(run.thread, run=run.id)
    except AssayError as error:  # it has ended just now, or its thread is gone
        _log.info("run %s was not stopped: %s", run.id, error.message)


def annotations(made: Answer) -> list[Annotation]:
    return [
        Annotation(url_citation=UrlCitation(start_index=one.start, end_index=one.end, url=one.url, title=one.title))
        for one in made.citations
    ]


def usage(report: Report) -> Usage:
    """Of the language models that were asked; the embedded reasoner uses none."""
    models = report.spend.by_model.values()
    read, written = (sum(getattr(one, name) for one in models) for name in ("prompt_tokens", "completion_tokens"))
    return Usage(
        prompt_tokens=read, completion_tokens=written, total_tokens=read + written, cost=round(report.spend.usd, 6)
    )
