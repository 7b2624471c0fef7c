"""The drawer in which a run asks: questions one by one, the plan to be edited, and everything else to be approved."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from openassay.errors import AnswerError
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion, apply_edits, parse_edits
from openassay.server.routes.system import load_interface
from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import Opened, OpenSite, shot
from tests.browser.ui.site import LIBRARY, Site

pytestmark = [pytest.mark.requirement("W-02"), pytest.mark.requirement("W-11")]
HUBBLE = (
    "What is the value of the Hubble constant, why do measurements of it disagree,"
    " and when will the disagreement be settled?"
)
FEW = sorted(LIBRARY.glob("planck*"))
ADDED = "What would a larger survey tell?"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Every plan is to be approved."""
    with Site.opened(tmp_path_factory.mktemp("asking"), hitl_after_planning=True) as opened:
        yield opened


def planned(site: Site) -> str:
    thread = site.ask(HUBBLE, modeOverride="plan")
    assert site.settled(thread) == "waiting"
    return thread


def waiting(site: Site, thread: str) -> dict[str, Any]:
    (review,) = site.call("GET", f"/api/threads/{thread}/reviews")["reviews"]
    return dict(review["interrupt"])


def answered(site: Site, thread: str, asked: dict[str, Any], value: Any) -> None:
    site.call("POST", f"/api/threads/{thread}/resume", {"interruptId": asked["id"], "value": value})
    site.settled(thread)


def texts(site: Site, thread: str) -> list[str]:
    """The sub-questions that are researched, in their order."""
    return [step["text"] for step in site.call("GET", f"/api/threads/{thread}/state")["values"]["plan"]["dag"]]


def drawer(page: Page, title: str) -> Locator:
    found = page.get_by_role("dialog", name=title)
    expect(found).to_be_visible()
    return found


def decided(page: Page, site: Site, thread: str, button: str) -> None:
    """Pressed, taken, and gone on with as far as it goes."""
    with page.expect_response("**/resume"):
        page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()
    site.settled(thread)


def sub_question(page: Page, number: int) -> Locator:
    return page.get_by_label(f"Sub-question {number}", exact=True)


def taken(page: Page) -> None:
    """The plan, that is: what is found by it is another matter."""
    expect(page.get_by_text("Your answer was received.").first).to_be_visible()


def fits(page: Page) -> None:
    width = page.evaluate("[document.scrollingElement.scrollWidth, document.querySelector('dialog').scrollWidth]")
    assert max(width) <= 360, width


@pytest.mark.slow
def test_from_questions_to_an_edited_plan_by_mouse(look: Opened, asking: Site) -> None:
    thread = planned(asking)
    page = look(asking, f"/t/{thread}")
    box = drawer(page, "Before the research")
    expect(box.get_by_text("Question 1 of 3")).to_be_visible()
    expect(box.get_by_role("button", name="Answer and continue")).to_be_disabled()
    box.get_by_label("The last ten years").check()
    box.get_by_role("button", name="Answer and continue").click()

    expect(box.get_by_text("Question 2 of 3")).to_be_visible()
    expect(box.get_by_role("region", name="Your answers so far")).to_contain_text("The last ten years")
    box.get_by_label("Custom").check()
    box.get_by_label("Your answer", exact=True).fill("Would you like to know that?")
    box.get_by_role("button", name="Answer and continue").click()
    expect(box.get_by_role("alert")).to_contain_text("a question of its own")
    box.get_by_label("Your answer", exact=True).fill("A lecture for teachers")
    box.get_by_role("button", name="Answer and continue").click()
    expect(box.get_by_text("Question 3 of 3")).to_be_visible()
    box.get_by_role("button", name="No preference").click()

    box = drawer(page, "The plan")
    expect(box.get_by_text("use: A lecture for teachers")).to_be_visible()
    edited_by_mouse(page, box)
    shot(page, "planner-changed-light-1440")
    shown = [sub_question(page, number).input_value() for number in range(1, 5)]
    asked = waiting(asking, thread)
    box.get_by_role("button", name="Approve with my changes").click()
    expect(box).to_be_hidden()
    taken(page)
    assert texts(asking, thread) == shown
    edits = asking.call("GET", f"/api/reviews/{asked['id']}")["answer"]["edits"]
    assert {"op": "words", "words": 500} in edits
    assert {"op": "budget", "usd": 1.5} in edits
    assert any(edit.get("name") == "Surveys to come" for edit in edits)


def edited_by_mouse(page: Page, box: Locator) -> None:
    last = sub_question(page, 4).input_value()
    page.locator(".grip").nth(3).drag_to(page.locator(".sub-question").first, target_position={"x": 60, "y": 5})
    expect(sub_question(page, 1)).to_have_value(last)
    second = sub_question(page, 2).input_value()
    box.get_by_role("button", name="Remove sub-question 2").click()
    expect(sub_question(page, 2)).not_to_have_value(second)
    box.get_by_role("button", name="Undo last").click()
    expect(sub_question(page, 2)).to_have_value(second)
    box.get_by_role("button", name="Remove sub-question 2").click()

    sub_question(page, 2).fill("Why do the two ways of measuring it disagree?")
    expect(sub_question(page, 3)).not_to_have_value("")
    box.get_by_label("New sub-question").fill("ab")
    box.get_by_role("button", name="Add", exact=True).click()
    expect(box.get_by_role("alert")).to_contain_text("at least 4 letters")
    box.get_by_label("New sub-question").fill(ADDED)
    box.get_by_label("Add to section").select_option(label="In a new section …")
    box.get_by_label("New section title").fill("To come")
    box.get_by_role("button", name="Add", exact=True).click()
    box.get_by_label("Title of the section").fill("Surveys to come")
    box.get_by_label("Title of the section").press("Enter")
    box.get_by_label("Section of sub-question 3").select_option(label="Move under: Surveys to come")
    expect(box.get_by_text("A section of its own")).to_have_count(2)
    box.get_by_label("Maximum words").fill("500")
    box.get_by_label("Maximum cost in dollars").fill("1.5")
    box.get_by_label("Maximum cost in dollars").blur()
    for told in ("Moved", "Reworded", "New"):
        expect(box.locator(".outline").get_by_text(told, exact=True).first).to_be_visible()


def tabbed(page: Page, name: str) -> None:
    """Reach something by the keyboard alone."""
    for _ in range(80):
        focused = page.evaluate(
            "(({activeElement: e}) => (e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent)"
            ".trim())(document)"
        )
        if focused.startswith(name):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name!r} cannot be reached")


@pytest.mark.slow
def test_the_same_by_keyboard_alone(look: Opened, asking: Site) -> None:
    thread = planned(asking)
    page = look(asking, f"/t/{thread}")
    for number in (1, 2, 3):
        expect(page.get_by_text(f"Question {number} of 3")).to_be_visible()
        expect(page.locator("legend")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("radio").nth(1)).to_be_checked()
        page.keyboard.press("Enter")

    box = drawer(page, "The plan")
    expect(box.get_by_role("heading", name="Is this plan what you want?")).to_be_focused()
    first, second = sub_question(page, 1).input_value(), sub_question(page, 2).input_value()
    tabbed(page, "Move sub-question 2 up")
    page.keyboard.press("Enter")
    expect(sub_question(page, 1)).to_have_value(second)
    expect(box.get_by_role("button", name="Move sub-question 1 down")).to_be_focused()
    tabbed(page, "Sub-question 2")
    page.keyboard.press("End")
    page.keyboard.type(" Really")
    page.keyboard.press("Escape")
    expect(sub_question(page, 2)).to_have_value(first)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Which value do the newest measurements give?")
    page.keyboard.press("Enter")
    tabbed(page, "Remove sub-question 3")
    page.keyboard.press("Enter")
    expect(box.get_by_role("button", name="Undo last")).to_be_focused()
    tabbed(page, "Approve with my changes")
    page.keyboard.press("Enter")
    expect(box).to_be_hidden()

    taken(page)
    assert texts(asking, thread)[:2] == [second, "Which value do the newest measurements give?"]
    assert len(texts(asking, thread)) == 3


# Changes one by one, those that cannot be made left out, as the page makes them.
TRIED = """async ([digest, cases]) => {
  const { applied } = await import(`/ui/${digest}/plan/edits.js`);
  return cases.map(([plan, edits]) => {
    const taken = edits.map((edit) => {
      try {
        plan = applied(plan, [edit]);
        return true;
      } catch {
        return false;
      }
    });
    return [taken, plan.sections, plan.questions.map((one) => [one.id, one.text, one.section])];
  });
}"""


@pytest.mark.slow
def test_a_plan_is_shown_as_the_server_will_make_it(look: Opened, asking: Site) -> None:
    """The drawer tries changes by itself, before anything is sent: by the same rules."""
    chance = random.Random(7)
    plans = [outlined(chance) for _ in range(150)]
    cases, expected = [], []
    for plan in plans:
        edits, taken, now = [], [], plan
        for _ in range(8):
            edits.append(wished(now, chance))
            now, was_taken = made(now, edits[-1])
            taken.append(was_taken)
        cases.append([plan.plain(), edits])
        expected.append([taken, list(now.sections), [[one.id, one.text, one.section] for one in now.questions]])
    assert look(asking).evaluate(TRIED, [load_interface().digest, cases]) == expected


def made(plan: Plan, edit: dict[str, Any]) -> tuple[Plan, bool]:
    try:
        return apply_edits(plan, parse_edits([edit])), True
    except AnswerError:
        return plan, False


def outlined(chance: random.Random) -> Plan:
    """Two to seven sub-questions in sections of any order, some named after one of them, one with none."""
    texts = [f"What is told of matter {number}?" for number in range(chance.randint(2, 7))]
    asked = [
        SubQuestion(id=f"Q{number}", text=text, section=chance.choice(["One", "Two", text]))
        for number, text in enumerate(texts, 1)
    ]
    titles = (*dict.fromkeys(one.section for one in asked), *(["Bare"] if chance.random() < 0.3 else []))
    queries = [SearchQuery(id=f"K{number}", text="matter", question=one.id) for number, one in enumerate(asked, 1)]
    return Plan(goal="Matters", depth=chance.choice(list(Depth)), questions=tuple(asked), queries=tuple(queries),
                sections=titles, methodology="", confidence=1, edited=True)  # fmt: skip


def wished(plan: Plan, chance: random.Random) -> dict[str, Any]:
    question, title = chance.choice(plan.questions).id, chance.choice(plan.sections)
    text = chance.choice(
        [*(one.text for one in plan.questions), "WHAT IS TOLD OF MATTER 1?", f"Why not {chance.random()}?"]
    )
    section = chance.choice([title, "ONE", "Another"])
    return chance.choice(
        [
            {"op": "add", "text": text},
            {"op": "add", "text": text, "section": section},
            {"op": "remove", "question": question},
            {"op": "move", "question": question, "to": chance.randint(1, len(plan.questions))},
            {"op": "reword", "question": question, "text": text},
            {"op": "assign", "question": question, "section": section},
            {"op": "remove_section", "title": title},
            {"op": "move_section", "title": title, "to": chance.randint(1, len(plan.sections))},
            {"op": "rename_section", "title": title, "name": section},
        ]
    )


@pytest.mark.slow
def test_a_reload_comes_back_to_the_question_and_what_was_begun(look: Opened, asking: Site) -> None:
    thread = planned(asking)
    page = look(asking, f"/t/{thread}", width=360, dark=True)
    box = drawer(page, "Before the research")
    fits(page)
    box.get_by_label("Custom").check()
    box.get_by_label("Your answer", exact=True).fill("From 1998 on")
    page.reload()
    expect(box.get_by_label("Your answer", exact=True)).to_have_value("From 1998 on")
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()

    first = waiting(asking, thread)
    answered(asking, thread, first, "From elsewhere")
    expect(box.get_by_text("Question 2 of 3")).to_be_visible()
    expect(box.get_by_text("was answered elsewhere (“From elsewhere”)")).to_be_visible()

    page.route("**/api/stream/**", lambda route: route.abort())
    page.reload()
    box.get_by_role("radio").first.check()
    answered(asking, thread, waiting(asking, thread), "From elsewhere again")
    box.get_by_role("button", name="Answer and continue").click()
    expect(box.get_by_text("Your answer came too late: answered already")).to_be_visible()
    expect(box.get_by_text("Question 3 of 3")).to_be_visible()
    box.get_by_role("button", name="Skip the questions").click()
    expect(box.get_by_role("button", name="Skip the questions")).to_be_hidden()
    assert asking.call("GET", f"/api/threads/{thread}")["mode"] == "auto"
    asking.settled(thread, "waiting")


@pytest.mark.slow
@pytest.mark.requirement("F-09")
def test_nothing_is_approved_past_what_was_not_taken_and_rejected_only_when_that_is_meant(
    look: Opened, asking: Site
) -> None:
    thread = asking.ask(HUBBLE, modeOverride="auto")
    assert asking.settled(thread) == "waiting"
    page = look(asking, width=360, dark=True)
    page.get_by_role("button", name="Threads").click()
    page.get_by_role("region", name="Waiting for you").locator(f"a[href*='{thread}']").click()
    box = drawer(page, "The plan")
    fits(page)
    texts_that_are_refused_stand_in_the_way(page, box)
    amounts_that_are_refused_stand_in_the_way(page, box)
    assert asking.settled(thread) == "waiting"
    box.get_by_role("button", name="Reject …").click()
    expect(box.get_by_role("button", name="Do not reject")).to_be_focused()
    box.get_by_label("Comment").fill("Too narrow.")
    box.get_by_role("button", name="Reject and end").click()
    expect(box).to_be_hidden()
    asking.settled(thread)
    assert any("Too narrow." in one for one in asking.call("GET", f"/api/threads/{thread}/report")["notices"])


def texts_that_are_refused_stand_in_the_way(page: Page, box: Locator) -> None:
    before = sub_question(page, 2).input_value()
    sub_question(page, 2).fill("")
    box.get_by_role("button", name="Approve", exact=True).click()
    told = box.get_by_role("alert").filter(has_text="Not sent yet")
    expect(told).to_contain_text("Check “Sub-question 2”: A sub-question needs at least 4 letters.")
    expect(sub_question(page, 2)).to_be_focused()
    assert violations(page) == []
    fits(page)
    shot(page, "planner-refused-dark-360")
    box.get_by_role("button", name="Move sub-question 1 down").click()
    box.get_by_role("button", name="Approve with my changes").click()
    expect(told).to_contain_text("Check “Sub-question 1”")
    sub_question(page, 1).press("Escape")
    expect(sub_question(page, 1)).to_have_value(before)
    expect(told).to_have_count(0)

    box.get_by_label("New sub-question").fill(ADDED)
    box.get_by_role("button", name="Approve with my changes").click()
    expect(told).to_contain_text("This sub-question is not in the plan yet.")
    box.get_by_label("New sub-question").fill("")
    expect(told).to_have_count(0)


def amounts_that_are_refused_stand_in_the_way(page: Page, box: Locator) -> None:
    dollars, told = (
        box.get_by_label("Maximum cost in dollars"),
        box.get_by_role("alert").filter(has_text="Not sent yet"),
    )
    dollars.fill("-1")
    box.get_by_role("button", name="Approve with my changes").click()
    expect(told).to_contain_text("Check “Maximum cost in dollars”")
    expect(dollars).to_be_focused()
    box.get_by_role("button", name="Undo last").click()  # and it still stands there
    expect(dollars).to_have_value("-1")
    dollars.fill("3")
    dollars.blur()
    expect(told).to_have_count(0)
    expect(box.get_by_role("region", name="Your changes")).to_contain_text("Budget: $3.00 at most")
    dollars.fill("")
    dollars.blur()
    expect(box.get_by_text("Cleared: 2, as planned.").first).to_be_visible()
    expect(dollars).to_have_value("2")
    expect(box.get_by_role("region", name="Your changes")).to_have_count(0)
    words = box.get_by_label("Maximum words")
    words.fill("500")
    words.blur()
    expect(box.get_by_role("region", name="Your changes")).to_contain_text("500 words")
    words.fill("")
    words.blur()
    expect(box.get_by_text("Cleared: no limit.").first).to_be_visible()
    expect(box.get_by_role("region", name="Your changes")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.requirement("F-09")
def test_what_nobody_answers_in_time_is_decided_by_the_timer(look: Opened, own_site: OpenSite) -> None:
    site = own_site(hitl_after_planning=True, breakpoints={"plan_timeout": 4})
    page = look(site)
    thread = site.ask(HUBBLE, modeOverride="auto")
    page.goto(f"{site.url}/t/{thread}")
    box = drawer(page, "The plan")
    expect(box.get_by_role("timer")).to_contain_text("s left, then it ends with what has been found")
    expect(page.get_by_text("was not answered in time").first).to_be_visible(timeout=20_000)
    expect(box).to_be_hidden()


EVERYWHERE = {
    "hitl_before_output": True,
    "breakpoints": {
        "before_harvest": True,
        "custom": [
            {"name": "found", "at": "claims", "question": "Are these the claims?"},
            {"name": "mine", "at": "review", "shows": ["confidence", "critique.score", "gate"],
             "when": {"field": "iteration", "operator": "==", "value": 1}},
        ],
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("F-09")
def test_every_place_where_a_run_can_be_stopped(look: Opened, own_site: OpenSite) -> None:
    site = own_site(**EVERYWHERE)
    thread = site.ask("What is the Hubble constant?", modeOverride="auto", depth="quick", documents=site.upload(*FEW))
    site.settled(thread)
    page = look(site, f"/t/{thread}")
    hosts_are_struck_out(page, site, thread)
    claims_are_left_out(page, site, thread)
    box = drawer(page, "The review")
    expect(box.get_by_role("heading", name="Critique score")).to_be_visible()
    expect(box.get_by_text("auto was asked for")).to_be_visible()
    decided(page, site, thread, "Skip")
    a_report_is_sent_back_and_changed(page, site, thread)


def hosts_are_struck_out(page: Page, site: Site, thread: str) -> None:
    """The library is on this machine: hosts are put into what the page is told."""

    def with_hosts(route: Route) -> None:
        told = route.fetch().json()
        for one in told["reviews"]:
            one["interrupt"]["shown"].update(hosts=["example.com", "example.org"], pages=7)
        route.fulfill(json=told)

    page.route("**/api/threads/*/reviews", with_hosts)
    page.reload()
    box = drawer(page, "Before reading")
    box.get_by_label("example.org").uncheck()
    box.get_by_label("Maximum number of pages to fetch").fill("-4")
    box.get_by_role("button", name="Approve with my changes").click()
    expect(box.get_by_role("alert")).to_contain_text("Check “Maximum number of pages to fetch”")
    box.get_by_label("Maximum number of pages to fetch").fill("4")
    asked = waiting(site, thread)
    decided(page, site, thread, "Approve with my changes")
    given = site.call("GET", f"/api/reviews/{asked['id']}")["answer"]
    assert (given["decision"], given["without"], given["pages"]) == ("modify", ["example.org"], 4)
    page.unroute("**/api/threads/*/reviews")
    while (asked := waiting(site, thread))["kind"] == "approve_harvest":
        answered(site, thread, asked, "approve")


def claims_are_left_out(page: Page, site: Site, thread: str) -> None:
    box = drawer(page, "What was found")
    claim = waiting(site, thread)["shown"]["claims"][0]
    box.get_by_label("Find claims").fill(claim["text"][:40])
    expect(box.get_by_role("checkbox")).to_have_count(1)
    box.get_by_role("checkbox").uncheck()
    box.get_by_label("Find claims").fill("")
    assert violations(page) == []
    shot(page, "planner-claims-light-1440")
    asked = waiting(site, thread)
    decided(page, site, thread, "Approve the others")
    assert site.call("GET", f"/api/reviews/{asked['id']}")["answer"]["drop"] == [claim["id"]]


def a_report_is_sent_back_and_changed(page: Page, site: Site, thread: str) -> None:
    box = drawer(page, "Before publishing")
    first = waiting(site, thread)
    titles = [section["title"] for section in first["shown"]["draft"]["sections"]]
    for title in titles:
        box.get_by_label(f"Leave out: {title}").click()
    box.get_by_role("button", name="Approve with my changes").click()
    expect(box.get_by_role("alert")).to_contain_text("no section with an answer")
    for title in titles:
        box.get_by_label(f"Leave out: {title}").click()
    box.get_by_label("What to change").fill("Say more about Planck.")
    assert violations(page) == []
    shot(page, "planner-output-light-1440")
    decided(page, site, thread, "Send back with 1 request")
    expect(box.get_by_label("What to change")).to_have_value("")
    assert waiting(site, thread)["id"] != first["id"]
    box.get_by_label("Title").fill("How fast it grows")
    decided(page, site, thread, "Approve with my changes")
    expect(box).to_be_hidden()
    assert site.call("GET", f"/api/threads/{thread}/report")["title"] == "How fast it grows"
