"""HTTP/1.1 over asyncio streams, down to the single byte: whoever plays a fault must be able to break it."""

import asyncio
import socket
import ssl
import struct
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

# A certificate for hosts of our own, made when it is needed, so that none lies about.


class Certificate(NamedTuple):
    public: str  # PEM
    private: str

    def build_server_context(self) -> ssl.SSLContext:
        """Of a server that shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:  # OpenSSL reads a chain from a file alone
            path = Path(folder, "chain.pem")
            path.write_text(self.private + self.public, encoding="ascii")
            context.load_cert_chain(path)
        return context


def build_client_context(certificate: Certificate) -> ssl.SSLContext:
    """Of a client that believes this certificate and no other."""
    return ssl.create_default_context(cadata=certificate.public)


def make_certificate(hosts: Sequence[str], *, days: int = 1) -> Certificate:
    """A negative number of days: it has run out."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Fake web")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        made.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    )


HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024


class ServerRequest(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class ResponsePiece(NamedTuple):
    """A part of a response that is sent at once."""

    kind: str  # of a stream: start, text, finish, usage, end; else body
    data: bytes


@dataclass(frozen=True)
class ServerResponse:
    status: int
    pieces: tuple[ResponsePiece, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    chunked: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)


class ServerConnection:
    """One connection. Writing raises ConnectionError when nobody listens any more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_request(self) -> ServerRequest | None:
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
        return ServerRequest(method, parts.path, parse_qs(parts.query), headers, body)

    async def send(self, response: ServerResponse) -> None:
        await self.send_head(response)
        for piece in response.pieces:
            await self.send_piece(response, piece.data)
        await self.send_end(response)

    async def send_head(self, response: ServerResponse) -> None:
        length = {"Transfer-Encoding": "chunked"} if response.chunked else {"Content-Length": str(len(response.body))}
        reasons = {status.value: status.phrase for status in HTTPStatus}
        lines = [f"HTTP/1.1 {response.status} {reasons.get(response.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in {**length, **response.headers}.items()]
        await self.send_bytes("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send_piece(self, response: ServerResponse, data: bytes) -> None:
        if data:  # an empty chunk would be the end
            await self.send_bytes(b"%x\r\n%b\r\n" % (len(data), data) if response.chunked else data)

    async def send_end(self, response: ServerResponse) -> None:
        if response.chunked:
            await self.send_bytes(b"0\r\n\r\n")

    async def send_bytes(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the client has gone")
        self._writer.write(data)
        await self._writer.drain()

    async def wait_for_close(self, within: float | None = None) -> bool:
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

    async def aclose(self) -> None:
        """Close, without waiting for a client that does not read."""
        self.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), 1.0)
        except (TimeoutError, ConnectionError):
            self.abort()


# Servers on 127.0.0.1 that answer requests as they are told to, one task a connection.


class FakeHttpServer:
    """`answer` does with a request and its connection what it likes. What it raises, unless the client has gone, ends
    the connection and is raised again when all is closed. Above `most` connections, new ones are closed at once."""

    def __init__(
        self, answer: Callable[[ServerConnection, ServerRequest], Awaitable[None]], *, most: int = 1000
    ) -> None:
        self._answer = answer
        self._most = most
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.Task[None], ServerConnection] = {}
        self._failures: list[BaseException] = []

    async def start(self, secure: ssl.SSLContext | None = None) -> int:
        """One more server; its port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT, ssl=secure)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def stop(self, error: BaseException | None) -> None:
        """`error` is what ends it: it is not hidden by another."""
        for server in self._servers:
            server.close()
        for task, wire in self._open.items():
            wire.abort()
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        if self._failures and error is None:
            raise self._failures[0]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= self._most:
            writer.close()
            return
        wire = ServerConnection(reader, writer)
        task = asyncio.create_task(self._serve(wire))
        self._open[task] = wire
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        del self._open[task]
        if not task.cancelled() and (error := task.exception()):
            self._failures.append(error)

    async def _serve(self, wire: ServerConnection) -> None:
        try:
            while (request := await wire.read_request()) is not None:
                await self._answer(wire, request)
        except (ConnectionError, ssl.SSLError):
            pass  # the client has gone
        finally:
            await wire.aclose()
