"""The page as it is served."""

import hashlib
import re
from pathlib import Path

import httpx2
import pytest

from tests.browser.ui.conftest import Opened
from tests.browser.ui.site import Site

VENDOR = Path("src/openassay/server/static/vendor")


def test_what_comes_from_elsewhere_is_what_its_authors_published() -> None:
    lines = [line.split("  ") for line in (VENDOR / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    assert {path.name for path in VENDOR.glob("*.js")} == set(sums)
    for name, digest in sums.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
        assert f"| {name} |" in (VENDOR / "README.md").read_text()


@pytest.mark.requirement("W-11")
def test_the_page_may_load_and_run_nothing_but_its_own(site: Site) -> None:
    with httpx2.Client(base_url=site.url, trust_env=False) as http:
        page = http.get("/")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            part = http.get(address)
            assert (part.status_code, "immutable" in part.headers["cache-control"]) == (200, True), address
            assert part.headers["x-content-type-options"] == "nosniff"
        assert http.get("/t/anything").text == page.text
        assert http.get("/ui/0000/app.js").status_code == 404
        assert http.get(f"{address.rsplit('/', 1)[0]}/..%2f..%2fapp.py").status_code == 404


@pytest.mark.slow
def test_the_page_begins_without_a_word_on_the_console(look: Opened, site: Site) -> None:
    page = look(site)
    assert page.title().startswith("OpenAssay")
