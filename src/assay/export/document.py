"""A report as blocks of text with notes under it: what the formats that are set on pages (PDF, DOCX) are made of.

Strings stay strings: who sets the page is handed data and never markup.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assay.export.parts import (
    LEGEND,
    SHOWN,
    address,
    backing,
    described,
    ends_body,
    paragraphs,
    printable,
    quality,
    searched,
)
from assay.model.claim import Mark
from assay.model.report import (
    Answer,
    KeyFigure,
    NotFound,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    SourceCard,
)

Look = Literal["plain", "strong", "faint"]
Place = Literal["text", "answer", "dispute", "notice", "faint"]


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    look: Look = "plain"
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Sign:
    """How well a statement is supported: ✓✓, ✓ or ⚠."""

    mark: str
    kind: Literal["sign"] = "sign"


@dataclass(frozen=True, slots=True)
class Cite:
    """Leads to a reference."""

    source: str
    number: int
    kind: Literal["cite"] = "cite"


@dataclass(frozen=True, slots=True)
class Link:
    """Leads to a page of the web."""

    url: str
    kind: Literal["link"] = "link"


@dataclass(frozen=True, slots=True)
class Note:
    """What stands at the foot of the page: the passages behind a statement."""

    lines: tuple[tuple["Text | Cite | Link", ...], ...]
    kind: Literal["note"] = "note"


Inline: TypeAlias = Text | Sign | Cite | Link | Note
Line: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True, slots=True)
class Paragraph:
    line: Line
    place: Place = "text"
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `widths` are shares of the line; without a head its first column names the rows."""

    rows: tuple[tuple[Line, ...], ...]
    widths: tuple[int, ...]
    head: tuple[str, ...] = ()
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True, slots=True)
class Reference:
    """`number` is what a Cite leads to."""

    number: int
    lines: tuple[Line, ...]
    kind: Literal["reference"] = "reference"


Block: TypeAlias = Heading | Paragraph | Grid | Reference


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    day: str  # it was finished, as 2026-11-16; empty where that is not known
    blocks: tuple[Block, ...] = field(default=())


def document(report: ReportData, remarks: Sequence[str] = ()) -> Document:
    """`remarks` are about the export itself, and stand at its end."""
    day = report.metadata.finished[:10]
    return Document(printable(report.title) or "Report", day, tuple(_Writer(report).blocks(remarks)))


class _Writer:
    """Numbers notes as they come, so that what was quoted once is referred to afterwards."""

    def __init__(self, report: ReportData) -> None:
        self.report = report
        self.claims = {claim.id: claim for claim in report.claims}
        self.cards = {card.id: card for card in report.sources}
        self.numbers = {card.id: number for number, card in enumerate(report.sources, 1)}
        self.noted: dict[str, int] = {}  # claim -> the note with its passages
        self.notes = 0

    def blocks(self, remarks: Sequence[str]) -> Iterator[Block]:
        report = self.report
        notices = [section for section in report.sections if section.role == "notice"]
        others = [section for section in report.sections if section.role != "notice"]
        if report.status is not ReportStatus.CANCELLED:
            yield Paragraph((Text(_short(report)),), "faint")
            yield from _legend(report)
            yield from self._answers(report.answers)
        for section in notices:
            yield from self._notice(section)
        for section in others:
            yield from self._section(section)
        if report.status is not ReportStatus.CANCELLED:
            yield from self._references()
            yield from _review(report)
            yield from _about(report)
        yield from (Paragraph((Text(printable(remark)),), "notice") for remark in remarks)

    # -- text ---------------------------------------------------------------------------------------------

    def _answers(self, answers: Sequence[Answer]) -> Iterator[Block]:
        """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
        yield from (Paragraph(self._answer(answer), "answer") for answer in answers if not answer.disputed)
        if disputed := [answer for answer in answers if answer.disputed]:
            line: Line = (Text("Sources disagree:", "strong"),)
            for answer in disputed:
                line = (*line, Text(" " if len(line) == 1 else "; "), *self._answer(answer))
            yield Paragraph(line, "dispute")

    def _answer(self, answer: Answer) -> Line:
        about = f" ({printable(answer.about)})" if answer.about else ""
        return (Text(printable(answer.text) + about), *self._support(answer.mark, answer.citations, answer.claims))

    def _notice(self, section: Section) -> Iterator[Block]:
        if section.title:
            yield Paragraph((Text(printable(section.title), "strong"),), "notice")
        yield from (Paragraph(self._sentence(sentence), "notice") for sentence in section.sentences)

    def _section(self, section: Section) -> Iterator[Block]:
        if section.title:
            yield Heading(printable(section.title))
        missing = self.report.not_found if section.role == "not_found" else ()
        for part in paragraphs(section.sentences):
            yield Paragraph(_joined([self._sentence(sentence) for sentence in part]))
            yield from _searched(part, missing)
        if section.role == "disagreements":
            yield from self._disputes()
        if ends_body(section, self.report):
            yield from self._figures()

    def _sentence(self, sentence: Sentence) -> Line:
        text = Text(printable(sentence.text))
        if sentence.kind == "frame":
            return (text,)
        return (text, *self._support(sentence.mark, sentence.citations, sentence.claims))

    def _support(self, mark: Mark | None, citations: Sequence[str], claims: Sequence[str]) -> Line:
        """The mark, the note with the passages, and the sources."""
        signs: Line = (Text(" "), Sign(mark)) if mark else ()
        return (*signs, *self._note(claims), *self._cited(citations))

    def _cited(self, sources: Sequence[str]) -> Iterator[Inline]:
        known = [source for source in sources if source in self.numbers]
        for at, source in enumerate(known):
            yield Text(" " if at == 0 else "\N{NARROW NO-BREAK SPACE}")
            yield Cite(source, self.numbers[source])

    def _note(self, claims: Sequence[str]) -> Iterator[Note]:
        found = [self.claims[name] for name in claims if name in self.claims and self.claims[name].spans]
        if not found:
            return
        self.notes += 1
        lines = [line for claim in found for line in self._passages(claim)]
        yield Note(tuple(lines))

    def _passages(self, claim: ReportClaim) -> Iterator[tuple[Text | Cite | Link, ...]]:
        """Word for word, once; where several sources have the same words, they are named together."""
        if claim.id in self.noted:
            yield (Text(f"{printable(claim.id)}: see note {self.noted[claim.id]}."),)
            return
        self.noted[claim.id] = self.notes
        by_quote: dict[str, list[ReportSpan]] = {}
        for span in claim.spans:
            by_quote.setdefault(printable(span.quote), []).append(span)
        for at, (quote, spans) in enumerate(by_quote.items()):
            name = (Text(f"{printable(claim.id)} ", "strong"),) if at == 0 else ()
            yield (*name, Text(f"“{quote}” "), *self._places(spans))

    def _places(self, spans: Sequence[ReportSpan]) -> Iterator[Text | Cite]:
        for at, span in enumerate(spans):
            card = self.cards.get(span.source)
            if at:
                yield Text("; ")
            if card is not None:
                yield Cite(card.id, self.numbers[card.id])
            title = f" {printable(card.title)}" if card else printable(span.source)
            yield Text(f"{title}, characters {span.start}–{span.end}", "faint")

    # -- tables and lists ---------------------------------------------------------------------------------

    def _disputes(self) -> Iterator[Block]:
        open_ones = [dispute for dispute in self.report.disputes if not dispute.resolved]
        for number, dispute in enumerate(open_ones, 1):
            for at, side in enumerate(dispute.sides, 1):
                name = f"Point {number}, view {at}" if len(open_ones) > 1 else f"View {at}"
                known = [source for source in side.sources if source in self.cards]
                more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
                titles: Line = ()
                for source in known[:SHOWN]:
                    between = (Text("; "),) if titles else ()
                    title = Text(f" {printable(self.cards[source].title)}")
                    titles = (*titles, *between, Cite(source, self.numbers[source]), title)
                yield Paragraph((Text(f"{name}: {backing(side)}: "), *titles, Text(more)), "faint")

    def _figures(self) -> Iterator[Block]:
        if self.report.figures:
            yield Heading("Key figures")
            rows = tuple(map(self._figure, self.report.figures))
            yield Grid(rows, (44, 22, 14, 20), ("What", "Value", "When", "Source"))

    def _figure(self, figure: KeyFigure) -> tuple[Line, ...]:
        """Noted only where no sentence has said the same."""
        disputed = (Text(" (disputed)", "faint"),) if figure.disputed else ()
        fresh = [name for name in figure.claims if name not in self.noted]
        return (
            (Text(printable(figure.what)),),
            (Text(printable(figure.value)), *disputed),
            (Text(printable(figure.when)),),
            self._support(figure.mark, figure.citations, fresh)[1:],
        )

    def _references(self) -> Iterator[Block]:
        if self.report.sources:
            yield Heading("References")
            yield from (_reference(number, card) for number, card in enumerate(self.report.sources, 1))


def _joined(lines: Sequence[Line]) -> Line:
    line: Line = ()
    for part in lines:
        line = (*line, Text(" "), *part) if line else part
    return line


def _short(report: ReportData) -> str:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    day = f" · {printable(report.metadata.finished[:10])}" if report.metadata.finished else ""
    return f"{report.status} · confidence {report.confidence} · {checked}{day}"


def _legend(report: ReportData) -> Iterator[Paragraph]:
    """Before the first mark."""
    if report.claims:
        signs = [(Sign(mark), Text(f" {meaning}   ")) for mark, meaning in LEGEND.items()]
        yield Paragraph(tuple(part for pair in signs for part in pair), "faint")


def _searched(part: Sequence[Sentence], missing: Sequence[NotFound]) -> Iterator[Paragraph]:
    """Beside a question nobody answered, what was done to find an answer."""
    for item in missing:
        if any(sentence.kind == "frame" and f"“{item.question}”" in sentence.text for sentence in part):
            yield Paragraph((Text(f"Searched for: {searched(item, printable)}"),), "faint")


def _reference(number: int, card: SourceCard) -> Reference:
    by = [printable(part) for part in (card.author, card.host) if part]
    named = ", ".join([printable(card.title), *by])
    lines: list[Line] = [(Text(f"{printable(card.id)} ", "strong"), Text(named))]
    lines.append((Text(printable(", ".join(described(card))), "faint"),))
    url = address(card)
    where: Line = (Link(url),) if url else (Text(printable(card.url), "faint"),)
    lines.append((*where, Text(f" · SHA-256 {printable(card.document)[:16]}…", "faint")))
    return Reference(number, tuple(lines))


def _review(report: ReportData) -> Iterator[Block]:
    """What a reviewer thought of it, and what went wrong on the way."""
    if report.review is not None and report.review.scores:
        yield Heading("Review")
        rows = [(name, f"{score:.1f} of 10") for name, score in report.review.scores.items()]
        rows += [("all", f"{report.review.score:.1f} of 10")]
        rows += [("improvement potential", f"{report.review.improvement_potential:.2f} of 1")]
        yield _named_rows(rows)
        for issue in report.review.issues:
            told = f"{issue.severity}, {printable(issue.location)}: {printable(issue.description)}"
            yield Paragraph((Text(told),), "faint")
    if report.errors:
        yield Heading("What went wrong")
        yield from (Paragraph((Text(printable(error)),)) for error in report.errors)


def _about(report: ReportData) -> Iterator[Block]:
    yield Heading("About this report")
    yield _named_rows(list(quality(report).items()))
    yield from (Paragraph((Text(printable(notice)),), "faint") for notice in report.notices)


def _named_rows(rows: Sequence[tuple[str, str]]) -> Grid:
    lines = tuple(((Text(printable(name), "strong"),), (Text(printable(value)),)) for name, value in rows)
    return Grid(lines, (28, 72))
