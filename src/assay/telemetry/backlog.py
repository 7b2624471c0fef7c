"""What all processes have before them together, read from the database whenever somebody wants the figures."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from math import nan
from typing import NamedTuple, Protocol, runtime_checkable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from assay.errors import StorageError
from assay.model.event import ACTIVE, RunStatus
from assay.storage.database import Connection, Database, utc_now

# A thread is touched when its run is put in line, and then not before it is taken up.
_RUNS = """
SELECT runs.status, count(*) AS n, min(threads.updated) AS since FROM runs JOIN threads ON threads.id = runs.thread
WHERE runs.status IN ('queued', 'running', 'waiting') GROUP BY runs.status
"""
_IS_THERE = "SELECT to_regclass(?) IS NOT NULL AS there"
_ALIVE = "SELECT count(*) AS n FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => ?)"


@runtime_checkable
class Pooled(Protocol):
    """A database on a server, with connections that are shared."""

    def connections(self) -> Mapping[str, int]: ...


class Standing(NamedTuple):
    runs: Mapping[RunStatus, float]
    oldest: float  # seconds for which the first in line has waited
    workers: float  # alive


UNKNOWN = Standing(dict.fromkeys(ACTIVE, nan), nan, nan)


def standing(database: Database, lease: float) -> Standing:
    with database.connection() as connection:
        rows = {row["status"]: row for row in connection.execute(_RUNS).fetchall()}
        workers = alive(connection, lease) if isinstance(database, Pooled) else 0
    first = rows.get(RunStatus.QUEUED)
    oldest = (utc_now() - datetime.fromisoformat(first["since"])).total_seconds() if first else 0.0
    runs = {status: rows[status]["n"] if status in rows else 0 for status in ACTIVE}
    return Standing(runs, max(oldest, 0.0), workers)


def alive(connection: Connection, lease: float) -> int:
    """Workers that have given a sign in the time of a lease, by the clock of the database; 0 where none ever was."""
    if not connection.execute(_IS_THERE, ("procrastinate_workers",)).fetchone()["there"]:
        return 0
    return int(connection.execute(_ALIVE, (lease,)).fetchone()["n"])


class Backlog(Collector):
    """Asked in the thread that writes the figures down. `lease`: as long a worker is taken for alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self._database = database
        self._lease = lease

    def describe(self) -> list[GaugeMetricFamily]:
        """So that nothing is asked before somebody wants to know."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            found = standing(self._database, self._lease)
        except StorageError:  # what this process knows by itself is told all the same
            found = UNKNOWN
        active = GaugeMetricFamily("assay_runs_active", "Runs not at their end, of all processes.", labels=["status"])
        for status, count in found.runs.items():
            active.add_metric([status], count)
        yield active
        yield GaugeMetricFamily("assay_queue_oldest_seconds", "For which the first in line has waited.", found.oldest)
        yield GaugeMetricFamily("assay_workers_alive", "Workers that have given a sign lately.", found.workers)
        if isinstance(self._database, Pooled):
            pool = GaugeMetricFamily("assay_database_connections", "Of this process's pool.", labels=["state"])
            for state, count in self._database.connections().items():
                pool.add_metric([state], count)
            yield pool
