"""Renders a report as HTML: statements open their passages; no script, nothing remote.

`render_fragment` makes a part of a notebook. `render_page` makes a file that needs nothing else: in it citations lead
to the references and back, and on paper every passage is open.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from openassay.export import layout
from openassay.models.evidence import Mark
from openassay.models.report import ReportData, ReportStatus, Section, Sentence, ShortAnswer, SourceCard

MAX_ADDRESS = 80  # characters of an address that are shown

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
.openassay ul.items{list-style:disc;padding-left:1.4rem}
.openassay .answer{font-size:1.1rem;border-left:4px solid #18863a;padding:.2rem .8rem}
.openassay .disputed{border-left-color:#b86200}
.openassay .notice{border:1px solid #b86200;border-radius:.4rem;padding:.3rem .9rem;margin:1rem 0;background:#b8620014}
.openassay table{border-collapse:collapse;width:100%;font-size:.9rem}
.openassay th,.openassay td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #8884}
.openassay .value{min-width:7.5rem}
.openassay .cited{white-space:nowrap}.openassay .agreed{color:#18863a}
.openassay .one{color:#3a8f4f}.openassay .single{color:#b86200}
"""
# Of a page alone. On paper there is nothing to click: passages stand open, small, under what they support.
_PAGE_STYLE = """
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
_MARK_CLASSES = {Mark.CORROBORATED: "agreed", Mark.VERIFIED: "one", Mark.SINGLE: "single"}
_FRAGMENT = Template('<div class="openassay"><style>$style</style><h1>$title</h1>$body</div>')
# A page may be opened from anywhere, beside other pages: its policy says what it may do.
_PAGE = Template(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" content="$policy">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
    '<meta name="generator" content="OpenAssay"><title>$title</title><style>$style</style></head>\n'
    '<body><main class="openassay"><h1>$title</h1>$body</main></body></html>\n'
)


def render_fragment(report: ReportData) -> str:
    return _FRAGMENT.substitute(style=_STYLE, title=escape(report.title), body=HtmlRenderer(report).render_body())


def render_page(report: ReportData) -> str:
    style = _STYLE + _PAGE_STYLE
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _PAGE.substitute(
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        title=escape(report.title),
        body=HtmlRenderer(report, linked=True).render_body(),
    )


class HtmlRenderer(layout.ReportLayout):
    """Renders the body of a page.

    With `linked`, citations lead to references and back. A notebook has many reports on one page, where the same
    anchor would lead to the first of them.
    """

    def __init__(self, report: ReportData, *, linked: bool = False) -> None:
        super().__init__(report)
        self.linked = linked
        self.statements = 0
        self.citing: dict[str, list[int]] = {}  # source -> the statements that cite it

    def escape(self, text: str) -> str:
        return escape(text)

    def render_body(self) -> str:
        """Render everything below the title."""
        report = self.report
        sections = [self._render_section(section) for section in self.sections]
        if report.status is ReportStatus.CANCELLED:
            return "".join(sections)
        score = f"hallucination score {report.hallucination_score:.2f}"
        click = '<span class="click"> · click a statement to see what it rests on</span>'
        parts = [f'<p class="note">{self.checked} · {score} · confidence {report.confidence}{click}</p>']
        parts += [f'<p class="note">{escape(notice)}</p>' for notice in report.notices]
        parts += [f'<p class="answer">{self._render_answer(answer)}</p>' for answer in self.answers]
        if self.disputed:
            answers = "; ".join(map(self._render_answer, self.disputed))
            parts.append(f'<p class="answer disputed">Sources disagree: {answers}</p>')
        parts += sections
        if report.sources:
            parts.append(self._render_sources())
        if scores := self.list_scores():
            parts.append(f"<h2>Review</h2>{_render_table(scores)}")
        issues = (f"{issue.severity}, {issue.location}: {issue.description}" for issue in self.issues)
        parts += [f'<p class="note">{escape(issue)}</p>' for issue in issues]
        if report.errors:
            parts.append("<h2>What went wrong</h2>" + "".join(f"<p>{escape(error)}</p>" for error in report.errors))
        parts.append(f"<h2>About this report</h2>{_render_table(self.describe_quality().items())}")
        return "".join(parts)

    def _render_answer(self, answer: ShortAnswer) -> str:
        about = f" ({escape(answer.about)})" if answer.about else ""
        mark = f" {_render_mark(answer.mark)}" if answer.mark else ""
        return f"{escape(answer.text)}{about}{mark} {self._render_citations(answer.citations)}"

    def _render_section(self, section: Section) -> str:
        text = f"<h2>{escape(section.title)}</h2>" if section.title else ""
        for block in layout.split_blocks(section.sentences):
            match block:
                case layout.Paragraph(sentences):
                    text += self._render_paragraph(sentences, section)
                case layout.BulletList(items):
                    lines = (" ".join(map(self._render_sentence, item)) for item in items)
                    text += f'<ul class="items">{"".join(f"""<li class="text">{line}</li>""" for line in lines)}</ul>'
                case layout.SentenceTable():
                    text += self._render_sentence_table(block)
        if section.role == "notice":
            return f'<div class="notice">{text}</div>'
        if section.role == "disagreements":
            for label, sources, others in self.list_dispute_sides():
                text += f'<p class="note">{label}{"; ".join(map(_render_source_name, sources))}{others}</p>'
        if self.shows_figures(section):
            heads = "".join(f"<th>{title}</th>" for title in layout.FIGURE_COLUMNS)
            text += f"<h2>Key figures</h2><table><tr>{heads}</tr>"
            for figure in self.report.figures:
                disputed = " <small>(disputed)</small>" if figure.disputed else ""
                mark = f"{_render_mark(figure.mark)} " if figure.mark else ""
                text += (
                    f'<tr><td>{escape(figure.what)}</td><td class="value">{escape(figure.value)}{disputed}</td>'
                    f"<td>{escape(figure.when)}</td><td>{mark}{self._render_citations(figure.citations)}</td></tr>"
                )
            text += "</table>"
        return text

    def _render_paragraph(self, sentences: Sequence[Sentence], section: Section) -> str:
        if any(sentence.kind != "frame" for sentence in sentences):
            return f'<div class="text">{" ".join(map(self._render_sentence, sentences))}</div>'
        text = ""
        for sentence in sentences:
            searches = self.list_searches([sentence], section)
            text += f"<p>{_render_text(sentence)}</p>" + "".join(f'<p class="note">{line}</p>' for line in searches)
        return text

    def _render_sentence_table(self, table: layout.SentenceTable) -> str:
        heads = "".join(f"<th>{escape(title)}</th>" for title in table.titles)
        rows = ""
        for name, row in table.rows.items():
            cells = "".join(f"<td>{' '.join(map(self._render_sentence, cell))}</td>" for cell in row)
            rows += f"<tr><th>{escape(name)}</th>{cells}</tr>"
        return f"<table><tr>{heads}</tr>{rows}</table>"

    def _render_sentence(self, sentence: Sentence) -> str:
        if sentence.kind == "frame" or sentence.mark is None:
            return f"<span>{_render_text(sentence)}</span>"
        passages = ""
        for span in (span for name in sentence.claims if name in self.claims for span in self.claims[name].spans):
            card = self.cards.get(span.source)
            source = _render_source_name(card) if card else escape(span.source)
            if card and self.linked:
                source = f'<a href="#ref{self.numbers[card.id]}">{source}</a>'
            place = f"<cite>{source}, characters {span.start}-{span.end}</cite>"
            passages += f"<blockquote>{escape(span.quote)}{place}</blockquote>"
        for item in (item for name in sentence.claims if name in self.claims for item in self.claims[name].context):
            passages += (
                f"<blockquote>{escape(item.field)}: {escape(item.value)}<cite>{escape(item.source)}</cite></blockquote>"
            )
        anchor = ""
        if self.linked:
            self.statements += 1
            anchor = f' id="st{self.statements}"'
            for source in sentence.citations:
                self.citing.setdefault(source, []).append(self.statements)
        # No link in what is clicked itself: the passages have them.
        sources = " ".join(f"[{escape(source)}]" for source in sentence.visible_citations)
        follows = f'<b title="{layout.FOLLOWS}">∴</b> ' if sentence.kind == "synthesis" else ""
        cited = f'<span class="cited">{follows}{_render_mark(sentence.mark)} <small>{sources}</small></span>'
        return f"<details{anchor}><summary>{_render_text(sentence)} {cited}</summary>{passages}</details>"

    def _render_citations(self, sources: Sequence[str]) -> str:
        shown = []
        for source in sources:
            number = self.numbers.get(source)
            name = f"[{escape(source)}]"
            shown.append(f'<a href="#ref{number}">{name}</a>' if self.linked and number else name)
        return f"<small>{' '.join(shown)}</small>"

    def _render_sources(self) -> str:
        items = ""
        for card in self.report.sources:
            details = escape(", ".join([*filter(None, (card.author, card.place)), *layout.describe_source(card)]))
            if url := layout.get_web_address(card):
                shown = url if len(url) <= MAX_ADDRESS else f"{url[: MAX_ADDRESS - 1]}…"
                details += f' · <a href="{escape(url)}" rel="noreferrer noopener nofollow">{escape(shown)}</a>'
            if card.credibility_reasons:
                details += f"<br>{escape('; '.join(card.credibility_reasons))}"
            if card.id in self.citing:
                links = " ".join(f'<a href="#st{number}">{number}</a>' for number in self.citing[card.id])
                details += f'<br><span class="click">Statements that cite it: {links}</span>'
            anchor = f' id="ref{self.numbers[card.id]}"' if self.linked else ""
            items += f"<li{anchor}>{_render_source_name(card)}<br><small>{details}</small></li>"
        legend = " · ".join(f"{mark} {meaning}" for mark, meaning in layout.explain_signs(self.report))
        return f'<h2>References</h2><ul>{items}</ul><p class="note">{legend}</p>'


def _render_text(sentence: Sentence) -> str:
    lead, rest = sentence.split_lead()
    return f"<b>{escape(lead)}</b>{escape(rest)}" if lead else escape(rest)


def _render_mark(mark: Mark) -> str:
    return f'<b class="{_MARK_CLASSES[mark]}" title="{layout.LEGEND[mark]}">{mark}</b>'


def _render_source_name(card: SourceCard) -> str:
    return f"{escape(card.id)} {escape(card.title)}"


def _render_table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{lines}</table>"
