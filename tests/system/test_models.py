"""The command with a language model behind real HTTP: killed, refused, quoted, traced."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.fakes.llm_server import FakeLlmServer, FaultAlways
from tests.fakes.model import FakeModel
from tests.system.command import Command

GPT = "openai:gpt-4o"
TIDES = "How high are the tides in the Bay of Fundy?"


@asynccontextmanager
async def served(openassay: Command, **provider: Any) -> AsyncIterator[FakeLlmServer]:
    """A provider, and a folder in which `openassay` finds it: keys in .env, the address in config.yaml."""
    async with FakeLlmServer(FakeModel(), **provider) as fake:
        (openassay.folder / ".env").write_text("OPENAI_API_KEY=sk-test-not-a-key\n", encoding="utf-8")
        settings = {"llm": {"endpoints": {"openai": f"{fake.url}/v1"}}}
        (openassay.folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
        yield fake


@pytest.mark.slow
@pytest.mark.requirement("X-06")
@pytest.mark.parametrize("answers", [1, 4, 7])
async def test_what_was_paid_for_before_a_kill_is_not_paid_for_again(openassay: Command, answers: int) -> None:
    async with served(openassay, latency=0.2) as provider:
        with openassay.started("research", TIDES, "--docs", "tiny", "--model", GPT, "--yes") as process:
            async with asyncio.timeout(60):
                while openassay.rows("SELECT count(*) FROM calls WHERE answer IS NOT NULL") < [(answers,)]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)  # another process writes there
            process.kill()
            await asyncio.to_thread(process.wait)
        stored = openassay.rows("SELECT count(*) FROM calls WHERE answer IS NOT NULL")[0][0]
        before = len(provider.calls)
        [thread] = openassay.threads()
        ran = await asyncio.to_thread(openassay, "resume", thread, "--json")
        assert ran.code == 0, ran.err
        asked = Counter((call.form, call.prompt.text) for call in provider.calls)
        again = sum(count - 1 for count in asked.values())
        assert again <= before - stored, "only calls that were under way when it was killed are made again"
        booked = openassay.rows("SELECT sum(micros) FROM calls")[0][0]
        assert ran.json["spend"]["usd"] == booked / 1_000_000
        billed = provider.billable_tokens()
        assert booked >= 2.5 * billed.prompt_tokens + 10 * billed.completion_tokens


@pytest.mark.slow
@pytest.mark.requirement("X-06")
async def test_a_quote_is_one_line_and_json_on_request(openassay: Command) -> None:
    async with served(openassay) as provider:
        line = await asyncio.to_thread(
            openassay, "research", "--estimate", TIDES, "--docs", "tiny", "--model", GPT, "--budget", "0.75"
        )
        assert line.code == 0
        assert "never more than $0.75" in line.out
        plain = await asyncio.to_thread(openassay, "research", "--estimate", TIDES, "--json")
        assert plain.json["model"] == "openai:gpt-4o"
        assert plain.json["most_usd"] == 2.0
        free = await asyncio.to_thread(openassay, "research", "--estimate", TIDES, "--docs", "tiny")
        assert "embedded: costs nothing" in free.out
        assert provider.calls == []
    assert openassay.threads() == []


@pytest.mark.slow
@pytest.mark.requirement("X-06", "C-13", "L-09")
async def test_a_run_shows_its_quote_who_is_at_work_and_what_it_spent(openassay: Command) -> None:
    async with served(openassay):
        ran = await asyncio.to_thread(openassay, "research", TIDES, "--docs", "tiny", "--model", GPT, "--yes")
        assert ran.code == 0, ran.err
        assert "Estimate   openai:gpt-4o: about $" in ran.err
        assert " spent" in ran.err.splitlines()[-1]
        assert "| Spent | $0.0" in ran.out
        assert "| Reasoning | openai:gpt-4o (" in ran.out


@pytest.mark.slow
@pytest.mark.requirement("X-06")
async def test_a_cap_too_small_for_one_call_is_exit_4(openassay: Command) -> None:
    async with served(openassay) as provider:
        ran = await asyncio.to_thread(openassay, "ask", TIDES, "--docs", "tiny", "--model", GPT, "--budget", "0.000001")
        ran.refused(4, "--budget")
        assert provider.calls == []
    assert openassay.threads() == []


@pytest.mark.slow
@pytest.mark.requirement("C-15")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("anthropic:claude-sonnet-4-5", ["ANTHROPIC_API_KEY"]),
        ("opnai:gpt-4o", ["did you mean openai"]),
        ("gpt-4o", ["did you mean openai:gpt-4o"]),
        ("openai:", ["names no model"]),
        ("openai:no-such-model-9", ["no price is known", "llm.prices"]),
        ("compatible:x", ["llm.base_url"]),
        ("local:missing.gguf", ["missing.gguf"]),
    ],
)
async def test_a_model_that_cannot_be_asked_is_refused_before_anything_is_written(
    openassay: Command, model: str, words: list[str]
) -> None:
    async with served(openassay):
        ran = await asyncio.to_thread(openassay, "research", TIDES, "--docs", "tiny", "--model", model)
        ran.refused(2, *words)
    assert openassay.threads() == []


@pytest.mark.slow
@pytest.mark.requirement("C-15")
async def test_a_wrong_key_is_told_and_never_shown(openassay: Command) -> None:
    async with served(openassay, faults=FaultAlways("key-rejected")):
        ran = await asyncio.to_thread(openassay, "research", TIDES, "--docs", "tiny", "--model", GPT, "--yes")
        assert ran.code == 0, ran.err
        assert "OPENAI_API_KEY" in ran.err or "key" in ran.err
        assert "embedded reasoner" in ran.err
        assert "sk-test" not in ran.err + ran.out
        logged = await asyncio.to_thread(openassay, "threads", "log", openassay.threads()[0])
        assert "sk-test" not in logged.out


@pytest.mark.slow
async def test_documents_go_to_no_hosted_model_that_was_not_named(openassay: Command) -> None:
    async with served(openassay) as provider:
        ran = await asyncio.to_thread(openassay, "ask", TIDES, "--docs", "tiny", "--json")
        assert provider.calls == []
        assert any("stay on this machine" in notice for notice in ran.json["notices"])


@pytest.mark.slow
async def test_the_doctor_offers_a_model_server_it_finds(openassay: Command) -> None:
    async with served(openassay):
        ran = await asyncio.to_thread(openassay, "doctor")
        assert "openai:gpt-4o; at most $2.00 a question" in ran.out
        assert "local models" in ran.out


class Collector:
    """What LangSmith would be sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    @property
    def text(self) -> str:
        return b"\n".join(self.bodies).decode("utf-8", "replace")


@contextmanager
def collector() -> Iterator[tuple[Collector, str]]:
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(json.dumps({"version": "0", "instance_flags": {}, "batch_ingest_config": {}}).encode())

        def do_POST(self) -> None:
            kept.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(b"{}")

        do_PATCH = do_POST

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield kept, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.requirement("C-14")
async def test_langsmith_is_told_by_the_environment_alone(openassay: Command) -> None:
    async with served(openassay):
        with collector() as (kept, url):
            traced = {
                "LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": url, "LANGSMITH_API_KEY": "ls-test-not-a-key",
                "LANGSMITH_DISABLE_RUN_COMPRESSION": "true",
            }  # fmt: skip
            args = ("ask", TIDES, "--docs", "tiny", "--model", GPT, "--json")
            plain = await asyncio.to_thread(openassay, *args, env={**traced, "LANGSMITH_TRACING": "false"})
            assert plain.code == 0, plain.err
            assert kept.bodies == []
            private = await asyncio.to_thread(openassay, "ask", TIDES, "--docs", "tiny", "--json", env=traced)
            assert any("tracing is off" in notice for notice in private.json["notices"])
            assert kept.bodies == [], "documents stay on this machine"
            secret = f"whsec_{'Zx9' * 8}"
            ran = await asyncio.to_thread(openassay, args[0], f"{TIDES} ({secret})", *args[2:], env=traced)
            assert ran.code == 0, ran.err
            assert any("LangSmith" in notice for notice in ran.json["notices"])
            for word in ('"run_type":"llm"', '"ls_model_name":"gpt-4o"', "understand", TIDES):
                assert word in kept.text, word
            assert "sk-test-not-a-key" not in kept.text
            assert secret not in kept.text
            assert f"{TIDES} ([redacted])" in kept.text
