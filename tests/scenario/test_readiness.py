"""Whether all is there that the settings name, and how a process that serves nothing else shows it."""

import asyncio
import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from time import time
from typing import Any

import httpx2
import pytest
import typer

from openassay.cli import admin
from openassay.errors import ConfigurationError, OpenAssayError, StorageError
from openassay.models.event import Event
from openassay.settings import Settings, load
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sqlite import SqliteDatabase
from openassay.telemetry import health, traces
from openassay.telemetry.endpoint import open_endpoint
from openassay.telemetry.health import HealthCheck, Readiness, list_checks, needs_redis


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


# Health ----------------------------------------------------------------------------------------------


def check(name: str, *, is_soft: bool = False, error: Exception | None = None) -> HealthCheck:
    def look() -> str:
        if error is not None:
            raise error
        return "there"

    return HealthCheck(name, f"no {name}", look, is_soft)


async def test_what_can_be_done_without_keeps_nobody_from_working(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "SOFT_CHECK_SECONDS", 30.0)
    gone = StorageError("redis://:password@host is gone", help="Start it.")
    looked = Readiness([check("database"), check("redis", is_soft=True, error=gone)])
    assert await looked.summarise() == ([], ["no redis"])
    assert await looked.summarise() == ([], ["no redis"])
    assert caplog.text.count("degraded: no redis") == 1
    broken = Readiness([check("data", error=OSError(28, "No space left")), check("traces", is_soft=True)])
    assert await broken.summarise() == (["no data"], [])
    [data, collector] = await broken.collect_findings()
    assert (data.good, data.detail, collector.good) == (False, "No space left", True)


async def test_a_check_that_hangs_is_waited_for_only_where_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(health, "SOFT_CHECK_SECONDS", 0.05)
    ends = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang() -> str:
        asyncio.run_coroutine_threadsafe(ends.wait(), loop).result(20)
        return "there"

    looked = Readiness([HealthCheck("one", "no one", hang), HealthCheck("other", "no other", hang, is_soft=True)])
    assert await looked.summarise() == (["no one"], [])
    ends.set()


@pytest.mark.requirement("W-13")
def test_everything_the_settings_name_is_looked_at(
    file: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(**settings: Any) -> set[str]:
        return {one.name for one in list_checks(load(**settings), tmp_path, file)}

    usual = {"data", "space", "journal", "database", "encryption", "reasoner", "sources", "browser"}
    assert named() == usual
    assert named(telemetry={"traces": "otlp"}) == usual | {"traces"}
    assert named(cache={"backend": "redis"}) == usual | {"redis"}
    assert named(llm={"model": "llamacpp:default", "base_url": "http://127.0.0.1:9/v1"}) == usual | {"model server"}
    assert named(persistence={"journal": False}) == usual - {"journal"}
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert needs_redis(load())
    assert not needs_redis(load(fleet={"signals": "process"}))


@pytest.mark.slow
def test_a_server_that_is_named_is_looked_at_as_a_whole(postgres_address: str, tmp_path: Path) -> None:
    with PostgresDatabase(postgres_address) as database:
        given = load(
            server={"runs": "workers"}, persistence={"backend": "postgres", "connection_string": postgres_address}
        )
        found = {one.name: one for one in list_checks(given, tmp_path, database)}
        assert "PostgreSQL 18" in found["database"].look()
        assert re.fullmatch(r"[+-]0\.\d\d s from the database's", found["clock"].look())
        with pytest.raises(StorageError, match="none has reported") as alone:
            found["workers"].look()
        assert "openassay worker" in alone.value.help
        with database.transaction() as connection:
            connection.execute(
                "DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)"
            )
        with pytest.raises(StorageError, match="this OpenAssay works with") as old:
            found["database"].look()
        assert "openassay admin db migrate" in old.value.help


def test_clocks_that_differ_are_told(postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PostgresDatabase(postgres_address) as database:
        [clock] = [one for one in list_checks(load(), tmp_path, database) if one.name == "clock"]
        monkeypatch.setattr("openassay.telemetry.health.time", lambda: time() + 3)
        with pytest.raises(StorageError, match=r"\+3\.\d s from the database's"):
            clock.look()
    assert clock.is_soft


@pytest.mark.slow
def test_nothing_that_is_gone_is_taken_for_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "PROBE_SECONDS", 0.2)
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("REDIS_URL", f"redis://:secret-7-password@127.0.0.1:{port}/0")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        given = load(
            telemetry={"traces": "otlp"}, llm={"model": "llamacpp:default", "base_url": f"http://127.0.0.1:{port}/v1"},
            persistence={"encrypt": True}, harvest={"browser": "playwright", "browser_path": "/nowhere"},
            search={"searxng_url": f"http://127.0.0.1:{port}"},
        )  # fmt: skip
        found = {one.name: one for one in list_checks(given, tmp_path / "nowhere", None)}
        for name in ("redis", "traces", "model server", "encryption", "browser", "sources", "data"):
            with pytest.raises((OpenAssayError, OSError)) as gone:
                found[name].look()
            assert "secret-7" not in str(gone.value), name
    assert {name for name, one in found.items() if not one.is_soft} == {"data", "encryption"}


async def test_a_worker_shows_its_figures_and_its_health(file: SqliteDatabase, tmp_path: Path) -> None:
    engine = Engine(fleet={"metrics_port": 0})
    async with open_endpoint(engine, tmp_path, file, []) as address:
        assert address
        assert len(engine.watchers) == 2
        async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=30) as client:
            figures = await client.get("/metrics")
            assert figures.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert "openassay_runs_at_work 1.0" in figures.text
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["degraded"]) == (200, ["no source can be asked"])
            assert (await client.get("/other")).status_code == 404
            assert (await client.post("/metrics")).status_code == 405
            file.close()
            engine.lost = 3
            await asyncio.sleep(health.FRESH_SECONDS)
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["problems"]) == (503, ["the database does not answer"])
            assert str(tmp_path) not in ready.text
            assert "openassay_leases_lost_total 3.0" in (await client.get("/metrics")).text
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(b"GET /" + b"x" * 100_000 + b"\r\n\r\n")
        assert await reader.read() == b"", "whoever says too much is told nothing"
        writer.close()


async def test_no_port_no_figures_and_one_that_is_taken_is_told(file: SqliteDatabase, tmp_path: Path) -> None:
    async with open_endpoint(Engine(), tmp_path, file, ()) as address:
        assert address is None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        engine = Engine(fleet={"metrics_port": taken.getsockname()[1]})
        with pytest.raises(ConfigurationError, match="cannot serve metrics") as refused:
            async with open_endpoint(engine, tmp_path, file, ()):
                pass
    assert "fleet.metrics_port" in refused.value.help


def test_the_doctor_tells_what_is_bad_from_what_is_weak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(admin, "CHECKS", (admin.check_dependencies,))
    monkeypatch.setenv("REDIS_URL", "redis://:secret-7-password@127.0.0.1:1/0")
    monkeypatch.setenv("OPENASSAY_CACHE__BACKEND", "redis")
    monkeypatch.setenv("OPENASSAY_OFFLINE", "true")
    with pytest.raises(typer.Exit) as weak:
        admin.doctor(json=False)
    shown = capsys.readouterr().out
    assert weak.value.exit_code == 0, shown
    assert re.search(r"^WEAK redis +it cannot be asked \(ConnectionError\)\n +Check that it runs", shown, re.M), shown
    assert re.search(r"^ok   data +", shown, re.M)
    assert "BAD" not in shown
    assert "secret-7" not in shown

    monkeypatch.setenv("OPENASSAY_PERSISTENCE__ENCRYPT", "true")
    with pytest.raises(typer.Exit) as bad:
        admin.doctor(json=True)
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert bad.value.exit_code == 1
    assert (found["encryption"]["good"], found["encryption"]["soft"]) == (False, False)
    assert "OPENASSAY_STORAGE_KEY" in found["encryption"]["help"]
    assert (found["redis"]["good"], found["redis"]["soft"]) == (False, True)


@pytest.mark.requirement("W-13")
def test_the_doctor_looks_at_a_whole_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(admin, "CHECKS", (admin.check_database, admin.check_dependencies))
    monkeypatch.setenv("DATABASE_URL", postgres_address)
    monkeypatch.setenv("OPENASSAY_PERSISTENCE__BACKEND", "postgres")
    monkeypatch.setenv("OPENASSAY_SERVER__RUNS", "workers")
    monkeypatch.setenv("OPENASSAY_OFFLINE", "true")
    with pytest.raises(typer.Exit) as told:
        admin.doctor(json=True)
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert told.value.exit_code == 0, found
    assert {name for name, one in found.items() if not one["good"]} == {"workers"}
    assert found["workers"]["help"] == "Start one: openassay worker"
    assert "the database's" in found["clock"]["detail"]
    assert "demo" in found["sources"]["detail"]
