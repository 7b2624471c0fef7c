"""What the graph remembers of a thread: plain data, with hashes and ids in place of documents.

`State` is what LangGraph stores. Nodes and routers read it through the `load_*` functions, which return typed models.
`question_input` resets the fields of one question; a thread keeps `messages`, `conversation_summary`, `subject`
(requirements C-02 and C-03) and its vetoed sources. Page text never enters the state, and `StateCompactor` moves what
grows with the number of pages into notes, so the size of a checkpoint stays bounded.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from openassay.models.event import Status
from openassay.models.evidence import Analysis, Claim, Disagreement, DocumentKind, Finding, Verdict
from openassay.models.plan import Clarity, Plan, ThreadMessage, Understanding
from openassay.models.report import Critique, Issue
from openassay.models.thread import Run, SourceVeto
from openassay.reasoning.base import Draft
from openassay.storage.events import SqlNotes

Plain = dict[str, Any]


def append_messages(old: list[Plain] | None, new: list[Plain] | Plain) -> list[Plain]:
    """Add messages to a thread; `{"replace": [...]}` replaces them all, to condense a long conversation."""
    if isinstance(new, dict):
        return list(new["replace"])
    return [*(old if isinstance(old, list) else []), *new]


def collect(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Merge results of parallel tasks by task key, so that a repeated task overwrites itself; None starts afresh."""
    return {} if new is None else {**(old or {}), **new}


def take_latest(old: str | None, new: str) -> str:
    """Let any of the nodes that end at the same time have the last word."""
    return new


class State(TypedDict, total=False):
    # the thread
    messages: Annotated[list[Plain], append_messages]
    conversation_summary: str
    subject: str | None
    vetoed: list[Plain]  # SourceVeto: sources the thread does without

    # the question
    run: str
    options: Plain  # ResearchOptions
    original_query: str
    clarity_status: str  # Clarity
    clarification_attempts: int
    clarification_question: str | None
    clarified: list[Plain]  # {question, answer}
    understanding: Plain | None  # Understanding
    enriched_context: str
    current_agent: Annotated[str, take_latest]
    status: str  # Status

    # the plan
    gate: Plain | None  # Gate
    planner_questions: list[Plain]  # PlannerQuestion
    planner_answers: dict[str, str]
    plan: Plain | None  # Plan
    approvals: dict[str, Plain]  # breakpoint and round -> {decision, comment, by}

    # research, by rounds
    round: int
    research_attempts: int
    tasks: list[Plain]  # Task
    asked: list[str]
    searched: Annotated[dict[str, Plain], collect]  # SearchOutcome
    pages: dict[str, list[Plain]]  # PageRequest: to be fetched in this round, by sub-question
    harvested: Annotated[dict[str, Plain], collect]  # canonical address -> HarvestOutcome
    selected: dict[str, list[Plain]]  # PassageRef, by sub-question
    read: Annotated[dict[str, list[Plain]], collect]  # Finding
    perused: Annotated[dict[str, list[list[Any]]], collect]  # task -> [document, start] of what it has read
    failures: Annotated[dict[str, str], collect]
    sources: list[Plain]  # NumberedSource
    findings: list[Plain]  # Finding
    coverage: dict[str, float]
    confidence: float
    analysis: Plain | None  # Analysis
    validation_result: Literal["pending", "sufficient", "insufficient"]
    validation_feedback: str

    # the report
    claims: list[Plain]  # Claim
    credibility: dict[str, Plain]  # document -> {score, reason}, where it was judged lower than its origin deserves
    disagreements: list[Plain]  # Disagreement
    draft: Plain | None  # Draft
    statements: dict[str, int]
    critique: Plain | None  # Critique
    iteration: int
    stuck: bool  # the last revision changed nothing
    best: Plain | None  # version reviewed best: {draft, statements, critique, iteration, seen: digests of all}
    rejected: bool
    edits: Plain  # ReportEdits
    issues: list[Plain]  # Issue
    notices: dict[str, str]
    report: Plain | None  # ReportData
    final_summary: str
    withdrawn: list[str]  # documents that this run takes out of the report; none where it asks a question


class NumberedSource(TypedDict):
    """A document that the thread has read, under the number by which the report cites it."""

    id: str
    document: str
    title: str
    published: str | None


class PassageRef(TypedDict):
    """A passage of a document, without its text."""

    document: str
    start: int
    end: int


class PageRequest(TypedDict):
    """A page to be fetched; `key` is its canonical address."""

    url: str
    kind: DocumentKind
    title: str
    published: str | None
    author: str | None
    key: str


class HarvestOutcome(TypedDict):
    """What came of fetching a page: its document, or why there is none. `again`: another round may try it again."""

    address: str
    document: str | None
    reason: str
    cached: bool
    again: bool
    round: str
    page: NotRequired[Plain]  # what it says of itself; another address may hold the same text


class SearchOutcome(TypedDict):
    """What came of the searches of one task."""

    question: str
    queries: list[Plain]  # {text, status}, and `as` where another query asked the same
    hits: list[Plain]  # Hit
    completed: int
    failed: int
    cached: int
    avoided: dict[str, int]
    errors: dict[str, list[Any]]  # source -> [message, how often]


class ReportEdits(TypedDict, total=False):
    """What a person has changed at the breakpoints."""

    drop: list[str]  # titles of sections
    title: str | None
    rewrite: bool  # the report goes back to the writer
    back: str | None  # the breakpoint that sent it back
    without: list[str]  # hosts to skip


class Task(TypedDict):
    """The smallest argument a parallel search, harvest or read can do with."""

    key: str
    question: Plain
    queries: list[Plain]  # {text, types}; without types it is asked everywhere
    before: list[str]  # queries of earlier rounds
    share: float  # of the research money
    sources: list[str]  # names of those to be asked
    passages: list[Plain]
    pages: list[Plain]  # PageRequest


class SearchTask(Task):
    """What a search needs to ask in other words."""

    understanding: Plain


# Typed reading of the state. Each function parses one field; `Mapping` also allows the values of a checkpoint.


def load_messages(state: Mapping[str, Any]) -> list[ThreadMessage]:
    return [ThreadMessage.model_validate(item) for item in state["messages"]]


def load_vetoes(state: Mapping[str, Any]) -> list[SourceVeto]:
    return [SourceVeto.model_validate(item) for item in state.get("vetoed") or ()]


def load_understanding(state: Mapping[str, Any]) -> Understanding:
    return Understanding.model_validate(state["understanding"])


def load_question(state: Mapping[str, Any]) -> str:
    """Return the question as it was understood, or as it was asked."""
    return str((state.get("understanding") or {}).get("question") or state["original_query"])


def load_plan(state: Mapping[str, Any]) -> Plan:
    return Plan.model_validate(state["plan"])


def load_plan_if_any(state: Mapping[str, Any]) -> Plan | None:
    return load_plan(state) if state.get("plan") else None


def load_tasks(state: Mapping[str, Any]) -> list[Task]:
    return cast("list[Task]", state["tasks"])


def load_searches(state: Mapping[str, Any]) -> dict[str, SearchOutcome]:
    return cast("dict[str, SearchOutcome]", state["searched"])


def load_page_requests(state: Mapping[str, Any]) -> dict[str, list[PageRequest]]:
    return cast("dict[str, list[PageRequest]]", state.get("pages") or {})


def load_harvests(state: Mapping[str, Any]) -> dict[str, HarvestOutcome]:
    return cast("dict[str, HarvestOutcome]", state["harvested"])


def load_selected(state: Mapping[str, Any]) -> dict[str, list[PassageRef]]:
    return cast("dict[str, list[PassageRef]]", state["selected"])


def load_sources(state: Mapping[str, Any]) -> list[NumberedSource]:
    return cast("list[NumberedSource]", state["sources"])


def load_findings(state: Mapping[str, Any]) -> list[Finding]:
    return [Finding.model_validate(item) for item in state["findings"]]


def load_analysis(state: Mapping[str, Any]) -> Analysis | None:
    return Analysis.model_validate(state["analysis"]) if state.get("analysis") else None


def load_claims(state: Mapping[str, Any]) -> list[Claim]:
    return [Claim.model_validate(item) for item in state["claims"]]


def load_supported_claims(state: Mapping[str, Any]) -> list[Claim]:
    return [claim for claim in load_claims(state) if claim.verdict is Verdict.SUPPORTED]


def load_disagreements(state: Mapping[str, Any]) -> list[Disagreement]:
    return [Disagreement.model_validate(item) for item in state["disagreements"]]


def load_draft(state: Mapping[str, Any]) -> Draft | None:
    return Draft.model_validate(state["draft"]) if state.get("draft") else None


def load_critique(state: Mapping[str, Any]) -> Critique | None:
    return Critique.model_validate(state["critique"]) if state.get("critique") else None


def load_issues(state: Mapping[str, Any]) -> list[Issue]:
    return [Issue.model_validate(item) for item in state["issues"]]


def load_edits(state: Mapping[str, Any]) -> ReportEdits:
    return cast("ReportEdits", state.get("edits") or {})


# Input of the graph.


def question_input(run: Run, notices: dict[str, str]) -> Plain:
    """Return the input that starts the question of a run, on a thread new or old; None empties a collected field."""
    return {
        "messages": [{"role": "user", "content": run.question}],
        "run": run.id,
        "options": run.options.plain(),
        "original_query": run.question,
        "clarity_status": Clarity.PENDING.value,
        "clarification_attempts": 0,
        "clarification_question": None,
        "clarified": [],
        "understanding": None,
        "enriched_context": "",
        "current_agent": "understand",
        "status": Status.PENDING.value,
        "gate": None,
        "planner_questions": [],
        "planner_answers": {},
        "plan": None,
        "approvals": {},
        "round": 0,
        "research_attempts": 0,
        "tasks": [],
        "asked": [],
        "searched": None,
        "pages": {},
        "harvested": None,
        "selected": {},
        "read": None,
        "perused": None,
        "failures": None,
        "sources": [],
        "findings": [],
        "coverage": {},
        "confidence": 0.0,
        "analysis": None,
        "validation_result": "pending",
        "validation_feedback": "",
        "claims": [],
        "credibility": {},
        "disagreements": [],
        "draft": None,
        "statements": {},
        "critique": None,
        "iteration": 0,
        "stuck": False,
        "best": None,
        "rejected": False,
        "edits": {},
        "issues": [],
        "notices": notices,
        "report": None,
        "final_summary": "",
        "withdrawn": [],
    }


def veto_input(run: Run, vetoed: Sequence[Plain]) -> Plain:
    """Return the input that takes sources out of a finished report; everything else of it is kept."""
    return {
        "run": run.id,
        "options": run.options.plain(),
        "withdrawn": list(run.options.veto),
        "vetoed": list(vetoed),
        "current_agent": "withdraw",
        "status": Status.ANALYZING.value,
        "rejected": False,
        "edits": {},
        "approvals": {},
    }


# Compaction. What grows with the pages read is stored in notes, and the state refers to it:
#
#     a field            {"note": name} in place of a value above `LARGE` bytes
#     a collected field  {"note name": how many keys} in place of what one task adds
#     a task             {"key": ..., "note": name} in place of the argument of a Send
#
# Nodes never see this: the graph expands the state for them and compacts what they return. Measured on the example
# library: of 349 KB of state, 14 KB remain.

LARGE = 1024  # bytes; a reference takes 60
FIELDS = frozenset(
    "tasks asked pages selected sources findings analysis claims credibility disagreements draft critique issues best "
    "report".split()
)
COLLECTED = frozenset({"searched", "harvested", "read", "perused"})
_COMPACTED = FIELDS | COLLECTED
_NOTE = "note"
_NOTE_PREFIX = "note "  # before the name, in a collected field
_SENDS = "__pregel_tasks"


class StateCompactor:
    """Replaces large values of one thread's state by notes, and notes by their values. Remembers what it has seen."""

    def __init__(self, notes: SqlNotes, thread: str) -> None:
        self._notes = notes
        self._thread = thread
        self._known: dict[str, Any] = {}

    async def compact(self, update: Mapping[str, Any]) -> Plain:
        """Return what a node returned as it goes into the state."""
        texts = {field: json.dumps(value) for field, value in update.items() if field in _COMPACTED and value}
        large = {field: update[field] for field, text in texts.items() if len(text) > LARGE}
        names = await self._store(list(large.values()), [texts[field] for field in large])
        short = {
            field: {_NOTE_PREFIX + name: len(large[field])} if field in COLLECTED else {_NOTE: name}
            for field, name in zip(large, names, strict=True)
        }
        return {**update, **short}

    async def compact_tasks(self, tasks: Sequence[Mapping[str, Any]]) -> list[Plain]:
        """Return arguments of Sends as they go into the state."""
        names = await self._store(tasks := [dict(task) for task in tasks], [json.dumps(task) for task in tasks])
        return [{"key": task["key"], _NOTE: name} for task, name in zip(tasks, names, strict=True)]

    async def expand(self, state: Mapping[str, Any]) -> Plain:
        """Return the state, or a task, with everything it refers to."""
        if missing := set(note_names(state)) - self._known.keys():
            self._known |= await self._notes.get(self._thread, missing)
        if name := _task_note(state):
            return dict(self._known[name])
        return {field: self._expand_field(field, value) for field, value in state.items()}

    def _expand_field(self, field: str, value: Any) -> Any:
        if field in COLLECTED and isinstance(value, Mapping):
            full: Plain = {}
            for key, item in value.items():
                is_note = key.startswith(_NOTE_PREFIX)
                full.update(self._known[key.removeprefix(_NOTE_PREFIX)] if is_note else {key: item})
            return full
        name = _field_note(value) if field in FIELDS else None
        return self._known[name] if name else value

    async def _store(self, values: Sequence[Any], texts: Sequence[str]) -> list[str]:
        if not values:
            return []
        names = await self._notes.put(self._thread, values)
        # Remembered as a resumed run will read them: tuples are lists.
        self._known |= {name: json.loads(text) for name, text in zip(names, texts, strict=True)}
        return names


def note_names(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the notes that the values of a checkpoint, or a task, refer to."""
    if name := _task_note(state):
        yield name
    for field, value in state.items():
        if field in FIELDS and (name := _field_note(value)):
            yield name
        elif field in COLLECTED and isinstance(value, Mapping):
            yield from (key.removeprefix(_NOTE_PREFIX) for key in value if key.startswith(_NOTE_PREFIX))
        elif field == _SENDS:
            sends = value if isinstance(value, list | tuple) else [value]
            yield from (name for send in sends if (name := _task_note(send.arg)))


def evidence_values(fields: Iterable[tuple[str, Any]]) -> list[Any]:
    """Return the values of those fields that nodes alone fill, from what they have found. The others may hold what a
    person has said: an answer, a plan or a note of theirs makes no document one that the thread has read."""
    return [value for field, value in fields if field in _COMPACTED or field == _SENDS]


def _field_note(value: Any) -> str | None:
    return value[_NOTE] if isinstance(value, Mapping) and value.keys() == {_NOTE} else None


def _task_note(task: Any) -> str | None:
    return task[_NOTE] if isinstance(task, Mapping) and task.keys() == {"key", _NOTE} else None
