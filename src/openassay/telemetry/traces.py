"""Traces, exported to a collector in OpenTelemetry's protocol over HTTP. A run's events become the spans of one trace:

openassay.run from its question to its end, by whichever process ended it openassay.part from being claimed to standing
still, in one process stage search a node of the graph, by name retrieval searxng one query; `page news` is one page, by
the sort of its site chat gpt-4o one call to a model

Every id follows from the run's id and the number of an event. So processes that work on a run one after the other
export one trace without knowing of each other, and what a process that died did not export leaves a gap.

The variables OTEL_..., which the SDK reads, say where the collector is and what it wants. A thread of its own exports:
a collector that is gone costs a line of the log, and no run ever waits for it.
"""

import asyncio
import json
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from openassay.context import current_run
from openassay.engine.timings import ExternalCall, is_node_exit, parse_external_call, read_number
from openassay.errors import ConfigurationError, install_help
from openassay.llm.tracing import last_exchange
from openassay.models.event import ENDED, Event, RunStatus
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.telemetry import names
from openassay.text.redaction import Redactor, build_redactor

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanContext


_log = logging.getLogger("openassay")
MAX_PARTS = 10_000  # open at once; one whose end could not be written must not stay for good
MAX_TEXT_LENGTH = 20_000
CLOSE_SECONDS = 2.0  # that the last spans are given
PROBE_SECONDS = 2.0  # that a collector has to answer a probe

Value = str | bool | int | float | tuple[str, ...]
Attributes = dict[str, Value]


class SpanMoment(NamedTuple):
    """Something that happened within a span."""

    name: str
    time: datetime
    attributes: Attributes


class TraceSpan(NamedTuple):
    trace: int
    id: int
    parent: int  # 0: none
    name: str
    start: datetime
    end: datetime
    attributes: Attributes
    outside: bool = False  # an external service was asked
    error: str = ""  # its category, if it failed
    moments: tuple[SpanMoment, ...] = ()
    link: str = ""  # the traceparent of the request that started it


def trace_id(run: str) -> int:
    return _hash_to_int(f"openassay run {run}", 16)


def span_id(run: str, event: int) -> int:
    """Return the id of the span that began with an event; 0 for the run itself."""
    return _hash_to_int(f"openassay run {run} {event}", 8)


def _hash_to_int(name: str, size: int) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=size).digest()) or 1


@dataclass(slots=True)
class RunAttempt:
    """The part of a run that one process does."""

    began: Event
    run: Run | None
    entered: dict[int, Event] = field(default_factory=dict)
    moments: dict[int, list[SpanMoment]] = field(default_factory=dict)  # by what they happened in
    errors: dict[int, str] = field(default_factory=dict)
    usd: float | None = None


class SpanBuilder:
    """Builds spans from events. `content`: whether they have questions, queries, addresses, prompts and answers; those
    of a run on private documents never have."""

    def __init__(self, redaction: Redactor, *, content: bool) -> None:
        self._redaction = redaction
        self._content = content
        self._parts: dict[str, RunAttempt] = {}

    def build_spans(self, event: Event) -> list[TraceSpan]:
        """Return the spans that end with an event. Called in the context of its run."""
        if event.kind == "run":
            return self._handle_status(event, RunStatus(str(event.data["status"])))
        part = self._parts.get(event.run)
        if part is None:  # nobody works on the run
            return []
        if event.kind == "enter":
            part.entered[event.seq] = event
        elif is_node_exit(event) or (event.kind == "error" and "type" in event.data):
            part.errors |= _find_failure(event)
            entered = event.parent
            return [self._build_stage_span(part, entered, event.time)] if entered in part.entered else []
        elif call := self._build_call_span(part, event):
            return [call]
        else:
            attributes: Attributes | None = None
            if event.kind == "error":
                part.errors |= _find_failure(event)
                attributes = {names.ERROR: str(event.data.get("category") or "internal")}
            elif event.kind == "think":
                attributes = {names.STEP: str(event.data.get("step", "")), names.BY: str(event.data.get("by", ""))}
            elif event.kind == "interrupt":
                attributes = {names.QUESTION_KIND: str(event.data.get("kind", ""))}
            elif event.kind == "notice" and self._can_share_content(part.run):
                attributes = {}
            if attributes is not None:
                if self._can_share_content(part.run):
                    attributes |= self._describe_reason(event)
                within = event.parent if event.parent in part.entered else part.began.seq
                part.moments.setdefault(within, []).append(SpanMoment(event.kind, event.time, attributes))
        return []

    def _handle_status(self, event: Event, status: RunStatus) -> list[TraceSpan]:
        part = self._parts.pop(event.run, None)
        if status is RunStatus.RUNNING:
            self._parts[event.run] = RunAttempt(event, current_run.get())
            while len(self._parts) > MAX_PARTS:
                del self._parts[next(iter(self._parts))]
            return []
        spans: list[TraceSpan] = []
        if part is not None:
            spans += [self._build_stage_span(part, seq, event.time, unfinished=True) for seq in list(part.entered)]
            seq, falls = part.began.seq, int(read_number(part.began, "falls"))
            span = TraceSpan(
                trace_id(event.run),
                span_id(event.run, seq),
                span_id(event.run, 0),
                "openassay.part",
                part.began.time,
                event.time,
                {names.RUN: event.run, names.RUN_STATUS: status.value, names.FALLS: falls},
                error=part.errors.get(seq, "") if status is RunStatus.FAILED else "",
                moments=tuple(part.moments.get(seq, ())),
            )
            spans.append(span)
        if status not in ENDED:
            return spans
        # The span of the run; of one that was stopped and resumed, it is exported once more.
        run = part.run if part else None
        attributes: Attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: "openassay", names.RUN: event.run}
        attributes[names.RUN_STATUS] = status.value
        if run is not None:
            attributes |= {names.CONVERSATION: run.thread, names.REQUEST: run.options.request}
            if self._can_share_content(run):
                attributes[names.INPUT] = self._format_message("user", run.question)
        if part is not None and part.usd is not None:
            attributes[names.USD] = part.usd
        failed = part.errors.get(part.began.seq, "internal") if part else "internal"
        root = TraceSpan(
            trace_id(event.run),
            span_id(event.run, 0),
            0,
            "openassay.run",
            run.started if run else event.time,
            event.time,
            {name: value for name, value in attributes.items() if value != ""},
            error=failed if status is RunStatus.FAILED else "",
            link=run.options.trace if run else "",
        )
        return [*spans, root]

    def _build_stage_span(self, part: RunAttempt, seq: int, end: datetime, *, unfinished: bool = False) -> TraceSpan:
        entered = part.entered.pop(seq)
        attributes: Attributes = {names.STAGE: entered.stage, names.RUN: entered.run}
        if unfinished:
            attributes[names.UNFINISHED] = True
        return TraceSpan(
            trace_id(entered.run),
            span_id(entered.run, seq),
            _find_parent(part, entered),
            f"stage {entered.stage}",
            entered.time,
            end,
            attributes,
            error=part.errors.pop(seq, ""),
            moments=tuple(part.moments.pop(seq, ())),
        )

    def _build_call_span(self, part: RunAttempt, event: Event) -> TraceSpan | None:
        """Build the span of a search, a page or a call to a model."""
        call = parse_external_call(event)
        if call is None and event.kind == "search" and event.stage == "search":  # on this machine
            call = ExternalCall("search", str(event.data.get("source", "")), cached=bool(event.data.get("cached")))
        if call is None:
            return None
        part.usd = read_number(event, "total_usd") if "total_usd" in event.data else part.usd
        if call.kind == "search" and event.kind == "spend":
            return None  # the price of a search that has a span of its own
        if call.kind == "model":
            vendor, _, model = call.party.partition(":")
            name, attributes = f"{names.CHAT} {model}", self._describe_chat(part, event, call)
            attributes |= {names.PROVIDER: names.PROVIDERS.get(vendor, vendor), names.REQUEST_MODEL: model}
        elif call.kind == "search":
            name = f"{names.RETRIEVAL} {call.party}"
            attributes = {names.OPERATION: names.RETRIEVAL, names.DATA_SOURCE: call.party}
            if event.kind == "search":
                attributes |= {names.HITS: int(read_number(event, "hits")), names.CACHED: bool(call.cached)}
            if self._can_share_content(part.run):
                attributes |= {names.QUERY: self._clean_text(event.data.get("query")), **self._describe_reason(event)}
        else:
            name, attributes = f"page {call.party}", {names.PUBLISHER: call.party, names.CACHED: bool(call.cached)}
            if event.kind == "read":
                attributes[names.WORDS] = int(read_number(event, "words"))
            if self._can_share_content(part.run):
                address = self._clean_text(event.data.get("url") or event.data.get("path"))
                facts: Attributes = {names.ADDRESS: address, names.TITLE: self._clean_text(event.data.get("title"))}
                attributes |= {**facts, **self._describe_reason(event)}
            attributes = {name: value for name, value in attributes.items() if value != ""}
        return TraceSpan(
            trace_id(event.run),
            span_id(event.run, event.seq),
            _find_parent(part, event),
            name,
            event.time - timedelta(seconds=call.seconds or 0.0),
            event.time,
            {**attributes, names.RUN: event.run},
            outside=call.cached is not True and bool(event.data.get("remote", True)),
            error=str(event.data.get("category") or "failed") if call.failures else "",
        )

    def _describe_chat(self, part: RunAttempt, event: Event, call: ExternalCall) -> Attributes:
        attributes: Attributes = {
            names.OPERATION: names.CHAT,
            names.STEP: str(event.data.get("step", "")),
            names.TASK: str(event.data.get("task", "")),
        }
        if event.kind == "spend":
            attributes |= {
                names.INPUT_TOKENS: int(read_number(event, "prompt_tokens")),
                names.USD: call.usd,
                names.OUTPUT_TOKENS: int(read_number(event, "completion_tokens")),
                names.CONFIRMED: bool(event.data.get("confirmed")),
            }
            if exchange := last_exchange.get():
                request, reply = exchange
                if request.temperature is not None:
                    attributes[names.REQUEST_TEMPERATURE] = request.temperature
                attributes |= {names.REQUEST_MAX_TOKENS: request.max_tokens, names.FINISH_REASONS: (reply.finish,)}
                if self._can_share_content(part.run):
                    system = [{"type": "text", "content": self._clean_text(request.prompt.system)}]
                    attributes |= {
                        names.INSTRUCTIONS: json.dumps(system),
                        names.INPUT: self._format_message("user", request.prompt.text),
                        names.OUTPUT: self._format_message("assistant", reply.text, finish_reason=reply.finish),
                    }
        return {name: value for name, value in attributes.items() if value != ""}

    def _can_share_content(self, run: Run | None) -> bool:
        return self._content and run is not None and not (run.options.docs or run.options.private)

    def _format_message(self, role: str, text: str, **more: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": self._clean_text(text)}], **more}])

    def _describe_reason(self, event: Event) -> Attributes:
        texts = (event.data.get(name) for name in ("message", "text", "reason", "question"))
        text = self._clean_text(next(filter(None, texts), ""))
        return {names.EXCEPTION_MESSAGE if event.kind == "error" else names.TEXT: text} if text else {}

    def _clean_text(self, text: object) -> str:
        """Redact a text before it is written as JSON: what follows an escaped line break is no word of its own."""
        clean = self._redaction.redact_text(str(text or ""))
        return clean if len(clean) <= MAX_TEXT_LENGTH else f"{clean[:MAX_TEXT_LENGTH]}…"


def _find_parent(part: RunAttempt, event: Event) -> int:
    """Return the span it happened in, which is that of the part where no other is known."""
    return span_id(event.run, event.parent if event.parent in part.entered else part.began.seq)


def _find_failure(event: Event) -> dict[int, str]:
    """Return the category of a failed stage, or of the failed run, by the event it began with."""
    if event.kind != "error" or event.parent is None or (event.stage and "type" not in event.data):
        return {}
    return {event.parent: str(event.data.get("category") or "internal")}


class RequestTrace(NamedTuple):
    """A request that is being answered."""

    trace: int
    id: int
    parent: int
    is_sampled: bool
    began: datetime

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace:032x}-{self.id:016x}-{self.is_sampled:02x}"


@asynccontextmanager
async def open_traces(settings: Settings) -> AsyncIterator["Traces | None"]:
    """Open the traces of the settings, or None; at the end, the last spans are exported in time or not at all."""
    if settings.telemetry.traces == "off":
        yield None
        return
    traces = Traces(settings)
    try:
        yield traces
    finally:
        await asyncio.to_thread(traces.close)


class Traces:
    """The traces of one process."""

    def __init__(self, settings: Settings) -> None:
        exporter = _create_exporter()
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = _report_outages(exporter)
        try:
            self._processor = BatchSpanProcessor(self._exporter)
        except ValueError as error:
            raise ConfigurationError(
                f"an OTEL_BSP_... variable is not usable: {error}", help="Correct it or unset it."
            ) from error
        ours = {
            names.SERVICE: settings.telemetry.service,
            names.SERVICE_VERSION: version("openassay"),
            names.SERVICE_INSTANCE: f"{socket.gethostname()}:{os.getpid()}",
        }
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
        self._resource = Resource.create(ours).merge(OTELResourceDetector().detect())
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._scope = InstrumentationScope("openassay", version("openassay"))
        self._redaction = build_redactor(settings)
        self._spans = SpanBuilder(self._redaction, content=settings.telemetry.content)
        _silence_sdk()  # by now it has reported what is wrong with the variables

    def record_event(self, event: Event) -> None:
        """Export what ends with an event of this process; called in the context of its run."""
        try:
            for span in self._spans.build_spans(event):
                if self._should_sample(span.trace, span.name):
                    self._export_span(span)
        except Exception:  # noqa: BLE001  # the last line of defence: a run never fails because of its trace
            _log.exception("event %d of run %s could not be traced", event.seq, event.run)

    def begin_request(self, headers: Mapping[str, str]) -> RequestTrace:
        """Begin the trace of a request, or join the trace of its caller."""
        above, context = _parse_traceparent(headers.get("traceparent", ""))
        trace = above.trace_id if above.is_valid else secrets.randbits(128)
        return RequestTrace(
            trace,
            secrets.randbits(64),
            above.span_id,
            self._should_sample(trace, "request", context),
            datetime.now(UTC),
        )

    def end_request(self, request: RequestTrace, route: str, method: str, status: int) -> None:
        if request.is_sampled:
            attributes: Attributes = {names.METHOD: method, names.ROUTE: route, names.STATUS_CODE: status}
            failed = str(status) if status >= 500 else ""
            name, now = f"{method} {route}", datetime.now(UTC)
            span = TraceSpan(
                request.trace, request.id, request.parent, name, request.began, now, attributes, error=failed
            )
            self._export_span(span, is_request=True)

    def close(self) -> None:
        """Export the last spans, without waiting for a collector that does not answer."""
        closing = Thread(target=self._processor.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if closing.is_alive():
            self._exporter.shutdown()

    def _should_sample(self, trace: int, name: str, above: "Context | None" = None) -> bool:
        """Decide as OTEL_TRACES_SAMPLER says, by the trace's id, so that all processes decide alike."""
        from opentelemetry.sdk.trace.sampling import Decision

        return self._sampler.should_sample(above, trace, name).decision is Decision.RECORD_AND_SAMPLE

    def _export_span(self, span: TraceSpan, *, is_request: bool = False) -> None:
        from opentelemetry.sdk.trace import Event as SpanEvent
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, SpanKind, Status, StatusCode

        links = [Link(_parse_traceparent(span.link)[0])] if span.link else []
        attributes = {**span.attributes, names.ERROR: span.error} if span.error else span.attributes
        readable = ReadableSpan(
            span.name,
            context=_make_span_context(span.trace, span.id),
            parent=_make_span_context(span.trace, span.parent) if span.parent else None,
            resource=self._resource,
            attributes=self._redaction.redact_data(attributes),
            events=[
                SpanEvent(moment.name, self._redaction.redact_data(moment.attributes), _to_nanoseconds(moment.time))
                for moment in span.moments
            ],
            links=[link for link in links if link.context.is_valid],
            kind=SpanKind.SERVER if is_request else SpanKind.CLIENT if span.outside else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR) if span.error else Status(),
            start_time=_to_nanoseconds(span.start),
            end_time=_to_nanoseconds(span.end),
            instrumentation_scope=self._scope,
        )
        self._processor.on_end(readable)


def can_reach_collector() -> bool:
    """Return whether the collector accepts an export without spans."""
    exporter = _create_exporter(PROBE_SECONDS)
    _silence_sdk()
    from opentelemetry.sdk.trace.export import SpanExportResult

    try:
        return exporter.export([]) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()


def _create_exporter(seconds: float | None = None) -> "SpanExporter":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError(
            "telemetry.traces needs the extra `telemetry`", help=install_help("telemetry")
        ) from error
    return OTLPSpanExporter(timeout=seconds)


def _silence_sdk() -> None:
    """Silence the SDK, which logs two lines for each attempt at a collector that is gone."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def _report_outages(exporter: "SpanExporter") -> "SpanExporter":
    """Wrap an exporter to log when the collector goes away, and when it is back."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class ReportingExporter(SpanExporter):
        is_gone = False

        def export(self, spans: "Sequence[ReadableSpan]") -> "SpanExportResult":
            result = exporter.export(spans)
            is_gone = result is not SpanExportResult.SUCCESS
            if is_gone and not self.is_gone:
                _log.warning("the collector does not accept traces; runs continue without them")
            elif self.is_gone and not is_gone:
                _log.warning("the collector accepts traces again")
            self.is_gone = is_gone
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

    return ReportingExporter()


def _parse_traceparent(traceparent: str) -> tuple["SpanContext", "Context | None"]:
    """Return the span that a traceparent names; an invalid one where it names none."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    return get_current_span(context).get_span_context(), context


def _make_span_context(trace: int, span: int) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _to_nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000
