"""The vendors' wire formats, from the server's side."""

from collections.abc import Iterator
from typing import Any, Protocol

from assay.testing.formats.anthropic import Anthropic
from assay.testing.formats.exchange import Answer, Finish, Problem, Reported
from assay.testing.formats.google import Google
from assay.testing.formats.openai import OpenAI
from assay.testing.seen import SeenPrompt
from assay.testing.wire import Piece, Request

__all__ = ["FORMATS", "Answer", "Finish", "Format", "Problem", "Reported", "for_path"]


class Format(Protocol):
    name: str

    def seen(self, request: Request) -> SeenPrompt: ...

    def stream(self, prompt: SeenPrompt, answer: Answer) -> Iterator[Piece]: ...

    def whole(self, prompt: SeenPrompt, answer: Answer) -> dict[str, Any]: ...

    def error(self, problem: Problem) -> dict[str, Any]: ...

    def error_event(self, problem: Problem) -> bytes: ...


FORMATS: tuple[Format, ...] = (OpenAI(), Anthropic(), Google())


def for_path(path: str) -> Format | None:
    """The format a request's address speaks."""
    openai, anthropic, google = FORMATS
    if path.endswith("/chat/completions"):
        return openai
    if path.endswith("/messages"):
        return anthropic
    return google if path.endswith((":generateContent", ":streamGenerateContent")) else None
