"""Logs, metrics, traces and health.

Runs are observed through their events alone (docs/decisions/0029-telemetry-from-events.md), so that a server, a worker
and the command line report the same.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from hashlib import blake2b
from importlib.util import find_spec
from typing import TYPE_CHECKING

from openassay.errors import ConfigurationError, install_help
from openassay.settings import Settings

if TYPE_CHECKING:
    from openassay.telemetry.traces import Traces

# Of the request that is being answered; the tasks it starts inherit them.
request_id: ContextVar[str] = ContextVar("request_id", default="")
traceparent: ContextVar[str] = ContextVar("traceparent", default="")  # of its span, where traces are exported


def trace_id(run: str) -> int:
    return int.from_bytes(blake2b(f"openassay run {run}".encode(), digest_size=16).digest()) or 1


def require_opentelemetry() -> None:
    if find_spec("opentelemetry.sdk") is None:
        raise ConfigurationError("telemetry.traces needs the extra `telemetry`", help=install_help("telemetry"))


@asynccontextmanager
async def open_traces(settings: Settings) -> AsyncIterator["Traces | None"]:
    """Open the traces of the settings, or None; at the end, the last spans are exported in time or not at all."""
    if settings.telemetry.traces == "off":
        yield None
        return
    require_opentelemetry()
    from openassay.telemetry.traces import Traces

    traces = Traces(settings)
    try:
        yield traces
    finally:
        await asyncio.to_thread(traces.close)
