"""`openassay mcp`: the installed command, driven by a real MCP client."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.system.command import OPENASSAY, Command, environment

TIDES = "How high are the tides in the Bay of Fundy?"
SLOW = "What's happening with Apple, Tesla, Microsoft, Amazon and Google?"


@pytest.mark.slow
@pytest.mark.requirement("X-10", "L-01")
async def test_a_client_finishes_a_run_over_stdio(openassay: Command) -> None:
    """With no key and no network, on files of the person's own; nothing but the protocol is on stdout, or the client
    would say so."""
    program = StdioServerParameters(
        command=str(OPENASSAY), args=["mcp"], env=environment(openassay.data), cwd=openassay.folder
    )
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    with open(os.devnull, "w") as silent:  # noqa: ASYNC230
        async with Client(stdio_client(program, errlog=silent)) as client:
            result = await client.call_tool(
                "research", {"question": TIDES, "documents": ["tiny"], "depth": "quick"}, progress_callback=hear
            )
            answer: Any = result.structured_content
            assert not result.is_error, result.content
            assert answer["status"] == "complete"
            assert any("16.3 metres" in quote for source in answer["sources"] for quote in source["quotes"])
            assert "Reading" in heard
            judged: Any = await client.call_tool(
                "verify", {"statement": "The tides are up to 19 metres high.", "thread": answer["thread"]}
            )
            assert judged.structured_content["verdict"] != "supported"
            wrong: Any = await client.call_tool("research", {"question": TIDES, "documents": ["nowhere"]})
            assert wrong.is_error
            assert "nowhere" in wrong.content[0].text
    shown = openassay("threads", "show", answer["thread"])
    assert "16.3 metres" in shown.out


@contextmanager
def begun(openassay: Command) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The command with a run under way that nobody waits for, and its thread."""
    process = openassay.begun("mcp")
    try:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        _told(process, {"id": 1, "method": "initialize", "params": hello})
        assert process.stdin
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        arguments = {"question": SLOW, "depth": "comprehensive", "wait_seconds": 0.01}
        asked = {"name": "research", "arguments": arguments}
        answer = _told(process, {"id": 2, "method": "tools/call", "params": asked})
        yield process, answer["result"]["structuredContent"]["thread"]
    finally:
        process.kill()
        process.communicate()


def _told(process: subprocess.Popen[bytes], request: dict[str, Any]) -> Any:
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@pytest.mark.slow
@pytest.mark.requirement("W-16")
@pytest.mark.parametrize("how", ["stdin is closed", "a signal"])
def test_it_ends_and_puts_aside_what_is_under_way(openassay: Command, how: str) -> None:
    with begun(openassay) as (process, thread):
        if how == "a signal":
            process.send_signal(signal.SIGTERM)
            process.wait(20)
            out, err = process.stdout.read(), process.stderr.read()  # type: ignore[union-attr]
        else:
            out, err = process.communicate(timeout=20)
        assert process.returncode == 0, err
        assert out == b""
        assert f"openassay resume {thread}".encode() in err
    assert openassay.statuses(thread) == ["queued"]


def test_options_that_do_nothing_are_refused(openassay: Command) -> None:
    openassay("mcp", "--port", "1").refused(2, "--http")


@pytest.mark.slow
async def test_over_http_it_says_where_it_is(openassay: Command) -> None:
    with openassay.started("mcp", "--http", "--port", "0") as process:
        assert process.stderr
        line = (await asyncio.to_thread(process.stderr.readline)).decode()
        url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        async with Client(url) as client:
            assert (await client.call_tool("threads", {})).structured_content == {"threads": [], "thread": None}
        process.terminate()
        assert await asyncio.to_thread(process.wait, 30) == 0
