"""The web on this machine: any number of host names behind one server on 127.0.0.1, each page as told.

    async with FakeWeb() as web:
        web.page("http://news.example.org/a", "<p>Hello</p>", delay=0.1)
        web.redirect("http://old.example.org/", "http://news.example.org/a")
        client = GuardedClient(settings, resolve=web.public, dial=web.dial)

Two ways in. `resolve=web.public, dial=web.dial`: hosts have public addresses and their usual ports, and whoever dials
one arrives here; `web.dialled` has what was dialled. Or `resolve=web.resolve` with 127.0.0.1/32 allowed and addresses
from `web.url(host, path)`, which carry the port: for clients that dial themselves.
"""

import asyncio
import ssl
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from openassay.models.evidence import Document, Hit, SearchRequest
from openassay.testing import FakeRemote, make_document
from tests.fakes.http_server import (
    FakeHttpServer,
    ResponsePiece,
    ServerConnection,
    ServerRequest,
    ServerResponse,
    build_client_context,
    make_certificate,
)

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkStream


PUBLIC_ADDRESS = "93.184.215.14"
HTML = "text/html; charset=utf-8"


class WebVisit(NamedTuple):
    """A request as it came in."""

    host: str  # in lower case, without its port
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    method: str
    body: bytes
    time: float  # monotonic

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"


PageHandler = Callable[[ServerConnection, WebVisit], Awaitable[None]]


def build_reply(
    body: str | bytes = "", *, status: int = 200, type: str | None = HTML, headers: Mapping[str, str] | None = None
) -> ServerResponse:
    """`type` None: no Content-Type at all."""
    data = body.encode() if isinstance(body, str) else body
    fields = {**({"Content-Type": type} if type else {}), **(headers or {})}
    return ServerResponse(status, (ResponsePiece("body", data),), fields)


class FakeWeb:
    """Pages are found by host and path; `*` stands for any host, or as the path for the rest of a host.

    What nobody described answers 404. `tls` names the hosts of a second server, over TLS; `web.trust` is the context
    of a client that believes its certificate. An error in a page's play is raised again when the web closes.
    """

    def __init__(self, *, tls: Sequence[str] = ()) -> None:
        self.requests: list[WebVisit] = []
        self.dialled: list[tuple[str, int]] = []
        self._plays: dict[tuple[str, str], PageHandler] = {}
        self._tls = tls
        self._listening = FakeHttpServer(self._handle_request)

    # What there is

    def add_page(
        self,
        address: str,
        body: str | bytes = "",
        *,
        status: int = 200,
        type: str | None = HTML,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> None:
        self.add_replies(address, build_reply(body, status=status, type=type, headers=headers), delay=delay)

    def add_redirect(self, address: str, to: str, *, status: int = 302) -> None:
        self.add_page(address, status=status, headers={"Location": to})

    def add_replies(self, address: str, *replies: ServerResponse, delay: float = 0.0) -> None:
        """One reply after the other; the last one stays."""
        left = list(replies)

        async def play(wire: ServerConnection, visit: WebVisit) -> None:
            response = left.pop(0) if len(left) > 1 else left[0]
            if delay and await wire.wait_for_close(within=delay):
                return
            await wire.send(
                response if visit.method != "HEAD" else ServerResponse(response.status, (), response.headers)
            )

        self.add_handler(address, play)

    def add_handler(self, address: str, play: PageHandler) -> None:
        """The page does with its connection what it likes; closed afterwards if it says so by `wire.close()`."""
        parts = urlsplit(address)
        self._plays[parts.hostname or "*", parts.path or "/"] = play

    # How it is reached

    def url(self, host: str, path: str = "/", *, scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.tls_port if scheme == 'https' else self.port}{path}"

    async def resolve(self, host: str) -> Sequence[str]:
        """Every name is this machine."""
        return ["127.0.0.1"]

    async def resolve_public(self, host: str) -> Sequence[str]:
        """Every name has a public address, for use with `dial`."""
        return [PUBLIC_ADDRESS]

    async def dial(self, address: str, port: int) -> "AsyncNetworkStream":
        from httpcore2 import AnyIOBackend

        self.dialled.append((address, port))
        there = self.tls_port if self._tls and port in (443, 8443, self.tls_port) else self.port
        return await AnyIOBackend().connect_tcp("127.0.0.1", there)

    def visits_to(self, host: str, path: str | None = None) -> list[WebVisit]:
        return [visit for visit in self.requests if visit.host == host and path in (None, visit.path)]

    # How it is served

    async def __aenter__(self) -> Self:
        self.port: int = await self._listening.start()
        if self._tls:
            pair = make_certificate(self._tls)
            self.trust: ssl.SSLContext = build_client_context(pair)
            self.tls_port: int = await self._listening.start(pair.build_server_context())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listening.stop(error)

    async def _handle_request(self, wire: ServerConnection, request: ServerRequest) -> None:
        visit = _to_visit(request)
        self.requests.append(visit)
        await self._find_handler(visit)(wire, visit)

    def _find_handler(self, visit: WebVisit) -> PageHandler:
        for host in (visit.host, "*"):
            for path in (visit.path, "/*"):
                if play := self._plays.get((host, path)):
                    return play
        return _send_404


async def _send_404(wire: ServerConnection, visit: WebVisit) -> None:
    await wire.send(build_reply("<p>There is no such page.</p>", status=404))


def _to_visit(request: ServerRequest) -> WebVisit:
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return WebVisit(host, request.path, request.query, request.headers, request.method, request.body, monotonic())


# Pages that mean harm: bombs, bodies without an end, servers that drip.

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def make_bomb(encoding: str, megabytes: int) -> bytes:
    """So many megabytes of nothing, packed: gzip, deflate, br or zstd; `gzip, gzip` packs twice."""
    first, *rest = [name.strip() for name in encoding.split(",")]
    packed = _compress_zeros(first, megabytes)
    for name in rest:
        packed = _compress(name, packed)
    return packed


def send_endless_body(fields: bytes = b"", piece: bytes = b"a" * 65_536, *, head: bytes = _HEAD) -> PageHandler:
    """A body that never stops, as fast as it is read; `head` replaces the head without its end."""

    async def play(wire: ServerConnection, visit: WebVisit) -> None:
        await wire.send_bytes(head + fields + b"\r\n")
        while True:
            await wire.send_bytes(piece)
            await asyncio.sleep(0)  # a drain that need not wait gives nobody else a turn

    return play


def send_slowly(data: bytes, pause: float, *, head: bytes = _HEAD + b"\r\n") -> PageHandler:
    """The head at once and then a byte now and then; with an empty head the data may be the head itself."""

    async def play(wire: ServerConnection, visit: WebVisit) -> None:
        await wire.send_bytes(head)
        for position in range(len(data)):
            await wire.send_bytes(data[position : position + 1])
            await asyncio.sleep(pause)
        wire.close()

    return play


def send_raw(data: bytes) -> PageHandler:
    """These bytes, whatever they are, and then the end."""

    async def play(wire: ServerConnection, visit: WebVisit) -> None:
        await wire.send_bytes(data)
        await wire.aclose()

    return play


async def reset_connection(wire: ServerConnection, visit: WebVisit) -> None:
    wire.reset()


async def stay_silent(wire: ServerConnection, visit: WebVisit) -> None:
    await wire.wait_for_close()


def _compress_zeros(encoding: str, megabytes: int) -> bytes:
    block = bytes(2**20)
    if encoding in ("gzip", "deflate"):
        packer = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
        return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    if encoding == "br":
        import brotli

        stream = brotli.Compressor(quality=5)
        return b"".join(stream.process(block) for _ in range(megabytes)) + bytes(stream.finish())
    import zstandard

    frames = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join(frames.compress(block) for _ in range(megabytes)) + frames.flush()


def _compress(encoding: str, data: bytes) -> bytes:
    if encoding == "gzip":
        return zlib.compress(data, 9, wbits=31)
    if encoding == "deflate":
        return zlib.compress(data, 9)
    if encoding == "br":
        import brotli

        return bytes(brotli.compress(data))
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


# A web of as many pages as a test wants: every query finds others of them.

_STRIDE = 7919  # a prime: two queries have few pages in common
_WORDS = 20  # of its own on each page, so that none is a copy of another


class LargeRemote(FakeRemote):
    """A ports.Remote; `documents` are what stands at its addresses."""

    def __init__(self, pages: int) -> None:
        super().__init__("wide")
        self.documents = [_build_page(number) for number in range(pages)]

    def _build_hits(self, inquiry: SearchRequest) -> list[Hit]:
        count, first = len(self.documents), zlib.crc32(inquiry.query.encode())
        found = [self.documents[(first + n * _STRIDE) % count] for n in range(min(inquiry.limit, count))]
        return [
            Hit(provider=self.name, query=inquiry.query, rank=rank, url=page.url, title=page.title, host=page.host,
                snippet=page.text[:160])
            for rank, page in enumerate(found, 1)
        ]  # fmt: skip


def _build_page(number: int) -> Document:
    own = " ".join(f"w{number}x{n}" for n in range(_WORDS))
    text = (
        f"Station {number} on Lake Marrow reported a depth of {number + 3} metres. "
        f"Its observer counted {number + 7} trout and {number + 11} pike in the lake. "
        f"The water of Lake Marrow was {number % 19 + 2} degrees cold at station {number}. {own}"
    )
    return make_document(
        text, title=f"Log of station {number}", url=f"https://lake{number % 50}.example/station-{number}"
    )
