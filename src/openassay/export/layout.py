"""What every rendering of a report shows, before it is markup; and the tables of a report, as CSV and Markdown."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from openassay.models.evidence import Mark
from openassay.models.report import (
    ArtifactTable,
    Basis,
    Cell,
    Column,
    ReportData,
    Section,
    Sentence,
    SourceCard,
    split_paragraphs,
)

LEGEND = {
    Mark.CORROBORATED: "two or more independent sources agree",
    Mark.VERIFIED: "one credible source",
    Mark.SINGLE: "one source only",
}
FIGURE_COLUMNS = ("What", "Value", "When", "Source")
FOLLOWS = "Follows from several statements of the sources taken together"


def explain_signs(report: ReportData) -> list[tuple[str, str]]:
    """The signs beside the statements of a report, and what they mean."""
    signs = [(str(mark), meaning) for mark, meaning in LEGEND.items()]
    drawn = any(sentence.kind == "synthesis" for section in report.sections for sentence in section.sentences)
    meaning = "follows from several of these taken together; without a source, from what its paragraph cites"
    return [*signs, ("∴", meaning)] if drawn else signs


MAX_TITLES = 4  # behind one side of a dispute
MAX_ACCENTS = 5  # above and below one letter; no script has more
# What no page can show, XML may not hold, or turns the text around it: controls, halves of characters, directions.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\ufeff]"
)
_BASES: dict[Basis, str] = {
    "report": "a finished report",
    "draft": "the last draft, which was not finished",
    "analysis": "verified statements; no draft was finished",
    "results": "what was found; nothing was verified in time",
    "nothing": "nothing usable was found",
}


class ReportLayout:
    """The parts of a report; a renderer of a format inherits from it, and says how text is escaped."""

    def __init__(self, report: ReportData) -> None:
        self.report = report
        self.claims = {claim.id: claim for claim in report.claims}
        self.cards = {card.id: card for card in report.sources}
        self.numbers = {card.id: number for number, card in enumerate(report.sources, 1)}
        # Of what sources disagree on, no side comes first.
        self.answers = [answer for answer in report.answers if not answer.disputed]
        self.disputed = [answer for answer in report.answers if answer.disputed]
        self.sections = sorted(report.sections, key=lambda section: section.role != "notice")
        self.checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
        self.issues = report.review.issues if report.review and report.review.scores else ()

    def escape(self, text: str) -> str:
        """Return a text in which nothing is markup; a format without markup leaves it as it is."""
        return text

    def shows_figures(self, section: Section) -> bool:
        """Tell whether the key figures come next: after the last section of the body, else after the first of all."""
        bodies = [own for own in self.report.sections if own.role == "body"]
        return bool(self.report.figures) and section is (bodies[-1] if bodies else self.report.sections[0])

    def list_dispute_sides(self) -> Iterator[tuple[str, list[SourceCard], str]]:
        """Yield each side of the open disputes: its name, sources, and a word on the others; copies count as one."""
        disputes = [dispute for dispute in self.report.disputes if not dispute.resolved]
        for number, dispute in enumerate(disputes, 1):
            for position, side in enumerate(dispute.sides, 1):
                name = f"Point {number}, view {position}" if len(disputes) > 1 else f"View {position}"
                support = f"{len(side.groups)} independent source{'s' * (len(side.groups) != 1)}"
                known = [self.cards[source] for source in side.sources if source in self.cards]
                others = f" and {len(known) - MAX_TITLES} more" if len(known) > MAX_TITLES else ""
                yield f"{name}: {support}: ", known[:MAX_TITLES], others

    def list_searches(self, paragraph: Sequence[Sentence], section: Section) -> Iterator[str]:
        """Yield what was done to answer the sub-questions that a paragraph says were not answered."""
        for missing in self.report.not_found if section.role == "not_found" else ():
            if any(sentence.kind == "frame" and f"“{missing.question}”" in sentence.text for sentence in paragraph):
                queries = ", ".join(f"“{self.escape(query)}”" for query in missing.queries) or "nothing"
                read = f"{missing.documents} document{'s' * (missing.documents != 1)} read for it"
                reason = f"; {self.escape(missing.reason)}" if missing.reason else ""
                yield f"Searched for: {queries}; {read}{reason}."

    def list_scores(self) -> list[tuple[str, str]]:
        """Return the criteria of the review with their scores; empty where there was no review."""
        review = self.report.review
        if review is None or not review.scores:
            return []
        return [
            *((name, f"{score:.1f} of 10") for name, score in review.scores.items()),
            ("all", f"{review.score:.1f} of 10"),
            ("improvement potential", f"{review.improvement_potential:.2f} of 1"),
        ]

    def describe_quality(self) -> dict[str, str]:
        """Say how sure a report is and how it was made."""
        report = self.report
        data, made = report.metadata, report.provenance
        return {
            "Status": report.status,
            "Confidence": f"{report.confidence} ({report.confidence_score:.2f})",
            "Made of": _BASES[report.basis],
            "Statements checked": f"{report.coverage.checked} of {report.coverage.total}",
            "Hallucination score": f"{report.hallucination_score:.2f}",
            "Review": f"{data.score:.1f} of 10 after {data.iterations} draft{'s' * (data.iterations != 1)}",
            "Sources": f"{data.sources} in {len({card.group for card in report.sources})} independent groups",
            "Research": f"{len(made.sub_questions)} sub-questions, {len(made.queries)} queries, {data.rounds} rounds",
            "Words": str(data.words),
            "Reasoning": ", ".join(f"{who} ({steps} steps)" for who, steps in data.reasoning.items()) or "embedded",
            "Spent": f"${report.spend.usd:.4f}, {report.spend.tokens:,} tokens, {report.spend.requests:,} requests",
            "Finished": f"{data.finished} in {data.seconds:.1f} s",
            "Thread": f"{made.thread} (run {made.run}, settings {data.settings}, OpenAssay {data.version})",
        }


class Paragraph(NamedTuple):
    sentences: list[Sentence]


class BulletList(NamedTuple):
    items: list[list[Sentence]]


class SentenceTable(NamedTuple):
    """A table or timeline: the title of each column, the first of which names the rows, and the rows, each with its
    name and, for each of the other columns, what stands there."""

    titles: list[str]
    rows: dict[str, list[list[Sentence]]]


def split_blocks(sentences: Sequence[Sentence]) -> Iterator[Paragraph | BulletList | SentenceTable]:
    """Yield the paragraphs, lists and tables of a section, where they stand."""
    for kind, group in groupby(split_paragraphs(sentences), key=_tell_kind):
        parts = list(group)
        if kind == "list":
            yield BulletList(parts)
        elif kind == "text":
            yield from map(Paragraph, parts)
        else:
            yield _build_sentence_table([sentence for part in parts for sentence in part])


def _tell_kind(part: Sequence[Sentence]) -> Literal["text", "list", "table", "timeline"]:
    first = part[0]
    if first.cell:
        return "table" if first.cell.column else "timeline"
    return "list" if first.item else "text"


def _build_sentence_table(sentences: Sequence[Sentence]) -> SentenceTable:
    placed = [(sentence, sentence.cell) for sentence in sentences if sentence.cell]
    columns = list(dict.fromkeys(cell.column for _, cell in placed))
    rows: dict[str, list[list[Sentence]]] = {}
    for sentence, cell in placed:
        rows.setdefault(cell.row, [[] for _ in columns])[columns.index(cell.column)].append(sentence)
    name = next((cell.rows for _, cell in placed if cell.rows), "")
    return SentenceTable(["When", "What"] if columns == [""] else [name, *columns], rows)


def to_printable(text: str) -> str:
    """Return the text as one line that can be set on paper."""
    line = " ".join(_UNPRINTABLE.sub("", " ".join(text.split())).split())
    if line.isascii():
        return line
    characters, accents = [], 0
    for character in line:  # accents that are heaped on a letter would cover the lines around it
        accents = accents + 1 if unicodedata.category(character) == "Mn" else 0
        if accents <= MAX_ACCENTS:
            characters.append(character)
    return "".join(characters)


def get_web_address(card: SourceCard) -> str:
    """Return the address of a web page; empty for every other source, whatever it calls itself."""
    return card.url if card.url.startswith(("https://", "http://")) else ""


def describe_source(card: SourceCard) -> list[str]:
    """Say what a source is, how old, and how much it can be relied on."""
    return [
        card.kind,
        "primary" if card.primary else "secondary",
        card.published or "undated",
        f"independent group {card.group}",
        f"credibility {card.credibility:.2f}",
    ]


# Tables of a report, written as CSV for spreadsheets and as Markdown for people.

# What a spreadsheet takes for a formula, also in wide characters; a plain number is none.
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*%?")


def build_claims_table(report: ReportData) -> ArtifactTable:
    """Build a matrix with a row for each statement and a column for each source."""
    sources = [card.id for card in report.sources]
    rows = []
    for claim in report.claims:
        stances = {span.source: "for" for span in claim.spans} | {span.source: "against" for span in claim.against}
        fields = (claim.id, claim.text, claim.verdict, claim.mark, round(claim.confidence, 2))
        rows.append((*fields, *(stances.get(source, "") for source in sources)))
    fixed = "id: Id, statement: Statement, verdict: Verdict, mark: Mark, confidence: Confidence"
    return build_table(", ".join([fixed, *(f"{source}: {source}" for source in sources)]), rows)


def render_claims_csv(report: ReportData) -> str:
    """Write the statements of a report, with the sources for and against each, as CSV."""
    return as_csv(build_claims_table(report))


def build_table(columns: str, rows: Iterable[tuple[Cell, ...]]) -> ArtifactTable:
    """Build a table whose columns are given as "key: Title, key: Title"."""
    pairs = (column.split(": ") for column in columns.split(", "))
    return ArtifactTable(columns=tuple(Column(key=key, title=title) for key, title in pairs), rows=tuple(rows))


def as_csv(table: ArtifactTable) -> str:
    """Write RFC 4180; a cell that a spreadsheet would calculate is marked as text by an apostrophe."""
    file = io.StringIO()
    for row in _format_rows(table):
        cells = (f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text for text in row)
        csv.writer(file, lineterminator="\r\n").writerow(cells)
    return file.getvalue()


def as_markdown(table: ArtifactTable) -> str:
    """Write a table as GitHub's Markdown has it; nothing in a cell becomes markup."""
    lines = [
        "| " + " | ".join(re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split())) for text in row) + " |"
        for row in _format_rows(table)
    ]
    return "\n".join([lines[0], "|" + "|".join(["---"] * len(table.columns)) + "|", *lines[1:]]) + "\n"


def _format_rows(table: ArtifactTable) -> Iterable[list[str]]:
    """Yield the titles of the columns, then the rows, as text."""
    yield [column.title for column in table.columns]
    words = {None: "", True: "yes", False: "no"}
    for row in table.rows:
        yield [words[cell] if cell is None or isinstance(cell, bool) else str(cell) for cell in row]
