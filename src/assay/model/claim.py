"""Claims, what was found about them, and how sure we are."""

from enum import StrEnum

from pydantic import Field

from assay.model.evidence import Span
from assay.model.record import Record


class Verdict(StrEnum):
    SUPPORTED = "supported"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"
    NOT_FOUND = "not_found"


class Mark(StrEnum):
    CORROBORATED = "✓✓"  # two or more independent sources agree
    VERIFIED = "✓"  # one credible source
    SINGLE = "⚠"  # one source, and nothing speaks for it but itself


class Judgement(Record):
    """One opinion on whether a span supports a statement."""

    verdict: Verdict
    score: float = Field(ge=0, le=1)
    reason: str = ""


class Claim(Record):
    """An atomic statement with its spans. A contradicted claim keeps the spans that speak against it."""

    id: str
    text: str
    questions: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    against: tuple[Span, ...] = ()
    verdict: Verdict = Verdict.NOT_FOUND
    confidence: float = Field(default=0.0, ge=0, le=1)
    mark: Mark | None = None
    relevance: float = Field(default=0.0, ge=0, le=1)
    reasons: tuple[str, ...] = ()
    disputed_by: tuple[str, ...] = ()
    superseded_by: str | None = None
