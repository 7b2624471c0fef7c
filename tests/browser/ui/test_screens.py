"""Every screen, light on a desk and dark on a phone: nothing that axe finds wrong, and a picture to look at."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import Opened, shot
from tests.browser.ui.screens import PANES, walked
from tests.browser.ui.site import Site

VARIANTS = [(1440, False), (360, True)]


@pytest.mark.slow
@pytest.mark.requirement("W-11")
@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_every_screen_of_a_thread(look: Opened, site: Site, finished: str, width: int, dark: bool) -> None:
    page = look(site, f"/t/{finished}", width=width, dark=dark)
    seen = [name for name in walked(page) if is_good(page, f"{name}-{'dark' if dark else 'light'}-{width}")]
    assert {*PANES, "answer", "statement", "passage", "verify", "veto", "fork", "moment"} <= set(seen)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_every_screen_before_a_report(look: Opened, site: Site, width: int, dark: bool) -> None:
    page = look(site, width=width, dark=dark)
    variant = f"{'dark' if dark else 'light'}-{width}"
    is_good(page, f"ask-{variant}")
    for fold in page.locator("main summary").all():
        fold.click()
    is_good(page, f"ask-options-{variant}")
    page.locator("[data-ask]").fill("How fast is the universe expanding?")
    page.get_by_role("radio", name="Plan").click()
    page.get_by_role("button", name="Ask", exact=True).click()
    planner = page.get_by_role("dialog")
    expect(planner.get_by_role("radio").first).to_be_visible()
    is_good(page, f"question-{variant}")
    answered(site, page.url.rsplit("/", 1)[1].split("?")[0])
    expect(planner.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    is_good(page, f"plan-{variant}")


def answered(site: Site, thread: str) -> None:
    """Every planning question, up to the plan."""
    while site.settled(thread) == "waiting":
        [review] = site.call("GET", f"/api/threads/{thread}/reviews")["reviews"]
        if review["kind"] != "planning":
            return
        site.call("POST", f"/api/reviews/{review['id']}/answer", {"value": review["interrupt"]["options"][0]})


def is_good(page: Page, name: str) -> bool:
    shot(page, name)
    assert violations(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), f"{name} is too wide"
    return True
