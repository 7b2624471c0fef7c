"""Traces, told to a collector in OpenTelemetry's protocol over HTTP.

Where the collector is, and what it wants to hear from whom, is said by the variables OTEL_..., which the SDK reads. It
is told by a thread of its own: a collector that is gone costs a line of the log, and no run ever waits for it.
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
from openassay.llm.tracing import ModelExchange, last_exchange
from openassay.models.event import ENDED, Event, RunStatus
from openassay.models.thread import Run
from openassay.settings import Settings, TelemetrySettings
from openassay.telemetry import names
from openassay.text.redaction import Redactor, build_redactor

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanContext, SpanKind


# A run's events, told as the spans of one trace.
#
#     openassay.run                 from when it was asked to its end, by whichever process has brought it there
#       openassay.part              from being taken up to standing still, in one process
#         stage search          the graph's, by name
#           retrieval searxng   one query; `page news` is one page, by the sort of its site
#           chat gpt-4o         one call to a model
#
# Every id follows from the run's and the number of an event. So processes that work on a run one after the other tell
# one
# trace without having heard of each other, and what a process that died has not told leaves a gap and no knot.

MOST_PARTS = 10_000  # open at once; one whose end could not be written down is never told, and must not stay for good
LONGEST = 20_000  # characters of one text

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
    outside: bool = False  # somebody else was asked
    error: str = ""  # of what sort, if it failed
    moments: tuple[SpanMoment, ...] = ()
    link: str = ""  # the traceparent of what has set it going


def trace_id(run: str) -> int:
    return _hash_to_int(f"openassay run {run}", 16)


def span_id(run: str, event: int) -> int:
    """Of what began with an event; 0 for the run itself."""
    return _hash_to_int(f"openassay run {run} {event}", 8)


def _hash_to_int(name: str, size: int) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=size).digest()) or 1


@dataclass(slots=True)
class RunAttempt:
    """What one process does of a run."""

    began: Event
    run: Run | None
    entered: dict[int, Event] = field(default_factory=dict)
    moments: dict[int, list[SpanMoment]] = field(default_factory=dict)  # by what they happened in
    errors: dict[int, str] = field(default_factory=dict)
    usd: float | None = None


class SpanBuilder:
    """`content`: whether questions, queries, addresses, prompts and answers are told. Never of a run on documents."""

    def __init__(self, redaction: Redactor, *, content: bool) -> None:
        self._redaction = redaction
        self._content = content
        self._parts: dict[str, RunAttempt] = {}

    def build_spans(self, event: Event) -> list[TraceSpan]:
        """What has come to its end with an event. Called as the run that it is of."""
        if event.kind == "run":
            return self._handle_status(event, RunStatus(str(event.data["status"])))
        part = self._parts.get(event.run)
        if part is None:  # nobody works on the run
            return []
        if event.kind == "enter":
            part.entered[event.seq] = event
        elif is_node_exit(event) or (event.kind == "error" and "type" in event.data):
            part.errors |= _find_failure(event)
            return self._finish_stage(part, event)
        elif call := self._build_call_span(part, event):
            return [call]
        else:
            self._record_moment(part, event)
        return []

    # -- the run ------------------------------------------------------------------------------------------

    def _handle_status(self, event: Event, status: RunStatus) -> list[TraceSpan]:
        part = self._parts.pop(event.run, None)
        if status is RunStatus.RUNNING:
            self._parts[event.run] = RunAttempt(event, current_run.get())
            while len(self._parts) > MOST_PARTS:
                del self._parts[next(iter(self._parts))]
            return []
        told: list[TraceSpan] = []
        if part is not None:
            told += [self._build_stage_span(part, seq, event.time, unfinished=True) for seq in list(part.entered)]
            told.append(self._build_attempt_span(part, event, status))
        if status in ENDED:
            told.append(self._build_root_span(part, event, status))
        return told

    def _build_attempt_span(self, part: RunAttempt, event: Event, status: RunStatus) -> TraceSpan:
        seq, falls = part.began.seq, int(read_number(part.began, "falls"))
        told: Attributes = {names.RUN: event.run, names.RUN_STATUS: status.value, names.FALLS: falls}
        return TraceSpan(
            trace_id(event.run), span_id(event.run, seq), span_id(event.run, 0), "openassay.part", part.began.time,
            event.time, told, error=part.errors.get(seq, "") if status is RunStatus.FAILED else "",
            moments=tuple(part.moments.get(seq, ())),
        )  # fmt: skip

    def _build_root_span(self, part: RunAttempt | None, event: Event, status: RunStatus) -> TraceSpan:
        """Of a run that was stopped, and is gone on with, it is told once more."""
        run = part.run if part else None
        told: Attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: "openassay", names.RUN: event.run}
        told[names.RUN_STATUS] = status.value
        if run is not None:
            told |= {names.CONVERSATION: run.thread, names.REQUEST: str(run.options.get("request") or "")}
            if self._can_share_content(run):
                told[names.INPUT] = self._format_message("user", run.question)
        if part is not None and part.usd is not None:
            told[names.USD] = part.usd
        failed = part.errors.get(part.began.seq, "internal") if part else "internal"
        return TraceSpan(
            trace_id(event.run),
            span_id(event.run, 0),
            0,
            "openassay.run",
            run.started if run else event.time,
            event.time,
            {name: value for name, value in told.items() if value != ""},
            error=failed if status is RunStatus.FAILED else "",
            link=str(run.options.get("trace") or "") if run else "",
        )

    # -- stages -------------------------------------------------------------------------------------------

    def _finish_stage(self, part: RunAttempt, event: Event) -> list[TraceSpan]:
        entered = event.parent
        return [self._build_stage_span(part, entered, event.time)] if entered in part.entered else []

    def _build_stage_span(self, part: RunAttempt, seq: int, end: datetime, *, unfinished: bool = False) -> TraceSpan:
        entered = part.entered.pop(seq)
        told: Attributes = {names.STAGE: entered.stage, names.RUN: entered.run}
        if unfinished:
            told[names.UNFINISHED] = True
        return TraceSpan(
            trace_id(entered.run), span_id(entered.run, seq), _find_parent(part, entered), f"stage {entered.stage}",
            entered.time, end, told, error=part.errors.pop(seq, ""), moments=tuple(part.moments.pop(seq, ())),
        )  # fmt: skip

    # -- those outside ------------------------------------------------------------------------------------

    def _build_call_span(self, part: RunAttempt, event: Event) -> TraceSpan | None:
        """Who is not asked for money, and answers from this machine or a cache, takes no time that is told."""
        who = parse_external_call(event) or _find_local_search(event)
        if who is None:
            return None
        part.usd = read_number(event, "total_usd") if "total_usd" in event.data else part.usd
        if who.kind == "search" and event.kind == "spend":
            return None  # the price of a search that has a span of its own
        name, told = self._describe_call(part, event, who)
        return TraceSpan(
            trace_id(event.run), span_id(event.run, event.seq), _find_parent(part, event), name,
            event.time - timedelta(seconds=who.seconds or 0.0), event.time, {**told, names.RUN: event.run},
            outside=who.cached is not True and bool(event.data.get("remote", True)),
            error=str(event.data.get("category") or "failed") if who.failures else "",
        )  # fmt: skip

    def _describe_call(self, part: RunAttempt, event: Event, who: ExternalCall) -> tuple[str, Attributes]:
        """What the span is called, and what it says."""
        if who.kind == "model":
            vendor, _, model = who.party.partition(":")
            told = self._describe_chat(part, event, who)
            return f"{names.CHAT} {model}", told | {
                names.PROVIDER: names.PROVIDERS.get(vendor, vendor), names.REQUEST_MODEL: model
            }  # fmt: skip
        if who.kind == "search":
            return f"{names.RETRIEVAL} {who.party}", self._describe_search(part, event, who)
        return f"page {who.party}", self._describe_page(part, event, who)

    def _describe_chat(self, part: RunAttempt, event: Event, who: ExternalCall) -> Attributes:
        told: Attributes = {
            names.OPERATION: names.CHAT, names.STEP: str(event.data.get("step", "")),
            names.TASK: str(event.data.get("task", "")),
        }  # fmt: skip
        if event.kind == "spend":
            told |= {
                names.INPUT_TOKENS: int(read_number(event, "prompt_tokens")), names.USD: who.usd,
                names.OUTPUT_TOKENS: int(read_number(event, "completion_tokens")),
                names.CONFIRMED: bool(event.data.get("confirmed")),
            }  # fmt: skip
            said = last_exchange.get()
            if said is not None:
                told |= _describe_parameters(said) | (
                    self._describe_exchange(said) if self._can_share_content(part.run) else {}
                )
        return {name: value for name, value in told.items() if value != ""}

    def _describe_search(self, part: RunAttempt, event: Event, who: ExternalCall) -> Attributes:
        told: Attributes = {names.OPERATION: names.RETRIEVAL, names.DATA_SOURCE: who.party}
        if event.kind == "search":
            told |= {names.HITS: int(read_number(event, "hits")), names.CACHED: bool(who.cached)}
        if self._can_share_content(part.run):
            told |= {names.QUERY: self._clean_text(event.data.get("query")), **self._describe_reason(event)}
        return told

    def _describe_page(self, part: RunAttempt, event: Event, who: ExternalCall) -> Attributes:
        told: Attributes = {names.PUBLISHER: who.party, names.CACHED: bool(who.cached)}
        if event.kind == "read":
            told[names.WORDS] = int(read_number(event, "words"))
        if self._can_share_content(part.run):
            address, title = event.data.get("url") or event.data.get("path"), event.data.get("title")
            told |= {
                names.ADDRESS: self._clean_text(address),
                names.TITLE: self._clean_text(title),
                **self._describe_reason(event),
            }
        return {name: value for name, value in told.items() if value != ""}

    # -- the rest -----------------------------------------------------------------------------------------

    def _record_moment(self, part: RunAttempt, event: Event) -> None:
        told: Attributes | None = None
        if event.kind == "error":
            part.errors |= _find_failure(event)
            told = {names.ERROR: str(event.data.get("category") or "internal")}
        elif event.kind == "think":
            told = {names.STEP: str(event.data.get("step", "")), names.BY: str(event.data.get("by", ""))}
        elif event.kind == "interrupt":
            told = {names.QUESTION_KIND: str(event.data.get("kind", ""))}
        elif event.kind == "notice" and self._can_share_content(part.run):
            told = {}
        if told is not None:
            if self._can_share_content(part.run):
                told |= self._describe_reason(event)
            within = event.parent if event.parent in part.entered else part.began.seq
            part.moments.setdefault(within, []).append(SpanMoment(event.kind, event.time, told))

    # -- content ------------------------------------------------------------------------------------------

    def _can_share_content(self, run: Run | None) -> bool:
        return self._content and run is not None and not (run.options.get("docs") or run.options.get("private"))

    def _describe_exchange(self, said: ModelExchange) -> Attributes:
        request, reply = said
        return {
            names.INSTRUCTIONS: json.dumps([{"type": "text", "content": self._clean_text(request.prompt.system)}]),
            names.INPUT: self._format_message("user", request.prompt.text),
            names.OUTPUT: self._format_message("assistant", reply.text, finish_reason=reply.finish),
        }

    def _format_message(self, role: str, text: str, **more: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": self._clean_text(text)}], **more}])

    def _describe_reason(self, event: Event) -> Attributes:
        said = (event.data.get(name) for name in ("message", "text", "reason", "question"))
        text = self._clean_text(next((one for one in said if one), ""))
        return {names.EXCEPTION_MESSAGE if event.kind == "error" else names.TEXT: text} if text else {}

    def _clean_text(self, text: object) -> str:
        """Without secrets before it is written as JSON: what follows an escaped line break is no word of its own."""
        said = self._redaction.redact_text(str(text or ""))
        return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


def _find_local_search(event: Event) -> ExternalCall | None:
    """A search on this machine."""
    if event.kind == "search" and event.stage == "search":
        return ExternalCall("search", str(event.data.get("source", "")), cached=bool(event.data.get("cached")))
    return None


def _find_parent(part: RunAttempt, event: Event) -> int:
    """What it happened in; what happened in nothing that is known happened in the part."""
    return span_id(event.run, event.parent if event.parent in part.entered else part.began.seq)


def _find_failure(event: Event) -> dict[int, str]:
    """A stage's own failure, or the run's."""
    if event.kind != "error" or event.parent is None or (event.stage and "type" not in event.data):
        return {}
    return {event.parent: str(event.data.get("category") or "internal")}


def _describe_parameters(said: ModelExchange) -> Attributes:
    request, reply = said
    warmth = {} if request.temperature is None else {names.REQUEST_TEMPERATURE: request.temperature}
    return {**warmth, names.REQUEST_MAX_TOKENS: request.max_tokens, names.FINISH_REASONS: (reply.finish,)}


_log = logging.getLogger("openassay")
CLOSING = 2.0  # seconds the last spans are given
ASKING = 2.0  # seconds a collector has to say that it is there


class RequestTrace(NamedTuple):
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
        exporter = _create_exporter()
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = _wrap_exporter(exporter)
        try:
            self._processor = BatchSpanProcessor(self._exporter)
        except ValueError as error:
            raise ConfigurationError(
                f"an OTEL_BSP_... variable is not usable: {error}", help="Correct it or unset it."
            ) from error
        self._resource = _create_resource(settings.telemetry)
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._scope = InstrumentationScope("openassay", version("openassay"))
        self._redaction = build_redactor(settings)
        self._spans = SpanBuilder(self._redaction, content=settings.telemetry.content)
        _silence_sdk()  # what is wrong with the variables was told by now

    def record_event(self, event: Event) -> None:
        """An event of a run of this process; called as that run."""
        try:
            for span in self._spans.build_spans(event):
                if self._should_sample(span.trace, span.name):
                    self._export_span(span)
        except Exception:  # noqa: BLE001  # the last line of defence: a run never fails for what is told of it
            _log.exception("event %d of run %s could not be told in a trace", event.seq, event.run)

    def begin_request(self, headers: Mapping[str, str]) -> RequestTrace:
        """A request; its caller may have begun a trace that it is part of."""
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
        if request.is_told:
            told: Attributes = {names.METHOD: method, names.ROUTE: route, names.STATUS_CODE: status}
            failed = str(status) if status >= 500 else ""
            span = TraceSpan(
                request.trace, request.id, request.parent, f"{method} {route}", request.began, datetime.now(UTC), told,
                error=failed,
            )  # fmt: skip
            self._export_span(span, is_request=True)

    def close(self) -> None:
        """A collector that does not answer is not waited for."""
        closing = Thread(target=self._processor.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSING)
        if closing.is_alive():
            self._exporter.shutdown()

    def _should_sample(self, trace: int, name: str, above: "Context | None" = None) -> bool:
        """As OTEL_TRACES_SAMPLER says. It goes by the trace's id, so that all processes decide alike."""
        from opentelemetry.sdk.trace.sampling import Decision

        return self._sampler.should_sample(above, trace, name).decision is Decision.RECORD_AND_SAMPLE

    def _export_span(self, span: TraceSpan, *, is_request: bool = False) -> None:
        from opentelemetry.trace import SpanKind

        kind = SpanKind.SERVER if is_request else SpanKind.CLIENT if span.outside else SpanKind.INTERNAL
        self._processor.on_end(self._to_readable_span(span, kind))

    def _to_readable_span(self, span: TraceSpan, kind: "SpanKind") -> "ReadableSpan":
        from opentelemetry.sdk.trace import Event as SpanEvent
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, Status, StatusCode

        links = [Link(_parse_traceparent(span.link)[0])] if span.link else []
        told = {**span.attributes, names.ERROR: span.error} if span.error else span.attributes
        return ReadableSpan(
            span.name,
            context=_make_span_context(span.trace, span.id),
            parent=_make_span_context(span.trace, span.parent) if span.parent else None,
            resource=self._resource,
            attributes=self._redact(told),
            events=[
                SpanEvent(moment.name, self._redact(moment.attributes), _to_nanoseconds(moment.time))
                for moment in span.moments
            ],
            links=[link for link in links if link.context.is_valid],
            kind=kind,
            status=Status(StatusCode.ERROR) if span.error else Status(),
            start_time=_to_nanoseconds(span.start),
            end_time=_to_nanoseconds(span.end),
            instrumentation_scope=self._scope,
        )

    def _redact(self, attributes: Attributes) -> dict[str, Value]:
        return self._redaction.redact_data(attributes)


def can_reach_collector() -> bool:
    """Whether the collector takes what it is told: asked as it is told, with nothing to tell."""
    exporter = _create_exporter(ASKING)
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
    """Each try at a collector that is gone would be two lines."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def _wrap_exporter(exporter: "SpanExporter") -> "SpanExporter":
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


def _create_resource(telemetry: TelemetrySettings) -> "Resource":
    """Who tells. What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say counts."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    ours = {
        names.SERVICE: telemetry.service,
        names.SERVICE_VERSION: version("openassay"),
        names.SERVICE_INSTANCE: f"{socket.gethostname()}:{os.getpid()}",
    }
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def _parse_traceparent(traceparent: str) -> tuple["SpanContext", "Context | None"]:
    """The span that a traceparent names; an invalid one where it names none."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    return get_current_span(context).get_span_context(), context


def _make_span_context(trace: int, span: int) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _to_nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000
