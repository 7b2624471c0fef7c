"""The HTML file of a report, opened from the disk: it needs nobody, and it prints with every passage open."""

import base64
import hashlib
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from openassay.export import Report
from openassay.export.html import render_page as written
from tests.browser.test_report_html import HOSTILE, whole
from tests.readers import read_pdf


def opened(context: BrowserContext, report: Report, folder: Path) -> tuple[Page, list[str], list[str]]:
    """From the disk; with what it asks for, and what the browser complains of."""
    file = folder / "report.html"
    file.write_text(written(report), encoding="utf-8")
    page, asked, told = context.new_page(), list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.goto(file.as_uri())
    return page, [url for url in asked if url != file.as_uri()], told


@pytest.mark.slow
def test_a_file_needs_nobody_and_a_statement_opens_in_place(context: BrowserContext, tmp_path: Path) -> None:
    page, asked, told = opened(context, whole("Tides are high."), tmp_path)
    passage = page.locator("details blockquote").first
    expect(passage).to_be_hidden()
    page.locator("details summary").first.click()
    expect(passage).to_be_visible()
    assert (asked, told) == ([], [])
    assert page.title() == "Tides are high."
    styled = page.evaluate("getComputedStyle(document.querySelector('.openassay')).maxWidth")
    assert styled != "none", "its own style is allowed"


@pytest.mark.slow
def test_a_citation_leads_to_its_reference_and_back(context: BrowserContext, tmp_path: Path) -> None:
    page, asked, _ = opened(context, whole(), tmp_path)
    page.locator("p.answer a").first.click()
    assert page.evaluate("location.hash") == "#ref1"
    page.locator("details summary").first.click()
    page.locator("details cite a").first.click()
    assert page.evaluate("location.hash") == "#ref1"
    expect(page.locator("li:target")).to_contain_text("S1")
    page.locator("li:target a[href='#st1']").click()
    expect(page.locator("details:target")).to_be_visible()
    assert asked == []


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_on_paper_every_passage_is_open(context: BrowserContext, tmp_path: Path) -> None:
    report = whole("Tides are high.")
    quote = "the passage behind it"
    claims = tuple(
        claim.model_copy(update={"spans": tuple(span.model_copy(update={"quote": quote}) for span in claim.spans)})
        for claim in report.claims
    )
    page, _, _ = opened(context, report.model_copy(update={"claims": claims}), tmp_path)
    expect(page.get_by_text(quote).first).to_be_hidden()
    printed = read_pdf(page.pdf())
    statements = page.locator("details").count()
    assert printed.text.count(quote) == statements == 4
    assert "click a statement" not in printed.text


@pytest.mark.slow
def test_nothing_in_a_file_can_act(context: BrowserContext, tmp_path: Path) -> None:
    page, asked, told = opened(context, whole(HOSTILE), tmp_path)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert (asked, told) == ([], [])
    assert page.locator("script, img, iframe, svg, form, a:not([href^='#'])").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_everybody(context: BrowserContext, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    page, _, _ = opened(context, whole("Tides are high."), tmp_path)
    page.emulate_media(color_scheme=scheme)
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert not found.response["violations"], [
        (one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]
    ]


def test_its_policy_allows_its_style_alone() -> None:
    page = written(whole())
    assert page.count("<style>") == 1
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page
