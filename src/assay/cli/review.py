"""`assay review`: what waits for a person, shown and answered from anywhere, and the clock that answers for them."""

import asyncio
import contextlib
import json as text_of
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import typer

from assay.admission import FORMS, schema
from assay.bootstrap import open_engine
from assay.cli.asking import Choice
from assay.cli.delivery import check_target
from assay.cli.lines import counted, one_line
from assay.cli.progress import Progress
from assay.cli.research import Wishes, converse, deliver, told_before
from assay.cli.reviewing import show_question
from assay.engine import Engine, Outcome
from assay.errors import AnswerError, NotFoundError, PathError, UsageError
from assay.model.review import Decision, Review
from assay.model.thread import Run
from assay.questions import OpenQuestion
from assay.settings import load

MOST_BYTES = 2_000_000  # of a file of edits; an answer may have a tenth of that
THEN = {"approve": "goes on", "end": "ends", "guess": "guesses"}
_COLUMNS = "{:12}  {:16}  {:10}  {:9}  {:16}  {}"


# Looking ----------------------------------------------------------------------------------------------


def listing(json: bool) -> None:
    async def waiting() -> list[Review]:
        async with open_engine(load()) as engine:
            return await engine.reviews()

    reviews = asyncio.run(waiting())
    if json:
        typer.echo(text_of.dumps([_listed(review) for review in reviews], indent=2, ensure_ascii=False).encode())
        return
    if not reviews:
        typer.echo("Nothing waits for an answer.", err=True)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in [("thread", "opened", "time left", "then", "kind", "question"), *map(_row, reviews)]:
        typer.echo(_COLUMNS.format(*map(one_line, row))[:width])
    typer.echo(f"Look at one with: assay review show {reviews[0].thread}", err=True)


def _row(review: Review) -> tuple[str, ...]:
    then = THEN[review.on_timeout] if review.due else ""
    opened = f"{review.opened.astimezone():%Y-%m-%d %H:%M}"
    return review.thread, opened, left(review.due), then, review.kind, review.question


def _listed(review: Review) -> dict[str, Any]:
    asked = review.model_dump(mode="json", exclude={"answered", "answer", "by"})
    return {**asked, "overdue": left(review.due) == "overdue"}


def left(due: datetime | None) -> str:
    if due is None:
        return "no limit"
    seconds = (due - datetime.now(UTC)).total_seconds()
    for size, unit in ((7200, 3600), (90, 60)):
        if seconds >= size:
            return f"{seconds / unit:.0f} {'h' if unit == 3600 else 'min'}"
    return f"{seconds:.0f} s" if seconds > 0 else "overdue"


def show(thread: str, json: bool) -> None:
    async def waiting() -> list[OpenQuestion]:
        async with open_engine(load()) as engine:
            return await _open(engine, thread)

    questions = asyncio.run(waiting())
    if json:
        told = [{**one.plain(), "schema": schema(one.kind), "example": example(one)} for one in questions]
        typer.echo(text_of.dumps({"thread": thread, "questions": told}, indent=2, ensure_ascii=False).encode())
        return
    for question in questions:
        show_question(thread, question, example(question))


async def _open(engine: Engine, thread: str) -> list[OpenQuestion]:
    await engine.threads.get(thread)
    questions = await engine.open_questions(thread)
    if not questions:
        raise NotFoundError(
            f"thread {thread} does not wait for an answer",
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
    given = Given(words.strip(), _read(edits) if edits else None, comment)
    deliver(asyncio.run(_answered(thread, given, question_id, wishes)), wishes)


async def _answered(thread: str, given: Given, question_id: str | None, wishes: Wishes) -> Outcome:
    async with open_engine(load()) as engine:
        told = await told_before(engine, thread)
        question = await _meant(engine, thread, question_id)
        run = await engine.answer(thread, question.id, value(question, given))
        progress = Progress(enabled=not wishes.quiet)
        return await converse(engine, run, progress, interactive=wishes.interactive, told=told)


async def _meant(engine: Engine, thread: str, id: str | None) -> OpenQuestion:
    if id is None:
        return (await _open(engine, thread))[0]
    for question in await engine.open_questions(thread):
        if question.id == id:
            return question
    await engine.answer(thread, id, "")  # refused, with the reason why it is not open
    raise AnswerError("this question is not open any more", help="See what is open with: assay review")


def value(question: OpenQuestion, given: Given) -> object:
    """What was typed, in the form its question needs; whether it will do is for the engine to say."""
    if question.kind not in FORMS:
        if given.edits is not None or given.comment:
            raise UsageError("this question wants an answer in words", help="Leave --edits and --comment out.")
        return _chosen(question, given.words)
    if given.edits is None:
        return {"decision": given.words, "comment": given.comment} if given.comment else given.words
    if given.words.lower() != Decision.MODIFY:
        raise UsageError(f"--edits does not go with {given.words!r}", help="Say: modify --edits FILE")
    comment = {"comment": given.comment} if given.comment else {}
    return {**_changes(question.kind, given.edits), "decision": Decision.MODIFY.value, **comment}


def _chosen(question: OpenQuestion, words: str) -> str:
    said = Choice(question).take(words)
    if words and said.answer is None:
        why = str(said.told).rstrip(".") or "“Custom” stands for an answer of your own"
        raise AnswerError(why, help="Give the number of an option, or an answer in your own words.")
    return str(said.answer or "")


def _changes(kind: str, edits: Any) -> dict[str, Any]:
    """A list is edits; an object is a plan if it looks like one, else the answer without its decision."""
    if isinstance(edits, list):
        return {"edits": edits}
    if not isinstance(edits, dict):
        raise UsageError("the edits are neither a list nor an object", help="See: assay review show THREAD")
    return {"plan": edits} if kind == "approve_plan" and "questions" in edits else edits


def _read(name: str) -> Any:
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
        raise UsageError(f"the edits are not JSON: {error}", help="See: assay review show THREAD") from error


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


# Time -------------------------------------------------------------------------------------------------


def timers(once: bool) -> None:
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_keep_time(once))


async def _keep_time(once: bool) -> None:
    """Runs that go on are worked on here, so leaving stops them; they can be resumed."""
    loop, mine = asyncio.get_running_loop(), asyncio.current_task()
    if mine is not None:
        loop.add_signal_handler(signal.SIGTERM, mine.cancel)
    async with open_engine(load()) as engine, asyncio.TaskGroup() as runs:
        clock = Clock(engine, runs)
        settled = await clock.settle()
        if not once:
            typer.echo("Keeping time. Ctrl-C ends it.", err=True)
        while not once:
            await asyncio.sleep(await engine.until_due())
            await clock.settle()
    if not settled:
        raise typer.Exit(1)


class Clock:
    """Settles what is overdue, and tells what becomes of it."""

    def __init__(self, engine: Engine, runs: asyncio.TaskGroup) -> None:
        self._engine = engine
        self._runs = runs

    async def settle(self) -> bool:
        """Whether all could be settled; if not, it is tried again at the next look. The engine tells why, once."""
        asked = {review.run: review for review in reversed(await self._engine.reviews())}
        for run in await self._engine.settle_overdue():
            if review := asked.get(run.id):
                typer.echo(one_line(f"{run.thread}  nobody answered “{review.question}”: {THEN[review.on_timeout]}"))
            self._runs.create_task(self._follow(run))
        return not any(left(review.due) == "overdue" for review in await self._engine.reviews())

    async def _follow(self, run: Run) -> None:
        try:
            outcome = await self._engine.wait(run.id)
        except asyncio.CancelledError:
            typer.echo(f"{run.thread}  stopped; go on with: assay resume {run.thread}")
            raise
        typer.echo(one_line(f"{run.thread}  {_standing(outcome)}"))


def _standing(outcome: Outcome) -> str:
    if outcome.questions:
        return f"waits: {outcome.questions[0].question}"
    if outcome.report is None:
        return f"{outcome.run.status}: {outcome.run.error or 'no report'}"
    return f"done: {outcome.report.status} report, {counted(len(outcome.report.sources), 'source')}"
