"""A real Chromium, without any way to the network but what a test allows."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright

# As root Chromium needs --no-sandbox; the rest keeps it from calling home, which a closed network answers slowly.
QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="module")  # not longer: while it lasts, no asynchronous test can run in this process
def chromium() -> Iterator[Browser]:
    """Debian's, else the one Playwright downloaded."""
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=installed, args=QUIET)
        except Error as error:
            pytest.skip(f"no Chromium could be started ({error.message.splitlines()[0]}); try: make browser")
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1000, "height": 1200})
    yield context
    context.close()
