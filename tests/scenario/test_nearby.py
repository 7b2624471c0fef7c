"""Model servers that happen to run on this machine."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from openassay.llm.names import MAX_LIST_BYTES, ModelServer, find_model_servers


@asynccontextmanager
async def serving(body: bytes, status: str = "200 OK", delay: float = 0.0) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(delay)
        writer.write(f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


OWN = json.dumps({"object": "list", "data": [{"id": "qwen2.5:7b", "owned_by": "library"}]}).encode()
MODELS = json.dumps({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}).encode()


async def test_servers_nearby_are_found() -> None:
    async with serving(OWN) as ollama, serving(MODELS) as server:
        found = await find_model_servers(5, {ollama: "ollama", server: "compatible"})
    assert found == [
        ModelServer(f"{ollama}/v1", "ollama", ("qwen2.5:7b",)),
        ModelServer(f"{server}/v1", "compatible", ("a", "b")),
    ]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"data": [{"id": 5}]}', b'{"data": 3}', b"\xff", b" " * (MAX_LIST_BYTES + 1) + MODELS],
)
async def test_what_is_no_model_server_is_left_out(body: bytes) -> None:
    async with serving(body) as server:
        assert await find_model_servers(5, {server: "compatible"}) == []


async def test_absent_slow_and_failing_servers_are_left_out() -> None:
    async with serving(MODELS, delay=1.0) as slow, serving(MODELS, "500 No") as failing:
        addresses = (slow, failing, "http://127.0.0.1:9", "nonsense")
        assert await find_model_servers(0.2, dict.fromkeys(addresses, "compatible")) == []
        await asyncio.sleep(1.1)  # the slow one is done
