"""The run log: every step, search, page, model call and failure, as a person reads it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import Opened, shot
from tests.browser.ui.pace import Pace
from tests.browser.ui.site import Site

STARTS = "(button) => button.textContent.includes('%s')"
HOSTILE = "<img src=x onerror=alert(1)> \u202eعربي " + "w" * 400


def opened(look: Opened, site: Site, thread: str, **how: Any) -> Page:
    page = look(site, f"/t/{thread}?panel=log", **how)
    expect(page.get_by_role("heading", name="Run log")).to_be_visible()
    expect(page.locator(".log-event").first).to_be_visible()
    return page


def lines(page: Page) -> list[str]:
    return page.locator(".log-event .log-what").all_inner_texts()


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_the_log_tells_each_step_with_what_was_done_in_it(look: Opened, site: Site, finished: str) -> None:
    page = opened(look, site, finished)
    step = page.locator(".log-event[data-place=step]", has_text=re.compile("^.*Search", re.DOTALL)).first
    expect(step).to_contain_text(re.compile(r"\d+ ms|\d s"))
    under = step.locator("xpath=following-sibling::*[1]")
    expect(under).to_have_attribute("data-place", "under")
    expect(under).to_contain_text("hit")
    expect(page.get_by_text("Where the time went")).to_be_visible()
    expect(page.get_by_role("list", name="Seconds for each step")).to_contain_text("Check every claim")

    page.get_by_role("group", name="Show only").get_by_role("button", name=re.compile("^Searches")).click()
    assert set(page.locator(".log-event .log-kind").all_inner_texts()) == {"search"}
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("Search the log").fill("publish")
    assert lines(page)[0].startswith("Publish")
    page.get_by_label("Search the log").fill("nothing is like this")
    expect(page.get_by_text("No lines match.")).to_be_visible()
    page.get_by_role("button", name="Show all").click()

    first = page.get_by_role("region", name="Events").get_by_role("button").first
    first.focus()
    page.keyboard.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="Copy", exact=True).first.click()
    held = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (held["kind"], held["seq"]) == ("run", 1)


@pytest.mark.slow
@pytest.mark.requirement("W-13")
def test_ids_step_times_outside_latency_and_cache_hits_are_shown(look: Opened, site: Site, finished: str) -> None:
    told = site.call("GET", f"/api/threads/{finished}/timings")
    page = opened(look, site, finished, width=360, dark=True)
    for name in ("thread", "run", "request"):
        expect(page.locator(".log-names").get_by_text(told[name], exact=True)).to_be_visible()
    bars = page.get_by_role("list", name="Seconds for each step").get_by_role("listitem")
    assert bars.count() == len(told["stages"])
    expect(page.get_by_text("Answered by the cache")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Copy the request id").click()
    assert page.evaluate("navigator.clipboard.readText()") == told["request"]

    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    kept = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    assert [event["seq"] for event in kept] == list(range(1, told["events"] + 1))


def made(run: str, kind: str, stage: str = "", parent: int | None = 1, /, **data: Any) -> dict[str, Any]:
    return {"run": run, "time": "2026-03-01T12:00:00Z", "kind": kind, "stage": stage, "parent": parent, "data": data}


def busy_run(run: str) -> list[dict[str, Any]]:
    """Whatever may happen, and thousands of it, with texts of the worst sort."""
    found = [made(run, "run", "", None, status="running"), made(run, "enter", "harvest")]
    for n in range(1500):
        page = {"url": "https://example.org", "title": f"Page {n} {HOSTILE}", "host": "example.org", "words": 900}
        found.append(made(run, "read", "harvest", 2, **page, cached=n % 2 == 0, seconds=0.4))
        found.append(made(run, "skip", "harvest", 2, path=f"https://example.net/{n}", reason="robots.txt says no"))
        found.append(made(run, "token", "write", 2, text="word ", draft=1))
    spent = {"model": "openai:gpt-5", "usd": 0.0123, "prompt_tokens": 1200, "completion_tokens": 340, "seconds": 1.9}
    lost = {"model": "openai:gpt-5", "usd": 0.02, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0}
    found += [
        made(run, "spend", "write", 2, step="write", task="section", confirmed=True, **spent),
        *(made(run, "spend", "write", 2, step="write", task="section", confirmed=False, **lost) for _ in range(3)),
        made(
            run, "error", "search", 2, message="The provider is busy", help="It is asked again.", category="rate_limit"
        ),
        made(run, "interrupt", "gate", 2, id="1", kind="clarify", question="Which year?", options=["2024", "2025"]),
        made(run, "notice", "", 1, text=HOSTILE),
    ]
    return [{"seq": seq, **event} for seq, event in enumerate(found, 1)]


@pytest.mark.slow
@pytest.mark.requirement("W-11")
def test_thousands_of_events_are_followed_filtered_and_read(look: Opened, site: Site, finished: str) -> None:
    run = site.call("GET", f"/api/threads/{finished}/runs")["runs"][0]["id"]
    told = "".join(
        f"id: {run}.{event['seq']}\nevent: {event['kind']}\ndata: {json.dumps(event)}\n\n" for event in busy_run(run)
    )
    page = look(site)
    page.route("**/timings?*", with_party)
    page.route("**/api/stream/*", lambda route: route.fulfill(body=told, content_type="text/event-stream"), times=1)
    page.goto(f"{site.url}/t/{finished}?panel=log")
    expect(page.get_by_text(re.compile(r"^4,50\d lines$"))).to_be_visible()
    box = page.get_by_role("region", name="Events")
    end = box.get_by_text("alert(1)").last
    expect(page.get_by_role("button", name="Go to newest")).to_have_count(0)
    expect(end).to_be_in_viewport()  # the newest is followed

    box.hover()
    page.mouse.wheel(0, -3000)
    expect(end).not_to_be_in_viewport()
    page.get_by_role("button", name="Go to newest").click()
    expect(end).to_be_in_viewport()
    assert page.locator(".log-event").count() < 400

    chips = page.get_by_role("group", name="Show only")
    pace = Pace(page)
    limit = pace.limit
    for name, count in (("Pages read", "1,500"), ("From cache", "750"), ("Model calls", "4"), ("Errors", "1")):
        chip = chips.get_by_role("button", name=f"{name} {count}", exact=True)
        expect(chip).to_be_visible()
        press = f"() => [...document.querySelectorAll('.log-kinds button')].find({STARTS % name}).click()"
        took = min(pace.measure(press) for _ in range(3))  # on, off, on: a busy machine slows one of them
        assert took < limit, (name, took, limit)
        chip.click()
    chips.get_by_role("button", name=re.compile("^Errors")).click()
    expect(box.locator(".log-event")).to_have_count(1)
    expect(box).to_contain_text("The provider is busy")
    expect(box).to_contain_text("It is asked again. · rate limit")
    chips.get_by_role("button", name=re.compile("^Model")).click()
    expect(box).to_contain_text("$0.01 · 1,200 + 340 tokens")
    what_is_booked_unconfirmed_is_told(page)


def with_party(route: Route) -> None:
    """One model was asked, as the busy run tells of it."""
    party = {"kind": "model", "party": "openai:gpt-5", "calls": 1, "failures": 0, "seconds": 1.9, "median": 1.9,
             "longest": 1.9, "usd": 0.0723}  # fmt: skip
    route.fulfill(json={**route.fetch().json(), "parties": [party]})


def what_is_booked_unconfirmed_is_told(page: Page) -> None:
    """The books have the calls that were cut off, at the most they could have cost."""
    expect(page.locator(".log-figures > summary")).to_contain_text("$0.07 · no errors · 3 calls unconfirmed")
    page.get_by_text("Where the time went").click()
    asked = page.get_by_role("region", name="External services")
    head, row = asked.get_by_role("row").all()
    titles, cells = head.get_by_role("columnheader").all_inner_texts(), row.locator("th, td").all_inner_texts()
    told = dict(zip(titles, cells, strict=True))
    assert (told["Calls"], told["Failed"], told["Unconfirmed"]) == ("1", "0", "3")
    told_below = "3 calls have no confirmed price, like one that is cut off when a run is stopped."
    expect(page.get_by_text(told_below)).to_contain_text("The most they could have cost is counted: $0.06.")
    assert violations(page) == []
    shot(page, "log-unconfirmed-light-1440")
