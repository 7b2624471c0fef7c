"""The seam below the router: one request in, one answer out, streamed on the wire.

    Request     what is asked of which model, how, and for how long
    Vendor      whoever answers it; raises ModelError and nothing else
    Unsupported the server does not know a way of asking: the router goes on to the next

    anthropic.py openai.py google.py   one adapter per wire format; OpenAI's also serves compatible and local servers
    streaming.py                       what they share: the deadline, the bounds, the answer, errors
    wire.py faults.py forms.py         the connection; what a refusal means; JSON schemas as each vendor takes them

An adapter module imports its SDK, which takes a second, so it is imported by `open_vendor` alone.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.errors import ModelError
from assay.llm.names import ModelName
from assay.model.exchange import Method, Prompt, Reply
from assay.ports import OnText

if TYPE_CHECKING:
    from assay.settings import Settings


@dataclass(frozen=True, slots=True)
class Request:
    model: str  # without its vendor
    prompt: Prompt
    method: Method
    temperature: float | None
    max_tokens: int
    seconds: float  # for everything, from the first byte out to the last one in


class Vendor(Protocol):
    """`ask` raises ModelError and nothing else; `on_text` hears the answer as it grows."""

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply: ...

    async def close(self) -> None: ...


class Unsupported(ModelError):
    """The server refuses a parameter: another way of asking may do. Never billed."""

    def __init__(self, message: str, *, parameter: str, **context: object) -> None:
        super().__init__(
            message, help="Choose another model, or update the server.", retryable=False, billed=False, **context
        )
        self.parameter = parameter


def open_vendor(name: ModelName, settings: "Settings") -> Vendor:
    """Imports an SDK, and for a file loads the model: call it in a thread. Connects when first asked."""
    match name.vendor:
        case "anthropic":
            from assay.llm.vendors.anthropic import Anthropic

            return Anthropic(name, settings)
        case "google":
            with warnings.catch_warnings():  # its SDK has "\/" in a string, which shows where bytecode is not kept
                warnings.simplefilter("ignore")
                from assay.llm.vendors.google import Google

            return Google(name, settings)
        case "local":
            from assay.llm.local import LocalModel

            return LocalModel(name, settings)
        case _:
            from assay.llm.vendors.openai import OpenAI

            return OpenAI(name, settings)
