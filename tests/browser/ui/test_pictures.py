"""Pictures: the evidence graph, coverage, spending and the research graph, each in words and as a table too."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Locator, Page, Route, expect

from tests.browser.ui import large
from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import Opened, shot
from tests.browser.ui.pace import Pace
from tests.browser.ui.site import Site

PICTURES = {"evidence": "Evidence graph", "coverage": "Coverage", "spend": "Steps over time", "graph": "Research graph"}
STREAM = re.compile(r"/api/stream/")


def pictured(page: Page, site: Site, thread: str, name: str, **more: str) -> Locator:
    """The pane with that picture, in a page that is there already."""
    query = "&".join(f"{key}={value}" for key, value in more.items())
    page.goto(f"{site.url}/t/{thread}?panel=pictures&picture={name}&{query}")
    expect(page.get_by_role("heading", name=PICTURES[name], exact=True)).to_be_visible()
    return page.get_by_role("tabpanel")


def rows(pane: Locator, title: str) -> list[list[str]]:
    """The picture as a table."""
    figure = pane.get_by_role("figure", name=title)
    figure.get_by_text("As a table").click()
    expect(figure.get_by_role("table")).to_be_visible()
    found: list[list[str]] = figure.get_by_role("row").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    return found


@pytest.mark.slow
@pytest.mark.requirement("W-11", "X-08")
def test_the_evidence_graph_leads_from_claims_to_sources_and_back_to_the_text(
    look: Opened, site: Site, finished: str
) -> None:
    report = site.call("GET", f"/api/threads/{finished}/report")
    page = look(site, f"/t/{finished}?panel=pictures")
    pane = page.get_by_role("tabpanel")
    expect(pane).to_contain_text(f"{len(report['claims'])} claims on {len(report['sources'])} sources")
    expect(pane).to_contain_text("pairs of conflicting claims")

    disputed = next(claim for claim in report["claims"] if claim["disputed_by"] and len(claim["spans"]) > 1)
    node = pane.get_by_role("button", name=re.compile(rf"^{disputed['id']} "))
    expect(node).to_have_accessible_name(re.compile("in conflict with " + ", ".join(disputed["disputed_by"])))
    node.focus()
    lit = set(pane.locator(".node.near b").filter(has_text=re.compile(r"^[CS]\d")).all_inner_texts())
    assert {span["source"] for span in disputed["spans"]} | set(disputed["disputed_by"]) <= lit
    page.keyboard.press("ArrowRight")
    expect(pane.get_by_role("button", name=re.compile(r"^S\d+ ")).and_(page.locator(":focus"))).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    stated = next(claim for claim in report["claims"] if said(report, claim["id"]))
    pane.get_by_role("button", name=re.compile(rf"^{stated['id']} ")).click()
    expect(page.locator("main [data-lit]").first).to_be_visible()

    table = rows(pane, "Evidence graph")
    assert table[0] == ["Claim", "Says", "Verdict", "Supported by", "Contradicted by", "In conflict with"]
    for claim, row in zip(report["claims"], table[1:], strict=True):
        assert row[:2] == [claim["id"], claim["text"]]
        assert row[2].startswith("supported" if claim["verdict"] == "supported" else "partly")
        assert row[3].split(", ") == list(dict.fromkeys(span["source"] for span in claim["spans"]))
        assert set(claim["disputed_by"]) <= set(row[5].split(", "))

    pane.get_by_label("Section", exact=True).select_option(label="What the sources disagree on")
    section = next(one for one in report["sections"] if one["title"] == "What the sources disagree on")
    told = {claim for sentence in section["sentences"] for claim in sentence["claims"]}
    expect(pane.locator(".node.claim")).to_have_count(len(told))
    source = pane.get_by_role("button", name=re.compile(r"^S\d+ ")).first
    source.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name=re.compile("Sources"))).to_have_attribute("aria-selected", "true")


def said(report: dict[str, Any], claim: str) -> bool:
    return any(claim in sentence["claims"] for section in report["sections"] for sentence in section["sentences"])


@pytest.mark.slow
@pytest.mark.requirement("X-02", "X-08")
def test_coverage_says_what_was_checked_and_what_was_not_found(look: Opened, site: Site, finished: str) -> None:
    report = site.call("GET", f"/api/threads/{finished}/report")
    page = look(site)
    pane = pictured(page, site, finished, "coverage")
    coverage = report["coverage"]
    expect(pane).to_contain_text(f"{coverage['checked']} of {coverage['total']} statements checked")
    table = rows(pane, "Coverage")
    for section, row in zip(report["sections"], table[1:], strict=True):
        marks = [sentence["mark"] for sentence in section["sentences"] if sentence["kind"] == "fact"]
        assert row[:4] == [section["title"], *(str(marks.count(mark)) for mark in ("✓✓", "✓", "⚠"))]
        assert row[-1] == (f"{len(marks)} supported" if marks else "none")
    missing = pane.get_by_role("region", name="Searched for, but not found")
    expect(missing).to_contain_text(report["not_found"][0]["question"])
    missing.get_by_text("What was searched for").click()
    expect(missing.get_by_text(report["not_found"][0]["queries"][0], exact=True)).to_be_visible()
    pane.get_by_role("button", name=re.compile("single-source statement")).first.click()
    expect(page.locator("main [data-lit]").first).to_contain_text("⚠")


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_what_costs_nothing_shows_its_steps_and_what_is_paid_its_curve(look: Opened, site: Site, finished: str) -> None:
    page = look(site)
    pane = pictured(page, site, finished, "spend")
    expect(pane).to_contain_text("This costs nothing.")
    steps = {row[0]: row[1] for row in rows(pane, "Steps over time")[1:]}
    assert (steps["Understand the question"], steps["Check every claim"]) == ("1", "1")
    assert int(steps["Search"]) >= 3
    expect(pane.locator(".lanes .name").filter(has_text="Choose how to work")).to_have_count(1)

    told(page, paid)
    pane = pictured(page, site, finished, "spend")
    expect(pane).to_contain_text("$0.06 of at most $0.10, in 3 paid calls; $0.05 was expected.")
    expect(pane).to_contain_text("1 call was counted at the most it could have cost")
    expect(pane.get_by_role("list").filter(has_text="Write")).to_contain_text("Write $0.03")
    pane.get_by_role("radio", name="By model").click()
    expect(pane.get_by_role("list").filter(has_text="small-model")).to_contain_text("small-model $0.01")
    table = rows(pane, "Spend over time")
    assert [row[1:4] for row in table[1:]] == [
        ["Make a plan", "small-model", "$0.01"],
        ["Look for evidence", "large-model", "$0.02"],
        ["Write", "large-model", "$0.03"],
    ]
    assert violations(page) == []
    shot(page, "pictures-spend-paid-light-1440")


def told(page: Page, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """The events of the thread, changed; then nothing more comes."""

    def answer(route: Route) -> None:
        if "last-event-id" not in route.request.headers:  # else left open
            response = route.fetch()
            route.fulfill(response=response, body=written(change(read(response.text()))))

    page.unroute(STREAM)
    page.route(STREAM, answer)


def read(stream: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]


def written(events: Sequence[dict[str, Any]]) -> str:
    return "".join(f"id: {one['run']}.{one['seq']}\nevent: status\ndata: {json.dumps(one)}\n\n" for one in events)


def paid(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    total = 0.0
    calls = iter([("plan", "small-model", 0.01), ("read", "large-model", 0.02), ("write", "large-model", 0.03)])
    found: list[dict[str, Any]] = []
    for event in events:
        if event["kind"] == "quote":
            event = {**event, "data": {"model": "large-model", "usd": 0.05, "most_usd": 0.1}}
        found.append(event)
        if event["kind"] == "leave" and event["stage"] in ("plan", "consolidate", "write"):
            step, model, usd = next(calls, ("", "", 0.0))
            total += usd
            data = {"step": step, "model": model, "usd": usd, "total_usd": total, "cap_usd": 0.1,
                    "confirmed": step != "write", "prompt_tokens": 100, "completion_tokens": 10}  # fmt: skip
            if usd:
                found.append({**event, "seq": event["seq"] + 1000, "kind": "spend", "data": data})
    return found


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_the_research_graph_lights_what_is_at_work(look: Opened, site: Site, finished: str) -> None:
    page = look(site)
    pane = pictured(page, site, finished, "graph")
    expect(pane.get_by_role("status")).to_have_text("Finished.")
    search = pane.get_by_role("button", name=re.compile("^search, done, entered"))
    search.click()
    expect(pane).to_contain_text("May lead to Combine the results.")
    expect(pane.locator("[data-node=gate]")).to_have_attribute("title", "Choose how to work")
    expect(pane.get_by_role("button", name="approve plan, not reached")).to_be_visible()
    graph = site.call("GET", "/api/graph")
    table = rows(pane, "Research graph")
    assert len(table) == len(graph["nodes"]) + 1
    assert "Choose how to work" in [row[0] for row in table]

    moments = site.call("GET", f"/api/threads/{finished}/history?limit=500")["moments"]
    planned = next(one for one in moments if one["next"] == ["dispatch"])
    pane = pictured(page, site, finished, "graph", at=planned["checkpoint"])
    expect(pane.get_by_role("status")).to_have_text("At this moment, next: Distribute the searches")
    expect(pane.get_by_role("button", name=re.compile("^plan, done"))).to_be_visible()
    expect(pane.get_by_role("button", name="verify, not reached")).to_be_visible()

    drafted = next(one for one in moments if one["next"] == ["review"])
    pane = pictured(page, site, finished, "evidence", at=drafted["checkpoint"])
    expect(pane).to_contain_text("This is the draft at that moment.")

    told(page, until_three_search)
    pane = pictured(page, site, finished, "graph")
    expect(pane.get_by_role("status")).to_have_text("Now: Search (3 at once)")
    expect(pane.get_by_role("button", name="search, running, entered 3 times")).to_be_visible()

    page.route("**/runs", with_one_in_line)
    pane = pictured(page, site, finished, "graph")
    expect(pane.get_by_role("status")).to_have_text("Queued.")
    expect(pane.get_by_role("button", name="search, not reached")).to_be_visible()


def with_one_in_line(route: Route) -> None:
    """Another question was asked, of which nothing is told yet."""
    told = route.fetch().json()
    route.fulfill(json={**told, "runs": [*told["runs"], {**told["runs"][-1], "id": "later", "status": "queued"}]})


def until_three_search(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    entered = [at for at, event in enumerate(events) if (event["kind"], event["stage"]) == ("enter", "search")]
    return events[: entered[2] + 1]


@pytest.mark.slow
def test_the_research_graph_says_that_it_waits_for_a_person(look: Opened, site: Site) -> None:
    thread = site.ask("What is the Hubble constant?", modeOverride="plan")
    assert site.settled(thread, "waiting") == "waiting"
    pane = pictured(look(site), site, thread, "graph")
    pane.page.keyboard.press("Escape")  # the question itself
    expect(pane.locator(".now")).to_have_text(re.compile("^Waiting for you: (Ask you questions|Clarify the question)$"))


@pytest.mark.slow
def test_on_a_telephone_in_the_dark(look: Opened, site: Site, finished: str) -> None:
    page = look(site, width=360, dark=True)
    shown = pictured(page, site, finished, "evidence")
    for name, title in PICTURES.items():
        page.locator(f"[role=radio][data-name={name}]").click()
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        shown.get_by_text("As a table").first.click()
        expect(shown.get_by_role("table")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, name
    page.get_by_role("radio", name="Evidence").click()
    pane = page.get_by_role("tabpanel")
    pane.get_by_role("button", name=re.compile(r"^C2 ")).click()
    expect(page.locator("main [data-lit]").first).to_be_visible()


@pytest.mark.slow
def test_a_very_large_report_shows_its_most_connected_part(look: Opened, site: Site, finished: str) -> None:
    page = look(site)
    big = large.report(site.call("GET", f"/api/threads/{finished}/report"))
    page.route(re.compile(r"/report(\?|$)"), lambda route: route.fulfill(json=big))
    page.route(re.compile(r"/sources(\?|$)"), lambda route: route.fulfill(json=large.shelf()))
    pane = pictured(page, site, finished, "coverage")
    expect(pane).to_contain_text("The text states facts in 3,000 sentences of 30 sections")
    took = min(switched(page) for _ in range(3))
    expect(pane).to_contain_text("2,970 claims of 3,000 and 476 sources of 500 are left out")
    assert took < Pace(page).limit
    assert pane.locator(".node").count() < 60
    pane.get_by_label("Section", exact=True).select_option(index=3)
    expect(pane).to_contain_text("70 claims of 100")


def switched(page: Page) -> float:
    """Milliseconds the page works from choosing the evidence graph until it is painted; what others do on the machine
    at the same time is not counted."""
    page.get_by_role("radio", name="Coverage").click()
    expect(page.get_by_role("heading", name="Coverage", exact=True)).to_be_visible()
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = worked(browser)
    page.evaluate("""async () => {
      document.querySelector('[data-name="evidence"]').click();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      if (!document.querySelector('.evidence')) throw new Error('not drawn');
    }""")
    return 1000 * (worked(browser) - before)


def worked(browser: CDPSession) -> float:
    metrics = browser.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")
