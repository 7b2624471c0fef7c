"""Google's Gemini format."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import httpx2
from google import genai
from google.genai import errors, types

from openassay.llm.vendors import ModelRequest, base
from openassay.llm.vendors.base import Finish, StreamingVendor, StreamPiece, load_ssl_context, make_usage
from openassay.models.spend import TokenUsage

LENGTH = frozenset({"MAX_TOKENS", "CONTINUATION"})
REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"})


class GoogleVendor(StreamingVendor[genai.Client]):
    official = "https://generativelanguage.googleapis.com"
    faults = (errors.APIError,)

    def connect(self, http: httpx2.AsyncClient) -> genai.Client:
        return genai.Client(
            api_key=self.secret,
            vertexai=False,  # whatever the environment says
            http_options=types.HttpOptions(
                base_url=self.address,
                api_version="v1beta",
                httpx_async_client=http,
                # Never used; made here, it reads no certificates.
                httpx_client=httpx2.Client(verify=load_ssl_context()),
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    def error_event(self, error: Exception) -> object:
        return error.details if isinstance(error, errors.APIError) else None

    async def stream_pieces(
        self, sdk: genai.Client, request: ModelRequest, without: frozenset[str]
    ) -> AsyncGenerator[StreamPiece, None]:
        stream = await sdk.aio.models.generate_content_stream(
            model=request.model,
            contents=base.replace_surrogates(request.prompt.text),
            config=build_config(request, without),
        )
        async with aclosing(cast("AsyncGenerator[types.GenerateContentResponse, None]", stream)) as chunks:
            async for chunk in chunks:
                candidate = chunk.candidates[0] if chunk.candidates else None
                parts = (candidate.content.parts if candidate and candidate.content else None) or []
                if request.method == "function_calling":
                    calls = [part.function_call for part in parts if part.function_call]
                    text = "".join(json.dumps(call.args or {}, ensure_ascii=False) for call in calls)
                else:
                    text = "".join(part.text for part in parts if part.text and not part.thought)
                yield StreamPiece(text, _to_finish(chunk), chunk.usage_metadata is not None, _to_usage(chunk))


def build_config(request: ModelRequest, without: frozenset[str]) -> types.GenerateContentConfig:
    form = request.prompt.form
    fields: dict[str, Any] = {}
    if request.method == "function_calling":
        tool = types.FunctionDeclaration(name=base.schema_name(form), parameters_json_schema=base.clean_schema(form))
        mode = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
        fields["tools"] = [types.Tool(function_declarations=[tool])]
        fields["tool_config"] = types.ToolConfig(function_calling_config=mode)
    else:
        fields["response_mime_type"] = "application/json"
        if request.method == "json_schema":
            fields["response_json_schema"] = base.clean_schema(form)
    return types.GenerateContentConfig(
        system_instruction=base.system_text(request),
        max_output_tokens=request.max_tokens,
        temperature=None if "temperature" in without else request.temperature,
        # One call is one request: more of them would be paid for unseen.
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        automatic_continuation=False,
        **fields,
    )


def _to_finish(chunk: types.GenerateContentResponse) -> Finish | None:
    if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
        return "refusal"
    reason = chunk.candidates[0].finish_reason if chunk.candidates else None
    if reason is None:
        return None
    name = reason.value
    return "refusal" if name in REFUSALS else "length" if name in LENGTH else "stop"


def _to_usage(chunk: types.GenerateContentResponse) -> TokenUsage | None:
    """What is thought is paid for like what is written."""
    counts = chunk.usage_metadata
    if counts is None:
        return None
    written = [count for count in (counts.candidates_token_count, counts.thoughts_token_count) if count is not None]
    if not written and _to_finish(chunk) != "refusal":
        return None
    return make_usage(counts.prompt_token_count, sum(written) if min(written, default=0) >= 0 else None)
