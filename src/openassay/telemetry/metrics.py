"""Metrics for Prometheus, of a server or a worker: its requests, how its runs go, whom they ask, what they cost.

Nothing is labelled by thread, user or address, so that the number of series stays bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from math import nan
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from openassay.engine.timings import is_node_exit, parse_external_call, read_number
from openassay.errors import StorageError
from openassay.models.event import ACTIVE, Event, RunStatus
from openassay.settings import Settings
from openassay.storage.database import Connection, Database, utc_now

# A thread is touched when its run is queued, and then not before it is claimed.
_RUNS = """
SELECT runs.status, count(*) AS n, min(threads.updated) AS since FROM runs JOIN threads ON threads.id = runs.thread
WHERE runs.status IN ('queued', 'running', 'waiting') GROUP BY runs.status
"""
_IS_THERE = "SELECT to_regclass(?) IS NOT NULL AS there"
_ALIVE = "SELECT count(*) AS n FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => ?)"


@runtime_checkable
class ServerDatabase(Protocol):
    """A database on a server, with connections that are shared."""

    def connections(self) -> Mapping[str, int]: ...


class BacklogFigures(NamedTuple):
    runs: Mapping[RunStatus, float]
    oldest: float  # seconds for which the first queued run has waited
    workers: float  # alive


UNKNOWN = BacklogFigures(dict.fromkeys(ACTIVE, nan), nan, nan)


def read_backlog(database: Database, lease: float) -> BacklogFigures:
    """Read what all processes together have to do."""
    with database.connection() as connection:
        rows = {row["status"]: row for row in connection.execute(_RUNS).fetchall()}
        workers = count_live_workers(connection, lease) if isinstance(database, ServerDatabase) else 0
    first = rows.get(RunStatus.QUEUED)
    oldest = (utc_now() - datetime.fromisoformat(first["since"])).total_seconds() if first else 0.0
    runs = {status: rows[status]["n"] if status in rows else 0 for status in ACTIVE}
    return BacklogFigures(runs, max(oldest, 0.0), workers)


def count_live_workers(connection: Connection, lease: float) -> int:
    """Count the workers that reported in the time of a lease, by the clock of the database; 0 where none ever was."""
    if not connection.execute(_IS_THERE, ("procrastinate_workers",)).fetchone()["there"]:
        return 0
    return int(connection.execute(_ALIVE, (lease,)).fetchone()["n"])


class BacklogCollector(Collector):
    """The backlog, read when metrics are collected. `lease` is for how long a worker counts as alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self._database = database
        self._lease = lease

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that nothing is read before metrics are collected."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            found = read_backlog(self._database, self._lease)
        except StorageError:  # the process's own metrics are collected all the same
            found = UNKNOWN
        active = GaugeMetricFamily(
            "openassay_runs_active", "Runs not at their end, of all processes.", labels=["status"]
        )
        for status, count in found.runs.items():
            active.add_metric([status], count)
        yield active
        yield GaugeMetricFamily(
            "openassay_queue_oldest_seconds", "For which the first in line has waited.", found.oldest
        )
        yield GaugeMetricFamily("openassay_workers_alive", "Workers that have given a sign lately.", found.workers)
        if isinstance(self._database, ServerDatabase):
            pool = GaugeMetricFamily("openassay_database_connections", "Of this process's pool.", labels=["state"])
            for state, count in self._database.connections().items():
                pool.add_metric([state], count)
            yield pool


MEDIA = CONTENT_TYPE_PLAIN_0_0_4
MAX_NAMES = 100  # of models and providers: callers may name what nobody has; the rest is "other"
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_STAGE_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)  # seconds
_CALL_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)


Family = TypeVar("Family", Counter, Histogram)


class EngineStats(Protocol):
    """What metrics need of an engine."""

    @property
    def settings(self) -> Settings: ...

    def list_running(self) -> list[str]: ...

    def losses(self) -> int: ...


class LossCollector(Collector):
    """Lost leases, counted by the engine: a process that has lost a run may write no event of it."""

    def __init__(self, losses: Callable[[], int]) -> None:
        self._losses = losses

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily("openassay_leases_lost", "Runs lost to other processes.", self._losses())


class Metrics:
    """The metrics of one process: of its engine, and of the database, where the runs of all processes are counted."""

    def __init__(self, engine: EngineStats, database: Database) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of all lines, and nobody reads them
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "openassay_requests", "Requests that were answered.", ("route", "method", "status"), registry=registry
        )
        self._latency = Histogram(
            "openassay_request_seconds",
            "Until an answer was whole; of a stream, until it began.",
            ("route", "method"),
            registry=registry,
        )
        self.streams = Gauge("openassay_streams_open", "Streams of events that are being read.", registry=registry)
        Gauge("openassay_runs_at_work", "Runs this process works on.", registry=registry).set_function(
            lambda: len(engine.list_running())
        )
        self._runs = Counter("openassay_runs", "Runs that came to a status here.", ("status",), registry=registry)
        self._drained = Counter("openassay_runs_drained", "Put back in line, as this process stops.", registry=registry)
        self._rescued = Counter("openassay_runs_rescued", "Gone on with after a process died at it.", registry=registry)
        registry.register(LossCollector(engine.losses))
        self._events = Counter("openassay_events", "Events that were written.", ("kind",), registry=registry)
        self._stages = Histogram(
            "openassay_stage_seconds", "Stages that were ended.", ("stage",), buckets=_STAGE_BUCKETS, registry=registry
        )
        self._calls = Histogram(
            "openassay_outside_seconds",
            "Answers of those outside, waiting for a turn aside.",
            ("kind", "party"),
            buckets=_CALL_BUCKETS,
            registry=registry,
        )
        self._failures = Counter(
            "openassay_outside_failures", "Calls outside that were in vain.", ("kind", "party"), registry=registry
        )
        self._caches = Counter(
            "openassay_cache_lookups", "What caches were asked for.", ("cache", "result"), registry=registry
        )
        self._usd = Counter("openassay_spend_usd", "What was booked, in dollars.", ("kind", "party"), registry=registry)
        self._errors = Counter("openassay_errors", "What went wrong in runs.", ("category",), registry=registry)
        registry.register(BacklogCollector(database, engine.settings.fleet.lease_seconds))
        self._children: dict[tuple[object, ...], Any] = {}
        self._names: set[str] = set()

    def record_request(self, route: str, method: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self._get_series(self._requests, route, method, status).inc()
        self._get_series(self._latency, route, method).observe(seconds)

    def record_event(self, event: Event) -> None:
        """Count an event of a run of this process."""
        self._get_series(self._events, event.kind).inc()
        if event.kind == "run":
            status = event.data.get("status", "")
            self._get_series(self._runs, status).inc()
            if status == RunStatus.QUEUED:
                self._drained.inc()
            if event.data.get("falls"):
                self._rescued.inc()
        elif is_node_exit(event):
            self._get_series(self._stages, event.stage).observe(read_number(event, "seconds"))
        if category := event.data.get("category"):
            self._get_series(self._errors, category).inc()
        call = parse_external_call(event)
        if call is None:
            return
        if call.party in self._names or len(self._names) < MAX_NAMES:
            self._names.add(call.party)
            party = (call.kind, call.party)
        else:
            party = (call.kind, "other")
        if call.seconds is not None:
            self._get_series(self._calls, *party).observe(call.seconds)
        if call.failures:
            self._get_series(self._failures, *party).inc(call.failures)
        if call.usd:
            self._get_series(self._usd, *party).inc(call.usd)
        if call.cached is not None:
            cache = "searches" if call.kind == "search" else "pages"
            self._get_series(self._caches, cache, "hit" if call.cached else "miss").inc(call.failures or 1)

    def _get_series(self, metric: Family, *labels: object) -> Family:
        """Return the series with these labels: looking it up in the metric itself takes 4 µs, more than counting."""
        key = (metric, *labels)
        child: Family | None = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def text(self) -> bytes:
        """Collect all metrics as text. It reads the database: call it in a thread."""
        return generate_latest(self.registry)
