"""A report as HTML: statements open their passages, no script, nothing remote.

`render` gives a fragment for notebooks, which have pages of their own. `page` gives a file that needs nothing else: in
it citations lead to the references and back, and on paper every passage is open.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from string import Template

from assay.export.parts import LEGEND, SHOWN, address, backing, described, ends_body, paragraphs, quality, searched
from assay.model.claim import Mark
from assay.model.report import (
    Answer,
    KeyFigure,
    NotFound,
    ReportClaim,
    ReportData,
    ReportStatus,
    Section,
    Sentence,
    SourceCard,
)

# Colours of the text and the ground are the page's own, so that it reads in a dark notebook too. A statement is inline
# until it is opened, so that a paragraph reads as one.
_STYLE = """
.assay{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:1rem auto;padding:0 1rem;overflow-wrap:anywhere}
.assay h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}
.assay h2{font-size:1.15rem;margin:1.6rem 0 .4rem;padding-bottom:.2rem;border-bottom:1px solid #8886}
.assay .text{margin:.7rem 0}
.assay .text>details{display:inline}
.assay .text>details:not([open])::details-content{display:none}
.assay .text>details>summary{display:inline;border-radius:.2rem}
.assay details>summary:hover,.assay details[open]>summary{background:#8882}
.assay details[open]>blockquote{background:#8881;border-radius:0 .4rem .4rem 0;padding:.3rem .8rem}
.assay summary{cursor:pointer}
.assay .text summary{list-style:none}
.assay .text summary::-webkit-details-marker{display:none}
.assay blockquote{margin:.5rem 0;padding-left:.8rem;border-left:3px solid #8888}
.assay cite{display:block;font-size:.8rem;font-style:normal;opacity:.75}
.assay small,.assay .note{font-size:.8rem;opacity:.75}
.assay p{margin:.5rem 0}.assay ul{list-style:none;padding:0}.assay li{margin:.5rem 0}
.assay .answer{font-size:1.1rem;border-left:4px solid #18863a;padding:.2rem .8rem}
.assay .disputed{border-left-color:#b86200}
.assay .notice{border:1px solid #b86200;border-radius:.4rem;padding:.3rem .9rem;margin:1rem 0;background:#b8620014}
.assay table{border-collapse:collapse;width:100%;font-size:.9rem}
.assay th,.assay td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #8884}
.assay .value{min-width:7.5rem}
.assay .cited{white-space:nowrap}.assay .agreed{color:#18863a}.assay .one{color:#3a8f4f}.assay .single{color:#b86200}
"""
# Of a file alone. Where it is printed there is nothing to click: passages stand open, small, under what they support.
_FILE_STYLE = """
:root{color-scheme:light dark}body{margin:0;background:Canvas;color:CanvasText}
.assay a{color:inherit;text-decoration-color:#8888}.assay :target{background:#fd03;outline:2px solid #b86200}
@media print{
.assay{font-size:10.5pt;max-width:none;margin:0;padding:0}
.assay .click{display:none}
.assay .text>details::details-content{display:block!important;content-visibility:visible!important}
.assay cite{font-size:.9em}
.assay .text>details>blockquote{font-size:.85em;margin:.2rem 0 .4rem;background:none;break-inside:avoid}
.assay h2{break-after:avoid}.assay tr,.assay li,.assay .answer,.assay .notice{break-inside:avoid}
.assay a{text-decoration:none}
@page{margin:2cm}
}
"""
_KINDS = {Mark.CORROBORATED: "agreed", Mark.VERIFIED: "one", Mark.SINGLE: "single"}
_PART = Template('<div class="assay"><style>$style</style><h1>$title</h1>$body</div>')
# A file may be opened from anywhere, and by a browser that has other pages open: what it may do stands in it.
_FILE = Template(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" content="$policy">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
    '<meta name="generator" content="Assay"><title>$title</title><style>$style</style></head>\n'
    '<body><main class="assay"><h1>$title</h1>$body</main></body></html>\n'
)


def render(report: ReportData) -> str:
    return _PART.substitute(style=_STYLE, title=escape(report.title), body=_Page(report).body())


def page(report: ReportData) -> str:
    style = _STYLE + _FILE_STYLE
    return _FILE.substitute(
        style=style, policy=_policy(style), title=escape(report.title), body=_Page(report, linked=True).body()
    )


def _policy(style: str) -> str:
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


class _Page:
    """The claims and sources that a page refers to. `linked`: from citations to references and back; a notebook has
    many reports on one page, in which the same name would lead to the first of them."""

    def __init__(self, report: ReportData, *, linked: bool = False) -> None:
        self.report = report
        self.linked = linked
        self.numbers = {card.id: number for number, card in enumerate(report.sources, 1)}
        self.places: dict[str, list[int]] = {}  # source -> the statements that cite it
        self.statements = 0
        self.claims = {claim.id: claim for claim in report.claims}
        self.cards = {card.id: card for card in report.sources}

    def body(self) -> str:
        report = self.report
        in_order = sorted(report.sections, key=lambda section: section.role != "notice")  # what to note comes first
        sections = [part for section in in_order for part in self._section(section)]
        if report.status is ReportStatus.CANCELLED:
            return "".join(sections)
        parts = [*_short(report), *self._answers(report.answers), *sections, *self._sources(report.sources)]
        return "".join([*parts, *_review(report), _about(report)])

    def _section(self, section: Section) -> Iterator[str]:
        heading = f"<h2>{escape(section.title)}</h2>" if section.title else ""
        missing = self.report.not_found if section.role == "not_found" else ()
        text = "".join(self._paragraph(part, missing) for part in paragraphs(section.sentences))
        if section.role == "notice":
            yield f'<div class="notice">{heading}{text}</div>'
            return
        yield heading + text
        if section.role == "disagreements":
            yield from self._disputes()
        if ends_body(section, self.report):
            yield from self._figures()

    def _paragraph(self, part: Sequence[Sentence], missing: Sequence[NotFound]) -> str:
        if all(sentence.kind == "frame" for sentence in part):
            return "".join(f"<p>{escape(sentence.text)}</p>{_searched(sentence, missing)}" for sentence in part)
        return f'<div class="text">{" ".join(map(self._sentence, part))}</div>'

    def _sentence(self, sentence: Sentence) -> str:
        if sentence.kind == "frame" or sentence.mark is None:
            return f"<span>{escape(sentence.text)}</span>"
        passages = "".join(map(self._passage, (self.claims[name] for name in sentence.claims if name in self.claims)))
        # No link in what is clicked itself: the passages have them.
        sources = " ".join(f"[{escape(source)}]" for source in sentence.citations)
        cited = f'<span class="cited">{_mark(sentence.mark)} <small>{sources}</small></span>'
        anchor = self._anchor(sentence.citations)
        return f"<details{anchor}><summary>{escape(sentence.text)} {cited}</summary>{passages}</details>"

    def _anchor(self, sources: Sequence[str]) -> str:
        if not self.linked:
            return ""
        self.statements += 1
        for source in sources:
            self.places.setdefault(source, []).append(self.statements)
        return f' id="st{self.statements}"'

    def _cited(self, sources: Sequence[str]) -> str:
        return f"<small>{' '.join(map(self._citation, sources))}</small>"

    def _citation(self, source: str) -> str:
        number = self.numbers.get(source)
        shown = f"[{escape(source)}]"
        return f'<a href="#ref{number}">{shown}</a>' if self.linked and number else shown

    def _passage(self, claim: ReportClaim) -> str:
        return "".join(
            f"<blockquote>{escape(span.quote)}<cite>{self._named(span.source)}, characters {span.start}-{span.end}"
            "</cite></blockquote>"
            for span in claim.spans
        )

    def _named(self, source: str) -> str:
        card = self.cards.get(source)
        if card is None:
            return escape(source)
        return f'<a href="#ref{self.numbers[source]}">{_named(card)}</a>' if self.linked else _named(card)

    def _answers(self, answers: Sequence[Answer]) -> Iterator[str]:
        """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
        yield from (f'<p class="answer">{self._answer(answer)}</p>' for answer in answers if not answer.disputed)
        if disputed := [answer for answer in answers if answer.disputed]:
            yield f'<p class="answer disputed">Sources disagree: {"; ".join(map(self._answer, disputed))}</p>'

    def _answer(self, answer: Answer) -> str:
        about = f" ({escape(answer.about)})" if answer.about else ""
        mark = f" {_mark(answer.mark)}" if answer.mark else ""
        return f"{escape(answer.text)}{about}{mark} {self._cited(answer.citations)}"

    def _disputes(self) -> Iterator[str]:
        open_ones = [dispute for dispute in self.report.disputes if not dispute.resolved]
        for number, dispute in enumerate(open_ones, 1):
            for at, side in enumerate(dispute.sides, 1):
                name = f"Point {number}, view {at}" if len(open_ones) > 1 else f"View {at}"
                titles = [_named(self.cards[id]) for id in side.sources if id in self.cards]
                more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
                yield f'<p class="note">{name}: {backing(side)}: {"; ".join(titles[:SHOWN])}{more}</p>'

    def _figures(self) -> Iterator[str]:
        if self.report.figures:
            head = "<tr><th>What</th><th>Value</th><th>When</th><th>Source</th></tr>"
            yield f"<h2>Key figures</h2><table>{head}{''.join(map(self._figure, self.report.figures))}</table>"

    def _figure(self, figure: KeyFigure) -> str:
        disputed = " <small>(disputed)</small>" if figure.disputed else ""
        mark = f"{_mark(figure.mark)} " if figure.mark else ""
        return (
            f'<tr><td>{escape(figure.what)}</td><td class="value">{escape(figure.value)}{disputed}</td>'
            f"<td>{escape(figure.when)}</td><td>{mark}{self._cited(figure.citations)}</td></tr>"
        )

    def _sources(self, cards: Sequence[SourceCard]) -> Iterator[str]:
        if cards:
            legend = " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items())
            yield f'<h2>References</h2><ul>{"".join(map(self._source, cards))}</ul><p class="note">{legend}</p>'

    def _source(self, card: SourceCard) -> str:
        facts = [*(part for part in (card.author, card.host) if part), *described(card)]
        reasons = f"<br>{escape('; '.join(card.credibility_reasons))}" if card.credibility_reasons else ""
        anchor = f' id="ref{self.numbers[card.id]}"' if self.linked else ""
        told = f"{escape(', '.join(facts))}{_link(card)}{reasons}{self._back(card.id)}"
        return f"<li{anchor}>{_named(card)}<br><small>{told}</small></li>"

    def _back(self, source: str) -> str:
        places = self.places.get(source, ())
        links = " ".join(f'<a href="#st{place}">{place}</a>' for place in places)
        return f'<br><span class="click">Statements that cite it: {links}</span>' if places else ""


def _mark(mark: Mark) -> str:
    return f'<b class="{_KINDS[mark]}" title="{LEGEND[mark]}">{mark}</b>'


def _short(report: ReportData) -> Iterator[str]:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    score = f"hallucination score {report.hallucination_score:.2f}"
    click = '<span class="click"> · click a statement to see what it rests on</span>'
    yield f'<p class="note">{checked} · {score} · confidence {report.confidence}{click}</p>'
    yield from (f'<p class="note">{escape(line)}</p>' for line in report.notices)


def _searched(sentence: Sentence, missing: Sequence[NotFound]) -> str:
    """Beside a question nobody answered, what was done to find an answer."""
    found = [item for item in missing if f"“{item.question}”" in sentence.text]
    return "".join(f'<p class="note">Searched for: {searched(item, escape)}</p>' for item in found)


def _named(card: SourceCard) -> str:
    return f"{escape(card.id)} {escape(card.title)}"


def _link(card: SourceCard) -> str:
    url = address(card)
    if not url:
        return ""
    shown = url if len(url) <= 80 else f"{url[:79]}…"
    return f' · <a href="{escape(url)}" rel="noreferrer noopener nofollow">{escape(shown)}</a>'


def _review(report: ReportData) -> Iterator[str]:
    if report.review is not None and report.review.scores:
        rows = [(name, f"{score:.1f} of 10") for name, score in report.review.scores.items()]
        rows += [("all", f"{report.review.score:.1f} of 10")]
        rows += [("improvement potential", f"{report.review.improvement_potential:.2f} of 1")]
        items = [f"{issue.severity}, {issue.location}: {issue.description}" for issue in report.review.issues]
        yield f"<h2>Review</h2>{_rows(rows)}" + "".join(f'<p class="note">{escape(item)}</p>' for item in items)
    if report.errors:
        yield "<h2>What went wrong</h2>" + "".join(f"<p>{escape(error)}</p>" for error in report.errors)


def _about(report: ReportData) -> str:
    return f"<h2>About this report</h2>{_rows(quality(report).items())}"


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{lines}</table>"
