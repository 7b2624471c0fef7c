"""Traces, exported to a collector in OpenTelemetry's protocol over HTTP. A run's events become the spans of one trace:

    openassay.run              from its question to its end, by whichever process ended it
        openassay.part         from being claimed to standing still, in one process
            stage search       a node of the graph, by name
                chat gpt-4o    one call to a model; `retrieval searxng` is one query, `page news` one page

Every id follows from the run's id and the number of an event. So processes that work on a run one after the other
export one trace without knowing of each other, and what a process that died did not export leaves a gap.

The variables OTEL_..., which the SDK reads, say where the collector is and what it wants. A thread of its own exports:
a collector that is gone costs a line of the log, and no run ever waits for it.
"""

import json
import logging
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from importlib.metadata import version
from threading import Thread
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from openassay.context import current_run
from openassay.engine.timings import ExternalCall, is_node_exit, parse_external_call, read_number
from openassay.errors import ConfigurationError
from openassay.llm.tracing import last_exchange
from openassay.models.event import ENDED, Event, RunStatus
from openassay.models.thread import Run
from openassay.settings import Settings
from openassay.telemetry import trace_id, traceparent
from openassay.text.redaction import build_redactor

_log = logging.getLogger("openassay")
MAX_PARTS = 10_000  # open at once; one whose end could not be written must not stay for good
MAX_TEXT_LENGTH = 20_000
CLOSE_SECONDS = 2.0  # that the last spans are given
PROBE_SECONDS = 2.0  # that a collector has to answer a probe
PROVIDERS = {"google": "gcp.gemini"}  # whom OpenTelemetry calls differently

# Attributes have OpenTelemetry's names where it has one: tests/unit/test_telemetry.py compares them with its lists.
Attributes = dict[str, str | bool | int | float | tuple[str, ...]]


def span_id(run: str, event: int) -> int:
    """Return the id of the span that began with an event; 0 for the run itself."""
    return int.from_bytes(blake2b(f"openassay run {run} {event}".encode(), digest_size=8).digest()) or 1


@dataclass(slots=True)
class RunPart:
    """The part of a run that one process does. `spans` are those that are open, by the event they began with."""

    began: Event
    run: Run | None
    span: Span
    spans: dict[int, Span] = field(default_factory=dict)
    error: str = "internal"  # its category, should it fail
    usd: float | None = None


class GivenIds(IdGenerator):
    """Gives each span the ids that were set for it."""

    trace = span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class ReportingExporter(OTLPSpanExporter):
    """Logs when the collector goes away, and when it is back."""

    is_gone = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        is_gone = result is not SpanExportResult.SUCCESS
        if is_gone and not self.is_gone:
            _log.warning("the collector does not accept traces; runs continue without them")
        elif self.is_gone and not is_gone:
            _log.warning("the collector accepts traces again")
        self.is_gone = is_gone
        return result


class Traces:
    """The traces of one process. With `telemetry.content` they have questions, queries, addresses, prompts and answers;
    those of a run on private documents never have."""

    def __init__(self, settings: Settings) -> None:
        self._exporter: SpanExporter = ReportingExporter()
        try:
            self._processor = BatchSpanProcessor(self._exporter)
        except ValueError as error:
            raise ConfigurationError(
                f"an OTEL_BSP_... variable is not usable: {error}", help="Correct it or unset it."
            ) from error
        ours = {
            "service.name": settings.telemetry.service,
            "service.version": version("openassay"),
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
        }
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
        resource = Resource.create(ours).merge(OTELResourceDetector().detect())
        self._ids = GivenIds()
        provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(self._processor)
        self._sampler = provider.sampler
        self._tracer = provider.get_tracer("openassay", version("openassay"))
        self._redactor = build_redactor(settings)
        self._has_content = settings.telemetry.content
        self._parts: dict[str, RunPart] = {}
        _silence_sdk()  # by now it has reported what is wrong with the variables

    def close(self) -> None:
        """Export the last spans, without waiting for a collector that does not answer."""
        closing = Thread(target=self._processor.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if closing.is_alive():
            self._exporter.shutdown()

    # Requests

    def begin_request(self, headers: Mapping[str, str]) -> Span:
        """Begin the span of a request, in the trace of its caller if it names one."""
        self._ids.trace, self._ids.span = secrets.randbits(128), secrets.randbits(64)
        caller = _parse_traceparent(headers.get("traceparent", ""))
        span = self._tracer.start_span("request", caller, SpanKind.SERVER)
        context = span.get_span_context()
        # For the rest of the request, which has a context of its own.
        traceparent.set(f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}")
        return span

    def end_request(self, span: Span, route: str, method: str, status: int) -> None:
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
        self._end_span(span, error=str(status) if status >= 500 else "")

    # Runs

    def record_event(self, event: Event) -> None:
        """Trace an event of this process; called in the context of its run."""
        try:
            if event.kind == "run":
                self._trace_status(event, RunStatus(str(event.data["status"])))
            elif part := self._parts.get(event.run):  # else nobody works on the run
                self._trace_event(part, event)
        except Exception:  # noqa: BLE001  # the last line of defence: a run never fails because of its trace
            _log.exception("event %d of run %s could not be traced", event.seq, event.run)

    def _trace_status(self, event: Event, status: RunStatus) -> None:
        part = self._parts.pop(event.run, None)
        trace, root = trace_id(event.run), span_id(event.run, 0)
        if status is RunStatus.RUNNING:
            # All processes decide by the trace's id whether to export a run, so that they decide alike.
            decision = self._sampler.should_sample(None, trace, "openassay.run").decision
            flags = TraceFlags(decision is Decision.RECORD_AND_SAMPLE)
            above = NonRecordingSpan(SpanContext(trace, root, is_remote=True, trace_flags=flags))
            attributes: Attributes = {"openassay.run.falls": int(read_number(event, "falls"))}
            span = self._start_span(event, above, "openassay.part", event.time, attributes)
            self._parts[event.run] = RunPart(event, current_run.get(), span)
            while len(self._parts) > MAX_PARTS:
                del self._parts[next(iter(self._parts))]
            return
        error = (part.error if part else "internal") if status is RunStatus.FAILED else ""
        if part is not None:
            for stage in part.spans.values():
                stage.set_attribute("openassay.unfinished", True)
                self._end_span(stage, event.time)
            part.span.set_attribute("openassay.run.status", status.value)
            self._end_span(part.span, event.time, error)
        if status in ENDED:  # the span of a run that was stopped and resumed is exported once more
            self._ids.trace, self._ids.span = trace, root
            run = part.run if part else None
            begun = _parse_traceparent(run.options.trace) if run else Context()
            request = get_current_span(begun).get_span_context()
            span = self._tracer.start_span(
                "openassay.run",
                Context(),
                attributes=self._describe_run(event.run, status, part),
                links=[Link(request)] if request.is_valid else [],
                start_time=_to_nanoseconds(run.started if run else event.time),
            )
            self._end_span(span, event.time, error)

    def _describe_run(self, id: str, status: RunStatus, part: RunPart | None) -> Attributes:
        run = part.run if part else None
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "openassay",
            "openassay.run": id,
            "openassay.run.status": status.value,
        }
        if run is not None:
            attributes["gen_ai.conversation.id"] = run.thread
            attributes["openassay.request"] = run.options.request
            if self._can_share_content(run):
                attributes["gen_ai.input.messages"] = self._format_message("user", run.question)
        if part is not None and part.usd is not None:
            attributes["openassay.usd"] = part.usd
        return self._clean_attributes(attributes)

    def _trace_event(self, part: RunPart, event: Event) -> None:
        within = part.spans.get(event.parent or 0, part.span)
        category = str(event.data.get("category") or "internal")
        if event.kind == "error" and not event.stage and event.parent == part.began.seq:
            part.error = category
        if event.kind == "enter":
            attributes: Attributes = {"openassay.stage": event.stage}
            span = self._start_span(event, within, f"stage {event.stage}", event.time, attributes)
            part.spans[event.seq] = span
        elif is_node_exit(event) or (event.kind == "error" and "type" in event.data):
            if stage := part.spans.pop(event.parent or 0, None):
                self._end_span(stage, event.time, category if event.kind == "error" else "")
        elif call := _find_call(event):
            part.usd = read_number(event, "total_usd") if "total_usd" in event.data else part.usd
            if call.kind != "search" or event.kind != "spend":  # the search itself has an event of its own
                self._trace_call(part, event, call, within)
        else:
            attributes = {}
            if event.kind == "error":
                attributes = {"error.type": category}
            elif event.kind == "think":
                attributes = {f"openassay.{name}": str(event.data.get(name, "")) for name in ("step", "by")}
            elif event.kind == "interrupt":
                attributes = {"openassay.question.kind": str(event.data.get("kind", ""))}
            elif event.kind != "notice" or not self._can_share_content(part.run):
                return
            attributes |= self._describe_reason(part, event)
            within.add_event(event.kind, self._redactor.redact_data(attributes), _to_nanoseconds(event.time))

    def _trace_call(self, part: RunPart, event: Event, call: ExternalCall, within: Span) -> None:
        data, is_shared = event.data, self._can_share_content(part.run)
        if call.kind == "model":
            vendor, _, model = call.party.partition(":")
            name, attributes = f"chat {model}", self._describe_chat(part, event, call)
            attributes |= {"gen_ai.provider.name": PROVIDERS.get(vendor, vendor), "gen_ai.request.model": model}
        elif call.kind == "search":
            name = f"retrieval {call.party}"
            attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": call.party}
            if event.kind == "search":
                attributes |= {"openassay.hits": int(read_number(event, "hits")), "openassay.cached": bool(call.cached)}
            if is_shared:
                attributes["gen_ai.retrieval.query.text"] = self._clean_text(data.get("query"))
        else:
            name = f"page {call.party}"
            attributes = {"openassay.publisher": call.party, "openassay.cached": bool(call.cached)}
            if event.kind == "read":
                attributes["openassay.words"] = int(read_number(event, "words"))
            if is_shared:
                attributes["url.full"] = self._clean_text(data.get("url") or data.get("path"))
                attributes["openassay.title"] = self._clean_text(data.get("title"))
        if call.kind != "model":
            attributes |= self._describe_reason(part, event)
        is_outside = call.cached is not True and bool(data.get("remote", True))
        began = event.time - timedelta(seconds=call.seconds or 0.0)
        kind = SpanKind.CLIENT if is_outside else SpanKind.INTERNAL
        span = self._start_span(event, within, name, began, attributes, kind)
        self._end_span(span, event.time, str(data.get("category") or "failed") if call.failures else "")

    def _describe_chat(self, part: RunPart, event: Event, call: ExternalCall) -> Attributes:
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "openassay.step": str(event.data.get("step", "")),
            "openassay.task": str(event.data.get("task", "")),
        }
        if event.kind != "spend":
            return attributes
        attributes |= {
            "gen_ai.usage.input_tokens": int(read_number(event, "prompt_tokens")),
            "gen_ai.usage.output_tokens": int(read_number(event, "completion_tokens")),
            "openassay.usd": call.usd,
            "openassay.confirmed": bool(event.data.get("confirmed")),  # false: booked at its worst case
        }
        if exchange := last_exchange.get():
            request, reply = exchange
            if request.temperature is not None:
                attributes["gen_ai.request.temperature"] = request.temperature
            attributes["gen_ai.request.max_tokens"] = request.max_tokens
            attributes["gen_ai.response.finish_reasons"] = (reply.finish,)
            if self._can_share_content(part.run):
                system = [{"type": "text", "content": self._clean_text(request.prompt.system)}]
                attributes["gen_ai.system_instructions"] = json.dumps(system)
                attributes["gen_ai.input.messages"] = self._format_message("user", request.prompt.text)
                answer = self._format_message("assistant", reply.text, finish_reason=reply.finish)
                attributes["gen_ai.output.messages"] = answer
        return attributes

    # Spans

    def _start_span(
        self,
        event: Event,
        above: Span,
        name: str,
        began: datetime,
        attributes: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        self._ids.span = span_id(event.run, event.seq)
        attributes = self._clean_attributes({**attributes, "openassay.run": event.run})
        return self._tracer.start_span(
            name, set_span_in_context(above, Context()), kind, attributes, start_time=_to_nanoseconds(began)
        )

    def _end_span(self, span: Span, time: datetime | None = None, error: str = "") -> None:
        """End a span; `error` is the category of what went wrong."""
        if error:
            span.set_attribute("error.type", error)
            span.set_status(StatusCode.ERROR)
        span.end(_to_nanoseconds(time) if time else None)

    def _clean_attributes(self, attributes: Attributes) -> Attributes:
        return self._redactor.redact_data({name: value for name, value in attributes.items() if value != ""})

    def _can_share_content(self, run: Run | None) -> bool:
        return self._has_content and run is not None and not (run.options.docs or run.options.private)

    def _format_message(self, role: str, text: str, **more: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": self._clean_text(text)}], **more}])

    def _describe_reason(self, part: RunPart, event: Event) -> Attributes:
        texts = (event.data.get(name) for name in ("message", "text", "reason", "question"))
        text = self._clean_text(next(filter(None, texts), "")) if self._can_share_content(part.run) else ""
        return {"exception.message" if event.kind == "error" else "openassay.text": text} if text else {}

    def _clean_text(self, text: Any) -> str:
        """Redact a text before it is written as JSON: what follows an escaped line break is no word of its own."""
        clean = self._redactor.redact_text(str(text or ""))
        return clean if len(clean) <= MAX_TEXT_LENGTH else f"{clean[:MAX_TEXT_LENGTH]}…"


def _find_call(event: Event) -> ExternalCall | None:
    """Find what has a span of its own: a search, a page or a call to a model."""
    if event.kind == "search" and event.stage == "search" and not event.data.get("remote"):  # on this machine
        return ExternalCall("search", str(event.data.get("source", "")), cached=bool(event.data.get("cached")))
    return parse_external_call(event)


def can_reach_collector() -> bool:
    """Return whether the collector accepts an export without spans."""
    exporter: SpanExporter = OTLPSpanExporter(timeout=PROBE_SECONDS)
    _silence_sdk()
    try:
        return exporter.export([]) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()


def _silence_sdk() -> None:
    """Silence the SDK, which logs two lines for each attempt at a collector that is gone."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def _parse_traceparent(header: str) -> Context:
    """Return a context with the span that a header names, or without one."""
    return TraceContextTextMapPropagator().extract({"traceparent": header}, Context())


def _to_nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000
