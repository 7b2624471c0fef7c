"""The guarded client, through which OpenAssay fetches everything: every connection and redirect is checked and bounded.

No cookies, no referrer, no credentials, no proxy of the environment. One retry where it may help, inside the time.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from time import monotonic
from typing import Self

import httpcore2
from httpcore2 import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout, Response

from openassay.errors import AddressPolicyError, FetchError
from openassay.fetch.decoders import ACCEPTED, BodyDecoder, BodyLimitError
from openassay.fetch.guard import IP, AddressGuard, FetchAddress
from openassay.settings import HarvestSettings
from openassay.text.urls import parse_retry_after

SNIFF_BYTES = 512  # of a body, to find its media type
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:+-]{1,40})""", re.IGNORECASE)
_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+")
# What servers send for anything that they do not know.
_GENERIC_TYPES = {"application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown", "*/*"}
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|div|p|h1|table|a|!--)\b|<!--", re.I)
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SIGNATURES = {
    b"%PDF-": "application/pdf",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}


def sniff_media_type(beginning: bytes) -> str:
    """Guess the media type of a body from its first bytes."""
    for sign, kind in _SIGNATURES.items():
        if beginning.startswith(sign):
            return kind
    if beginning.startswith(_BOMS[1:]):
        return "text/plain"
    text = beginning.removeprefix(_BOMS[0]).lstrip()
    if _BINARY.search(text):
        return "application/octet-stream"
    if _HTML.match(text):
        return "text/html"
    if text.startswith(b"<?xml"):
        return "application/xhtml+xml" if b"<html" in text else "application/xml"
    return "text/plain"


OnRedirect = Callable[[str], Awaitable[None]]  # called before a redirect is followed; raises FetchError to stop there

_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})  # a retry on another day may help
_RETRY_STATUSES = frozenset({429, 502, 503, 504})  # a retry after a second may help
_DEFAULT_PAUSE = 1.0  # where the site names none
_MAX_RETRY_PAUSE = 5.0
_MAX_HEADERS = 200  # of a head; its size is bounded at 100 KiB by the parser
_CONDITIONAL_HEADERS = {"if-none-match", "if-modified-since"}


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A response. `headers` are in lower case and without cookies; `whole` is False where the body was clipped."""

    url: str  # where it was found in the end
    status: int
    headers: Mapping[str, str]
    media_type: str
    charset: str | None
    body: bytes
    redirects: tuple[str, ...] = ()  # the addresses before this one
    whole: bool = True


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request, and how much of the response is read."""

    method: str
    max_bytes: int
    accept: frozenset[str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    redirects: int = 10
    on_redirect: OnRedirect | None = None
    clip: bool = False

    def accepts_kind(self, kind: str) -> bool:
        return self.accept is None or kind in self.accept

    def check_kind(self, kind: str) -> None:
        if not self.accepts_kind(kind):
            raise FetchError(f"is {kind}, which is not supported", help="Only text and documents are read.")


class TransientFetchError(FetchError):
    """A failure that may be over after a pause."""

    pause = 0.2


class RedirectError(FetchError):
    """Redirects that lead nowhere."""


def parse_headers(raw: Sequence[tuple[bytes, bytes]], address: FetchAddress) -> dict[str, str]:
    """Return headers by their names in lower case; those that came more than once are joined."""
    if len(raw) > _MAX_HEADERS:
        raise FetchError("sends too many headers", help=f"At most {_MAX_HEADERS} are read.", url=address.url)
    found: dict[str, str] = {}
    for key, value in raw:
        name = key.decode("latin-1").lower()
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        if name in ("content-type", "location"):
            found.setdefault(name, text)
        elif name != "set-cookie":
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found


async def read_response(
    response: Response,
    headers: Mapping[str, str],
    request: FetchRequest,
    address: FetchAddress,
    passed: tuple[str, ...],
) -> FetchResponse:
    """Check the status and read the body; raises FetchError."""
    status = response.status
    conditional = any(name.lower() in _CONDITIONAL_HEADERS for name in request.headers)
    if not ((200 <= status < 300 and status != 206) or (status == 304 and conditional)):
        transient = status in _TRANSIENT_STATUSES
        help = "The site may be busy; try later." if transient else "The page does not exist, or is closed to crawlers."
        pause = parse_retry_after(headers.get("retry-after", ""))
        pause = _DEFAULT_PAUSE if pause is None else pause
        if status not in _RETRY_STATUSES or pause > _MAX_RETRY_PAUSE:
            raise FetchError(f"answered {status}", help=help, retryable=transient, status=status, url=address.url)
        error = TransientFetchError(f"answered {status}", help=help, retryable=True, status=status, url=address.url)
        error.pause = pause
        raise error
    declared = headers.get("content-type", "")
    kind, charset = _TYPE.match(declared.strip().lower()), _CHARSET.search(declared)
    reader = _BodyReader(request, headers, None if status == 304 else kind[0] if kind else "")
    async for data in response.aiter_stream():
        if not reader.feed(data):
            break
    body, encoding = reader.finish(), charset[1].lower() if charset else None
    return FetchResponse(address.url, status, headers, reader.kind or "", encoding, body, passed, reader.whole)


class _BodyReader:
    """Reads a body. Neither what arrives nor what is decoded may go over the limit."""

    def __init__(self, request: FetchRequest, headers: Mapping[str, str], kind: str | None) -> None:
        self.whole = True
        self.kind = kind  # None: there is no body; empty: the first bytes will tell
        self._request = request
        self._arrived = 0
        self._body = bytearray()
        if kind in _GENERIC_TYPES and not request.accepts_kind(kind):
            self.kind = ""
        if self.kind:
            request.check_kind(self.kind)
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > request.max_bytes and not request.clip:
            raise self._too_large_error()
        self._decoder = BodyDecoder(headers.get("content-encoding", ""), limit=request.max_bytes)

    def feed(self, data: bytes) -> bool:
        """Add data; return whether more is wanted."""
        self._arrived += len(data)
        if self._arrived > self._request.max_bytes:
            data = data[: len(data) - (self._arrived - self._request.max_bytes)]
            self._add(self._decoder.feed(data))
            return self._stop_at_limit()
        return self._add(self._decoder.feed(data))

    def finish(self) -> bytes:
        if self.whole:
            self._add(self._decoder.end())
        self._sniff_kind()
        return bytes(self._body[: self._request.max_bytes])

    def _add(self, pieces: Iterable[bytes]) -> bool:
        try:
            for piece in pieces:
                self._body += piece
                if len(self._body) > self._request.max_bytes:
                    return self._stop_at_limit()
        except BodyLimitError:
            return self._stop_at_limit()
        if len(self._body) >= SNIFF_BYTES:
            self._sniff_kind()
        return True

    def _sniff_kind(self) -> None:
        if self.kind == "" and self._body:
            self.kind = sniff_media_type(bytes(self._body[:SNIFF_BYTES]))
            self._request.check_kind(self.kind)

    def _stop_at_limit(self) -> bool:
        if not self._request.clip:
            raise self._too_large_error()
        self.whole = False
        return False

    def _too_large_error(self) -> FetchError:
        return FetchError(f"has more than {self._request.max_bytes / 1e6:g} MB", help="Larger pages are not read.")


Resolve = Callable[[str], Awaitable[Sequence[str]]]  # a host name -> its addresses; OSError when it has none
Dial = Callable[[str, int], Awaitable[AsyncNetworkStream]]  # an IP address and a port

_LOOKUP_SECONDS = 8.0
_DIAL_SECONDS = 6.0  # one address
_MAX_ADDRESSES = 4  # of one name that are tried
_MAX_LOOKUPS = 16  # at once; a name server that hangs must not take the threads of everything else


class Dialler(AsyncNetworkBackend):
    """Connects to checked addresses, and is the only way out. Raises AddressPolicyError, or FetchError.

    A name is looked up once, all it leads to is checked, and that is what is connected to. Nothing looks it up a second
    time, so an answer that changes between check and connection (DNS rebinding) has no effect."""

    def __init__(self, guard: AddressGuard, resolve: Resolve | None = None, dial: Dial | None = None) -> None:
        self._guard = guard
        self._threads = ThreadPoolExecutor(_MAX_LOOKUPS, thread_name_prefix="lookup")
        self._resolve = resolve or self._look_up
        self._dial = dial or AnyIOBackend().connect_tcp

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[object] | None = None,
    ) -> AsyncNetworkStream:
        address = self._guard.check_host(host, port)
        for ip in await self._resolve_ips(address):
            try:
                async with asyncio.timeout(_DIAL_SECONDS):
                    return await self._dial(str(ip), port)
            except (TimeoutError, OSError, ConnectError, ConnectTimeout):
                continue
        raise FetchError("could not be reached", help="The site may be down.", retryable=True, url=address.url)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _resolve_ips(self, address: FetchAddress) -> list[IP]:
        if address.ip is not None:
            return [address.ip]
        try:
            async with asyncio.timeout(_LOOKUP_SECONDS):
                answers = await self._resolve(address.host)
        except TimeoutError as error:
            raise _lookup_error(address, retryable=True) from error
        except (OSError, UnicodeError) as error:
            again = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
            raise _lookup_error(address, retryable=again) from error
        if not answers:
            raise _lookup_error(address, retryable=False)
        ips = self._guard.check_ips(address, answers)
        # Both families early: a machine with a broken IPv6 gets through all the same.
        first = [ip for ip in ips if ip.version == ips[0].version]
        second = [ip for ip in ips if ip.version != ips[0].version]
        return [ip for ip in chain.from_iterable(zip_longest(first, second)) if ip is not None][:_MAX_ADDRESSES]

    async def _look_up(self, host: str) -> list[str]:
        name = host.encode("ascii")  # as bytes: the parser has done IDNA already, and better
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        )
        return [str(sockaddr[0]) for *_, sockaddr in found]


def _lookup_error(address: FetchAddress, *, retryable: bool) -> FetchError:
    reason = "has a host name that could not be looked up" if retryable else "has a host name that does not exist"
    return FetchError(reason, help="Check the spelling and the connection.", retryable=retryable, url=address.url)


class FetchClient:
    """Fetches from checked addresses. `resolve` and `dial` replace the name server and the network, for tests."""

    def __init__(
        self,
        settings: HarvestSettings,
        *,
        resolve: Resolve | None = None,
        dial: Dial | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._agent = settings.user_agent
        self._guard = AddressGuard(settings.allow_addresses)
        self._dialler = Dialler(self._guard, resolve, dial)
        self._trust = trust
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._dialler.close()
        if self._pool is not None:
            await self._pool.aclose()

    def check(self, url: str) -> FetchAddress:
        """Check an address by its form alone; raises AddressPolicyError."""
        return self._guard.check(url)

    async def connect(self, host: str, port: int) -> httpcore2.AsyncNetworkStream:
        """Open a plain connection to a checked address, for a caller with a protocol of its own."""
        return await self._dialler.connect_tcp(host, port)

    async def get(
        self,
        url: str,
        *,
        seconds: float,
        max_bytes: int,
        accept: frozenset[str] | None = None,
        headers: Mapping[str, str] | None = None,
        redirects: int = 10,
        on_redirect: OnRedirect | None = None,
        clip: bool = False,
    ) -> FetchResponse:
        """Fetch a page, or raise FetchError. `clip` reads the first `max_bytes` of a larger one.

        A 304 is a response where `headers` ask for one; every other status outside 2xx is an error, which has it in
        its context. With `redirects` 0 a redirect is such a status."""
        request = FetchRequest("GET", max_bytes, accept, headers or {}, b"", redirects, on_redirect, clip)
        async with _time_limit(seconds, url) as limit:
            try:
                return await self._follow_redirects(url, request)
            except TransientFetchError as error:
                if (limit.when() or 0) - asyncio.get_running_loop().time() <= error.pause:
                    raise
                await asyncio.sleep(error.pause)
            return await self._follow_redirects(url, request)

    async def post(
        self, url: str, content: bytes, *, seconds: float, max_bytes: int, headers: Mapping[str, str] | None = None
    ) -> FetchResponse:
        """Deliver `content` once, without redirects or retries. Of the response the first `max_bytes` are read."""
        request = FetchRequest("POST", max_bytes, None, headers or {}, content, redirects=0, clip=True)
        async with _time_limit(seconds, url):
            return await self._follow_redirects(url, request)

    async def _follow_redirects(self, url: str, request: FetchRequest) -> FetchResponse:
        address = first = self._guard.check(url)
        passed: list[str] = []
        while True:
            found = await self._send(address, request, passed, extra=address.origin == first.origin)
            if isinstance(found, FetchResponse):
                return found
            passed.append(address.url)
            if len(passed) > request.redirects:
                raise RedirectError("redirects too often", help="The site sends visitors in circles.", url=passed[0])
            try:
                address = self._guard.check(found, address.url)
            except AddressPolicyError as error:
                reason = f"redirects to an address that {error.message}"
                raise AddressPolicyError(reason, help=error.help, url=passed[0]) from error
            if address.url in passed:
                raise RedirectError("redirects in a circle", help="The site may want cookies.", url=passed[0])
            if request.on_redirect is not None:
                await request.on_redirect(address.url)

    async def _send(
        self, address: FetchAddress, request: FetchRequest, passed: list[str], *, extra: bool
    ) -> FetchResponse | str:
        """Send one request; returns the location where it is a redirect.

        The caller's own headers (`extra`) go to the host that the caller named and to no other, and cannot replace
        ours."""
        with _translate_errors(address):
            if self._pool is None:
                self._pool = httpcore2.AsyncConnectionPool(
                    ssl_context=self._trust or httpcore2.default_ssl_context(),
                    max_connections=None,
                    max_keepalive_connections=32,
                    keepalive_expiry=15.0,
                    network_backend=self._dialler,
                )
            accept = ", ".join([*sorted(request.accept), "*/*;q=0.1"]) if request.accept else "*/*"
            theirs = {name.lower(): value for name, value in request.headers.items()} if extra else {}
            ours = {"host": address.netloc, "user-agent": self._agent, "accept-encoding": ACCEPTED}
            if request.method == "POST":
                ours["content-length"] = str(len(request.content))
            sent = [(name.encode(), value.encode()) for name, value in {"accept": accept, **theirs, **ours}.items()]
            url = httpcore2.URL(scheme=address.scheme, host=address.host, port=address.port, target=address.target)
            async with self._pool.stream(
                request.method,
                url,
                headers=sent,
                content=request.content or None,
                extensions={"sni_hostname": address.host},
            ) as response:
                headers = parse_headers(response.headers, address)
                is_redirect = request.redirects and response.status in _REDIRECT_STATUSES
                location = headers.get("location") if is_redirect else None
                return location or await read_response(response, headers, request, address, tuple(passed))


@contextmanager
def _translate_errors(address: FetchAddress) -> Iterator[None]:
    """Turn what the transport raises into FetchErrors."""
    site = "The site may be down, or may refuse crawlers."
    try:
        yield
    except FetchError as error:
        error.context.setdefault("url", address.url)
        raise
    except httpcore2.RemoteProtocolError as error:
        if any(word in str(error) for word in ("closed", "disconnected")):
            raise TransientFetchError("broke off its response", help=site, retryable=True, url=address.url) from error
        raise FetchError("sent an invalid HTTP response", help=site, url=address.url) from error
    except httpcore2.ConnectError as error:
        reason = "has no valid certificate" if isinstance(error.__context__, ssl.SSLError) else "could not be reached"
        raise FetchError(reason, help=site, url=address.url) from error
    except (httpcore2.LocalProtocolError, UnicodeError) as error:
        raise FetchError("cannot be requested", help="Check the address and the headers.", url=address.url) from error
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
        raise TransientFetchError("broke the connection", help=site, retryable=True, url=address.url) from error


@asynccontextmanager
async def _time_limit(seconds: float, url: str) -> AsyncIterator[asyncio.Timeout]:
    try:
        async with asyncio.timeout(seconds) as limit:
            yield limit
    except TimeoutError as error:
        reason = f"took longer than {seconds:g} s"
        raise FetchError(reason, help="The site is slow or down.", retryable=True, url=url) from error


MAX_HOST_PAUSE = 10.0  # seconds; for a site that asks for more, one run makes few enough requests
_MAX_IDLE_HOSTS = 1_000


@dataclass
class _HostState:
    slots: asyncio.Semaphore
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)  # starts come one after the other
    ready: float = 0.0
    users: int = 0


class HostLimiter:
    """Limits requests: few at once to a host, a pause between their starts, and a bound over all hosts.

    First come, first served; waiting for a slow host keeps no other host waiting."""

    def __init__(
        self, *, at_once: int, at_once_per_host: int, host_pause: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._per_host = at_once_per_host
        self._pause = host_pause
        self._clock = clock
        self._hosts: dict[str, _HostState] = {}

    @asynccontextmanager
    async def slot(self, host: str, *, pause: float = 0.0) -> AsyncIterator[None]:
        """Wait until one request to the host may be made; `pause` is what the site itself asks for."""
        state = self._hosts.setdefault(host, _HostState(asyncio.Semaphore(self._per_host)))
        state.users += 1
        try:
            async with state.slots:
                async with state.gate:
                    await asyncio.sleep(max(0.0, state.ready - self._clock()))
                    await self._all.acquire()
                    state.ready = self._clock() + max(self._pause, min(pause, MAX_HOST_PAUSE))
                try:
                    yield
                finally:
                    self._all.release()
        finally:
            state.users -= 1
            if len(self._hosts) > _MAX_IDLE_HOSTS:
                now = self._clock()
                self._hosts = {name: known for name, known in self._hosts.items() if known.users or known.ready > now}
