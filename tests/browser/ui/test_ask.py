"""Asking: what a person writes, chooses and adds gets to the server once, and is never lost on the way."""

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.browser.ui.accessibility import RULES
from tests.browser.ui.conftest import Opened, OpenSite, offline, shot
from tests.browser.ui.site import LIBRARY, Site

QUESTION = "How is Tesla doing, and what is it working on?"
THREAD = re.compile(r"/t/[0-9a-f]{12}$")


def thread_of(page: Page) -> str:
    expect(page).to_have_url(THREAD)
    return page.url.rsplit("/", 1)[1]


def fold(page: Page, title: str) -> None:
    page.locator("summary").filter(has_text=title).click()


@pytest.mark.slow
@pytest.mark.requirement("W-01", "W-11", "W-12")
def test_a_question_is_written_and_asked_by_keyboard(look: Opened, site: Site) -> None:
    page = look(site)
    box = page.get_by_role("textbox", name="Your question")
    expect(box).to_be_focused()
    shot(page, "ask-light-1440")
    page.get_by_role("button", name=QUESTION).click()
    expect(page.get_by_role("region", name="Examples")).to_have_count(0)
    expect(box).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Leave its shares out.")
    page.get_by_role("radio", name="Standard").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="Quick")).to_be_checked()
    expect(page.get_by_text("An answer of up to 220 words")).to_be_visible()
    page.get_by_role("radio", name="Plan").click()
    expect(page.get_by_text("Asks you one to four questions first")).to_be_visible()
    page.reload()  # and nothing is lost
    expect(box).to_have_value(f"{QUESTION}\nLeave its shares out.")
    expect(page.get_by_role("radio", name="Plan")).to_be_checked()
    box.press("Enter")
    thread = thread_of(page)
    told = site.call("GET", f"/api/threads/{thread}")
    run = site.call("GET", f"/api/threads/{thread}/runs")["runs"][0]
    assert (told["mode"], told["turns"], run["depth"]) == ("plan", 1, "quick")
    assert run["question"] == f"{QUESTION}\nLeave its shares out."
    assert page.evaluate("JSON.parse(sessionStorage.getItem('openassay.draft')).goal") == ""


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_what_it_may_cost_and_where_it_searches_is_chosen_and_told(
    look: Opened, own_site: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    site = own_site(llm={"model": "anthropic:claude-sonnet-5-5"})
    page = look(site)
    quotes: list[Any] = []
    page.on("request", lambda request: quotes.append(request) if request.url.endswith("/api/quote") else None)
    page.get_by_role("textbox", name="Your question").press_sequentially(QUESTION)
    told = page.locator(".quote")
    expect(told).to_have_text(
        re.compile(r"About \$\d+\.\d\d, at most \$2\.00, about \d+ (s|min), \d+ calls to anthropic:")
    )
    assert len(quotes) <= 3, "each letter was quoted"
    page.get_by_label("Budget").fill("0.5")
    expect(told).to_contain_text("at most $0.50")
    fold(page, "Sources")
    page.get_by_role("radio", name="Selected").click()
    expect(page.get_by_role("checkbox", name="brave needs BRAVE_API_KEY")).to_be_disabled()
    page.get_by_role("checkbox", name="demo").check()
    fold(page, "More options")
    page.get_by_label("Model").fill("gpt:nothing")
    expect(told).to_contain_text("Unknown vendor 'gpt'")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("Write VENDOR:MODEL")
    page.get_by_label("Model").fill("embedded")
    expect(told).to_have_text("Free: uses the embedded reasoner.")
    page.get_by_label("Length in words").fill("3")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("The length: it should be greater than or equal to 50.")
    page.get_by_label("Length in words").fill("300")
    page.get_by_label("Style").select_option("executive")
    with page.expect_request("**/api/threads/start") as sent:
        page.get_by_role("button", name="Ask").click()
    assert sent.value.post_data_json == {
        "goal": QUESTION, "source": "demo", "usd": 0.5, "style": "executive", "words": 300, "model": "embedded",
        "approvePlan": False,
    }  # fmt: skip
    thread_of(page)


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_documents_are_added_dropped_refused_and_taken_out(look: Opened, site: Site) -> None:
    page = look(site)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add documents").click()
    chooser.value.set_files([LIBRARY / "masers-and-sirens.txt", LIBRARY / "systematic-errors.pdf"])
    chips = page.get_by_role("list", name="Documents for this question").get_by_role("listitem")
    expect(chips).to_have_count(2)
    drop(page, {"tip.md": "# The tip\n\nThe tip of the red giant branch gives 69.8 km/s/Mpc.", "tool.exe": "MZ"})
    expect(chips.filter(has_text="tool.exe")).to_contain_text("Not a kind of file OpenAssay reads.")
    expect(chips.filter(has_text="tip.md")).to_contain_text("1 KB")
    shot(page, "ask-documents-light-1440")
    page.get_by_role("button", name="Remove tool.exe").click()
    page.get_by_role("button", name="Remove systematic-errors.pdf").click()
    page.reload()
    expect(chips).to_have_count(2)
    expect(page.get_by_text("Nothing about your documents is sent to a search service.")).to_be_visible()
    fold(page, "Earlier documents")
    page.get_by_role("checkbox", name="systematic-errors.pdf").check()
    expect(chips).to_have_count(3)
    page.get_by_role("textbox", name="Your question").fill("What is the value of the Hubble constant?")
    with page.expect_request("**/api/threads/start") as sent:
        page.get_by_role("button", name="Ask").click()
    body = sent.value.post_data_json
    assert body is not None
    assert len(body["documents"]) == 3
    thread = thread_of(page)
    assert site.settled(thread, "done") == "done"
    assert site.call("GET", f"/api/threads/{thread}/sources")["sources"]


def drop(page: Page, files: dict[str, str]) -> None:
    transfer = page.evaluate_handle(
        "files => { const held = new DataTransfer(); for (const [name, text] of Object.entries(files))"
        " held.items.add(new File([text], name)); return held; }",
        files,
    )
    page.dispatch_event("main", "dragover", {"dataTransfer": transfer})
    expect(page.get_by_text(f"Drop to add {len(files)} documents.")).to_be_visible()
    page.dispatch_event("main", "drop", {"dataTransfer": transfer})


@pytest.mark.slow
@pytest.mark.requirement("W-12")
def test_a_question_whose_answer_was_lost_is_asked_only_once(look: Opened, site: Site) -> None:
    page = look(site)
    question = "How have Microsoft's shares done?"
    box = page.get_by_role("textbox", name="Your question")
    box.fill(question)
    with offline(page):
        box.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Press Ask again when the connection is back")
        expect(box).to_have_value(question)

    def lost(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/threads/start", lost, times=1)
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/start")):
        page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Ask").click()
    thread = thread_of(page)
    found = site.call("GET", "/api/threads?q=Microsoft+shares")["threads"]
    assert [one["id"] for one in found] == [thread]


@pytest.mark.slow
@pytest.mark.requirement("W-12")
def test_what_is_refused_says_what_to_do(look: Opened, own_site: OpenSite) -> None:
    site = own_site(server={"runs_per_user": 1})
    site.ask(QUESTION, modeOverride="plan")
    page = look(site, width=360, dark=True)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_have_text("Write a question first.")
    shot(page, "ask-empty-dark-360")
    box = page.get_by_role("textbox", name="Your question")
    box.fill("x" * 400)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".quote")).not_to_be_empty()
    widths = page.locator("main, form, textarea").evaluate_all("all => all.map((one) => one.scrollWidth)")
    assert max(widths) <= 360, "one long word"
    box.fill("\N{ROCKET}" * 1_900)
    expect(page.get_by_text("100 characters left")).to_be_visible()
    box.fill("x" * 2_001)
    expect(page.get_by_text("1 character too many")).to_be_visible()
    box.fill("x" * 2_010)
    expect(page.get_by_text("10 characters too many")).to_be_visible()
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("at most 2,000 characters")
    box.fill(QUESTION)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "Wait for one to end, answer one that asks, or cancel one. Ask again in 30 seconds."
    )
    expect(box).to_have_value(QUESTION)
    shot(page, "ask-refused-dark-360")
    for title in ("Sources", "Earlier documents", "More options"):
        fold(page, title)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert Axe().run(page, options=RULES).response["violations"] == []


@pytest.mark.slow
@pytest.mark.requirement("W-01", "W-11")
def test_a_follow_up_keeps_the_thread(look: Opened, site: Site) -> None:
    thread = site.research(QUESTION)
    page = look(site, f"/t/{thread}")
    box = page.get_by_role("textbox", name="Your follow-up")
    box.fill("And Apple?")
    page.reload()
    expect(box).to_have_value("And Apple?")
    page.get_by_role("radiogroup", name="Depth of the follow-up").get_by_role("radio", name="Quick").click()
    box.press("Enter")
    expect(box).to_have_value("")
    site.settled(thread, "done", "waiting")
    runs = site.call("GET", f"/api/threads/{thread}/runs")["runs"]
    assert [(run["question"], run["depth"]) for run in runs[1:]] == [("And Apple?", "quick")]


@pytest.mark.slow
@pytest.mark.requirement("W-01", "W-12")
def test_the_mode_of_a_thread_holds_at_once_and_a_run_can_be_stopped(look: Opened, site: Site) -> None:
    thread = site.ask(QUESTION, modeOverride="plan")
    assert site.settled(thread) == "waiting"
    page = look(site, f"/t/{thread}")
    form = page.get_by_role("form", name="Follow-up")
    aside(page)
    expect(form.get_by_role("textbox")).to_be_disabled()
    expect(form.get_by_text("The run is waiting for your answer.")).to_be_visible()
    expect(form.get_by_role("radio", name="Plan")).to_be_checked()
    form.get_by_role("radio", name="Auto").click()
    expect(form.get_by_role("textbox")).to_be_enabled()  # its questions were dropped, and it went on
    assert site.settled(thread) == "done"
    form.get_by_role("radio", name="Plan").click()
    form.get_by_role("textbox").fill("Compare it with Apple.")
    form.get_by_role("button", name="Ask").click()
    aside(page)
    form.get_by_role("button", name="Stop").click()
    expect(form.get_by_role("button", name="After this step")).to_be_visible()
    shot(page, "stopping-light-1440")
    form.get_by_role("button", name="Stop now").dblclick()
    expect(form.get_by_role("textbox")).to_be_enabled()
    told = site.call("GET", f"/api/threads/{thread}")
    assert (told["status"], told["mode"], told["turns"]) == ("cancelled", "plan", 2)
    assert Axe().run(page, context="form", options=RULES).response["violations"] == []


def aside(page: Page) -> None:
    """The questions that wait."""
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
