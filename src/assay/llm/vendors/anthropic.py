"""Anthropic's messages format."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
from anthropic import AnthropicError, APIStatusError, AsyncAnthropic, AsyncStream, transform_schema
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import BaseModel, ConfigDict

from assay.llm.vendors import Request, Unsupported, forms
from assay.llm.vendors.streaming import Finish, Piece, Streaming, is_count, usage
from assay.model.exchange import Usage


class _Read(BaseModel):
    """The SDK takes whatever comes without a look at its types; this looks."""

    model_config = ConfigDict(from_attributes=True)


class _Counts(_Read):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None


class _Message(_Read):
    usage: _Counts | None = None


class _Delta(_Read):
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Event(_Read):
    type: str
    message: _Message | None = None
    delta: _Delta | None = None
    usage: _Counts | None = None


class Anthropic(Streaming[AsyncAnthropic]):
    official = "https://api.anthropic.com"
    faults = (AnthropicError,)

    def connect(self, http: httpx2.AsyncClient) -> AsyncAnthropic:
        return AsyncAnthropic(
            api_key=self.secret, base_url=self.address, http_client=http, max_retries=0, open_telemetry=False
        )

    def event(self, error: Exception) -> object:
        return error.body if isinstance(error, APIStatusError) else None

    async def pieces(
        self, sdk: AsyncAnthropic, request: Request, without: frozenset[str]
    ) -> AsyncGenerator[Piece, None]:
        counted, reason = _Counts(), ""
        stream = await sdk.post(
            "/v1/messages",
            body=body(request, without),
            cast_to=Message,
            stream=True,
            stream_cls=AsyncStream[RawMessageStreamEvent],
        )
        async with stream:
            async for raw in stream:
                event = _Event.model_validate(raw)
                counted = _counted(counted, event)
                delta = event.delta or _Delta()
                reason = delta.stop_reason or reason
                text = delta.partial_json if request.method == "function_calling" else delta.text
                if event.type == "message_stop":
                    yield Piece("", _finish(reason), True, _usage(counted))
                else:
                    yield Piece(text or "")


def body(request: Request, without: frozenset[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "model": request.model,
        "system": forms.system(request),
        "messages": [{"role": "user", "content": forms.clean(request.prompt.text)}],
        "max_tokens": request.max_tokens,
        "stream": True,
        **_form(request),
    }
    if request.temperature is not None and "temperature" not in without:
        result["temperature"] = min(request.temperature, 1.0)
    return result


def _form(request: Request) -> dict[str, Any]:
    form = request.prompt.form
    if request.method == "json_mode":
        return {}
    if request.method == "function_calling":
        tool = {"name": forms.name(form), "description": "The answer.", "input_schema": forms.shaped(form)}
        return {"tools": [tool], "tool_choice": {"type": "tool", "name": tool["name"]}}
    try:
        schema = transform_schema(form)
    except ValueError as error:  # a part without a type
        raise Unsupported("anthropic does not take this schema", parameter="response_format") from error
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def _counted(before: _Counts, event: _Event) -> _Counts:
    """Counts are cumulative: what a later event says replaces what an earlier one said."""
    said = event.usage or (event.message.usage if event.message else None)
    return before if said is None else before.model_copy(update=said.model_dump(exclude_none=True))


def _usage(counts: _Counts) -> Usage | None:
    prompt = [counts.input_tokens, counts.cache_creation_input_tokens or 0, counts.cache_read_input_tokens or 0]
    if not all(is_count(part) for part in prompt):
        return None
    return usage(sum(prompt), counts.output_tokens)


def _finish(reason: str) -> Finish | None:
    """None for a stream that ended without giving a reason: it is not whole."""
    match reason:
        case "":
            return None
        case "refusal":
            return "refusal"
        case "max_tokens" | "model_context_window_exceeded":
            return "length"
        case _:
            return "stop"
