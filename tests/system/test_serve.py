"""The server as a process of its own: started, stopped, killed, and started again."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.streaming import trial
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.system.command import PATIENCE, Command


@contextmanager
def serving(openassay: Command, *options: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """The process, and the address it says."""
    with openassay.started("serve", "--port", "0", *options) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().decode().strip()


@pytest.mark.slow
@pytest.mark.requirement("W-12", "W-16", "W-18")
async def test_readers_who_are_cut_off_are_told_the_same_through_a_restart(tmp_path: Path) -> None:
    """benchmarks/bench_streams.py does it with 200 readers and two restarts."""
    tally = await trial(tmp_path, runs=2, readers=20, cuts=4, stops=(signal.SIGKILL,), latency=0.3, seed=3)
    assert tally.cuts == 80
    assert {thread: len(tally.hashes(thread)) for thread in tally.again} == dict.fromkeys(tally.again, 1)
    assert all(reader.told > 60 for reader in tally.again.values())


@pytest.mark.slow
def test_it_has_its_port_alone_and_a_signal_stops_it_in_good_order(openassay: Command) -> None:
    with serving(openassay) as (process, address):
        port = address.rpartition(":")[2]
        openassay("serve", "--port", port).refused(2, f"port {port}", "--port")
        with urllib.request.urlopen(f"{address}/readyz", timeout=PATIENCE) as answer:  # noqa: S310  # its own
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "openassay admin users add" in err.decode(), "it says who may come in"
    assert "Traceback" not in err.decode()


@pytest.mark.slow
async def test_a_second_signal_stops_it_at_once(openassay: Command) -> None:
    async with FakeLlmServer(FakeModel(), latency=30.0) as provider:
        llm = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}
        (openassay.folder / ".env").write_text("OPENAI_API_KEY=sk-test-not-a-key\n", encoding="utf-8")
        (openassay.folder / "config.yaml").write_text(json.dumps({"source": "demo", "llm": llm}), encoding="utf-8")
        with serving(openassay) as (process, address):
            await asyncio.to_thread(ask, address)
            async with asyncio.timeout(PATIENCE):
                while not provider.calls:  # noqa: ASYNC110  # another process calls
                    await asyncio.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 1.0)
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.communicate, timeout=PATIENCE)
    assert process.returncode == 130
    [thread] = openassay.threads()
    assert openassay.statuses(thread) == ["running"], "the next server finds that nobody works on it"


def ask(address: str) -> None:
    body = json.dumps({"goal": "What's happening with Tesla?"}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/api/threads/start", body, headers)  # noqa: S310  # its own
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        assert answer.status == 200
