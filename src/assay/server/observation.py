"""What stands around every request to see what becomes of it: counted for /metrics, told in the log and in a trace."""

from time import perf_counter

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.model.thread import is_id
from assay.server.service import Service
from assay.telemetry import logs
from assay.telemetry.ids import traceparent
from assay.telemetry.metrics import METHODS, Metrics
from assay.telemetry.traces import Received, Traces
from assay.telemetry.watching import watched

UNMATCHED = "unmatched"  # an address that no route has
GONE = 499  # the caller went away before there was an answer; no status of HTTP, but known from other servers
STREAM = b"text/event-stream"
PROBES = frozenset(("/healthz", "/readyz", "/metrics"))  # asked again and again, and never of interest in a trace


def install(app: FastAPI, service: Service) -> None:
    metrics = app.state.metrics = watched(service.engine, service.premises.world.rows.database)
    app.add_middleware(Observation, metrics=metrics, traces=service.premises.traces)


class Observation:
    """Pure ASGI: it wraps one function, and adds no task and no copy of anything."""

    def __init__(self, app: ASGIApp, metrics: Metrics, traces: Traces | None) -> None:
        self._app = app
        self._metrics = metrics
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, status, answered = perf_counter(), GONE, None
        received = self._received(scope)

        async def noted(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status = message["status"]
                if is_stream(message):
                    answered = perf_counter() - began
                    self._metrics.streams.inc()
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:
            status = 500
            raise
        finally:
            if answered is not None:
                self._metrics.streams.dec()
            self._note(scope, status, perf_counter() - began, answered, received)

    def _received(self, scope: Scope) -> Received | None:
        """Set for the rest of the request, which has a context of its own."""
        if self._traces is None or scope["path"] in PROBES:
            return None
        received = self._traces.received(Headers(scope=scope))
        traceparent.set(received.traceparent)
        return received

    def _note(
        self, scope: Scope, status: int, seconds: float, answered: float | None, received: Received | None
    ) -> None:
        route = getattr(scope.get("route"), "path", None) or scope.get("root_path") or UNMATCHED
        self._metrics.request(route, scope["method"], status, seconds if answered is None else answered)
        if self._traces is not None and received is not None:
            method = scope["method"] if scope["method"] in METHODS else "_OTHER"  # as OpenTelemetry has it
            self._traces.answered(received, route, method, status)
        if logs.wants(status):
            thread = scope.get("path_params", {}).get("threadId", "")
            logs.request(
                status, method=scope["method"], route=route, ms=round(seconds * 1000, 1),
                user=scope.get("state", {}).get("user", ""), thread=thread if is_id(thread) else "",
            )  # fmt: skip


def is_stream(message: Message) -> bool:
    for name, value in message.get("headers", ()):
        if name == b"content-type":
            return bool(value.startswith(STREAM))
    return False
