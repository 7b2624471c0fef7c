"""Google's generateContent."""

import json
from collections.abc import Iterator
from typing import Any

from assay.testing.formats.exchange import Answer, Problem, event, loose_json, parts, plain, prompt_of
from assay.testing.seen import SeenPrompt
from assay.testing.wire import Piece, Request


class Google:
    name = "google"

    def seen(self, request: Request) -> SeenPrompt:
        body = json.loads(request.body)
        config = body.get("generationConfig", {})
        tools = [tool for group in body.get("tools", ()) for tool in group.get("functionDeclarations", ())]
        tool = tools[0] if tools else {}
        model, _, verb = request.path.rpartition("/")[2].partition(":")
        return prompt_of(
            model=model,
            system=plain(body.get("systemInstruction", {}).get("parts")),
            text="\n".join(plain(content.get("parts")) for content in body["contents"]),
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

    def stream(self, prompt: SeenPrompt, answer: Answer) -> Iterator[Piece]:
        if not answer.tool:  # a function call comes whole
            for part in parts(answer.text):
                candidate = {"content": {"role": "model", "parts": [{"text": part}]}, "index": 0}
                yield Piece("text", event({"modelVersion": prompt.model, "candidates": [candidate]}))
        yield Piece("usage", event(self._last(prompt, answer, answer.text if answer.tool else None)))

    def whole(self, prompt: SeenPrompt, answer: Answer) -> dict[str, Any]:
        return self._last(prompt, answer, answer.text)

    def error(self, problem: Problem) -> dict[str, Any]:
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

    def error_event(self, problem: Problem) -> bytes:
        return event(self.error(problem))

    def _last(self, prompt: SeenPrompt, answer: Answer, text: str | None) -> dict[str, Any]:
        """The last event of a stream, or all of an answer that is not streamed."""
        end: dict[str, Any] = {"modelVersion": prompt.model, "responseId": "response-1"}
        if answer.usage is not None:
            prompted, said = answer.usage
            names = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
            end["usageMetadata"] = dict(zip(names, (prompted, said, prompted + said), strict=True))
        if answer.finish == "filter":
            return {**end, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        call = {"functionCall": {"name": answer.tool, "args": loose_json(text)}}
        parts = [] if text is None else [call if answer.tool else {"text": text}]
        content = {"content": {"role": "model", "parts": parts}} if parts else {}
        reason = {"length": "MAX_TOKENS", "refusal": "SAFETY"}.get(answer.finish, "STOP")
        return {**end, "candidates": [{**content, "finishReason": reason, "index": 0}]}
