"""A report as a fragment of HTML for notebooks: statements open their passages, no script, nothing remote."""

from html import escape
from string import Template

from assay.export.markdown import LEGEND
from assay.model.claim import Mark
from assay.model.report import ReportClaim, ReportData, Section, Sentence, SourceCard

# Colours of the text and the ground are the page's own, so that it reads in a dark notebook too.
_STYLE = """
.assay{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:1rem auto;padding:0 1rem;overflow-wrap:anywhere}
.assay h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}
.assay h2{font-size:1.15rem;margin:1.6rem 0 .4rem;padding-bottom:.2rem;border-bottom:1px solid #8886}
.assay details{border-radius:.4rem;padding:.15rem .5rem .15rem 1.4rem}
.assay details:hover,.assay details[open]{background:#8881}
.assay summary{cursor:pointer;list-style:none}
.assay summary::-webkit-details-marker{display:none}
.assay summary::before{content:"\u25b8";display:inline-block;width:1rem;margin-left:-1rem;opacity:.5}
.assay details[open]>summary::before{content:"\u25be"}
.assay blockquote{margin:.5rem 0;padding-left:.8rem;border-left:3px solid #8888}
.assay cite{display:block;font-size:.8rem;font-style:normal;opacity:.75}
.assay small,.assay .note{font-size:.8rem;opacity:.75}
.assay p{margin:.5rem 0}.assay ul{list-style:none;padding:0}.assay li{margin:.3rem 0}
.assay b{white-space:nowrap}.assay .agreed{color:#18863a}.assay .one{color:#3a8f4f}.assay .single{color:#b86200}
"""
_KINDS = {Mark.CORROBORATED: "agreed", Mark.VERIFIED: "one", Mark.SINGLE: "single"}
_PAGE = Template('<div class="assay"><style>$style</style><h1>$title</h1>$about$sections$sources</div>')


def render(report: ReportData) -> str:
    claims = {claim.id: claim for claim in report.claims}
    cards = {card.id: card for card in report.sources}
    return _PAGE.substitute(
        style=_STYLE,
        title=escape(report.title),
        about=_about(report),
        sections="".join(_section(section, claims, cards) for section in report.sections),
        sources=_sources(report.sources),
    )


def _about(report: ReportData) -> str:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    lines = [f"{checked} · confidence {report.confidence} · click a statement to see what it rests on", *report.notices]
    return "".join(f'<p class="note">{escape(line)}</p>' for line in lines)


def _section(section: Section, claims: dict[str, ReportClaim], cards: dict[str, SourceCard]) -> str:
    heading = f"<h2>{escape(section.title)}</h2>" if section.title else ""
    return heading + "".join(_sentence(sentence, claims, cards) for sentence in section.sentences)


def _sentence(sentence: Sentence, claims: dict[str, ReportClaim], cards: dict[str, SourceCard]) -> str:
    if sentence.kind == "frame" or sentence.mark is None:
        return f"<p>{escape(sentence.text)}</p>"
    cited = " ".join(f"[{escape(source)}]" for source in sentence.citations)
    mark = f'<b class="{_KINDS[sentence.mark]}" title="{LEGEND[sentence.mark]}">{sentence.mark}</b>'
    passages = "".join(_passage(claims[name], cards) for name in sentence.claims)
    return f"<details><summary>{escape(sentence.text)} {mark} <small>{cited}</small></summary>{passages}</details>"


def _passage(claim: ReportClaim, cards: dict[str, SourceCard]) -> str:
    return "".join(
        f"<blockquote>{escape(span.quote)}<cite>{_named(cards[span.source])}, characters {span.start}-{span.end}"
        "</cite></blockquote>"
        for span in claim.spans
    )


def _named(card: SourceCard) -> str:
    return f"{escape(card.id)} {escape(card.title)}"


def _sources(cards: tuple[SourceCard, ...]) -> str:
    if not cards:
        return ""
    legend = " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items())
    return f'<h2>Sources</h2><ul>{"".join(map(_source, cards))}</ul><p class="note">{legend}</p>'


def _source(card: SourceCard) -> str:
    facts = f"{card.published or 'undated'}, independent group {card.group}, credibility {card.credibility:.2f}"
    return f"<li>{_named(card)}<br><small>{escape(facts)}{_link(card)}</small></li>"


def _link(card: SourceCard) -> str:
    """Pages of the web can be opened; nothing else is made a link, whatever it calls itself."""
    if not card.url.startswith(("https://", "http://")):
        return ""
    shown = card.url if len(card.url) <= 80 else f"{card.url[:79]}…"
    return f' · <a href="{escape(card.url)}" rel="noreferrer noopener nofollow">{escape(shown)}</a>'
