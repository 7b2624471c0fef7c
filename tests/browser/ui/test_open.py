"""A bundle opened in the web UI: everything can be looked at, and nothing be done."""

import asyncio
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Page, expect

from openassay.cli.evidence import bundle, read_bundle
from openassay.server.app import open_viewer
from tests.browser.ui.conftest import Opened, Researched, shot
from tests.browser.ui.site import PATIENCE, Site

pytestmark = pytest.mark.requirement("X-04")


class Room(Site):
    """The server of `openassay verify --open`, in a thread of its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.path = ""

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with open_viewer(*read_bundle(self._file)) as address:
            parts = urlsplit(address)
            self.url, self.path = f"{parts.scheme}://{parts.netloc}", parts.path
            ready.set()
            await self._ended.wait()


@pytest.fixture(scope="module")
def room(researched: Researched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Made on one data directory, and opened without any."""
    folder = tmp_path_factory.mktemp("bundled")
    home = shutil.copytree(researched.folder, folder / "home")
    file = folder / "hubble.openassay"
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as apart:
        patch.setenv("OPENASSAY_DATA_DIR", str(home))
        apart.submit(bundle, researched.thread, run=None, out=file, unsigned=False).result(PATIENCE)
    shutil.rmtree(home)
    opened = Room(file)
    opened.start()
    yield opened
    opened.stop()


@pytest.fixture
def page(look: Opened, room: Room) -> Page:
    return look(room, room.path)


@pytest.mark.slow
def test_statements_open_their_passages_and_sources_are_listed(page: Page) -> None:
    expect(page.locator("main h1")).to_contain_text("Hubble")
    expect(page.get_by_role("button", name="Open in context").first).to_be_visible()
    shot(page, "bundle-report")
    page.locator(".statement").first.click()
    page.get_by_role("button", name="Open passage").first.click()
    passage = page.get_by_role("dialog", name="Passage in its source")
    expect(passage.locator("mark")).to_be_visible()
    expect(passage.get_by_text("word for word in the snapshot")).to_be_visible()
    shot(page, "bundle-passage")
    page.keyboard.press("Escape")
    expect(passage).to_have_count(0)


@pytest.mark.slow
def test_nothing_offers_to_ask_or_to_change(page: Page) -> None:
    expect(page.locator("main h1")).to_contain_text("Hubble")
    offers = re.compile("^(New question|Share|Rename|Delete|Pin|Veto|Fork)")
    expect(page.get_by_role("button", name=offers)).to_have_count(0)
    expect(page.locator("main textarea")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/threads/start"), ("DELETE", ""), ("PATCH", ""), ("POST", "/fork"), ("POST", "/resume"),
     ("POST", "/shares"), ("PUT", "/artifacts/report"), ("PUT", "/sources/S1/pin"), ("POST", "/mcp"),
     ("POST", "/v1/chat/completions")],
)  # fmt: skip
def test_nothing_can_be_asked_or_changed(room: Room, method: str, path: str) -> None:
    at = path if path.startswith(("/api", "/mcp", "/v1")) else f"/api/threads/{room.path.rpartition('/')[2]}{path}"
    answer = httpx2.request(method, room.url + at, json={"goal": "What is it?"}, timeout=PATIENCE, trust_env=False)
    assert answer.status_code == 403, answer.text
    assert "bundle" in answer.json()["detail"]


def test_another_site_cannot_read_it_through_a_name_of_its_own(room: Room) -> None:
    answer = httpx2.get(room.url, headers={"Host": "evil.example"}, timeout=PATIENCE, trust_env=False)
    assert answer.status_code == 421
