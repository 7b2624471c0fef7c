"""Traces calls to models: in LangSmith, if the environment asks for it, and for the listeners of events."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from openassay.llm.names import ModelName
from openassay.llm.vendors import ModelRequest, Vendor
from openassay.models.spend import ModelReply
from openassay.protocols import OnText
from openassay.text.redaction import Redactor

if TYPE_CHECKING:
    from langsmith import Client


class ModelExchange(NamedTuple):
    request: ModelRequest
    reply: ModelReply


# The last answer in this task.
last_exchange: ContextVar[ModelExchange | None] = ContextVar("exchange", default=None)


async def ask_vendor(vendor: Vendor, model: ModelName, request: ModelRequest, on_text: OnText | None) -> ModelReply:
    """Ask a vendor. A listener to the event that it was settled finds the answer in `last_exchange`."""
    last_exchange.set(None)
    ask, prompt = vendor.ask, request.prompt
    if is_on():
        from langsmith import traceable

        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        ask = traceable(
            "llm",
            name=prompt.step,
            metadata={"ls_provider": model.vendor, "ls_model_name": model.name},
            process_inputs=lambda _: {"messages": messages},
            process_outputs=_describe_reply,
        )(vendor.ask)
    reply = await ask(request, on_text)
    last_exchange.set(ModelExchange(request, reply))
    return reply


def _describe_reply(reply: ModelReply) -> dict[str, Any]:
    shown: dict[str, Any] = {"messages": [{"role": "assistant", "content": reply.text}]}
    if reply.usage is not None:
        shown["usage_metadata"] = {
            "input_tokens": reply.usage.prompt_tokens,
            "output_tokens": reply.usage.completion_tokens,
            "total_tokens": reply.usage.total,
        }
    return shown


def is_on() -> bool:
    """Tell whether the environment asks for traces, as LangSmith itself reads it."""
    from langsmith.utils import tracing_is_enabled

    # An endpoint that is down would fill the terminal with its errors, and its key with half of its letters.
    logging.getLogger("langsmith").setLevel(logging.CRITICAL)
    return bool(tracing_is_enabled())


@contextmanager
def trace_scope(*, allowed: bool, redaction: Redactor) -> Iterator[None]:
    """Trace what happens inside as the environment says, without secrets, or not at all."""
    if not is_on():
        yield
        return
    from langsmith import tracing_context

    with tracing_context(client=_client(redaction)) if allowed else tracing_context(enabled=False):
        yield


@lru_cache(maxsize=8)  # each has a thread of its own
def _client(redaction: Redactor) -> "Client":
    from langsmith import Client

    return Client(anonymizer=redaction.redact_data)
