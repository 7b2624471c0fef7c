"""Which part of a page is its content, what the page says about itself, and what it wants when it shows nothing."""

import json
from datetime import date
from pathlib import Path

import pytest

from benchmarks.evaluation.web_pages import EXTRACTION_MEASURES
from openassay.fetch.formats import PageNeed
from openassay.fetch.html import extract

LINES = [
    "The harbour board counted 412 ferries in the first week of May, a third more than in the year before.",
    "Its chair said that the new berth explains most of the rise, because larger ships no longer wait outside.",
    "Critics doubt the figure. They point to a strike that had kept most ferries in port twelve months earlier.",
    "A second count is planned for the autumn, when the summer timetable has ended and the berth is fully open.",
]
BODY = "".join(f"<p>{line}</p>" for line in LINES)


def _page(content: str, head: str = "<title>Ferries return | Harbour Post</title>") -> str:
    return f"<!doctype html><html lang='en-GB'><head>{head}</head><body>{content}</body></html>"


def _article(inside: str = "", after: str = "") -> str:
    return _page(f"<article><h1>Ferries return</h1>{BODY}{inside}</article>{after}")


# Quality ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-08")
def test_articles_are_found_on_real_pages(eval_data: Path) -> None:
    measure = EXTRACTION_MEASURES["extraction"]
    assert measure.list_failures(measure.run(eval_data, True), True) == []


# What stands around ----------------------------------------------------------------------------------


def test_the_title_is_a_field_and_not_the_first_line() -> None:
    found = extract(_article(), "https://harbourpost.example/1")
    assert found.title == "Ferries return"
    assert found.text.split("\n") == LINES


@pytest.mark.parametrize(
    "strewn",
    [
        "<p>Related: <a href='/2'>Five bridges to see</a></p>",
        "<p><strong>READ MORE: <a href='/2'>Five bridges to see</a></strong></p>",
        "<ul><li><a href='/2'>Five bridges to see</a></li><li><a href='/3'>Seven boats to buy this year</a></li></ul>",
        "<p><a href='/2'>Five bridges to see</a><br><a href='/3'>Seven boats to buy this year</a> [VIDEO]</p>",
        "<div><a href='/2'><img src='b.png'><h3>Five bridges to see</h3></a></div>",
    ],
)
def test_pointers_to_other_pages_are_left_out(strewn: str) -> None:
    text = extract(_article(strewn + f"<p>{LINES[0].replace('May', 'June')}</p>"), "").text
    assert "bridges" not in text
    assert "first week of June" in text


@pytest.mark.parametrize(
    "closing",
    [
        "Subscribe to our newsletter and never miss a ferry.",
        "Follow the Harbour Post on Twitter and Facebook.",
        "Copyright 2024 Harbour Post. All rights reserved.",
        "Tags: ferries, harbour",
    ],
)
def test_closing_invitations_are_left_out(closing: str) -> None:
    assert extract(_article(f"<p>{closing}</p>"), "").text.split("\n") == LINES


def test_prose_that_speaks_of_such_things_stays() -> None:
    said = "Related to the strike is a quarrel about pay, which the board says it settled in April, against its will."
    news = "The board started a newsletter in 1998, and it still sends it to every captain who asks for one in writing."
    text = extract(_page(f"<article><p>{said}</p><p>{news}</p>{BODY}</article>"), "").text
    assert said in text
    assert news in text


def test_an_embedded_post_is_a_quotation() -> None:
    post = (
        "<div class='embed social-embed'><blockquote class='twitter-tweet'><p>We have never seen so many boats in May"
        "</p>— Port of Norland (@port) <a href='https://t.example/1'>May 8, 2024</a></blockquote></div>"
    )
    assert "never seen so many boats" in extract(_article(f"{post}<p>{LINES[1]} Again.</p>"), "").text


def test_linked_headings_of_paragraphs_stay() -> None:
    inside = f"<h3><a href='/berth'>The new berth at last</a></h3><p>{LINES[1]} So it goes.</p>"
    assert "The new berth at last" in extract(_article(inside), "").text


def test_unclosed_anchors_do_not_swallow_the_page() -> None:
    assert LINES[3] in extract(_page(f"<div><a name='top'><h2>Ferries</h2>{BODY}</div>"), "").text


# Second opinions -------------------------------------------------------------------------------------


def test_an_article_in_several_containers_is_read_whole() -> None:
    parts = [f"<div class='grid'><div class='body'>{BODY.replace('May', month)}</div></div>" for month in MONTHS]
    text = extract(_page(f"<div class='chunks'>{''.join(parts)}</div>"), "").text
    assert all(f"first week of {month}" in text for month in MONTHS)


MONTHS = ["January", "March", "July", "October"]


def test_a_notice_is_not_taken_for_the_article() -> None:
    notice = "<div class='main-content'><p>This copy is for your personal use only, and not for sale or show.</p></div>"
    body = "".join(BODY.replace("May", month) for month in MONTHS)
    assert LINES[0].replace("May", "July") in extract(_page(f"{notice}<div><div>{body}</div></div>"), "").text


@pytest.mark.slow
def test_structured_data_stand_in_for_an_article_shown_by_script() -> None:
    data = json.dumps({"@type": "NewsArticle", "articleBody": " ".join(LINES * 3)})
    page = _page(
        "<div id=app></div><script src='a.js'></script>", f"<script type='application/ld+json'>{data}</script>"
    )
    found = extract(page, "")
    assert LINES[2] in found.text
    assert "structured data" in found.notes[0]


# What the page says about itself ---------------------------------------------------------------------


def test_metadata_of_the_header_and_of_structured_data() -> None:
    data = json.dumps(
        {"@graph": [{"@type": "WebSite"}, {"@type": ["NewsArticle"], "datePublished": "2024-05-08T06:00:00+02:00"}]}
    )
    head = (
        "<title>Ferries return - Harbour Post</title><meta property='og:site_name' content='Harbour Post'>"
        "<meta property='og:title' content='Ferries return - Harbour Post'><meta name=author content='Ada Example'>"
        f"<link rel=canonical href='/ferries'><script type='application/ld+json'>{data}</script>"
    )
    found = extract(_page(f"<article>{BODY}</article>", head), "https://www.harbourpost.example/ferries?utm=1")
    assert (found.title, found.author, found.published) == ("Ferries return", "Ada Example", date(2024, 5, 8))
    assert found.language == "en"


def test_a_title_that_only_has_a_dash_is_kept() -> None:
    head = "<title>Ferries - the return</title>"
    assert extract(_page(BODY, head), "https://harbourpost.example/").title == "Ferries - the return"


# What it wants ---------------------------------------------------------------------------------------

NOT_FREE = '<script type=\'application/ld+json\'>{"@type": "NewsArticle", "isAccessibleForFree": "False"}</script>'


@pytest.mark.parametrize(
    ("page", "want"),
    [
        (_page("<div id=root></div><script src='/main.js'></script>"), "javascript"),
        (_page("<noscript>You need to enable JavaScript to run this app.</noscript><script></script>"), "javascript"),
        (_page(f"<p>Loading</p><script>{'x=1;' * 20_000}</script>"), "javascript"),
        (_page(f"<article><p>{LINES[0]}</p></article>", NOT_FREE), "access"),
        (_page(f"<article><p>{LINES[0]}</p></article><div>Subscribe to continue reading</div>"), "access"),
        (_page("<form>E-mail <input name=m> Password <input type=password></form>"), "access"),
        (_page("<p>Checking your browser before you go on.</p>", "<title>Just a moment...</title>"), "access"),
        (_page("<p>We and our partners use cookies. Choose what you allow.</p>"), "access"),
        (_page(f"<article>{BODY * 5}</article>", NOT_FREE), None),
        (_page(f"<div id=root><article>{BODY}</article></div><script src='/main.js'></script>"), None),
        (_page(f"<article>{BODY}</article><form><input type=password></form>"), None),
        (_page("<p>A short note, and that is all there is to it.</p>"), None),
    ],
)
def test_what_a_page_without_content_wants(page: str, want: PageNeed | None) -> None:
    assert extract(page, "https://harbourpost.example/").wants == want
