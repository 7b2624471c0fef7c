"""A provider of language models on this machine: real HTTP, the vendors' formats, every fault on demand."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType
from typing import Any, Self

from assay.model.exchange import Usage
from assay.testing.faults import ELSEWHERE, FAULTS, Fault
from assay.testing.formats import Answer, Format, Reported, for_path
from assay.testing.listening import Listening
from assay.testing.seen import SeenPrompt
from assay.testing.wire import Piece, Request, Response, Wire


@dataclass
class ProviderCall:
    """A request for an answer, as the provider's own books have it."""

    number: int  # from 1
    format: str
    prompt: SeenPrompt
    prompt_bytes: int
    prompt_tokens: int
    concurrency: int  # calls under way when it came, itself included
    started: float
    ended: float | None = None
    fault: str | None = None
    billed: bool = True
    text: str = ""  # what was answered
    completion_tokens: int = 0
    usage: Reported | None = None  # what the client was told, which a fault may falsify

    @property
    def form(self) -> str:
        return self.prompt.form

    @property
    def model(self) -> str:
        return self.prompt.model


Faults = Callable[[ProviderCall], Fault | None]


class FakeProvider:
    """`async with FakeProvider(model) as provider` serves at `provider.url` what `model` says.

    `faults` is asked at every call (see policies.py). `latency` is in seconds. A prompt of more tokens than `context`
    is turned down. Whoever follows a redirect of a fault to another host is in `strays`. An error the model raises
    ends the connection, and is raised again when the provider closes.
    """

    def __init__(
        self,
        model: Callable[[SeenPrompt], str],
        *,
        faults: Faults | None = None,
        latency: float | Callable[[ProviderCall], float] = 0.0,
        context: int | None = None,
        models: Sequence[str] = ("scripted",),
        connections: int = 1000,
    ) -> None:
        self.calls: list[ProviderCall] = []
        self.strays: list[Request] = []
        self._model = model
        self._faults = faults or (lambda call: None)
        self._latency = latency
        self._context = context
        self._models = models
        self._listening = Listening(self._answered, most=connections)
        self._under_way = 0

    async def __aenter__(self) -> Self:
        self.port: int = await self._listening.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listening.end(error)

    @property
    def url(self) -> str:
        """For the clients of Anthropic and Google; an OpenAI client wants `/v1` after it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def billed(self) -> list[ProviderCall]:
        """The calls a real provider would charge for."""
        return [call for call in self.calls if call.billed]

    def billed_tokens(self, model: str | None = None) -> Usage:
        """What it would charge for, of one model or all."""
        charged = [call for call in self.billed if model in (None, call.model)]
        return Usage(
            prompt_tokens=sum(call.prompt_tokens for call in charged),
            completion_tokens=sum(call.completion_tokens for call in charged),
        )

    @property
    def busiest(self) -> int:
        """The most calls that were under way at once."""
        return max((call.concurrency for call in self.calls), default=0)

    async def _answered(self, wire: Wire, request: Request) -> None:
        format = for_path(request.path) if request.method == "POST" else None
        if format is None:
            await wire.send(self._page(request))
        else:
            await self._called(wire, request, format)

    async def _called(self, wire: Wire, request: Request, format: Format) -> None:
        call = self._begin(format, format.seen(request), request)
        self._under_way += 1
        try:
            await self._play(wire, call, format)
        finally:
            self._under_way -= 1
            call.ended = monotonic()

    def _begin(self, format: Format, prompt: SeenPrompt, request: Request) -> ProviderCall:
        call = ProviderCall(
            number=len(self.calls) + 1,
            format=format.name,
            prompt=prompt,
            prompt_bytes=len(request.body),
            prompt_tokens=tokens(prompt.system + prompt.text + (json.dumps(prompt.schema) if prompt.schema else "")),
            concurrency=self._under_way + 1,
            started=monotonic(),
        )
        self.calls.append(call)
        return call

    async def _play(self, wire: Wire, call: ProviderCall, format: Format) -> None:
        fault = self._fault(call)
        call.fault, call.billed = (fault.name, fault.billed) if fault else (None, True)
        response = self._response(call, format, fault)
        seconds = self._latency(call) if callable(self._latency) else self._latency
        if seconds and await wire.gone(within=seconds):
            return
        await (fault.sent if fault and fault.sent else Wire.send)(wire, response)

    def _fault(self, call: ProviderCall) -> Fault | None:
        if self._context is not None and call.prompt_tokens > self._context:
            return FAULTS["context-overflow"]
        fault = self._faults(call)
        return fault if fault and call.format in fault.formats else None

    def _response(self, call: ProviderCall, format: Format, fault: Fault | None) -> Response:
        answer = self._answer(call, fault) if call.billed else Answer("", None)
        response = _delivered(format, call.prompt, answer)
        if fault and fault.replied:
            response = fault.replied(response, format)
        if "Location" in response.headers:
            response = replace(response, headers={"Location": f"http://localhost:{self.port}{ELSEWHERE}"})
        return response

    def _answer(self, call: ProviderCall, fault: Fault | None) -> Answer:
        limit = call.prompt.limit or math.inf
        text = self._model(call.prompt)
        if tokens(text) > limit:
            answer = Answer(text[: int(limit) * 4], None, "length", call.prompt.tool)
        else:
            answer = Answer(text, None, "stop", call.prompt.tool)
        if fault and fault.said:
            answer = fault.said(answer)
        call.text = answer.text or ""
        call.completion_tokens = int(min(tokens(call.text), limit))  # no provider charges for more than was ordered
        counted = Reported(call.prompt_tokens, call.completion_tokens)
        call.usage = fault.reported(counted) if fault and fault.reported else counted
        return replace(answer, usage=call.usage)

    def _page(self, request: Request) -> Response:
        """What a server tells about itself."""
        if request.path == ELSEWHERE:
            self.strays.append(request)
        named = [{"id": name, "object": "model", "created": 0, "owned_by": "assay"} for name in self._models]
        pages: dict[str, Any] = {
            "/v1/models": {"object": "list", "data": named, "has_more": False},
            "/v1beta/models": {"models": [{"name": f"models/{name}"} for name in self._models]},
            "/api/tags": {"models": [{"name": name, "model": name, "size": 0} for name in self._models]},
            "/api/version": {"version": "0.0.0"},
            "/health": {"status": "ok"},
        }
        body = pages.get(request.path) if request.method == "GET" else None
        data = json.dumps(body or {"error": {"message": f"no such page: {request.path}"}}).encode()
        return Response(200 if body else 404, (Piece("body", data),), {"Content-Type": "application/json"})


def tokens(text: str) -> int:
    """Four characters each, which is near enough for English."""
    return math.ceil(len(text) / 4)


def _delivered(format: Format, prompt: SeenPrompt, answer: Answer) -> Response:
    headers = {"x-request-id": "req_1", "request-id": "req_1"}
    if prompt.stream:
        headers["Content-Type"] = "text/event-stream; charset=utf-8"
        return Response(200, tuple(format.stream(prompt, answer)), headers, chunked=True)
    headers["Content-Type"] = "application/json"
    return Response(200, (Piece("body", json.dumps(format.whole(prompt, answer)).encode()),), headers)
