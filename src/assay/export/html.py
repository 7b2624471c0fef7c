"""A report as a fragment of HTML for notebooks: statements open their passages, no script, nothing remote."""

from html import escape
from string import Template

from assay.model.report import ReportClaim, ReportData, Section, Sentence, SourceCard

_STYLE = (
    ".assay{font:16px/1.5 system-ui,sans-serif;max-width:46rem}.assay summary{cursor:pointer;list-style:none}"
    ".assay blockquote{margin:.3rem 0 .3rem 1rem;padding-left:.7rem;border-left:3px solid #999;color:#444}"
    ".assay .mark{color:#2a7d2a}.assay .single{color:#b25e00}.assay small{color:#666}"
)
_PAGE = Template(
    '<div class="assay"><style>$style</style><h1>$title</h1>$sections<h2>Sources</h2><ol>$sources</ol>'
    "<p><small>$about</small></p></div>"
)


def render(report: ReportData) -> str:
    claims = {claim.id: claim for claim in report.claims}
    return _PAGE.substitute(
        style=_STYLE,
        title=escape(report.title),
        sections="".join(_section(section, claims) for section in report.sections),
        sources="".join(_source(card) for card in report.sources),
        about=f"{report.coverage.checked} of {report.coverage.total} checked, confidence {report.confidence}",
    )


def _source(card: SourceCard) -> str:
    facts = f"{escape(card.published or 'undated')}, independent group {card.group}"
    return f"<li value={card.id[1:]}>{escape(card.title)} <small>{facts}</small></li>"


def _section(section: Section, claims: dict[str, ReportClaim]) -> str:
    heading = f"<h2>{escape(section.title)}</h2>" if section.title else ""
    return heading + "".join(_sentence(sentence, claims) for sentence in section.sentences)


def _sentence(sentence: Sentence, claims: dict[str, ReportClaim]) -> str:
    if sentence.kind == "frame":
        return f"<p>{escape(sentence.text)}</p>"
    cited = " ".join(f"[{source}]" for source in sentence.citations)
    kind = "single" if sentence.mark == "⚠" else "mark"
    passages = "".join(
        f"<blockquote>{escape(span.quote)} <small>{span.source}</small></blockquote>"
        for name in sentence.claims
        for span in claims[name].spans
    )
    summary = f"{escape(sentence.text)} <span class={kind}>{sentence.mark}</span> <small>{cited}</small>"
    return f"<details><summary>{summary}</summary>{passages}</details>"
