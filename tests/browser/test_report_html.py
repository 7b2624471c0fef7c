"""A report as a notebook shows it: statements open their passages, and nothing in a source can act."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from openassay.export import Report
from openassay.models.evidence import Mark, Verdict
from openassay.models.report import (
    Coverage,
    Critique,
    Dispute,
    DisputeSide,
    KeyFigure,
    OpenSubQuestion,
    Provenance,
    ReportClaim,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
    TableCell,
)

HOSTILE = (
    "<script>window.hit=1</script><img src=x onerror='window.hit=2'><img src='https://evil.example/pixel.png'>"
    '</blockquote></details></style><svg onload=window.hit=3><a href="javascript:window.hit=4">click</a>'
    "<iframe srcdoc='<script>parent.hit=5</script>'></iframe>$title${style}"
)


def made(
    title: str = "Tides", statement: str = "The range is 16.3 metres.", quote: str = "a range of 16.3 metres"
) -> Report:
    span = ReportSpan(source="S1", document="0" * 64, start=10, end=10 + len(quote), quote=quote)
    fact = Sentence(text=statement, kind="fact", claims=("C1",), citations=("S1",), mark=Mark.SINGLE)
    frame = Sentence(text="No source gave a figure for 2024.", kind="frame")
    return Report(
        question=title, title=title, status=ReportStatus.COMPLETE, notices=(title,),
        coverage=Coverage(checked=1, total=1),
        sections=(Section(title=title, sentences=(fact, frame)),),
        claims=(ReportClaim(id="C1", text=statement, verdict=Verdict.SUPPORTED, confidence=0.9, spans=(span,)),),
        sources=(SourceCard(id="S1", title=title, url="javascript:window.hit=6", document="0" * 64, group=title,
                            why_used=title, published=title),),
        provenance=Provenance(question=title),
    )  # fmt: skip


def shown(context: BrowserContext, html: str) -> tuple[Page, list[str]]:
    """The page, and every address it asks for."""
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(f'<!doctype html><meta charset="utf-8"><body>{html}</body>', wait_until="load")
    return page, asked


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_a_statement_opens_the_passage_behind_it(context: BrowserContext) -> None:
    page, _ = shown(context, made().html)
    passage = page.get_by_text("a range of 16.3 metres")
    expect(passage).to_be_hidden()
    page.get_by_text("The range is 16.3 metres.").click()
    expect(passage).to_be_visible()
    expect(page.locator("blockquote cite")).to_contain_text("S1 Tides, characters 10-32")
    page.get_by_text("The range is 16.3 metres.").click()
    expect(passage).to_be_hidden()


@pytest.mark.slow
def test_it_can_be_opened_from_the_keyboard(context: BrowserContext) -> None:
    page, _ = shown(context, made().html)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("blockquote")).to_be_visible()


def test_sources_cannot_act(context: BrowserContext) -> None:
    report = made(HOSTILE, HOSTILE, HOSTILE)
    page, asked = shown(context, report._repr_html_())
    page.locator("summary").first.click()
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert asked == []
    assert (
        page.locator(
            ".openassay script, .openassay img, .openassay iframe, .openassay svg, .openassay a, .openassay form"
        ).count()
        == 0
    )
    expect(page.locator("blockquote")).to_have_text(f"{HOSTILE}S1 {HOSTILE}, characters 10-{10 + len(HOSTILE)}")


def test_a_frame_sentence_has_nothing_to_open(context: BrowserContext) -> None:
    page, _ = shown(context, made().html)
    assert page.locator("details").count() == 1
    expect(page.get_by_text("No source gave a figure for 2024.")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1000])
def test_it_fits_the_page(context: BrowserContext, width: int, tmp_path: Path) -> None:
    page, _ = shown(context, made(statement="A long statement about tides. " * 20, quote="word" * 200).html)
    page.set_viewport_size({"width": width, "height": 800})
    page.locator("summary").first.click()
    page.screenshot(path=tmp_path / "report.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_of_the_web_can_be_opened_from_its_source(context: BrowserContext) -> None:
    card = made().sources[0].model_copy(update={"url": "https://port.example/tides?a=1&b=<2>"})
    page, asked = shown(context, made().model_copy(update={"sources": (card,)}).html)
    link = page.locator("li a")
    expect(link).to_have_attribute("href", "https://port.example/tides?a=1&b=<2>")
    expect(link).to_have_attribute("rel", "noreferrer noopener nofollow")
    assert not [url for url in asked if "port.example" in url]
    unsafe, _ = shown(context, made().html)  # javascript: is no address
    expect(unsafe.locator("li a")).to_have_count(0)


def whole(text: str = "Tides") -> Report:
    """Every part that a report can have, all of them saying the same."""
    base = made(text, text, text)
    fact = base.sections[0].sentences[0]
    prose = (fact.model_copy(update={"opens": True}), fact, fact.model_copy(update={"opens": True}))
    sections = (
        Section(title="Body", sentences=prose),
        Section(title="What the sources disagree on", role="disagreements", sentences=(fact,)),
        Section(title="What could not be found", role="not_found",
                sentences=(Sentence(text=f"No source read in this run answered: “{text}”", kind="frame"),)),
        Section(title="Please note", role="notice", sentences=(Sentence(text=f"No advice on {text}.", kind="frame"),)),
    )  # fmt: skip
    card = base.sources[0].model_copy(
        update={"host": text, "author": text, "kind": text, "credibility_reasons": (text,), "primary": True}
    )
    side = DisputeSide(claims=("C1",), sources=("S1",), groups=("G1",))
    return base.model_copy(
        update={
            "sections": sections,
            "sources": (card,),
            "answers": (ShortAnswer(text=text, claims=("C1",), citations=("S1",), mark=Mark.VERIFIED, about=text),
                        ShortAnswer(text=text, claims=("C1",), citations=("S1",), mark=Mark.SINGLE, disputed=True)),
            "figures": (KeyFigure(what=text, value=text, when=text, claims=("C1",), citations=("S1",), disputed=True),),
            "disputes": (Dispute(about=text, sides=(side, side), resolution=text),),
            "not_found": (OpenSubQuestion(question=text, queries=(text,), documents=3, reason=text),),
            "review": Critique(scores={"accuracy": 9.5}, score=8.4, recommendation="approve"),
            "errors": (text,),
        }
    )  # fmt: skip


@pytest.mark.requirement("X-01", "X-08", "S-10")
def test_it_shows_answers_prose_figures_disputes_what_is_missing_and_the_review(context: BrowserContext) -> None:
    page, _ = shown(context, whole().html)
    assert page.locator(".text").count() == 3, "two paragraphs, and one of the dispute"
    first, second = (page.locator(".text").first.locator("summary").nth(at).bounding_box() for at in (0, 1))
    assert first is not None
    assert second is not None
    assert abs(first["y"] - second["y"]) < 2, "sentences of a paragraph stand in one line"
    expect(page.locator("p.answer").first).to_contain_text("Tides (Tides) ✓ [S1]")
    expect(page.locator("p.answer.disputed")).to_contain_text("Sources disagree: Tides")
    expect(page.locator("table").first).to_contain_text("(disputed)")
    for text in ("View 2: 1 independent source: S1 Tides", "Searched for: “Tides”; 3 documents read for it; Tides.",
                 "primary", "improvement potential", "hallucination score 0.00"):  # fmt: skip
        expect(page.locator(".openassay")).to_contain_text(text)
    notice, body = page.locator(".notice").bounding_box(), page.locator(".text").first.bounding_box()
    assert notice is not None
    assert body is not None
    assert notice["y"] < body["y"], "what is to be noted comes first"


def test_no_part_of_a_report_can_act(context: BrowserContext) -> None:
    page, asked = shown(context, whole(HOSTILE).html)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert asked == []
    assert (
        page.locator(
            ".openassay script, .openassay img, .openassay iframe, .openassay svg, .openassay a, .openassay form"
        ).count()
        == 0
    )


def test_a_list_and_a_table_stand_where_they_were_written(context: BrowserContext, tmp_path: Path) -> None:
    fact = made().sections[0].sentences[0]
    cells = [
        fact.model_copy(update={"cell": TableCell(row=row, column=column, text="16.3 metres")})
        for row in ("North", "South")
        for column in ("Range", "Highest")
    ]
    item = fact.model_copy(
        update={"text": "Spring <b>tides</b>: their range is 16.3 metres, which is more than anywhere else in the bay.",
                "lead": "Spring <b>tides</b>:", "opens": True, "item": True}
    )  # fmt: skip
    opens = fact.model_copy(update={"opens": True})
    section = Section(title="Tides", sentences=(opens, fact, *cells, opens, item, fact, item, opens))
    page, _ = shown(context, made().model_copy(update={"sections": (section,)}).html)
    items = page.locator("ul.items > li")
    expect(items).to_have_count(2)
    expect(items.first.locator("summary > b").first).to_have_text("Spring <b>tides</b>:")
    parts = page.locator("h2:has-text('Tides') ~ :is(.text, table, ul.items)").evaluate_all(
        "parts => parts.slice(0, 5).map(part => part.tagName)"
    )
    assert parts == ["DIV", "TABLE", "DIV", "UL", "DIV"]
    first, second = (items.first.locator("summary").nth(at).bounding_box() for at in (0, 1))
    assert first is not None
    assert second is not None
    assert second["y"] - first["y"] < first["height"], "sentences of an item go on in its line"
    page.screenshot(path=tmp_path / "list.png")


@pytest.mark.parametrize("width", [360, 1000])
def test_every_part_fits_the_page(context: BrowserContext, width: int) -> None:
    page, _ = shown(context, whole("A long statement about tides. " * 6 + "word" * 60).html)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
