"""The research plan, and what makes one valid."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal
from unicodedata import category

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

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
    edited: bool = False  # by a person, who may want fewer sub-questions than a planner must give

    def target(self, words: int) -> int:
        """The words a report may have where `words` is the most."""
        return min(words, self.words or words)

    @model_validator(mode="after")
    def _check_bounds(self) -> "Plan":
        """3-7 sub-questions and 5-15 queries; a quick answer may do with one of each. Nothing at all to ask is a plan
        too: the run goes on with what it has."""
        if not self.questions and not self.queries:
            return self
        fewest_questions, fewest_queries = (1, 1) if self.depth is Depth.QUICK or self.edited else (3, 5)
        if not fewest_questions <= len(self.questions) <= MOST_QUESTIONS:
            raise ValueError(
                f"a {self.depth} plan has {fewest_questions}-{MOST_QUESTIONS} sub-questions, not {len(self.questions)}"
            )
        if not fewest_queries <= len(self.queries) <= MOST_QUERIES:
            raise ValueError(
                f"a {self.depth} plan has {fewest_queries}-{MOST_QUERIES} queries, not {len(self.queries)}"
            )
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


def get_question(plan: Plan, name: str) -> SubQuestion:
    """The sub-question of that id, however it is spelt."""
    for question in plan.questions:
        if question.id.casefold() == name.casefold():
            return question
    ids = ", ".join(question.id for question in plan.questions) or "none"
    raise AnswerError(f"there is no sub-question {name}.", help=f"The plan has {ids}.")


def find_section(plan: Plan, title: str) -> str | None:
    return next((own for own in plan.sections if own.casefold() == title.casefold()), None)


def get_section(plan: Plan, title: str) -> str:
    if own := find_section(plan, title):
        return own
    raise AnswerError(f"there is no section {title}.", help=f"The plan has: {'; '.join(plan.sections) or 'none'}.")


def check_position(wanted: int | None, last: int) -> int:
    """The last one where none is wanted."""
    if wanted is not None and wanted > last:
        raise AnswerError(f"there is no place {wanted}.", help=f"Places go from 1 to {last}.")
    return wanted or last


def refuse_duplicate(plan: Plan, text: str, besides: str = "") -> None:
    for question in plan.questions:
        if question.id != besides and question.text.casefold() == text.casefold():
            raise AnswerError(f"{question.id} asks that already.", help="Ask something else, or leave it as it is.")


def next_id(letter: str, ids: Collection[str]) -> str:
    """The next free number, which no id of the plan has reached."""
    return f"{letter}{max((int(found[0]) for id in ids if (found := re.findall(r'[0-9]{1,9}$', id))), default=0) + 1}"


def topic_context(plan: Plan, text: str) -> str:
    """The parts of what the plan is about, and when, that a sub-question does not name itself."""
    said = set(_content_words(text))
    parts = (plan.topic or plan.goal.strip(" .?!")).split(", ")
    return ", ".join(part for part in parts if not said & set(_content_words(part)))


def _content_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in _ASKING]


def rebuild_plan(plan: Plan, questions: Sequence[SubQuestion], sections: Sequence[str]) -> Plan:
    """Sections in the order of their first sub-questions. One that has lost its last sub-question goes; one that never
    had any stays where it is."""
    held = list(dict.fromkeys(question.section for question in questions))
    emptied = {question.section for question in plan.questions} - set(held)
    in_turn = iter(held)
    kept = [title for title in dict.fromkeys(sections) if title not in emptied]
    ordered = tuple(next(in_turn) if title in held else title for title in kept)
    return add_queries(plan.model_copy(update={"questions": tuple(questions), "sections": ordered}))


def remove_questions(plan: Plan, gone: Collection[str]) -> Plan:
    questions = [question for question in plan.questions if question.id not in gone]
    if not questions:
        raise AnswerError("that would leave no sub-question.", help="Add another one first, or reword what there is.")
    queries = tuple(query for query in plan.queries if query.question not in gone)
    return rebuild_plan(plan.model_copy(update={"queries": queries}), questions, plan.sections)


def add_queries(plan: Plan) -> Plan:
    """With queries of its own words for every sub-question that has none; the least needed of the others make room."""
    asked = {query.question for query in plan.queries}
    queries = list(plan.queries)
    for question in plan.questions:
        if question.id not in asked:
            for kind in TYPES_BY_DEPTH[plan.depth]:
                id, priority = next_id("K", [query.id for query in queries]), 1 if kind == "web" else 2
                queries.append(
                    SearchQuery(
                        id=id, text=_build_query(question, plan), question=question.id, type=kind, priority=priority
                    )
                )
    return plan.model_copy(update={"queries": tuple(_trim_queries(queries))})


def _build_query(question: SubQuestion, plan: Plan) -> str:
    words = dict.fromkeys(_content_words(f"{question.text} {question.topic or topic_context(plan, question.text)}"))
    return " ".join(words) or question.text


def _trim_queries(queries: list[SearchQuery]) -> list[SearchQuery]:
    while len(queries) > MOST_QUERIES:
        by_question = [query.question for query in queries]
        spare = [at for at, name in enumerate(by_question) if by_question.count(name) > 1]
        queries = [*queries[: (least := max(spare, key=lambda at: (queries[at].priority, at)))], *queries[least + 1 :]]
    return queries


# What a person may change in a plan. Each edit leaves a plan that can be carried out, or is refused and says why.
#
# Positions count from 1. Sections stand in the order of their first sub-questions: moving one moves the other.

MOST_EDITS = 50
FEWEST_LETTERS = 4  # of a sub-question: five signs ask a whole one in Chinese
LONGEST_TEXT = 500  # characters of a sub-question
LONGEST_TITLE = 120


def clean_line(value: object) -> object:
    """One line without control characters; whatever else is not a text is left to be refused."""
    return (
        " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", value).split()) if isinstance(value, str) else value
    )


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


class AddQuestion(Record):
    """A sub-question more. Without a section it gets one of its own, in a quick answer the first."""

    op: Literal["add"] = "add"
    text: QuestionText
    section: SectionTitle | None = None
    at: Position | None = None


class RemoveQuestion(Record):
    op: Literal["remove"] = "remove"
    question: Name


class MoveQuestion(Record):
    op: Literal["move"] = "move"
    question: Name
    to: Position


class RewordQuestion(Record):
    op: Literal["reword"] = "reword"
    question: Name
    text: QuestionText


class AssignQuestion(Record):
    """To another section, which is made where there is none of that name."""

    op: Literal["assign"] = "assign"
    question: Name
    section: SectionTitle


class AddSection(Record):
    """A section needs something to answer: `text`, or what is known about its title."""

    op: Literal["add_section"] = "add_section"
    title: SectionTitle
    text: QuestionText | None = None
    at: Position | None = None


class RemoveSection(Record):
    """With its sub-questions."""

    op: Literal["remove_section"] = "remove_section"
    title: SectionTitle


class MoveSection(Record):
    op: Literal["move_section"] = "move_section"
    title: SectionTitle
    to: Position


class RenameSection(Record):
    op: Literal["rename_section"] = "rename_section"
    title: SectionTitle
    name: SectionTitle


class SetSources(Record):
    """Ask these, by name, and no others."""

    op: Literal["sources"] = "sources"
    names: tuple[Name, ...] = Field(min_length=1, max_length=30)


class SetBudget(Record):
    op: Literal["budget"] = "budget"
    usd: Money


class SetWords(Record):
    op: Literal["words"] = "words"
    words: Length


Edit = Annotated[
    AddQuestion
    | RemoveQuestion
    | MoveQuestion
    | RewordQuestion
    | AssignQuestion
    | AddSection
    | RemoveSection
    | MoveSection
    | RenameSection
    | SetSources
    | SetBudget
    | SetWords,
    Field(discriminator="op"),
]
EDIT_ADAPTER: TypeAdapter[Edit] = TypeAdapter(Edit)
OPERATIONS = ("add", "remove", "move", "reword", "assign", "add_section", "remove_section", "move_section",
              "rename_section", "sources", "budget", "words")  # fmt: skip


# Reading -----------------------------------------------------------------------------------------------


def parse_edits(edits: object) -> tuple[Edit, ...]:
    """Edits from JSON."""
    if not isinstance(edits, list | tuple) or not edits:
        raise AnswerError("The edits must be a list with at least one edit.", help=_EXAMPLE)
    if len(edits) > MOST_EDITS:
        raise AnswerError(f"{len(edits)} edits are too many at once.", help=f"Send {MOST_EDITS} at most.")
    return tuple(_parse_edit(number, edit) for number, edit in enumerate(edits, 1))


def _parse_edit(number: int, edit: object) -> Edit:
    plain = edit.model_dump() if isinstance(edit, Record) else edit
    if not isinstance(plain, dict):
        raise AnswerError(f"Edit {number} is not an object with an op.", help=_EXAMPLE)
    try:
        return EDIT_ADAPTER.validate_python(plain)
    except ValidationError as error:
        raise AnswerError(
            f"{_name_edit(number, plain.get('op'))}: {_explain_error(error, plain)}", help=_EXAMPLE
        ) from error


_EXAMPLE = (
    'An edit looks like {"op": "add", "text": "What does it cost?"} or {"op": "remove", "question": "Q2"}. '
    f"Operations: {', '.join(OPERATIONS)}."
)
_SAID: dict[str, str] = {
    "missing": "is missing", "extra_forbidden": "is not known here", "string_type": "must be a text",
    "int_type": "must be a whole number", "float_type": "must be a number", "finite_number": "must be a finite number",
    "tuple_type": "must be a list", "string_pattern_mismatch": "must be a capital letter and a number, like Q3",
}  # fmt: skip
_LIMITED: dict[str, str] = {
    "string_too_short": "needs at least {min_length} characters", "string_too_long": "has more than {max_length} "
    "characters", "greater_than_equal": "must be at least {ge}", "less_than_equal": "must be at most {le}",
    "too_short": "needs at least {min_length} entry", "too_long": "has more than {max_length} entries",
}  # fmt: skip


def _explain_error(error: ValidationError, edit: Mapping[str, object]) -> str:
    problem = error.errors(include_url=False)[0]
    if problem["type"].startswith("union_tag"):
        return f"there is no operation {edit.get('op')!r:.60}" if "op" in edit else "op is missing"
    return describe_problem(problem, after=1)


def describe_problem(problem: "ErrorDetails", after: int = 0) -> str:
    """What is wrong with a value, in plain words."""
    if "error" in (limits := problem.get("ctx", {})):
        return str(limits["error"])
    field = ".".join(str(part) for part in problem["loc"][after:])
    limit = _LIMITED.get(problem["type"], "").format(**limits)
    return f"{field[:60]} {limit or _SAID.get(problem['type'], 'cannot be used')}"


def _name_edit(number: int, op: object) -> str:
    return f"Edit {number} ({op})" if op in OPERATIONS else f"Edit {number}"


# Applying ----------------------------------------------------------------------------------------------


def apply_edits(plan: Plan, edits: Sequence[Edit]) -> Plan:
    """A new plan with all edits made in turn; AnswerError at the first that cannot be."""
    for number, edit in enumerate(edits, 1):
        try:
            plan = _APPLIERS[edit.op](plan, edit)
        except AnswerError as error:
            raise AnswerError(f"{_name_edit(number, edit.op)}: {error.message}", help=error.help) from error
    return plan


def add_note(plan: Plan, told: str) -> Plan:
    """The plan says of itself what a person has changed."""
    return plan.model_copy(update={"reasoning": (*plan.reasoning, told), "edited": True})


def _add_question(plan: Plan, edit: AddQuestion) -> Plan:
    own = plan.sections[0] if plan.depth is Depth.QUICK and plan.sections else edit.text
    return add_note(_insert_question(plan, edit.text, edit.section or own, edit.at), f"You added: {edit.text}")


def _insert_question(plan: Plan, text: str, title: str, at: int | None) -> Plan:
    if len(plan.questions) >= MOST_QUESTIONS:
        raise AnswerError(
            f"a plan has at most {MOST_QUESTIONS} sub-questions.", help="Remove or reword one, and then add yours."
        )
    refuse_duplicate(plan, text)
    title = find_section(plan, title) or title
    ids = [question.id for question in plan.questions]
    question = SubQuestion(id=next_id("Q", ids), text=text, section=title, topic=topic_context(plan, text))
    before = check_position(at, len(ids) + 1) - 1
    return rebuild_plan(plan, (*plan.questions[:before], question, *plan.questions[before:]), (*plan.sections, title))


def _remove_question(plan: Plan, edit: RemoveQuestion) -> Plan:
    question = get_question(plan, edit.question)
    return add_note(remove_questions(plan, {question.id}), f"You removed: {question.text}")


def _move_question(plan: Plan, edit: MoveQuestion) -> Plan:
    question = get_question(plan, edit.question)
    others = [other for other in plan.questions if other.id != question.id]
    at = check_position(edit.to, len(plan.questions))
    moved = rebuild_plan(plan, (*others[: at - 1], question, *others[at - 1 :]), plan.sections)
    return add_note(moved, f"You moved to place {at}: {question.text}")


def _reword_question(plan: Plan, edit: RewordQuestion) -> Plan:
    """The words of before are asked no more. A section that was named after them goes along."""
    old = get_question(plan, edit.question)
    refuse_duplicate(plan, edit.text, besides=old.id)
    shared = sum(question.section == old.section for question in plan.questions) > 1
    named_after = old.section == old.text and not shared and find_section(plan, edit.text) in (None, old.section)
    title = edit.text if named_after else old.section
    new = old.model_copy(update={"text": edit.text, "section": title, "topic": topic_context(plan, edit.text)})
    questions = [new if question.id == old.id else question for question in plan.questions]
    sections = [title if own == old.section else own for own in plan.sections]
    queries = tuple(query for query in plan.queries if query.question != old.id)
    changed = rebuild_plan(plan.model_copy(update={"queries": queries}), questions, sections)
    return add_note(changed, f"You reworded “{old.text}” as: {edit.text}")


def _assign_question(plan: Plan, edit: AssignQuestion) -> Plan:
    question = get_question(plan, edit.question)
    title = find_section(plan, edit.section) or edit.section
    moved = question.model_copy(update={"section": title})
    questions = [moved if other.id == question.id else other for other in plan.questions]
    return add_note(rebuild_plan(plan, questions, (*plan.sections, title)), f"You put under {title}: {question.text}")


def _add_section(plan: Plan, edit: AddSection) -> Plan:
    if find_section(plan, edit.title):
        raise AnswerError(f"there is a section {edit.title} already.", help="Add a sub-question to it instead.")
    text = edit.text or f"What is known about {edit.title}?"
    added = _insert_question(plan, text, edit.title, None)
    return add_note(_place_section(added, edit.title, edit.at), f"You added the section {edit.title}: {text}")


def _remove_section(plan: Plan, edit: RemoveSection) -> Plan:
    title = get_section(plan, edit.title)
    held = {question.id for question in plan.questions if question.section == title}
    rest = plan.model_copy(update={"sections": tuple(other for other in plan.sections if other != title)})
    if not rest.sections:
        raise AnswerError("a report needs a section.", help="Add another one first, or rename this one.")
    return add_note(remove_questions(rest, held) if held else rest, f"You removed the section {title}")


def _move_section(plan: Plan, edit: MoveSection) -> Plan:
    title = get_section(plan, edit.title)
    return add_note(_place_section(plan, title, edit.to), f"You moved to place {edit.to} the section {title}")


def _place_section(plan: Plan, title: str, to: int | None) -> Plan:
    others = [other for other in plan.sections if other != title]
    before = check_position(to, len(others) + 1) - 1
    sections = (*others[:before], title, *others[before:])
    questions = sorted(plan.questions, key=lambda question: sections.index(question.section))
    return plan.model_copy(update={"sections": sections, "questions": tuple(questions)})


def _rename_section(plan: Plan, edit: RenameSection) -> Plan:
    title = get_section(plan, edit.title)
    if find_section(plan, edit.name) not in (None, title):
        raise AnswerError(f"there is a section {edit.name} already.", help="Assign the sub-questions to it instead.")
    questions = tuple(
        question.model_copy(update={"section": edit.name}) if question.section == title else question
        for question in plan.questions
    )
    sections = tuple(edit.name if other == title else other for other in plan.sections)
    renamed = plan.model_copy(update={"questions": questions, "sections": sections})
    return add_note(renamed, f"You renamed the section {title}: {edit.name}")


def _set_sources(plan: Plan, edit: SetSources) -> Plan:
    names = tuple(dict.fromkeys(edit.names))
    return add_note(plan.model_copy(update={"sources": names}), f"You chose the sources: {', '.join(names)}")


def _set_budget(plan: Plan, edit: SetBudget) -> Plan:
    return add_note(plan.model_copy(update={"usd": edit.usd}), f"You set the most it may cost: ${edit.usd:,.2f}")


def _set_words(plan: Plan, edit: SetWords) -> Plan:
    return add_note(plan.model_copy(update={"words": edit.words}), f"You set the length: {edit.words:,} words")


_APPLIERS: dict[str, Callable[[Plan, Any], Plan]] = {
    "add": _add_question,
    "remove": _remove_question,
    "move": _move_question,
    "reword": _reword_question,
    "assign": _assign_question,
    "add_section": _add_section,
    "remove_section": _remove_section,
    "move_section": _move_section,
    "rename_section": _rename_section,
    "sources": _set_sources,
    "budget": _set_budget,
    "words": _set_words,
}


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
    """The person's plan in place of `plan`; goal and depth stay as they were asked for."""
    if not isinstance(value, dict):
        raise AnswerError("The plan must be an object.", help=_WHOLE)
    kept = {"goal": plan.goal, "depth": plan.depth, "topic": plan.topic, "edited": True}
    try:
        own = OwnPlan.model_validate({**value, **kept})
    except ValidationError as error:
        faults = "; ".join(describe_problem(problem) for problem in error.errors(include_url=False)[:3])
        raise AnswerError(f"The plan cannot be used: {faults}.", help=_WHOLE) from error
    texts = [question.text.casefold() for question in own.questions]
    if len(set(texts)) < len(texts):
        raise AnswerError("The plan cannot be used: two sub-questions ask the same.", help=_WHOLE)
    made = Plan.model_validate(own.plain())
    return add_note(rebuild_plan(made, made.questions, made.sections), "You wrote the plan anew.")


_WHOLE = "Take the plan as it was shown, change it and send it whole, or send edits instead."
