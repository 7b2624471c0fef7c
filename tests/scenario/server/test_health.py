"""Whether the server lives, and whether it can work."""

import asyncio
import socket
from pathlib import Path
from threading import Event

import pytest
import uvicorn

from openassay.errors import ConfigurationError, OpenAssayError
from openassay.server.app import open_server
from openassay.settings import load
from openassay.telemetry import health, traces
from tests.scenario.server.conftest import Http, Open, token_of


@pytest.mark.slow
async def test_it_answers(serve: Open, http: Http) -> None:
    client = http(await serve())
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer.headers["X-Request-ID"]
    missing = await client.get("/api/nothing")
    assert missing.headers["Content-Type"] == "application/problem+json"
    assert missing.json()["status"] == 404


async def test_it_is_ready(serve: Open, http: Http) -> None:
    answer = await http(await serve()).get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "degraded": []})


@pytest.mark.slow
@pytest.mark.requirement("W-13")
async def test_what_it_can_do_without_is_told_and_keeps_nobody_away(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache and a collector that are gone: runs go on."""
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("REDIS_URL", f"redis://:secret-7-password@127.0.0.1:{port}/0")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setattr(traces, "CLOSE_SECONDS", 0.1)
        client = http(await serve(cache={"backend": "redis"}, telemetry={"traces": "otlp"}))
        expected = ["the Redis server does not answer", "the collector of traces does not answer"]
        async with asyncio.timeout(30):
            while (answer := await client.get("/readyz")).json()["degraded"] != expected:
                assert answer.status_code == 200, answer.text
                await asyncio.sleep(0.1)
        assert answer.json()["status"] == "degraded"
        assert "secret-7" not in answer.text
        assert str(port) not in answer.text


async def test_what_it_lacks_is_named(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await serve()
    client = http(server)
    monkeypatch.setattr(server.service.dispatcher, "is_alive", lambda: False)
    server.service.resources.rows.database.close()
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "the database does not answer" in answer.json()["detail"]
    assert "no worker is picking up runs" in answer.json()["detail"]
    assert "writ" not in answer.json()["detail"]
    assert (await client.get("/healthz")).status_code == 200


async def test_however_many_ask_it_is_looked_at_once(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that hangs would otherwise have every thread there is, one for each who asks."""
    looked, hang = [], Event()

    def ask(database: object) -> str:
        looked.append(database)
        hang.wait(20)
        return "there"

    monkeypatch.setattr(health, "_check_database", ask)
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    client = http(await serve(server={"requests_per_minute": 12}))
    answers = [*await asyncio.gather(*(client.get("/readyz") for _ in range(5))), await client.get("/readyz")]
    hang.set()
    assert [answer.status_code for answer in answers] == [503] * 6
    assert len(looked) == 1

    monkeypatch.setattr(health, "CHECK_SECONDS", 5.0)
    assert (await client.get("/readyz")).status_code == 200
    monkeypatch.setattr(health, "FRESH_SECONDS", 20.0)
    before = len(looked)
    assert [(await client.get("/readyz")).status_code for _ in range(5)] == [200] * 5
    assert len(looked) == before
    assert (await client.get("/readyz")).status_code == 429, "who has no name is counted too"
    assert (await client.get("/healthz")).status_code == 200


async def test_a_data_directory_that_is_gone_is_named(serve: Open, http: Http, tmp_path: Path) -> None:
    server = await serve(tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    answer = await http(server).get("/readyz")
    assert answer.status_code == 503
    assert "the data directory cannot be written to" in answer.json()["detail"]
    assert str(tmp_path) not in answer.text
    (tmp_path / "elsewhere").rename(tmp_path / "data")


@pytest.mark.slow
async def test_only_this_machine_is_let_in_before_anybody_has_a_token(serve: Open, tmp_path: Path) -> None:
    everywhere = load(data_dir=tmp_path, server={"host": "0.0.0.0", "port": 0})  # noqa: S104
    with pytest.raises(ConfigurationError, match="only this machine") as refused:
        async with open_server(everywhere):
            pass
    assert "openassay admin users add" in refused.value.help
    home = await serve()
    await token_of(home, "ann")
    async with open_server(everywhere) as server:
        assert not server.service.open_to_all


@pytest.mark.parametrize("error", [OSError("no memory"), None])
async def test_a_server_that_cannot_begin_is_told(
    serve: Open, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def startup(server: uvicorn.Server, sockets: object = None) -> None:
        server.should_exit = True
        if error:
            raise error

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    with pytest.raises((OSError, OpenAssayError), match="no memory" if error else "could not be started"):
        await serve()


async def test_a_port_that_is_taken_is_told(serve: Open, tmp_path: Path) -> None:
    port = int((await serve()).url.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match=f"port {port}") as refused:
        async with open_server(load(data_dir=tmp_path, server={"port": port})):
            pass
    assert "--port" in refused.value.help
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1"):
        async with open_server(load(data_dir=tmp_path, server={"host": "192.0.2.1", "port": 0})):
            pass
