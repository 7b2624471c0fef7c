"""The sources pane: cards, filters, pins, vetoes, and the way from a citation to its card."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.ui.accessibility import RULES
from tests.browser.ui.conftest import STORE, Opened, OpenSite, shot
from tests.browser.ui.pace import Pace
from tests.browser.ui.site import Site
from tests.browser.ui.test_answer import FERRIED, FERRY, asked_twice

pytestmark = pytest.mark.requirement("W-11")
KINDS = ("web", "academic", "news", "code")


def card(page: Page, source: str) -> Locator:
    return page.locator(f"article[data-source={source}]")


def point(page: Page, source: str, claim: str = "") -> None:
    page.evaluate(f"async ([s, c]) => (await {STORE}).showSource(s, c)", [source, claim])


def shown(page: Page) -> list[str]:
    """The numbers of the cards, from above."""
    return [str(one.get_attribute("data-source")) for one in page.locator("article.source").all()]


def made(n: int) -> dict[str, Any]:
    """A source as the server tells of it: one in ten undated, one in fifty a copy of the one before."""
    copy = n % 50 == 1 and n > 1
    quotes = [
        f"Measurement {n}.{at} found a value of {n * 7 + at} units. " + "x" * 120 * (n % 9 == 0) for at in range(6)
    ]
    return {
        "id": f"S{n}", "title": f"Paper {n} \u0645\u0642\u0627\u0644" if n % 7 else f"<img src=x onerror=alert({n})>",
        "url": f"https://h{n % 5}.example.org/{n}" if n % 11 else "javascript:alert(1)",
        "host": f"h{n % 5}.example.org",
        "kind": KINDS[n % 4], "author": None, "published": None if n % 10 == 0 else f"20{n % 20 + 5:02}-06-01",
        "document": f"{n:064x}", "group": f"G{n - 1 if copy else n}", "whyUsed": "supports 6 statements",
        "primary": n % 3 == 0, "credibility": n % 100 / 100, "credibilityReasons": ["is dated"],
        "sameAs": [f"S{n - 1}"] if copy else [], "pinned": False,
        "excerpts": [
            {"claim": f"C{n * 6 + at}", "start": at, "end": at + 9, "quote": quote, "against": at == 1}
            for at, quote in enumerate(quotes)
        ],
    }  # fmt: skip


@pytest.fixture
def many(look: Opened, site: Site, finished: str) -> Page:
    """The same page with five hundred sources."""
    page = look(site)
    body = json.dumps({"sources": [made(n) for n in range(1, 501)], "pinned": [], "vetoed": []})
    page.route("**/api/threads/*/sources*", lambda route: route.fulfill(body=body, content_type="application/json"))
    page.goto(f"{site.url}/t/{finished}?panel=sources")
    expect(page.get_by_text("500 of 500 shown")).to_be_visible()
    return page


# -- cards ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_a_card_tells_what_a_source_is_and_opens_what_rests_on_it(look: Opened, site: Site, finished: str) -> None:
    page = look(site, f"/t/{finished}?panel=sources")
    told = site.call("GET", f"/api/threads/{finished}/sources")["sources"][0]
    first = card(page, "S1")
    for text in (
        told["title"],
        "Apr 15, 2013",
        "document",
        told["author"],
        told["whyUsed"],
        told["excerpts"][0]["quote"],
    ):
        expect(first).to_contain_text(text)
    expect(first.get_by_text("names the publication")).to_be_hidden()
    first.get_by_text("Credibility").click()
    expect(first.get_by_text("names the publication")).to_be_visible()

    first.get_by_role("button", name="Open in context").first.click()
    opened = page.evaluate(f"async () => (await {STORE}).passage.value")
    assert {**opened, **{k: told["excerpts"][0][k] for k in ("claim", "start", "end", "quote")}} == opened
    assert (opened["document"], opened["source"]) == (told["document"], "S1")
    page.keyboard.press("Escape")
    first.get_by_role("button", name="Statement").first.click()
    section, sentence = map(int, page.evaluate(f"async () => (await {STORE}).focus.value.statement").split("-"))
    report = site.call("GET", f"/api/threads/{finished}/report")
    assert told["excerpts"][0]["claim"] in report["sections"][section]["sentences"][sentence]["claims"]


@pytest.mark.slow
@pytest.mark.requirement("X-05")
def test_sources_that_count_once_stand_together(look: Opened, site: Site, finished: str) -> None:
    page = look(site, f"/t/{finished}?panel=sources&source=S2")
    expect(card(page, "S2")).to_have_class(re.compile("aimed"))  # as the address says
    cluster = page.get_by_role("group", name="2 sources counted as one")
    expect(cluster.locator("article")).to_have_count(2)
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("Group sources that count as one").uncheck()
    expect(cluster).to_have_count(0)
    expect(card(page, "S8")).to_contain_text("Counted as one with S9")
    card(page, "S8").get_by_role("button", name="S9", exact=True).click()
    expect(card(page, "S9")).to_be_focused()
    axe_is_content(page)
    shot(page, "sources-light-1440")


def axe_is_content(page: Page) -> None:
    found = Axe().run(page, options=RULES, context=".sources").response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


# -- filters ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_filter_narrows_the_cards_and_says_how_many_are_left(many: Page) -> None:
    page = many
    page.get_by_text("Filters", exact=True).click()
    with narrowed(page, 100):
        page.get_by_label("Domain").select_option(label="h3.example.org (100)")
    with narrowed(page, 125):
        page.get_by_label("Type").select_option(label="news (125)")
    with narrowed(page, 450):
        page.get_by_label("Include undated").uncheck()
    with narrowed(page, 75):
        page.get_by_label("From", exact=True).fill("2010-01-01")
        page.get_by_label("To", exact=True).fill("2012-12-31")
        page.get_by_label("Include undated").uncheck()
    with narrowed(page, 1):
        page.get_by_label("Search sources").fill("measurement 123.4")
        expect(page.locator("article mark", has_text="123.4")).to_be_visible()  # the fifth excerpt of its card
    with narrowed(page, 0):
        page.get_by_label("Pinned only").check()
        expect(page.get_by_text("No source matches.")).to_be_visible()
    page.get_by_label("Sort by").select_option("credibility")
    assert shown(page)[0] == "S99"
    page.get_by_label("Sort by").select_option("date")
    assert shown(page)[0] == "S19"
    page.get_by_label("Sort by").select_option("number")
    expect(card(page, "S7").get_by_role("heading")).to_have_text("<img src=x onerror=alert(7)>")
    assert page.locator(".sources img").count() == 0
    assert card(page, "S11").get_by_role("link").count() == 0  # its address is a script


@contextmanager
def narrowed(page: Page, left: int) -> Iterator[None]:
    yield
    expect(page.get_by_text(f"{left} of 500 shown")).to_be_visible()
    page.get_by_role("button", name="Clear filters").first.click()
    expect(page.get_by_text("500 of 500 shown")).to_be_visible()


@pytest.mark.slow
def test_five_hundred_sources_answer_at_once(many: Page) -> None:
    """To the frame that shows it; the best of three, since other work runs on the same machine."""
    took = many.evaluate(MEASURED)
    assert max(took.values()) < Pace(many).limit, took
    point(many, "S497", "C2987")
    expect(card(many, "S497")).to_be_focused()
    expect(card(many, "S497")).to_be_in_viewport()
    expect(card(many, "S497").locator("li.on")).to_contain_text("Measurement 497.5")
    many.get_by_role("button", name=" earlier").click()
    expect(card(many, "S480")).to_have_count(1)


MEASURED = (
    """async () => {
      const store = await STORE;
      const field = document.querySelector("[type=search]");
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      const best = async (before, act) => {
        const times = [];
        for (let n = 0; n < 3; n++) {
          before(n);
          await frame();
          const begun = performance.now();
          act(n);
          await frame();
          times.push(performance.now() - begun);
        }
        return Math.round(Math.min(...times));
      };
      const type = (text) => { field.value = text; field.dispatchEvent(new Event("input", {bubbles: true})); };
      return {
        narrow: await best(() => type(""), (n) => type("value " + n)),
        widen: await best(() => type("zzz"), () => type("")),
        near: await best(() => store.showSource("S1"), (n) => store.showSource("S" + (20 + n))),
        far: await best(() => store.showSource("S1"), (n) => store.showSource("S" + (490 + n), "C" + (490 + n) * 6)),
      };
    }"""
).replace("STORE", STORE)


# -- the way from a citation ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_citation_leads_to_its_card_also_past_a_filter(look: Opened, site: Site, finished: str) -> None:
    page = look(site, f"/t/{finished}?panel=log")
    report = site.call("GET", f"/api/threads/{finished}/report")
    cards = {one["document"]: one["id"] for one in report["sources"]}
    claim = next(one for one in report["claims"] if cards[one["spans"][0]["document"]] != "S4")
    source = cards[claim["spans"][0]["document"]]
    page.locator("main .cite[data-source=S4]").first.click()
    expect(card(page, "S4")).to_be_focused()
    expect(card(page, "S4")).to_be_in_viewport()
    expect(card(page, "S4").locator("li.on")).to_be_visible()
    point(page, source, claim["id"])
    expect(card(page, source)).to_be_focused()
    expect(card(page, source)).to_be_in_viewport()
    expect(card(page, source).locator("li.on")).to_contain_text(claim["spans"][0]["quote"][:60])

    page.get_by_label("Search sources").fill("no such words")
    expect(card(page, source)).to_have_count(0)
    point(page, source, claim["id"])
    expect(page.get_by_text(f"The filters were cleared to show {source}.")).to_be_visible()
    expect(card(page, source)).to_be_focused()
    page.get_by_label("Search sources").focus()
    page.evaluate(f"async () => (await {STORE}).showStatement('1-0', 'C2')")
    expect(page.get_by_label("Search sources")).to_be_focused()  # looking at a statement moves no keyboard


# -- other times ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_moment_of_the_past_shows_what_had_been_read_by_then(look: Opened, site: Site, finished: str) -> None:
    moments = site.call("GET", f"/api/threads/{finished}/history")["moments"]
    then = next(one for one in moments if "verify" in one["next"])
    values = site.call("GET", f"/api/threads/{finished}/state?checkpoint={then['checkpoint']}")["values"]
    page = look(site, f"/t/{finished}?panel=sources&at={then['checkpoint']}")
    expect(page.locator(".sources").get_by_text("An earlier moment")).to_contain_text(
        f"{len(values['evidence'])} documents had been read"
    )
    expect(page.locator("article.source")).to_have_count(len(values["evidence"]))
    expect(page.get_by_role("button", name="Veto")).to_have_count(0)
    page.locator(".sources").get_by_role("button", name="Back to now").click()
    expect(card(page, "S1").get_by_text("Why used")).to_be_visible()


@pytest.mark.slow
def test_without_a_report_it_shows_what_was_read(look: Opened, site: Site, finished: str) -> None:
    page = look(site)
    page.route(
        "**/api/threads/*/report*", lambda route: route.fulfill(status=404, body="{}", content_type="application/json")
    )
    page.route(
        "**/api/threads/*/sources*", lambda route: route.fulfill(json={"sources": [], "pinned": [], "vetoed": []})
    )
    page.goto(f"{site.url}/t/{finished}?panel=sources")
    expect(page.get_by_text("There is no report. These documents were read for it.")).to_be_visible()
    expect(card(page, "S1")).to_contain_text("Planck's first results")


@pytest.fixture(scope="module")
def twice(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    return asked_twice(site, tmp_path_factory.mktemp("twice"), interactive=False)


@pytest.mark.slow
def test_an_earlier_answer_is_looked_at_and_not_changed(look: Opened, site: Site, twice: str) -> None:
    earlier, _ = site.call("GET", f"/api/threads/{twice}/runs")["runs"]
    page = look(site, f"/t/{twice}?panel=sources&run={earlier['id']}")
    expect(card(page, "S1")).to_contain_text("Ferry notes")
    expect(page.get_by_role("button", name=re.compile("^(Veto|Pin)"))).to_have_count(0)
    expect(page.locator(".sources")).to_contain_text("To pin or veto one, go to the latest answer.")
    shot(page, "sources-earlier-light-1440")
    page.get_by_role("tab", name="Artifacts").click()
    expect(page.get_by_text("The artifacts are those of the latest answer.")).to_be_visible()
    page.get_by_role("tab", name="Sources").click()
    page.locator(".sources").get_by_role("button", name="Go to the latest").click()
    expect(card(page, "S1")).to_contain_text("Tower notes")
    expect(page.get_by_role("button", name="Veto S1")).to_be_visible()


@pytest.mark.slow
def test_while_documents_are_read_it_says_so_and_counts_what_was_found(
    look: Opened, own_site: OpenSite, tmp_path: Path
) -> None:
    own = own_site(breakpoints={"custom": [{"name": "found", "at": "claims", "question": "Are these the claims?"}]})
    file = tmp_path / "ferry.md"
    file.write_text(f"# Ferry\n\nMarch 2024. {FERRIED}\n")
    thread = own.ask(FERRY, documents=own.upload(file), depth="quick", modeOverride="auto")
    assert own.settled(thread) == "waiting"
    page = look(own, f"/t/{thread}?panel=sources")
    expect(
        page.locator(".sources").get_by_text(re.compile(r"^Documents are being read: \d+ findings? so far$"))
    ).to_be_attached()
    expect(page.locator(".sources")).not_to_contain_text("0 sources")


# -- changes ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pin_stands_first_and_survives_a_reload(look: Opened, site: Site, finished: str) -> None:
    page = look(site, f"/t/{finished}?panel=sources", width=360, dark=True)
    page.get_by_role("button", name="Pin S9").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Unpin S9")).to_be_focused()
    expect(page.get_by_text("S9 is pinned and listed first.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Unpin S9")).to_be_visible()
    assert shown(page)[0] == "S9"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    axe_is_content(page)
    shot(page, "sources-dark-360")

    page.route("**/pin", lambda route: route.fulfill(status=409, json={"detail": "It cannot be done."}))
    page.get_by_role("button", name="Unpin S9").click()
    expect(page.get_by_text("It cannot be done.")).to_be_visible()
    expect(page.get_by_role("button", name="Unpin S9")).to_be_visible()  # as it was
    page.unroute("**/pin")
    page.get_by_role("button", name="Unpin S9").click()
    expect(page.get_by_role("button", name="Pin S9", exact=True)).to_be_visible()


@pytest.mark.slow
@pytest.mark.requirement("X-09")
def test_a_veto_first_shows_what_would_change_and_then_changes_only_that(
    look: Opened, site: Site, finished: str
) -> None:
    page = look(site, f"/t/{finished}?panel=sources")
    before = site.call("GET", f"/api/threads/{finished}/report")
    losses = site.call("GET", f"/api/threads/{finished}/sources/S1/consequences")
    lost = [one["text"] for one in before["claims"] if one["id"] in losses["lost"]]
    title = card(page, "S1").get_by_role("heading").inner_text()

    page.get_by_role("button", name="Veto S1", exact=True).click()
    dialog = page.get_by_role("dialog", name="Veto S1?")
    expect(dialog).to_contain_text(f"{len(lost)} statements would be removed, {losses['untouched']} would stay.")
    expect(dialog.get_by_text(lost[0]).first).to_be_visible()
    shot(page, "sources-veto-light-1440")
    dialog.get_by_role("button", name="Keep it").click()
    assert site.call("GET", f"/api/threads/{finished}/report") == before

    page.get_by_role("button", name="Veto S1", exact=True).click()
    dialog.get_by_role("button", name="Remove S1").click()
    expect(page.get_by_role("region", name="Vetoed")).to_contain_text(title, timeout=30_000)
    expect(page.locator("article.source", has_text=title)).to_have_count(0, timeout=30_000)
    after = {one["text"] for one in site.call("GET", f"/api/threads/{finished}/report")["claims"]}
    assert not after & set(lost)
    # What was not borne out is told in words that are known, and these are fewer now.
    held = [one for one in before["claims"] if one["verdict"] == "supported"]
    stay = [one["text"] for one in held if one["id"] not in losses["lost"]]
    assert set(stay) <= after
