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

from openassay.errors import SourceError
from openassay.models.evidence import ProviderTerms
from openassay.protocols import RateLimiter, TokenBucket
from openassay.text.urls import parse_retry_after

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncHTTPTransport, Response

MAX_BYTES = 5_000_000  # bytes of an answer, after decompression
AT_ONCE = 32  # searches of a process, over all providers and runs
RATE_LIMIT_FACTOR = 10  # pauses for who is asked too often and does not say when to come back: 5 s, then 10 s


class RetryPolicy(NamedTuple):
    """How patient OpenAssay is with a provider, in seconds."""

    attempts: int = 3
    pause: float = 0.5  # before the second attempt, doubled before the third
    longest: float = 10.0  # who wants to be left alone for longer is not asked again
    overall: float = 45.0  # all attempts at one answer, waiting for a turn aside
    queue: float = 60.0  # for a turn
    rest: float = 20.0  # for one that could not be reached at all

    def pause_before(self, attempt: int, retry_after: float | None, *, crowded: bool = False) -> float:
        if retry_after is not None:
            return retry_after
        if crowded:
            return self.pause * RATE_LIMIT_FACTOR * 2.0 ** (attempt - 1)
        return self.pause * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - keeps callers apart


class HttpRequest(NamedTuple):
    """A request with everything it needs, secrets included: it is sent and never shown."""

    url: str
    params: Mapping[str, str | int]
    headers: Mapping[str, str]
    json: Mapping[str, Any] | None = None


class HttpResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    text: str

    @property
    def retry_after(self) -> float | None:
        """Seconds the provider wants to be left alone for."""
        return parse_retry_after(self.headers.get("retry-after", ""))


class ProviderLimiter:
    """A provider's turns: so many at once, so many a minute. `rates` are those of all processes, where they share any;
    `all` bounds what is under way to all providers together."""

    def __init__(
        self,
        terms: ProviderTerms,
        queue: float,
        *,
        all: asyncio.Semaphore | None = None,
        rates: RateLimiter | None = None,
    ) -> None:
        a_second = terms.per_minute / 60
        self._bucket = TokenBucket(max(1.0, a_second), a_second)  # no more at a time than in one second
        self._rate = AsyncLimiter(self._bucket.size, max(1.0, 1 / a_second))
        self._slots = asyncio.Semaphore(terms.at_once)
        self._queue = queue
        self._all = all or asyncio.Semaphore(AT_ONCE)
        self._rates = rates

    @asynccontextmanager
    async def slot(self, name: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._queue):
                await self._slots.acquire()
                try:
                    await self._wait_for_rate(name)
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

    async def _wait_for_rate(self, name: str) -> None:
        """Whoever waits for a slow provider keeps nobody else waiting: what all share comes last."""
        await self._rate.acquire()
        if self._rates is not None:
            await self._rates.acquire(f"search:{name}", self._bucket)
        await self._all.acquire()


class ProviderClient:
    """Lives as long as the process works; `close` ends its connections."""

    def __init__(
        self, pace: RetryPolicy | None = None, *, rates: RateLimiter | None = None, at_once: int = AT_ONCE
    ) -> None:
        self.pace = pace or RetryPolicy()
        self._rates = rates
        self._all = asyncio.Semaphore(at_once)
        self._transport: AsyncHTTPTransport | None = None
        self._lanes: dict[tuple[str, float, int], ProviderLimiter] = {}

    def get_limiter(self, name: str, terms: ProviderTerms) -> ProviderLimiter:
        key = (name, terms.per_minute, terms.at_once)
        if key not in self._lanes:
            self._lanes[key] = ProviderLimiter(terms, self.pace.queue, all=self._all, rates=self._rates)
        return self._lanes[key]

    async def fetch(self, name: str, outgoing: HttpRequest, *, seconds: float) -> HttpResponse:
        """What the provider answers, whatever its status; SourceError where it does not."""
        import httpx2

        if not _is_http_url(outgoing.url):
            raise bad_address_error(name)
        transport, progress = self._get_transport(), _SendTracker()
        try:
            async with asyncio.timeout(seconds):
                return await _send(name, outgoing, transport, progress)
        except TimeoutError:
            raise timeout_error(name, seconds, sent=progress.sent) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
            raise bad_address_error(name) from None
        except httpx2.DecodingError:
            raise unpack_error(name) from None
        except httpx2.TransportError:  # its text may hold what was sent
            raise unreachable_error(name) from None

    def _get_transport(self) -> "AsyncHTTPTransport":
        if self._transport is None:
            import httpx2

            self._transport = httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)
        return self._transport

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None


@cache
def _ssl_context() -> "SSLContext":
    """Reading the authorities takes 30 ms, so it is done once."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


class _SendTracker:
    """Told by httpx2 how far a request has come; one that was never sent is billed by nobody."""

    def __init__(self) -> None:
        self.sent = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        self.sent = self.sent or event.endswith("send_request_headers.started")


async def _send(
    name: str, outgoing: HttpRequest, transport: "AsyncHTTPTransport", progress: _SendTracker
) -> HttpResponse:
    import httpx2

    request = httpx2.Request(
        "GET" if outgoing.json is None else "POST",
        outgoing.url,
        params=dict(outgoing.params) or None,
        json=outgoing.json,
        headers={"Accept-Encoding": "gzip, deflate", **_basic_auth(outgoing.url), **outgoing.headers},
        extensions={"trace": progress},
    )
    response = await transport.handle_async_request(request)
    try:
        return HttpResponse(response.status_code, dict(response.headers), await _read_text(name, response))
    finally:
        await response.aclose()


def _basic_auth(url: str) -> dict[str, str]:
    """Of an address such as https://name:password@search.example.org."""
    place = urlsplit(url)
    if place.username is None:
        return {}
    pair = f"{unquote(place.username)}:{unquote(place.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _is_http_url(url: str) -> bool:
    try:
        place = urlsplit(url)
        return place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:  # of the port, or of an IPv6 address
        return False


async def _read_text(name: str, response: "Response") -> str:
    """httpx2 gives a compressed body in pieces of 1 MB at most, so this bounds what a small one may grow to."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_BYTES:
            raise too_large_error(name)
    return decode_body(bytes(body))


def decode_body(body: bytes) -> str:
    return body.decode("utf-8-sig", errors="replace")


def bad_address_error(name: str) -> SourceError:
    return SourceError(
        f"{name} cannot be asked at its address", help=f"Correct search.endpoints.{name}.", provider=name
    )


def timeout_error(name: str, seconds: float, *, sent: bool = True) -> SourceError:
    """A request that was sent may have been worked on, and billed."""
    return SourceError(
        f"{name} did not answer within {seconds:.3g} s", help="Try again, or raise search.seconds.", retryable=True,
        billed=sent, provider=name,
    )  # fmt: skip


def unreachable_error(name: str) -> SourceError:
    return SourceError(
        f"{name} could not be reached", help="Check the network connection, then try again.", retryable=True,
        provider=name, unreachable=True,
    )  # fmt: skip


def unpack_error(name: str) -> SourceError:
    return SourceError(f"{name} sent an answer that cannot be unpacked", retryable=True, provider=name)


def too_large_error(name: str) -> SourceError:
    return SourceError(f"{name} sent more than {MAX_BYTES // 1_000_000} MB", provider=name)
