"""A report as one Markdown file: answers, prose with marks and citations, figures, then what all of it rests on."""

import re
from collections.abc import Iterator, Sequence

from assay.export.parts import LEGEND, SHOWN, backing, ends_body, paragraphs, quality, searched
from assay.model.report import (
    Answer,
    Dispute,
    KeyFigure,
    NotFound,
    ReportClaim,
    ReportData,
    ReportStatus,
    Section,
    Sentence,
    Side,
    SourceCard,
)

__all__ = ["LEGEND", "render", "sentence_text"]


def render(report: ReportData) -> str:
    if report.status is ReportStatus.CANCELLED:  # a reply, and nothing to tell about it
        return "\n\n".join(_section(section).strip() for section in report.sections) + "\n"
    parts = [f"# {_plain(report.title)}", *_answers(report.answers)]
    parts += [_notice(section) for section in report.sections if section.role == "notice"]
    parts += [part for section in report.sections if section.role != "notice" for part in _with_data(section, report)]
    if report.sources:
        parts += [_legend(), _sources(report), _evidence(report)]
    return "\n\n".join([*parts, *_review(report), _about(report)]) + "\n"


def _answers(answers: Sequence[Answer]) -> Iterator[str]:
    """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
    sure = [answer for answer in answers if not answer.disputed]
    disputed = [answer for answer in answers if answer.disputed]
    if sure:
        yield "\n".join(f"**Answer**: {_answer(answer)}  " for answer in sure)
    if disputed:
        yield "Sources disagree: " + "; ".join(map(_answer, disputed))


def _answer(answer: Answer) -> str:
    about = f" ({_plain(answer.about)})" if answer.about else ""
    mark = f" {answer.mark}" if answer.mark else ""
    return f"{_plain(answer.text)}{about}{mark} {_cited(answer.citations)}".rstrip()


def _with_data(section: Section, report: ReportData) -> Iterator[str]:
    """The section, and what is known about it beyond its sentences."""
    yield _section(section, report.not_found if section.role == "not_found" else ())
    if section.role == "disagreements" and (open_ones := [d for d in report.disputes if not d.resolved]):
        yield _disputes(open_ones, report)
    if report.figures and ends_body(section, report):
        yield _figures(report.figures)


def _notice(section: Section) -> str:
    """Shown as a quotation, so that it stands out."""
    lines = [f"**{_plain(section.title)}**"] if section.title else []
    return "\n>\n".join(f"> {line}" for line in (*lines, *map(sentence_text, section.sentences)))


def _section(section: Section, missing: Sequence[NotFound] = ()) -> str:
    heading = f"## {_plain(section.title)}\n\n" if section.title else ""
    return heading + "\n\n".join(
        _plain_start(" ".join([*map(sentence_text, part), *_searched(part, missing)]))
        for part in paragraphs(section.sentences)
    )


def _searched(part: Sequence[Sentence], missing: Sequence[NotFound]) -> Iterator[str]:
    """Beside a question nobody answered, what was done to find an answer."""
    for item in missing:
        if any(sentence.kind == "frame" and f"“{item.question}”" in sentence.text for sentence in part):
            yield f"Searched for: {searched(item, _plain)}"


def sentence_text(sentence: Sentence) -> str:
    if sentence.kind == "frame":
        return _plain(sentence.text)
    return f"{_plain(sentence.text)} {sentence.mark} {_cited(sentence.citations)}"


def _cited(sources: Sequence[str]) -> str:
    return "".join(f"[[{source}]](#{source.lower()})" for source in sources)


def _plain(text: str) -> str:
    """Source text is data: nothing in it may become markup."""
    text = " ".join(text.split())
    text = re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text)
    return _plain_start(text)


def _plain_start(text: str) -> str:
    return re.sub(r"^([-+]|\d+[.)])(?=\s)", r"\\\1", text)


def _figures(figures: Sequence[KeyFigure]) -> str:
    rows = "\n".join(map(_figure, figures))
    return f"## Key figures\n\n| What | Value | When | Source |\n|---|---|---|---|\n{rows}"


def _figure(figure: KeyFigure) -> str:
    disputed = " (disputed)" if figure.disputed else ""
    source = f"{figure.mark or ''} {_cited(figure.citations)}".strip()
    return f"| {_plain(figure.what)} | {_plain(figure.value)}{disputed} | {_plain(figure.when)} | {source} |"


def _disputes(disputes: Sequence[Dispute], report: ReportData) -> str:
    cards = {card.id: card for card in report.sources}
    return "\n".join(
        _side(side, f"Point {number}, view {at}" if len(disputes) > 1 else f"View {at}", cards)
        for number, dispute in enumerate(disputes, 1)
        for at, side in enumerate(dispute.sides, 1)
    )


def _side(side: Side, name: str, cards: dict[str, SourceCard]) -> str:
    titles = [f"{_plain(cards[id].title)} {_cited([id])}" for id in side.sources if id in cards]
    more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
    return f"- {name}: {backing(side)}: {'; '.join(titles[:SHOWN])}{more}"


def _legend() -> str:
    return "*" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()) + "*"


def _sources(report: ReportData) -> str:
    return "## References\n\n" + "\n".join(_source(card) for card in report.sources)


def _source(card: SourceCard) -> str:
    by = [_plain(part) for part in (card.author, card.host) if part]
    facts = [
        card.kind,
        "primary" if card.primary else "secondary",
        card.published or "undated",
        f"independent group {card.group}",
        f"credibility {card.credibility:.2f}",
    ]
    reasons = f"\n  - Credibility: {_plain('; '.join(card.credibility_reasons))}" if card.credibility_reasons else ""
    anchor = f'<a id="{card.id.lower()}"></a>'
    named = ", ".join([_plain(card.title), *by])
    return f"- {anchor}**{card.id}** {named} ({', '.join(facts)}) · {_address(card.url)}{reasons}"


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


def _review(report: ReportData) -> Iterator[str]:
    """What a reviewer thought of it, and what went wrong on the way."""
    if report.review is not None and report.review.scores:
        rows = "\n".join(f"| {_plain(name)} | {score:.1f} |" for name, score in report.review.scores.items())
        potential = f"| improvement potential | {report.review.improvement_potential:.2f} of 1 |"
        yield f"## Review\n\n| Criterion | of 10 |\n|---|---|\n{rows}\n| all | {report.review.score:.1f} |\n{potential}"
        if report.review.issues:
            yield "\n".join(
                f"- {issue.severity}, {_plain(issue.location)}: {_plain(issue.description)}"
                for issue in report.review.issues
            )
    if report.errors:
        yield "## What went wrong\n\n" + "\n".join(f"- {_plain(error)}" for error in report.errors)


def _about(report: ReportData) -> str:
    table = "\n".join(f"| {name} | {_plain(value)} |" for name, value in quality(report).items())
    notices = "".join(f"\n\n> {_plain(notice)}" for notice in report.notices)
    return f"## About this report\n\n| | |\n|---|---|\n{table}{notices}"
