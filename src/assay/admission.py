"""What may enter a run: a question, an answer to an open one, and what is noted when nobody could be asked."""

from typing import Any
from unicodedata import category

from pydantic import ValidationError

from assay.errors import AnswerError, QuestionError
from assay.model.plan import Plan
from assay.model.question import LONGEST, Mode
from assay.model.thread import Options
from assay.settings import Settings
from assay.stages.approve import DECISIONS


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


def _decision(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    decision = str(given.get("decision")).strip().lower()
    if decision not in DECISIONS:
        raise AnswerError(
            f"{given.get('decision')!r} is not a decision", help=f"Answer one of: {', '.join(DECISIONS)}."
        )
    if decision != "modify":
        return {"decision": decision, "value": None}
    if kind != "approve_plan":
        raise AnswerError("only a plan can be modified here", help="Approve or reject.")
    try:
        return {"decision": decision, "value": Plan.model_validate(given.get("value")).plain()}
    except ValidationError as error:
        reason = error.errors()[0]["msg"].lower()
        raise AnswerError(f"this is no valid plan: {reason}", help="Change the plan shown; send all of it.") from error


def unasked(options: Options, settings: Settings) -> dict[str, str]:
    """What would have been asked of a person, had there been one: said, never left out in silence."""
    if options.interactive:
        return {}
    notices = {}
    if settings.mode is Mode.PLAN and options.mode is Mode.AUTO:
        notices["mode"] = "Plan mode was asked for, but nobody could answer: the plan was made with defaults."
    breakpoints = settings.breakpoints
    if (
        settings.hitl_after_planning
        or settings.hitl_before_output
        or breakpoints.before_harvest
        or breakpoints.on_critical
    ):
        notices["approval"] = "Approvals were switched on, but nobody could give them: they were skipped."
    return notices


def validated(kind: str, value: object) -> object:
    """An answer of the form its question needs; anything else leaves the question open."""
    if kind.startswith("approve_"):
        return _decision(kind, value if isinstance(value, dict) else {"decision": value})
    text = str(value).strip() if isinstance(value, str) else ""
    if not text or len(text) > LONGEST:
        raise AnswerError("the answer is empty or too long", help=f"Give 1 to {LONGEST:,} characters.")
    if not is_readable(text):
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    return text
