"""Renders pages that need JavaScript in a headless Chromium whose only way out is the guarded proxy.

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
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from httpcore2 import AsyncNetworkStream, NetworkError, ProtocolError, TimeoutException

from openassay.errors import AddressPolicyError, ConfigurationError, FetchError, install_help
from openassay.settings import HarvestSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Route


class BrowserPage(NamedTuple):
    url: str  # where the browser was in the end: scripts may have led it away
    html: bytes  # in UTF-8


Render = Callable[[str], Awaitable[BrowserPage]]  # an address -> the page, once its scripts have run
Connect = Callable[[str, int], Awaitable[AsyncNetworkStream]]  # a host and a port, checked; raises FetchError

MAX_HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 10.0
CHUNK_BYTES = 64 * 1024


class _ProxyTarget(NamedTuple):
    host: str
    port: int
    head: bytes  # what is sent first: the request itself, or nothing for a tunnel
    tunnel: bool


class BrowserProxy:
    """A proxy on this machine that connects to what the guard allows, and nothing else.

    A page's scripts, frames and pictures are requests that nobody has checked; since the browser has no other way to
    the network, each of them is checked here, when it connects. `budget` is how many bytes may come in; `reset_budget`
    starts it afresh, for the next page."""

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
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
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
            pass  # the browser has gone, or does not speak HTTP
        except (NetworkError, TimeoutException, ProtocolError):
            pass  # the site has gone
        finally:
            writer.close()

    async def _relay_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            target = _parse_target(await reader.readuntil(b"\r\n\r\n"))
        try:
            site = await self._connect(target.host, target.port)
        except FetchError as error:
            status = b"403 Refused" if isinstance(error, AddressPolicyError) else b"502 Not Reached"
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return await writer.drain()
        try:
            if target.tunnel:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                await site.write(target.head)
                writer.write(await self._read_head(site))
            # Until one side is done, or the page has used up its budget.
            outbound = _relay_outbound(reader, site if target.tunnel else None)
            tasks = {asyncio.create_task(self._relay_inbound(site, writer)), asyncio.create_task(outbound)}
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await site.aclose()

    async def _read_head(self, site: AsyncNetworkStream) -> bytes:
        """Read the head of a response and make it close the connection: the next request is checked on another."""
        start = b""
        while b"\r\n\r\n" not in start and len(start) < MAX_HEAD_BYTES and (piece := await site.read(CHUNK_BYTES)):
            start += piece
        self._left -= len(start)
        head, end, body = start.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"keep-alive:"))]
        return b"\r\n".join([*lines, b"Connection: close"]) + end + body if end else start

    async def _relay_inbound(self, site: AsyncNetworkStream, writer: asyncio.StreamWriter) -> None:
        while self._left > 0 and (piece := await site.read(CHUNK_BYTES)):
            self._left -= len(piece)
            writer.write(piece)
            await writer.drain()


async def _relay_outbound(reader: asyncio.StreamReader, tunnel: AsyncNetworkStream | None) -> None:
    """Send what the browser sends into a tunnel. Elsewhere the connection was opened for one request: drop the rest."""
    while piece := await reader.read(CHUNK_BYTES):
        if tunnel is not None:
            await tunnel.write(piece)
    if tunnel is not None:
        await asyncio.Event().wait()  # the browser sends no more, but the response may still be on its way


def _parse_target(head: bytes) -> _ProxyTarget:
    """Parse the head of a request. Only requests without a body are relayed in the clear."""
    line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, address, version = line.split(" ")
    if method == "CONNECT":
        url = urlsplit(f"//{address}")
        return _ProxyTarget(url.hostname or "", url.port or 443, b"", tunnel=True)
    url = urlsplit(address)
    if url.scheme != "http" or method not in ("GET", "HEAD"):
        raise ValueError(address)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    others = [field for field in fields if field.partition(":")[0].lower() not in ("connection", "proxy-connection")]
    request = "\r\n".join([f"{method} {path} {version}", *others, "Connection: close", "", ""]).encode("latin-1")
    return _ProxyTarget(url.hostname or "", url.port or 80, request, tunnel=False)


CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAX_PAGES_AHEAD = 3  # pages that may go before one, each with all its time
SETTLE_SECONDS = 3.0  # that scripts get after the page is there
CLOSE_SECONDS = 5.0
_BLOCKED_TYPES = {"image", "media", "font", "manifest", "other"}
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
_CONTENT = "max => document.documentElement ? document.documentElement.outerHTML.slice(0, max) : ''"


class Chromium:
    """A browser that the first page starts, and the next one after a crash restarts. One page at a time."""

    def __init__(self, options: HarvestSettings, connect: Connect, path: str) -> None:
        self._options = options
        self._path = path
        self._proxy = BrowserProxy(connect, budget=int(3 * options.page_mb * 1_000_000))
        self._lock = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self._browser: Browser | None = None
        self._port = 0

    async def render(self, url: str) -> BrowserPage:
        seconds = self._options.page_seconds
        try:
            async with asyncio.timeout(MAX_PAGES_AHEAD * seconds):
                await self._lock.acquire()
        except TimeoutError:
            help = "Try again when fewer pages need it."
            raise FetchError("the browser was busy for too long", help=help, retryable=True, url=url) from None
        try:
            async with asyncio.timeout(seconds):
                try:
                    if self._browser is None or not self._browser.is_connected():
                        await self.close()
                        self._browser = await self._launch()
                    self._proxy.reset_budget()
                    if self._options.browser == "crawl4ai":
                        return await read_with_crawl4ai(self._port, url, self._options)
                    return await _read_page(self._browser, url, self._options)
                except (FetchError, TimeoutError):
                    raise
                except Exception as error:  # a driver that dies raises just that, and Crawl4AI anything
                    await self.close()
                    help = "Try again, or set harvest.browser to off."
                    raise FetchError("could not be read by the browser", help=help, retryable=True, url=url) from error
        except TimeoutError:
            await self.close()
            reason = f"took the browser longer than {seconds:g} s"
            raise FetchError(reason, help="Raise harvest.page_seconds.", url=url) from None
        finally:
            self._lock.release()

    async def _launch(self) -> "Browser":
        from playwright.async_api import async_playwright

        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self._proxy)
        driver = await self._stack.enter_async_context(async_playwright())
        arguments = [*_ARGUMENTS]
        if self._options.browser == "crawl4ai":
            with socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._port = int(probe.getsockname()[1])
            arguments.append(f"--remote-debugging-port={self._port}")
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # in a container, say: Chromium needs it without sandbox
        return await driver.chromium.launch(
            executable_path=self._path,
            args=arguments,
            proxy={"server": self._proxy.address},
            chromium_sandbox=not is_root,
            # Ctrl-C goes to the driver too: it must not be gone before the browser is closed through it.
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )

    async def close(self) -> None:
        browser, stack = self._browser, self._stack
        self._browser = self._stack = None
        for end in (browser.close if browser else None, stack.aclose if stack else None):
            if end is not None:
                with contextlib.suppress(Exception):  # of a driver that has died before
                    async with asyncio.timeout(CLOSE_SECONDS):
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
            await page.wait_for_load_state("networkidle", timeout=1000 * SETTLE_SECONDS)
        content = str(await page.evaluate(_CONTENT, int(options.page_mb * 1_000_000)))
        # Its address is read afterwards: it is never one that the page has left.
        return BrowserPage(page.url, content.encode("utf-8", "replace"))
    finally:
        await context.close()


async def read_with_crawl4ai(port: int, url: str, options: HarvestSettings) -> BrowserPage:
    """Read a page through the browser's debugging port: the browser is ours, so its way out is guarded."""
    from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig

    browser = BrowserConfig(cdp_url=f"http://127.0.0.1:{port}", browser_mode="cdp", verbose=False)
    run = CrawlerRunConfig(
        cache_mode=CacheMode.BYPASS,
        wait_until="domcontentloaded",
        page_timeout=int(1000 * options.page_seconds),
        delay_before_return_html=0.5,
        verbose=False,
    )
    async with AsyncWebCrawler(config=browser) as crawler:
        result = await crawler.arun(url, config=run)
    if not result.html:  # `success` is also False where the page is small, which it takes for a wall
        raise FetchError("could not be read by Crawl4AI", help="Try again, or set harvest.browser to auto.", url=url)
    content = str(result.html)[: int(options.page_mb * 1_000_000)]
    return BrowserPage(str(result.redirected_url or result.url), content.encode("utf-8", "replace"))


async def _block_media(route: "Route") -> None:
    if route.request.resource_type in _BLOCKED_TYPES:
        await route.abort()
    else:
        await route.continue_()


@asynccontextmanager
async def open_browser(options: HarvestSettings, connect: Connect) -> AsyncIterator[Render | None]:
    """Yield how to render pages, or None where `auto` finds no browser."""
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
    """Find the Chromium to use; raises ConfigurationError where one was asked for and something is missing."""
    if options.browser == "off":
        return None
    wanted = "crawl4ai" if options.browser == "crawl4ai" else "playwright"
    path = options.browser_path or next((found for name in CHROMIUM_NAMES if (found := shutil.which(name))), None)
    if not path:  # the one that Playwright has installed for this person
        cache = Path.home() / ".cache" / "ms-playwright"
        path = max(map(str, cache.glob("chromium-*/chrome-linux*/chrome")), default=None)
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
