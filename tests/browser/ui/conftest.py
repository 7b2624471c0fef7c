"""A real server on its own port, looked at in a real Chromium. Every page is watched: a script error, a message of the
content security policy, or a request that leaves the origin fails the test, whatever it is about."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Request,
    ViewportSize,
    expect,
)

from tests.browser.ui.site import LIBRARY, Site
from tests.conftest import MakeOnce

QUESTION = (
    "What is the value of the Hubble constant, why do measurements of it disagree,"
    " and when will the disagreement be settled?"
)
SCREENS = Path("build/screens")
STORE = "import(document.querySelector('script[type=module]').src.replace('app.js', 'core/store.js'))"

# What a browser says of answers that are refusals; that they are shown to the person is for the tests to see.
EXPECTED = re.compile(r"Failed to load resource: (the server responded|net::ERR_)")

PATIENCE = 20_000  # ms: what a person would see at once may take long on a machine that is busy with other tests
expect.set_options(timeout=PATIENCE)

Opened = Callable[..., Page]
OpenSite = Callable[..., Site]


class Researched(NamedTuple):
    folder: Path
    thread: str


@pytest.fixture(scope="session")
def researched(make_once: MakeOnce) -> Researched:
    """A data directory with one report in it. It takes 5 s to make, so each file of tests has a copy of the same."""

    def make(folder: Path) -> None:
        with Site.opened(folder) as site:
            thread = site.research(QUESTION, documents=site.upload(*sorted(LIBRARY.iterdir())))
        (folder / "thread").write_text(thread, encoding="utf-8")

    folder = make_once("researched", make)
    return Researched(folder, (folder / "thread").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def site(researched: Researched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For tests that only look, or that make threads of their own: one server for all of a file."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(researched.folder, folder, dirs_exist_ok=True)
    with Site.opened(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def finished(researched: Researched) -> str:
    """A thread of `site` with a report on the example library: agreement, a single source, a dispute, something that
    was not found."""
    return researched.thread


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[OpenSite]:
    """`own_site(server={...}, hitl_after_planning=True)`: a server with settings of its own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Site.opened(tmp_path, **settings))


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[BrowserContext]:
    """One for all of a file: each costs a second or two, and the parts of the page are kept in it."""
    context = chromium.new_context(accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture
def look(window: BrowserContext) -> Iterator[Opened]:
    """`look(site, "/t/ID", width=360, dark=True)`: a page in a tab of its own, where nothing is kept from before."""
    watched: list[Watch] = []

    def opened(site: Site, path: str = "/", *, width: int = 1440, dark: bool = False, token: str = "") -> Page:
        page = window.new_page()
        watched.append(Watch(page, site))
        page.set_viewport_size(ViewportSize(width=width, height=740 if width < 500 else 900))
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)
        if token:
            page.add_init_script(f"sessionStorage.setItem('openassay.token', {json.dumps(token)})")
        page.goto(site.url + path)
        page.locator("#app main").wait_for(state="attached")
        return page

    yield opened
    window.set_offline(False)
    for watch in watched:
        watch.end()
    assert [problem for watch in watched for problem in watch.problems] == []


class Watch:
    """What must not happen on any page."""

    def __init__(self, page: Page, site: Site) -> None:
        self.problems: list[str] = []
        self._site = site
        self._page = page
        page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        page.on("console", self._console)
        page.on("request", self._request)
        page.on("dialog", self._dialog)

    def end(self) -> None:
        """What the page has kept for itself goes with it."""
        self._page.unroute_all(behavior="ignoreErrors")
        with suppress(Error):  # a page that was left at an error has no storage
            self._page.evaluate("localStorage.clear()")
        self._page.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not EXPECTED.match(message.text):
            self.problems.append(f"console: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self._site.url}/", "data:", "blob:")):
            self.problems.append(f"left the origin: {request.url}")


@contextmanager
def offline(page: Page) -> Iterator[None]:
    page.context.set_offline(True)
    yield
    page.context.set_offline(False)


def shot(page: Page, name: str) -> None:
    """For people to look at."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{name}.png")
