"""OpenAI's chat format: OpenAI itself, and every server that speaks it."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
from openai import APIError, AsyncOpenAI, AsyncStream, OpenAIError
from pydantic import BaseModel, ConfigDict

from assay.llm.vendors import Request, forms
from assay.llm.vendors.streaming import Finish, Piece, Streaming, usage
from assay.model.exchange import Usage


class _Read(BaseModel):
    """The SDK takes whatever comes without a look at its types; this looks."""

    model_config = ConfigDict(from_attributes=True)


class _Function(_Read):
    arguments: str | None = None


class _ToolCall(_Read):
    function: _Function | None = None


class _Delta(_Read):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(_Read):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Counts(_Read):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _Chunk(_Read):
    choices: list[_Choice] | None = None
    usage: Any = None


class OpenAI(Streaming[AsyncOpenAI]):
    official = "https://api.openai.com/v1"
    faults = (OpenAIError,)
    optional = frozenset({"temperature", "stream_options", "max_tokens"})

    def connect(self, http: httpx2.AsyncClient) -> AsyncOpenAI:
        return AsyncOpenAI(api_key=self.secret, base_url=self.address, http_client=http, max_retries=0)

    def event(self, error: Exception) -> object:
        return error.body if isinstance(error, APIError) else None

    async def pieces(self, sdk: AsyncOpenAI, request: Request, without: frozenset[str]) -> AsyncGenerator[Piece, None]:
        aside: list[str] = []  # text beside the call of a tool: the answer, if no tool is called after all
        refuses = False
        stream = await sdk.post(
            "/chat/completions",
            body=body(request, self.vendor, without),
            cast_to=object,  # as it comes: the SDK's own types take four times as long to make, and check nothing
            stream=True,
            stream_cls=AsyncStream[object],
        )
        async with stream:
            async for chunk in stream:
                read = _Chunk.model_validate(chunk)
                choice = read.choices[0] if read.choices else _Choice()
                delta = choice.delta or _Delta()
                refuses = refuses or bool(delta.refusal)
                text = _text(delta, request, aside)
                if choice.finish_reason is not None and aside:
                    text += "".join(aside)
                finish = _finish(choice.finish_reason, refuses)
                yield Piece(text, finish, read.usage is not None, _usage(read.usage))


def body(request: Request, vendor: str, without: frozenset[str]) -> dict[str, Any]:
    limits = ("max_completion_tokens", "max_tokens")
    limit = limits[(vendor != "openai") ^ ("max_tokens" in without)]
    result: dict[str, Any] = {
        "model": request.model,
        "messages": [
            {"role": "system", "content": forms.system(request)},
            {"role": "user", "content": forms.clean(request.prompt.text)},
        ],
        limit: request.max_tokens,
        "stream": True,
        **_form(request, vendor),
    }
    if "stream_options" not in without:
        result["stream_options"] = {"include_usage": True}
    if request.temperature is not None and "temperature" not in without:
        result["temperature"] = request.temperature
    return result


def _form(request: Request, vendor: str) -> dict[str, Any]:
    form = request.prompt.form
    if request.method == "json_mode":
        return {"response_format": {"type": "json_object"}}
    named: dict[str, Any] = {"name": forms.name(form)}
    if request.method == "function_calling":
        tool = {"type": "function", "function": {**named, "parameters": forms.shaped(form)}}
        return {"tools": [tool], "tool_choice": {"type": "function", "function": named}}
    exact = forms.strict(form) if vendor == "openai" else None
    named |= {"schema": exact, "strict": True} if exact is not None else {"schema": form}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _text(delta: _Delta, request: Request, aside: list[str]) -> str:
    if request.method != "function_calling":
        return delta.content or ""
    arguments = "".join(call.function.arguments or "" for call in delta.tool_calls or () if call.function)
    if arguments:
        aside[:] = [""]
    elif delta.content and aside != [""]:
        aside.append(delta.content)
    return arguments


def _finish(reason: str | None, refuses: bool) -> Finish | None:
    match reason:
        case None:
            return None
        case "content_filter":
            return "refusal"
        case "length":
            return "length"
        case _:
            return "refusal" if refuses else "stop"


def _usage(sent: Any) -> Usage | None:
    if sent is None:
        return None
    counts = _Counts.model_validate(sent)
    return usage(counts.prompt_tokens, counts.completion_tokens)
