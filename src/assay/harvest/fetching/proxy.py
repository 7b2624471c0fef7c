"""The way out for a browser: a proxy on this machine that dials what the guard allows, and nothing else.

A page's scripts, frames and pictures are requests that nobody has checked; since the browser knows no other way to the
network, each of them is judged here, at the very connection.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from httpcore2 import AsyncNetworkStream, NetworkError, ProtocolError, TimeoutException

from assay.errors import FetchError, RefusedError

Connect = Callable[[str, int], Awaitable[AsyncNetworkStream]]  # a host and a port, checked; raises FetchError

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 10.0
CHUNK = 64 * 1024


class _Target(NamedTuple):
    host: str
    port: int
    opening: bytes  # what is sent first: the request itself, or nothing for a tunnel
    tunnel: bool


class GuardedProxy:
    """`async with GuardedProxy(client.connect, bytes) as proxy` serves at `proxy.address` until the end.

    `budget` is what may come in through it; `renew` starts it afresh, for the next page."""

    def __init__(self, connect: Connect, budget: int) -> None:
        self._connect = connect
        self._budget = budget
        self._left = budget
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def renew(self) -> None:
        self._left = self._budget

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, limit=HEAD_LIMIT)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pass_on(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the browser has gone, or speaks no HTTP
        except (NetworkError, TimeoutException, ProtocolError):
            pass  # the site has gone
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            target = _target(await reader.readuntil(b"\r\n\r\n"))
        try:
            there = await self._connect(target.host, target.port)
        except RefusedError:
            writer.write(_answer("403 Refused"))
            return await writer.drain()
        except FetchError:
            writer.write(_answer("502 Not Reached"))
            return await writer.drain()
        try:
            if target.tunnel:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                await there.write(target.opening)
                writer.write(await self._head(there))
            await self._exchange(reader, writer, there, tunnel=target.tunnel)
        finally:
            await there.aclose()

    async def _head(self, there: AsyncNetworkStream) -> bytes:
        """The head of an answer, saying that the connection ends with it: the next request is judged on another."""
        begun = b""
        while b"\r\n\r\n" not in begun and len(begun) < HEAD_LIMIT and (piece := await there.read(CHUNK)):
            begun += piece
        self._left -= len(begun)
        head, end, body = begun.partition(b"\r\n\r\n")
        kept = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"keep-alive:"))]
        return b"\r\n".join([*kept, b"Connection: close"]) + end + body if end else begun

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: AsyncNetworkStream, *, tunnel: bool
    ) -> None:
        """Until one side is done, or the page has had its share."""
        outwards = _outwards(reader, there) if tunnel else _gone(reader)
        ways = {asyncio.create_task(self._inwards(there, writer)), asyncio.create_task(outwards)}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _inwards(self, there: AsyncNetworkStream, writer: asyncio.StreamWriter) -> None:
        while self._left > 0 and (piece := await there.read(CHUNK)):
            self._left -= len(piece)
            writer.write(piece)
            await writer.drain()


async def _outwards(reader: asyncio.StreamReader, there: AsyncNetworkStream) -> None:
    while piece := await reader.read(CHUNK):
        await there.write(piece)
    await asyncio.Event().wait()  # the browser asks no more, but the answer may still be on its way


async def _gone(reader: asyncio.StreamReader) -> None:
    """What else comes on this connection is for nobody: it was let through for one request."""
    while await reader.read(CHUNK):
        pass


def _target(head: bytes) -> _Target:
    """Where a request is for. Only those without a body are passed on in the clear: a page is read, not sent to."""
    line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, address, version = line.split(" ")
    if method == "CONNECT":
        place = urlsplit(f"//{address}")
        return _Target(place.hostname or "", place.port or 443, b"", tunnel=True)
    place = urlsplit(address)
    if place.scheme != "http" or method not in ("GET", "HEAD"):
        raise ValueError(address)
    path = (place.path or "/") + (f"?{place.query}" if place.query else "")
    kept = [field for field in fields if field.partition(":")[0].lower() not in ("connection", "proxy-connection")]
    opening = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""]).encode("latin-1")
    return _Target(place.hostname or "", place.port or 80, opening, tunnel=False)


def _answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
