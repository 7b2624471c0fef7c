"""Traces, told to a collector in OpenTelemetry's protocol over HTTP.

Where the collector is, and what it wants to hear from whom, is said by the variables OTEL_..., which the SDK reads. It
is told by a thread of its own: a collector that is gone costs a line of the log, and no run ever waits for it.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from assay.errors import ConfigurationError, install
from assay.model.event import Event
from assay.settings import Settings, Telemetry
from assay.telemetry import names
from assay.telemetry.spans import Attributes, Span, Spans, Value
from assay.text.redaction import redaction

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanContext, SpanKind

_log = logging.getLogger("assay")
CLOSING = 2.0  # seconds the last spans are given
ASKING = 2.0  # seconds a collector has to say that it is there


class Received(NamedTuple):
    """A request that is being answered."""

    trace: int
    id: int
    parent: int
    is_told: bool
    began: datetime

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace:032x}-{self.id:016x}-{self.is_told:02x}"


@asynccontextmanager
async def open_traces(settings: Settings) -> AsyncIterator["Traces | None"]:
    """None where nobody is told. What is left at the end is told in time, or not at all."""
    if settings.telemetry.traces == "off":
        yield None
        return
    traces = Traces(settings)
    try:
        yield traces
    finally:
        await asyncio.to_thread(traces.close)


class Traces:
    """One process's."""

    def __init__(self, settings: Settings) -> None:
        exporter = _exporter()
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = _telling(exporter)
        try:
            self._processor = BatchSpanProcessor(self._exporter)
        except ValueError as error:
            raise ConfigurationError(
                f"an OTEL_BSP_... variable is not usable: {error}", help="Correct it or unset it."
            ) from error
        self._resource = _resource(settings.telemetry)
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._scope = InstrumentationScope("assay", version("assay"))
        self._redaction = redaction(settings)
        self._spans = Spans(self._redaction, content=settings.telemetry.content)
        _quieten()  # what is wrong with the variables was told by now

    def event(self, event: Event) -> None:
        """An event of a run of this process; called as that run."""
        try:
            for span in self._spans.of(event):
                if self._is_wanted(span.trace, span.name):
                    self._tell(span)
        except Exception:  # noqa: BLE001  # the last line of defence: a run never fails for what is told of it
            _log.exception("event %d of run %s could not be told in a trace", event.seq, event.run)

    def received(self, headers: Mapping[str, str]) -> Received:
        """A request; its caller may have begun a trace that it is part of."""
        above, context = _named(headers.get("traceparent", ""))
        trace = above.trace_id if above.is_valid else secrets.randbits(128)
        return Received(
            trace, secrets.randbits(64), above.span_id, self._is_wanted(trace, "request", context), datetime.now(UTC)
        )

    def answered(self, request: Received, route: str, method: str, status: int) -> None:
        if request.is_told:
            told: Attributes = {names.METHOD: method, names.ROUTE: route, names.STATUS_CODE: status}
            failed = str(status) if status >= 500 else ""
            span = Span(
                request.trace, request.id, request.parent, f"{method} {route}", request.began, datetime.now(UTC), told,
                error=failed,
            )  # fmt: skip
            self._tell(span, is_request=True)

    def close(self) -> None:
        """A collector that does not answer is not waited for."""
        closing = Thread(target=self._processor.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSING)
        if closing.is_alive():
            self._exporter.shutdown()

    def _is_wanted(self, trace: int, name: str, above: "Context | None" = None) -> bool:
        """As OTEL_TRACES_SAMPLER says. It goes by the trace's id, so that all processes decide alike."""
        from opentelemetry.sdk.trace.sampling import Decision

        return self._sampler.should_sample(above, trace, name).decision is Decision.RECORD_AND_SAMPLE

    def _tell(self, span: Span, *, is_request: bool = False) -> None:
        from opentelemetry.trace import SpanKind

        kind = SpanKind.SERVER if is_request else SpanKind.CLIENT if span.outside else SpanKind.INTERNAL
        self._processor.on_end(self._readable(span, kind))

    def _readable(self, span: Span, kind: "SpanKind") -> "ReadableSpan":
        from opentelemetry.sdk.trace import Event as SpanEvent
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, Status, StatusCode

        links = [Link(_named(span.link)[0])] if span.link else []
        told = {**span.attributes, names.ERROR: span.error} if span.error else span.attributes
        return ReadableSpan(
            span.name,
            context=_context(span.trace, span.id),
            parent=_context(span.trace, span.parent) if span.parent else None,
            resource=self._resource,
            attributes=self._clean(told),
            events=[
                SpanEvent(moment.name, self._clean(moment.attributes), _nanoseconds(moment.time))
                for moment in span.moments
            ],
            links=[link for link in links if link.context.is_valid],
            kind=kind,
            status=Status(StatusCode.ERROR) if span.error else Status(),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
            instrumentation_scope=self._scope,
        )

    def _clean(self, attributes: Attributes) -> dict[str, Value]:
        return self._redaction.plain(attributes)


def is_heard() -> bool:
    """Whether the collector takes what it is told: asked as it is told, with nothing to tell."""
    exporter = _exporter(ASKING)
    _quieten()
    from opentelemetry.sdk.trace.export import SpanExportResult

    try:
        return exporter.export([]) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()


def _exporter(seconds: float | None = None) -> "SpanExporter":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError("telemetry.traces needs the extra `telemetry`", help=install("telemetry")) from error
    return OTLPSpanExporter(timeout=seconds)


def _quieten() -> None:
    """Each try at a collector that is gone would be two lines."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def _telling(exporter: "SpanExporter") -> "SpanExporter":
    """It tells when the collector goes, and when it is there again."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Telling(SpanExporter):
        is_gone = False

        def export(self, spans: "Sequence[ReadableSpan]") -> "SpanExportResult":
            result = exporter.export(spans)
            is_gone = result is not SpanExportResult.SUCCESS
            if is_gone and not self.is_gone:
                _log.warning("the collector of traces does not take them; runs go on, and are not told there")
            elif self.is_gone and not is_gone:
                _log.warning("the collector of traces is there again")
            self.is_gone = is_gone
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

    return Telling()


def _resource(telemetry: Telemetry) -> "Resource":
    """Who tells. What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say counts."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    ours = {
        names.SERVICE: telemetry.service,
        names.SERVICE_VERSION: version("assay"),
        names.SERVICE_INSTANCE: f"{socket.gethostname()}:{os.getpid()}",
    }
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def _named(traceparent: str) -> tuple["SpanContext", "Context | None"]:
    """The span that a traceparent names; an invalid one where it names none."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    return get_current_span(context).get_span_context(), context


def _context(trace: int, span: int) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000
