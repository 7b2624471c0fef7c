"""The research plan, and what makes one valid."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal
from unicodedata import category

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from openassay.errors import AnswerError
from openassay.models.base import Record

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


# What was asked and how it was understood.

SHORTEST, LONGEST = 10, 2000  # characters of a stand-alone question


class Depth(StrEnum):
    QUICK = "quick"
    STANDARD = "standard"
    COMPREHENSIVE = "comprehensive"


class Mode(StrEnum):
    AUTO = "auto"
    PLAN = "plan"


class Clarity(StrEnum):
    PENDING = "pending"
    CLEAR = "clear"
    NEEDS_CLARIFICATION = "needs_clarification"


Intent = Literal["research", "follow_up", "compare", "more", "cancel", "small_talk", "empty", "unclear"]


class ThreadMessage(Record):
    """One message of a thread."""

    role: Literal["user", "assistant"]
    content: str


class Understanding(Record):
    """A question made to stand alone, or the reason why it cannot."""

    question: str
    intent: Intent = "research"
    query_class: Literal["fact", "change", "comparison", "cause", "overview", "procedure", "yes_no"] = "overview"
    primary_subject: str | None = None
    subjects: tuple[str, ...] = ()
    topic_focus: str = ""
    temporal_scope: str | None = None
    complexity: Literal["simple", "moderate", "complex"] = "moderate"
    ambiguity_level: float = Field(default=0.0, ge=0, le=1)
    clarification_question: str | None = None
    clarification_options: tuple[str, ...] = ()  # answers to choose from, where the likely ones are known
    suggested_questions: tuple[str, ...] = ()

    @property
    def needs_clarification(self) -> bool:
        return self.clarification_question is not None


class PlannerQuestion(Record):
    """A question put to the person before planning; `Custom` is always allowed besides the options."""

    id: str
    about: Literal["scope", "timeframe", "depth", "use"]
    text: str
    options: tuple[str, ...] = Field(min_length=4, max_length=4)
    all_of_the_above: bool = False


class Gate(Record):
    """Why a run goes on at once or asks first."""

    mode: Mode
    flipped: bool = False
    clarity: float = Field(ge=0, le=1)
    coherence: float = Field(ge=0, le=1)
    estimated_usd: float = Field(ge=0)
    preview_hits: int = Field(ge=0)
    reason: str


QueryType = Literal["web", "academic", "news", "code"]
Style = Literal["academic", "technical", "executive"]

MOST_QUESTIONS, MOST_QUERIES = 7, 15
MOST_USD = 10_000
FEWEST_WORDS, MOST_WORDS = 50, 20_000  # of a report

# Which kinds of source a depth may ask.
TYPES_BY_DEPTH: dict[Depth, tuple[QueryType, ...]] = {
    Depth.QUICK: ("web",),
    Depth.STANDARD: ("web", "academic"),
    Depth.COMPREHENSIVE: ("web", "academic", "news"),
}


class SearchQuery(Record):
    id: str
    text: str = Field(min_length=1)
    question: str
    type: QueryType = "web"
    priority: int = Field(default=1, ge=1, le=5)
    status: Literal["pending", "completed", "failed"] = "pending"


class SubQuestion(Record):
    id: str
    text: str = Field(min_length=1)
    section: str
    topic: str = ""  # what the whole question is about, and when, where the sub-question itself does not say
    broad: bool = False  # whatever is said of the matter is of use, and not what answers best alone

    @property
    def in_context(self) -> str:
        return f"{self.text} ({self.topic})" if self.topic else self.text


class Plan(Record):
    goal: str
    topic: str = ""  # what it is about and when, in few words: what a person adds is asked with regard to it
    depth: Depth
    constraints: tuple[str, ...] = ()
    deliverable: str = "report"
    questions: tuple[SubQuestion, ...]
    queries: tuple[SearchQuery, ...]
    sections: tuple[str, ...]
    methodology: str
    reasoning: tuple[str, ...] = ()
    confidence: float = Field(ge=0, le=1)
    warnings: tuple[str, ...] = ()
    estimated_complexity: Literal["simple", "moderate", "complex"] = "moderate"
    words: int | None = Field(default=None, ge=1)  # how long the person wants the report; None: as long as it may be
    style: Style | None = None  # what its use asks for; None: as the person or the settings have it
    sources: tuple[str, ...] = ()  # those the run asks, by name
    usd: float | None = Field(default=None, ge=0, le=MOST_USD)  # the most the run may cost
    pointed: bool = False  # it asks for one thing: one sub-question and one round do
    paired: bool = False  # it asks one thing of two, and has a sub-question for each
    edited: bool = False  # by a person, who may want fewer sub-questions than a planner must give

    @property
    def asks_one_thing(self) -> bool:
        """Whether it is for one thing; with a sub-question that a person has added it is not any more."""
        return self.pointed and len(self.questions) == (2 if self.paired else 1)

    @property
    def asks_for_themes(self) -> bool:
        """Whether the report is arranged by what is found; a person who edits the plan gets the plan's sections."""
        return bool(self.questions) and all(question.broad for question in self.questions) and not self.edited

    def target(self, words: int) -> int:
        """Return the words a report may have where `words` is the most."""
        return min(words, self.words or words)

    @model_validator(mode="after")
    def _check_bounds(self) -> "Plan":
        """3-7 sub-questions and 5-15 queries; a quick or pointed answer may do with one of each. Nothing at all to ask
        is a plan too: the run goes on with what it has."""
        if not self.questions and not self.queries:
            return self
        few = self.depth is Depth.QUICK or self.pointed or self.edited
        for noun, items, fewest, most in (
            ("sub-questions", self.questions, 1 if few else 3, MOST_QUESTIONS),
            ("queries", self.queries, 1 if few else 5, MOST_QUERIES),
        ):
            if not fewest <= len(items) <= most:
                raise ValueError(f"a {self.depth} plan has {fewest}-{most} {noun}, not {len(items)}")
        known = {question.id for question in self.questions}
        if len(known) < len(self.questions) or len({query.id for query in self.queries}) < len(self.queries):
            raise ValueError("two sub-questions or two queries have the same id")
        if strays := {query.question for query in self.queries} - known:
            raise ValueError(f"queries for unknown sub-questions: {sorted(strays)}")
        if missing := {question.section for question in self.questions} - set(self.sections):
            raise ValueError(f"sub-questions for unknown sections: {sorted(missing)}")
        return self


# The skeleton of a plan: sub-questions under sections, each with queries, put together so that it stays whole.

# Words that ask. What is left of a sub-question without them is what it is looked for by.
_ASKING = frozenset(
    "a about an and any are as at be been by can could did do does for from had has have how i if in is it its known "
    "many much of on or other should that the their there these this those to was were what when where which who whom "
    "whose why will with would".split()
)
_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")


def _get_question(plan: Plan, name: str) -> SubQuestion:
    """Return the sub-question of that id, however it is spelt."""
    for question in plan.questions:
        if question.id.casefold() == name.casefold():
            return question
    ids = ", ".join(question.id for question in plan.questions) or "none"
    raise AnswerError(f"there is no sub-question {name}.", help=f"The plan has {ids}.")


def _find_section(plan: Plan, title: str) -> str | None:
    return next((own for own in plan.sections if own.casefold() == title.casefold()), None)


def _get_section(plan: Plan, title: str) -> str:
    if own := _find_section(plan, title):
        return own
    raise AnswerError(f"there is no section {title}.", help=f"The plan has: {'; '.join(plan.sections) or 'none'}.")


def _check_position(wanted: int | None, last: int) -> int:
    """Return the wanted place, the last one where none is wanted."""
    if wanted is not None and wanted > last:
        raise AnswerError(f"there is no place {wanted}.", help=f"Places go from 1 to {last}.")
    return wanted or last


def _refuse_duplicate(plan: Plan, text: str, besides: str = "") -> None:
    for question in plan.questions:
        if question.id != besides and question.text.casefold() == text.casefold():
            raise AnswerError(f"{question.id} asks that already.", help="Ask something else, or leave it as it is.")


def _next_id(letter: str, ids: Collection[str]) -> str:
    """Return an id with the next free number."""
    return f"{letter}{max((int(found[0]) for id in ids if (found := re.findall(r'[0-9]{1,9}$', id))), default=0) + 1}"


def _topic_context(plan: Plan, text: str) -> str:
    """Return the parts of what the plan is about, and when, that a sub-question does not name itself."""
    said = set(_content_words(text))
    parts = (plan.topic or plan.goal.strip(" .?!")).split(", ")
    return ", ".join(part for part in parts if not said & set(_content_words(part)))


def _content_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in _ASKING]


def _rebuild_plan(plan: Plan, questions: Sequence[SubQuestion], sections: Sequence[str]) -> Plan:
    """Order the sections by their first sub-questions. One that has lost its last sub-question goes; one that never
    had any stays where it is."""
    held = list(dict.fromkeys(question.section for question in questions))
    emptied = {question.section for question in plan.questions} - set(held)
    in_turn = iter(held)
    kept = [title for title in dict.fromkeys(sections) if title not in emptied]
    ordered = tuple(next(in_turn) if title in held else title for title in kept)
    return _add_queries(plan.model_copy(update={"questions": tuple(questions), "sections": ordered}))


def _remove_questions(plan: Plan, gone: Collection[str]) -> Plan:
    questions = [question for question in plan.questions if question.id not in gone]
    if not questions:
        raise AnswerError("that would leave no sub-question.", help="Add another one first, or reword what there is.")
    queries = tuple(query for query in plan.queries if query.question not in gone)
    return _rebuild_plan(plan.model_copy(update={"queries": queries}), questions, plan.sections)


def _add_queries(plan: Plan) -> Plan:
    """Add queries for every sub-question that has none; the least needed of the others make room."""
    asked = {query.question for query in plan.queries}
    queries = list(plan.queries)
    for question in (question for question in plan.questions if question.id not in asked):
        words = _content_words(f"{question.text} {question.topic or _topic_context(plan, question.text)}")
        text = " ".join(dict.fromkeys(words)) or question.text
        for kind in TYPES_BY_DEPTH[plan.depth]:
            id, priority = _next_id("K", [query.id for query in queries]), 1 if kind == "web" else 2
            queries.append(SearchQuery(id=id, text=text, question=question.id, type=kind, priority=priority))
    while len(queries) > MOST_QUERIES:
        counts = Counter(query.question for query in queries)
        spare = [at for at, query in enumerate(queries) if counts[query.question] > 1]
        del queries[max(spare, key=lambda at: (queries[at].priority, at))]
    return plan.model_copy(update={"queries": tuple(queries)})


# What a person may change in a plan. Each edit leaves a plan that can be carried out, or is refused and says why.
#
# Positions count from 1. Sections stand in the order of their first sub-questions: moving one moves the other.

MOST_EDITS = 50
FEWEST_LETTERS = 4  # of a sub-question: five signs ask a whole one in Chinese
LONGEST_TEXT = 500  # characters of a sub-question
LONGEST_TITLE = 120


def clean_line(value: object) -> object:
    """Make a text one line without control characters; what is no text is left to be refused."""
    if not isinstance(value, str):
        return value
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", value).split())


def _check_letters(text: str) -> str:
    if sum(category(sign)[0] in "LM" for sign in text) < FEWEST_LETTERS:  # a vowel sign is as good as a letter
        raise ValueError(f"a sub-question needs at least {FEWEST_LETTERS} letters")
    return text


QuestionText = Annotated[
    str, Field(max_length=LONGEST_TEXT), BeforeValidator(clean_line), AfterValidator(_check_letters)
]
SectionTitle = Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE), BeforeValidator(clean_line)]
Name = Annotated[str, Field(min_length=1, max_length=40), BeforeValidator(clean_line)]
Length = Annotated[int, Field(strict=True, ge=FEWEST_WORDS, le=MOST_WORDS)]
Money = Annotated[float, Field(strict=True, ge=0, le=MOST_USD, allow_inf_nan=False)]
Position = Annotated[int, Field(strict=True, ge=1, le=100)]


class PlanEdit(Record, ABC):
    """A change to a plan. `apply` returns the changed plan, or raises AnswerError and says why it cannot be."""

    op: str

    @abstractmethod
    def apply(self, plan: Plan) -> Plan: ...


class AddQuestion(PlanEdit):
    """A sub-question more. Without a section it gets one of its own, in a quick answer the first."""

    op: Literal["add"] = "add"
    text: QuestionText
    section: SectionTitle | None = None
    at: Position | None = None

    def apply(self, plan: Plan) -> Plan:
        own = plan.sections[0] if plan.depth is Depth.QUICK and plan.sections else self.text
        return add_note(_insert_question(plan, self.text, self.section or own, self.at), f"You added: {self.text}")


class RemoveQuestion(PlanEdit):
    op: Literal["remove"] = "remove"
    question: Name

    def apply(self, plan: Plan) -> Plan:
        question = _get_question(plan, self.question)
        return add_note(_remove_questions(plan, {question.id}), f"You removed: {question.text}")


class MoveQuestion(PlanEdit):
    op: Literal["move"] = "move"
    question: Name
    to: Position

    def apply(self, plan: Plan) -> Plan:
        question = _get_question(plan, self.question)
        others = [other for other in plan.questions if other.id != question.id]
        at = _check_position(self.to, len(plan.questions))
        moved = _rebuild_plan(plan, (*others[: at - 1], question, *others[at - 1 :]), plan.sections)
        return add_note(moved, f"You moved to place {at}: {question.text}")


class RewordQuestion(PlanEdit):
    """The words of before are asked no more. A section that was named after them goes along."""

    op: Literal["reword"] = "reword"
    question: Name
    text: QuestionText

    def apply(self, plan: Plan) -> Plan:
        old = _get_question(plan, self.question)
        _refuse_duplicate(plan, self.text, besides=old.id)
        shared = sum(question.section == old.section for question in plan.questions) > 1
        named_after = old.section == old.text and not shared and _find_section(plan, self.text) in (None, old.section)
        title = self.text if named_after else old.section
        changes = {"text": self.text, "section": title, "topic": _topic_context(plan, self.text)}
        sections = [title if own == old.section else own for own in plan.sections]
        queries = tuple(query for query in plan.queries if query.question != old.id)
        unasked = plan.model_copy(update={"queries": queries})
        changed = _rebuild_plan(unasked, _change_questions(plan, {old.id}, changes), sections)
        return add_note(changed, f"You reworded “{old.text}” as: {self.text}")


class AssignQuestion(PlanEdit):
    """To another section, which is made where there is none of that name."""

    op: Literal["assign"] = "assign"
    question: Name
    section: SectionTitle

    def apply(self, plan: Plan) -> Plan:
        question = _get_question(plan, self.question)
        title = _find_section(plan, self.section) or self.section
        questions = _change_questions(plan, {question.id}, {"section": title})
        moved = _rebuild_plan(plan, questions, (*plan.sections, title))
        return add_note(moved, f"You put under {title}: {question.text}")


class AddSection(PlanEdit):
    """A section needs something to answer: `text`, or what is known about its title."""

    op: Literal["add_section"] = "add_section"
    title: SectionTitle
    text: QuestionText | None = None
    at: Position | None = None

    def apply(self, plan: Plan) -> Plan:
        if _find_section(plan, self.title):
            raise AnswerError(f"there is a section {self.title} already.", help="Add a sub-question to it instead.")
        text = self.text or f"What is known about {self.title}?"
        added = _insert_question(plan, text, self.title, None)
        return add_note(_place_section(added, self.title, self.at), f"You added the section {self.title}: {text}")


class RemoveSection(PlanEdit):
    """With its sub-questions."""

    op: Literal["remove_section"] = "remove_section"
    title: SectionTitle

    def apply(self, plan: Plan) -> Plan:
        title = _get_section(plan, self.title)
        held = _list_ids(plan, title)
        rest = plan.model_copy(update={"sections": tuple(other for other in plan.sections if other != title)})
        if not rest.sections:
            raise AnswerError("a report needs a section.", help="Add another one first, or rename this one.")
        return add_note(_remove_questions(rest, held) if held else rest, f"You removed the section {title}")


class MoveSection(PlanEdit):
    op: Literal["move_section"] = "move_section"
    title: SectionTitle
    to: Position

    def apply(self, plan: Plan) -> Plan:
        title = _get_section(plan, self.title)
        return add_note(_place_section(plan, title, self.to), f"You moved to place {self.to} the section {title}")


class RenameSection(PlanEdit):
    op: Literal["rename_section"] = "rename_section"
    title: SectionTitle
    name: SectionTitle

    def apply(self, plan: Plan) -> Plan:
        title = _get_section(plan, self.title)
        if _find_section(plan, self.name) not in (None, title):
            help = "Assign the sub-questions to it instead."
            raise AnswerError(f"there is a section {self.name} already.", help=help)
        questions = _change_questions(plan, _list_ids(plan, title), {"section": self.name})
        sections = tuple(self.name if other == title else other for other in plan.sections)
        renamed = plan.model_copy(update={"questions": questions, "sections": sections})
        return add_note(renamed, f"You renamed the section {title}: {self.name}")


class SetSources(PlanEdit):
    """Ask these, by name, and no others."""

    op: Literal["sources"] = "sources"
    names: tuple[Name, ...] = Field(min_length=1, max_length=30)

    def apply(self, plan: Plan) -> Plan:
        names = tuple(dict.fromkeys(self.names))
        return add_note(plan.model_copy(update={"sources": names}), f"You chose the sources: {', '.join(names)}")


class SetBudget(PlanEdit):
    op: Literal["budget"] = "budget"
    usd: Money

    def apply(self, plan: Plan) -> Plan:
        return add_note(plan.model_copy(update={"usd": self.usd}), f"You set the most it may cost: ${self.usd:,.2f}")


class SetWords(PlanEdit):
    op: Literal["words"] = "words"
    words: Length

    def apply(self, plan: Plan) -> Plan:
        return add_note(plan.model_copy(update={"words": self.words}), f"You set the length: {self.words:,} words")


def add_note(plan: Plan, told: str) -> Plan:
    """Let the plan say of itself what a person has changed."""
    return plan.model_copy(update={"reasoning": (*plan.reasoning, told), "edited": True})


def _list_ids(plan: Plan, section: str) -> set[str]:
    return {question.id for question in plan.questions if question.section == section}


def _change_questions(plan: Plan, ids: Collection[str], changes: Mapping[str, str]) -> tuple[SubQuestion, ...]:
    return tuple(question.model_copy(update=changes) if question.id in ids else question for question in plan.questions)


def _insert_question(plan: Plan, text: str, title: str, at: int | None) -> Plan:
    if len(plan.questions) >= MOST_QUESTIONS:
        raise AnswerError(
            f"a plan has at most {MOST_QUESTIONS} sub-questions.", help="Remove or reword one, and then add yours."
        )
    _refuse_duplicate(plan, text)
    title = _find_section(plan, title) or title
    ids = [question.id for question in plan.questions]
    question = SubQuestion(id=_next_id("Q", ids), text=text, section=title, topic=_topic_context(plan, text))
    before = _check_position(at, len(ids) + 1) - 1
    return _rebuild_plan(plan, (*plan.questions[:before], question, *plan.questions[before:]), (*plan.sections, title))


def _place_section(plan: Plan, title: str, to: int | None) -> Plan:
    others = [other for other in plan.sections if other != title]
    before = _check_position(to, len(others) + 1) - 1
    sections = (*others[:before], title, *others[before:])
    questions = sorted(plan.questions, key=lambda question: sections.index(question.section))
    return plan.model_copy(update={"sections": sections, "questions": tuple(questions)})


_EDITS = (
    AddQuestion, RemoveQuestion, MoveQuestion, RewordQuestion, AssignQuestion, AddSection, RemoveSection, MoveSection,
    RenameSection, SetSources, SetBudget, SetWords,
)  # fmt: skip
_EDITS_BY_OPERATION: dict[object, type[PlanEdit]] = {kind.model_fields["op"].default: kind for kind in _EDITS}
OPERATIONS = tuple(_EDITS_BY_OPERATION)


def parse_edits(edits: object) -> tuple[PlanEdit, ...]:
    """Read edits from JSON."""
    if not isinstance(edits, list | tuple) or not edits:
        raise AnswerError("The edits must be a list with at least one edit.", help=_EXAMPLE)
    if len(edits) > MOST_EDITS:
        raise AnswerError(f"{len(edits)} edits are too many at once.", help=f"Send {MOST_EDITS} at most.")
    return tuple(_parse_edit(number, edit) for number, edit in enumerate(edits, 1))


def _parse_edit(number: int, edit: object) -> PlanEdit:
    plain = edit.model_dump() if isinstance(edit, PlanEdit) else edit
    if not isinstance(plain, dict):
        raise AnswerError(f"Edit {number} is not an object with an op.", help=_EXAMPLE)
    operation = plain.get("op")
    if operation not in OPERATIONS:
        problem = f"there is no operation {operation!r:.60}" if "op" in plain else "op is missing"
        raise AnswerError(f"Edit {number}: {problem}", help=_EXAMPLE)
    try:
        return _EDITS_BY_OPERATION[operation].model_validate(plain)
    except ValidationError as error:
        problem = _describe_problem(error.errors(include_url=False)[0])
        raise AnswerError(f"Edit {number} ({operation}): {problem}", help=_EXAMPLE) from error


_EXAMPLE = (
    'An edit looks like {"op": "add", "text": "What does it cost?"} or {"op": "remove", "question": "Q2"}. '
    f"Operations: {', '.join(map(str, OPERATIONS))}."
)
_PROBLEMS = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "string_pattern_mismatch": "must be a capital letter and a number, like Q3",
    "string_too_short": "needs at least {min_length} characters",
    "string_too_long": "has more than {max_length} characters",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_short": "needs at least {min_length} entry",
    "too_long": "has more than {max_length} entries",
}


def _describe_problem(problem: "ErrorDetails") -> str:
    """Say in plain words what is wrong with a value."""
    if "error" in (limits := problem.get("ctx", {})):
        return str(limits["error"])
    field = ".".join(str(part) for part in problem["loc"])
    return f"{field[:60]} {_PROBLEMS.get(problem['type'], 'cannot be used').format(**limits)}"


def apply_edits(plan: Plan, edits: Sequence[PlanEdit]) -> Plan:
    """Return the plan with all edits made in turn; AnswerError at the first that cannot be."""
    for number, edit in enumerate(edits, 1):
        try:
            plan = edit.apply(plan)
        except AnswerError as error:
            raise AnswerError(f"Edit {number} ({edit.op}): {error.message}", help=error.help) from error
    return plan


# A whole plan of a person's own, within the limits that single edits have.

LONGEST_NOTE = 2_500  # characters; an answer to a planning question has up to 2,000 of them

Id = Annotated[str, Field(pattern=r"^[A-Z][0-9]{1,3}$")]
Line = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), BeforeValidator(clean_line)]
Note = Annotated[str, Field(max_length=LONGEST_NOTE), BeforeValidator(clean_line)]
Notes = Annotated[tuple[Note, ...], Field(max_length=100)]


class OwnQuestion(SubQuestion):
    id: Id
    text: QuestionText
    section: Line  # as long as a sub-question, after which it may be named
    topic: Note = ""


class OwnQuery(SearchQuery):
    id: Id
    text: Line
    question: Id


class OwnPlan(Plan):
    constraints: Notes = ()
    deliverable: Note = "report"
    questions: tuple[OwnQuestion, ...] = Field(min_length=1)
    queries: tuple[OwnQuery, ...]
    sections: tuple[Line, ...] = Field(max_length=30)
    methodology: Note
    reasoning: Notes = ()
    warnings: Notes = ()
    words: Length | None = None
    sources: tuple[Name, ...] = Field(default=(), max_length=30)
    usd: Money | None = None


def replace_plan(plan: Plan, value: object) -> Plan:
    """Put the person's plan in place of `plan`; goal and depth stay as they were asked for."""
    if not isinstance(value, dict):
        raise AnswerError("The plan must be an object.", help=_WHOLE)
    kept = {"goal": plan.goal, "depth": plan.depth, "topic": plan.topic, "pointed": plan.pointed, "edited": True}
    try:
        own = OwnPlan.model_validate({**value, **kept})
    except ValidationError as error:
        faults = "; ".join(_describe_problem(problem) for problem in error.errors(include_url=False)[:3])
        raise AnswerError(f"The plan cannot be used: {faults}.", help=_WHOLE) from error
    texts = [question.text.casefold() for question in own.questions]
    if len(set(texts)) < len(texts):
        raise AnswerError("The plan cannot be used: two sub-questions ask the same.", help=_WHOLE)
    made = Plan.model_validate(own.plain())
    return add_note(_rebuild_plan(made, made.questions, made.sections), "You wrote the plan anew.")


_WHOLE = "Take the plan as it was shown, change it and send it whole, or send edits instead."
