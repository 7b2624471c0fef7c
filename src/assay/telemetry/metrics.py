"""Figures for Prometheus, of a server or a worker: what is asked of it, how its runs go, whom they ask, what they cost.

Nothing is told by thread, person or address, so that the number of series stays bounded.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from assay.model.event import Event, RunStatus
from assay.settings import Settings
from assay.storage.database import Database
from assay.telemetry.backlog import Backlog
from assay.view.outside import asked, number
from assay.view.timings import is_left

MEDIA = CONTENT_TYPE_PLAIN_0_0_4
MOST_NAMES = 100  # of models, and of providers: callers may name what nobody has; the rest is "other"
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_STEPS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)  # seconds
_CALLS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)


Family = TypeVar("Family", Counter, Histogram)


class Watched(Protocol):
    """An engine, as far as figures go."""

    @property
    def settings(self) -> Settings: ...

    def running(self) -> list[str]: ...

    def losses(self) -> int: ...


class Losses(Collector):
    """Told by the engine alone: who has lost a run may write no event of it."""

    def __init__(self, losses: Callable[[], int]) -> None:
        self._losses = losses

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily("assay_leases_lost", "Runs lost to other processes.", self._losses())


class Metrics:
    """One process's: of its engine, and of the database, where the runs of all processes are counted."""

    def __init__(self, engine: Watched, database: Database) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of all lines, and nobody reads them
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "assay_requests", "Requests that were answered.", ("route", "method", "status"), registry=registry
        )
        self._latency = Histogram(
            "assay_request_seconds",
            "Until an answer was whole; of a stream, until it began.",
            ("route", "method"),
            registry=registry,
        )
        self.streams = Gauge("assay_streams_open", "Streams of events that are being read.", registry=registry)
        Gauge("assay_runs_at_work", "Runs this process works on.", registry=registry).set_function(
            lambda: len(engine.running())
        )
        self._runs = Counter("assay_runs", "Runs that came to a status here.", ("status",), registry=registry)
        self._drained = Counter("assay_runs_drained", "Put back in line, as this process stops.", registry=registry)
        self._rescued = Counter("assay_runs_rescued", "Gone on with after a process died at it.", registry=registry)
        registry.register(Losses(engine.losses))
        self._events = Counter("assay_events", "Events that were written.", ("kind",), registry=registry)
        self._stages = Histogram(
            "assay_stage_seconds", "Stages that were ended.", ("stage",), buckets=_STEPS, registry=registry
        )
        self._calls = Histogram(
            "assay_outside_seconds", "Answers of those outside, waiting for a turn aside.", ("kind", "party"),
            buckets=_CALLS, registry=registry,
        )  # fmt: skip
        self._failures = Counter(
            "assay_outside_failures", "Calls outside that were in vain.", ("kind", "party"), registry=registry
        )
        self._caches = Counter(
            "assay_cache_lookups", "What caches were asked for.", ("cache", "result"), registry=registry
        )
        self._usd = Counter("assay_spend_usd", "What was booked, in dollars.", ("kind", "party"), registry=registry)
        self._errors = Counter("assay_errors", "What went wrong in runs.", ("category",), registry=registry)
        registry.register(Backlog(database, engine.settings.fleet.lease_seconds))
        self._children: dict[tuple[object, ...], Any] = {}
        self._names: set[str] = set()

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self._of(self._requests, route, method, status).inc()
        self._of(self._latency, route, method).observe(seconds)

    def event(self, event: Event) -> None:
        """An event of a run of this process."""
        self._of(self._events, event.kind).inc()
        if event.kind == "run":
            status = event.data.get("status", "")
            self._of(self._runs, status).inc()
            if status == RunStatus.QUEUED:
                self._drained.inc()
            if event.data.get("falls"):
                self._rescued.inc()
        elif is_left(event):
            self._of(self._stages, event.stage).observe(number(event, "seconds"))
        if category := event.data.get("category"):
            self._of(self._errors, category).inc()
        self._outside(event)

    def _outside(self, event: Event) -> None:
        told = asked(event)
        if told is None:
            return
        party = (told.kind, self._bounded(told.party))
        if told.seconds is not None:
            self._of(self._calls, *party).observe(told.seconds)
        if told.failures:
            self._of(self._failures, *party).inc(told.failures)
        if told.usd:
            self._of(self._usd, *party).inc(told.usd)
        if told.cached is not None:
            cache = "searches" if told.kind == "search" else "pages"
            self._of(self._caches, cache, "hit" if told.cached else "miss").inc(told.failures or 1)

    def _of(self, metric: Family, *labels: object) -> Family:
        """The series with these labels: looking it up in the metric itself takes 4 µs, which is more than counting."""
        key = (metric, *labels)
        child: Family | None = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def _bounded(self, name: str) -> str:
        if name not in self._names and len(self._names) >= MOST_NAMES:
            return "other"
        self._names.add(name)
        return name

    def text(self) -> bytes:
        """Asks the database: call it in a thread."""
        return generate_latest(self.registry)
