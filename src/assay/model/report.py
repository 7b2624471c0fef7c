"""The report as a structure; Markdown, HTML and PDF are renderings of it."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from assay.model.claim import Mark, Verdict
from assay.model.plan import Plan
from assay.model.record import Record
from assay.model.spend import Spend


class ReportStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    NO_DATA = "no_data"
    CANCELLED = "cancelled"


Role = Literal["abstract", "body", "disagreements", "not_found", "conclusion", "notice"]
Level = Literal["high", "medium", "low"]


class Sentence(Record):
    """`fact` states something about the world and is bound to claims; `frame` speaks of the research."""

    text: str
    kind: Literal["fact", "frame"]
    claims: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    mark: Mark | None = None


class Section(Record):
    title: str
    role: Role = "body"
    sentences: tuple[Sentence, ...] = ()


class ReportSpan(Record):
    source: str
    document: str
    start: int
    end: int
    quote: str


class ReportClaim(Record):
    id: str
    text: str
    verdict: Verdict
    confidence: float
    mark: Mark | None = None
    spans: tuple[ReportSpan, ...] = ()
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
    published: str | None = None
    primary: bool = False
    credibility: float = Field(default=0.5, ge=0, le=1)
    credibility_reasons: tuple[str, ...] = ()


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
    sections: tuple[Section, ...] = ()
    claims: tuple[ReportClaim, ...] = ()
    sources: tuple[SourceCard, ...] = ()
    coverage: Coverage = Coverage()
    hallucination_score: float = Field(default=0.0, ge=0, le=1)
    issues: tuple[Issue, ...] = ()
    notices: tuple[str, ...] = ()
    spend: Spend = Spend()
    metadata: Metadata = Metadata()
    provenance: Provenance
