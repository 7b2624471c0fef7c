"""The one way in which Assay fetches anything: each connection checked, each redirect anew, everything bounded.

No cookies, no referrer, no credentials, no proxy of the environment. One retry where it may help, inside the time.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self

import httpcore2

from assay.errors import FetchError, RefusedError
from assay.harvest.fetching.answer import (
    AgainError,
    Fetched,
    OnRedirect,
    RedirectsError,
    Wish,
    fields,
    received,
    redirected,
)
from assay.harvest.fetching.decoding import ACCEPTED
from assay.harvest.fetching.dialling import Dial, Dialler, Resolve
from assay.harvest.fetching.guard import Address, Guard
from assay.settings import Harvesting


class GuardedClient:
    """`resolve` and `dial` stand in for the name server and the network."""

    def __init__(
        self,
        settings: Harvesting,
        *,
        resolve: Resolve | None = None,
        dial: Dial | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._agent = settings.user_agent
        self._guard = Guard(settings.allow_addresses)
        self._dialler = Dialler(self._guard, resolve, dial)
        self._trust = trust
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._dialler.close()
        if self._pool is not None:
            await self._pool.aclose()

    def check(self, url: str) -> Address:
        """The address, judged by its form alone; raises RefusedError."""
        return self._guard.check(url)

    async def connect(self, host: str, port: int) -> httpcore2.AsyncNetworkStream:
        """A plain connection to a checked address, for whoever speaks for itself over it."""
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
    ) -> Fetched:
        """Fetch a page, or raise FetchError. `clip` takes the first `max_bytes` of a larger one.

        A 304 is an answer where `headers` ask for one; every other status outside 2xx is an error, which has it in
        its context. With `redirects` 0 a redirect is such a status.
        """
        wish = Wish("GET", max_bytes, accept, headers or {}, b"", redirects, on_redirect, clip)
        async with _within(seconds, url) as limit:
            try:
                return await self._followed(url, wish)
            except AgainError as error:
                if (limit.when() or 0) - asyncio.get_running_loop().time() <= error.pause:
                    raise
                await asyncio.sleep(error.pause)
            return await self._followed(url, wish)

    async def post(
        self, url: str, content: bytes, *, seconds: float, max_bytes: int, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Deliver `content` once: neither redirects nor retries. Of a longer answer the first `max_bytes` are taken."""
        wish = Wish("POST", max_bytes, None, headers or {}, content, redirects=0, clip=True)
        async with _within(seconds, url):
            return await self._followed(url, wish)

    async def _followed(self, url: str, wish: Wish) -> Fetched:
        address = first = self._guard.check(url)
        passed: list[str] = []
        while True:
            found = await self._asked(address, wish, passed, extra=address.origin == first.origin)
            if isinstance(found, Fetched):
                return found
            passed.append(address.url)
            address = self._led(address, found, passed, wish)
            if wish.on_redirect is not None:
                await wish.on_redirect(address.url)

    def _led(self, address: Address, location: str, passed: list[str], wish: Wish) -> Address:
        """Where a redirect leads."""
        if len(passed) > wish.redirects:
            raise RedirectsError("redirects too often", help="The site sends visitors in circles.", url=passed[0])
        try:
            target = self._guard.check(location, address.url)
        except RefusedError as error:
            raise RefusedError(
                f"redirects to an address that {error.message}", help=error.help, url=passed[0]
            ) from error
        if target.url in passed:
            raise RedirectsError("redirects in a circle", help="The site may want cookies.", url=passed[0])
        return target

    async def _asked(self, address: Address, wish: Wish, passed: list[str], *, extra: bool) -> Fetched | str:
        """One request; a text is where it redirects to. `extra`: with the caller's own headers."""
        url = httpcore2.URL(scheme=address.scheme, host=address.host, port=address.port, target=address.target)
        with _faults(address):
            async with self._opened().stream(
                wish.method,
                url,
                headers=self._headers(address, wish, extra=extra),
                content=wish.content or None,
                extensions={"sni_hostname": address.host},
            ) as response:
                headers = fields(response.headers, address)
                location = redirected(response.status, headers) if wish.redirects else None
                return location or await received(response, headers, wish, address, tuple(passed))

    def _opened(self) -> httpcore2.AsyncConnectionPool:
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=self._trust or httpcore2.default_ssl_context(),
                max_connections=None,
                max_keepalive_connections=32,
                keepalive_expiry=15.0,
                network_backend=self._dialler,
            )
        return self._pool

    def _headers(self, address: Address, wish: Wish, *, extra: bool) -> list[tuple[bytes, bytes]]:
        """The caller's own headers go to the host he named, and to no other; these here are not his to set."""
        accept = ", ".join([*sorted(wish.accept), "*/*;q=0.1"]) if wish.accept else "*/*"
        theirs = {name.lower(): value for name, value in wish.headers.items()} if extra else {}
        fixed = {"host": address.netloc, "user-agent": self._agent, "accept-encoding": ACCEPTED}
        if wish.method == "POST":
            fixed["content-length"] = str(len(wish.content))
        return [(name.encode(), value.encode()) for name, value in {"accept": accept, **theirs, **fixed}.items()]


@contextmanager
def _faults(address: Address) -> Iterator[None]:
    """What the transport raises, in words of our own."""
    site = "The site may be down or may not like robots."
    try:
        yield
    except FetchError as error:
        error.context.setdefault("url", address.url)
        raise
    except httpcore2.RemoteProtocolError as error:
        if any(word in str(error) for word in ("closed", "disconnected")):
            raise AgainError("broke off its answer", help=site, retryable=True, url=address.url) from error
        raise FetchError("did not answer in proper HTTP", help=site, url=address.url) from error
    except httpcore2.ConnectError as error:
        reason = "has no valid certificate" if isinstance(error.__context__, ssl.SSLError) else "could not be reached"
        raise FetchError(reason, help=site, url=address.url) from error
    except (httpcore2.LocalProtocolError, UnicodeError) as error:
        raise FetchError("cannot be asked for", help="Check the address and the headers.", url=address.url) from error
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
        raise AgainError("broke the connection", help=site, retryable=True, url=address.url) from error


@asynccontextmanager
async def _within(seconds: float, url: str) -> AsyncIterator[asyncio.Timeout]:
    try:
        async with asyncio.timeout(seconds) as limit:
            yield limit
    except TimeoutError as error:
        reason = f"took longer than {seconds:g} s"
        raise FetchError(reason, help="The site is slow or down.", retryable=True, url=url) from error
