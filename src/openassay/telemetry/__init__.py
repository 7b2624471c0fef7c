"""What is told of OpenAssay while it works: its log, its figures, its traces, and whether all that it needs is there.

Runs are told from their events alone (docs/decisions/0029-telemetry-from-events.md), so that a server, a worker and the
command line tell the same.
"""

from contextvars import ContextVar

# Which request is being answered: what it sets going carries its ids on.

request_id: ContextVar[str] = ContextVar("request_id", default="")
traceparent: ContextVar[str] = ContextVar("traceparent", default="")  # of its span, where traces are told
