"""What the graph remembers: plain data only, with hashes and ids in place of documents.

Fields of one question are reset by `new_question`; a thread keeps `messages`, `conversation_summary`, `subject`
(requirements C-02 and C-03) and the sources it was told to do without. Page text never enters the state, and what
grows with the number of pages is only named in it (notebook.py), so its size stays bounded.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from openassay.models.event import Status
from openassay.models.plan import Clarity
from openassay.protocols import NoteStore

# Keeping the state small: what grows with the pages read stands in notes, and the state names them.
#
#     a field            {"note": name} in place of a value above `LARGE` bytes
#     a collected field  {"note name": how many keys} in place of what one task adds
#     a task             {"key": ..., "note": name} in place of the argument of a Send
#
# Stages never see this: the graph gives them the state whole, and takes apart what they return. Measured on the example
# library: of 349 KB of state, 14 KB are left.

LARGE = 1024  # bytes; a reference takes 60
FIELDS = frozenset({
    "tasks", "asked", "pages", "selected", "sources", "findings", "analysis", "claims", "credibility",
    "disagreements", "draft", "critique", "issues", "best", "report",
})  # fmt: skip
COLLECTED = frozenset({"searched", "harvested", "read", "perused"})
_KEPT_APART = FIELDS | COLLECTED
_NOTE = "note"
_NOTES = "note "  # before the name, in a collected field
_SENDS = "__pregel_tasks"
_FOUND = _KEPT_APART | {_SENDS}

Values = dict[str, Any]


class StateCompactor:
    """The notes of one thread. What was written or read once is remembered."""

    def __init__(self, notes: NoteStore, thread: str) -> None:
        self._notes = notes
        self._thread = thread
        self._known: dict[str, Any] = {}

    async def compact(self, update: Mapping[str, Any]) -> Values:
        """What a stage returned, as it goes into the state."""
        said = {field: json.dumps(value) for field, value in update.items() if field in _KEPT_APART and value}
        large = {field: update[field] for field, text in said.items() if len(text) > LARGE}
        names = await self._store(list(large.values()), [said[field] for field in large])
        short = {
            field: {_NOTES + name: len(large[field])} if field in COLLECTED else {_NOTE: name}
            for field, name in zip(large, names, strict=True)
        }
        return {**update, **short}

    async def compact_tasks(self, tasks: Sequence[Mapping[str, Any]]) -> list[Values]:
        """Arguments of Sends, as they go into the state."""
        names = await self._store(tasks := [dict(task) for task in tasks], [json.dumps(task) for task in tasks])
        return [{"key": task["key"], _NOTE: name} for task, name in zip(tasks, names, strict=True)]

    async def expand(self, state: Mapping[str, Any]) -> Values:
        """The state, or a task, with everything it refers to."""
        await self._load(set(note_names(state)))
        if name := _task_note(state):
            return dict(self._known[name])
        return {field: self._fill_field(field, value) for field, value in state.items()}

    def _fill_field(self, field: str, value: Any) -> Any:
        if field in COLLECTED and isinstance(value, Mapping):
            filled: Values = {}
            for key, held in value.items():
                filled.update(self._known[key.removeprefix(_NOTES)] if key.startswith(_NOTES) else {key: held})
            return filled
        name = _field_note(value) if field in FIELDS else None
        return self._known[name] if name else value

    async def _store(self, values: Sequence[Any], texts: Sequence[str]) -> list[str]:
        if not values:
            return []
        names = await self._notes.put(self._thread, values)
        # As whoever resumes will read them: tuples are lists.
        self._known |= {name: json.loads(text) for name, text in zip(names, texts, strict=True)}
        return names

    async def _load(self, names: set[str]) -> None:
        if missing := names - self._known.keys():
            self._known |= await self._notes.get(self._thread, missing)


def note_names(state: Mapping[str, Any]) -> Iterator[str]:
    """The names of the notes that the values of a checkpoint, or a task, refer to."""
    if name := _task_note(state):
        yield name
    for field, value in state.items():
        if field in FIELDS and (name := _field_note(value)):
            yield name
        elif field in COLLECTED and isinstance(value, Mapping):
            yield from (key.removeprefix(_NOTES) for key in value if key.startswith(_NOTES))
        elif field == _SENDS:
            sends = value if isinstance(value, list | tuple) else [value]
            yield from (name for send in sends if (name := _task_note(send.arg)))


def evidence_values(fields: Iterable[tuple[str, Any]]) -> list[Any]:
    """Of the fields of a state those that stages alone fill, and from what they have found. What a person has said
    stands in others: an answer, a plan or a note of theirs makes no document one that the thread has read."""
    return [value for field, value in fields if field in _FOUND]


def _field_note(value: Any) -> str | None:
    return value[_NOTE] if isinstance(value, Mapping) and value.keys() == {_NOTE} else None


def _task_note(task: Any) -> str | None:
    return task[_NOTE] if isinstance(task, Mapping) and task.keys() == {"key", _NOTE} else None


Plain = dict[str, Any]


def append_messages(old: list[Plain] | None, new: list[Plain] | Plain) -> list[Plain]:
    """Messages grow; `{"replace": [...]}` is how a long conversation is condensed."""
    if isinstance(new, dict):
        return list(new["replace"])
    return [*(old if isinstance(old, list) else []), *new]


def collect(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Results of parallel tasks by task key, so that a repeated task overwrites itself; None starts afresh."""
    return {} if new is None else {**(old or {}), **new}


def take_latest(old: str | None, new: str) -> str:
    """Of stages that end at the same time, any may have the last word."""
    return new


class State(TypedDict, total=False):
    # the thread
    messages: Annotated[list[Plain], append_messages]
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
    current_agent: Annotated[str, take_latest]
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


class SearchTask(Task):
    """What a search needs to ask in other words."""

    understanding: Plain


def question_input(message: str, run: str, options: Plain, notices: dict[str, str]) -> Plain:
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


def veto_input(run: str, options: Plain, documents: Sequence[str], vetoed: Sequence[Plain]) -> Plain:
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
