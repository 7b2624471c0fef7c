"""Readers of live events who are cut off at random, while the server they read from is stopped, killed and started.

Each keeps the hash of what it was told, id by id. The server is a process of its own, on one port and data directory.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel

QUESTION = "What's happening with Tesla and its stock?"
HOST = "127.0.0.1"
RETRY = 0.2  # seconds after which a reader without a server comes back
LONGEST = 120.0  # seconds after which something is wrong
EXPECTED = 50  # events of a run, at least (a quick one has 65); cuts are spread over them


class Place(NamedTuple):
    folder: Path
    port: int
    provider: str

    def environment(self) -> dict[str, str]:
        unwanted = ("OPENASSAY_", "PYTHONDONTWRITEBYTECODE")  # which makes a start take twice as long
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        return {
            **kept,
            "OPENASSAY_DATA_DIR": str(self.folder), "OPENASSAY_SOURCE": "demo", "OPENASSAY_DEPTH": "quick",
            "OPENASSAY_LOG_LEVEL": "error", "OPENAI_API_KEY": "sk-bench-not-a-key",
            "OPENASSAY_LLM__MODEL": "openai:gpt-4o",
            "OPENASSAY_LLM__ENDPOINTS": json.dumps({"openai": f"{self.provider}/v1"}),
            "OPENASSAY_SERVER__START_SECONDS": "0", "OPENASSAY_SERVER__STREAMS_PER_USER": "10000",
            "OPENASSAY_SERVER__REQUESTS_PER_MINUTE": "1000000",
        }  # fmt: skip


@dataclass
class Reader:
    """What one was told, and how often it was cut off: by itself, or by the server."""

    thread: str
    cuts: list[int]  # after so many events
    told: int = 0
    last: str = ""
    cut: int = 0
    lost: int = 0
    hash: str = ""
    _sum: Any = field(default_factory=sha256)

    def hear(self, frame: bytes) -> None:
        lines = dict(line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line and line[:1] != b":")
        if b"id" in lines:
            self.last = lines[b"id"].decode()
            self.told += 1
            self._sum.update(frame)
            self.hash = self._sum.hexdigest()

    @property
    def is_due(self) -> bool:
        return bool(self.cuts) and self.told >= self.cuts[0]


@dataclass
class Tally:
    readers: list[Reader]
    again: dict[str, Reader]  # one for each thread, who has read it undisturbed afterwards
    restarts: int
    downtime: float
    seconds: float

    @property
    def cuts(self) -> int:
        return sum(reader.cut for reader in self.readers)

    def hashes(self, thread: str) -> set[str]:
        return {reader.hash for reader in self.readers if reader.thread == thread} | {self.again[thread].hash}

    def sound(self) -> bool:
        return all(len(self.hashes(thread)) == 1 for thread in self.again)


async def trial(
    folder: Path, *, runs: int, readers: int, cuts: int, stops: Sequence[signal.Signals], latency: float, seed: int
) -> Tally:
    """So many readers, shared among the runs, each cut so often; the server is ended by each of the signals in turn, at
    moments that lie in the middle of the runs."""
    chance, began = random.Random(seed), time.monotonic()
    async with FakeLlmServer(FakeModel(), latency=lambda _: chance.uniform(0.5, 1.5) * latency) as provider:
        place = Place(folder, _free_port(), provider.url)
        server = await _started(place)
        try:
            threads = [await _asked(place) for _ in range(runs)]
            crowd = [Reader(threads[n % runs], sorted(chance.sample(range(1, EXPECTED), cuts))) for n in range(readers)]
            reading = [asyncio.create_task(_read(place, reader)) for reader in crowd]
            downtime = 0.0
            for n, stop in enumerate(stops, 1):
                await _told(crowd, EXPECTED * n // (len(stops) + 1))
                ended = time.monotonic()
                await _ended(server, stop)
                server = await _started(place)
                downtime += time.monotonic() - ended
            async with asyncio.timeout(LONGEST):
                await asyncio.gather(*reading)
                again = {thread: Reader(thread, []) for thread in threads}
                await asyncio.gather(*(_read(place, reader) for reader in again.values()))
        finally:
            if server.returncode is None:
                await _ended(server, signal.SIGTERM)
    return Tally(crowd, again, len(stops), downtime, time.monotonic() - began)


async def _told(crowd: list[Reader], events: int) -> None:
    """Until the one who is furthest behind has heard so many."""
    async with asyncio.timeout(LONGEST):
        while min(reader.told for reader in crowd) < events:  # noqa: ASYNC110  # readers tell nobody
            await asyncio.sleep(0.01)


# The server ----------------------------------------------------------------------------------------------


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        port: int = found.getsockname()[1]
        return port


async def _started(place: Place) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "openassay", "serve", "--host", HOST, "--port", str(place.port)]
    process = await asyncio.create_subprocess_exec(
        *command, env=place.environment(), cwd=place.folder, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with asyncio.timeout(LONGEST):
        said = await process.stdout.readline() if process.stdout else b""
    if not said.startswith(b"http"):
        raise RuntimeError(f"the server did not start: {await process.wait()}")
    return process


async def _ended(process: asyncio.subprocess.Process, how: signal.Signals) -> None:
    process.send_signal(how)
    async with asyncio.timeout(LONGEST):
        code = await process.wait()
    if code != (0 if how is signal.SIGTERM else -how):
        raise RuntimeError(f"the server ended with {code} after {how.name}")


# The readers ---------------------------------------------------------------------------------------------


async def _asked(place: Place) -> str:
    body = json.dumps({"goal": QUESTION}).encode()
    async with _request(place, "POST", "/api/threads/start", body) as (status, pieces):
        answer = b"".join([piece async for piece in pieces])
    if status != 200:
        raise RuntimeError(f"the question was not taken: {answer.decode()}")
    return str(json.loads(answer)["threadId"])


async def _read(place: Place, reader: Reader) -> None:
    """Until there is nothing more to tell."""
    while True:
        try:
            if await _heard(place, reader):
                return
            reader.lost += 1
        except (OSError, asyncio.IncompleteReadError):
            reader.lost += 1
            await asyncio.sleep(RETRY)


async def _heard(place: Place, reader: Reader) -> bool:
    """One connection; whether it was the last."""
    async with _request(place, "GET", f"/api/stream/{reader.thread}", last=reader.last) as (status, pieces):
        if status == 204:
            return True
        if status != 200:
            raise RuntimeError(f"a stream was answered with {status}")
        rest = b""
        async for piece in pieces:
            *frames, rest = (rest + piece).split(b"\n\n")
            for frame in frames:
                reader.hear(frame)
                if reader.is_due:  # whatever else has come is lost
                    reader.cuts.pop(0)
                    reader.cut += 1
                    reader.lost -= 1
                    return False
    return False


@asynccontextmanager
async def _request(
    place: Place, method: str, path: str, body: bytes = b"", last: str = ""
) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
    """By hand: 200 real clients would take the two cores that the server is to have."""
    source, sink = await asyncio.open_connection(HOST, place.port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{place.port}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        head += f"Last-Event-ID: {last}\r\n" if last else ""
        sink.write(f"{head}\r\n".encode() + body)
        answered = (await source.readuntil(b"\r\n\r\n")).lower()
        status = int(answered.split(b" ", 2)[1])
        yield status, _chunks(source) if b"transfer-encoding: chunked" in answered else _whole(source)
    finally:
        sink.transport.abort()


async def _chunks(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await source.readuntil(b"\r\n"), 16):
        yield (await source.readexactly(size + 2))[:-2]


async def _whole(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    with contextlib.suppress(ConnectionError):
        yield await source.read()
