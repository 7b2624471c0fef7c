"""OpenAI's chat format: OpenAI itself, and every server that speaks it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
from openai import APIError, AsyncOpenAI, AsyncStream, OpenAIError

from openassay.llm.local import LocalServer
from openassay.llm.names import ModelName, check_file
from openassay.llm.vendors import ModelRequest, base
from openassay.llm.vendors.base import Finish, StreamingVendor, StreamPiece, WireModel, make_usage
from openassay.settings import Settings

_FINISHES: dict[str, Finish] = {"content_filter": "refusal", "length": "length"}


class _OpenAIFunction(WireModel):
    arguments: str | None = None


class _OpenAIToolCall(WireModel):
    function: _OpenAIFunction | None = None


class _OpenAIDelta(WireModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_OpenAIToolCall] | None = None


class _OpenAIChoice(WireModel):
    delta: _OpenAIDelta | None = None
    finish_reason: str | None = None


class _OpenAICounts(WireModel):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _OpenAIChunk(WireModel):
    choices: list[_OpenAIChoice] | None = None
    usage: Any = None


class OpenAIVendor(StreamingVendor[AsyncOpenAI]):
    official = "https://api.openai.com/v1"
    faults = (OpenAIError,)
    optional = frozenset({"temperature", "stream_options", "max_tokens"})

    def connect(self, http: httpx2.AsyncClient) -> AsyncOpenAI:
        return AsyncOpenAI(api_key=self.secret, base_url=self.address, http_client=http, max_retries=0)

    def error_event(self, error: Exception) -> object:
        return error.body if isinstance(error, APIError) else None

    async def stream_pieces(
        self, sdk: AsyncOpenAI, request: ModelRequest, without: frozenset[str]
    ) -> AsyncGenerator[StreamPiece, None]:
        aside: list[str] = []  # text beside the call of a tool: the answer, if no tool is called after all
        refuses = False
        stream = await sdk.post(
            "/chat/completions",
            body=build_body(request, self.vendor, without),
            cast_to=object,  # as it comes: the SDK's own types take four times as long to make, and check nothing
            stream=True,
            stream_cls=AsyncStream[object],
        )
        async with stream:
            async for chunk in stream:
                read = _OpenAIChunk.model_validate(chunk)
                choice = read.choices[0] if read.choices else _OpenAIChoice()
                delta = choice.delta or _OpenAIDelta()
                refuses = refuses or bool(delta.refusal)
                text = delta.content or ""
                if request.method == "function_calling":
                    calls = [call.function for call in delta.tool_calls or () if call.function]
                    arguments = "".join(function.arguments or "" for function in calls)
                    if arguments:
                        aside[:] = [""]
                    elif text and aside != [""]:
                        aside.append(text)
                    text = arguments
                finish: Finish | None = None
                if choice.finish_reason is not None:
                    text += "".join(aside)
                    finish = _FINISHES.get(choice.finish_reason, "refusal" if refuses else "stop")
                counts = _OpenAICounts.model_validate(read.usage) if read.usage is not None else None
                usage = make_usage(counts.prompt_tokens, counts.completion_tokens) if counts else None
                yield StreamPiece(text, finish, counts is not None, usage)


class LocalVendor(OpenAIVendor):
    """A .gguf file on a server of our own."""

    def __init__(self, name: ModelName, settings: Settings) -> None:
        check_file(name)
        self._server: LocalServer | None = LocalServer.acquire(name.path)
        super().__init__(name, settings, address=self._server.address, secret=self._server.secret)

    @property
    def ended(self) -> bool:
        """Whether the server has died, say for lack of memory: then the model has to be opened again."""
        return self._server is None or self._server.ended

    async def close(self) -> None:
        await super().close()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.release)


def build_body(request: ModelRequest, vendor: str, without: frozenset[str]) -> dict[str, Any]:
    limits = ("max_completion_tokens", "max_tokens")
    limit = limits[(vendor != "openai") ^ ("max_tokens" in without)]
    result: dict[str, Any] = {
        "model": request.model,
        "messages": [
            {"role": "system", "content": base.system_text(request)},
            {"role": "user", "content": base.replace_surrogates(request.prompt.text)},
        ],
        limit: request.max_tokens,
        "stream": True,
    }
    form = request.prompt.form
    named: dict[str, Any] = {"name": base.schema_name(form)}
    if request.method == "json_mode":
        result["response_format"] = {"type": "json_object"}
    elif request.method == "function_calling":
        result["tools"] = [{"type": "function", "function": {**named, "parameters": base.clean_schema(form)}}]
        result["tool_choice"] = {"type": "function", "function": named}
    else:
        named |= {"schema": base.clean_schema(form), "strict": True} if vendor == "openai" else {"schema": form}
        result["response_format"] = {"type": "json_schema", "json_schema": named}
    if "stream_options" not in without:
        result["stream_options"] = {"include_usage": True}
    if request.temperature is not None and "temperature" not in without:
        result["temperature"] = request.temperature
    return result
