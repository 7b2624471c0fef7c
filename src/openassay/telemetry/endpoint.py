"""Figures and health of a process that serves nothing else, at an address of their own.

    GET /metrics    for Prometheus
    GET /healthz    the process answers
    GET /readyz     all is there that it needs: 200, else 503; what it can do without is told

Nobody says who they are here: it listens on this machine alone, unless `fleet.metrics_host` says otherwise.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Protocol

from openassay.errors import ConfigurationError
from openassay.models.event import Event
from openassay.protocols import Source
from openassay.settings import FleetSettings
from openassay.storage.database import Database
from openassay.telemetry import logs, metrics
from openassay.telemetry.health import Readiness, list_checks
from openassay.telemetry.metrics import MEDIA, Metrics

_log = logging.getLogger("openassay")
PATIENCE = 5.0  # seconds a caller has to say what it wants
LONGEST = 16_384  # bytes of that
JSON = "application/json"


class EndpointResponse(NamedTuple):
    status: HTTPStatus
    body: bytes
    media: str = JSON


@asynccontextmanager
async def open_endpoint(fleet: FleetSettings, metrics: Metrics, readiness: Readiness) -> AsyncIterator[str | None]:
    """The address, as long as this is open; None where the settings name no port."""
    if fleet.metrics_port is None:
        yield None
        return
    desk = _EndpointHandler(metrics, readiness)
    try:
        server = await asyncio.start_server(
            desk.handle_connection, fleet.metrics_host, fleet.metrics_port, limit=LONGEST
        )
    except OSError as error:
        raise ConfigurationError(
            f"cannot show figures on {fleet.metrics_host}, port {fleet.metrics_port}: {error.strerror or error}",
            help="Set fleet.metrics_port to one that is free (0: any), or fleet.metrics_host.",
        ) from error
    host = f"[{fleet.metrics_host}]" if ":" in fleet.metrics_host else fleet.metrics_host
    async with server:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"


class _EndpointHandler:
    def __init__(self, metrics: Metrics, readiness: Readiness) -> None:
        self._metrics = metrics
        self._readiness = readiness

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection."""
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_encode_response(await self._respond(head.split(b"\r\n", 1)[0])))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever says nothing of use is told nothing
        except Exception:  # noqa: BLE001  # the last line of defence: runs go on, whatever is wrong with their figures
            _log.exception("figures could not be shown")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, line: bytes) -> EndpointResponse:
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method != b"GET":
            return EndpointResponse(HTTPStatus.METHOD_NOT_ALLOWED, b"{}")
        if path == b"/metrics":
            return EndpointResponse(HTTPStatus.OK, await asyncio.to_thread(self._metrics.text), MEDIA)
        if path == b"/healthz":
            return EndpointResponse(HTTPStatus.OK, b'{"status": "ok"}')
        if path == b"/readyz":
            return await self._report_readiness()
        return EndpointResponse(HTTPStatus.NOT_FOUND, b"{}")

    async def _report_readiness(self) -> EndpointResponse:
        problems, degraded = await self._readiness.summarise()
        said = "not ready" if problems else "degraded" if degraded else "ok"
        body = json.dumps({"status": said, "problems": problems, "degraded": degraded})
        return EndpointResponse(HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK, body.encode())


def _encode_response(answer: EndpointResponse) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\nContent-Type: {answer.media}\r\n"
        f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + answer.body


# An engine whose runs are counted and logged, and whose figures are shown.


class ObservableEngine(metrics.EngineStats, Protocol):
    @property
    def watchers(self) -> list[Callable[[Event], None]]: ...


def attach_metrics(engine: ObservableEngine, database: Database) -> Metrics:
    """The figures of an engine, from here on."""
    figures = Metrics(engine, database)
    engine.watchers.extend((figures.record_event, logs.log_event))
    return figures


@asynccontextmanager
async def open_engine_endpoint(
    engine: ObservableEngine, folder: Path, database: Database, sources: Sequence[Source]
) -> AsyncIterator[str | None]:
    """For a process that serves nothing else. The address at which its figures and its health are shown, as long as
    this is open; None where `fleet.metrics_port` names none."""
    readiness = Readiness(list_checks(engine.settings, folder, database, sources))
    async with open_endpoint(engine.settings.fleet, attach_metrics(engine, database), readiness) as address:
        yield address
