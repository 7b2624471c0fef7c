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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple

from assay.errors import ConfigurationError
from assay.settings import Fleet
from assay.telemetry.metrics import MEDIA, Metrics
from assay.telemetry.readiness import Readiness

_log = logging.getLogger("assay")
PATIENCE = 5.0  # seconds a caller has to say what it wants
LONGEST = 16_384  # bytes of that
JSON = "application/json"


class Answer(NamedTuple):
    status: HTTPStatus
    body: bytes
    media: str = JSON


@asynccontextmanager
async def exposed(fleet: Fleet, metrics: Metrics, readiness: Readiness) -> AsyncIterator[str | None]:
    """The address, as long as this is open; None where the settings name no port."""
    if fleet.metrics_port is None:
        yield None
        return
    desk = _Desk(metrics, readiness)
    try:
        server = await asyncio.start_server(desk.serve, fleet.metrics_host, fleet.metrics_port, limit=LONGEST)
    except OSError as error:
        raise ConfigurationError(
            f"cannot show figures on {fleet.metrics_host}, port {fleet.metrics_port}: {error.strerror or error}",
            help="Set fleet.metrics_port to one that is free (0: any), or fleet.metrics_host.",
        ) from error
    host = f"[{fleet.metrics_host}]" if ":" in fleet.metrics_host else fleet.metrics_host
    async with server:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"


class _Desk:
    def __init__(self, metrics: Metrics, readiness: Readiness) -> None:
        self._metrics = metrics
        self._readiness = readiness

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection."""
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_written(await self._answer(head.split(b"\r\n", 1)[0])))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever says nothing of use is told nothing
        except Exception:  # noqa: BLE001  # the last line of defence: runs go on, whatever is wrong with their figures
            _log.exception("figures could not be shown")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, line: bytes) -> Answer:
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method != b"GET":
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"{}")
        if path == b"/metrics":
            return Answer(HTTPStatus.OK, await asyncio.to_thread(self._metrics.text), MEDIA)
        if path == b"/healthz":
            return Answer(HTTPStatus.OK, b'{"status": "ok"}')
        if path == b"/readyz":
            return await self._ready()
        return Answer(HTTPStatus.NOT_FOUND, b"{}")

    async def _ready(self) -> Answer:
        problems, degraded = await self._readiness.ready()
        said = "not ready" if problems else "degraded" if degraded else "ok"
        body = json.dumps({"status": said, "problems": problems, "degraded": degraded})
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK, body.encode())


def _written(answer: Answer) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\nContent-Type: {answer.media}\r\n"
        f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + answer.body
