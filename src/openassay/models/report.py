"""The report as a structure; Markdown, HTML and PDF are renderings of it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from openassay.models.base import Record
from openassay.models.evidence import Mark, Verdict
from openassay.models.plan import Plan
from openassay.models.spend import Spend

# What came of a thread and a person may edit and keep: texts and tables.

ArtifactKind = Literal["markdown", "table"]


def _check_surrogates(text: str) -> str:
    if any("\ud800" <= mark <= "\udfff" for mark in text):
        raise ValueError("half a character is no text")
    return text


PlainText = Annotated[str, AfterValidator(_check_surrogates)]
Cell = PlainText | bool | int | FiniteFloat | None
MOST_COLUMNS, MOST_ROWS = 200, 20_000


class Column(Record):
    key: PlainText = Field(max_length=80)
    title: PlainText = Field(max_length=200)


class ArtifactTable(Record):
    columns: tuple[Column, ...] = Field(max_length=MOST_COLUMNS)
    rows: tuple[tuple[Cell, ...], ...] = Field(default=(), max_length=MOST_ROWS)

    @model_validator(mode="after")
    def _check_shape(self) -> "ArtifactTable":
        if len({column.key for column in self.columns}) < len(self.columns):
            raise ValueError("two columns have the same key")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row has a cell for each column")
        return self


class Artifact(Record):
    """One version of it. `content` is Markdown, or a table as JSON; `author` is nobody where OpenAssay has made it."""

    thread: str
    name: str
    version: int
    kind: ArtifactKind
    title: str
    content: str
    created: datetime
    author: str = ""


MAX_ARTIFACTS = 100  # of one thread


class ArtifactDraft(NamedTuple):
    """A version to be written; `author` is empty for one that OpenAssay makes."""

    name: str
    kind: ArtifactKind
    title: str
    content: str
    author: str = ""


# Notices of a report in a person's own words begin with these.
CONSIDERATION_PREFIX = "Taken into account:"
REVIEWER_PREFIX = "The reviewer said:"


class ReportStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    NO_DATA = "no_data"
    CANCELLED = "cancelled"


SectionRole = Literal["abstract", "body", "disagreements", "not_found", "conclusion", "notice"]
Level = Literal["high", "medium", "low"]


Operation = Literal["sum", "difference", "ratio", "share", "percent_change", "count", "days"]


class DerivedFigure(Record):
    """A figure that stands in no passage, and how it comes about. Shares and changes are in per cent; days lie between
    two dates, as 2024-04-09; what is counted is named by claims or in their words."""

    value: float
    operation: Operation | Literal["average"]  # which only a short answer has: no sentence may compute one
    operands: tuple[float | str, ...] = Field(max_length=40)


class TableCell(Record):
    """Where a sentence stands in a table of its section, and what it says there. Without a column it is an entry of a
    timeline, and its row a time. Cells that follow each other make one table."""

    row: str
    column: str = ""
    text: str
    rows: str = ""  # what its table calls its rows


class Sentence(Record):
    """`fact` states something about the world and is bound to claims, `synthesis` follows from two or more of them,
    and `frame` speaks of the research."""

    text: str
    kind: Literal["fact", "synthesis", "frame"]
    claims: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    cited_beside: bool = False  # facts of its paragraph or section show its citations, and it need not
    mark: Mark | None = None
    derived: tuple[DerivedFigure, ...] = ()
    opens: bool = False  # begins a paragraph
    item: bool = False  # begins an item of a list, which goes on to the next that opens a paragraph, an item or a table
    lead: str = ""  # the beginning of its text, shown in bold
    cell: TableCell | None = None  # its text says by itself what the cell says in its place

    @property
    def visible_citations(self) -> tuple[str, ...]:
        """The sources that are named beside it where it is shown."""
        return () if self.cited_beside else self.citations

    @property
    def visible_text(self) -> str:
        """What stands where it is shown: in a table its cell, which row and column complete."""
        return self.cell.text if self.cell else self.text

    def split_lead(self) -> tuple[str, str]:
        """Part what stands where it is shown into the words in bold and the others; a cell has no lead, and neither has
        a text that does not begin with it."""
        lead = "" if self.cell or not self.text.startswith(self.lead) else self.lead.rstrip()
        return lead, self.visible_text.removeprefix(lead)


def split_paragraphs(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Yield each paragraph, each item of a list, and each cell by itself."""
    part: list[Sentence] = []
    for sentence in sentences:
        if part and (sentence.opens or sentence.item or sentence.cell or part[0].cell):
            yield part
            part = []
        part.append(sentence)
    if part:
        yield part


class Section(Record):
    title: str
    role: SectionRole = "body"
    sentences: tuple[Sentence, ...] = ()


class ShortAnswer(Record):
    """What a pointed question asks for, in a source's own words: at most twelve of them. A figure that stands in none
    says in `derived` how it comes about."""

    text: str
    derived: tuple[DerivedFigure, ...] = ()
    claims: tuple[str, ...]
    citations: tuple[str, ...] = ()
    mark: Mark | None = None
    about: str = ""  # whom or what it is true of, where the question fits several
    disputed: bool = False  # sources disagree on it: shown, not asserted


class KeyFigure(Record):
    """A row of the table of key figures; value and period are spelled as in the passage."""

    what: str
    value: str
    when: str = ""
    claims: tuple[str, ...]
    citations: tuple[str, ...] = ()
    mark: Mark | None = None
    disputed: bool = False


class DisputeSide(Record):
    """One side of a dispute: who says so, copies counted once."""

    claims: tuple[str, ...]
    sources: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Dispute(Record):
    about: str
    sides: tuple[DisputeSide, ...]
    resolved: bool = False  # then the first side is the one that stands
    resolution: str = ""  # why, or why not


class OpenSubQuestion(Record):
    """A sub-question without an answer, and what was done to find one."""

    question: str
    queries: tuple[str, ...] = ()
    documents: int = 0  # read for it
    reason: str = ""


class ReportSpan(Record):
    source: str
    document: str
    start: int
    end: int
    quote: str


class ReportContext(Record):
    """What a source says of itself, and a claim rests on besides its spans."""

    source: str
    field: str
    value: str


class ReportClaim(Record):
    id: str
    text: str
    verdict: Verdict
    confidence: float
    mark: Mark | None = None
    spans: tuple[ReportSpan, ...] = ()
    context: tuple[ReportContext, ...] = ()
    against: tuple[ReportSpan, ...] = ()
    reasons: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    disputed_by: tuple[str, ...] = ()
    superseded_by: str | None = None


class SourceCard(Record):
    id: str
    title: str
    url: str
    document: str
    group: str
    why_used: str
    host: str = ""
    kind: str = "document"
    author: str | None = None
    publisher: str | None = None
    published: str | None = None
    primary: bool = False
    credibility: float = Field(default=0.5, ge=0, le=1)
    credibility_reasons: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()  # sources it is one with: a copy, or the same publisher; they count once

    @property
    def place(self) -> str:
        """Where it appeared."""
        return self.publisher or self.host


class Coverage(Record):
    """Statements drafted, and how many of them a span was found for."""

    checked: int = 0
    total: int = 0


class Issue(Record):
    category: Literal["accuracy", "completeness", "coherence", "citation", "methodology", "style"]
    severity: Literal["critical", "major", "minor", "suggestion"]
    location: str
    description: str
    fix: str = ""


class Critique(Record):
    scores: dict[str, float]
    score: float = Field(ge=0, le=10)
    issues: tuple[Issue, ...] = ()
    recommendation: Literal["approve", "revise", "reject"]
    improvement_potential: float = Field(default=0.0, ge=0, le=1)
    searches: dict[str, tuple[str, ...]] = {}  # by sub-question: what could be searched for, where a part is missing


Basis = Literal["report", "draft", "analysis", "results", "nothing"]  # what a report, or its fallback, is made of


class Metadata(Record):
    iterations: int = 1
    rounds: int = 1
    score: float = 0.0
    sources: int = 0
    words: int = 0
    started: str = ""
    finished: str = ""
    seconds: float = 0.0
    settings: str = ""  # hash of the settings that were used
    version: str = ""
    reasoning: dict[str, int] = {}  # steps each reasoner did; empty without a language model


class Provenance(Record):
    question: str
    sub_questions: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    thread: str = ""
    run: str = ""


class ReportData(Record):
    question: str
    title: str
    status: ReportStatus
    confidence: Level = "low"
    confidence_score: float = Field(default=0.0, ge=0, le=1)
    plan: Plan | None = None
    basis: Basis = "report"
    answers: tuple[ShortAnswer, ...] = ()
    sections: tuple[Section, ...] = ()
    figures: tuple[KeyFigure, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    not_found: tuple[OpenSubQuestion, ...] = ()
    claims: tuple[ReportClaim, ...] = ()
    sources: tuple[SourceCard, ...] = ()
    coverage: Coverage = Coverage()
    hallucination_score: float = Field(default=0.0, ge=0, le=1)
    review: Critique | None = None
    issues: tuple[Issue, ...] = ()
    errors: tuple[str, ...] = ()  # the last ones, where something failed on the way
    notices: tuple[str, ...] = ()
    spend: Spend = Spend()
    metadata: Metadata = Metadata()
    provenance: Provenance
