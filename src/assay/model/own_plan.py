"""A whole plan of a person's own, within the limits that single edits have."""

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError

from assay.errors import AnswerError
from assay.model.edit import LONGEST_TEXT, Length, Money, Name, Text, line, noted, said
from assay.model.outline import rebuilt
from assay.model.plan import Plan, SearchQuery, SubQuestion

LONGEST_NOTE = 2_500  # characters; an answer to a planning question has up to 2,000 of them

Id = Annotated[str, Field(pattern=r"^[A-Z][0-9]{1,3}$")]
Line = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), BeforeValidator(line)]
Note = Annotated[str, Field(max_length=LONGEST_NOTE), BeforeValidator(line)]
Notes = Annotated[tuple[Note, ...], Field(max_length=100)]


class OwnQuestion(SubQuestion):
    id: Id
    text: Text
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


def replaced(plan: Plan, value: object) -> Plan:
    """The person's plan in place of `plan`; goal and depth stay as they were asked for."""
    if not isinstance(value, dict):
        raise AnswerError("The plan must be an object.", help=_WHOLE)
    kept = {"goal": plan.goal, "depth": plan.depth, "topic": plan.topic, "edited": True}
    try:
        own = OwnPlan.model_validate({**value, **kept})
    except ValidationError as error:
        faults = "; ".join(said(problem) for problem in error.errors(include_url=False)[:3])
        raise AnswerError(f"The plan cannot be used: {faults}.", help=_WHOLE) from error
    texts = [question.text.casefold() for question in own.questions]
    if len(set(texts)) < len(texts):
        raise AnswerError("The plan cannot be used: two sub-questions ask the same.", help=_WHOLE)
    made = Plan.model_validate(own.plain())
    return noted(rebuilt(made, made.questions, made.sections), "You wrote the plan anew.")


_WHOLE = "Take the plan as it was shown, change it and send it whole, or send edits instead."
