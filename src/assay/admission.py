"""What may enter a run: a question, an answer to an open one, and what is noted when nobody could be asked."""

from typing import Any, ClassVar
from unicodedata import category

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.errors import AnswerError, QuestionError
from assay.model.edit import apply, parse, replaced
from assay.model.plan import Plan
from assay.model.question import LONGEST, Mode
from assay.model.review import Decision
from assay.model.thread import Options
from assay.questions import OpenQuestion, asked_as
from assay.settings import Settings
from assay.stages.question import ALL, CUSTOM

LARGEST = 200_000  # characters of an answer as JSON; a plan of seven sub-questions has about 10,000


def accepted(question: str, options: Options) -> str:
    """A question that may enter a run, or QuestionError saying what is wrong with it."""
    if not is_readable(question):
        raise QuestionError("the question is not readable text", help="Give it in words, as UTF-8 text.")
    question = question.strip()
    if len(question) > LONGEST:
        raise QuestionError(
            f"the question has {len(question):,} characters; at most {LONGEST:,} are taken",
            help="Shorten it, and put background into a file given with --docs.",
        )
    if not question and not options.interactive:
        raise QuestionError("the question is empty", help='Ask like this: assay research "How did X change?"')
    return question


def is_readable(text: str) -> bool:
    """No control codes, no bytes that were not UTF-8. Format characters are text: Persian joins with U+200C, Arabic
    and Hebrew are marked with U+200F, emoji joined with U+200D."""
    return "\ufffd" not in text and not any(category(mark) in ("Cc", "Cs") and not mark.isspace() for mark in text)


def unasked(options: Options, settings: Settings) -> dict[str, str]:
    """What would have been asked of a person, had there been one: said, never left out in silence."""
    if options.interactive:
        return {}
    notices = {}
    if settings.mode is Mode.PLAN and options.mode is Mode.AUTO:
        notices["mode"] = "Plan mode was asked for, but nobody could answer: the plan was made with defaults."
    points = settings.breakpoints
    wanted = settings.hitl_after_planning, settings.hitl_before_output, points.before_harvest, points.on_critical
    if any(wanted) or points.custom:
        notices["approval"] = "Approvals were switched on, but nobody could give them: they were skipped."
    return notices


# -- answers ----------------------------------------------------------------------------------------------


class Form(BaseModel):
    """What an answer to a kind of question may hold. Nothing is turned into another type, nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)
    modifies: ClassVar[str] = ""  # how a change is made, for whoever sent none

    decision: Decision = Field(strict=False)
    comment: str = Field(default="", max_length=LONGEST)


class PlanForm(Form):
    modifies = 'send {"decision": "modify", "edits": [...]} or the whole "plan"'

    edits: list[Any] = []
    plan: dict[str, Any] | None = None


class HarvestForm(Form):
    modifies = 'send {"decision": "modify", "pages": 20} or "without": ["example.com"]'

    pages: int | None = Field(default=None, ge=0, le=1000)
    without: list[str] = Field(default=[], max_length=100)


class ClaimsForm(Form):
    modifies = 'send {"decision": "modify", "drop": ["C3"]}'

    drop: list[str] = Field(default=[], max_length=1000)


class ReportForm(Form):
    modifies = 'send {"decision": "modify", "fixes": ["what to change"]}, or "drop": [section titles], or "title"'

    fixes: list[str] = Field(default=[], max_length=20)
    drop: list[str] = Field(default=[], max_length=50)
    title: str | None = Field(default=None, min_length=1, max_length=200)


FORMS: dict[str, type[Form]] = {
    "approve_plan": PlanForm, "approve_harvest": HarvestForm, "approve_claims": ClaimsForm,
    "approve_review": ReportForm, "approve_output": ReportForm,
}  # fmt: skip


def schema(kind: str) -> dict[str, Any]:
    """The JSON schema of an answer."""
    return FORMS[kind].model_json_schema() if kind in FORMS else {"type": "string", "maxLength": LONGEST}


def validated(question: OpenQuestion, value: object) -> dict[str, Any]:
    """An answer of the form its question needs; anything else is an AnswerError and leaves the question open."""
    return _decided(question, value) if question.kind in FORMS else {"text": _text(question, value)}


def _text(question: OpenQuestion, value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text or len(text) > LONGEST:
        raise AnswerError("the answer is empty or too long", help=f"Give 1 to {LONGEST:,} characters of text.")
    if not is_readable(text):
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    if text == CUSTOM and CUSTOM in question.options:
        raise AnswerError("“Custom” stands for an answer of your own", help="Give that answer itself.")
    if text == ALL and ALL in question.options:
        return "; ".join(option for option in question.options if option not in (ALL, CUSTOM))
    return text


def _decided(question: OpenQuestion, value: object) -> dict[str, Any]:
    form = _filled(question.kind, value)
    if form.decision.value not in question.options:
        raise AnswerError(
            f"{form.decision.value} is not possible here any more",
            help=f"Answer one of: {', '.join(question.options)}.",
        )
    given = {**form.model_dump(mode="json"), "by": "person", **asked_as(question)}
    if form.decision is not Decision.MODIFY:
        return given
    if not any(given[name] not in (None, [], "") for name in type(form).model_fields if name not in Form.model_fields):
        raise AnswerError("nothing is said about what to change", help=f"To change something {form.modifies}.")
    return {**given, "plan": _edited(question.shown["plan"], form)} if isinstance(form, PlanForm) else given


def _filled(kind: str, value: object) -> Form:
    given = value if isinstance(value, dict) else {"decision": value}
    if len(str(given)) > LARGEST:
        raise AnswerError("the answer is too long", help=f"At most {LARGEST:,} characters are taken.")
    decision = given.get("decision")
    given = {**given, "decision": decision.strip().lower() if isinstance(decision, str) else decision}
    try:
        form = FORMS[kind].model_validate(given)
    except ValidationError as error:
        raise _refusal(kind, given, error) from error
    texts = [text for field in form.model_dump().values() for text in (field if isinstance(field, list) else [field])]
    if not all(is_readable(text) for text in texts if isinstance(text, str)):
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    return form


def _refusal(kind: str, given: dict[str, Any], error: ValidationError) -> AnswerError:
    problem = error.errors()[0]
    name = ".".join(map(str, problem["loc"]))
    if name == "decision":
        decisions = ", ".join(decision.value for decision in Decision)
        return AnswerError(f"{str(given['decision'])[:80]!r} is not a decision", help=f"Answer one of: {decisions}.")
    known = ", ".join(FORMS[kind].model_fields)
    return AnswerError(f"{name[:80]}: {problem['msg'].lower()}", help=f"An answer here may hold: {known}.")


def _edited(shown: dict[str, Any], form: PlanForm) -> dict[str, object]:
    plan = Plan.model_validate(shown)
    if form.plan is not None:
        plan = replaced(plan, form.plan)
    return apply(plan, parse(form.edits)).plain() if form.edits else plan.plain()
