"""Adapters of the vendors: one request in, one answer out, streamed.

    ModelRequest     what is asked of which model, how, and for how long
    Vendor           answers it; raises ModelError and nothing else
    ParameterError   the server does not know a way of asking: the router tries the next

    anthropic.py openai.py google.py   one adapter per wire format; OpenAI's also serves compatible and local servers
    base.py                            what they share: the connection, the deadline, JSON schemas, what a refusal means

An adapter module imports its SDK, which takes a second, so it is imported by `open_vendor` alone.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from openassay.errors import ModelError
from openassay.llm.names import ModelName
from openassay.models.spend import Method, ModelPrompt, ModelReply
from openassay.protocols import OnText

if TYPE_CHECKING:
    from openassay.settings import Settings


@dataclass(frozen=True, slots=True)
class ModelRequest:
    model: str  # without its vendor
    prompt: ModelPrompt
    method: Method
    temperature: float | None
    max_tokens: int
    seconds: float  # for everything, from the first byte out to the last one in


class Vendor(Protocol):
    """Answers requests. `ask` raises ModelError and nothing else; `on_text` receives the answer as it grows."""

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply: ...

    async def close(self) -> None: ...


class ParameterError(ModelError):
    """The server refuses a parameter: another way of asking may work. Never billed."""

    def __init__(self, message: str, *, parameter: str, **context: object) -> None:
        super().__init__(
            message, help="Choose another model, or update the server.", retryable=False, billed=False, **context
        )
        self.parameter = parameter


def open_vendor(name: ModelName, settings: "Settings") -> Vendor:
    """Open the adapter of a model: imports an SDK, and for a file loads the model, so call it in a thread."""
    match name.vendor:
        case "anthropic":
            from openassay.llm.vendors.anthropic import AnthropicVendor

            return AnthropicVendor(name, settings)
        case "google":
            with warnings.catch_warnings():  # its SDK has "\/" in a string, which shows where bytecode is not kept
                warnings.simplefilter("ignore")
                from openassay.llm.vendors.google import GoogleVendor

            return GoogleVendor(name, settings)
        case "local":
            from openassay.llm.vendors.openai import LocalVendor

            return LocalVendor(name, settings)
        case _:
            from openassay.llm.vendors.openai import OpenAIVendor

            return OpenAIVendor(name, settings)
