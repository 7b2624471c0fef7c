"""Serves the answers of a run again, so that a change is measured on what a strong model wrote, and the program's own
time without its model's.

    python -m benchmarks.reading.recording BRIDGE PORT

BRIDGE is the folder of a bridge (`in/ID.json`, `out/ID.txt`). A call gets the answer to the same prompt, or, where
there is none, that to the prompt of the same form that is most like it and has not been answered yet. `served.json` in
BRIDGE tells at the end how many of each there were.
"""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


class RecordedCall(NamedTuple):
    form: str  # the name of the schema that was asked for
    prompt: str
    answer: str


def load_calls(folder: Path) -> list[RecordedCall]:
    calls = []
    for file in sorted((folder / "in").glob("*.json")):
        answer = folder / "out" / f"{file.stem}.txt"
        if answer.exists():
            body = json.loads(file.read_text(encoding="utf-8"))
            calls.append(RecordedCall(read_form(body), read_prompt(body), answer.read_text(encoding="utf-8")))
    return calls


def read_form(body: Mapping[str, Any]) -> str:
    name: str = (body.get("response_format") or {}).get("json_schema", {}).get("name", "")
    return name


def read_prompt(body: Mapping[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


class Recording:
    """Answers each call once, and the same prompt again if it is asked again."""

    def __init__(self, calls: list[RecordedCall]) -> None:
        self._known = {(call.form, call.prompt): call for call in calls}
        self._left = dict.fromkeys(calls)
        self.counts = {"same prompt": 0, "like it": 0, "none": 0}

    def find_answer(self, form: str, prompt: str) -> str | None:
        call, how = self._known.get((form, prompt)), "same prompt"
        if call is None:
            lines = set(prompt.splitlines())
            of_form = [one for one in self._left if one.form == form]
            call = max(of_form, key=lambda one: len(lines & set(one.prompt.splitlines())), default=None)
            how = "like it" if call else "none"
        if call:
            self._left.pop(call, None)
        self.counts[how] += 1
        return call.answer if call else None


def build_app(folder: Path) -> Starlette:
    recording = Recording(load_calls(folder))

    async def answer_call(request: Request) -> Response:
        body = await request.json()
        prompt = read_prompt(body)
        answer = recording.find_answer(read_form(body), prompt)
        (folder / "served.json").write_text(json.dumps(recording.counts), encoding="utf-8")
        if answer is None:
            return JSONResponse({"error": {"message": "nothing of this form was recorded"}}, 400)
        tokens = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(answer) // 4}
        usage = {**tokens, "total_tokens": sum(tokens.values())}
        base = {"id": "recorded", "created": 0, "model": body.get("model")}
        if not body.get("stream"):
            message = {"role": "assistant", "content": answer}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return JSONResponse({**base, "object": "chat.completion", "choices": choices, "usage": usage})

        async def stream() -> AsyncIterator[str]:
            delta = {"role": "assistant", "content": answer}
            for chunk in (
                {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": usage},
            ):
                yield "data: " + json.dumps({**base, "object": "chat.completion.chunk", **chunk}) + "\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def list_models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "strong", "object": "model", "max_model_len": 200_000}]})

    return Starlette(
        routes=[Route("/v1/chat/completions", answer_call, methods=["POST"]), Route("/v1/models", list_models)]
    )


if __name__ == "__main__":
    uvicorn.run(build_app(Path(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
