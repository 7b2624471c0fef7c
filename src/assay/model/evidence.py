"""Verbatim evidence: spans of snapshots and what they answer."""

from pydantic import Field, model_validator

from assay.model.record import Record

ANSWERED = 0.35  # confidence from which on a sub-question counts as answered


class Span(Record):
    document: str
    start: int = Field(ge=0)
    end: int
    quote: str

    @model_validator(mode="after")
    def _as_long_as_its_quote(self) -> "Span":
        if self.end - self.start != len(self.quote):
            raise ValueError("a span is as long as its quote")
        return self


class Finding(Record):
    """A quote that bears on one sub-question."""

    id: str
    question: str
    span: Span
    relevance: float = Field(ge=0, le=1)


class Gap(Record):
    section: str
    severity: str = Field(pattern="^(minor|major)$")
    question: str


class Disagreement(Record):
    """Two or more findings on one matter that cannot all hold."""

    about: str
    sides: tuple[tuple[str, ...], ...]  # finding ids, one tuple a side
    resolution: str  # why it is settled, or why not
    resolved: bool = False
    backing: tuple[int, ...] = ()  # independent sources behind each side; empty: not counted


class KeyFinding(Record):
    finding: str
    grade: str = Field(pattern="^(strong|moderate|weak|gap)$")


class Theme(Record):
    title: str
    findings: tuple[str, ...]
    sources: int


class Analysis(Record):
    """What a round of reading has brought, and whether another is worth it."""

    section_confidence: dict[str, float]
    confidence: float = Field(ge=0, le=1)
    previous_confidence: float = Field(default=0.0, ge=0, le=1)
    key_findings: tuple[KeyFinding, ...] = ()
    themes: tuple[Theme, ...] = ()
    gaps: tuple[Gap, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    unanswered: tuple[str, ...] = ()
    refinements: dict[str, tuple[str, ...]] = {}
    sufficiency: str = Field(pattern="^(sufficient|gaps_minor|gaps_major)$")
    feedback: str = ""
    stop_reason: str | None = None
