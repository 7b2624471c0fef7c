"""What a page does when the server goes away, and when it is back; and that a reload loses nothing."""

import contextlib
import re

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from openassay.server.routes.system import load_interface
from tests.browser.ui.conftest import Opened, OpenSite, shot
from tests.browser.ui.site import Site

QUESTION = "What's happening with Tesla and its stock?"


def heard(page: Page) -> list[str]:
    """The events the page has, by their ids."""
    module = f"/ui/{load_interface().digest}/core/store.js"
    return list(page.evaluate(f"import('{module}').then((store) => store.events.value.map((event) => event.id))"))


def told(site: Site, thread: str) -> list[str]:
    return [line[4:] for line in site.text(f"/api/stream/{thread}").splitlines() if line.startswith("id: ")]


def answer(site: Site, thread: str) -> None:
    [review] = site.call("GET", f"/api/threads/{thread}/reviews")["reviews"]
    is_approval = review["kind"].startswith("approve")
    value = {"decision": "approve"} if is_approval else review["interrupt"]["options"][0]
    site.call("POST", f"/api/reviews/{review['id']}/answer", {"value": value})


@pytest.mark.slow
@pytest.mark.requirement("W-18", "W-11")
def test_a_server_that_is_restarted_in_mid_run_costs_no_event(look: Opened, own_site: OpenSite) -> None:
    site = own_site(hitl_before_output=True)
    thread = site.ask(QUESTION, depth="quick")
    site.settled(thread, "waiting")
    page = look(site, f"/t/{thread}?panel=log")
    expect(page.locator(".head")).to_contain_text("waiting for you")
    before = len(heard(page))
    site.stop()
    expect(page.locator(".connection")).to_contain_text("The server is not responding.")
    expect(page.locator(".connection")).to_contain_text("Nothing is lost: the research continues without this page.")
    shot(page, "lost-light-1440")
    site.start()
    page.keyboard.press("Escape")
    with contextlib.suppress(TimeoutError):  # it may have tried by itself just now
        page.get_by_role("button", name="Try now").click(timeout=2_000)
    expect(page.get_by_text("Reconnected. Nothing was missed.")).to_be_visible()
    answer(site, thread)
    expect(page.locator(".head")).to_contain_text("done")
    expect(page.locator(".busy")).to_have_count(0)
    assert heard(page) == told(site, thread), "none is missing, none is there twice"
    assert len(told(site, thread)) > before > 10


@pytest.mark.slow
@pytest.mark.requirement("W-18", "W-11")
def test_a_connection_that_is_cut_again_and_again_costs_no_event(look: Opened, own_site: OpenSite) -> None:
    site = own_site(hitl_before_output=True)
    thread = site.ask(QUESTION, depth="quick", modeOverride="plan")
    page = look(site, f"/t/{thread}?panel=log")
    for _ in range(8):  # a question or an approval each
        if site.settled(thread) != "waiting":
            break
        page.context.set_offline(True)
        expect(page.locator(".connection")).to_contain_text("You are offline.")
        answer(site, thread)
        site.settled(thread)
        page.context.set_offline(False)
        expect(page.locator(".connection")).not_to_contain_text("offline")
    expect(page.locator(".head")).to_contain_text("done")
    assert heard(page) == told(site, thread)


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_a_reload_at_any_moment_restores_everything(look: Opened, own_site: OpenSite) -> None:
    site = own_site(hitl_before_output=True)
    thread = site.ask(QUESTION, depth="quick")
    site.settled(thread, "waiting")
    page = look(site, f"/t/{thread}?panel=log")
    expect(page.get_by_role("dialog")).to_be_visible()
    question = page.get_by_role("dialog").inner_text()
    page.reload()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert _without_clock(page.get_by_role("dialog").inner_text()) == _without_clock(question)
    answer(site, thread)
    site.settled(thread, "done")
    page.reload()
    expect(page.locator(".head")).to_contain_text("done")
    expect(page.get_by_role("tab", name=re.compile("Log"))).to_have_attribute("aria-selected", "true")
    expect(page.locator(".pane li, .pane tr").nth(5)).to_be_attached()
    assert heard(page) == told(site, thread)


def _without_clock(text: str) -> str:
    return re.sub(r"\d+ (min|s|h)\b[^\n]*", "", text)


@pytest.mark.slow
def test_without_a_thread_the_page_says_that_the_server_is_gone_and_back(look: Opened, own_site: OpenSite) -> None:
    site = own_site()
    page = look(site)
    site.stop()
    page.get_by_label("Search your threads").first.fill("anything")
    expect(page.locator(".connection")).to_contain_text("The server is not responding.")
    site.start()
    expect(page.get_by_text("Reconnected. Nothing was missed.")).to_be_visible()
