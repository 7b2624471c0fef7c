"""`assay review`: what waits for a person, shown and answered from anywhere."""

import asyncio
import json as text_of
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import typer

from assay.admission import FORMS, schema
from assay.bootstrap import open_engine
from assay.cli.asking import Choice
from assay.cli.delivery import check_target
from assay.cli.lines import one_line
from assay.cli.progress import Progress
from assay.cli.research import Wishes, converse, deliver, told_before
from assay.cli.reviewing import show_question
from assay.cli.screen import tell
from assay.engine import Engine, Outcome
from assay.errors import AnswerError, NotFoundError, PathError, UsageError
from assay.model.review import Decision, Review
from assay.questions import OpenQuestion
from assay.settings import load

MOST_BYTES = 2_000_000  # of a file of edits; an answer may have a tenth of that
THEN = {"approve": "goes on", "end": "ends", "guess": "guesses"}
_COLUMNS = "{:12}  {:16}  {:10}  {:9}  {:16}  {}"


# Looking ----------------------------------------------------------------------------------------------


def listing(json: bool) -> None:
    async def waiting() -> list[tuple[Review, str]]:
        async with open_engine(load()) as engine:
            return [(review, await _about(engine, review)) for review in await engine.reviews()]

    found = asyncio.run(waiting())
    if json:
        typer.echo(text_of.dumps([_listed(*one) for one in found], indent=2, ensure_ascii=False).encode())
    elif found:
        _print(found)
    else:
        tell("Nothing waits for an answer.")


async def _about(engine: Engine, review: Review) -> str:
    """What is being researched."""
    return (await engine.threads.run(review.run)).question


def _print(found: list[tuple[Review, str]]) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    typer.echo(_COLUMNS.format("thread", "opened", "time left", "then", "kind", "question")[:width])
    for review, about in found:
        typer.echo(_COLUMNS.format(*map(one_line, _row(review)))[:width])
        typer.echo(f"{'':12}  {one_line(about)}"[:width])
    tell(f"Look at one with: assay review show {found[0][0].thread}")
    if any(left(review.due) == "overdue" for review, _ in found):
        tell("Overdue: assay review timers --once settles them.")


def _row(review: Review) -> tuple[str, ...]:
    then = THEN[review.on_timeout] if review.due else ""
    opened = f"{review.opened.astimezone():%Y-%m-%d %H:%M}"
    return review.thread, opened, left(review.due), then, review.kind, review.question


def _listed(review: Review, about: str) -> dict[str, Any]:
    asked = review.model_dump(mode="json", exclude={"answered", "answer", "by"})
    return {**asked, "about": about, "overdue": left(review.due) == "overdue"}


def left(due: datetime | None) -> str:
    if due is None:
        return "no limit"
    seconds = (due - datetime.now(UTC)).total_seconds()
    for size, unit in ((7200, 3600), (90, 60)):
        if seconds >= size:
            return f"{seconds / unit:.0f} {'h' if unit == 3600 else 'min'}"
    return f"{seconds:.0f} s" if seconds > 0 else "overdue"


def show(thread: str, json: bool) -> None:
    async def waiting() -> tuple[list[OpenQuestion], str]:
        async with open_engine(load()) as engine:
            return await _open(engine, thread), (await engine.threads.runs(thread))[-1].question

    questions, about = asyncio.run(waiting())
    if json:
        told = [{**one.plain(), "schema": schema(one.kind), "example": example(one)} for one in questions]
        typer.echo(
            text_of.dumps({"thread": thread, "about": about, "questions": told}, indent=2, ensure_ascii=False).encode()
        )
        return
    for question in questions:
        show_question(thread, about, question, example(question))


async def _open(engine: Engine, thread: str) -> list[OpenQuestion]:
    await engine.threads.get(thread)
    questions = await engine.open_questions(thread)
    if not questions:
        last = await engine.last_review(thread)
        settled = f"; its last question was {last.refusal}" if last and last.answered else ""
        raise NotFoundError(
            f"thread {thread} does not wait for an answer{settled}",
            help=f"See where it stands with: assay threads show {thread}",
        )
    return questions


def example(question: OpenQuestion) -> Any:
    """An answer that would be taken; of a breakpoint, one that changes something."""
    if question.kind not in FORMS:
        return question.options[0] if question.options else "An answer in your own words"
    if Decision.MODIFY not in question.options:
        return {"decision": "approve"}
    claims = [claim["id"] for claim in question.shown.get("claims", ())]
    changes: dict[str, dict[str, Any]] = {
        "approve_plan": {"edits": [{"op": "words", "words": 500}]},
        "approve_harvest": {"pages": 10},
        "approve_claims": {"drop": claims[-1:] or ["C1"]},
    }
    change = changes.get(question.kind, {"fixes": ["Give the year with every figure."]})
    return {"decision": "modify", "comment": "Why", **change}


# Answering --------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """An answer as it was typed."""

    words: str
    edits: Any = None
    comment: str = ""


def answer(
    thread: str,
    words: str,
    *,
    edits: str | None = None,
    comment: str = "",
    question_id: str | None = None,
    json: bool = False,
    quiet: bool = False,
    out: Path | None = None,
) -> None:
    """Then the run is followed to its end or to its next question, as `assay resume` does."""
    wishes = Wishes(json=json, quiet=quiet, out=out)
    if out is not None:
        check_target(out)
    given = Given(words.strip(), read_edits(edits, _see(thread)) if edits else None, comment)
    deliver(asyncio.run(_answered(thread, given, question_id, wishes)), wishes)


async def _answered(thread: str, given: Given, question_id: str | None, wishes: Wishes) -> Outcome:
    async with open_engine(load()) as engine:
        told = await told_before(engine, thread)
        question = await _meant(engine, thread, question_id)
        run = await engine.answer(thread, question.id, value(thread, question, given))
        progress = Progress(run, enabled=not wishes.quiet)
        return await converse(engine, run, progress, interactive=wishes.interactive, told=told)


async def _meant(engine: Engine, thread: str, id: str | None) -> OpenQuestion:
    if id is None:
        return (await _open(engine, thread))[0]
    for question in await engine.open_questions(thread):
        if question.id == id:
            return question
    await engine.answer(thread, id, "")  # refused, with the reason why it is not open
    raise AnswerError("this question is not open any more", help="See what is open with: assay review")


def value(thread: str, question: OpenQuestion, given: Given) -> object:
    """What was typed, in the form its question needs; whether it will do is for the engine to say."""
    if question.kind not in FORMS:
        if given.edits is not None or given.comment:
            raise UsageError("this question wants an answer in words", help="Leave --edits and --comment out.")
        return _chosen(question, given.words)
    decision, comment = _decided(given)
    if given.edits is None:
        return {"decision": decision, **comment}
    if decision.lower() != Decision.MODIFY:
        raise UsageError(f"--edits does not go with {decision!r}", help="Say: modify --edits FILE")
    return {**_changes(thread, question.kind, given.edits), "decision": Decision.MODIFY.value, **comment}


def _decided(given: Given) -> tuple[str, dict[str, str]]:
    """Words behind a decision are the reason for it, as they are at a prompt."""
    word, _, rest = given.words.partition(" ")
    if word.lower() not in [decision.value for decision in Decision]:
        word, rest = given.words, ""
    comment = ". ".join(part for part in (rest.strip(), given.comment) if part)
    return word, {"comment": comment} if comment else {}


def _chosen(question: OpenQuestion, words: str) -> str:
    said = Choice(question).take(words)
    if not words or said.answer is not None:
        return str(said.answer or "")
    if not said.told:
        raise AnswerError("“Custom” stands for an answer of your own", help="Give that answer itself.")
    raise AnswerError(f"{words[:80]!r} is no answer here", help=str(said.told))


def _changes(thread: str, kind: str, edits: Any) -> dict[str, Any]:
    """A list is edits; an object is a plan if it looks like one, else the answer without its decision."""
    if isinstance(edits, list):
        return {"edits": edits}
    if not isinstance(edits, dict):
        raise UsageError("the edits are neither a list nor an object", help=_see(thread))
    return {"plan": edits} if kind == "approve_plan" and "questions" in edits else edits


def _see(thread: str) -> str:
    return f"See what they look like: assay review show {thread}"


def read_edits(name: str, help: str) -> Any:
    """`help`: where it is said what they look like."""
    try:
        content = sys.stdin.buffer.read(MOST_BYTES + 1) if name == "-" else _content(Path(name))
    except OSError as error:
        raise PathError(
            f"{name} cannot be read: {error.strerror}", help="Name a file of JSON, or - for stdin."
        ) from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"the edits have more than {MOST_BYTES:,} bytes", help="Send only what is to change.")
    try:
        return text_of.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the edits are not JSON: {error}", help=help) from error


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)
