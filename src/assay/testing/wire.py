"""HTTP/1.1 over asyncio streams, down to the single byte: whoever plays a fault must be able to break it."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class Piece(NamedTuple):
    """A part of a response that is sent at once."""

    kind: str  # of a stream: start, text, finish, usage, end; else body
    data: bytes


@dataclass(frozen=True)
class Response:
    status: int
    pieces: tuple[Piece, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    chunked: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)


class Wire:
    """One connection. Writing raises ConnectionError when nobody listens any more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> Request | None:
        """The next request; None when the connection has ended, or holds what is no request."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.rstrip("\r\n").split("\r\n")
            method, target, _ = line.split(" ")
            headers = {name.strip().lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
            length = int(headers.get("content-length", 0))
            if not 0 <= length <= BODY_LIMIT or "transfer-encoding" in headers:
                return None
            body = await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            return None
        parts = urlsplit(target)
        return Request(method, parts.path, parse_qs(parts.query), headers, body)

    async def send(self, response: Response) -> None:
        await self.head(response)
        for piece in response.pieces:
            await self.piece(response, piece.data)
        await self.end(response)

    async def head(self, response: Response) -> None:
        length = {"Transfer-Encoding": "chunked"} if response.chunked else {"Content-Length": str(len(response.body))}
        reasons = {status.value: status.phrase for status in HTTPStatus}
        lines = [f"HTTP/1.1 {response.status} {reasons.get(response.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in {**length, **response.headers}.items()]
        await self.bytes("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def piece(self, response: Response, data: bytes) -> None:
        if data:  # an empty chunk would be the end
            await self.bytes(b"%x\r\n%b\r\n" % (len(data), data) if response.chunked else data)

    async def end(self, response: Response) -> None:
        if response.chunked:
            await self.bytes(b"0\r\n\r\n")

    async def bytes(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the client has gone")
        self._writer.write(data)
        await self._writer.drain()

    async def gone(self, within: float | None = None) -> bool:
        """Whether the client closes the connection `within` so many seconds; None waits for it."""
        try:
            return not await asyncio.wait_for(self._reader.read(1), within)
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    def reset(self) -> None:
        """End with RST in place of FIN."""
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def closed(self) -> None:
        """Close, without waiting for a client that does not read."""
        self.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), 1.0)
        except (TimeoutError, ConnectionError):
            self.abort()
