"""The answer: how it stands, what it says, and what every statement of it rests on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import Opened, OpenSite, shot
from tests.browser.ui.site import Site

PLANCK = re.compile(r"^(?:In 2018 the|The)[\w -]* Planck Collaboration (?:inferred|gave) a Hubble constant of 67\.4")
INTERACTION = 400  # ms: see pace.py


def statement(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.locator(".statement").filter(has_text=text).first


@pytest.mark.slow
@pytest.mark.requirement("X-02", "X-08")
def test_a_report_tells_how_sure_it_is_who_disagrees_and_what_was_not_found(
    look: Opened, site: Site, finished: str
) -> None:
    page = look(site, f"/t/{finished}")
    report = site.call("GET", f"/api/threads/{finished}/report")
    pane = page.get_by_role("main")
    expect(pane.get_by_role("heading", level=1)).to_have_text(report["question"])
    told = f"{report['coverage']['checked']} of {report['coverage']['total']} drafted statements checked"
    pane.get_by_text(told).click()
    expect(pane.get_by_text("The share of drafted statements that no passage supports")).to_be_visible()
    marked = pane.get_by_role("group", name="How well the statements are supported").locator(".count").all_inner_texts()
    expect(pane.get_by_text(f"The report makes {sum(map(int, marked))} statements")).to_be_visible()
    pane.get_by_role("button", name="Verify").click()
    expect(pane.get_by_text(f"1 of {sum(map(int, marked))}, weakest first")).to_be_visible()
    page.keyboard.press("Escape")
    for section in report["sections"]:
        expect(pane.get_by_role("heading", name=section["title"], exact=True)).to_be_visible()
    expect(pane.get_by_text("View 1")).to_be_visible()
    expect(pane.get_by_text("View 2")).to_be_visible()
    (missing,) = report["not_found"]
    for query in missing["queries"]:
        expect(pane.locator(".unfound").get_by_text(query, exact=True)).to_be_visible()
    expect(pane.get_by_role("region", name="Key figures").get_by_text("67.4 ± 0.5 km/s/Mpc")).to_be_visible()
    pane.get_by_text(re.compile(r"^Review: ")).click()
    expect(pane.get_by_text(report["review"]["issues"][0]["description"])).to_be_visible()
    assert violations(page) == []
    page.get_by_role("main").evaluate("pane => pane.scrollTo(0, 0)")
    shot(page, "answer-light-1440")


@pytest.mark.slow
@pytest.mark.requirement("X-01", "W-11")
def test_hovering_a_statement_shows_its_claim_and_its_source_is_found(look: Opened, site: Site, finished: str) -> None:
    page = look(site, f"/t/{finished}?panel=log")
    said = statement(page, PLANCK)
    said.locator(".says").hover()
    card = page.get_by_role("dialog", name="What this statement rests on")
    expect(card.get_by_text("supported")).to_be_visible()
    # Whoever tells of Planck's measurement is one voice with it.
    expect(card.get_by_text("One credible source.")).to_be_visible()
    expect(card.locator("blockquote").first).to_contain_text("67.4 ± 0.5 km/s/Mpc")
    expect(card.get_by_text("Disputed by")).to_be_attached()
    card.locator("blockquote").first.hover()  # one can go onto it, and it stays
    page.wait_for_timeout(500)
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    said.get_by_role("button", name=re.compile(r"^S\d+$")).first.click()
    expect(page.get_by_role("tab", name="Sources")).to_have_attribute("aria-selected", "true")
    assert "panel=sources" in page.url


@pytest.mark.slow
@pytest.mark.requirement("X-01", "W-11")
def test_with_the_keyboard_alone_one_gets_from_a_statement_to_its_passage(
    look: Opened, site: Site, finished: str
) -> None:
    page = look(site, f"/t/{finished}", width=360, dark=True)
    expect(page.locator(".statement").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator(".reader .statement").first
    expect(first).to_be_focused()
    expect(first).to_have_accessible_description(re.compile("One credible source"))
    card = page.get_by_role("dialog", name="What this statement rests on")
    expect(card).to_be_visible()
    shot(page, "answer-card-dark-360")
    page.keyboard.press("Enter")
    expect(card.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    passage = page.get_by_role("dialog", name="Passage in its source")
    expect(passage.locator("mark")).to_contain_text(re.compile(r"67\.[49]"))
    page.keyboard.press("Escape")
    expect(passage).to_have_count(0)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(first).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert violations(page) == []
    shot(page, "answer-dark-360")


@pytest.mark.slow
def test_a_report_is_saved_and_printed_with_its_sources(look: Opened, site: Site, finished: str) -> None:
    page = look(site, f"/t/{finished}", dark=True)
    page.get_by_text("Save as").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Markdown").click()
    report = saved.value.path().read_text()
    assert "67.4 ± 0.5" in report
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="Sources", exact=True)).to_be_visible()
    expect(page.locator(".printed li")).to_have_count(report.count('<a id="s'))
    for chrome in (page.get_by_role("banner"), page.get_by_role("tablist"), page.get_by_role("button", name="Verify")):
        expect(chrome).not_to_be_visible()
    page.screenshot(path="build/screens/answer-print.png", full_page=True)


# Two questions of one thread: C1 and S1 are other claims and other sources in each.
FERRY, TOWER = (
    "How many passengers did the ferry Aurora carry to Lake Marrow in 2023?",
    "How tall is the lighthouse of Ebon?",
)
FERRIED = "The ferry Aurora carried 48,210 passengers to Lake Marrow in 2023."
TALL = "The lighthouse of Ebon is 41 metres tall."


def asked_twice(site: Site, folder: Path, **second: Any) -> str:
    for name, text in (("Ferry", FERRIED), ("Tower", TALL)):
        (folder / f"{name}.md").write_text(f"# {name} notes\n\nMarch 2024. {text}\n")
    documents = site.upload(folder / "Ferry.md", folder / "Tower.md")
    thread = site.research(FERRY, documents=documents, depth="quick")
    site.ask(TOWER, threadId=thread, source="auto", depth="quick", **second)
    site.settled(thread)
    return thread


@pytest.fixture(scope="module")
def twice(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    return asked_twice(site, tmp_path_factory.mktemp("twice"), interactive=False)


def rests_on(page: Page, said: str, source: str) -> None:
    """Its card tells its own claim, its citation leads to its own source, and its passage can be opened."""
    statement(page, said).locator(".says").click()
    card = page.get_by_role("dialog", name="What this statement rests on")
    expect(card.locator("blockquote")).to_have_text([said])
    expect(card).to_contain_text(f"{source} notes")
    card.get_by_role("button", name="Open passage").click()
    passage = page.get_by_role("dialog", name="Passage in its source")
    expect(passage.locator("mark")).to_have_text(said)
    expect(passage.locator(".claimed")).to_contain_text(said)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    cite = statement(page, said).get_by_role("button", name="S1", exact=True)
    expect(cite).to_have_attribute("title", f"{source} notes")
    cite.click()
    expect(page.locator("#source-S1")).to_be_focused()
    expect(page.locator("#source-S1")).to_contain_text(f"{source} notes")
    expect(page.locator("#source-S1 .excerpts > .on")).to_contain_text(said)


@pytest.mark.slow
@pytest.mark.requirement("W-11", "W-18", "X-01")
def test_a_draft_is_read_before_its_report_stopped_and_gone_on_with(
    look: Opened, own_site: OpenSite, tmp_path: Path
) -> None:
    site = own_site(hitl_before_output=True)
    thread = asked_twice(site, tmp_path, modeOverride="auto")
    page = look(site, f"/t/{thread}")
    pane = page.get_by_role("main")
    expect(pane.locator(".status").get_by_text("waiting for you", exact=True)).to_be_visible(timeout=30_000)
    expect(pane.get_by_text("Draft.")).to_be_visible()
    expect(pane.get_by_role("list", name="Steps to the report").get_by_text("Reviewing")).to_have_attribute(
        "aria-current", "step"
    )
    page.keyboard.press("Escape")  # out of the planner, should it have opened
    expect(page.locator("dialog[open]")).to_have_count(0)
    rests_on(page, TALL, "Tower")  # and not on the report of the question before
    shot(page, "answer-draft-light-1440")
    stop = pane.locator(".status").get_by_role("group", name="Stop the research")
    stop.get_by_role("button", name="Stop", exact=True).click()
    stop.get_by_role("button", name="Stop now").click()
    expect(pane.get_by_text("The run was stopped.", exact=False).first).to_be_visible()
    expect(pane.get_by_text("There is no report on this question. Below is the answer to")).to_be_visible()
    rests_on(page, FERRIED, "Ferry")
    site.settled(thread, "cancelled")
    pane.locator(".status").get_by_role("button", name="Resume").click()
    site.settled(thread, "waiting")
    expect(pane.locator(".status").get_by_text("waiting for you", exact=True)).to_be_visible()
    expect(statement(page, TALL)).to_be_visible()


@pytest.mark.slow
@pytest.mark.requirement("W-18", "X-01")
def test_a_moment_of_an_earlier_question_is_shown_with_its_own_question_and_evidence(
    look: Opened, site: Site, twice: str
) -> None:
    moments = site.call("GET", f"/api/threads/{twice}/history?limit=500")["moments"]
    written = next(one for one in moments if one["after"] == ["write"])
    page = look(site, f"/t/{twice}?at={written['checkpoint']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(FERRY)
    expect(page.get_by_role("navigation", name="Questions").locator("[aria-current]")).to_contain_text(FERRY)
    rests_on(page, FERRIED, "Ferry")
    shot(page, "answer-moment-light-1440")
    page.get_by_role("main").get_by_role("button", name="Back to now").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TOWER)
    rests_on(page, TALL, "Tower")


@pytest.mark.slow
def test_an_address_that_leads_nowhere_says_so_and_shows_what_there_is(look: Opened, site: Site, twice: str) -> None:
    page = look(site, f"/t/{twice}?run=000000000000")
    expect(page.get_by_text("This thread has no such question.")).to_be_visible()
    expect(statement(page, TALL)).to_be_visible()
    assert "run=" not in page.url
    page.goto(f"{site.url}/t/{twice}?at=nonsense")
    expect(page.get_by_text("This thread has no such moment.")).to_be_visible()
    expect(statement(page, TALL)).to_be_visible()
    assert "at=" not in page.url


@pytest.mark.slow
def test_the_questions_of_a_thread_stand_on_a_line_each_on_a_phone(look: Opened, site: Site, twice: str) -> None:
    page = look(site, f"/t/{twice}", width=360)
    turns = page.get_by_role("navigation", name="Questions")
    expect(turns.get_by_role("button")).to_have_count(2)
    heights = [one.evaluate("one => one.offsetHeight") for one in turns.get_by_role("button").all()]
    assert max(heights) < 40, "each on one line: none is cut through its second"
    shot(page, "answer-turns-light-360")


@pytest.mark.slow
@pytest.mark.requirement("W-18")
def test_a_moment_of_the_past_shows_its_draft_and_leads_back(look: Opened, site: Site, finished: str) -> None:
    moments = site.call("GET", f"/api/threads/{finished}/history?limit=500")["moments"]
    reviewed = next(one for one in moments if "review" in one["after"])
    page = look(site, f"/t/{finished}?at={reviewed['checkpoint']}")
    expect(page.get_by_text(f"This is the answer as it was at moment {reviewed['number']}, ")).to_be_visible()
    expect(statement(page, PLANCK)).to_be_visible()
    expect(page.get_by_text("confidence medium")).to_have_count(0)
    shot(page, "answer-past-light-1440")
    page.get_by_role("main").get_by_role("button", name="Back to now").click()
    expect(page.get_by_text("confidence medium")).to_be_visible()
    page.goto(f"{site.url}/t/{finished}?at={moments[0]['checkpoint']}")
    expect(page.get_by_text("Nothing had been written at that moment.")).to_be_visible()


@pytest.mark.slow
def test_three_thousand_statements_answer_at_once(look: Opened, site: Site, finished: str) -> None:
    page = look(site)
    report = site.call("GET", f"/api/threads/{finished}/report")
    fulfil(page, f"**/api/threads/{finished}/report", large(report))
    page.goto(f"{site.url}/t/{finished}")
    expect(page.locator(".statement")).to_have_count(3_000)
    assert took(page, "dispatchEvent(new Event('openassay:next'))") < INTERACTION
    assert took(page, "document.querySelector('.legend button').click()") < INTERACTION
    page.get_by_role("button", name="Verify").click()
    assert took(page, "document.querySelector('.verify button.doubtful').click()") < INTERACTION
    assert took(page, "document.querySelector('.verify footer button:nth-child(2)').click()") < INTERACTION
    expect(page.locator(".doubted").first).to_be_attached()
    assert page.evaluate("document.getElementById('main').scrollWidth <= document.getElementById('main').clientWidth")


@pytest.mark.slow
def test_lists_leads_and_tables_stand_where_they_were_written(look: Opened, site: Site, finished: str) -> None:
    report = site.call("GET", f"/api/threads/{finished}/report")
    fact = next(one for section in report["sections"] for one in section["sentences"] if one["kind"] == "fact")
    cells = [
        {**fact, "opens": False, "cell": {"row": row, "column": "Value", "text": "67.4"}} for row in ("2018", "2020")
    ]
    item = {**fact, "text": "The <i>first</i>: it is 67.4.", "lead": "The <i>first</i>:", "opens": True, "item": True}
    opens, goes_on = {**fact, "opens": True}, {**fact, "opens": False}
    sentences = [opens, *cells, goes_on, item, goes_on, {**item, "lead": "Other:"}, opens]
    page = look(site)
    section = {"title": "Laid out", "role": "body", "sentences": sentences}
    fulfil(page, f"**/api/threads/{finished}/report", {**report, "sections": [section]})
    page.goto(f"{site.url}/t/{finished}")
    shown = page.locator(".section").filter(has=page.get_by_role("heading", name="Laid out"))
    expect(shown.locator(".items > li")).to_have_count(2)
    parts = shown.locator("> :is(.text, .cells, .items)").evaluate_all("parts => parts.map(part => part.tagName)")
    assert parts == ["P", "DIV", "P", "UL", "P"]
    expect(shown.locator(".items > li").first.locator(".statement")).to_have_count(2)
    expect(shown.locator("b.lead")).to_have_text(["The <i>first</i>:"])
    assert violations(page) == []
    shot(page, "answer-list-1440")


def fulfil(page: Page, address: str, content: Any) -> None:
    def answer(route: Route) -> None:
        route.fulfill(body=json.dumps(content), content_type="application/json")

    page.route(address, answer)


def large(report: dict[str, Any]) -> dict[str, Any]:
    """30 sections of 100 statements on a claim each; long words, and words from right to left."""
    claim = next(one for one in report["claims"] if one["mark"] == "✓")
    claims = [{**claim, "id": f"C{n}"} for n in range(3_000)]
    words = ("W" * 300, "ثابت هابل هو سبعون كيلومترا في الثانية", "The value is seventy.")
    sentences = [
        {"text": f"{words[n % 3]} {n}", "kind": "fact", "claims": [f"C{n}"], "citations": ["S1", "S2"], "mark": "✓",
         "opens": n % 5 == 0}
        for n in range(3_000)
    ]  # fmt: skip
    sections = [
        {"title": f"Part {n}", "role": "body", "sentences": sentences[n * 100 : n * 100 + 100]} for n in range(30)
    ]
    return {**report, "claims": claims, "sections": sections, "figures": [], "disputes": []}


def took(page: Page, act: str) -> float:
    """Milliseconds until the page shows what came of it: the best of three, since other tests share the machine."""
    shown = "requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)))"
    script = f"() => new Promise(done => {{ const began = performance.now(); {act}; {shown} }})"
    return min(float(page.evaluate(script)) for _ in range(3))
