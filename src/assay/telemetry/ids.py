"""Which request is being answered: what it sets going carries its ids on."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
traceparent: ContextVar[str] = ContextVar("traceparent", default="")  # of its span, where traces are told
