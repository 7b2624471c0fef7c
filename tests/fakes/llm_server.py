"""A provider of language models on this machine: real HTTP, the vendors' formats, every fault on demand."""

import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType
from typing import Any, Self

from openassay.models.spend import TokenUsage
from tests.fakes.http_server import FakeHttpServer, ResponsePiece, ServerConnection, ServerRequest, ServerResponse
from tests.fakes.llm_api import FakeAnswer, LlmFormat, ModelPrompt, UsageReport, find_format
from tests.fakes.llm_faults import FAULTS, REDIRECT_PATH, LlmFault

# When a fault is played.

FaultOrName = LlmFault | str


class FaultAlways:
    """At every call."""

    def __init__(self, fault: FaultOrName) -> None:
        self._fault = _resolve_fault(fault)

    def __call__(self, call: "LlmServerCall") -> LlmFault | None:
        return self._fault


class FaultOnce:
    """The first time that a prompt is seen, so that every second attempt succeeds."""

    def __init__(self, fault: FaultOrName) -> None:
        self._fault = _resolve_fault(fault)
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, call: "LlmServerCall") -> LlmFault | None:
        prompt = (call.form, call.prompt.text)
        if prompt in self._seen:
            return None
        self._seen.add(prompt)
        return self._fault


class FaultShare:
    """At a share of the calls, chosen by their number: the same seed makes the same choice."""

    def __init__(self, share: float, seed: int, faults: Iterable[FaultOrName] | None = None) -> None:
        self._share = share
        self._seed = seed
        quick = [fault for fault in FAULTS.values() if not fault.slow]
        self._faults = quick if faults is None else [_resolve_fault(fault) for fault in faults]

    def __call__(self, call: "LlmServerCall") -> LlmFault | None:
        chance = random.Random(f"{self._seed}:{call.number}")
        known = [fault for fault in self._faults if call.format in fault.formats]
        return chance.choice(known) if known and chance.random() < self._share else None


class FaultSequence:
    """One after the other, None for none; then no more."""

    def __init__(self, faults: Sequence[FaultOrName | None]) -> None:
        self._faults = [None if fault is None else _resolve_fault(fault) for fault in faults]

    def __call__(self, call: "LlmServerCall") -> LlmFault | None:
        return self._faults[call.number - 1] if call.number <= len(self._faults) else None


def _resolve_fault(named: FaultOrName) -> LlmFault:
    return named if isinstance(named, LlmFault) else FAULTS[named]


@dataclass
class LlmServerCall:
    """A request for an answer, as the provider's own books have it."""

    number: int  # from 1
    format: str
    prompt: ModelPrompt
    prompt_bytes: int
    prompt_tokens: int
    concurrency: int  # calls under way when it came, itself included
    started: float
    ended: float | None = None
    fault: str | None = None
    billed: bool = True
    text: str = ""  # what was answered
    completion_tokens: int = 0
    usage: UsageReport | None = None  # what the client was told, which a fault may falsify

    @property
    def form(self) -> str:
        return self.prompt.form

    @property
    def model(self) -> str:
        return self.prompt.model


FaultPolicy = Callable[[LlmServerCall], LlmFault | None]


class FakeLlmServer:
    """`async with FakeProvider(model) as provider` serves at `provider.url` what `model` says.

    `faults` is asked at every call (see policies.py). `latency` is in seconds. A prompt of more tokens than `context`
    is turned down. Whoever follows a redirect of a fault to another host is in `strays`. An error the model raises
    ends the connection, and is raised again when the provider closes.
    """

    def __init__(
        self,
        model: Callable[[ModelPrompt], str],
        *,
        faults: FaultPolicy | None = None,
        latency: float | Callable[[LlmServerCall], float] = 0.0,
        context: int | None = None,
        models: Sequence[str] = ("scripted",),
        connections: int = 1000,
    ) -> None:
        self.calls: list[LlmServerCall] = []
        self.strays: list[ServerRequest] = []
        self._model = model
        self._faults = faults or (lambda call: None)
        self._latency = latency
        self._context = context
        self._models = models
        self._listening = FakeHttpServer(self._handle_request, most=connections)
        self._under_way = 0

    async def __aenter__(self) -> Self:
        self.port: int = await self._listening.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listening.stop(error)

    @property
    def url(self) -> str:
        """For the clients of Anthropic and Google; an OpenAI client wants `/v1` after it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def billable_calls(self) -> list[LlmServerCall]:
        """The calls a real provider would charge for."""
        return [call for call in self.calls if call.billed]

    def billable_tokens(self, model: str | None = None) -> TokenUsage:
        """What it would charge for, of one model or all."""
        charged = [call for call in self.billable_calls if model in (None, call.model)]
        return TokenUsage(
            prompt_tokens=sum(call.prompt_tokens for call in charged),
            completion_tokens=sum(call.completion_tokens for call in charged),
        )

    @property
    def max_concurrency(self) -> int:
        """The most calls that were under way at once."""
        return max((call.concurrency for call in self.calls), default=0)

    async def _handle_request(self, wire: ServerConnection, request: ServerRequest) -> None:
        format = find_format(request.path) if request.method == "POST" else None
        if format is None:
            await wire.send(self._build_page(request))
        else:
            await self._handle_call(wire, request, format)

    async def _handle_call(self, wire: ServerConnection, request: ServerRequest, format: LlmFormat) -> None:
        call = self._record_call(format, format.parse_prompt(request), request)
        self._under_way += 1
        try:
            await self._send_response(wire, call, format)
        finally:
            self._under_way -= 1
            call.ended = monotonic()

    def _record_call(self, format: LlmFormat, prompt: ModelPrompt, request: ServerRequest) -> LlmServerCall:
        call = LlmServerCall(
            number=len(self.calls) + 1,
            format=format.name,
            prompt=prompt,
            prompt_bytes=len(request.body),
            prompt_tokens=count_tokens(
                prompt.system + prompt.text + (json.dumps(prompt.schema) if prompt.schema else "")
            ),
            concurrency=self._under_way + 1,
            started=monotonic(),
        )
        self.calls.append(call)
        return call

    async def _send_response(self, wire: ServerConnection, call: LlmServerCall, format: LlmFormat) -> None:
        fault = self._choose_fault(call)
        call.fault, call.billed = (fault.name, fault.billed) if fault else (None, True)
        response = self._build_response(call, format, fault)
        seconds = self._latency(call) if callable(self._latency) else self._latency
        if seconds and await wire.wait_for_close(within=seconds):
            return
        await (fault.sent if fault and fault.sent else ServerConnection.send)(wire, response)

    def _choose_fault(self, call: LlmServerCall) -> LlmFault | None:
        if self._context is not None and call.prompt_tokens > self._context:
            return FAULTS["context-overflow"]
        fault = self._faults(call)
        return fault if fault and call.format in fault.formats else None

    def _build_response(self, call: LlmServerCall, format: LlmFormat, fault: LlmFault | None) -> ServerResponse:
        answer = self._build_answer(call, fault) if call.billed else FakeAnswer("", None)
        response = _render_answer(format, call.prompt, answer)
        if fault and fault.replied:
            response = fault.replied(response, format)
        if "Location" in response.headers:
            response = replace(response, headers={"Location": f"http://localhost:{self.port}{REDIRECT_PATH}"})
        return response

    def _build_answer(self, call: LlmServerCall, fault: LlmFault | None) -> FakeAnswer:
        limit = call.prompt.limit or math.inf
        text = self._model(call.prompt)
        if count_tokens(text) > limit:
            answer = FakeAnswer(text[: int(limit) * 4], None, "length", call.prompt.tool)
        else:
            answer = FakeAnswer(text, None, "stop", call.prompt.tool)
        if fault and fault.said:
            answer = fault.said(answer)
        call.text = answer.text or ""
        call.completion_tokens = int(
            min(count_tokens(call.text), limit)
        )  # no provider charges for more than was ordered
        counted = UsageReport(call.prompt_tokens, call.completion_tokens)
        call.usage = fault.reported(counted) if fault and fault.reported else counted
        return replace(answer, usage=call.usage)

    def _build_page(self, request: ServerRequest) -> ServerResponse:
        """What a server tells about itself."""
        if request.path == REDIRECT_PATH:
            self.strays.append(request)
        named = [{"id": name, "object": "model", "created": 0, "owned_by": "openassay"} for name in self._models]
        pages: dict[str, Any] = {
            "/v1/models": {"object": "list", "data": named, "has_more": False},
            "/v1beta/models": {"models": [{"name": f"models/{name}"} for name in self._models]},
            "/api/tags": {"models": [{"name": name, "model": name, "size": 0} for name in self._models]},
            "/api/version": {"version": "0.0.0"},
            "/health": {"status": "ok"},
        }
        body = pages.get(request.path) if request.method == "GET" else None
        data = json.dumps(body or {"error": {"message": f"no such page: {request.path}"}}).encode()
        return ServerResponse(
            200 if body else 404, (ResponsePiece("body", data),), {"Content-Type": "application/json"}
        )


def count_tokens(text: str) -> int:
    """Four characters each, which is near enough for English."""
    return math.ceil(len(text) / 4)


def _render_answer(format: LlmFormat, prompt: ModelPrompt, answer: FakeAnswer) -> ServerResponse:
    headers = {"x-request-id": "req_1", "request-id": "req_1"}
    if prompt.stream:
        headers["Content-Type"] = "text/event-stream; charset=utf-8"
        return ServerResponse(200, tuple(format.stream_answer(prompt, answer)), headers, chunked=True)
    headers["Content-Type"] = "application/json"
    return ServerResponse(
        200, (ResponsePiece("body", json.dumps(format.build_body(prompt, answer)).encode()),), headers
    )
