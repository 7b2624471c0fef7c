"""A report as HTML: statements open their passages, no script, nothing remote.

`render` gives a fragment for notebooks, which have pages of their own. `page` gives a file that needs nothing else: in
it citations lead to the references and back, and on paper every passage is open.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from string import Template

from openassay.export.common import (
    LEGEND,
    SHOWN,
    describe_quality,
    describe_source,
    ends_body,
    format_searches,
    format_support,
    get_web_address,
    split_paragraphs,
)
from openassay.models.evidence import Mark
from openassay.models.report import (
    KeyFigure,
    OpenSubQuestion,
    ReportClaim,
    ReportData,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
)

# Colours of the text and the ground are the page's own, so that it reads in a dark notebook too. A statement is inline
# until it is opened, so that a paragraph reads as one.
_STYLE = """
.openassay{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:1rem auto;padding:0 1rem;overflow-wrap:anywhere}
.openassay h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}
.openassay h2{font-size:1.15rem;margin:1.6rem 0 .4rem;padding-bottom:.2rem;border-bottom:1px solid #8886}
.openassay .text{margin:.7rem 0}
.openassay .text>details{display:inline}
.openassay .text>details:not([open])::details-content{display:none}
.openassay .text>details>summary{display:inline;border-radius:.2rem}
.openassay details>summary:hover,.openassay details[open]>summary{background:#8882}
.openassay details[open]>blockquote{background:#8881;border-radius:0 .4rem .4rem 0;padding:.3rem .8rem}
.openassay summary{cursor:pointer}
.openassay .text summary{list-style:none}
.openassay .text summary::-webkit-details-marker{display:none}
.openassay blockquote{margin:.5rem 0;padding-left:.8rem;border-left:3px solid #8888}
.openassay cite{display:block;font-size:.8rem;font-style:normal;opacity:.75}
.openassay small,.openassay .note{font-size:.8rem;opacity:.75}
.openassay p{margin:.5rem 0}.openassay ul{list-style:none;padding:0}.openassay li{margin:.5rem 0}
.openassay .answer{font-size:1.1rem;border-left:4px solid #18863a;padding:.2rem .8rem}
.openassay .disputed{border-left-color:#b86200}
.openassay .notice{border:1px solid #b86200;border-radius:.4rem;padding:.3rem .9rem;margin:1rem 0;background:#b8620014}
.openassay table{border-collapse:collapse;width:100%;font-size:.9rem}
.openassay th,.openassay td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #8884}
.openassay .value{min-width:7.5rem}
.openassay .cited{white-space:nowrap}.openassay .agreed{color:#18863a}
.openassay .one{color:#3a8f4f}.openassay .single{color:#b86200}
"""
# Of a file alone. Where it is printed there is nothing to click: passages stand open, small, under what they support.
_FILE_STYLE = """
:root{color-scheme:light dark}body{margin:0;background:Canvas;color:CanvasText}
.openassay a{color:inherit;text-decoration-color:#8888}.openassay :target{background:#fd03;outline:2px solid #b86200}
@media print{
.openassay{font-size:10.5pt;max-width:none;margin:0;padding:0}
.openassay .click{display:none}
.openassay .text>details::details-content{display:block!important;content-visibility:visible!important}
.openassay cite{font-size:.9em}
.openassay .text>details>blockquote{font-size:.85em;margin:.2rem 0 .4rem;background:none;break-inside:avoid}
.openassay h2{break-after:avoid}.openassay tr,.openassay li,.openassay .answer,.openassay .notice{break-inside:avoid}
.openassay a{text-decoration:none}
@page{margin:2cm}
}
"""
_KINDS = {Mark.CORROBORATED: "agreed", Mark.VERIFIED: "one", Mark.SINGLE: "single"}
_PART = Template('<div class="openassay"><style>$style</style><h1>$title</h1>$body</div>')
# A file may be opened from anywhere, and by a browser that has other pages open: what it may do stands in it.
_FILE = Template(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" content="$policy">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
    '<meta name="generator" content="OpenAssay"><title>$title</title><style>$style</style></head>\n'
    '<body><main class="openassay"><h1>$title</h1>$body</main></body></html>\n'
)


def render_fragment(report: ReportData) -> str:
    return _PART.substitute(style=_STYLE, title=escape(report.title), body=_HtmlRenderer(report).render_body())


def render_page(report: ReportData) -> str:
    style = _STYLE + _FILE_STYLE
    return _FILE.substitute(
        style=style,
        policy=_build_policy(style),
        title=escape(report.title),
        body=_HtmlRenderer(report, linked=True).render_body(),
    )


def _build_policy(style: str) -> str:
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


class _HtmlRenderer:
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

    def render_body(self) -> str:
        report = self.report
        in_order = sorted(report.sections, key=lambda section: section.role != "notice")  # what to note comes first
        sections = [part for section in in_order for part in self._render_section(section)]
        if report.status is ReportStatus.CANCELLED:
            return "".join(sections)
        parts = [
            *_render_summary(report),
            *self._render_answers(report.answers),
            *sections,
            *self._render_sources(report.sources),
        ]
        return "".join([*parts, *_render_review(report), _render_about(report)])

    def _render_section(self, section: Section) -> Iterator[str]:
        heading = f"<h2>{escape(section.title)}</h2>" if section.title else ""
        missing = self.report.not_found if section.role == "not_found" else ()
        text = "".join(self._render_paragraph(part, missing) for part in split_paragraphs(section.sentences))
        if section.role == "notice":
            yield f'<div class="notice">{heading}{text}</div>'
            return
        yield heading + text
        if section.role == "disagreements":
            yield from self._render_disputes()
        if ends_body(section, self.report):
            yield from self._render_figures()

    def _render_paragraph(self, part: Sequence[Sentence], missing: Sequence[OpenSubQuestion]) -> str:
        if all(sentence.kind == "frame" for sentence in part):
            return "".join(f"<p>{escape(sentence.text)}</p>{_render_searches(sentence, missing)}" for sentence in part)
        return f'<div class="text">{" ".join(map(self._render_sentence, part))}</div>'

    def _render_sentence(self, sentence: Sentence) -> str:
        if sentence.kind == "frame" or sentence.mark is None:
            return f"<span>{escape(sentence.text)}</span>"
        passages = "".join(
            map(self._render_passages, (self.claims[name] for name in sentence.claims if name in self.claims))
        )
        # No link in what is clicked itself: the passages have them.
        sources = " ".join(f"[{escape(source)}]" for source in sentence.citations)
        cited = f'<span class="cited">{_render_mark(sentence.mark)} <small>{sources}</small></span>'
        anchor = self._make_anchor(sentence.citations)
        return f"<details{anchor}><summary>{escape(sentence.text)} {cited}</summary>{passages}</details>"

    def _make_anchor(self, sources: Sequence[str]) -> str:
        if not self.linked:
            return ""
        self.statements += 1
        for source in sources:
            self.places.setdefault(source, []).append(self.statements)
        return f' id="st{self.statements}"'

    def _render_citations(self, sources: Sequence[str]) -> str:
        return f"<small>{' '.join(map(self._render_citation, sources))}</small>"

    def _render_citation(self, source: str) -> str:
        number = self.numbers.get(source)
        shown = f"[{escape(source)}]"
        return f'<a href="#ref{number}">{shown}</a>' if self.linked and number else shown

    def _render_passages(self, claim: ReportClaim) -> str:
        return "".join(
            f"<blockquote>{escape(span.quote)}<cite>{self._render_source_link(span.source)}, "
            f"characters {span.start}-{span.end}"
            "</cite></blockquote>"
            for span in claim.spans
        )

    def _render_source_link(self, source: str) -> str:
        card = self.cards.get(source)
        if card is None:
            return escape(source)
        return (
            f'<a href="#ref{self.numbers[source]}">{_render_source_name(card)}</a>'
            if self.linked
            else _render_source_name(card)
        )

    def _render_answers(self, answers: Sequence[ShortAnswer]) -> Iterator[str]:
        """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
        yield from (f'<p class="answer">{self._render_answer(answer)}</p>' for answer in answers if not answer.disputed)
        if disputed := [answer for answer in answers if answer.disputed]:
            yield f'<p class="answer disputed">Sources disagree: {"; ".join(map(self._render_answer, disputed))}</p>'

    def _render_answer(self, answer: ShortAnswer) -> str:
        about = f" ({escape(answer.about)})" if answer.about else ""
        mark = f" {_render_mark(answer.mark)}" if answer.mark else ""
        return f"{escape(answer.text)}{about}{mark} {self._render_citations(answer.citations)}"

    def _render_disputes(self) -> Iterator[str]:
        open_ones = [dispute for dispute in self.report.disputes if not dispute.resolved]
        for number, dispute in enumerate(open_ones, 1):
            for at, side in enumerate(dispute.sides, 1):
                name = f"Point {number}, view {at}" if len(open_ones) > 1 else f"View {at}"
                titles = [_render_source_name(self.cards[id]) for id in side.sources if id in self.cards]
                more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
                yield f'<p class="note">{name}: {format_support(side)}: {"; ".join(titles[:SHOWN])}{more}</p>'

    def _render_figures(self) -> Iterator[str]:
        if self.report.figures:
            head = "<tr><th>What</th><th>Value</th><th>When</th><th>Source</th></tr>"
            yield f"<h2>Key figures</h2><table>{head}{''.join(map(self._render_figure, self.report.figures))}</table>"

    def _render_figure(self, figure: KeyFigure) -> str:
        disputed = " <small>(disputed)</small>" if figure.disputed else ""
        mark = f"{_render_mark(figure.mark)} " if figure.mark else ""
        return (
            f'<tr><td>{escape(figure.what)}</td><td class="value">{escape(figure.value)}{disputed}</td>'
            f"<td>{escape(figure.when)}</td><td>{mark}{self._render_citations(figure.citations)}</td></tr>"
        )

    def _render_sources(self, cards: Sequence[SourceCard]) -> Iterator[str]:
        if cards:
            legend = " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items())
            yield f'<h2>References</h2><ul>{"".join(map(self._render_source, cards))}</ul><p class="note">{legend}</p>'

    def _render_source(self, card: SourceCard) -> str:
        facts = [*(part for part in (card.author, card.host) if part), *describe_source(card)]
        reasons = f"<br>{escape('; '.join(card.credibility_reasons))}" if card.credibility_reasons else ""
        anchor = f' id="ref{self.numbers[card.id]}"' if self.linked else ""
        told = f"{escape(', '.join(facts))}{_render_link(card)}{reasons}{self._render_backlinks(card.id)}"
        return f"<li{anchor}>{_render_source_name(card)}<br><small>{told}</small></li>"

    def _render_backlinks(self, source: str) -> str:
        places = self.places.get(source, ())
        links = " ".join(f'<a href="#st{place}">{place}</a>' for place in places)
        return f'<br><span class="click">Statements that cite it: {links}</span>' if places else ""


def _render_mark(mark: Mark) -> str:
    return f'<b class="{_KINDS[mark]}" title="{LEGEND[mark]}">{mark}</b>'


def _render_summary(report: ReportData) -> Iterator[str]:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    score = f"hallucination score {report.hallucination_score:.2f}"
    click = '<span class="click"> · click a statement to see what it rests on</span>'
    yield f'<p class="note">{checked} · {score} · confidence {report.confidence}{click}</p>'
    yield from (f'<p class="note">{escape(line)}</p>' for line in report.notices)


def _render_searches(sentence: Sentence, missing: Sequence[OpenSubQuestion]) -> str:
    """Beside a question nobody answered, what was done to find an answer."""
    found = [item for item in missing if f"“{item.question}”" in sentence.text]
    return "".join(f'<p class="note">Searched for: {format_searches(item, escape)}</p>' for item in found)


def _render_source_name(card: SourceCard) -> str:
    return f"{escape(card.id)} {escape(card.title)}"


def _render_link(card: SourceCard) -> str:
    url = get_web_address(card)
    if not url:
        return ""
    shown = url if len(url) <= 80 else f"{url[:79]}…"
    return f' · <a href="{escape(url)}" rel="noreferrer noopener nofollow">{escape(shown)}</a>'


def _render_review(report: ReportData) -> Iterator[str]:
    if report.review is not None and report.review.scores:
        rows = [(name, f"{score:.1f} of 10") for name, score in report.review.scores.items()]
        rows += [("all", f"{report.review.score:.1f} of 10")]
        rows += [("improvement potential", f"{report.review.improvement_potential:.2f} of 1")]
        items = [f"{issue.severity}, {issue.location}: {issue.description}" for issue in report.review.issues]
        yield f"<h2>Review</h2>{_render_rows(rows)}" + "".join(f'<p class="note">{escape(item)}</p>' for item in items)
    if report.errors:
        yield "<h2>What went wrong</h2>" + "".join(f"<p>{escape(error)}</p>" for error in report.errors)


def _render_about(report: ReportData) -> str:
    return f"<h2>About this report</h2>{_render_rows(describe_quality(report).items())}"


def _render_rows(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{lines}</table>"
