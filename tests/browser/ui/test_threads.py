"""The list of threads, and what can be done with one."""

import asyncio
import re

import pytest
from playwright.sync_api import Page, expect

from openassay.models.user import Scope
from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import STORE, Opened, OpenSite, shot
from tests.browser.ui.site import Site

APPLE, TESLA = "What is happening with Apple?", "What's happening with Tesla and its stock?"


@pytest.fixture(scope="module")
def apple(site: Site) -> str:
    site.research(TESLA, depth="quick")
    return site.research(APPLE, depth="quick")


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_threads_are_listed_found_and_opened(look: Opened, site: Site, apple: str) -> None:
    page = look(site)
    threads = page.get_by_role("navigation", name="Threads")
    expect(threads.get_by_role("listitem")).to_have_count(3)
    threads.get_by_label("Search your threads").fill("apple")
    expect(threads.get_by_role("listitem")).to_have_count(1)
    threads.get_by_role("link", name=re.compile("Apple")).click()
    expect(page).to_have_url(re.compile(f"/t/{apple}$"))
    expect(page.locator(".head")).to_contain_text("done")
    threads.get_by_label("Search your threads").fill("zebra")
    expect(threads).to_contain_text("No threads match.")
    page.go_back()
    expect(page).to_have_url(f"{site.url}/")


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_a_link_shows_the_report_to_somebody_else_until_it_is_taken_back(look: Opened, site: Site, apple: str) -> None:
    page = look(site, f"/t/{apple}")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Create link").dblclick()
    link = page.get_by_label(re.compile("The link, valid until"))
    url = link.input_value()
    expect(page.get_by_role("button", name=re.compile("Revoke"))).to_have_count(1)
    page.get_by_role("button", name="Copy").click()
    said = page.get_by_role("dialog").locator(".said", has_text="The link was copied.")
    said.get_by_role("button", name="Close this message").click()  # it is not behind the dialog
    expect(said).to_have_count(0)
    assert page.evaluate("navigator.clipboard.readText()") == url
    shot(page, "share-light-1440")
    stranger = look(site)
    stranger.goto(url)
    expect(stranger.locator("h1")).to_contain_text("Apple")
    page.get_by_role("button", name=re.compile("Revoke")).click()
    expect(page.get_by_text("There are no links to this report.")).to_be_visible()
    assert stranger.goto(url).status == 404  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_thread_is_renamed_and_deleted(look: Opened, site: Site) -> None:
    thread = site.research("What is happening with Nvidia?", depth="quick")
    page = look(site, f"/t/{thread}")
    page.get_by_label("More actions").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("<b>Chips</b> & more")
    site.call("PATCH", f"/api/threads/{thread}", {"title": "Renamed elsewhere"})
    page.evaluate(f"{STORE}.then((store) => store.refresh())")
    expect(page.locator(".head .title")).to_have_text("Renamed elsewhere")
    expect(page.get_by_label("Title")).to_have_value("<b>Chips</b> & more")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.locator(".head .title")).to_have_text("<b>Chips</b> & more")
    page.get_by_label("More actions").click()
    page.get_by_role("button", name="Delete").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method) if request.method == "DELETE" else None)
    page.get_by_role("button", name="Delete permanently").dblclick()
    expect(page.get_by_text("The thread was deleted.")).to_be_visible()
    expect(page).to_have_url(f"{site.url}/")
    assert asked == ["DELETE"]
    expect(page.get_by_role("navigation", name="Threads")).not_to_contain_text("Chips")
    expect(page).to_have_title("OpenAssay")
    assert thread not in [one["id"] for one in site.call("GET", "/api/threads")["threads"]]


@pytest.mark.slow
def test_a_thread_that_is_not_there_says_so(look: Opened, site: Site) -> None:
    page = look(site, "/t/000000000000")
    expect(page.get_by_role("alert")).to_contain_text("This thread was deleted, or is not yours.")
    expect(page).to_have_title("Thread not found · OpenAssay")
    page.get_by_role("alert").get_by_role("link", name="New question").click()
    expect(page).to_have_title("OpenAssay")


@pytest.mark.slow
def test_a_thread_that_is_deleted_elsewhere_goes_from_the_page(look: Opened, site: Site) -> None:
    thread = site.ask("What is happening with Meta?", modeOverride="plan")
    page = look(site, f"/t/{thread}")
    expect(page.get_by_role("dialog")).to_be_visible()
    site.call("DELETE", f"/api/threads/{thread}")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("alert")).to_contain_text("This thread was deleted")
    expect(page.get_by_role("button", name="Share")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.slow
def test_on_a_phone_the_threads_are_in_a_drawer(look: Opened, site: Site, apple: str) -> None:
    page = look(site, f"/t/{apple}", width=360)
    page.get_by_role("button", name="Threads").click()
    drawer = page.get_by_role("dialog", name="Threads")
    expect(drawer.get_by_role("listitem").first).to_be_visible()
    shot(page, "threads-light-360")
    drawer.get_by_role("link", name=re.compile("Tesla")).click()
    expect(drawer).to_be_hidden()
    expect(page.locator(".head .title")).to_contain_text("Tesla")
    page.get_by_role("button", name="Shortcuts and help").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("tab", name="Answer")).to_be_focused()  # it stands above the answer


@pytest.mark.slow
def test_a_selection_that_ends_outside_leaves_the_dialog_open(look: Opened, site: Site) -> None:
    page = look(site)
    page.get_by_role("button", name="Shortcuts and help").click()
    told = page.get_by_text("Click a statement, or its source")
    box = told.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(5, 5)
    page.mouse.up()
    expect(told).to_be_visible()
    page.mouse.click(5, 5)
    expect(told).to_be_hidden()


# -- keys, colours, who one is ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_keys_lead_through_the_page(look: Opened, site: Site, apple: str) -> None:
    page = look(site)
    page.locator("body").press("/")
    expect(page.locator("[data-ask]")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    help_page = page.get_by_role("dialog", name="Shortcuts and marks")
    expect(help_page).to_contain_text("Two or more independent sources agree.")
    assert violations(page) == []
    help_page.get_by_label("Use single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(help_page).to_be_hidden()
    page.reload()
    page.locator("main").wait_for()
    page.keyboard.press("?")
    expect(help_page).to_be_hidden()


@pytest.mark.slow
def test_the_panes_have_keys_and_are_named_in_the_address(look: Opened, site: Site, apple: str) -> None:
    page = look(site, f"/t/{apple}")
    page.locator("main").click()
    page.keyboard.press("5")
    expect(page.get_by_role("tab", name=re.compile("Log"))).to_have_attribute("aria-selected", "true")
    page.reload()
    expect(page.get_by_role("tab", name=re.compile("Log"))).to_have_attribute("aria-selected", "true")


@pytest.mark.slow
def test_colours_follow_the_system_unless_one_is_chosen(look: Opened, site: Site) -> None:
    page = look(site, dark=True)
    assert ground(page) == "rgb(20, 21, 23)"
    page.get_by_role("button", name=re.compile("Change to light")).click()
    assert ground(page) == "rgb(251, 250, 247)"
    page.reload()
    page.locator("main").wait_for()
    assert ground(page) == "rgb(251, 250, 247)"


def ground(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


def entered(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.slow
def test_a_server_that_wants_a_token_asks_for_it(look: Opened, own_site: OpenSite) -> None:
    site = own_site()
    token = site.token("ada")
    site.call("POST", "/api/threads", {"title": "Ada's thread"}, token=token)
    page = look(site, "/")
    expect(page).to_have_title("Sign in · OpenAssay")
    entered(page, "openassay_nobody_x")
    expect(page.get_by_role("alert")).to_contain_text("This token is not known.")
    assert violations(page) == []
    shot(page, "signin-light-1440")
    entered(page, token)
    expect(page.get_by_role("button", name="ada")).to_be_visible()
    expect(page.get_by_role("navigation", name="Threads")).to_contain_text("Ada's thread")
    page.reload()
    page.get_by_role("button", name="ada").click()
    expect(page.get_by_role("dialog")).to_contain_text("read, share, write")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('openassay.token') ?? localStorage.getItem('openassay.token')") is None


@pytest.mark.slow
def test_the_next_person_gets_nothing_of_the_last(look: Opened, own_site: OpenSite) -> None:
    site = own_site()
    ada, bob = site.token("ada"), site.token("bob")
    page = look(site, "/", width=360)
    box = page.get_by_role("textbox", name="Your question")
    kept = "Object.keys(sessionStorage).concat(Object.keys(localStorage)).filter((name) => /secret/.test(name))"
    entered(page, ada)
    box.fill("Ada's own question")
    page.evaluate("localStorage['openassay.judged.secret'] = '{}'; sessionStorage['openassay.unsent.secret'] = '1'")
    page.evaluate("localStorage['openassay.theme'] = 'dark'")
    page.get_by_role("button", name="Threads").click()  # where there is room for who one is
    page.get_by_role("dialog").get_by_role("button", name="ada").click()
    shot(page, "account-light-360")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate(kept) == []
    assert page.evaluate("localStorage['openassay.theme']") == "dark"
    entered(page, bob)
    expect(box).to_have_value("")
    box.fill("Bob's own question")
    page.evaluate("token => sessionStorage['openassay.token'] = token", ada)  # as if Bob had closed his laptop
    page.reload()
    expect(box).to_have_value("")


@pytest.mark.slow
def test_who_may_only_read_is_offered_no_more_until_the_token_is_revoked(look: Opened, own_site: OpenSite) -> None:
    site = own_site()
    ada = site.token("ada")
    thread = site.call("POST", "/api/threads", {"title": "Ada's thread"}, token=ada)["id"]
    users = site.served.service.resources.users
    issued = asyncio.run_coroutine_threadsafe(users.issue("ada", scopes=[Scope.READ]), site._loop)
    token, secret = issued.result(10)
    page = look(site, "/", token=secret)
    expect(page.get_by_text("Your token lets you read, but not ask.")).to_be_visible()
    expect(page.get_by_role("link", name="New question")).to_have_count(0)
    shot(page, "reader-light-1440")
    page.get_by_role("link", name=re.compile("Ada's thread")).click()
    expect(page.locator(".head .title")).to_have_text("Ada's thread")
    for name in ("Share", "Delete", "Ask"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    asyncio.run_coroutine_threadsafe(users.revoke(token.id), site._loop).result(10)
    page.goto(f"{site.url}/t/{thread}")
    expect(page.get_by_role("alert")).to_contain_text("Your token is no longer valid.")
