"""Anthropic's messages format."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
from anthropic import AnthropicError, APIStatusError, AsyncAnthropic, AsyncStream, transform_schema
from anthropic.types import Message, RawMessageStreamEvent

from openassay.llm.vendors import ModelRequest, base
from openassay.llm.vendors.base import Finish, StreamingVendor, StreamPiece, WireModel, is_count, make_usage

_FINISHES: dict[str, Finish | None] = {
    "": None,  # a stream that ended without giving a reason is not whole
    "refusal": "refusal",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class _AnthropicCounts(WireModel):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None


class _AnthropicMessage(WireModel):
    usage: _AnthropicCounts | None = None


class _AnthropicDelta(WireModel):
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _AnthropicEvent(WireModel):
    type: str
    message: _AnthropicMessage | None = None
    delta: _AnthropicDelta | None = None
    usage: _AnthropicCounts | None = None


class AnthropicVendor(StreamingVendor[AsyncAnthropic]):
    official = "https://api.anthropic.com"
    faults = (AnthropicError,)

    def connect(self, http: httpx2.AsyncClient) -> AsyncAnthropic:
        return AsyncAnthropic(
            api_key=self.secret, base_url=self.address, http_client=http, max_retries=0, open_telemetry=False
        )

    def error_event(self, error: Exception) -> object:
        return error.body if isinstance(error, APIStatusError) else None

    async def stream_pieces(
        self, sdk: AsyncAnthropic, request: ModelRequest, without: frozenset[str]
    ) -> AsyncGenerator[StreamPiece, None]:
        counted, reason = _AnthropicCounts(), ""
        stream = await sdk.post(
            "/v1/messages",
            body=build_body(request, without),
            cast_to=Message,
            stream=True,
            stream_cls=AsyncStream[RawMessageStreamEvent],
        )
        async with stream:
            async for raw in stream:
                event = _AnthropicEvent.model_validate(raw)
                # Counts are cumulative: what a later event says replaces what an earlier one said.
                said = event.usage or (event.message.usage if event.message else None)
                counted = counted if said is None else counted.model_copy(update=said.model_dump(exclude_none=True))
                delta = event.delta or _AnthropicDelta()
                reason = delta.stop_reason or reason
                text = delta.partial_json if request.method == "function_calling" else delta.text
                if event.type == "message_stop":
                    cached = (counted.cache_creation_input_tokens or 0, counted.cache_read_input_tokens or 0)
                    prompt = [counted.input_tokens, *cached]
                    is_known = all(is_count(part) for part in prompt)
                    usage = make_usage(sum(prompt), counted.output_tokens) if is_known else None
                    yield StreamPiece("", _FINISHES.get(reason, "stop"), True, usage)
                else:
                    yield StreamPiece(text or "")


def build_body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    form = request.prompt.form
    result: dict[str, Any] = {
        "model": request.model,
        "system": base.system_text(request),
        "messages": [{"role": "user", "content": base.replace_surrogates(request.prompt.text)}],
        "max_tokens": request.max_tokens,
        "stream": True,
    }
    if request.method == "function_calling":
        tool = {"name": base.schema_name(form), "description": "The answer.", "input_schema": base.clean_schema(form)}
        result |= {"tools": [tool], "tool_choice": {"type": "tool", "name": tool["name"]}}
    elif request.method == "json_schema":
        result["output_config"] = {"format": {"type": "json_schema", "schema": transform_schema(form)}}
    if request.temperature is not None and "temperature" not in without:
        result["temperature"] = min(request.temperature, 1.0)
    return result
