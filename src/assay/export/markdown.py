"""A report as one Markdown file: answers, prose with marks and citations, figures, then what all of it rests on.

A dialect says what is markup, how a source is cited, and what can be led to; the rest is the same in all of them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from assay.export.parts import LEGEND, SHOWN, backing, described, ends_body, paragraphs, quality, searched
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

__all__ = ["Dialect", "render", "slug"]


def render(report: ReportData) -> str:
    return Dialect(report).body()


def slug(id: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", id.lower()).strip("-") or "source"


class Dialect:
    """CommonMark with the tables of GitHub."""

    special: ClassVar[re.Pattern[str]] = re.compile(r"([\\`*_\[\]<>|#~]|&(?=#?\w+;))")
    # What makes a list, or a rule, of a line.
    start: ClassVar[re.Pattern[str]] = re.compile(r"^(\d*)([-+](?=[\s-]|$)|(?<=\d)[.)](?=\s|$))")

    def __init__(self, report: ReportData) -> None:
        self.report = report

    # -- what differs -------------------------------------------------------------------------------------

    def cited(self, sources: Sequence[str]) -> str:
        return "".join(f"[[{self.plain(source)}]](#{slug(source)})" for source in sources)

    def anchored(self, id: str, text: str) -> str:
        """An item that citations lead to."""
        return f'<a id="{slug(id)}"></a>{text}'

    def named(self, id: str, text: str) -> str:
        """An item that others may want to lead to."""
        return text

    def references(self) -> str:
        return "## References\n\n" + "\n".join(map(self._source, self.report.sources))

    def plain(self, text: str) -> str:
        """Source text is data: nothing in it may become markup."""
        return self._plain_start(self.special.sub(r"\\\1", " ".join(text.split())))

    def _plain_start(self, text: str) -> str:
        return self.start.sub(r"\1\\\2", text)

    # -- the page -----------------------------------------------------------------------------------------

    def body(self) -> str:
        report = self.report
        if report.status is ReportStatus.CANCELLED:  # a reply, and nothing to tell about it
            return "\n\n".join(self._section(section).strip() for section in report.sections) + "\n"
        parts = [f"# {self.plain(report.title)}", *self._answers(report.answers)]
        parts += [self._notice(section) for section in report.sections if section.role == "notice"]
        others = [section for section in report.sections if section.role != "notice"]
        parts += [part for section in others for part in self._with_data(section)]
        if report.sources:
            parts += [_legend(), self.references(), self._evidence()]
        return "\n\n".join([*parts, *self._review(), self._about()]) + "\n"

    def _answers(self, answers: Sequence[Answer]) -> Iterator[str]:
        """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
        sure = [answer for answer in answers if not answer.disputed]
        disputed = [answer for answer in answers if answer.disputed]
        if sure:
            yield "\n".join(f"**Answer**: {self._answer(answer)}  " for answer in sure)
        if disputed:
            yield "Sources disagree: " + "; ".join(map(self._answer, disputed))

    def _answer(self, answer: Answer) -> str:
        about = f" ({self.plain(answer.about)})" if answer.about else ""
        mark = f" {answer.mark}" if answer.mark else ""
        return f"{self.plain(answer.text)}{about}{mark} {self.cited(answer.citations)}".rstrip()

    def _with_data(self, section: Section) -> Iterator[str]:
        """The section, and what is known about it beyond its sentences."""
        report = self.report
        yield self._section(section, report.not_found if section.role == "not_found" else ())
        if section.role == "disagreements" and (open_ones := [d for d in report.disputes if not d.resolved]):
            yield self._disputes(open_ones)
        if report.figures and ends_body(section, report):
            yield self._figures(report.figures)

    def _notice(self, section: Section) -> str:
        """Shown as a quotation, so that it stands out."""
        lines = [f"**{self.plain(section.title)}**"] if section.title else []
        return "\n>\n".join(f"> {line}" for line in (*lines, *map(self._sentence, section.sentences)))

    def _section(self, section: Section, missing: Sequence[NotFound] = ()) -> str:
        heading = f"## {self.plain(section.title)}\n\n" if section.title else ""
        return heading + "\n\n".join(
            self._plain_start(" ".join([*map(self._sentence, part), *self._searched(part, missing)]))
            for part in paragraphs(section.sentences)
        )

    def _searched(self, part: Sequence[Sentence], missing: Sequence[NotFound]) -> Iterator[str]:
        """Beside a question nobody answered, what was done to find an answer."""
        for item in missing:
            if any(sentence.kind == "frame" and f"“{item.question}”" in sentence.text for sentence in part):
                yield f"Searched for: {searched(item, self.plain)}"

    def _sentence(self, sentence: Sentence) -> str:
        if sentence.kind == "frame":
            return self.plain(sentence.text)
        return f"{self.plain(sentence.text)} {sentence.mark} {self.cited(sentence.citations)}"

    # -- tables and lists ---------------------------------------------------------------------------------

    def _figures(self, figures: Sequence[KeyFigure]) -> str:
        rows = "\n".join(map(self._figure, figures))
        return f"## Key figures\n\n| What | Value | When | Source |\n|---|---|---|---|\n{rows}"

    def _figure(self, figure: KeyFigure) -> str:
        disputed = " (disputed)" if figure.disputed else ""
        source = f"{figure.mark or ''} {self.cited(figure.citations)}".strip()
        value = f"{self.plain(figure.value)}{disputed}"
        return f"| {self.plain(figure.what)} | {value} | {self.plain(figure.when)} | {source} |"

    def _disputes(self, disputes: Sequence[Dispute]) -> str:
        cards = {card.id: card for card in self.report.sources}
        return "\n".join(
            self._side(side, f"Point {number}, view {at}" if len(disputes) > 1 else f"View {at}", cards)
            for number, dispute in enumerate(disputes, 1)
            for at, side in enumerate(dispute.sides, 1)
        )

    def _side(self, side: Side, name: str, cards: dict[str, SourceCard]) -> str:
        titles = [f"{self.plain(cards[id].title)} {self.cited([id])}" for id in side.sources if id in cards]
        more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
        return f"- {name}: {backing(side)}: {'; '.join(titles[:SHOWN])}{more}"

    def _source(self, card: SourceCard) -> str:
        by = [self.plain(part) for part in (card.author, card.host) if part]
        facts = ", ".join(map(self.plain, described(card)))
        reasons = self.plain("; ".join(card.credibility_reasons))
        named = ", ".join([self.plain(card.title), *by])
        line = self.anchored(card.id, f"**{self.plain(card.id)}** {named} ({facts}) · {_address(card.url)}")
        return f"- {line}" + (f"\n  - Credibility: {reasons}" if reasons else "")

    def _evidence(self) -> str:
        sections = self.report.sections
        published = {name for section in sections for sentence in section.sentences for name in sentence.claims}
        return "## Evidence\n\n" + "\n\n".join(self._claim(one) for one in self.report.claims if one.id in published)

    def _claim(self, claim: ReportClaim) -> str:
        spans = "\n".join(
            f"  - {self.plain(span.source)}, characters {span.start}-{span.end} of `{_digits(span.document)}`: "
            f"“{self.plain(span.quote)}”"
            for span in claim.spans
        )
        disputed = f" (disputed by {', '.join(map(self.plain, claim.disputed_by))})" if claim.disputed_by else ""
        line = f"**{self.plain(claim.id)}** {claim.mark} confidence {claim.confidence:.2f}{disputed}"
        return f"- {self.named(claim.id, line)}\n{spans}"

    def _review(self) -> Iterator[str]:
        """What a reviewer thought of it, and what went wrong on the way."""
        review = self.report.review
        if review is not None and review.scores:
            rows = "\n".join(f"| {self.plain(name)} | {score:.1f} |" for name, score in review.scores.items())
            rows += (
                f"\n| all | {review.score:.1f} |\n| improvement potential | {review.improvement_potential:.2f} of 1 |"
            )
            yield f"## Review\n\n| Criterion | of 10 |\n|---|---|\n{rows}"
            if review.issues:
                yield "\n".join(
                    f"- {issue.severity}, {self.plain(issue.location)}: {self.plain(issue.description)}"
                    for issue in review.issues
                )
        if self.report.errors:
            yield "## What went wrong\n\n" + "\n".join(f"- {self.plain(error)}" for error in self.report.errors)

    def _about(self) -> str:
        table = "\n".join(f"| {name} | {self.plain(value)} |" for name, value in quality(self.report).items())
        notices = "".join(f"\n\n> {self.plain(notice)}" for notice in self.report.notices)
        return f"## About this report\n\n| | |\n|---|---|\n{table}{notices}"


def _legend() -> str:
    return "*" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()) + "*"


def _digits(hash: str) -> str:
    return re.sub(r"\W+", "", hash)[:12]


def _address(url: str) -> str:
    """A link only where it can do nothing but open a page."""
    address = re.sub(r"[\s<>`]", lambda match: f"%{ord(match.group()):02X}", url)
    return f"<{address}>" if re.match(r"(?:https?|file|demo):", address) else f"`{address}`"
