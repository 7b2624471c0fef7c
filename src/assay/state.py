"""What the graph remembers: plain data only, with hashes and ids in place of documents.

Fields of one question are reset by `new_question`; a thread keeps `messages`, `conversation_summary`, `subject`
(requirements C-02 and C-03) and the sources it was told to do without. Page text never enters the state, and what
grows with the number of pages is only named in it (notebook.py), so its size stays bounded.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from assay.model.event import Status
from assay.model.question import Clarity

Plain = dict[str, Any]


def append(old: list[Plain] | None, new: list[Plain] | Plain) -> list[Plain]:
    """Messages grow; `{"replace": [...]}` is how a long conversation is condensed."""
    if isinstance(new, dict):
        return list(new["replace"])
    return [*(old if isinstance(old, list) else []), *new]


def collect(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Results of parallel tasks by task key, so that a repeated task overwrites itself; None starts afresh."""
    return {} if new is None else {**(old or {}), **new}


def latest(old: str | None, new: str) -> str:
    """Of stages that end at the same time, any may have the last word."""
    return new


class State(TypedDict, total=False):
    # the thread
    messages: Annotated[list[Plain], append]
    conversation_summary: str
    subject: str | None
    vetoed: list[Plain]  # model.veto.Vetoed: sources the thread does without

    # the question
    run: str
    options: Plain
    original_query: str
    clarity_status: str  # model.question.Clarity
    clarification_attempts: int
    clarification_question: str | None
    clarified: list[Plain]  # {question, answer}
    understanding: Plain | None
    enriched_context: str
    current_agent: Annotated[str, latest]
    status: str  # model.event.Status

    # the plan
    gate: Plain | None
    planner_questions: list[Plain]
    planner_answers: dict[str, str]
    plan: Plain | None
    approvals: dict[str, Plain]  # breakpoint and round -> {decision, comment, by}

    # research, by rounds
    round: int
    research_attempts: int
    tasks: list[Plain]
    asked: list[str]
    searched: Annotated[dict[str, Plain], collect]
    pages: dict[str, list[Plain]]  # to be fetched in this round, by sub-question
    harvested: Annotated[dict[str, Plain], collect]  # canonical address -> {address, document or None, reason}
    selected: dict[str, list[Plain]]
    read: Annotated[dict[str, list[Plain]], collect]
    perused: Annotated[dict[str, list[list[Any]]], collect]  # task -> [document, start] of what it has read
    failures: Annotated[dict[str, str], collect]
    sources: list[Plain]
    findings: list[Plain]
    coverage: dict[str, float]
    confidence: float
    analysis: Plain | None
    validation_result: Literal["pending", "sufficient", "insufficient"]
    validation_feedback: str

    # the report
    claims: list[Plain]
    credibility: dict[str, Plain]  # document -> {score, reason}, where it was judged lower than its origin deserves
    disagreements: list[Plain]
    draft: Plain | None
    statements: dict[str, int]
    critique: Plain | None
    iteration: int
    stuck: bool  # the last revision changed nothing
    best: Plain | None  # version reviewed best: {draft, statements, critique, iteration, seen: digests of all}
    rejected: bool
    edits: Plain  # a person's, to the report: {drop: titles of sections, title, rewrite}
    issues: list[Plain]
    notices: dict[str, str]
    report: Plain | None
    final_summary: str
    withdrawn: list[str]  # documents that this run takes out of the report; none where it asks a question


class Task(TypedDict):
    """The smallest argument a parallel search, harvest or read can do with."""

    key: str
    question: Plain
    queries: list[Plain]  # {text, types}; without types it is asked everywhere
    before: list[str]  # queries of earlier rounds
    share: float  # of the research money
    sources: list[str]  # names of those to be asked
    passages: list[Plain]
    pages: list[Plain]  # {url, kind, title, published, author, key}


class Search(Task):
    """What a search needs to ask in other words."""

    understanding: Plain


def new_question(message: str, run: str, options: Plain, notices: dict[str, str]) -> Plain:
    """The input that starts a question on a thread, new or old; None empties a collected field."""
    return {
        "messages": [{"role": "user", "content": message}],
        "run": run,
        "options": options,
        "original_query": message,
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


def withdrawal(run: str, options: Plain, documents: Sequence[str], vetoed: Sequence[Plain]) -> Plain:
    """The input that takes sources out of a finished report; everything else of it is kept."""
    return {
        "run": run,
        "options": options,
        "withdrawn": list(documents),
        "vetoed": list(vetoed),
        "current_agent": "withdraw",
        "status": Status.ANALYZING.value,
        "rejected": False,
        "edits": {},
        "approvals": {},
    }
