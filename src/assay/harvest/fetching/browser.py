"""Pages that need JavaScript, in a real browser: a headless Chromium whose only way out is the guarded proxy.

Playwright drives it; Crawl4AI can instead, over the same browser's debugging port. Both are optional extras.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

from assay.errors import ConfigurationError, FetchError, install
from assay.harvest.fetching import crawl4ai
from assay.harvest.fetching.proxy import Connect, GuardedProxy
from assay.harvest.fetching.rendered import Render, Rendered
from assay.settings import Harvesting

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright, Route

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

    def __init__(self, options: Harvesting, connect: Connect, path: str) -> None:
        self._options = options
        self._path = path
        self._proxy = GuardedProxy(connect, budget=int(3 * options.page_mb * 1_000_000))
        self._turn = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self._browser: Browser | None = None
        self._port = 0

    async def render(self, url: str) -> Rendered:
        async with self._its_turn(url):
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
    async def _its_turn(self, url: str) -> AsyncIterator[None]:
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

    async def _read(self, url: str) -> Rendered:
        try:
            browser = await self._started()
            self._proxy.renew()
            if self._options.browser == "crawl4ai":
                return await crawl4ai.read(self._port, url, self._options)
            return await _read_page(browser, url, self._options)
        except (FetchError, TimeoutError):
            raise
        except Exception as error:  # a driver that dies raises just that, and Crawl4AI anything
            await self.close()
            help = "Try again, or set harvest.browser to off."
            raise FetchError("could not be read by the browser", help=help, retryable=True, url=url) from error

    async def _started(self) -> "Browser":
        if self._browser is None or not self._browser.is_connected():
            await self.close()
            from playwright.async_api import async_playwright

            self._stack = AsyncExitStack()
            await self._stack.enter_async_context(self._proxy)
            driver = await self._stack.enter_async_context(async_playwright())
            self._browser = await self._launched(driver)
        return self._browser

    async def _launched(self, driver: "Playwright") -> "Browser":
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


async def _read_page(browser: "Browser", url: str, options: Harvesting) -> Rendered:
    from playwright.async_api import TimeoutError as NotSettledError

    context = await browser.new_context(
        service_workers="block", accept_downloads=False, locale="en-US", viewport={"width": 1200, "height": 2000}
    )
    try:
        page = await context.new_page()
        await page.route("**/*", _texts_only)
        await page.goto(url, wait_until="domcontentloaded", timeout=1000 * options.page_seconds)
        with contextlib.suppress(NotSettledError):
            await page.wait_for_load_state("networkidle", timeout=1000 * SETTLE)
        content = str(await page.evaluate(_CONTENT, int(options.page_mb * 1_000_000)))
        return Rendered(page.url, content.encode("utf-8", "replace"))  # its address afterwards: never one it has left
    finally:
        await context.close()


async def _texts_only(route: "Route") -> None:
    if route.request.resource_type in _NOT_READ:
        await route.abort()
    else:
        await route.continue_()


@asynccontextmanager
async def open_browser(options: Harvesting, connect: Connect) -> AsyncIterator[Render | None]:
    """How pages are rendered, or None where `auto` finds no browser."""
    path = found(options)
    if path is None:
        yield None
        return
    chromium = Chromium(options, connect, path)
    try:
        yield chromium.render
    finally:
        await chromium.close()


def found(options: Harvesting) -> str | None:
    """The Chromium to use; ConfigurationError where one was asked for and something is missing."""
    if options.browser == "off":
        return None
    wanted = "crawl4ai" if options.browser == "crawl4ai" else "playwright"
    path = options.browser_path or next((place for name in NAMES if (place := shutil.which(name))), None) or _own()
    asked = options.browser != "auto" or options.browser_path is not None
    if find_spec(wanted) is None:
        problem, help = f"{wanted} is not installed", install("browser" if wanted == "playwright" else wanted)
    elif path is None or not os.access(path, os.X_OK):
        problem, help = "there is no Chromium", "Run `playwright install chromium`, or set harvest.browser_path."
    else:
        return path
    if asked:
        raise ConfigurationError(f"harvest.browser cannot be used: {problem}", help=help)
    return None


def _own() -> str | None:
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
