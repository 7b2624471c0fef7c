"""What is shown of a thread's state."""

from assay.model.event import Status
from assay.model.question import Clarity, Mode, Turn
from assay.model.record import Record


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
    chunks: tuple[Chunk, ...] = ()
    problem: str | None = None


class DraftView(Record):
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
    draft: DraftView | None = None
    issues: tuple[str, ...] = ()
    subject: str | None = None
    messages: tuple[Turn, ...] = ()
    conversation_summary: str = ""
    notices: tuple[str, ...] = ()
    left_out: dict[str, int] = {}  # how many queries, chunks, characters ... are not shown; "unreadable in plan": 1
