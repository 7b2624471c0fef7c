"""What a collector of traces is told of runs and requests, over real HTTP."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.errors import ConfigurationError
from openassay.models.event import RunStatus
from openassay.models.thread import ResearchOptions
from openassay.server.app import open_server
from openassay.settings import load
from openassay.telemetry import traces
from openassay.worker.worker import open_worker
from tests.scenario.collector import Collector, Told, collecting
from tests.scenario.outside import GOAL, SLOW, outside
from tests.scenario.server.asking import researched

KEY = "c0ffee-and-more-than-that"
TESLA = "What's happening with Tesla and its stock?"
CALLER = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")  # a trace that somebody else has begun


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", kept.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven")
        yield kept


def told(tmp_path: Path, **settings: Any) -> Any:
    given = {"telemetry": {"traces": "otlp"}, "source": "demo", "offline": True, **settings}
    return load(data_dir=tmp_path / "data", **given)


async def asked(engine: Engine, question: str = TESLA, **options: Any) -> str:
    run = await engine.start(question, ResearchOptions(source="demo", **options))
    assert (await engine.wait(run.id)).run.status is RunStatus.DONE
    return run.id


def below(spans: list[Told], above: Told) -> list[Told]:
    return sorted((span for span in spans if span.parent == above.id), key=lambda span: span.start)


@pytest.mark.slow
@pytest.mark.requirement("W-13")
async def test_a_whole_run_is_one_trace_that_begins_with_its_request(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    monkeypatch.setenv("TAVILY_API_KEY", KEY)
    async with outside() as settings:
        given = told(tmp_path, **settings, server={"port": 0})
        async with (
            open_server(given) as server,
            httpx2.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as client,
        ):
            client.headers["traceparent"] = f"00-{CALLER[0]}-{CALLER[1]}-01"
            thread = await researched(client, GOAL, depth="standard", context=f"It is {KEY}.")
            timings = (await client.get(f"/api/threads/{thread}/timings")).json()
            await client.get("/healthz")
            await client.get("/nothing/here")

    spans = collector.spans
    assert collector.headers[0]["x-tenant"] == "seven", "as OTEL_EXPORTER_OTLP_HEADERS says"
    assert collector.resources[0]["service.name"] == "openassay"
    [run] = collector.named("openassay.run")
    mine = [span for span in spans if span.trace == run.trace]
    assert {span.trace for span in spans} == {run.trace, CALLER[0]}
    assert (run.parent, run.kind, run.failed) == ("", "internal", False)
    assert run.attributes["gen_ai.conversation.id"] == thread
    assert run.attributes["openassay.run.status"] == "done"
    [start] = collector.named("POST /api/threads/start")
    assert (start.trace, start.parent, start.kind) == (*CALLER, "server")
    assert run.links == [(start.trace, start.id)]
    assert start.attributes["http.route"] == "/api/threads/start"
    assert start.attributes["http.response.status_code"] in (200, 202)
    assert [span.attributes["http.response.status_code"] for span in collector.named("GET unmatched")] == [404]
    assert not collector.named("GET /healthz")

    [part] = below(mine, run)
    stages = below(mine, part)
    assert part.name == "openassay.part"
    assert [stage.name for stage in stages][:3] == ["stage understand", "stage gate", "stage plan"]
    assert {stage.name.removeprefix("stage ") for stage in stages} == {one["stage"] for one in timings["stages"]}
    for span in mine:
        above = next((one for one in mine if one.id == span.parent), span)
        assert above.start - 0.01 <= span.start <= span.end <= above.end + 0.01, span.name

    calls = collector.named("chat gpt-4o")
    booked, failed = [span for span in calls if not span.failed], [span for span in calls if span.failed]
    [model] = [one for one in timings["parties"] if one["kind"] == "model"]
    assert (len(booked), len(failed)) == (model["calls"], 1)
    assert failed[0].attributes["error.type"] == "api"
    one = booked[0].attributes
    assert one["gen_ai.operation.name"] == "chat"
    assert (one["gen_ai.provider.name"], one["gen_ai.request.model"]) == ("openai", "gpt-4o")
    assert one["gen_ai.request.max_tokens"] > 0
    assert one["gen_ai.usage.input_tokens"] > 0 < one["gen_ai.usage.output_tokens"]
    assert sum(span.attributes["openassay.usd"] for span in booked) == pytest.approx(model["usd"])
    assert {span.kind for span in calls} == {"client"}
    by_id = {span.id: span.name for span in mine}
    assert {by_id[span.parent] for span in calls} <= {stage.name for stage in stages}

    searches = collector.named("retrieval searxng")
    assert {by_id[span.parent] for span in searches} == {"stage search"}
    assert max(span.end - span.start for span in searches) >= SLOW * 0.9
    assert {span.end - span.start for span in searches if span.attributes["openassay.cached"]} <= {0.0}
    pages = collector.named("page other")
    assert sorted(page.failed for page in pages) == [False, True]

    for secret in (KEY, "sk-test-not-a-key", "Marrow", "survey", "shrink", "square kilometres"):
        assert secret not in collector.text, secret


KILLED = f"""
import os, sys
from openassay.cli import main
from openassay.telemetry.traces import Traces

def event(self, event, tell=Traces.record_event):
    tell(self, event)
    if event.kind == "leave" and event.stage == "fuse":
        self._processor.force_flush()
        os.kill(os.getpid(), 9)

Traces.record_event = event
sys.argv = ["openassay", "research", {TESLA!r}, "--quiet"]
main()
"""


@pytest.mark.slow
@pytest.mark.requirement("W-13")
async def test_two_processes_tell_one_trace_though_the_first_was_killed(collector: Collector, tmp_path: Path) -> None:
    """What the first has told before it died is there, and the second tells when the whole began."""
    settings = told(tmp_path)
    ours = {
        "OPENASSAY_DATA_DIR": str(settings.data_dir), "OPENASSAY_SOURCE": "demo", "OPENASSAY_OFFLINE": "true",
        "OPENASSAY_TELEMETRY__TRACES": "otlp",
    }  # fmt: skip
    first = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED], env={**os.environ, **ours}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert first.returncode == -signal.SIGKILL, first.stderr.decode()
    assert not collector.named("openassay.run")
    async with open_engine(settings) as engine:
        [run] = await engine.resume_abandoned()
        assert (await engine.wait(run.id)).run.status is RunStatus.DONE

    spans = collector.spans
    [whole] = [span for span in spans if span.name == "openassay.run"]
    assert {span.trace for span in spans} == {whole.trace}
    before, after = ({s.name for s in spans if s.process == one} for one in dict.fromkeys(s.process for s in spans))
    assert {"stage understand", "stage search", "retrieval demo"} <= before
    assert "openassay.part" not in before
    assert {"stage publish", "openassay.part", "openassay.run"} <= after
    assert "stage understand" not in after
    assert whole.start < min(span.start for span in spans if span.id != whole.id)
    [part] = [span for span in spans if span.name == "openassay.part"]
    assert (part.parent, part.attributes["openassay.run.falls"]) == (whole.id, 1)
    orphans = {span.parent for span in spans} - {span.id for span in spans} - {""}
    assert len(orphans) == 1, "of the part that was killed"


@pytest.mark.slow
@pytest.mark.requirement("W-13", "W-16")
async def test_what_a_worker_does_is_told_and_counted_there_and_belongs_to_the_request(
    collector: Collector, tmp_path: Path, postgres_address: str
) -> None:
    settings = told(
        tmp_path,
        persistence={"backend": "postgres", "connection_string": postgres_address},
        fleet={"lease_seconds": 5, "metrics_port": 0},
        server={"runs": "workers", "port": 0},
    )
    stopping = asyncio.Event()
    async with (
        open_server(settings) as server,
        open_worker(settings) as worker,
        httpx2.AsyncClient(timeout=30, trust_env=False) as client,
    ):
        working = asyncio.create_task(worker.run(stopping))
        client.base_url = httpx2.URL(server.url)
        await researched(client, TESLA)
        theirs = (await client.get(f"{worker.metrics_url}/metrics")).text
        ours = (await client.get("/metrics")).text
        ready = (await client.get(f"{worker.metrics_url}/readyz")).json()
        stopping.set()
        await working
    assert 'openassay_runs_total{status="done"} 1.0' in theirs
    assert 'openassay_runs_total{status="done"}' not in ours
    assert "openassay_workers_alive 1.0" in theirs
    assert "openassay_workers_alive 1.0" in ours
    assert ready == {"status": "ok", "problems": [], "degraded": []}
    [run] = collector.named("openassay.run")
    [start] = collector.named("POST /api/threads/start")
    assert run.links == [(start.trace, start.id)]


@pytest.mark.slow
async def test_a_run_that_waits_for_a_person_has_a_part_before_and_one_after(
    collector: Collector, tmp_path: Path
) -> None:
    settings = told(tmp_path, hitl_after_planning=True)
    async with open_engine(settings) as engine:
        run = await engine.start(TESLA, ResearchOptions(source="demo", interactive=True))
        assert (await engine.wait(run.id)).run.status is RunStatus.WAITING
    async with open_engine(settings) as engine:
        [question] = await engine.interrupts.open_questions(run.thread)
        await engine.interrupts.answer(run.thread, question.id, {"decision": "approve"})
        assert (await engine.wait(run.id)).run.status is RunStatus.DONE
    [whole] = collector.named("openassay.run")
    first, second = below(collector.spans, whole)
    assert [part.attributes["openassay.run.status"] for part in (first, second)] == ["waiting", "done"]
    assert first.end <= second.start
    assert "interrupt" in first.moments
    asking = [span for span in below(collector.spans, first) if span.name == "stage approve_plan"]
    assert [span.attributes["openassay.unfinished"] for span in asking] == [True]
    assert not any(span.failed for span in collector.spans)


@pytest.mark.slow
async def test_content_is_told_only_where_that_is_said_and_never_of_documents(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "secret.md").write_text(
        "The Quillfeather project costs 12 million dollars.\n", encoding="utf-8"
    )
    async with outside() as settings:
        given = told(tmp_path, **{**settings, "telemetry": {"traces": "otlp", "content": True}})
        async with open_engine(given) as engine:
            context = "Nobody needs this:\nBearer 0123456789abcdef0123"
            run = await engine.start(GOAL, ResearchOptions(source="searxng", context=context))
            await engine.wait(run.id)
        open_content = collector.text
        [whole] = collector.named("openassay.run")
        assert GOAL in json.loads(whole.attributes["gen_ai.input.messages"])[0]["parts"][0]["content"]
        chats = [span for span in collector.named("chat") if not span.failed]
        assert all("Lake Marrow" in span.attributes["gen_ai.input.messages"] for span in chats[:1])
        assert json.loads(chats[0].attributes["gen_ai.output.messages"])[0]["role"] == "assistant"
        assert any(span.attributes.get("gen_ai.retrieval.query.text") for span in collector.named("retrieval"))
        assert any("/survey" in span.attributes["url.full"] for span in collector.named("page"))
        assert "0123456789abcdef0123" not in open_content
        assert "sk-test-not-a-key" not in open_content

        collector.bodies.clear()
        async with open_engine(given) as engine:
            run = await engine.start("What does Quillfeather cost?", ResearchOptions(docs=(str(tmp_path / "own"),)))
            await engine.wait(run.id)
    assert collector.named("openassay.run")
    assert "uillfeather" not in collector.text


@pytest.mark.slow
async def test_a_collector_that_is_gone_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        with caplog.at_level(logging.INFO):
            async with open_engine(told(tmp_path)) as engine:
                await asked(engine)
                await asked(engine)
    lines = [record.getMessage() for record in caplog.records if "collector" in record.getMessage()]
    assert lines == ["the collector does not accept traces; runs continue without them"]
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


async def test_a_collector_that_says_nothing_is_not_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "CLOSE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        async with asyncio.timeout(45):
            async with open_engine(told(tmp_path)) as engine:
                await asked(engine)


async def test_as_many_are_told_as_the_sampler_says(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with open_engine(told(tmp_path)) as engine:
        await asked(engine)
    assert collector.bodies == []


@pytest.mark.slow
async def test_what_is_wrong_with_the_spans_is_no_trouble_for_the_run(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise LookupError("a fault of ours")

    monkeypatch.setattr(traces.Traces, "_trace_status", broken)
    async with open_engine(told(tmp_path)) as engine:
        await asked(engine)
    assert "could not be traced" in caplog.text


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        (None, None, "extra `telemetry`"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "OTEL_BSP"),
    ],
)
async def test_what_cannot_be_told_is_said_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, value: str | None, words: str
) -> None:
    if variable and value:
        monkeypatch.setenv(variable, value)
    else:
        monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(ConfigurationError, match=words) as refused:
        async with open_engine(told(tmp_path)):
            pass
    assert refused.value.help
