"""Anthropic's messages."""

import json
from collections.abc import Iterator
from typing import Any

from assay.testing.formats.exchange import Answer, Problem, event, loose_json, parts, plain, prompt_of
from assay.testing.seen import SeenPrompt
from assay.testing.wire import Piece, Request


class Anthropic:
    name = "anthropic"

    def seen(self, request: Request) -> SeenPrompt:
        body = json.loads(request.body)
        form = (body.get("output_config") or {}).get("format") or {}
        tool = body["tools"][0] if body.get("tools") else {}
        return prompt_of(
            model=body["model"],
            system=plain(body.get("system")),
            text="\n".join(plain(message["content"]) for message in body["messages"]),
            schema=form.get("schema") or tool.get("input_schema"),
            name=tool.get("name", ""),
            tool=tool.get("name", ""),
            json_mode=False,
            stream=body.get("stream", False),
            limit=body["max_tokens"],
        )

    def stream(self, prompt: SeenPrompt, answer: Answer) -> Iterator[Piece]:
        opened = {**self._message(prompt), "content": [], "stop_reason": None, "stop_sequence": None}
        if answer.usage is not None:
            opened["usage"] = {"input_tokens": answer.usage.prompt, "output_tokens": 1}
        yield self._named("start", "message_start", message=opened)
        if answer.text is not None:
            block = {**self._block(answer), **(self._content(Answer("", None, tool=answer.tool)))}
            yield self._named("start", "content_block_start", index=0, content_block=block)
            yield self._named("start", "ping")
            for part in parts(answer.text):
                kind = ("input_json_delta", "partial_json") if answer.tool else ("text_delta", "text")
                yield self._named("text", "content_block_delta", index=0, delta={"type": kind[0], kind[1]: part})
            yield self._named("text", "content_block_stop", index=0)
        usage = {} if answer.usage is None else {"usage": {"output_tokens": answer.usage.completion}}
        yield self._named("usage", "message_delta", delta=self._stop(answer), **usage)
        yield self._named("end", "message_stop")

    def whole(self, prompt: SeenPrompt, answer: Answer) -> dict[str, Any]:
        block = self._block(answer)
        content = [] if answer.text is None else [{**block, **self._content(answer)}]
        usage = answer.usage and {"input_tokens": answer.usage.prompt, "output_tokens": answer.usage.completion}
        return {
            **self._message(prompt),
            "content": content,
            **self._stop(answer),
            **({"usage": usage} if usage else {}),
        }

    def error(self, problem: Problem) -> dict[str, Any]:
        kinds = {
            401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
            429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
        }  # fmt: skip
        kind = problem.code or kinds.get(
            problem.status, "api_error" if problem.status > 500 else "invalid_request_error"
        )
        return {"type": "error", "error": {"type": kind, "message": problem.message}, "request_id": "req_1"}

    def error_event(self, problem: Problem) -> bytes:
        return b"event: error\n" + event(self.error(problem))

    def _named(self, kind: str, name: str, **data: Any) -> Piece:
        return Piece(kind, f"event: {name}\n".encode() + event({"type": name, **data}))

    def _message(self, prompt: SeenPrompt) -> dict[str, Any]:
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": prompt.model}

    def _block(self, answer: Answer) -> dict[str, Any]:
        return {"type": "tool_use", "id": "toolu_1", "name": answer.tool} if answer.tool else {"type": "text"}

    def _content(self, answer: Answer) -> dict[str, Any]:
        return {"input": loose_json(answer.text)} if answer.tool else {"text": answer.text}

    def _stop(self, answer: Answer) -> dict[str, Any]:
        reasons = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
        reason = reasons.get(answer.finish, "tool_use" if answer.tool else "end_turn")
        return {"stop_reason": reason, "stop_sequence": None}
