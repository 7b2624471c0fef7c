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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from assay.testing.certificate import authority, certificate
from assay.testing.wire import HEAD_LIMIT, Piece, Request, Response, Wire

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkStream

PUBLIC = "93.184.215.14"
HTML = "text/html; charset=utf-8"


class Visit(NamedTuple):
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


Play = Callable[[Wire, Visit], Awaitable[None]]


def reply(
    body: str | bytes = "", *, status: int = 200, type: str | None = HTML, headers: Mapping[str, str] | None = None
) -> Response:
    """`type` None: no Content-Type at all."""
    data = body.encode() if isinstance(body, str) else body
    fields = {**({"Content-Type": type} if type else {}), **(headers or {})}
    return Response(status, (Piece("body", data),), fields)


class FakeWeb:
    """Pages are found by host and path; `*` stands for any host, or as the path for the rest of a host.

    What nobody described answers 404. `tls` names the hosts of a second server, over TLS; `web.trust` is the context
    of a client that believes its certificate. An error in a page's play is raised again when the web closes.
    """

    def __init__(self, *, tls: Sequence[str] = ()) -> None:
        self.requests: list[Visit] = []
        self.dialled: list[tuple[str, int]] = []
        self._plays: dict[tuple[str, str], Play] = {}
        self._tls = tls
        self._open: dict[asyncio.Task[None], Wire] = {}
        self._failures: list[BaseException] = []

    # What there is

    def page(
        self,
        address: str,
        body: str | bytes = "",
        *,
        status: int = 200,
        type: str | None = HTML,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> None:
        self.series(address, reply(body, status=status, type=type, headers=headers), delay=delay)

    def redirect(self, address: str, to: str, *, status: int = 302) -> None:
        self.page(address, status=status, headers={"Location": to})

    def series(self, address: str, *replies: Response, delay: float = 0.0) -> None:
        """One reply after the other; the last one stays."""
        left = list(replies)

        async def play(wire: Wire, visit: Visit) -> None:
            response = left.pop(0) if len(left) > 1 else left[0]
            if delay and await wire.gone(within=delay):
                return
            await wire.send(response if visit.method != "HEAD" else Response(response.status, (), response.headers))

        self.play(address, play)

    def play(self, address: str, play: Play) -> None:
        """The page does with its connection what it likes; closed afterwards if it says so by `wire.close()`."""
        parts = urlsplit(address)
        self._plays[parts.hostname or "*", parts.path or "/"] = play

    # How it is reached

    def url(self, host: str, path: str = "/", *, scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.tls_port if scheme == 'https' else self.port}{path}"

    async def resolve(self, host: str) -> Sequence[str]:
        """Every name is this machine."""
        return ["127.0.0.1"]

    async def public(self, host: str) -> Sequence[str]:
        """Every name has a public address, for use with `dial`."""
        return [PUBLIC]

    async def dial(self, address: str, port: int) -> "AsyncNetworkStream":
        from httpcore2 import AnyIOBackend

        self.dialled.append((address, port))
        there = self.tls_port if self._tls and port in (443, 8443, self.tls_port) else self.port
        return await AnyIOBackend().connect_tcp("127.0.0.1", there)

    def visits(self, host: str, path: str | None = None) -> list[Visit]:
        return [visit for visit in self.requests if visit.host == host and path in (None, visit.path)]

    # How it is served

    async def __aenter__(self) -> Self:
        self._servers = [await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=HEAD_LIMIT)]
        self.port: int = self._servers[0].sockets[0].getsockname()[1]
        if self._tls:
            pair = certificate(self._tls)
            self.trust: ssl.SSLContext = authority(pair)
            secure = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=HEAD_LIMIT, ssl=pair.context())
            self._servers.append(secure)
            self.tls_port: int = secure.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer)
        task = asyncio.create_task(self._serve(wire))
        self._open[task] = wire
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._open[task]
        if not task.cancelled() and (error := task.exception()):
            self._failures.append(error)

    async def _serve(self, wire: Wire) -> None:
        try:
            while (request := await wire.request()) is not None:
                visit = _visit(request)
                self.requests.append(visit)
                await self._found(visit)(wire, visit)
        except (ConnectionError, ssl.SSLError):
            pass  # the client has gone
        finally:
            await wire.closed()

    def _found(self, visit: Visit) -> Play:
        for host in (visit.host, "*"):
            for path in (visit.path, "/*"):
                if play := self._plays.get((host, path)):
                    return play
        return _missing


async def _missing(wire: Wire, visit: Visit) -> None:
    await wire.send(reply("<p>There is no such page.</p>", status=404))


def _visit(request: Request) -> Visit:
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return Visit(host, request.path, request.query, request.headers, request.method, request.body, monotonic())
