"""HTTP to the search providers: one pool of connections, and one pace for each provider, shared by all runs.

httpx2's transport is used without its client: the client logs every address, where some providers want their key, and
it would follow redirects, keep cookies and take proxies from the environment.
"""

import asyncio
import random
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from aiolimiter import AsyncLimiter

from assay.errors import SourceError
from assay.model.inquiry import Terms
from assay.ports import Bucket, Rates
from assay.text.retry import retry_after

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncHTTPTransport, Response

LARGEST = 5_000_000  # bytes of an answer, after decompression
AT_ONCE = 32  # searches of a process, over all providers and runs
CROWDED = 10  # pauses for who is asked too often and does not say when to come back: 5 s, then 10 s


class Pace(NamedTuple):
    """How patient Assay is with a provider, in seconds."""

    attempts: int = 3
    pause: float = 0.5  # before the second attempt, doubled before the third
    longest: float = 10.0  # who wants to be left alone for longer is not asked again
    overall: float = 45.0  # all attempts at one answer, waiting for a turn aside
    queue: float = 60.0  # for a turn
    rest: float = 20.0  # for one that could not be reached at all

    def wait(self, attempt: int, retry_after: float | None, *, crowded: bool = False) -> float:
        if retry_after is not None:
            return retry_after
        if crowded:
            return self.pause * CROWDED * 2.0 ** (attempt - 1)
        return self.pause * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - keeps callers apart


class Outgoing(NamedTuple):
    """A request with everything it needs, secrets included: it is sent and never shown."""

    url: str
    params: Mapping[str, str | int]
    headers: Mapping[str, str]
    json: Mapping[str, Any] | None = None


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    text: str

    @property
    def retry_after(self) -> float | None:
        """Seconds the provider wants to be left alone for."""
        return retry_after(self.headers.get("retry-after", ""))


class Lane:
    """A provider's turns: so many at once, so many a minute. `rates` are those of all processes, where they share any;
    `all` bounds what is under way to all providers together."""

    def __init__(
        self, terms: Terms, queue: float, *, all: asyncio.Semaphore | None = None, rates: Rates | None = None
    ) -> None:
        a_second = terms.per_minute / 60
        self._bucket = Bucket(max(1.0, a_second), a_second)  # no more at a time than in one second
        self._rate = AsyncLimiter(self._bucket.size, max(1.0, 1 / a_second))
        self._slots = asyncio.Semaphore(terms.at_once)
        self._queue = queue
        self._all = all or asyncio.Semaphore(AT_ONCE)
        self._rates = rates

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._queue):
                await self._slots.acquire()
                try:
                    await self._in_turn(name)
                except BaseException:
                    self._slots.release()
                    raise
        except TimeoutError:
            raise SourceError(
                f"{name} has too many questions waiting",
                help=f"Raise search.requests_per_minute for {name} if your plan allows more.",
                provider=name,
            ) from None
        try:
            yield
        finally:
            self._all.release()
            self._slots.release()

    async def _in_turn(self, name: str) -> None:
        """Whoever waits for a slow provider keeps nobody else waiting: what all share comes last."""
        await self._rate.acquire()
        if self._rates is not None:
            await self._rates.turn(f"search:{name}", self._bucket)
        await self._all.acquire()


class Http:
    """Lives as long as the process works; `close` ends its connections."""

    def __init__(self, pace: Pace | None = None, *, rates: Rates | None = None, at_once: int = AT_ONCE) -> None:
        self.pace = pace or Pace()
        self._rates = rates
        self._all = asyncio.Semaphore(at_once)
        self._transport: AsyncHTTPTransport | None = None
        self._lanes: dict[tuple[str, float, int], Lane] = {}

    def lane(self, name: str, terms: Terms) -> Lane:
        key = (name, terms.per_minute, terms.at_once)
        if key not in self._lanes:
            self._lanes[key] = Lane(terms, self.pace.queue, all=self._all, rates=self._rates)
        return self._lanes[key]

    async def fetch(self, name: str, outgoing: Outgoing, *, seconds: float) -> Reply:
        """What the provider answers, whatever its status; SourceError where it does not."""
        import httpx2

        if not _address(outgoing.url):
            raise misplaced(name)
        transport, progress = self._open(), _Progress()
        try:
            async with asyncio.timeout(seconds):
                return await _exchange(name, outgoing, transport, progress)
        except TimeoutError:
            raise slow(name, seconds, sent=progress.sent) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
            raise misplaced(name) from None
        except httpx2.DecodingError:
            raise broken(name) from None
        except httpx2.TransportError:  # its text may hold what was sent
            raise unreachable(name) from None

    def _open(self) -> "AsyncHTTPTransport":
        if self._transport is None:
            import httpx2

            self._transport = httpx2.AsyncHTTPTransport(verify=_trust(), trust_env=False)
        return self._transport

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None


@cache
def _trust() -> "SSLContext":
    """Reading the authorities takes 30 ms, so it is done once."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


class _Progress:
    """Told by httpx2 how far a request has come; one that was never sent is billed by nobody."""

    def __init__(self) -> None:
        self.sent = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        self.sent = self.sent or event.endswith("send_request_headers.started")


async def _exchange(name: str, outgoing: Outgoing, transport: "AsyncHTTPTransport", progress: _Progress) -> Reply:
    import httpx2

    request = httpx2.Request(
        "GET" if outgoing.json is None else "POST",
        outgoing.url,
        params=dict(outgoing.params) or None,
        json=outgoing.json,
        headers={"Accept-Encoding": "gzip, deflate", **_login(outgoing.url), **outgoing.headers},
        extensions={"trace": progress},
    )
    response = await transport.handle_async_request(request)
    try:
        return Reply(response.status_code, dict(response.headers), await _text(name, response))
    finally:
        await response.aclose()


def _login(url: str) -> dict[str, str]:
    """Of an address such as https://name:password@search.example.org."""
    place = urlsplit(url)
    if place.username is None:
        return {}
    pair = f"{unquote(place.username)}:{unquote(place.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _address(url: str) -> bool:
    try:
        place = urlsplit(url)
        return place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:  # of the port, or of an IPv6 address
        return False


async def _text(name: str, response: "Response") -> str:
    """httpx2 gives a compressed body in pieces of 1 MB at most, so this bounds what a small one may grow to."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST:
            raise too_large(name)
    return decoded(bytes(body))


def decoded(body: bytes) -> str:
    return body.decode("utf-8-sig", errors="replace")


def misplaced(name: str) -> SourceError:
    return SourceError(
        f"{name} cannot be asked at its address", help=f"Correct search.endpoints.{name}.", provider=name
    )


def slow(name: str, seconds: float, *, sent: bool = True) -> SourceError:
    """A request that was sent may have been worked on, and billed."""
    return SourceError(
        f"{name} did not answer within {seconds:.3g} s", help="Try again, or raise search.seconds.", retryable=True,
        billed=sent, provider=name,
    )  # fmt: skip


def unreachable(name: str) -> SourceError:
    return SourceError(
        f"{name} could not be reached", help="Check the network connection, then try again.", retryable=True,
        provider=name, unreachable=True,
    )  # fmt: skip


def broken(name: str) -> SourceError:
    return SourceError(f"{name} sent an answer that cannot be unpacked", retryable=True, provider=name)


def too_large(name: str) -> SourceError:
    return SourceError(f"{name} sent more than {LARGEST // 1_000_000} MB", provider=name)
