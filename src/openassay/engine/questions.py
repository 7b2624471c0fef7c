"""What a run waits for: LangGraph's interrupts as questions with an id, a form and a deadline.

Resuming goes by id alone. A bare value would answer whatever happens to be open, and `Command(resume=None)` crashes.
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
from openassay.nodes.gate import ALL, CUSTOM, NOBODY
from openassay.settings import Settings
from openassay.text.urls import parse_url as address
from openassay.text.urls import registrable_domain
from openassay.text.words import fold, is_readable

_OWN = ("kind", "question", "options", "asked", "seconds", "on_timeout")


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
    """Questions asked before they had a deadline have none."""
    return [_read_interrupt(item.id, item.value) for item in interrupts]


def _read_interrupt(id: str, value: dict[str, Any]) -> OpenQuestion:
    asked = datetime.fromisoformat(value["asked"]) if value.get("asked") else None
    due = asked + timedelta(seconds=value["seconds"]) if asked and value.get("seconds") else None
    return OpenQuestion(
        id=id,
        kind=value["kind"],
        question=value["question"],
        options=tuple(value.get("options", ())),
        shown={key: held for key, held in value.items() if key not in _OWN},
        asked=asked,
        due=due,
        on_timeout=value.get("on_timeout", "end"),
    )


def build_review(question: OpenQuestion, run: Run, now: datetime) -> Review:
    return Review(
        id=question.id, thread=run.thread, run=run.id, kind=question.kind, question=question.question,
        opened=question.asked or now, due=question.due, on_timeout=question.on_timeout,
    )  # fmt: skip


def timeout_answer(question: OpenQuestion) -> dict[str, Any]:
    """What the timer answers."""
    if question.on_timeout == "guess":
        return {"skipped": "timer"}
    decision = "approve" if question.on_timeout == "approve" else "timeout"
    return {"decision": decision, "comment": "", "by": "timer", **question_reference(question)}


def question_reference(question: OpenQuestion) -> dict[str, str]:
    """Which breakpoint was answered: under other settings another may stand there by the time the answer comes."""
    return {"key": str(question.shown.get("key", "")), "question": question.question}


SKIP_BY_MODE = {"skipped": "mode"}  # what a planning question is told when its thread is switched to auto


# What may enter a run: a question, an answer to an open one, and what is noted when nobody could be asked.

LARGEST = 200_000  # characters of an answer as JSON; a plan of seven sub-questions has about 10,000


def validate_question(question: str, options: ResearchOptions) -> str:
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
        raise QuestionError("the question is empty", help='Ask like this: openassay research "How did X change?"')
    return question


def list_skipped_approvals(options: ResearchOptions, settings: Settings) -> dict[str, str]:
    """What would have been asked of a person, had there been one: said, never left out in silence."""
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


# -- answers ----------------------------------------------------------------------------------------------


QuestionContent = Mapping[str, Any]  # what the person saw when they decided
FixText = Annotated[str, Field(min_length=1, max_length=LONGEST), BeforeValidator(clean_line)]
ReportTitle = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(clean_line)]


class AnswerForm(BaseModel):
    """What an answer to a kind of question may hold. Nothing is turned into another type, nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)
    modifies: ClassVar[str] = ""  # how a change is made, for whoever sent none

    decision: Decision = Field(strict=False)
    comment: str = Field(default="", max_length=LONGEST)

    @property
    def changes(self) -> dict[str, Any]:
        own = [name for name in type(self).model_fields if name not in AnswerForm.model_fields]
        return {name: value for name in own if (value := getattr(self, name)) not in (None, [], "")}

    def apply(self, shown: QuestionContent) -> dict[str, Any]:
        """What is to be done, or AnswerError where it cannot be done to what was shown."""
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


_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")


def _parse_host(name: str, found: Collection[str]) -> str:
    """As addresses have it, from however it was written; a whole address stands for its host. A name that everybody
    may register under, such as "com", would strike out the web."""
    text = name.strip()
    place = address(text if "://" in text else f"https://{text}")
    host = place.host.rstrip(".").removeprefix("www.") if place else ""
    if host in found or (_HOST.fullmatch(host) and registrable_domain(host)):
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
    """Names as they are spelt where they stand."""
    spelt = {" ".join(fold(name).split()): name for name in known if name}
    wanted = [(name, " ".join(fold(name).split())) for name in names]
    if unknown := [name for name, folded in wanted if folded not in spelt]:
        listed = ", ".join(spelt.values())
        raise AnswerError(f"there is no {unknown[0][:80]!r} to drop", help=f"There are: {listed[:1000]}.")
    return list(dict.fromkeys(spelt[folded] for _, folded in wanted))


def _empty_error(what: str) -> AnswerError:
    return AnswerError(f"that would leave no {what} with an answer", help="Drop fewer, or reject it instead.")


FORMS: dict[str, type[AnswerForm]] = {
    "approve_plan": PlanForm, "approve_harvest": HarvestForm, "approve_claims": ClaimsForm,
    "approve_review": ReportForm, "approve_output": ReportForm,
}  # fmt: skip


def answer_schema(kind: str) -> dict[str, Any]:
    """The JSON schema of an answer."""
    return FORMS[kind].model_json_schema() if kind in FORMS else {"type": "string", "maxLength": LONGEST}


def validate_answer(question: OpenQuestion, value: object) -> dict[str, Any]:
    """An answer of the form its question needs; anything else is an AnswerError and leaves the question open."""
    return _validate_decision(question, value) if question.kind in FORMS else {"text": _validate_text(question, value)}


def _validate_text(question: OpenQuestion, value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text or len(text) > LONGEST:
        raise AnswerError("the answer is empty or too long", help=f"Give 1 to {LONGEST:,} characters of text.")
    if not is_readable(text):
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    said = text.casefold().rstrip(" .!")
    if said == CUSTOM.casefold() and CUSTOM in question.options:
        raise AnswerError("“Custom” stands for an answer of your own", help="Give that answer itself.")
    if said == ALL.casefold() and ALL in question.options:
        return "; ".join(option for option in question.options if option not in (ALL, CUSTOM))
    if question.kind == "planning":
        _refuse_non_answer(said, text)
    return text


def _refuse_non_answer(said: str, text: str) -> None:
    """A planning question takes any words, but not all of several that exclude each other, nor another question."""
    if said == ALL.casefold():
        raise AnswerError("only one of these can hold", help="Choose one, or give an answer of your own.")
    if text.endswith(("?", "？", "؟")) and len(text.split()) > 2:
        raise AnswerError(
            "this is a question of its own",
            help='Answer this one first; "any" leaves it open, and "never mind" ends the research.',
        )


def _validate_decision(question: OpenQuestion, value: object) -> dict[str, Any]:
    form = _parse_form(question.kind, value)
    if form.decision.value not in question.options:
        raise AnswerError(
            f"{form.decision.value} is not possible here any more",
            help=f"Answer one of: {', '.join(question.options)}.",
        )
    given = {**form.model_dump(mode="json"), "by": "person", **question_reference(question)}
    how = f"To change something {form.modifies}."
    if form.decision is Decision.MODIFY:
        if not form.changes:
            raise AnswerError("nothing is said about what to change", help=how)
        return {**given, **form.apply(question.shown)}
    if form.changes:
        raise AnswerError(f"{form.decision.value} would ignore what is said in {', '.join(form.changes)}", help=how)
    return given


def _parse_form(kind: str, value: object) -> AnswerForm:
    given = value if isinstance(value, dict) else {"decision": value}
    try:
        size, readable = len(str(given)), all(map(is_readable, _iterate_texts(given)))
    except RecursionError as error:
        raise AnswerError(
            "the answer is nested too deeply", help="Look at the example that review show gives."
        ) from error
    if size > LARGEST:
        raise AnswerError("the answer is too long", help=f"At most {LARGEST:,} characters are taken.")
    if not readable:
        raise AnswerError("the answer is not readable text", help="Give it in words, as UTF-8 text.")
    decision = given.get("decision")
    given = {**given, "decision": decision.strip().lower() if isinstance(decision, str) else decision}
    try:
        return FORMS[kind].model_validate(given)
    except ValidationError as error:
        raise _form_error(kind, given, error) from error


def _iterate_texts(value: object) -> Iterator[str]:
    """All there are, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in (*value, *value.values()):
            yield from _iterate_texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _iterate_texts(part)


def _form_error(kind: str, given: dict[str, Any], error: ValidationError) -> AnswerError:
    problem = error.errors()[0]
    name = ".".join(map(str, problem["loc"]))
    if name == "decision":
        decisions = ", ".join(decision.value for decision in Decision)
        return AnswerError(f"{str(given['decision'])[:80]!r} is not a decision", help=f"Answer one of: {decisions}.")
    known = ", ".join(FORMS[kind].model_fields)
    return AnswerError(f"{name[:80]}: {problem['msg'].lower()}", help=f"An answer here may hold: {known}.")
