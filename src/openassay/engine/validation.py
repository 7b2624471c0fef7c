"""Validates questions and answers, and reads what a run asks a person: an id, a form and a deadline.

Answers name their question by its id. A bare value would answer whatever happens to be open, and
`Command(resume=None)` crashes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from openassay.errors import AnswerError, QuestionError
from openassay.models.base import Record
from openassay.models.plan import LONGEST, Mode, Plan, apply_edits, clean_line, parse_edits, replace_plan
from openassay.models.thread import Decision, OnTimeout, ResearchOptions, Review, Run
from openassay.nodes.plan import ALL, CUSTOM, NOBODY
from openassay.settings import Settings
from openassay.text.urls import parse_url, registrable_domain
from openassay.text.words import fold, is_readable

MAX_ANSWER_CHARS = 200_000  # of an answer as JSON; a plan of seven sub-questions has about 10,000
SKIP_BY_MODE = {"skipped": "mode"}  # the answer to a planning question when its thread is switched to auto
HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_FIELDS = ("kind", "question", "options", "asked", "on_timeout")


class OpenQuestion(Record):
    """`id` names it; answers to any other id are refused."""

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}
    asked: datetime | None = None
    due: datetime | None = None
    on_timeout: OnTimeout = "end"


def read_interrupts(interrupts: Iterable[Any]) -> list[OpenQuestion]:
    """Read the questions of a checkpoint; those asked before questions had deadlines have none."""
    questions = []
    for interrupt in interrupts:
        fields = {name: interrupt.value[name] for name in _FIELDS if name in interrupt.value}
        shown = {name: value for name, value in interrupt.value.items() if name not in (*_FIELDS, "seconds")}
        question = OpenQuestion(id=interrupt.id, shown=shown, **fields)
        if question.asked and (seconds := interrupt.value.get("seconds")):
            question = question.model_copy(update={"due": question.asked + timedelta(seconds=seconds)})
        questions.append(question)
    return questions


def build_review(question: OpenQuestion, run: Run, now: datetime) -> Review:
    fields = question.model_dump(include={"id", "kind", "question", "due", "on_timeout"})
    return Review(**fields, thread=run.thread, run=run.id, opened=question.asked or now)


def timeout_answer(question: OpenQuestion) -> dict[str, Any]:
    if question.on_timeout == "guess":
        return {"skipped": "timer"}
    decision = "approve" if question.on_timeout == "approve" else "timeout"
    return {"decision": decision, "comment": "", "by": "timer", **question_reference(question)}


def question_reference(question: OpenQuestion) -> dict[str, str]:
    """Name the breakpoint that was answered: under other settings another may be there when the answer comes."""
    return {"key": str(question.shown.get("key", "")), "question": question.question}


def validate_question(question: str, options: ResearchOptions) -> str:
    """Return the question as it may enter a run; raises QuestionError saying what is wrong with it."""
    if not is_readable(question):
        raise QuestionError("the question is not readable text", help="Give it in words, as UTF-8 text.")
    question = question.strip()
    if len(question) > LONGEST:
        raise QuestionError(
            f"the question has {len(question):,} characters; at most {LONGEST:,} are allowed",
            help="Shorten it, and put background into a file given with --docs.",
        )
    if not question and not options.interactive:
        raise QuestionError("the question is empty", help='Ask like this: openassay research "How did X change?"')
    return question


def list_skipped_approvals(options: ResearchOptions, settings: Settings) -> dict[str, str]:
    """Return notices of what would have been asked of a person, had there been one: never skipped in silence."""
    if options.interactive:
        return {}
    notices = {}
    if settings.mode is Mode.PLAN and options.mode is Mode.AUTO:
        notices["mode"] = NOBODY
    points = settings.breakpoints
    wanted = settings.hitl_after_planning, settings.hitl_before_output, points.before_harvest, points.on_critical
    if any(wanted) or points.custom:
        notices["approval"] = "Approvals were switched on, but nobody could give them: they were skipped."
    return notices


QuestionContent = Mapping[str, Any]  # what the person saw when they decided
FixText = Annotated[str, Field(min_length=1, max_length=LONGEST), BeforeValidator(clean_line)]
ReportTitle = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(clean_line)]


class AnswerForm(BaseModel):
    """What an answer to a kind of question may hold. Nothing is converted, and nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)
    modifies: ClassVar[str] = ""  # how to send a change, for the error where none was sent

    decision: Decision = Field(strict=False)
    comment: str = Field(default="", max_length=LONGEST)

    @property
    def changes(self) -> dict[str, Any]:
        own = [name for name in type(self).model_fields if name not in AnswerForm.model_fields]
        return {name: value for name in own if (value := getattr(self, name)) not in (None, [], "")}

    def apply(self, shown: QuestionContent) -> dict[str, Any]:
        """Return what is to be done; raises AnswerError where it cannot be done to what was shown."""
        return {}


class PlanForm(AnswerForm):
    modifies = 'send {"decision": "modify", "edits": [...]} or the whole "plan"'

    edits: list[Any] = []
    plan: dict[str, Any] | None = None

    def apply(self, shown: QuestionContent) -> dict[str, Any]:
        plan = Plan.model_validate(shown["plan"])
        if self.plan is not None:
            plan = replace_plan(plan, self.plan)
        return {"plan": apply_edits(plan, parse_edits(self.edits)).plain() if self.edits else plan.plain()}


class HarvestForm(AnswerForm):
    modifies = 'send {"decision": "modify", "pages": 20} or "without": ["example.com"]'

    pages: int | None = Field(default=None, ge=0, le=1000)
    without: list[str] = Field(default=[], max_length=100)

    def apply(self, shown: QuestionContent) -> dict[str, Any]:
        return {"without": [_parse_host(name, shown.get("hosts", ())) for name in self.without]}


def _parse_host(name: str, found: Collection[str]) -> str:
    """Return the host of a name or an address. A suffix that everybody may register under, such as "com", would exclude
    the whole web."""
    text = name.strip()
    url = parse_url(text if "://" in text else f"https://{text}")
    host = url.host.rstrip(".").removeprefix("www.") if url else ""
    if host in found or (HOST.fullmatch(host) and registrable_domain(host)):
        return host
    raise AnswerError(f"{name[:80]!r} is no host", help="Name hosts as in example.com.")


class ClaimsForm(AnswerForm):
    modifies = 'send {"decision": "modify", "drop": ["C3"]}'

    drop: list[str] = Field(default=[], max_length=1000)

    def apply(self, shown: QuestionContent) -> dict[str, Any]:
        claims = {claim["id"]: claim for claim in shown["claims"]}
        out = _match_names(self.drop, claims)
        if out and not any(claim["verdict"] == "supported" for name, claim in claims.items() if name not in out):
            raise _empty_error("statement")
        return {"drop": out}


class ReportForm(AnswerForm):
    modifies = 'send {"decision": "modify", "fixes": ["what to change"]}, or "drop": [section titles], or "title"'

    fixes: list[FixText] = Field(default=[], max_length=20)
    drop: list[str] = Field(default=[], max_length=50)
    title: ReportTitle | None = None

    def apply(self, shown: QuestionContent) -> dict[str, Any]:
        sections = shown["draft"]["sections"]
        out = _match_names(self.drop, [section["title"] for section in sections])
        kept = [section for section in sections if section["title"] not in out]
        if out and not any(sentence["claims"] for section in kept for sentence in section["sentences"]):
            raise _empty_error("section")
        return {"drop": out}


def _match_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names as they are spelt in what was shown."""
    spelt = {" ".join(fold(name).split()): name for name in known if name}
    wanted = [(name, " ".join(fold(name).split())) for name in names]
    if unknown := [name for name, folded in wanted if folded not in spelt]:
        listed = ", ".join(spelt.values())
        raise AnswerError(f"there is no {unknown[0][:80]!r} to drop", help=f"There are: {listed[:1000]}.")
    return list(dict.fromkeys(spelt[folded] for _, folded in wanted))


def _empty_error(what: str) -> AnswerError:
    return AnswerError(f"that would leave no {what} with an answer", help="Drop fewer, or reject it instead.")


FORMS: dict[str, type[AnswerForm]] = {
    "approve_plan": PlanForm,
    "approve_harvest": HarvestForm,
    "approve_claims": ClaimsForm,
    "approve_review": ReportForm,
    "approve_output": ReportForm,
}


def answer_schema(kind: str) -> dict[str, Any]:
    return FORMS[kind].model_json_schema() if kind in FORMS else {"type": "string", "maxLength": LONGEST}


def validate_answer(question: OpenQuestion, value: object) -> dict[str, Any]:
    """Return the answer in the form its question needs; anything else is an AnswerError."""
    if question.kind not in FORMS:
        return {"text": _validate_text(question, value)}
    form = _parse_form(question.kind, value)
    if form.decision.value not in question.options:
        raise AnswerError(
            f"{form.decision.value} is not possible here any more",
            help=f"Answer one of: {', '.join(question.options)}.",
        )
    answer = {**form.model_dump(mode="json"), "by": "person", **question_reference(question)}
    help = f"To change something {form.modifies}."
    if form.decision is Decision.MODIFY:
        if not form.changes:
            raise AnswerError("nothing is said about what to change", help=help)
        return {**answer, **form.apply(question.shown)}
    if form.changes:
        raise AnswerError(f"{form.decision.value} would ignore what is said in {', '.join(form.changes)}", help=help)
    return answer


def _validate_text(question: OpenQuestion, value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text or len(text) > LONGEST:
        raise AnswerError("the answer is empty or too long", help=f"Give 1 to {LONGEST:,} characters of text.")
    if not is_readable(text):
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    folded = text.casefold().rstrip(" .!")
    if folded == CUSTOM.casefold() and CUSTOM in question.options:
        raise AnswerError("“Custom” stands for an answer of your own", help="Give that answer itself.")
    if folded == ALL.casefold() and ALL in question.options:
        return "; ".join(option for option in question.options if option not in (ALL, CUSTOM))
    # A planning question takes any words, but not all of several that exclude each other, nor another question.
    if question.kind == "planning" and folded == ALL.casefold():
        raise AnswerError("only one of these can hold", help="Choose one, or give an answer of your own.")
    if question.kind == "planning" and text.endswith(("?", "？", "؟")) and len(text.split()) > 2:
        raise AnswerError(
            "this is a question of its own",
            help='Answer this one first; "any" leaves it open, and "never mind" ends the research.',
        )
    return text


def _parse_form(kind: str, value: object) -> AnswerForm:
    fields = value if isinstance(value, dict) else {"decision": value}
    try:
        size, readable = len(str(fields)), all(map(is_readable, _iterate_texts(fields)))
    except RecursionError as error:
        raise AnswerError(
            "the answer is nested too deeply", help="Look at the example that review show gives."
        ) from error
    if size > MAX_ANSWER_CHARS:
        raise AnswerError("the answer is too long", help=f"At most {MAX_ANSWER_CHARS:,} characters are allowed.")
    if not readable:
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    decision = fields.get("decision")
    fields = {**fields, "decision": decision.strip().lower() if isinstance(decision, str) else decision}
    try:
        return FORMS[kind].model_validate(fields)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        message = f"{name[:80]}: {problem['msg'].lower()}"
        help = f"An answer here may hold: {', '.join(FORMS[kind].model_fields)}."
        if name == "decision":
            message = f"{str(fields['decision'])[:80]!r} is not a decision"
            help = f"Answer one of: {', '.join(decision.value for decision in Decision)}."
        raise AnswerError(message, help=help) from error


def _iterate_texts(value: object) -> Iterator[str]:
    """Yield all texts, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in (*value, *value.values()):
            yield from _iterate_texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _iterate_texts(part)
