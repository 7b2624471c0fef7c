"""The figures that are told, and the dashboard that shows them."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from openassay.models.event import Event, EventKind
from openassay.models.thread import Run
from openassay.settings import Settings, load
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sqlite import SqliteDatabase
from openassay.telemetry.metrics import MAX_NAMES, Metrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
RUN = Run(id="9e0b6a1c55d2", thread="4f1c2a9b7d3e", question="Why?", started=NOW - timedelta(seconds=5))


# Figures ---------------------------------------------------------------------------------------------


class Engine:
    def __init__(self, **settings: Any) -> None:
        self.settings: Settings = load(**settings)
        self.watchers: list[Callable[[Event], None]] = []
        self.lost = 0

    def list_running(self) -> list[str]:
        return ["one"]

    def losses(self) -> int:
        return self.lost


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "openassay.sqlite3")
    yield database
    database.close()


def busy(metrics: Metrics) -> None:
    """Every series has been told of once."""
    events: list[tuple[EventKind, str, dict[str, object]]] = [
        ("run", "", {"status": "running", "falls": 1}),
        ("run", "", {"status": "queued"}),
        ("leave", "plan", {"seconds": 0.5}),
        ("spend", "plan", {"model": "openai:gpt-4o", "step": "plan", "usd": 0.1, "seconds": 1.0, "confirmed": True}),
        ("search", "search", {"source": "tavily", "remote": True, "cached": False, "seconds": 0.1}),
        ("error", "search", {"source": "tavily", "category": "api"}),
    ]
    for seq, (kind, stage, data) in enumerate(events, 1):
        metrics.record_event(Event(seq=seq, run=RUN.id, time=NOW, kind=kind, stage=stage, data=data))
    metrics.record_request("/healthz", "GET", 200, 0.01)


def series(metrics: Metrics) -> dict[str, set[str]]:
    """The names of labels, by the name of a series."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


@pytest.mark.requirement("W-13")
def test_what_becomes_of_runs_between_processes_is_counted(file: SqliteDatabase) -> None:
    engine = Engine()
    metrics = Metrics(engine, file)
    busy(metrics)
    engine.lost = 2
    assert value(metrics, "openassay_runs_rescued_total") == 1
    assert value(metrics, "openassay_runs_drained_total") == 1
    assert value(metrics, "openassay_leases_lost_total") == 2
    assert value(metrics, "openassay_runs_at_work") == 1
    assert value(metrics, "openassay_runs_active", status="queued") == 0
    assert value(metrics, "openassay_queue_oldest_seconds") == 0
    for n in range(2 * MAX_NAMES):
        metrics.record_event(
            Event(run=RUN.id, time=NOW, kind="notice", data={"failed": f"openai:model-{n}", "category": "api"})
        )
    assert (
        len({line for line in metrics.text().splitlines() if b"openassay_outside_failures_total{" in line})
        <= MAX_NAMES + 1
    )
    file.close()
    assert str(value(metrics, "openassay_runs_active", status="queued")) == "nan"
    assert b"openassay_runs_at_work 1.0" in metrics.text(), "what the process knows by itself is told all the same"


@pytest.mark.slow
@pytest.mark.requirement("W-13")
def test_the_queue_is_counted_on_a_server(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as database:
        metrics = Metrics(Engine(), database)
        assert value(metrics, "openassay_workers_alive") == 0, "there is no such table yet"
        since = (datetime.now(UTC) - timedelta(seconds=90)).isoformat(timespec="microseconds")
        with database.transaction() as connection:
            connection.execute("CREATE TABLE procrastinate_workers (id bigint, last_heartbeat timestamptz)")
            connection.execute("INSERT INTO procrastinate_workers VALUES (1, now()), (2, now() - interval '1 hour')")
            for thread, status in (("a", "queued"), ("b", "running"), ("c", "done")):
                connection.execute(
                    "INSERT INTO threads (id, title, created, updated, seal) VALUES (?, '', ?, ?, '')",
                    (thread, since, since),
                )
                connection.execute(
                    "INSERT INTO runs (id, thread, question, status, stage, started, settings, options, seal) "
                    "VALUES (?, ?, '', ?, '', ?, '', '', '')",
                    (thread, thread, status, since),
                )
        assert value(metrics, "openassay_workers_alive") == 1
        assert value(metrics, "openassay_runs_active", status="queued") == 1
        assert value(metrics, "openassay_runs_active", status="running") == 1
        assert 90 <= (value(metrics, "openassay_queue_oldest_seconds") or 0) < 600
        with database.connection():
            assert value(metrics, "openassay_database_connections", state="in_use") == 1
        assert value(metrics, "openassay_database_connections", state="waiting") == 0


# The dashboard ---------------------------------------------------------------------------------------

SCRAPED = {"instance", "job"}  # Prometheus adds these
NOT_METRICS = {"by", "sum", "max", "rate", "increase", "histogram_quantile", "topk"}


def asked_for(expression: str) -> tuple[dict[str, set[str]], set[str]]:
    """The labels that each series is chosen by, and those that all are grouped by."""
    grouped = {name for labels in re.findall(r"\bby\s*\(([^)]*)\)", expression) for name in re.findall(r"\w+", labels)}
    rest = re.sub(r"\bby\s*\([^)]*\)", " ", re.sub(r"\[[^]]*\]", " ", expression))
    chosen = {
        name: set(re.findall(r"(\w+)\s*[=!]~?", labels or ""))
        for name, labels in re.findall(r"\b([a-z]\w*)\b(?:\{([^}]*)\})?", re.sub(r'"[^"]*"', '""', rest))
    }
    return {name: labels for name, labels in chosen.items() if name not in NOT_METRICS}, grouped


def panels() -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads((DEPLOY / "grafana/dashboards/openassay.json").read_text("utf-8"))[
        "panels"
    ]
    return shown


@pytest.mark.requirement("W-13")
def test_every_panel_asks_for_figures_that_there_are(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as database:
        metrics = Metrics(Engine(), database)
        busy(metrics)
        there = series(metrics)
    asked: set[str] = set()
    for panel in panels():
        for target in panel.get("targets", []):
            chosen, grouped = asked_for(target["expr"])
            assert chosen, target["expr"]
            for name, labels in chosen.items():
                assert name in there, f"{panel['title']}: {name}"
                assert labels | grouped <= there[name] | SCRAPED, f"{panel['title']}: {name}"
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped | SCRAPED, panel["title"]
            asked |= set(chosen)
    stems = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in asked}
    ours = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in there if name.startswith("openassay_")}
    assert ours - stems == {"openassay_events"}, "every other figure is shown"


def test_every_figure_is_documented(postgres_address: str) -> None:
    page = (DEPLOY.parent / "docs/howto/observability.md").read_text("utf-8")
    with PostgresDatabase(postgres_address) as database:
        metrics = Metrics(Engine(), database)
        busy(metrics)
        families = {family.name for family in metrics.registry.collect() if family.name.startswith("openassay_")}
    documented = set(re.findall(r"`(openassay_\w+?)(?:_total)?`", page))
    assert families == documented


def test_the_dashboard_can_be_read_by_grafana() -> None:
    shown = panels()
    assert len({panel["id"] for panel in shown}) == len(shown)
    assert len({panel["title"] for panel in shown}) == len(shown)
    taken: set[tuple[int, int]] = set()
    for panel in shown:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            letters = [target["refId"] for target in panel["targets"]]
            assert len(set(letters)) == len(letters)
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}


def test_what_prometheus_asks_is_what_is_served() -> None:
    jobs = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    assert [job["job_name"] for job in jobs] == ["server", "worker"]
    assert all("metrics_path" not in job for job in jobs), "/metrics is where everybody looks"
    assert jobs[0]["authorization"]["credentials_file"]
    for name in ("datasources/prometheus.yml", "dashboards/openassay.yml"):
        assert yaml.safe_load((DEPLOY / "grafana" / name).read_text("utf-8"))["apiVersion"] == 1
