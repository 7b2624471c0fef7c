"""How long the web page takes for what a person does, on a report of 3,000 claims and 500 sources: milliseconds of the
page's own work, the best of five. The aim is 100."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.figures import keep
from tests.browser.conftest import QUIET
from tests.browser.ui.site import Site
from tests.browser.ui.test_large import measured


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Site.opened(Path(folder)) as site,
        sync_playwright() as playwright,
    ):
        thread = site.research("What's happening with Tesla and its stock?", depth="quick")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"), args=QUIET
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        found = measured(page, f"{site.url}/t/{thread}", rounds=5)
        browser.close()
    for act, ms in found.items():
        print(f"{ms:6.0f} ms  {act}")
    keep("page", ("a person", "ms"), [(act, f"{ms:.0f}") for act, ms in found.items()])


if __name__ == "__main__":
    main()
