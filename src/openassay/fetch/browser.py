"""Pages that need JavaScript, in a real browser: a headless Chromium whose only way out is the guarded proxy.

Playwright drives it; Crawl4AI can instead, over the same browser's debugging port. Both are optional extras.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from httpcore2 import AsyncNetworkStream, NetworkError, ProtocolError, TimeoutException

from openassay.errors import AddressPolicyError, ConfigurationError, FetchError, install_help
from openassay.settings import HarvestSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright, Route


# What a browser shows of a page.


class BrowserPage(NamedTuple):
    url: str  # where the browser was in the end: scripts may have led it away
    html: bytes  # in UTF-8


Render = Callable[[str], Awaitable[BrowserPage]]  # an address -> the page, once its scripts have run


# Crawl4AI (an optional extra) as the reader of pages that need JavaScript, in a browser that is already running.


async def read_with_crawl4ai(port: int, url: str, options: HarvestSettings) -> BrowserPage:
    """The page, by the browser's debugging port: the browser is ours, so its way out is guarded."""
    from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig

    browser = BrowserConfig(cdp_url=f"http://127.0.0.1:{port}", browser_mode="cdp", verbose=False)
    run = CrawlerRunConfig(
        cache_mode=CacheMode.BYPASS, wait_until="domcontentloaded", page_timeout=int(1000 * options.page_seconds),
        delay_before_return_html=0.5, verbose=False,
    )  # fmt: skip
    async with AsyncWebCrawler(config=browser) as crawler:
        result = await crawler.arun(url, config=run)
    if not result.html:  # `success` is also False where the page is small, which it takes for a wall
        raise FetchError("could not be read by Crawl4AI", help="Try again, or set harvest.browser to auto.", url=url)
    content = str(result.html)[: int(options.page_mb * 1_000_000)]
    return BrowserPage(str(result.redirected_url or result.url), content.encode("utf-8", "replace"))


# The way out for a browser: a proxy on this machine that dials what the guard allows, and nothing else.
#
# A page's scripts, frames and pictures are requests that nobody has checked; since the browser knows no other way to
# the
# network, each of them is judged here, at the very connection.

Connect = Callable[[str, int], Awaitable[AsyncNetworkStream]]  # a host and a port, checked; raises FetchError

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 10.0
CHUNK = 64 * 1024


class _ProxyTarget(NamedTuple):
    host: str
    port: int
    opening: bytes  # what is sent first: the request itself, or nothing for a tunnel
    tunnel: bool


class BrowserProxy:
    """`async with GuardedProxy(client.connect, bytes) as proxy` serves at `proxy.address` until the end.

    `budget` is what may come in through it; `renew` starts it afresh, for the next page."""

    def __init__(self, connect: Connect, budget: int) -> None:
        self._connect = connect
        self._budget = budget
        self._left = budget
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset_budget(self) -> None:
        self._left = self._budget

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._relay_request(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the browser has gone, or speaks no HTTP
        except (NetworkError, TimeoutException, ProtocolError):
            pass  # the site has gone
        finally:
            writer.close()

    async def _relay_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            target = _parse_target(await reader.readuntil(b"\r\n\r\n"))
        try:
            there = await self._connect(target.host, target.port)
        except AddressPolicyError:
            writer.write(_status_response("403 Refused"))
            return await writer.drain()
        except FetchError:
            writer.write(_status_response("502 Not Reached"))
            return await writer.drain()
        try:
            if target.tunnel:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                await there.write(target.opening)
                writer.write(await self._read_head(there))
            await self._relay(reader, writer, there, tunnel=target.tunnel)
        finally:
            await there.aclose()

    async def _read_head(self, there: AsyncNetworkStream) -> bytes:
        """The head of an answer, saying that the connection ends with it: the next request is judged on another."""
        begun = b""
        while b"\r\n\r\n" not in begun and len(begun) < HEAD_LIMIT and (piece := await there.read(CHUNK)):
            begun += piece
        self._left -= len(begun)
        head, end, body = begun.partition(b"\r\n\r\n")
        kept = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"keep-alive:"))]
        return b"\r\n".join([*kept, b"Connection: close"]) + end + body if end else begun

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: AsyncNetworkStream, *, tunnel: bool
    ) -> None:
        """Until one side is done, or the page has had its share."""
        outwards = _relay_outbound(reader, there) if tunnel else _wait_for_close(reader)
        ways = {asyncio.create_task(self._relay_inbound(there, writer)), asyncio.create_task(outwards)}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _relay_inbound(self, there: AsyncNetworkStream, writer: asyncio.StreamWriter) -> None:
        while self._left > 0 and (piece := await there.read(CHUNK)):
            self._left -= len(piece)
            writer.write(piece)
            await writer.drain()


async def _relay_outbound(reader: asyncio.StreamReader, there: AsyncNetworkStream) -> None:
    while piece := await reader.read(CHUNK):
        await there.write(piece)
    await asyncio.Event().wait()  # the browser asks no more, but the answer may still be on its way


async def _wait_for_close(reader: asyncio.StreamReader) -> None:
    """What else comes on this connection is for nobody: it was let through for one request."""
    while await reader.read(CHUNK):
        pass


def _parse_target(head: bytes) -> _ProxyTarget:
    """Where a request is for. Only those without a body are passed on in the clear: a page is read, not sent to."""
    line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, address, version = line.split(" ")
    if method == "CONNECT":
        place = urlsplit(f"//{address}")
        return _ProxyTarget(place.hostname or "", place.port or 443, b"", tunnel=True)
    place = urlsplit(address)
    if place.scheme != "http" or method not in ("GET", "HEAD"):
        raise ValueError(address)
    path = (place.path or "/") + (f"?{place.query}" if place.query else "")
    kept = [field for field in fields if field.partition(":")[0].lower() not in ("connection", "proxy-connection")]
    opening = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""]).encode("latin-1")
    return _ProxyTarget(place.hostname or "", place.port or 80, opening, tunnel=False)


def _status_response(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 3  # pages that may go before one, each with all its time
SETTLE = 3.0  # seconds scripts get after the page is there
CLOSE = 5.0
_NOT_READ = {"image", "media", "font", "manifest", "other"}
_ARGUMENTS = (
    "--proxy-bypass-list=<-loopback>",  # Chromium would go to this machine by itself
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--js-flags=--max-old-space-size=256",
)
# Cut inside the page: what a script has piled up is not carried over first.
_CONTENT = "most => document.documentElement ? document.documentElement.outerHTML.slice(0, most) : ''"


class Chromium:
    """Started by the first page that needs it, and again after one that took it down. One page at a time."""

    def __init__(self, options: HarvestSettings, connect: Connect, path: str) -> None:
        self._options = options
        self._path = path
        self._proxy = BrowserProxy(connect, budget=int(3 * options.page_mb * 1_000_000))
        self._turn = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self._browser: Browser | None = None
        self._port = 0

    async def render(self, url: str) -> BrowserPage:
        async with self._lock_browser(url):
            try:
                async with asyncio.timeout(self._options.page_seconds):
                    return await self._read(url)
            except TimeoutError:
                await self.close()
                raise FetchError(
                    f"took the browser longer than {self._options.page_seconds:g} s",
                    help="Raise harvest.page_seconds.", url=url,
                ) from None  # fmt: skip

    @asynccontextmanager
    async def _lock_browser(self, url: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(PATIENCE * self._options.page_seconds):
                await self._turn.acquire()
        except TimeoutError:
            help = "Try again when fewer pages need it."
            raise FetchError("the browser was busy for too long", help=help, retryable=True, url=url) from None
        try:
            yield
        finally:
            self._turn.release()

    async def _read(self, url: str) -> BrowserPage:
        try:
            browser = await self._ensure_browser()
            self._proxy.reset_budget()
            if self._options.browser == "crawl4ai":
                return await read_with_crawl4ai(self._port, url, self._options)
            return await _read_page(browser, url, self._options)
        except (FetchError, TimeoutError):
            raise
        except Exception as error:  # a driver that dies raises just that, and Crawl4AI anything
            await self.close()
            help = "Try again, or set harvest.browser to off."
            raise FetchError("could not be read by the browser", help=help, retryable=True, url=url) from error

    async def _ensure_browser(self) -> "Browser":
        if self._browser is None or not self._browser.is_connected():
            await self.close()
            from playwright.async_api import async_playwright

            self._stack = AsyncExitStack()
            await self._stack.enter_async_context(self._proxy)
            driver = await self._stack.enter_async_context(async_playwright())
            self._browser = await self._launch(driver)
        return self._browser

    async def _launch(self, driver: "Playwright") -> "Browser":
        arguments = [*_ARGUMENTS]
        if self._options.browser == "crawl4ai":
            self._port = _free_port()
            arguments.append(f"--remote-debugging-port={self._port}")
        return await driver.chromium.launch(
            executable_path=self._path, args=arguments, proxy={"server": self._proxy.address},
            chromium_sandbox=not _is_root(),
            # Ctrl-C goes to the driver too: it must not be gone before the browser is closed through it.
            handle_sigint=False, handle_sigterm=False, handle_sighup=False,
        )  # fmt: skip

    async def close(self) -> None:
        browser, stack = self._browser, self._stack
        self._browser = self._stack = None
        for end in (browser.close if browser else None, stack.aclose if stack else None):
            if end is not None:
                with contextlib.suppress(Exception):  # of a driver that has died before
                    async with asyncio.timeout(CLOSE):
                        await end()


async def _read_page(browser: "Browser", url: str, options: HarvestSettings) -> BrowserPage:
    from playwright.async_api import TimeoutError as NotSettledError

    context = await browser.new_context(
        service_workers="block", accept_downloads=False, locale="en-US", viewport={"width": 1200, "height": 2000}
    )
    try:
        page = await context.new_page()
        await page.route("**/*", _block_media)
        await page.goto(url, wait_until="domcontentloaded", timeout=1000 * options.page_seconds)
        with contextlib.suppress(NotSettledError):
            await page.wait_for_load_state("networkidle", timeout=1000 * SETTLE)
        content = str(await page.evaluate(_CONTENT, int(options.page_mb * 1_000_000)))
        return BrowserPage(
            page.url, content.encode("utf-8", "replace")
        )  # its address afterwards: never one it has left
    finally:
        await context.close()


async def _block_media(route: "Route") -> None:
    if route.request.resource_type in _NOT_READ:
        await route.abort()
    else:
        await route.continue_()


@asynccontextmanager
async def open_browser(options: HarvestSettings, connect: Connect) -> AsyncIterator[Render | None]:
    """How pages are rendered, or None where `auto` finds no browser."""
    path = find_chromium(options)
    if path is None:
        yield None
        return
    chromium = Chromium(options, connect, path)
    try:
        yield chromium.render
    finally:
        await chromium.close()


def find_chromium(options: HarvestSettings) -> str | None:
    """The Chromium to use; ConfigurationError where one was asked for and something is missing."""
    if options.browser == "off":
        return None
    wanted = "crawl4ai" if options.browser == "crawl4ai" else "playwright"
    path = (
        options.browser_path
        or next((place for name in NAMES if (place := shutil.which(name))), None)
        or _find_playwright_chromium()
    )
    asked = options.browser != "auto" or options.browser_path is not None
    if find_spec(wanted) is None:
        problem, help = f"{wanted} is not installed", install_help("browser" if wanted == "playwright" else wanted)
    elif path is None or not os.access(path, os.X_OK):
        problem, help = "there is no Chromium", "Run `playwright install chromium`, or set harvest.browser_path."
    else:
        return path
    if asked:
        raise ConfigurationError(f"harvest.browser cannot be used: {problem}", help=help)
    return None


def _find_playwright_chromium() -> str | None:
    """The one that Playwright has installed for this person."""
    cache = Path.home() / ".cache" / "ms-playwright"
    places = sorted(cache.glob("chromium-*/chrome-linux*/chrome"), reverse=True)
    return str(places[0]) if places else None


def _free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_root() -> bool:
    """As root, in a container say, Chromium starts without its sandbox only."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
