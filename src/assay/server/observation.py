"""What stands around every request to see what becomes of it: counted for /metrics, and told in the log."""

from time import perf_counter

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.model.thread import is_id
from assay.server import logs
from assay.server.metrics import Metrics
from assay.server.service import Service

UNMATCHED = "unmatched"  # an address that no route has
GONE = 499  # the caller went away before there was an answer; no status of HTTP, but known from other servers
STREAM = b"text/event-stream"


def install(app: FastAPI, service: Service) -> None:
    metrics = app.state.metrics = Metrics(lambda: len(service.engine.running()))
    service.engine.watchers.extend((metrics.event, logs.event))
    app.add_middleware(Observation, metrics=metrics)


class Observation:
    """Pure ASGI: it wraps one function, and adds no task and no copy of anything."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, status, answered = perf_counter(), GONE, None

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
            self._note(scope, status, perf_counter() - began, answered)

    def _note(self, scope: Scope, status: int, seconds: float, answered: float | None) -> None:
        route = getattr(scope.get("route"), "path", None) or scope.get("root_path") or UNMATCHED
        self._metrics.request(route, scope["method"], status, seconds if answered is None else answered)
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
