"""A report as one Markdown file: text with marks and citations, then sources, evidence and how it was made."""

import re
from collections.abc import Iterator

from assay.model.claim import Mark
from assay.model.report import ReportClaim, ReportData, ReportStatus, Section, Sentence, SourceCard

LEGEND = {
    Mark.CORROBORATED: "two or more independent sources agree",
    Mark.VERIFIED: "one credible source",
    Mark.SINGLE: "one source only",
}


def render(report: ReportData) -> str:
    if report.status is ReportStatus.CANCELLED:  # a reply, and nothing to tell about it
        return "\n\n".join(_section(section).strip() for section in report.sections) + "\n"
    parts = [f"# {_plain(report.title)}", *(_section(section) for section in report.sections)]
    if report.sources:
        parts += [_legend(), _sources(report), _evidence(report)]
    return "\n\n".join([*parts, _about(report)]) + "\n"


def _section(section: Section) -> str:
    heading = f"## {_plain(section.title)}\n\n" if section.title else ""
    return heading + "\n\n".join(_paragraphs(section))


def _paragraphs(section: Section) -> Iterator[str]:
    """An abstract is one paragraph; elsewhere a statement has its own, so that its mark can be found."""
    lines = [sentence_text(sentence) for sentence in section.sentences]
    yield " ".join(lines) if section.role in ("abstract", "conclusion") else "\n".join(_listed(section, lines))


def _listed(section: Section, lines: list[str]) -> Iterator[str]:
    for sentence, line in zip(section.sentences, lines, strict=True):
        yield (
            f"- {line}"
            if sentence.kind == "fact"
            else f"\n{line}\n"
            if section.role == "disagreements"
            else f"{line}\n"
        )


def sentence_text(sentence: Sentence) -> str:
    if sentence.kind == "frame":
        return _plain(sentence.text)
    cited = "".join(f"[[{source}]](#{source.lower()})" for source in sentence.citations)
    return f"{_plain(sentence.text)} {sentence.mark} {cited}"


def _plain(text: str) -> str:
    """Source text is data: nothing in it may become markup."""
    text = " ".join(text.split())
    text = re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
    return re.sub(r"^([-+]|\d+[.)])(?=\s)", r"\\\1", text)


def _legend() -> str:
    return "*" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()) + "*"


def _sources(report: ReportData) -> str:
    return "## Sources\n\n" + "\n".join(_source(card) for card in report.sources)


def _source(card: SourceCard) -> str:
    facts = [
        card.kind,
        card.published or "undated",
        f"independent group {card.group}",
        f"credibility {card.credibility:.2f}",
    ]
    facts += ["primary"] if card.primary else []
    anchor = f'<a id="{card.id.lower()}"></a>'
    return f"- {anchor}**{card.id}** {_plain(card.title)} ({', '.join(facts)}) · {_address(card.url)}"


def _address(url: str) -> str:
    """A link only where it can do nothing but open a page."""
    address = re.sub(r"[\s<>`]", lambda match: f"%{ord(match.group()):02X}", url)
    return f"<{address}>" if re.match(r"(?:https?|file|demo):", address) else f"`{address}`"


def _evidence(report: ReportData) -> str:
    published = {name for section in report.sections for sentence in section.sentences for name in sentence.claims}
    return "## Evidence\n\n" + "\n\n".join(_claim(claim) for claim in report.claims if claim.id in published)


def _claim(claim: ReportClaim) -> str:
    spans = "\n".join(
        f"  - {span.source}, characters {span.start}-{span.end} of `{span.document[:12]}`: “{_plain(span.quote)}”"
        for span in claim.spans
    )
    disputed = f" (disputed by {', '.join(claim.disputed_by)})" if claim.disputed_by else ""
    return f"- **{claim.id}** {claim.mark} confidence {claim.confidence:.2f}{disputed}\n{spans}"


def _about(report: ReportData) -> str:
    data, made = report.metadata, report.provenance
    rows = {
        "Status": report.status,
        "Confidence": f"{report.confidence} ({report.confidence_score:.2f})",
        "Statements checked": f"{report.coverage.checked} of {report.coverage.total}",
        "Hallucination score": f"{report.hallucination_score:.2f}",
        "Review": f"{data.score:.1f} of 10 after {data.iterations} draft{'s' * (data.iterations != 1)}",
        "Sources": f"{data.sources} in {len({card.group for card in report.sources})} independent groups",
        "Research": f"{len(made.sub_questions)} sub-questions, {len(made.queries)} queries, {data.rounds} rounds",
        "Words": str(data.words),
        "Reasoning": ", ".join(f"{who} ({steps} steps)" for who, steps in data.reasoning.items()) or "embedded",
        "Spent": f"${report.spend.usd:.4f}, {report.spend.tokens:,} tokens, {report.spend.requests:,} requests",
        "Finished": f"{data.finished} in {data.seconds:.1f} s",
        "Thread": f"{made.thread} (run {made.run}, settings {data.settings}, Assay {data.version})",
    }
    table = "\n".join(f"| {name} | {_plain(str(value))} |" for name, value in rows.items())
    notices = "".join(f"\n\n> {_plain(notice)}" for notice in report.notices)
    return f"## About this report\n\n| | |\n|---|---|\n{table}{notices}"
