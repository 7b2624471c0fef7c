"""Looking at earlier moments of a thread, branching from one, and holding two branches against each other."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.ui.accessibility import RULES
from tests.browser.ui.conftest import Opened, OpenSite, shot
from tests.browser.ui.site import Site
from tests.browser.ui.test_answer import FERRY, asked_twice

MEMO = "a memo of one page"


@pytest.fixture(scope="module")
def moments(site: Site, finished: str) -> list[dict[str, Any]]:
    return list(site.call("GET", f"/api/threads/{finished}/history?limit=500")["moments"])


@pytest.fixture(scope="module")
def branch(site: Site, finished: str) -> str:
    made = site.call("POST", f"/api/threads/{finished}/fork", {"changes": {"deliverable": MEMO}})
    site.settled(made["threadId"])
    return str(made["threadId"])


def number(moments: list[dict[str, Any]], stage: str) -> int:
    """Of the last moment after a stage."""
    return int([one["number"] for one in moments if one["after"] == [stage]][-1])


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name=re.compile("moment"))


def chosen(page: Page) -> Locator:
    """What is told of the moment that is looked at, once it was opened."""
    told = page.get_by_role("article").filter(has=page.get_by_role("button", name="Fork from here"))
    expect(told).to_have_attribute("aria-busy", "false")
    return told


def asked(page: Page, name: str) -> str | None:
    return parse_qs(urlsplit(page.url).query).get(name, [None])[0]


def put(page: Page, at: int) -> None:
    """The slider on a moment, as a hand would."""
    slider(page).fill(str(at - 1))
    expect(page.get_by_role("heading", name=re.compile(rf"^Moment {at}, "))).to_be_visible()
    chosen(page)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
@pytest.mark.requirement("W-18", "W-11")
def test_the_slider_brings_back_the_draft_of_a_moment(
    look: Opened, site: Site, finished: str, moments: list[dict[str, Any]]
) -> None:
    page = look(site, f"/t/{finished}?panel=timeline")
    planned, written = number(moments, "plan"), number(moments, "write")
    put(page, planned)
    told = chosen(page)
    expect(told).to_contain_text(moments[planned - 1]["summary"])
    expect(told).to_contain_text("none yet")  # neither sources nor a draft
    told.get_by_text("Draft", exact=True).last.click()
    expect(told).to_contain_text("Nothing had been written yet.")
    state = site.call("GET", f"/api/threads/{finished}/state?checkpoint={moments[planned - 1]['checkpoint']}")
    for step in state["values"]["plan"]["dag"]:
        expect(told).to_contain_text(step["text"])

    put(page, written)
    state = site.call("GET", f"/api/threads/{finished}/state?checkpoint={moments[written - 1]['checkpoint']}")
    draft = state["values"]["draft"]
    assert asked(page, "at") == moments[written - 1]["checkpoint"]
    expect(told).to_contain_text(f"{len(state['values']['evidence'])} sources read")
    expect(told).to_contain_text(draft["sections"][-1]["sentences"][-1]["text"])
    shown, answer = words(told.text_content() or ""), words(page.get_by_role("main").text_content() or "")
    for section in draft["sections"]:
        for sentence in section["sentences"]:
            assert words(sentence["text"]) in shown
            assert words(sentence["text"]) in answer

    page.reload()
    expect(page.get_by_role("heading", name=re.compile(rf"^Moment {written}, "))).to_be_visible()
    assert slider(page).input_value() == str(written - 1)
    page.get_by_role("button", name="Back to now").first.click()
    expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()
    assert asked(page, "at") is None


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_the_timeline_is_moved_along_by_keyboard(
    look: Opened, site: Site, finished: str, moments: list[dict[str, Any]]
) -> None:
    page = look(site, f"/t/{finished}?panel=timeline")
    line = slider(page)
    expect(line).to_have_attribute("aria-valuetext", "Now")
    line.focus()
    page.keyboard.press("ArrowLeft")
    last = moments[-1]
    expect(line).to_have_attribute("aria-valuetext", re.compile(rf"^Moment {last['number']}, .*{last['summary']}"))
    expect(page).to_have_url(re.compile(rf"at={last['checkpoint']}"))
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile(rf"at={moments[0]['checkpoint']}"))
    expect(page.get_by_role("button", name="Previous moment")).to_be_disabled()
    page.get_by_role("button", name="Next moment").press("Enter")
    expect(page).to_have_url(re.compile(rf"at={moments[1]['checkpoint']}"))
    line.focus()
    page.keyboard.press("End")
    expect(line).to_have_attribute("aria-valuetext", "Now")
    jump = page.get_by_role("button", name=re.compile(moments[4]["summary"]))
    jump.press("Enter")
    expect(jump).to_have_attribute("aria-current", "true")
    expect(line).to_have_value("4")


@pytest.mark.slow
@pytest.mark.requirement("W-18", "X-07")
def test_a_fork_begins_a_branch_whose_differences_are_shown(
    look: Opened, site: Site, finished: str, moments: list[dict[str, Any]]
) -> None:
    before = site.call("GET", f"/api/threads/{finished}/report")
    page = look(site, f"/t/{finished}?panel=timeline&at={moments[0]['checkpoint']}")
    page.get_by_role("button", name="Fork from here").click()
    dialog = page.get_by_role("dialog", name="Fork from here")
    expect(dialog).to_contain_text("this one is not changed")
    dialog.get_by_label("Deliverable").fill(MEMO)
    dialog.get_by_role("button", name="Create branch").click()
    expect(dialog.get_by_role("alert")).to_contain_text("There was no plan yet")  # and what to do about it
    expect(dialog.get_by_role("alert")).to_contain_text(f"Fork at moment {number(moments, 'plan')} or later.")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    put(page, number(moments, "write"))
    page.get_by_role("button", name="Fork from here").click()
    dialog.get_by_label("Deliverable").fill(MEMO)
    expect(dialog).to_contain_text("1 change. Changes to the writing take effect before the report is written")
    shot(page, "fork-light-1440")
    assert not violations(page)
    dialog.get_by_role("button", name="Create branch").click()
    expect(page.get_by_role("status").filter(has_text="The branch was created.")).to_contain_text(
        f"moment {number(moments, 'verify')}"
    )
    expect(page).not_to_have_url(re.compile(f"/t/{finished}"))
    made = urlsplit(page.url).path.rsplit("/", 1)[1]
    site.settled(made)
    compared(page, site, finished, made)
    page.reload()
    compared(page, site, finished, made)
    assert site.call("GET", f"/api/threads/{finished}/report") == before
    page.get_by_role("link", name=re.compile("^What is the value")).first.click()
    expect(page).to_have_url(re.compile(f"/t/{finished}"))


def compared(page: Page, site: Site, parent: str, branch: str) -> None:
    diff = site.call("GET", f"/api/diff?a={parent}&b={branch}")
    expect(page.get_by_text(f"{diff['same']} statements are the same on both sides.")).to_be_visible()
    for one in (*diff["added"], *diff["dropped"]):
        expect(page.get_by_role("listitem").filter(has_text=one["text"]).last).to_contain_text("Only in")
    assert diff["dropped"]
    page.get_by_role("radio", name=f"Dropped {len(diff['dropped'])}").click()
    expect(page.locator(".difference")).to_have_count(len(diff["dropped"]))


@pytest.mark.slow
@pytest.mark.requirement("X-07", "W-11")
def test_branches_stand_in_a_tree_and_any_two_can_be_compared(
    look: Opened, site: Site, finished: str, branch: str, moments: list[dict[str, Any]]
) -> None:
    page = look(site, f"/t/{finished}?panel=timeline")
    tree = page.get_by_role("region", name=re.compile("^Branches"))
    expect(tree).to_contain_text("this thread")
    began = number(moments, "verify")
    tree.get_by_role("button", name=f"forked at moment {began}").first.click()
    expect(slider(page)).to_have_value(str(began - 1))
    tree.get_by_role("button", name=re.compile("^Compare with: as a memo")).first.click()
    expect(page.get_by_text("Only in this thread").first).to_be_visible()
    page.get_by_label("This thread with").select_option(f"{finished}@{moments[began - 1]['checkpoint']}")
    expect(page.get_by_text(f"Before: moment {began} of this thread")).to_be_visible()
    shot(page, "timeline-light-1440")
    assert not violations(page)


@pytest.mark.slow
@pytest.mark.requirement("X-07")
def test_a_branch_is_compared_with_its_parent_as_it_was(look: Opened, site: Site, tmp_path: Path) -> None:
    """The parent has gone on with another question since."""
    parent = asked_twice(site, tmp_path, interactive=False)
    moments = site.call("GET", f"/api/threads/{parent}/history?limit=500")["moments"]
    first = [one for one in moments if one["run"] == moments[0]["run"]]
    written = next(one for one in first if one["after"] == ["write"])
    page = look(site, f"/t/{parent}?panel=timeline&at={written['checkpoint']}")
    chosen(page).get_by_role("button", name="Fork from here").click()
    dialog = page.get_by_role("dialog", name="Fork from here")
    dialog.get_by_label("Deliverable").fill(MEMO)
    dialog.get_by_role("button", name="Create branch").click()
    expect(page.get_by_text("Before: the parent", exact=True)).to_be_visible(timeout=30_000)
    assert asked(page, "with") == f"{parent}@{first[-1]['checkpoint']}"
    expect(page.get_by_text("1 statement is the same on both sides.")).to_be_visible()
    page.get_by_label("This thread with").select_option(parent)
    expect(page.get_by_text("Before: the parent as it is now")).to_be_visible()
    page.get_by_role("button", name=f"Compare with: {FERRY}").click()
    expect(page.get_by_text("Before: the parent", exact=True)).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, False), (1440, True)])
def test_it_is_usable_on_any_screen(
    look: Opened, site: Site, branch: str, finished: str, width: int, dark: bool
) -> None:
    page = look(site, f"/t/{branch}?panel=timeline&with={finished}", width=width, dark=dark)
    expect(page.get_by_text("are the same on both sides")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not violations(page)
    shot(page, f"timeline-{'dark' if dark else 'light'}-{width}")


def violations(page: Page) -> list[str]:
    """Of what this pane shows."""
    found = Axe().run(page, context=".timeline", options=RULES).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]


@pytest.mark.slow
@pytest.mark.requirement("W-18")
def test_the_timeline_grows_while_a_run_is_at_work_and_a_chosen_moment_stays(look: Opened, own_site: OpenSite) -> None:
    site = own_site(hitl_after_planning=True)
    thread = site.ask("How did Tesla's deliveries change over 2023?", depth="quick", modeOverride="auto")
    assert site.settled(thread) == "waiting"
    history, reviews = f"/api/threads/{thread}/history?limit=500", f"/api/threads/{thread}/reviews"
    planned = site.call("GET", history)["moments"]
    first = planned[0]["checkpoint"]
    page = look(site, f"/t/{thread}?panel=timeline&at={first}")
    line = page.locator("#moment-slider")  # whatever stands before it: the plan waits to be approved
    expect(line).to_have_attribute("max", str(len(planned)))
    waiting = site.call("GET", reviews)["reviews"][0]
    site.call("POST", f"/api/reviews/{waiting['id']}/answer", {"value": {"decision": "approve"}})
    site.settled(thread, "done")
    grown = site.call("GET", history)["moments"]
    assert len(grown) > len(planned)
    expect(line).to_have_attribute("max", str(len(grown)))
    expect(line).to_have_value("0")
    assert asked(page, "at") == first
