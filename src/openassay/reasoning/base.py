"""The protocol of reasoners, with what they are asked and what they answer.

A reasoner is never trusted: quotes are located in the snapshot, statements are checked against their spans, plans are
validated. It raises ReasoningError when it has no usable answer.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Literal, NamedTuple, Protocol

from pydantic import Field

from openassay.models.base import Record
from openassay.models.evidence import Analysis, Claim, Disagreement, Finding, Judgement, Passage
from openassay.models.plan import (
    Depth,
    Plan,
    PlannerQuestion,
    QueryType,
    Style,
    SubQuestion,
    ThreadMessage,
    Understanding,
)
from openassay.models.report import Critique, DerivedFigure, Issue, SectionRole, SourceCard, TableCell
from openassay.models.user import Preferences
from openassay.text.words import stems


class Conversation(Record):
    """What a new question is understood against."""

    turns: tuple[ThreadMessage, ...] = ()
    summary: str = ""
    subject: str | None = None
    clarified: tuple[str, ...] = ()  # answers given so far to clarifying questions about this one


class PlanRequest(Record):
    understanding: Understanding
    depth: Depth
    answers: dict[str, str] = {}  # planner question id -> the person's answer
    deliverable: str = "report"
    context: str = ""  # what is known besides the question: clarifications, the conversation, the person's own words
    domains: tuple[str, ...] = ()  # fields the person says it belongs to
    preferences: Preferences = Preferences()  # what the person always wants, unless the question says otherwise
    facts: tuple[str, ...] = ()  # what is remembered of the person and has to do with the question


class TypedQuery(Record):
    text: str = Field(min_length=1)
    type: QueryType = "web"


class QueryAttempt(Record):
    """A query that was asked, and how many results it brought."""

    query: TypedQuery
    hits: int


class QueryRequest(Record):
    """Ask for variations of a sub-question, or, with `tried`, for other words or another kind of source."""

    question: SubQuestion
    understanding: Understanding
    count: int
    planned: tuple[str, ...] = ()  # what the plan asks anyway
    tried: tuple[QueryAttempt, ...] = ()
    types: tuple[QueryType, ...] = ("web",)  # kinds of source there are
    share: float = Field(default=1.0, gt=0, le=1)  # of the research money, for this sub-question
    depth: Depth = Depth.STANDARD


class ReadRequest(Record):
    question: SubQuestion
    passages: tuple[Passage, ...]
    limit: int
    titles: dict[str, str] = {}  # of the passages' documents, by hash
    dates: dict[str, str] = {}  # when they were published, likewise
    texts: dict[str, str] = {}  # all that they say, likewise: a row of a table is chosen among all rows
    share: float = Field(default=1.0, gt=0, le=1)  # of the research money, for this sub-question


class Quote(Record):
    """A stretch copied verbatim from a passage, and how well it answers. `document`: it stands anywhere in this one."""

    passage: int = -1
    text: str
    relevance: float = Field(ge=0, le=1)
    document: str = ""
    cells: tuple[str, ...] = ()  # of a row of a table: the heads over the figures that answer


class Evidence(Record):
    """A finding together with what its document says of itself."""

    finding: Finding
    title: str
    published: str | None = None
    author: str = ""


class AnalysisRequest(Record):
    plan: Plan
    evidence: tuple[Evidence, ...]
    coverage: dict[str, float]  # sub-question id -> confidence, as counted from the findings
    previous: Analysis | None = None
    asked: tuple[str, ...] = ()  # queries of earlier rounds, never to be repeated
    leads: tuple[str, ...] | None = ()  # names to follow, besides those of question and plan; None: whatever comes up


class DraftClaim(Record):
    """A statement to be verified; the findings it was drawn from are candidates, not proof. Of several wordings the one
    that most independent sources bear out is kept."""

    wordings: tuple[str, ...] = Field(min_length=1)
    findings: tuple[str, ...]
    questions: tuple[str, ...]
    relevance: float = Field(ge=0, le=1)


class SourceRating(Record):
    """How far a source can be relied on, as a reasoner sees it."""

    score: float = Field(ge=0, le=1)
    reason: str = ""


class ClaimExtraction(Record):
    claims: tuple[DraftClaim, ...]
    credibility: dict[str, SourceRating] = {}  # by document; may only lower what is known of its origin


class Conflict(Record):
    """Two statements that cannot both hold."""

    first: str
    second: str
    about: str = ""


class DocumentOrigin(Record):
    """What is known of a document besides what it says: by this, disputes between documents are settled."""

    text: str = Field(default="", repr=False)
    rank: int = 1  # of its kind: a study goes before news, news before anybody's page
    primary: bool = False  # it made, measured or decided what it tells
    published: str | None = None
    host: str = ""
    group: str = ""  # documents of one group are one source


class DisputeContext(Record):
    """What claims are held against each other with: the question they answer, and where their documents come from."""

    question: str = ""
    origins: dict[str, DocumentOrigin] = {}  # by document


class JudgementBatch(Record):
    """One judgement a statement, in order, and which of the statements contradict each other."""

    judgements: tuple[Judgement, ...]
    conflicts: tuple[Conflict, ...] = ()  # naming statements by their text


class WriteRequest(Record):
    plan: Plan
    claims: tuple[Claim, ...]
    disagreements: tuple[Disagreement, ...] = ()  # sides name claims here
    unanswered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # what of the sub-questions was not found before the last search
    style: Style = "academic"
    words: int = 2000
    language: str | None = None  # the person's; None: that of the question
    banned: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()  # what the reviewer asked for, in so many words
    issues: tuple[Issue, ...] = ()  # the same in full: what is wrong, where, how badly
    previous: "Draft | None" = None  # the version that was reviewed
    titles: dict[str, str] = {}  # of the claims' documents, by hash
    dates: dict[str, str] = {}  # when they were published, likewise
    heads: dict[str, str] = {}  # title, publisher and date of these
    passages: dict[str, str] = {}  # what these say around the claims' quotes
    texts: dict[str, str] = {}  # all that these say

    @property
    def target(self) -> int:
        return self.plan.target(self.words)


class DraftSentence(Record):
    text: str
    claims: tuple[str, ...] = ()  # empty: the sentence speaks of the research, not of the world
    kind: Literal["fact", "synthesis"] = "fact"  # of a sentence with claims: says them, or follows from them
    derived: tuple[DerivedFigure, ...] = ()  # figures of a synthesis that stand in no passage
    documents: tuple[str, ...] = ()  # whose passages it says, where no claim does: one is drawn from it
    opens: bool = False  # begins a paragraph
    item: bool = False  # begins an item of a list
    lead: str = ""  # the beginning of its text, shown in bold
    cell: TableCell | None = None  # of a table or timeline of its section
    cited_beside: bool = False  # its writer named nothing: what it rests on is cited around it


class DraftSection(Record):
    title: str
    role: SectionRole = "body"
    sentences: tuple[DraftSentence, ...] = ()


class DraftAnswer(Record):
    """A short answer to a pointed question: words of a span of its claims, twelve at most, or a figure of theirs, with
    its unit, or one that is computed from theirs."""

    text: str
    claims: tuple[str, ...]
    derived: tuple[DerivedFigure, ...] = ()
    chosen: bool = False  # of what the question offers, as its figures decide: one of two things, or yes or no
    about: str = ""  # whom or what it is true of, where the question fits several
    documents: tuple[str, ...] = ()  # that give it, in whatever words; a language model does not tell them


class Draft(Record):
    title: str
    answers: tuple[DraftAnswer, ...] = ()
    sections: tuple[DraftSection, ...]
    version: int = 1
    notes: tuple[str, ...] = ()
    composed: bool = False  # by a capable model, freely: what fails a check goes back to it


class DraftParagraph(Record):
    """A paragraph, list, timeline or table of a composed draft after its check."""

    section: str
    sentences: tuple[DraftSentence, ...]
    faults: tuple[str, ...]  # why each sentence cannot be published; empty for one that can


class EditRequest(Record):
    """A composed draft of which sentences did not pass."""

    paragraphs: tuple[DraftParagraph, ...]
    claims: tuple[Claim, ...]
    needed: tuple[str, ...] = ()  # claims that no sentence names, and one may have to
    words: int = 2000  # wanted
    banned: tuple[str, ...] = ()
    heads: dict[str, str] = {}


class CritiqueRequest(Record):
    plan: Plan
    draft: Draft
    claims: tuple[Claim, ...]
    unanswered: tuple[str, ...] = ()
    dropped: int = 0  # sentences that failed their check and were replaced or removed
    banned: tuple[str, ...] = ()
    words: int = 2000
    question: str = ""  # as it was understood; empty: the plan's goal
    subjects: tuple[str, ...] = ()
    sources: tuple[SourceCard, ...] = ()  # all that were read; empty: not known
    disagreements: tuple[Disagreement, ...] = ()  # sides name claims here
    confidence: float | None = Field(default=None, ge=0, le=10)  # of the research, as counted from the findings
    today: date | None = None
    revisions: int = Field(default=0, ge=0)  # still allowed after this review
    can_search: bool = False  # what is missing may be searched for
    asked: tuple[str, ...] = ()  # queries so far
    leads: tuple[str, ...] | None = ()  # names that may be searched for; None: any


class VoicePair(NamedTuple):
    """Two documents that bear out one statement: what each says of itself, and how it begins and ends."""

    statement: str
    first: str
    second: str


class SynthesisPair(NamedTuple):
    """A sentence, and the claims that it is to follow from, each with its source and quotes; and the same in short, for
    a reader with little room. `figures` say how those come about that stand in no claim: they were computed again.
    `beside` are other sentences of the report, each judged by itself: what opens a section or ends a report sums them
    up. `passages`: sources by name, and what stands there around the quotes; a writer was shown more than these."""

    text: str
    claims: tuple[str, ...]
    short: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    passages: tuple[tuple[str, str], ...] = ()


EMBEDDED = "embedded"  # the name of the reasoner that needs no language model


class Reasoner(Protocol):
    @property
    def name(self) -> str: ...

    async def understand(self, question: str, conversation: Conversation) -> Understanding: ...

    async def propose_questions(
        self, understanding: Understanding, known: Mapping[str, str] | None = None
    ) -> Sequence[PlannerQuestion]:
        """Propose questions to the person; `known` is what need not be asked, by topic."""
        ...

    async def plan(self, request: PlanRequest) -> Plan: ...

    async def propose_queries(self, request: QueryRequest) -> Sequence[TypedQuery]: ...

    async def read(self, request: ReadRequest) -> Sequence[Quote]: ...

    async def analyse(self, request: AnalysisRequest) -> Analysis: ...

    async def extract_claims(self, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction: ...

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch: ...

    async def judge_syntheses(self, pairs: Sequence[SynthesisPair]) -> Sequence[Judgement]:
        """Judge whether sentences follow from their claims."""
        ...

    async def compare_voices(self, pairs: Sequence[VoicePair]) -> Sequence[bool]:
        """Tell of each pair whether the two are one voice in this matter."""
        ...

    async def find_denials(self, pairs: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Return those pairs of a claim and a sentence in which the sentence denies the claim."""
        ...

    async def find_disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[Conflict] = (), known: DisputeContext | None = None
    ) -> Sequence[Disagreement]: ...

    async def write(self, request: WriteRequest) -> Draft: ...

    async def edit(self, request: EditRequest) -> Mapping[int, Sequence[DraftSentence]]:
        """Return paragraphs of a draft as they are to stand, by their place in it; one that stays is not there."""
        ...

    async def write_verbatim(self, request: WriteRequest) -> Draft:
        """Write the report in its claims' own words, without a language model and at no cost."""
        ...

    async def critique(self, request: CritiqueRequest) -> Critique: ...

    async def score_draft(self, request: CritiqueRequest) -> Critique:
        """Review what can be counted of a draft, without a language model and at no cost."""
        ...

    async def condense(self, turns: Sequence[ThreadMessage], summary: str) -> str: ...


APPROVE, REVISE = 7.5, 5.0  # the least scores for a draft to be approved, and to be worth a revision
MAX_MAJOR_ISSUES = 3  # in a draft that is approved


def recommend(score: float, issues: Sequence[Issue], revisions: int = 0) -> Literal["approve", "revise", "reject"]:
    """Say what should become of a draft; while `revisions` are left, a poor one is revised rather than rejected."""
    severities = [issue.severity for issue in issues]
    if score >= APPROVE and "critical" not in severities and severities.count("major") <= MAX_MAJOR_ISSUES:
        return "approve"
    return "revise" if score >= REVISE or revisions else "reject"


# An analyst has seen pages, and a page must not be able to have something searched for on the web. So a query of a
# later round has only words of the question, the plan and the leads, and these, which say what kind of text is wanted.
NEUTRAL_STEMS = frozenset(
    stems(
        "annual article cause change comparison confirmed current data date detail effect estimate evidence example "
        "explanation fact figure history independent journal latest list measurement method name new number official "
        "original overview paper percent price primary publication reason recent record report research result review "
        "revised source statistics study summary survey table timeline total trend update value year "
        # sides of a company
        "announcement competitor development dividend earnings forecast key launch market news product profit revenue "
        "sales share stock"
    )
)

_EDGES = re.compile(r"^\W+|\W+$")


def collect_known_stems(plan: Plan, asked: Iterable[str] = ()) -> frozenset[str]:
    """Return the stems of what people and the planner said; `asked` are queries made without a look at any page."""
    questions = (question.in_context for question in plan.questions)
    texts = (plan.goal, *plan.sections, *asked, *questions, *(query.text for query in plan.queries))
    return frozenset(stem for text in texts for stem in stems(text)) | NEUTRAL_STEMS


def has_only_known_words(text: str, known: frozenset[str]) -> bool:
    """Tell whether a text has no word from elsewhere."""
    return set(stems(text)) <= known


def keep_known_words(query: str, known: frozenset[str]) -> str:
    """Return a query without words that are not known; empty, if only neutral ones are left.

    Small words, single letters and operators go too: enough of them could spell out anything.
    """
    bare = (_EDGES.sub("", word) for word in query.split())
    words = [word for word in bare if (own := set(stems(word))) and own <= known]
    return " ".join(words) if set(stems(" ".join(words))) - NEUTRAL_STEMS else ""
