"""What is shown of a thread's state."""

from assay.model.event import Status
from assay.model.evidence import Analysis
from assay.model.question import Clarity, Mode, Turn
from assay.model.record import Record
from assay.model.report import ReportClaim, Section
from assay.model.source import Kind


class GateView(Record):
    clarity: float
    coherence: float
    usd: float
    auto: bool  # whether the run went on without asking
    reason: str = ""


class UserInputs(Record):
    goal: str = ""
    mode_override: Mode | None = None
    gate: GateView | None = None
    planner_answers: dict[str, str] = {}


class Step(Record):
    """A sub-question of the plan; sub-questions wait for nobody unless `after` names whom."""

    id: str
    text: str
    section: str
    queries: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class PlanView(Record):
    goal: str
    constraints: tuple[str, ...] = ()
    deliverable: str = "report"
    dag: tuple[Step, ...] = ()


class SearchResult(Record):
    """Found, before anything was read. `problem`: why its text cannot be shown."""

    url: str
    title: str
    snippet: str = ""
    published: str | None = None
    provider: str = ""
    host: str = ""
    problem: str | None = None


class Chunk(Record):
    """A passage chosen to be read. Where `text` is shorter than from `start` to `end`, the rest was left out."""

    start: int
    end: int
    text: str


class EvidenceView(Record):
    """A document that was read, or is about to be. `id` is what citations call it, once it was given a number."""

    id: str | None = None
    url: str = ""
    title: str = ""
    snippet: str = ""
    content_hash: str
    host: str = ""
    kind: Kind | None = None
    published: str | None = None
    author: str | None = None
    chunks: tuple[Chunk, ...] = ()
    problem: str | None = None


class AnalysisView(Analysis):
    """What the last round brought. `quotes`: what the findings it names say."""

    quotes: dict[str, str] = {}


class DraftView(Record):
    """`sections` are what `text` says, as a report would have it: citations and marks as they were at that moment."""

    title: str = ""
    sections: tuple[Section, ...] = ()
    text: str
    citations: tuple[str, ...] = ()  # ids of the evidence, in the order of their first use
    confidence: float = 0.0


class StateView(Record):
    thread: str
    checkpoint: str | None = None
    next: tuple[str, ...] = ()
    status: Status = Status.PENDING
    clarity_status: Clarity = Clarity.PENDING
    user_inputs: UserInputs = UserInputs()
    plan: PlanView | None = None
    queries: tuple[str, ...] = ()
    search_results: tuple[SearchResult, ...] = ()
    evidence: tuple[EvidenceView, ...] = ()
    analysis: AnalysisView | None = None
    claims: tuple[ReportClaim, ...] = ()  # those the draft tells before the others
    draft: DraftView | None = None
    issues: tuple[str, ...] = ()
    subject: str | None = None
    messages: tuple[Turn, ...] = ()
    conversation_summary: str = ""
    notices: tuple[str, ...] = ()
    left_out: dict[str, int] = {}  # how many queries, chunks, characters ... are not shown; "unreadable in plan": 1
