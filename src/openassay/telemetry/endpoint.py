"""Metrics and health of a process that serves nothing else, at an address of their own.

    GET /metrics    for Prometheus
    GET /healthz    the process answers
    GET /readyz     all that it needs is there: 200, else 503; what it can do without is named

There is no authentication: it listens on this machine alone, unless `fleet.metrics_host` says otherwise.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path

from openassay.errors import ConfigurationError
from openassay.protocols import Source
from openassay.storage.database import Database
from openassay.telemetry import logs
from openassay.telemetry.health import Readiness, list_checks
from openassay.telemetry.metrics import MEDIA, Metrics, ObservableEngine

_log = logging.getLogger("openassay")
REQUEST_SECONDS = 5.0  # that a caller has to send its request
MAX_REQUEST_BYTES = 16_384


def attach_metrics(engine: ObservableEngine, database: Database) -> Metrics:
    """Count and log the runs of an engine from here on."""
    figures = Metrics(engine, database)
    engine.watchers.extend((figures.record_event, logs.log_event))
    return figures


@asynccontextmanager
async def open_endpoint(
    engine: ObservableEngine, folder: Path, database: Database, sources: Sequence[Source]
) -> AsyncIterator[str | None]:
    """Serve the metrics and health of an engine as long as this is open; yields the address, or None where
    `fleet.metrics_port` names none."""
    fleet, metrics = engine.settings.fleet, attach_metrics(engine, database)
    if fleet.metrics_port is None:
        yield None
        return
    handle = partial(_handle_connection, metrics, Readiness(list_checks(engine.settings, folder, database, sources)))
    try:
        server = await asyncio.start_server(handle, fleet.metrics_host, fleet.metrics_port, limit=MAX_REQUEST_BYTES)
    except OSError as error:
        raise ConfigurationError(
            f"cannot serve metrics on {fleet.metrics_host}, port {fleet.metrics_port}: {error.strerror or error}",
            help="Set fleet.metrics_port to one that is free (0: any), or fleet.metrics_host.",
        ) from error
    host = f"[{fleet.metrics_host}]" if ":" in fleet.metrics_host else fleet.metrics_host
    async with server:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"


async def _handle_connection(
    metrics: Metrics, readiness: Readiness, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the one request of a connection."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        status, body, media = HTTPStatus.OK, b"{}", "application/json"
        if method != b"GET":
            status = HTTPStatus.METHOD_NOT_ALLOWED
        elif path == b"/metrics":
            body, media = await asyncio.to_thread(metrics.text), MEDIA
        elif path == b"/healthz":
            body = b'{"status": "ok"}'
        elif path == b"/readyz":
            problems, degraded = await readiness.summarise()
            state = "not ready" if problems else "degraded" if degraded else "ok"
            status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
            body = json.dumps({"status": state, "problems": problems, "degraded": degraded}).encode()
        else:
            status = HTTPStatus.NOT_FOUND
        response = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {media}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(response.encode() + body)
        await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # no answer to what is no request
    except Exception:  # noqa: BLE001  # the last line of defence: runs continue, whatever is wrong with their metrics
        _log.exception("metrics could not be served")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
