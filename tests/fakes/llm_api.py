"""OpenAI's chat completions, which most other servers speak too."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from tests.fakes.http_server import ResponsePiece, ServerRequest

# A request as the model behind a provider sees it.


@dataclass(frozen=True)
class ModelPrompt:
    """A request as a model understands it, whatever vendor's words it came in."""

    model: str
    system: str
    text: str
    form: str = ""  # title of the schema, else the name it was given
    schema: Mapping[str, Any] = field(default_factory=dict)
    method: str = "text"  # how the form was asked for: json_schema, function_calling, json_mode
    tool: str = ""  # to be called with the answer
    stream: bool = False
    limit: int | None = None  # tokens the answer may have
    wants_usage: bool = True


# What every format has to say: a prompt, an answer, a problem.

FinishReason = Literal["stop", "length", "refusal", "filter"]


class UsageReport(NamedTuple):
    """Usage as it is said, which may be nonsense."""

    prompt: Any
    completion: Any


@dataclass(frozen=True)
class FakeAnswer:
    text: str | None
    usage: UsageReport | None
    finish: FinishReason = "stop"
    tool: str = ""


@dataclass(frozen=True)
class VendorRejection:
    """Why a request was turned down. `code` is the vendor's own word, where it has one beyond the status."""

    status: int
    message: str
    code: str = ""
    retry_after: str = ""


def build_prompt(*, schema: dict[str, Any] | None, name: str, json_mode: bool, tool: str, **rest: Any) -> ModelPrompt:
    method = "function_calling" if tool else "json_schema" if schema else "json_mode" if json_mode else "text"
    written = schema or _find_schema(f"{rest['system']}\n{rest['text']}") or {}
    return ModelPrompt(**rest, schema=written, form=written.get("title") or name, method=method, tool=tool)


def _find_schema(text: str) -> dict[str, Any] | None:
    """The form, where it stands in the prompt's words because the method has no other place for it."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except ValueError:
            end = place + 1
        else:
            if isinstance(value, dict) and "properties" in value:
                return value
        place = text.find("{", end)
    return None


def join_content(content: Any) -> str:
    """The text of a message, given as a string or in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


def split_text(text: str | None) -> list[str]:
    """As a stream would bring it, in 64 parts at most."""
    size = max(24, math.ceil(len(text or "") / 64))
    return [(text or "")[start : start + size] for start in range(0, len(text or ""), size)]


def parse_arguments(text: str | None) -> Any:
    """Arguments of a call, where the format wants them parsed; what is no JSON stays as one argument."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {"answer": text}
    return value if isinstance(value, dict) else {"answer": value}


def encode_event(data: Any) -> bytes:
    # A lone surrogate cannot be UTF-8; written as an escape it is still JSON.
    return b"data: " + json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace") + b"\n\n"


# Anthropic's messages.


class AnthropicFormat:
    name = "anthropic"

    def parse_prompt(self, request: ServerRequest) -> ModelPrompt:
        body = json.loads(request.body)
        form = (body.get("output_config") or {}).get("format") or {}
        tool = body["tools"][0] if body.get("tools") else {}
        return build_prompt(
            model=body["model"],
            system=join_content(body.get("system")),
            text="\n".join(join_content(message["content"]) for message in body["messages"]),
            schema=form.get("schema") or tool.get("input_schema"),
            name=tool.get("name", ""),
            tool=tool.get("name", ""),
            json_mode=False,
            stream=body.get("stream", False),
            limit=body["max_tokens"],
        )

    def stream_answer(self, prompt: ModelPrompt, answer: FakeAnswer) -> Iterator[ResponsePiece]:
        opened = {**self._build_message(prompt), "content": [], "stop_reason": None, "stop_sequence": None}
        if answer.usage is not None:
            opened["usage"] = {"input_tokens": answer.usage.prompt, "output_tokens": 1}
        yield self._build_event("start", "message_start", message=opened)
        if answer.text is not None:
            block = {**self._build_block(answer), **(self._build_content(FakeAnswer("", None, tool=answer.tool)))}
            yield self._build_event("start", "content_block_start", index=0, content_block=block)
            yield self._build_event("start", "ping")
            for part in split_text(answer.text):
                kind = ("input_json_delta", "partial_json") if answer.tool else ("text_delta", "text")
                yield self._build_event("text", "content_block_delta", index=0, delta={"type": kind[0], kind[1]: part})
            yield self._build_event("text", "content_block_stop", index=0)
        usage = {} if answer.usage is None else {"usage": {"output_tokens": answer.usage.completion}}
        yield self._build_event("usage", "message_delta", delta=self._build_stop(answer), **usage)
        yield self._build_event("end", "message_stop")

    def build_body(self, prompt: ModelPrompt, answer: FakeAnswer) -> dict[str, Any]:
        block = self._build_block(answer)
        content = [] if answer.text is None else [{**block, **self._build_content(answer)}]
        usage = answer.usage and {"input_tokens": answer.usage.prompt, "output_tokens": answer.usage.completion}
        return {
            **self._build_message(prompt),
            "content": content,
            **self._build_stop(answer),
            **({"usage": usage} if usage else {}),
        }

    def build_error(self, problem: VendorRejection) -> dict[str, Any]:
        kinds = {
            401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
            429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
        }  # fmt: skip
        kind = problem.code or kinds.get(
            problem.status, "api_error" if problem.status > 500 else "invalid_request_error"
        )
        return {"type": "error", "error": {"type": kind, "message": problem.message}, "request_id": "req_1"}

    def build_error_event(self, problem: VendorRejection) -> bytes:
        return b"event: error\n" + encode_event(self.build_error(problem))

    def _build_event(self, kind: str, name: str, **data: Any) -> ResponsePiece:
        return ResponsePiece(kind, f"event: {name}\n".encode() + encode_event({"type": name, **data}))

    def _build_message(self, prompt: ModelPrompt) -> dict[str, Any]:
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": prompt.model}

    def _build_block(self, answer: FakeAnswer) -> dict[str, Any]:
        return {"type": "tool_use", "id": "toolu_1", "name": answer.tool} if answer.tool else {"type": "text"}

    def _build_content(self, answer: FakeAnswer) -> dict[str, Any]:
        return {"input": parse_arguments(answer.text)} if answer.tool else {"text": answer.text}

    def _build_stop(self, answer: FakeAnswer) -> dict[str, Any]:
        reasons = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
        reason = reasons.get(answer.finish, "tool_use" if answer.tool else "end_turn")
        return {"stop_reason": reason, "stop_sequence": None}


# Google's generateContent.


class GoogleFormat:
    name = "google"

    def parse_prompt(self, request: ServerRequest) -> ModelPrompt:
        body = json.loads(request.body)
        config = body.get("generationConfig", {})
        tools = [tool for group in body.get("tools", ()) for tool in group.get("functionDeclarations", ())]
        tool = tools[0] if tools else {}
        model, _, verb = request.path.rpartition("/")[2].partition(":")
        return build_prompt(
            model=model,
            system=join_content(body.get("systemInstruction", {}).get("parts")),
            text="\n".join(join_content(content.get("parts")) for content in body["contents"]),
            schema=config.get("responseJsonSchema")
            or config.get("responseSchema")
            or tool.get("parametersJsonSchema")
            or tool.get("parameters_json_schema")  # its client leaves names given in a dict as they are
            or tool.get("parameters"),
            name=tool.get("name", ""),
            tool=tool.get("name", ""),
            json_mode=config.get("responseMimeType") == "application/json",
            stream=verb.startswith("stream"),
            limit=config.get("maxOutputTokens"),
        )

    def stream_answer(self, prompt: ModelPrompt, answer: FakeAnswer) -> Iterator[ResponsePiece]:
        if not answer.tool:  # a function call comes whole
            for part in split_text(answer.text):
                candidate = {"content": {"role": "model", "parts": [{"text": part}]}, "index": 0}
                yield ResponsePiece("text", encode_event({"modelVersion": prompt.model, "candidates": [candidate]}))
        yield ResponsePiece(
            "usage", encode_event(self._build_last_event(prompt, answer, answer.text if answer.tool else None))
        )

    def build_body(self, prompt: ModelPrompt, answer: FakeAnswer) -> dict[str, Any]:
        return self._build_last_event(prompt, answer, answer.text)

    def build_error(self, problem: VendorRejection) -> dict[str, Any]:
        names = {
            400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
        }  # fmt: skip
        status = problem.code or names.get(problem.status, "UNKNOWN")
        error: dict[str, Any] = {"code": problem.status, "message": problem.message, "status": status}
        if problem.retry_after.isdigit():
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{problem.retry_after}s"}]
        return {"error": error}

    def build_error_event(self, problem: VendorRejection) -> bytes:
        return encode_event(self.build_error(problem))

    def _build_last_event(self, prompt: ModelPrompt, answer: FakeAnswer, text: str | None) -> dict[str, Any]:
        """The last event of a stream, or all of an answer that is not streamed."""
        end: dict[str, Any] = {"modelVersion": prompt.model, "responseId": "response-1"}
        if answer.usage is not None:
            prompted, said = answer.usage
            names = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
            end["usageMetadata"] = dict(zip(names, (prompted, said, prompted + said), strict=True))
        if answer.finish == "filter":
            return {**end, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        call = {"functionCall": {"name": answer.tool, "args": parse_arguments(text)}}
        parts = [] if text is None else [call if answer.tool else {"text": text}]
        content = {"content": {"role": "model", "parts": parts}} if parts else {}
        reason = {"length": "MAX_TOKENS", "refusal": "SAFETY"}.get(answer.finish, "STOP")
        return {**end, "candidates": [{**content, "finishReason": reason, "index": 0}]}


CREATED = 1_735_689_600


class OpenAIFormat:
    name = "openai"

    def parse_prompt(self, request: ServerRequest) -> ModelPrompt:
        body = json.loads(request.body)
        wanted = body.get("response_format", {})
        form = wanted.get("json_schema", {})
        tool = body["tools"][0]["function"] if body.get("tools") else {}
        messages = [(message["role"], join_content(message.get("content"))) for message in body["messages"]]
        return build_prompt(
            model=body["model"],
            system="\n".join(text for role, text in messages if role in ("system", "developer")),
            text="\n".join(text for role, text in messages if role not in ("system", "developer")),
            schema=form.get("schema") or tool.get("parameters"),
            name=form.get("name") or tool.get("name", ""),
            tool=tool.get("name", ""),
            json_mode=wanted.get("type") == "json_object",
            stream=body.get("stream", False),
            limit=body.get("max_completion_tokens") or body.get("max_tokens"),
            wants_usage=bool((body.get("stream_options") or {}).get("include_usage")) or not body.get("stream"),
        )

    def stream_answer(self, prompt: ModelPrompt, answer: FakeAnswer) -> Iterator[ResponsePiece]:
        said = "refusal" if answer.finish == "refusal" else "content"
        yield self._build_chunk(prompt, "start", {"role": "assistant", "content": None if answer.text is None else ""})
        if answer.tool:
            call = {"id": "call_1", "type": "function", "function": {"name": answer.tool, "arguments": ""}}
            yield self._build_chunk(prompt, "start", {"tool_calls": [{"index": 0, **call}]})
        for part in split_text(answer.text):
            spoken = {"tool_calls": [{"index": 0, "function": {"arguments": part}}]} if answer.tool else {said: part}
            yield self._build_chunk(prompt, "text", spoken)
        yield self._build_chunk(prompt, "finish", {}, self._finish_reason(answer))
        if prompt.wants_usage and answer.usage is not None:
            usage = {**self._build_head(prompt), "object": "chat.completion.chunk", "choices": []}
            yield ResponsePiece("usage", encode_event({**usage, "usage": self._build_usage(answer.usage)}))
        yield ResponsePiece("end", b"data: [DONE]\n\n")

    def build_body(self, prompt: ModelPrompt, answer: FakeAnswer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.tool:
            function = {"name": answer.tool, "arguments": answer.text}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        elif answer.finish == "refusal":
            message |= {"content": None, "refusal": answer.text}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason(answer)}
        usage = {} if answer.usage is None else {"usage": self._build_usage(answer.usage)}
        return {**self._build_head(prompt), "object": "chat.completion", "choices": [choice], **usage}

    def build_error(self, problem: VendorRejection) -> dict[str, Any]:
        kind = {429: "rate_limit_error", 401: "authentication_error"}.get(problem.status, "invalid_request_error")
        kind = "server_error" if problem.status >= 500 else kind
        return {"error": {"message": problem.message, "type": kind, "param": None, "code": problem.code or None}}

    def build_error_event(self, problem: VendorRejection) -> bytes:
        return encode_event(self.build_error(problem))

    def _build_chunk(
        self, prompt: ModelPrompt, kind: str, delta: dict[str, Any], finish: str | None = None
    ) -> ResponsePiece:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if prompt.wants_usage else {}
        return ResponsePiece(
            kind,
            encode_event({**self._build_head(prompt), "object": "chat.completion.chunk", "choices": [choice], **usage}),
        )

    def _build_head(self, prompt: ModelPrompt) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "created": CREATED, "model": prompt.model}

    def _finish_reason(self, answer: FakeAnswer) -> str:
        # A tool that had to be called ends with "stop"; "tool_calls" is for one the model chose.
        return {"length": "length", "filter": "content_filter"}.get(answer.finish, "stop")

    def _build_usage(self, usage: UsageReport) -> dict[str, Any]:
        total = usage.prompt + usage.completion
        return {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "total_tokens": total}


# The vendors' wire formats, from the server's side.


class LlmFormat(Protocol):
    name: str

    def parse_prompt(self, request: ServerRequest) -> ModelPrompt: ...

    def stream_answer(self, prompt: ModelPrompt, answer: FakeAnswer) -> Iterator[ResponsePiece]: ...

    def build_body(self, prompt: ModelPrompt, answer: FakeAnswer) -> dict[str, Any]: ...

    def build_error(self, problem: VendorRejection) -> dict[str, Any]: ...

    def build_error_event(self, problem: VendorRejection) -> bytes: ...


LLM_FORMATS: tuple[LlmFormat, ...] = (OpenAIFormat(), AnthropicFormat(), GoogleFormat())


def find_format(path: str) -> LlmFormat | None:
    """The format a request's address speaks."""
    openai, anthropic, google = LLM_FORMATS
    if path.endswith("/chat/completions"):
        return openai
    if path.endswith("/messages"):
        return anthropic
    return google if path.endswith((":generateContent", ":streamGenerateContent")) else None
