"""The web on this machine: any number of host names behind one server on 127.0.0.1, each page as told.

    async with FakeWeb() as web:
        web.page("http://news.example.org/a", "<p>Hello</p>", delay=0.1)
        web.redirect("http://old.example.org/", "http://news.example.org/a")
        client = GuardedClient(settings, resolve=web.public, dial=web.dial)

Two ways in. `resolve=web.public, dial=web.dial`: hosts have public addresses and their usual ports, and whoever dials
one arrives here; `web.dialled` has what was dialled. Or `resolve=web.resolve` with 127.0.0.1/32 allowed and addresses
from `web.url(host, path)`, which carry the port: for clients that dial themselves.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from assay.testing.certificate import authority, certificate
from assay.testing.listening import Listening
from assay.testing.wire import Piece, Request, Response, Wire

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
        self._listening = Listening(self._answered)

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
        self.port: int = await self._listening.begin()
        if self._tls:
            pair = certificate(self._tls)
            self.trust: ssl.SSLContext = authority(pair)
            self.tls_port: int = await self._listening.begin(pair.context())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listening.end(error)

    async def _answered(self, wire: Wire, request: Request) -> None:
        visit = _visit(request)
        self.requests.append(visit)
        await self._found(visit)(wire, visit)

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
