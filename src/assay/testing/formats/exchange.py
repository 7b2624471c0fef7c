"""What every format has to say: a prompt, an answer, a problem."""

import json
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from assay.testing.seen import SeenPrompt

Finish = Literal["stop", "length", "refusal", "filter"]


class Reported(NamedTuple):
    """Usage as it is said, which may be nonsense."""

    prompt: Any
    completion: Any


@dataclass(frozen=True)
class Answer:
    text: str | None
    usage: Reported | None
    finish: Finish = "stop"
    tool: str = ""


@dataclass(frozen=True)
class Problem:
    """Why a request was turned down. `code` is the vendor's own word, where it has one beyond the status."""

    status: int
    message: str
    code: str = ""
    retry_after: str = ""


def prompt_of(*, schema: dict[str, Any] | None, name: str, json_mode: bool, tool: str, **rest: Any) -> SeenPrompt:
    method = "function_calling" if tool else "json_schema" if schema else "json_mode" if json_mode else "text"
    written = schema or _written_schema(f"{rest['system']}\n{rest['text']}") or {}
    return SeenPrompt(**rest, schema=written, form=written.get("title") or name, method=method, tool=tool)


def _written_schema(text: str) -> dict[str, Any] | None:
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


def plain(content: Any) -> str:
    """The text of a message, given as a string or in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


def parts(text: str | None) -> list[str]:
    """As a stream would bring it, in 64 parts at most."""
    size = max(24, math.ceil(len(text or "") / 64))
    return [(text or "")[start : start + size] for start in range(0, len(text or ""), size)]


def loose_json(text: str | None) -> Any:
    """Arguments of a call, where the format wants them parsed; what is no JSON stays as one argument."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {"answer": text}
    return value if isinstance(value, dict) else {"answer": value}


def event(data: Any) -> bytes:
    # A lone surrogate cannot be UTF-8; written as an escape it is still JSON.
    return b"data: " + json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace") + b"\n\n"
