"""What a person may change in a plan. Each edit leaves a plan that can be carried out, or is refused and says why.

Positions count from 1. Sections stand in the order of their first sub-questions: moving one moves the other.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal
from unicodedata import category

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from assay.errors import AnswerError
from assay.model.outline import known, numbered, place, rebuilt, section, titled, topic, unasked, without
from assay.model.plan import FEWEST_WORDS, MOST_QUESTIONS, MOST_USD, MOST_WORDS, Plan, SubQuestion
from assay.model.question import Depth
from assay.model.record import Record

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MOST_EDITS = 50
FEWEST_LETTERS = 4  # of a sub-question: five signs ask a whole one in Chinese
LONGEST_TEXT = 500  # characters of a sub-question
LONGEST_TITLE = 120


def line(value: object) -> object:
    """One line without control characters; whatever else is not a text is left to be refused."""
    return (
        " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", value).split()) if isinstance(value, str) else value
    )


def _asks(text: str) -> str:
    if sum(category(sign)[0] in "LM" for sign in text) < FEWEST_LETTERS:  # a vowel sign is as good as a letter
        raise ValueError(f"a sub-question needs at least {FEWEST_LETTERS} letters")
    return text


Text = Annotated[str, Field(max_length=LONGEST_TEXT), BeforeValidator(line), AfterValidator(_asks)]
Title = Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE), BeforeValidator(line)]
Name = Annotated[str, Field(min_length=1, max_length=40), BeforeValidator(line)]
Length = Annotated[int, Field(strict=True, ge=FEWEST_WORDS, le=MOST_WORDS)]
Money = Annotated[float, Field(strict=True, ge=0, le=MOST_USD, allow_inf_nan=False)]
Place = Annotated[int, Field(strict=True, ge=1, le=100)]


class Add(Record):
    """A sub-question more. Without a section it gets one of its own, in a quick answer the first."""

    op: Literal["add"] = "add"
    text: Text
    section: Title | None = None
    at: Place | None = None


class Remove(Record):
    op: Literal["remove"] = "remove"
    question: Name


class Move(Record):
    op: Literal["move"] = "move"
    question: Name
    to: Place


class Reword(Record):
    op: Literal["reword"] = "reword"
    question: Name
    text: Text


class Assign(Record):
    """To another section, which is made where there is none of that name."""

    op: Literal["assign"] = "assign"
    question: Name
    section: Title


class AddSection(Record):
    """A section needs something to answer: `text`, or what is known about its title."""

    op: Literal["add_section"] = "add_section"
    title: Title
    text: Text | None = None
    at: Place | None = None


class RemoveSection(Record):
    """With its sub-questions."""

    op: Literal["remove_section"] = "remove_section"
    title: Title


class MoveSection(Record):
    op: Literal["move_section"] = "move_section"
    title: Title
    to: Place


class RenameSection(Record):
    op: Literal["rename_section"] = "rename_section"
    title: Title
    name: Title


class Sources(Record):
    """Ask these, by name, and no others."""

    op: Literal["sources"] = "sources"
    names: tuple[Name, ...] = Field(min_length=1, max_length=30)


class Budget(Record):
    op: Literal["budget"] = "budget"
    usd: Money


class Words(Record):
    op: Literal["words"] = "words"
    words: Length


Edit = Annotated[
    Add | Remove | Move | Reword | Assign | AddSection | RemoveSection | MoveSection | RenameSection | Sources | Budget
    | Words,
    Field(discriminator="op"),
]  # fmt: skip
EditsOf: TypeAdapter[Edit] = TypeAdapter(Edit)
OPERATIONS = ("add", "remove", "move", "reword", "assign", "add_section", "remove_section", "move_section",
              "rename_section", "sources", "budget", "words")  # fmt: skip


# Reading -----------------------------------------------------------------------------------------------


def parse(edits: object) -> tuple[Edit, ...]:
    """Edits from JSON."""
    if not isinstance(edits, list | tuple) or not edits:
        raise AnswerError("The edits must be a list with at least one edit.", help=_EXAMPLE)
    if len(edits) > MOST_EDITS:
        raise AnswerError(f"{len(edits)} edits are too many at once.", help=f"Send {MOST_EDITS} at most.")
    return tuple(_read(number, edit) for number, edit in enumerate(edits, 1))


def _read(number: int, edit: object) -> Edit:
    plain = edit.model_dump() if isinstance(edit, Record) else edit
    if not isinstance(plain, dict):
        raise AnswerError(f"Edit {number} is not an object with an op.", help=_EXAMPLE)
    try:
        return EditsOf.validate_python(plain)
    except ValidationError as error:
        raise AnswerError(f"{_called(number, plain.get('op'))}: {_explained(error, plain)}", help=_EXAMPLE) from error


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


def _explained(error: ValidationError, edit: Mapping[str, object]) -> str:
    problem = error.errors(include_url=False)[0]
    if problem["type"].startswith("union_tag"):
        return f"there is no operation {edit.get('op')!r:.60}" if "op" in edit else "op is missing"
    return said(problem, after=1)


def said(problem: "ErrorDetails", after: int = 0) -> str:
    """What is wrong with a value, in plain words."""
    if "error" in (limits := problem.get("ctx", {})):
        return str(limits["error"])
    field = ".".join(str(part) for part in problem["loc"][after:])
    limit = _LIMITED.get(problem["type"], "").format(**limits)
    return f"{field[:60]} {limit or _SAID.get(problem['type'], 'cannot be used')}"


def _called(number: int, op: object) -> str:
    return f"Edit {number} ({op})" if op in OPERATIONS else f"Edit {number}"


# Applying ----------------------------------------------------------------------------------------------


def apply(plan: Plan, edits: Sequence[Edit]) -> Plan:
    """A new plan with all edits made in turn; AnswerError at the first that cannot be."""
    for number, edit in enumerate(edits, 1):
        try:
            plan = _MADE[edit.op](plan, edit)
        except AnswerError as error:
            raise AnswerError(f"{_called(number, edit.op)}: {error.message}", help=error.help) from error
    return plan


def noted(plan: Plan, told: str) -> Plan:
    """The plan says of itself what a person has changed."""
    return plan.model_copy(update={"reasoning": (*plan.reasoning, told), "edited": True})


def _add(plan: Plan, edit: Add) -> Plan:
    own = plan.sections[0] if plan.depth is Depth.QUICK and plan.sections else edit.text
    return noted(_with(plan, edit.text, edit.section or own, edit.at), f"You added: {edit.text}")


def _with(plan: Plan, text: str, title: str, at: int | None) -> Plan:
    if len(plan.questions) >= MOST_QUESTIONS:
        raise AnswerError(
            f"a plan has at most {MOST_QUESTIONS} sub-questions.", help="Remove or reword one, and then add yours."
        )
    unasked(plan, text)
    title = titled(plan, title) or title
    ids = [question.id for question in plan.questions]
    question = SubQuestion(id=numbered("Q", ids), text=text, section=title, topic=topic(plan, text))
    before = place(at, len(ids) + 1) - 1
    return rebuilt(plan, (*plan.questions[:before], question, *plan.questions[before:]), (*plan.sections, title))


def _remove(plan: Plan, edit: Remove) -> Plan:
    question = known(plan, edit.question)
    return noted(without(plan, {question.id}), f"You removed: {question.text}")


def _move(plan: Plan, edit: Move) -> Plan:
    question = known(plan, edit.question)
    others = [other for other in plan.questions if other.id != question.id]
    at = place(edit.to, len(plan.questions))
    moved = rebuilt(plan, (*others[: at - 1], question, *others[at - 1 :]), plan.sections)
    return noted(moved, f"You moved to place {at}: {question.text}")


def _reword(plan: Plan, edit: Reword) -> Plan:
    """The words of before are asked no more. A section that was named after them goes along."""
    old = known(plan, edit.question)
    unasked(plan, edit.text, besides=old.id)
    shared = sum(question.section == old.section for question in plan.questions) > 1
    named_after = old.section == old.text and not shared and titled(plan, edit.text) in (None, old.section)
    title = edit.text if named_after else old.section
    new = old.model_copy(update={"text": edit.text, "section": title, "topic": topic(plan, edit.text)})
    questions = [new if question.id == old.id else question for question in plan.questions]
    sections = [title if own == old.section else own for own in plan.sections]
    queries = tuple(query for query in plan.queries if query.question != old.id)
    changed = rebuilt(plan.model_copy(update={"queries": queries}), questions, sections)
    return noted(changed, f"You reworded “{old.text}” as: {edit.text}")


def _assign(plan: Plan, edit: Assign) -> Plan:
    question = known(plan, edit.question)
    title = titled(plan, edit.section) or edit.section
    moved = question.model_copy(update={"section": title})
    questions = [moved if other.id == question.id else other for other in plan.questions]
    return noted(rebuilt(plan, questions, (*plan.sections, title)), f"You put under {title}: {question.text}")


def _add_section(plan: Plan, edit: AddSection) -> Plan:
    if titled(plan, edit.title):
        raise AnswerError(f"there is a section {edit.title} already.", help="Add a sub-question to it instead.")
    text = edit.text or f"What is known about {edit.title}?"
    added = _with(plan, text, edit.title, None)
    return noted(_placed(added, edit.title, edit.at), f"You added the section {edit.title}: {text}")


def _remove_section(plan: Plan, edit: RemoveSection) -> Plan:
    title = section(plan, edit.title)
    held = {question.id for question in plan.questions if question.section == title}
    rest = plan.model_copy(update={"sections": tuple(other for other in plan.sections if other != title)})
    if not rest.sections:
        raise AnswerError("a report needs a section.", help="Add another one first, or rename this one.")
    return noted(without(rest, held) if held else rest, f"You removed the section {title}")


def _move_section(plan: Plan, edit: MoveSection) -> Plan:
    title = section(plan, edit.title)
    return noted(_placed(plan, title, edit.to), f"You moved to place {edit.to} the section {title}")


def _placed(plan: Plan, title: str, to: int | None) -> Plan:
    others = [other for other in plan.sections if other != title]
    before = place(to, len(others) + 1) - 1
    sections = (*others[:before], title, *others[before:])
    questions = sorted(plan.questions, key=lambda question: sections.index(question.section))
    return plan.model_copy(update={"sections": sections, "questions": tuple(questions)})


def _rename_section(plan: Plan, edit: RenameSection) -> Plan:
    title = section(plan, edit.title)
    if titled(plan, edit.name) not in (None, title):
        raise AnswerError(f"there is a section {edit.name} already.", help="Assign the sub-questions to it instead.")
    questions = tuple(
        question.model_copy(update={"section": edit.name}) if question.section == title else question
        for question in plan.questions
    )
    sections = tuple(edit.name if other == title else other for other in plan.sections)
    renamed = plan.model_copy(update={"questions": questions, "sections": sections})
    return noted(renamed, f"You renamed the section {title}: {edit.name}")


def _sources(plan: Plan, edit: Sources) -> Plan:
    names = tuple(dict.fromkeys(edit.names))
    return noted(plan.model_copy(update={"sources": names}), f"You chose the sources: {', '.join(names)}")


def _budget(plan: Plan, edit: Budget) -> Plan:
    return noted(plan.model_copy(update={"usd": edit.usd}), f"You set the most it may cost: ${edit.usd:,.2f}")


def _words(plan: Plan, edit: Words) -> Plan:
    return noted(plan.model_copy(update={"words": edit.words}), f"You set the length: {edit.words:,} words")


_MADE: dict[str, Callable[[Plan, Any], Plan]] = {
    "add": _add, "remove": _remove, "move": _move, "reword": _reword, "assign": _assign, "add_section": _add_section,
    "remove_section": _remove_section, "move_section": _move_section, "rename_section": _rename_section,
    "sources": _sources, "budget": _budget, "words": _words,
}  # fmt: skip
