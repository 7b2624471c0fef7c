"""Metrics for Prometheus, of a server or a worker: its requests, how its runs go, whom they ask, what they cost.

Nothing is labelled by thread, user or address, so that the number of series stays bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from math import nan
from typing import Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from openassay.engine.timings import is_node_exit, parse_external_call, read_number
from openassay.errors import StorageError
from openassay.models.base import utc_now
from openassay.models.event import ACTIVE, Event, RunStatus
from openassay.settings import Settings
from openassay.storage.database import Connection, Database

# A thread is touched when its run is queued, and then not before it is claimed.
_RUNS = """
SELECT runs.status, count(*) AS n, min(threads.updated) AS since FROM runs JOIN threads ON threads.id = runs.thread
WHERE runs.status IN ('queued', 'running', 'waiting') GROUP BY runs.status
"""
_ALIVE = "SELECT count(*) AS n FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => ?)"


@runtime_checkable
class ServerDatabase(Protocol):
    """A database on a server, with connections that are shared."""

    def connections(self) -> Mapping[str, int]: ...


def count_live_workers(connection: Connection, lease: float) -> int:
    """Count the workers that reported in the time of a lease, by the clock of the database; 0 where none ever was."""
    if not has_table(connection, "procrastinate_workers"):
        return 0
    return int(connection.execute(_ALIVE, (lease,)).fetchone()["n"])


def has_table(connection: Connection, name: str) -> bool:
    return bool(connection.execute("SELECT to_regclass(?) IS NOT NULL AS there", (name,)).fetchone()["there"])


class BacklogCollector(Collector):
    """What all processes together have to do, read when metrics are collected. `lease` is for how long a worker counts
    as alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self._database = database
        self._lease = lease

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that nothing is read before metrics are collected."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        runs, oldest, workers = dict.fromkeys(ACTIVE, nan), nan, nan
        is_server = isinstance(self._database, ServerDatabase)
        with suppress(StorageError), self._database.connection() as connection:  # the others are collected all the same
            rows = {row["status"]: row for row in connection.execute(_RUNS).fetchall()}
            workers = count_live_workers(connection, self._lease) if is_server else 0
            first = rows.get(RunStatus.QUEUED)
            oldest = max((utc_now() - datetime.fromisoformat(first["since"])).total_seconds(), 0.0) if first else 0.0
            runs = {status: rows[status]["n"] if status in rows else 0 for status in ACTIVE}
        active = GaugeMetricFamily(
            "openassay_runs_active", "Runs not at their end, of all processes.", labels=["status"]
        )
        for status, count in runs.items():
            active.add_metric([status], count)
        yield active
        yield GaugeMetricFamily("openassay_queue_oldest_seconds", "For which the first in line has waited.", oldest)
        yield GaugeMetricFamily("openassay_workers_alive", "Workers that have given a sign lately.", workers)
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


class ObservableEngine(Protocol):
    @property
    def settings(self) -> Settings: ...

    @property
    def watchers(self) -> list[Callable[[Event], None]]: ...

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

    def __init__(self, engine: ObservableEngine, database: Database) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of all lines, and nobody reads them
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._requests = counter("openassay_requests", "Requests that were answered.", ("route", "method", "status"))
        whole = "Until an answer was whole; of a stream, until it began."
        self._latency = histogram("openassay_request_seconds", whole, ("route", "method"))
        self.streams = Gauge("openassay_streams_open", "Streams of events that are being read.", registry=registry)
        at_work = Gauge("openassay_runs_at_work", "Runs this process works on.", registry=registry)
        at_work.set_function(lambda: len(engine.list_running()))
        self._runs = counter("openassay_runs", "Runs that came to a status here.", ("status",))
        self._drained = counter("openassay_runs_drained", "Put back in line, as this process stops.")
        self._rescued = counter("openassay_runs_rescued", "Gone on with after a process died at it.")
        registry.register(LossCollector(engine.losses))
        self._events = counter("openassay_events", "Events that were written.", ("kind",))
        ended = "Stages that were ended."
        self._stages = histogram("openassay_stage_seconds", ended, ("stage",), buckets=_STAGE_BUCKETS)
        answers, party = "Answers of those outside, waiting for a turn aside.", ("kind", "party")
        self._calls = histogram("openassay_outside_seconds", answers, party, buckets=_CALL_BUCKETS)
        self._failures = counter("openassay_outside_failures", "Calls outside that were in vain.", party)
        self._caches = counter("openassay_cache_lookups", "What caches were asked for.", ("cache", "result"))
        self._usd = counter("openassay_spend_usd", "What was booked, in dollars.", party)
        self._errors = counter("openassay_errors", "What went wrong in runs.", ("category",))
        registry.register(BacklogCollector(database, engine.settings.fleet.lease_seconds))
        self._names: set[str] = set()

    def record_request(self, route: str, method: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self._requests.labels(route, method, status).inc()
        self._latency.labels(route, method).observe(seconds)

    def record_event(self, event: Event) -> None:
        self._events.labels(event.kind).inc()
        if event.kind == "run":
            status = event.data.get("status", "")
            self._runs.labels(status).inc()
            if status == RunStatus.QUEUED:
                self._drained.inc()
            if event.data.get("falls"):
                self._rescued.inc()
        elif is_node_exit(event):
            self._stages.labels(event.stage).observe(read_number(event, "seconds"))
        if category := event.data.get("category"):
            self._errors.labels(category).inc()
        call = parse_external_call(event)
        if call is None:
            return
        if call.party in self._names or len(self._names) < MAX_NAMES:
            self._names.add(call.party)
            party = (call.kind, call.party)
        else:
            party = (call.kind, "other")
        if call.seconds is not None:
            self._calls.labels(*party).observe(call.seconds)
        if call.failures:
            self._failures.labels(*party).inc(call.failures)
        if call.usd:
            self._usd.labels(*party).inc(call.usd)
        if call.cached is not None:
            cache = "searches" if call.kind == "search" else "pages"
            self._caches.labels(cache, "hit" if call.cached else "miss").inc(call.failures or 1)

    def text(self) -> bytes:
        """Collect all metrics as text. It reads the database: call it in a thread."""
        return generate_latest(self.registry)
