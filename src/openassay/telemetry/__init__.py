"""Logs, metrics, traces and health.

Runs are observed through their events alone (docs/decisions/0029-telemetry-from-events.md), so that a server, a worker
and the command line report the same.
"""

from contextvars import ContextVar

# Of the request that is being answered; the tasks it starts inherit them.
request_id: ContextVar[str] = ContextVar("request_id", default="")
traceparent: ContextVar[str] = ContextVar("traceparent", default="")  # of its span, where traces are exported
