"""Every payload of the lists of hostile text, as a page and as a report: read or refused, and never alive."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import pytest
from lxml import html as lxml_html

from assay.errors import ReadError
from assay.export.html import render
from assay.harvest.html import extract
from assay.harvest.quality import score
from assay.model.claim import Mark, Verdict
from assay.model.report import (
    Coverage,
    Provenance,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    SourceCard,
)
from assay.model.source import Document
from assay.text.instructions import instructions
from assay.text.passages import passages
from assay.text.urls import canonical

PROSE = "The harbour office measured a tide of 14.5 metres, and nobody has explained it so far. " * 5


@pytest.fixture(scope="module")
def payloads(eval_data: Path) -> list[str]:
    scripts = (eval_data / "hostile" / "xss.txt").read_text("utf-8", "replace").splitlines()
    naughty = json.loads((eval_data / "hostile" / "naughty-strings.json").read_text("utf-8"))
    return [text for text in [*scripts, *naughty] if isinstance(text, str) and text.strip()]


def text_of(payload: str, page: str) -> str:
    try:
        return extract(page.encode("utf-8", "replace"), "https://port.example/").text
    except ReadError:
        return ""


@pytest.mark.requirement("W-17")
def test_pages_made_of_hostile_text_are_read_or_refused(payloads: list[str]) -> None:
    assert len(payloads) > 500
    for payload in payloads:
        for page in (
            f"<html><title>{payload}</title><body><article><p>{PROSE}</p><p>{payload}</p></article></body></html>",
            f"<html><body><article><p>{PROSE}</p><p>{escape(payload)}</p></article></body></html>",
            payload,
        ):
            text = text_of(payload, page)
            name = sha256(text.encode()).hexdigest()
            Document(hash=name, text=text, url="https://port.example/", title="x", fetched=datetime.now(UTC))
            assert all(text[p.start : p.end] == p.text for p in passages(name, text))
            assert 0 <= score(text) <= 1
            instructions(text)
        assert isinstance(canonical(payload), str)


@pytest.mark.requirement("W-17")
def test_no_script_is_alive_in_a_report_made_of_hostile_text(payloads: list[str]) -> None:
    for payload in payloads:
        page: Any = lxml_html.fromstring(render(report(payload.encode("utf-8", "replace").decode())))
        assert page.xpath("//script | //img | //iframe | //object | //embed | //form | //svg | //base") == [], payload
        assert page.xpath("//@*[starts-with(name(), 'on')]") == [], payload
        assert all(link.startswith(("https://", "http://")) for link in page.xpath("//@href")), payload


def report(text: str) -> ReportData:
    fact = Sentence(text=text, kind="fact", claims=("C1",), citations=("S1",), mark=Mark.SINGLE)
    span = ReportSpan(source="S1", document="0" * 64, start=0, end=len(text), quote=text)
    card = SourceCard(id="S1", title=text, url=text, document="0" * 64, group=text, why_used=text, published=text)
    return ReportData(
        question=text, title=text, status=ReportStatus.COMPLETE, notices=(text,),
        coverage=Coverage(checked=1, total=1), sections=(Section(title=text, sentences=(fact,)),),
        claims=(ReportClaim(id="C1", text=text, verdict=Verdict.SUPPORTED, confidence=0.9, spans=(span,)),),
        sources=(card, card.model_copy(update={"url": f"https://port.example/{text}"})),
        provenance=Provenance(question=text),
    )  # fmt: skip
