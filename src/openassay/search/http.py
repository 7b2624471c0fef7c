"""HTTP to the search providers: one pool of connections, and one rate for each provider, shared by all runs.

httpx2's transport is used without its client: the client logs every address, where some providers want their key, and
it would follow redirects, keep cookies and take proxies from the environment.
"""

import asyncio
import random
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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

    from httpx2 import AsyncHTTPTransport

MAX_BYTES = 5_000_000  # of an answer, after decompression
MAX_REQUESTS = 32  # at once in a process, over all providers and runs
RATE_LIMIT_FACTOR = 10  # lengthens the pauses after a 429 that does not say when to come back: 5 s, then 10 s


class RetryPolicy(NamedTuple):
    """How patient OpenAssay is with a provider, in seconds."""

    attempts: int = 3
    pause: float = 0.5  # before the second attempt, doubled before the third
    max_pause: float = 10.0  # a provider that asks for a longer pause is not asked again
    overall: float = 45.0  # all attempts at one answer, waiting for a turn aside
    queue: float = 60.0  # waiting for a turn
    rest: float = 20.0  # for a provider that could not be reached at all

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
        """Seconds the provider asks us to wait."""
        return parse_retry_after(self.headers.get("retry-after", ""))


class ProviderLimiter:
    """Limits requests to one provider: so many at once, so many a minute.

    `rates` are shared by all processes, where there are any; `all` bounds the requests to all providers together."""

    def __init__(
        self,
        terms: ProviderTerms,
        queue: float,
        *,
        all: asyncio.Semaphore | None = None,
        rates: RateLimiter | None = None,
    ) -> None:
        per_second = terms.per_minute / 60
        self._bucket = TokenBucket(max(1.0, per_second), per_second)  # no more at a time than in one second
        self._rate = AsyncLimiter(self._bucket.size, max(1.0, 1 / per_second))
        self._slots = asyncio.Semaphore(terms.at_once)
        self._queue = queue
        self._all = all or asyncio.Semaphore(MAX_REQUESTS)
        self._rates = rates

    @asynccontextmanager
    async def slot(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn; raise SourceError when that takes too long."""
        try:
            async with asyncio.timeout(self._queue):
                await self._slots.acquire()
                try:  # what all providers share comes last: waiting for a slow one keeps no other waiting
                    await self._rate.acquire()
                    if self._rates is not None:
                        await self._rates.acquire(f"search:{name}", self._bucket)
                    await self._all.acquire()
                except BaseException:
                    self._slots.release()
                    raise
        except TimeoutError:
            raise SourceError(
                f"{name} has too many queued requests",
                help=f"Raise search.requests_per_minute for {name} if your plan allows more.",
                provider=name,
            ) from None
        try:
            yield
        finally:
            self._all.release()
            self._slots.release()


class ProviderClient:
    """Sends requests to providers for as long as the process works; `close` ends its connections."""

    def __init__(
        self, policy: RetryPolicy | None = None, *, rates: RateLimiter | None = None, at_once: int = MAX_REQUESTS
    ) -> None:
        self.policy = policy or RetryPolicy()
        self._rates = rates
        self._all = asyncio.Semaphore(at_once)
        self._transport: AsyncHTTPTransport | None = None
        self._limiters: dict[tuple[str, float, int], ProviderLimiter] = {}

    def get_limiter(self, name: str, terms: ProviderTerms) -> ProviderLimiter:
        key = (name, terms.per_minute, terms.at_once)
        if key not in self._limiters:
            self._limiters[key] = ProviderLimiter(terms, self.policy.queue, all=self._all, rates=self._rates)
        return self._limiters[key]

    async def fetch(self, name: str, request: HttpRequest, *, seconds: float) -> HttpResponse:
        """Return what the provider answers, whatever its status; raise SourceError where it does not."""
        import httpx2

        try:
            url = urlsplit(request.url)
            is_valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:  # of the port, or of an IPv6 address
            is_valid = False
        if not is_valid:
            raise bad_address_error(name)
        if self._transport is None:
            self._transport = httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)
        sent = False  # a request that was never sent is billed by nobody

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            nonlocal sent
            sent = sent or event.endswith("send_request_headers.started")

        try:
            async with asyncio.timeout(seconds):
                return await _send(name, request, self._transport, trace)
        except TimeoutError:
            raise timeout_error(name, seconds, sent=sent) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
            raise bad_address_error(name) from None
        except httpx2.DecodingError:
            raise unpack_error(name) from None
        except httpx2.TransportError:  # its text may hold what was sent
            raise unreachable_error(name) from None

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None


@cache
def _ssl_context() -> "SSLContext":
    """Read the certificate authorities once: it takes 30 ms."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


Trace = Callable[[str, Mapping[str, Any]], Awaitable[None]]


async def _send(name: str, request: HttpRequest, transport: "AsyncHTTPTransport", trace: Trace) -> HttpResponse:
    import httpx2

    headers = {"Accept-Encoding": "gzip, deflate"}
    url = urlsplit(request.url)
    if url.username is not None:  # as in https://name:password@search.example.org
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    outgoing = httpx2.Request(
        "GET" if request.json is None else "POST",
        request.url,
        params=dict(request.params) or None,
        json=request.json,
        headers={**headers, **request.headers},
        extensions={"trace": trace},
    )
    response = await transport.handle_async_request(outgoing)
    try:
        body = bytearray()
        # httpx2 gives a compressed body in pieces of 1 MB at most, so this bounds what a small one may grow to.
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_BYTES:
                raise too_large_error(name)
        return HttpResponse(response.status_code, dict(response.headers), body.decode("utf-8-sig", errors="replace"))
    finally:
        await response.aclose()


def bad_address_error(name: str) -> SourceError:
    return SourceError(f"{name} has an invalid endpoint", help=f"Correct search.endpoints.{name}.", provider=name)


def timeout_error(name: str, seconds: float, *, sent: bool = True) -> SourceError:
    """Return the error of a timeout; a request that was sent may have been billed."""
    return SourceError(
        f"{name} did not answer within {seconds:.3g} s",
        help="Try again, or raise search.seconds.",
        retryable=True,
        billed=sent,
        provider=name,
    )


def unreachable_error(name: str) -> SourceError:
    return SourceError(
        f"{name} could not be reached",
        help="Check the network connection, then try again.",
        retryable=True,
        provider=name,
        unreachable=True,
    )


def unpack_error(name: str) -> SourceError:
    return SourceError(f"{name} sent a response that could not be decompressed", retryable=True, provider=name)


def too_large_error(name: str) -> SourceError:
    return SourceError(f"{name} sent more than {MAX_BYTES // 1_000_000} MB", provider=name)
