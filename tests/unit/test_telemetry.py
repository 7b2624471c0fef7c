"""What spans and lines of the log are made of what happens."""

import io
import json
import logging
import pkgutil
import re
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import opentelemetry.semconv._incubating.attributes as semconv
import opentelemetry.semconv.attributes as settled
import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import (
    GenAiOperationNameValues,
    GenAiProviderNameValues,
)

from openassay.context import current_run
from openassay.models.event import Event, EventKind
from openassay.models.thread import ResearchOptions, Run
from openassay.settings import load
from openassay.telemetry import logs, trace_id, traces
from openassay.telemetry.traces import span_id

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
RUN = Run(id="9e0b6a1c55d2", thread="4f1c2a9b7d3e", question="Why?", started=NOW - timedelta(seconds=5))


# Names -----------------------------------------------------------------------------------------------


def test_attributes_are_called_what_opentelemetry_calls_them() -> None:
    known = set()
    for package in (semconv, settled):
        for module in pkgutil.iter_modules(package.__path__):
            found = import_module(f"{package.__name__}.{module.name}")
            known |= {value for name, value in vars(found).items() if name.isupper() and isinstance(value, str)}
    source = Path(traces.__file__).read_text("utf-8")
    ours = set(re.findall(r'"((?:gen_ai|http|url|error|exception|service)\.[\w.]+)"', source))
    assert len(ours) > 20
    assert ours <= known
    operations = {"invoke_agent", *re.findall(r'"gen_ai.operation.name": "(\w+)"', source)}
    assert operations == {"invoke_agent", "chat", "retrieval"} <= {one.value for one in GenAiOperationNameValues}
    assert set(traces.PROVIDERS.values()) <= {one.value for one in GenAiProviderNameValues}


# The log ---------------------------------------------------------------------------------------------


def told(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.requirement("W-13")
def test_records_and_events_of_structlog_become_the_same_lines() -> None:
    out = io.StringIO()
    with logs.configure_logs(load(log_level="info"), out, worker="here-7"):
        token = current_run.set(RUN.model_copy(update={"options": ResearchOptions(request="5f0c9d1e")}))
        logging.getLogger("procrastinate.worker").info("a job of %s", "theirs")
        structlog.get_logger("openassay.plugin").info("it said", hits=3, place=Path("x"))
        structlog.get_logger("openassay.plugin").debug("not this")
        current_run.reset(token)
        try:
            raise LookupError("lost")
        except LookupError:
            logging.getLogger("openassay").exception("it failed")
    one, other, failed = told(out)
    whose = {"worker": "here-7", "request": "5f0c9d1e", "thread": RUN.thread, "run": RUN.id}
    assert {name: one[name] for name in whose} == whose
    assert (one["level"], one["logger"], one["message"]) == ("info", "procrastinate.worker", "a job of theirs")
    assert list(one)[:4] == list(other)[:4] == ["time", "level", "logger", "message"]
    assert (other["message"], other["hits"], other["place"], other["run"]) == ("it said", 3, "x", RUN.id)
    assert "LookupError: lost" in failed["exception"]
    assert "run" not in failed


def test_a_line_names_its_trace_where_traces_are_told() -> None:
    out = io.StringIO()
    with logs.configure_logs(load(log_level="info", telemetry={"traces": "otlp"}), out):
        token = current_run.set(RUN)
        logging.getLogger("openassay").info("at work")
        current_run.reset(token)
        logging.getLogger("openassay").info("idle")
    at_work, idle = told(out)
    assert at_work["trace"] == f"{trace_id(RUN.id):032x}"
    assert "trace" not in idle


@pytest.mark.parametrize("before", ["", "\n", "\t", '"'])
def test_no_secret_hides_behind_an_escape(before: str) -> None:
    secret = "sk-0123456789abcdef0123"
    out = io.StringIO()
    with logs.configure_logs(load(log_level="info"), out):
        logging.getLogger("openassay").warning(f"see{before} {secret}")
        logging.getLogger("openassay").warning(
            "see", extra={"fields": {"error": [f"x{before} {secret}"], "who": Path(f"/{secret}")}}
        )
        structlog.get_logger("openassay").warning("see", why={"deep": LookupError(f"{before}{secret}")})
        try:
            raise LookupError(f"first\n{secret}")
        except LookupError:
            logging.getLogger("openassay").exception("failed")
    assert len(told(out)) == 4
    assert secret not in out.getvalue()


def test_a_terminal_is_told_for_people_and_obeys_nobody() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    with logs.configure_logs(load(log_level="info"), out):
        logs.log_request(503, route="/api/\x1b[2J", user="ada")
        try:
            raise LookupError("lost")
        except LookupError:
            logging.getLogger("openassay").exception("it failed")
    first, *rest = out.getvalue().splitlines()
    assert re.match(r"\d\d:\d\d:\d\d warning request  logger=openassay.requests .*user=ada", first)
    assert "\x1b" not in out.getvalue()
    assert rest[-1] == "LookupError: lost"


# Spans -----------------------------------------------------------------------------------------------


class TraceSpan(NamedTuple):
    name: str
    id: int
    parent: int
    start: datetime
    end: datetime
    attributes: dict[str, Any]
    error: str
    moments: list[tuple[str, dict[str, Any]]]


def _plain(span: ReadableSpan) -> TraceSpan:
    attributes = dict(span.attributes or {})
    error = str(attributes.get("error.type", ""))
    assert span.status.is_ok is not bool(error)
    assert span.context.trace_id == trace_id(RUN.id)
    return TraceSpan(
        span.name,
        span.context.span_id,
        span.parent.span_id if span.parent else 0,
        datetime.fromtimestamp((span.start_time or 0) / 1e9, UTC),
        datetime.fromtimestamp((span.end_time or 0) / 1e9, UTC),
        attributes,
        error,
        [(moment.name, dict(moment.attributes or {})) for moment in span.events],
    )


class Told:
    """A run's events, one second after the other, and the spans that come of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, content: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        monkeypatch.setattr(traces, "ReportingExporter", lambda: self._exporter)
        self._traces = traces.Traces(load(telemetry={"traces": "otlp", "content": content}))
        self._seq = 0

    def __call__(self, kind: EventKind, stage: str = "", parent: int | None = None, **data: object) -> int:
        self._seq += 1
        time = NOW + timedelta(seconds=self._seq)
        event = Event(seq=self._seq, run=RUN.id, time=time, kind=kind, stage=stage, parent=parent, data=data)
        token = current_run.set(RUN)
        self._traces.record_event(event)
        current_run.reset(token)
        return self._seq

    @property
    def all(self) -> list[TraceSpan]:
        self._traces.close()
        return [_plain(span) for span in self._exporter.get_finished_spans()]

    def named(self, name: str) -> TraceSpan:
        [found] = [span for span in self.all if span.name == name]
        return found


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


def test_a_stage_that_failed_ends_where_it_failed_and_so_does_the_run(tell: Told) -> None:
    began = tell("run", status="running")
    entered = tell("enter", "plan", began)
    failed = tell("error", "plan", entered, type="ValueError", category="internal", message="Lake Marrow")
    tell("error", "", began, message="Lake Marrow", category="internal")
    tell("run", parent=began, status="failed", error="Lake Marrow")
    stage, part, root = tell.all
    assert (stage.name, stage.error, stage.end) == ("stage plan", "internal", NOW + timedelta(seconds=failed))
    assert (part.name, part.error) == ("openassay.part", "internal")
    assert (root.name, root.error, root.start, root.parent) == ("openassay.run", "internal", RUN.started, 0)
    assert (stage.parent, part.parent, root.id) == (span_id(RUN.id, began), root.id, span_id(RUN.id, 0))
    assert "Marrow" not in repr(tell.all)


def test_a_stage_that_is_tried_again_is_told_twice(tell: Told) -> None:
    began = tell("run", status="running")
    first = tell("enter", "search", began)
    tell("error", "search", first, type="StorageError", category="internal")
    second = tell("enter", "search", began)
    tell("leave", "search", second, seconds=1.0)
    assert [(span.name, span.error) for span in tell.all] == [("stage search", "internal"), ("stage search", "")]
    assert len({span.id for span in tell.all}) == 2


def test_a_run_that_is_stopped_and_gone_on_with_is_told_as_a_whole_each_time(tell: Told) -> None:
    tell("run", status="running", falls=2)
    tell("enter", "plan", 1)
    tell("run", status="cancelled")
    tell("notice", text="nobody works on it")
    tell("run", status="running")
    tell("run", status="done")
    first, again = (span for span in tell.all if span.name == "openassay.run")
    assert (first.id, first.start) == (again.id, again.start)
    assert first.end < again.end
    parts = [span for span in tell.all if span.name == "openassay.part"]
    assert [part.attributes["openassay.run.falls"] for part in parts] == [2, 0]
    assert tell.named("stage plan").attributes["openassay.unfinished"] is True
    assert not any(span.error for span in tell.all)


def test_what_was_cut_off_without_an_end_is_forgotten(tell: Told) -> None:
    tell("run", status="running")
    lost = tell("enter", "plan", 1)
    began = tell("run", status="running")
    tell("spend", "plan", lost, model="google:gemini-2.5-pro", step="plan", usd=0.1, seconds=0.5, confirmed=True)
    tell("leave", "plan", lost, seconds=1.0)
    call = tell.named("chat gemini-2.5-pro")
    assert call.parent == span_id(RUN.id, began), "of what is not known to have begun, the part"
    assert call.attributes["gen_ai.provider.name"] == "gcp.gemini"
    assert call.end - call.start == timedelta(seconds=0.5)
    assert [span.name for span in tell.all] == ["chat gemini-2.5-pro"]


def test_content_is_told_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of(**content: bool) -> str:
        tell = Told(monkeypatch, **content)
        began = tell("run", status="running")
        entered = tell("enter", "search", began)
        tell("search", "search", entered, query="lake marrow", source="tavily", hits=3, remote=True, seconds=0.2)
        tell("error", "search", entered, source="tavily", message="marrow refused", category="api", queries=2)
        tell("skip", "harvest", entered, path="https://marrow.example/x", reason="marrow", seconds=0.1)
        tell("notice", "search", entered, text="marrow is missing")
        tell("interrupt", "", began, question="Which marrow?")
        tell("leave", "search", entered, seconds=1.0)
        tell("run", status="done")
        return repr(tell.all)

    assert "arrow" not in all_of()
    spoken = all_of(content=True)
    for words in (
        "lake marrow",
        "marrow refused",
        "https://marrow.example/x",
        "marrow is missing",
        "Which marrow?",
        "Why?",
    ):
        assert words in spoken
