"""What is recorded and shown of a run: who asked, where the time went, who outside was slow, what the caches knew."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Event
from time import sleep
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from openassay.models.user import Scope
from openassay.server.app import RunningServer
from openassay.settings import load
from openassay.telemetry import logs
from tests.scenario.outside import GOAL, GPT, SLOW, outside
from tests.scenario.server.asking import asked, researched, standing
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import listening


@pytest.fixture
def abroad(serve: Open, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A server whose model, search and pages are real ones on this machine."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")

    @asynccontextmanager
    async def opened() -> AsyncIterator[RunningServer]:
        async with outside() as settings:
            yield await serve(**settings)

    return opened


def samples(text: str) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) -> value."""
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(one.name, *(one.labels[name] for name in sorted(one.labels))): one.value for one in found}


def lines(stream: io.StringIO, logger: str) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [line for line in told if line["logger"] == logger]


async def timed(client: httpx2.AsyncClient, thread: str, **params: str) -> dict[str, Any]:
    answer = await client.get(f"/api/threads/{thread}/timings", params=params)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def at_rest(client: httpx2.AsyncClient) -> httpx2.Response:
    """The figures once nothing is at work: a run has told that it is done a moment before it is put away."""
    async with asyncio.timeout(30):
        while True:
            shown = await client.get("/metrics")
            if samples(shown.text)["openassay_runs_at_work",] == 0:
                return shown
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.requirement("W-13")
async def test_a_run_tells_where_its_time_went_and_the_server_and_its_log_tell_the_same(
    abroad: Callable[..., Any], http: Http
) -> None:
    log = io.StringIO()
    async with abroad() as server:
        with logs.configure_logs(server.service.settings, log):
            client = http(server)
            client.headers["X-Request-ID"] = "the-first"
            first = await researched(client, GOAL)
            client.headers["X-Request-ID"] = "the-second"
            second = await researched(client, GOAL)
            told, again = await timed(client, first), await timed(client, second)
            shown = await at_rest(client)

    assert (told["thread"], told["request"], again["request"]) == (first, "the-first", "the-second")
    assert told["status"] == "done"
    stages = {one["stage"]: one for one in told["stages"]}
    assert list(stages)[:3] == ["understand", "gate", "plan"]
    assert all(one["count"] >= 1 and one["unfinished"] == 0 for one in stages.values())
    assert SLOW <= stages["search"]["longest"] <= stages["search"]["seconds"]
    assert stages["understand"]["seconds"] <= told["seconds"]["working"] <= told["seconds"]["total"]

    parties = {(one["kind"], one["party"]): one for one in told["parties"]}
    search, model, pages = parties["search", "searxng"], parties["model", GPT], parties["pages", "other"]
    assert search["calls"] >= 3
    assert SLOW <= search["median"] <= search["longest"] < SLOW + 2  # without its waiting for a turn
    assert (model["failures"], pages["failures"]) == (1, 1)
    assert model["calls"] >= 3
    assert model["usd"] > 0
    assert 0 < model["median"] <= model["longest"]
    assert pages["calls"] == 1
    assert told["errors"] == {"api": 1}

    before, caches = ({one["cache"]: one for one in run["caches"]} for run in (told, again))
    assert before["searches"]["rate"] < 0.5
    assert before["pages"]["rate"] == 0.0
    assert caches["searches"]["rate"] == caches["pages"]["rate"] == 1.0
    assert caches["searches"]["hits"] == caches["searches"]["asked"] >= 3
    assert not [one for one in again["parties"] if one["kind"] == "search"]  # nobody was asked

    figures = samples(shown.text)
    assert shown.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert figures["openassay_requests_total", "POST", "/api/threads/start", "200"] == 2
    assert figures["openassay_request_seconds_count", "POST", "/api/threads/start"] == 2
    assert figures["openassay_runs_total", "done"] == figures["openassay_runs_total", "running"] == 2
    assert figures["openassay_runs_at_work",] == figures["openassay_runs_active", "queued"] == 0
    assert figures["openassay_outside_seconds_count", "search", "searxng"] == search["calls"]
    assert figures["openassay_outside_failures_total", "model", GPT] == 1
    assert (
        figures["openassay_cache_lookups_total", "searches", "hit"]
        == caches["searches"]["hits"] + before["searches"]["hits"]
    )
    assert figures["openassay_stage_seconds_count", "plan"] == 2
    spent = sum(one["usd"] for run in (told, again) for one in run["parties"])
    assert figures["openassay_spend_usd_total", "model", GPT] == pytest.approx(spent)
    assert figures["openassay_errors_total", "api"] == 1
    assert sum(value for (name, *_), value in figures.items() if name == "openassay_events_total") == (
        told["events"] + again["events"]
    )
    assert first not in shown.text
    assert "127.0.0.1" not in shown.text

    runs = lines(log, "openassay.runs")
    assert [(one["request"], one["thread"], one["status"]) for one in runs] == [
        ("the-first", first, "running"), ("the-first", first, "done"),
        ("the-second", second, "running"), ("the-second", second, "done"),
    ]  # fmt: skip
    [looked] = [
        one for one in lines(log, "openassay.requests") if one.get("thread") == first and "timings" in one["route"]
    ]
    assert looked["route"] == "/api/threads/{threadId}/timings"
    assert (looked["method"], looked["status"], looked["user"]) == ("GET", 200, "local")
    assert looked["request"] == "the-second"
    assert looked["ms"] > 0
    assert any(one["request"] == "the-first" and one["message"].startswith(GPT) for one in lines(log, "openassay.llm"))


@pytest.mark.slow
@pytest.mark.requirement("W-13")
async def test_waiting_for_a_person_is_told_apart_and_a_run_can_be_looked_at_half_way(serve: Open, http: Http) -> None:
    client = http(await serve())
    thread = str((await asked(client, modeOverride="plan"))["threadId"])
    assert (await standing(client, thread))["status"] == "waiting"
    open_ = await timed(client, thread)
    assert (open_["status"], open_["attempts"]) == ("waiting", 1)
    assert open_["seconds"]["waiting"] > 0
    assert {one["stage"]: one["unfinished"] for one in open_["stages"]}["question"] == 1
    figures = samples((await client.get("/metrics")).text)
    assert figures["openassay_runs_active", "waiting"] == 1

    await client.patch(f"/api/threads/{thread}/mode", json={"mode": "auto"})
    assert (await standing(client, thread))["status"] == "done"
    done = await timed(client, thread, run=open_["run"])
    assert done["attempts"] == 2
    assert done["seconds"]["waiting"] >= open_["seconds"]["waiting"]
    assert done["seconds"]["working"] > open_["seconds"]["working"]


@pytest.mark.slow
@pytest.mark.requirement("W-13")
async def test_figures_are_for_whoever_may_see_them(serve: Open, http: Http) -> None:
    server = await serve()
    owner, other = http(server, await token_of(server, "ada")), http(server, await token_of(server, "bea"))
    watcher = http(server, await token_of(server, "eve", Scope.METRICS))
    thread, others = await researched(owner), await researched(other)
    run = (await timed(other, others))["run"]
    assert (await other.get(f"/api/threads/{thread}/timings")).status_code == 404
    stolen = await owner.get(f"/api/threads/{thread}/timings", params={"run": run})
    unknown = await owner.get(f"/api/threads/{thread}/timings", params={"run": "0" * 12})
    assert stolen.status_code == unknown.status_code == 404
    assert stolen.json()["detail"].replace(run, "") == unknown.json()["detail"].replace("0" * 12, "")
    assert (await owner.get("/metrics")).status_code == 403
    assert (await watcher.get("/metrics")).status_code == 200
    assert (await watcher.get(f"/api/threads/{thread}/timings")).status_code == 403


@pytest.mark.slow
async def test_whatever_is_asked_for_the_number_of_series_stays_bounded(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    for n in range(20):
        await client.get(f"/nothing/{n}")
        await client.get(f"/api/threads/{n}/timings")
        await client.request(f"METHOD{n}", "/healthz")
        await client.post("/mcp", json={})
        await client.get("/mcp")
    figures = samples((await client.get("/metrics")).text)
    assert figures["openassay_requests_total", "GET", "unmatched", "404"] == 20
    assert figures["openassay_requests_total", "GET", "/api/threads/{threadId}/timings", "404"] == 20
    assert figures["openassay_requests_total", "GET", "/mcp", "405"] == 20
    assert ("openassay_requests_total", "POST", "unmatched", "406") not in figures
    assert len([name for name, *_ in figures if name == "openassay_requests_total"]) <= 6


async def test_a_stream_is_counted_while_it_is_read_and_timed_until_it_began(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    thread = str((await asked(client, modeOverride="plan"))["threadId"])
    async with listening(client, thread) as events:
        await anext(events)
        during = samples((await client.get("/metrics")).text)
    after = samples((await client.get("/metrics")).text)
    assert (during["openassay_streams_open",], after["openassay_streams_open",]) == (1, 0)


async def test_no_query_and_no_secret_is_logged(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-0123456789abcdefghij")
    log = io.StringIO()
    server = await serve(log_level="info")
    with logs.configure_logs(server.service.settings, log):
        client = http(server, "openassay_12345678_not-a-token-but-shaped-like-one")
        await client.get("/api/threads", params={"cursor": "look-for-me"}, headers={"X-Other": "and-me"})
        logs.log_request(200, user="tvly-0123456789abcdefghij")
    told = log.getvalue()
    assert len(lines(log, "openassay.requests")) == 2
    for secret in ("look-for-me", "and-me", "not-a-token", "tvly-0123456789"):
        assert secret not in told


def test_a_log_that_nobody_reads_stops_nobody_and_tells_what_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LINES", 3)
    read = Event()

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            read.wait(10)
            return super().write(text)

    log = Pipe()
    with logs.configure_logs(load(log_level="info"), log):
        for _ in range(50):
            logs.log_request(200, method="GET")
        read.set()
        while not log.getvalue():
            sleep(0.01)
        logs.log_request(200, method="GET")
    told = lines(log, "openassay.requests")
    [lost] = lines(log, "openassay")
    assert int(lost["message"].partition(" ")[0]) == 51 - len(told)
    assert 4 <= len(told) < 51


def test_a_log_that_nobody_reads_does_not_keep_the_server_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CLOSE_SECONDS", 0.1)
    read = Event()

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            written.append(read.wait(60))
            return super().write(text)

    written: list[bool] = []
    with logs.configure_logs(load(log_level="info"), Pipe()):
        logs.log_request(200, method="GET")
    assert written == [], "it ended before the log was read"
    read.set()
