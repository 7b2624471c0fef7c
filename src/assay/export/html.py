"""A report as a fragment of HTML for notebooks: statements open their passages, no script, nothing remote."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from string import Template

from assay.export.parts import LEGEND, SHOWN, backing, ends_body, paragraphs, quality, searched
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
_KINDS = {Mark.CORROBORATED: "agreed", Mark.VERIFIED: "one", Mark.SINGLE: "single"}
_PAGE = Template('<div class="assay"><style>$style</style><h1>$title</h1>$body</div>')


def render(report: ReportData) -> str:
    return _PAGE.substitute(style=_STYLE, title=escape(report.title), body=_Page(report).body())


class _Page:
    """The claims and sources that a page refers to."""

    def __init__(self, report: ReportData) -> None:
        self.report = report
        self.claims = {claim.id: claim for claim in report.claims}
        self.cards = {card.id: card for card in report.sources}

    def body(self) -> str:
        report = self.report
        in_order = sorted(report.sections, key=lambda section: section.role != "notice")  # what to note comes first
        sections = [part for section in in_order for part in self._section(section)]
        if report.status is ReportStatus.CANCELLED:
            return "".join(sections)
        parts = [*_short(report), *_answers(report.answers), *sections, *_sources(report.sources)]
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
        passages = "".join(_passage(self.claims[name], self.cards) for name in sentence.claims)
        cited = f'<span class="cited">{_mark(sentence.mark)} {_cited(sentence.citations)}</span>'
        return f"<details><summary>{escape(sentence.text)} {cited}</summary>{passages}</details>"

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
            yield f"<h2>Key figures</h2><table>{head}{''.join(map(_figure, self.report.figures))}</table>"


def _mark(mark: Mark) -> str:
    return f'<b class="{_KINDS[mark]}" title="{LEGEND[mark]}">{mark}</b>'


def _cited(sources: Sequence[str]) -> str:
    return f"<small>{' '.join(f'[{escape(source)}]' for source in sources)}</small>"


def _short(report: ReportData) -> Iterator[str]:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    score = f"hallucination score {report.hallucination_score:.2f}"
    lines = [
        f"{checked} · {score} · confidence {report.confidence} · click a statement to see what it rests on",
        *report.notices,
    ]
    yield from (f'<p class="note">{escape(line)}</p>' for line in lines)


def _answers(answers: Sequence[Answer]) -> Iterator[str]:
    """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
    yield from (f'<p class="answer">{_answer(answer)}</p>' for answer in answers if not answer.disputed)
    if disputed := [answer for answer in answers if answer.disputed]:
        yield f'<p class="answer disputed">Sources disagree: {"; ".join(map(_answer, disputed))}</p>'


def _answer(answer: Answer) -> str:
    about = f" ({escape(answer.about)})" if answer.about else ""
    mark = f" {_mark(answer.mark)}" if answer.mark else ""
    return f"{escape(answer.text)}{about}{mark} {_cited(answer.citations)}"


def _passage(claim: ReportClaim, cards: dict[str, SourceCard]) -> str:
    return "".join(
        f"<blockquote>{escape(span.quote)}<cite>{_named(cards[span.source])}, characters {span.start}-{span.end}"
        "</cite></blockquote>"
        for span in claim.spans
    )


def _searched(sentence: Sentence, missing: Sequence[NotFound]) -> str:
    """Beside a question nobody answered, what was done to find an answer."""
    found = [item for item in missing if f"“{item.question}”" in sentence.text]
    return "".join(f'<p class="note">Searched for: {searched(item, escape)}</p>' for item in found)


def _figure(figure: KeyFigure) -> str:
    disputed = " <small>(disputed)</small>" if figure.disputed else ""
    mark = f"{_mark(figure.mark)} " if figure.mark else ""
    return (
        f'<tr><td>{escape(figure.what)}</td><td class="value">{escape(figure.value)}{disputed}</td>'
        f"<td>{escape(figure.when)}</td><td>{mark}{_cited(figure.citations)}</td></tr>"
    )


def _named(card: SourceCard) -> str:
    return f"{escape(card.id)} {escape(card.title)}"


def _sources(cards: Sequence[SourceCard]) -> Iterator[str]:
    if cards:
        legend = " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items())
        yield f'<h2>References</h2><ul>{"".join(map(_source, cards))}</ul><p class="note">{legend}</p>'


def _source(card: SourceCard) -> str:
    facts = [
        *(part for part in (card.author, card.host) if part),
        card.kind,
        "primary" if card.primary else "secondary",
        card.published or "undated",
        f"independent group {card.group}",
        f"credibility {card.credibility:.2f}",
    ]
    reasons = f"<br>{escape('; '.join(card.credibility_reasons))}" if card.credibility_reasons else ""
    return f"<li>{_named(card)}<br><small>{escape(', '.join(facts))}{_link(card)}{reasons}</small></li>"


def _link(card: SourceCard) -> str:
    """Pages of the web can be opened; nothing else is made a link, whatever it calls itself."""
    if not card.url.startswith(("https://", "http://")):
        return ""
    shown = card.url if len(card.url) <= 80 else f"{card.url[:79]}…"
    return f' · <a href="{escape(card.url)}" rel="noreferrer noopener nofollow">{escape(shown)}</a>'


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
