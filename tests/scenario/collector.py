"""Somebody who takes traces, as every collector does: OpenTelemetry's protocol over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status


class Told(NamedTuple):
    """A span, as it arrived."""

    trace: str
    id: str
    parent: str
    name: str
    kind: str
    start: float
    end: float
    failed: bool
    attributes: dict[str, Any]
    moments: dict[str, dict[str, Any]]
    links: list[tuple[str, str]]
    process: str  # that told it


class Collector:
    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.resources: list[dict[str, Any]] = []

    @property
    def text(self) -> str:
        return b"\n".join(self.bodies).decode("utf-8", "replace")

    @property
    def spans(self) -> list[Told]:
        found = []
        for body in self.bodies:
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                who = _plain(group.resource.attributes)
                self.resources.append(who)
                found += [
                    _told(span, who["service.instance.id"]) for scope in group.scope_spans for span in scope.spans
                ]
        return found

    def named(self, start: str) -> list[Told]:
        return [span for span in self.spans if span.name.startswith(start)]


def _told(span: SpanMessage, process: str) -> Told:
    return Told(
        trace=span.trace_id.hex(), id=span.span_id.hex(), parent=span.parent_span_id.hex(), name=span.name,
        kind=SpanMessage.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        start=span.start_time_unix_nano / 1e9, end=span.end_time_unix_nano / 1e9,
        failed=span.status.code == Status.STATUS_CODE_ERROR, attributes=_plain(span.attributes),
        moments={event.name: _plain(event.attributes) for event in span.events},
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links], process=process,
    )  # fmt: skip


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                kept.bodies.append(body)
                kept.headers.append(dict(self.headers))
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
