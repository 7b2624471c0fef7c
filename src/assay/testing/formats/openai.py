"""OpenAI's chat completions, which most other servers speak too."""

import json
from collections.abc import Iterator
from typing import Any

from assay.testing.formats.exchange import Answer, Problem, Reported, event, parts, plain, prompt_of
from assay.testing.seen import SeenPrompt
from assay.testing.wire import Piece, Request

CREATED = 1_735_689_600


class OpenAI:
    name = "openai"

    def seen(self, request: Request) -> SeenPrompt:
        body = json.loads(request.body)
        wanted = body.get("response_format", {})
        form = wanted.get("json_schema", {})
        tool = body["tools"][0]["function"] if body.get("tools") else {}
        messages = [(message["role"], plain(message.get("content"))) for message in body["messages"]]
        return prompt_of(
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

    def stream(self, prompt: SeenPrompt, answer: Answer) -> Iterator[Piece]:
        said = "refusal" if answer.finish == "refusal" else "content"
        yield self._chunk(prompt, "start", {"role": "assistant", "content": None if answer.text is None else ""})
        if answer.tool:
            call = {"id": "call_1", "type": "function", "function": {"name": answer.tool, "arguments": ""}}
            yield self._chunk(prompt, "start", {"tool_calls": [{"index": 0, **call}]})
        for part in parts(answer.text):
            spoken = {"tool_calls": [{"index": 0, "function": {"arguments": part}}]} if answer.tool else {said: part}
            yield self._chunk(prompt, "text", spoken)
        yield self._chunk(prompt, "finish", {}, self._finish(answer))
        if prompt.wants_usage and answer.usage is not None:
            usage = {**self._head(prompt), "object": "chat.completion.chunk", "choices": []}
            yield Piece("usage", event({**usage, "usage": self._usage(answer.usage)}))
        yield Piece("end", b"data: [DONE]\n\n")

    def whole(self, prompt: SeenPrompt, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.tool:
            function = {"name": answer.tool, "arguments": answer.text}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        elif answer.finish == "refusal":
            message |= {"content": None, "refusal": answer.text}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish(answer)}
        usage = {} if answer.usage is None else {"usage": self._usage(answer.usage)}
        return {**self._head(prompt), "object": "chat.completion", "choices": [choice], **usage}

    def error(self, problem: Problem) -> dict[str, Any]:
        kind = {429: "rate_limit_error", 401: "authentication_error"}.get(problem.status, "invalid_request_error")
        kind = "server_error" if problem.status >= 500 else kind
        return {"error": {"message": problem.message, "type": kind, "param": None, "code": problem.code or None}}

    def error_event(self, problem: Problem) -> bytes:
        return event(self.error(problem))

    def _chunk(self, prompt: SeenPrompt, kind: str, delta: dict[str, Any], finish: str | None = None) -> Piece:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if prompt.wants_usage else {}
        return Piece(
            kind, event({**self._head(prompt), "object": "chat.completion.chunk", "choices": [choice], **usage})
        )

    def _head(self, prompt: SeenPrompt) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "created": CREATED, "model": prompt.model}

    def _finish(self, answer: Answer) -> str:
        # A tool that had to be called ends with "stop"; "tool_calls" is for one the model chose.
        return {"length": "length", "filter": "content_filter"}.get(answer.finish, "stop")

    def _usage(self, usage: Reported) -> dict[str, Any]:
        total = usage.prompt + usage.completion
        return {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "total_tokens": total}
