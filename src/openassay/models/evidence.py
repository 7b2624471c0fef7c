"""Evidence: documents, passages, findings, quotes and claims."""

from datetime import date, datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from openassay.models.base import Record

ANSWERED = 0.35  # confidence from which on a sub-question counts as answered


class QuoteSpan(Record):
    document: str
    start: int = Field(ge=0)
    end: int
    quote: str

    @model_validator(mode="after")
    def _check_length(self) -> "QuoteSpan":
        if self.end - self.start != len(self.quote):
            raise ValueError("a span is as long as its quote")
        return self


class Finding(Record):
    """A quote that bears on one sub-question."""

    id: str
    question: str
    span: QuoteSpan
    relevance: float = Field(ge=0, le=1)
    cells: tuple[str, ...] = ()  # of a row of a table: the heads over the figures that answer


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
    missing: tuple[str, ...] = ()  # what of a sub-question the evidence does not tell, in a reasoner's words
    refinements: dict[str, tuple[str, ...]] = {}
    sufficiency: str = Field(pattern="^(sufficient|gaps_minor|gaps_major)$")
    feedback: str = ""
    stop_reason: str | None = None


# Claims, what was found about them, and how sure we are.


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
    """One opinion on whether a document supports a statement; of one that is partly borne out, what is."""

    verdict: Verdict
    score: float = Field(ge=0, le=1)
    reason: str = ""
    narrower: str = ""
    embedded: bool = False  # by the embedded verifier, and not by a language model


class ContextItem(Record):
    """What a document says of itself, and a claim rests on besides its spans: when it was published, its title."""

    document: str
    field: Literal["published", "title", "author", "publisher"]
    value: str


class Claim(Record):
    """An atomic statement with its spans. A contradicted claim keeps the spans that speak against it."""

    id: str
    text: str
    questions: tuple[str, ...]
    spans: tuple[QuoteSpan, ...] = ()
    context: tuple[ContextItem, ...] = ()
    against: tuple[QuoteSpan, ...] = ()
    verdict: Verdict = Verdict.NOT_FOUND
    confidence: float = Field(default=0.0, ge=0, le=1)
    mark: Mark | None = None
    relevance: float = Field(default=0.0, ge=0, le=1)
    reasons: tuple[str, ...] = ()
    disputed_by: tuple[str, ...] = ()
    superseded_by: str | None = None


# A company, and where a text speaks of one.


class Company(Record):
    cik: int  # its number at the SEC
    name: str  # as registered: "Apple Inc."
    short: str  # what people call it: "Apple"
    tickers: tuple[str, ...] = ()


class Mention(Record):
    """A stretch of a text that stands for a company."""

    text: str
    start: int
    end: int
    company: Company


# What a search provider is asked, what it answers, and on which terms.


class SearchRequest(Record):
    """One search in terms that all providers share; each uses the filters it has and ignores the others."""

    query: str = Field(min_length=1)
    limit: int = Field(default=10, ge=1, le=50)
    since: date | None = None  # published on this day or later
    until: date | None = None
    sites: tuple[str, ...] = ()  # only these hosts
    without: tuple[str, ...] = ()  # none of these hosts
    language: str | None = None  # as in "de"


class ProviderResult(Record):
    """One result as a provider gave it, checked and cleaned."""

    url: str
    title: str
    snippet: str = ""
    published: date | None = None
    author: str | None = None
    text: str = ""  # an abstract or extract that can be read by itself; most providers give none
    fulltext: str | None = None  # where the whole text can be read freely, if `text` is not all of it


class ProviderTerms(Record):
    """What a provider asks of whoever uses it; the settings may say otherwise."""

    per_minute: float = Field(gt=0)
    at_once: int = Field(default=4, ge=1)
    per_day: int | None = Field(default=None, ge=1)  # None: no quota that would be known
    usd: float = Field(default=0.0, ge=0)  # for one request
    key: str | None = None  # the field of settings.Keys that holds its key
    key_required: bool = False
    needs: str = ""  # what else it cannot do without, as a setting


# Documents, passages of them, and hits that point to them.

DocumentKind = Literal["document", "web", "academic", "news", "code", "demo"]


class Document(Record):
    """A snapshot: `hash` is the sha256 of `text` (UTF-8); offsets everywhere count its code points."""

    hash: str
    text: str = Field(repr=False)
    url: str
    title: str
    host: str = ""
    author: str | None = None
    published: date | None = None
    fetched: datetime
    kind: DocumentKind = "document"
    origin: str | None = None  # the primary publication a document says its facts come from
    publisher: str | None = None  # as the document names it: a newspaper, an agency, a company, an institute
    language: str | None = None  # as in "de", where the page says so


class Passage(Record):
    document: str
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    text: str


class Hit(Record):
    """One search result; sources that keep their own documents say where the match stands."""

    provider: str
    query: str
    rank: int = Field(ge=1)
    url: str
    title: str
    snippet: str = ""
    host: str = ""
    kind: DocumentKind = "web"
    published: date | None = None
    score: float = 0.0
    author: str | None = None
    document: str | None = None
    start: int | None = None
    end: int | None = None
    fulltext: str | None = None  # where the whole text can be read freely, if `document` is not all of it
