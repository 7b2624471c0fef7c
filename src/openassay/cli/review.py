"""`openassay review`: what waits for a person, shown and answered from anywhere."""

import asyncio
import contextlib
import json
import json as text_of
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from openassay.bootstrap import open_engine
from openassay.cli.progress import ProgressDisplay
from openassay.cli.prompts import MEANWHILE, ChoiceDialogue, format_deadline, show_plan
from openassay.cli.research import CommandOptions, check_target, deliver_outcome, find_last_seq, follow_and_ask
from openassay.cli.screen import format_dollars, make_list_item, open_console, print_message, to_one_line
from openassay.engine.engine import Engine, RunOutcome
from openassay.engine.questions import FORMS, OpenQuestion, answer_schema
from openassay.errors import AnswerError, NotFoundError, OpenAssayError, PathError, UsageError
from openassay.models.plan import Plan
from openassay.models.thread import Decision, Review, Run
from openassay.settings import load
from openassay.text.words import pluralize

# An open question with all there is to decide by, for whoever reviews it away from the terminal it was asked at.

Plain = dict[str, Any]
_OWN = frozenset({"breakpoint", "key", "id", "number", "of", "plan"})


def show_question(thread: str, about: str, question: OpenQuestion, example: Any) -> None:
    console = open_console()
    console.print(Text(f"Asked while researching: {to_one_line(about)}", style="dim"))
    place = f" ({question.shown['number']} of {question.shown['of']})" if "of" in question.shown else ""
    console.print(Text.assemble((to_one_line(question.question), "bold"), place, (f"  {question.kind}", "dim")))
    if question.due is not None:
        then = MEANWHILE[question.on_timeout]
        console.print(Text(f"Answer {format_deadline(question.due)}, else {then}.", style="dim"))
    if "plan" in question.shown:
        show_plan(console, Plan.model_validate(question.shown["plan"]), by_id=True)
    for key, value in question.shown.items():
        if key not in _OWN and value not in (None, [], {}, ""):
            _show_field(console, key, value)
    console.print()
    for line in _format_answer_commands(thread, question, example):
        console.print(Text(line), soft_wrap=True)  # so that it can be copied


def _show_field(console: Console, key: str, value: Any) -> None:
    teller = _TELLERS.get(key)
    if teller is None:
        shown = value if isinstance(value, str) else _LINES.get(key, _to_json)(value)
        console.print(make_list_item(key, Text(to_one_line(shown)), max(len(key), 8)))
        return
    console.print(Text(f"\n{key.capitalize()}", style="bold"))
    for head, text in teller(value):
        console.print(make_list_item(head, Text(to_one_line(text)), len(head)))


def _format_draft(draft: Plain) -> Iterator[tuple[str, str]]:
    yield "", draft["title"]
    for section in draft["sections"]:
        yield "#", section["title"] or section.get("role", "")
        for sentence in section["sentences"]:
            yield "•", f"{sentence['text']} {','.join(sentence['claims'])}".rstrip()


def _format_issues(issues: Sequence[Plain]) -> Iterator[tuple[str, str]]:
    for issue in issues:
        fix = f" → {issue['fix']}" if issue.get("fix") else ""
        yield f"{issue['severity']}:", f"{issue['description']} ({issue['location']}){fix}"


def _format_critique(critique: Plain) -> Iterator[tuple[str, str]]:
    yield "", f"{critique['score']:.1f} of 10, {critique['recommendation']}"
    yield "", ", ".join(f"{name} {score:.1f}" for name, score in critique["scores"].items())


def _format_claims(claims: Sequence[Plain]) -> Iterator[tuple[str, str]]:
    for claim in claims:
        judged = f"{claim['verdict'].replace('_', ' ')} {claim.get('mark') or ''}".rstrip()
        yield claim["id"], f"{claim['text']} ({judged})"


def _format_sources(sources: Sequence[Plain]) -> Iterator[tuple[str, str]]:
    for source in sources:
        yield source["id"], f"{source['title']} ({source['published'] or 'undated'})"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_TELLERS: dict[str, Callable[[Any], Iterator[tuple[str, str]]]] = {
    "draft": _format_draft,
    "issues": _format_issues,
    "critique": _format_critique,
    "claims": _format_claims,
    "sources": _format_sources,
}
_LINES: dict[str, Callable[[Any], str]] = {"usd": lambda usd: f"about {format_dollars(usd)}", "hosts": ", ".join}


def _format_answer_commands(thread: str, question: OpenQuestion, example: Any) -> Iterator[str]:
    """Commands that answer it."""
    command = f"openassay review answer {thread}"
    if not isinstance(example, dict):
        for number, option in enumerate(question.options, 1):
            yield f"  {number}. {to_one_line(option)}"
        yield f"Answer with: {command} {'NUMBER|TEXT' if question.options else 'TEXT'}"
        return
    decisions = [option for option in question.options if option != "modify"]
    yield f"Answer with: {command} {'|'.join(decisions)} [--comment WHY]"
    if "modify" in question.options:
        changes = {key: value for key, value in example.items() if key not in ("decision", "comment")}
        yield f"or change it: echo '{json.dumps(changes)}' | {command} modify --edits -"


MOST_BYTES = 2_000_000  # of a file of edits; an answer may have a tenth of that
THEN = {"approve": "goes on", "end": "ends", "guess": "guesses"}
_COLUMNS = "{:12}  {:16}  {:10}  {:9}  {:16}  {}"


# Looking ----------------------------------------------------------------------------------------------


def list_reviews(json: bool) -> None:
    async def waiting() -> list[tuple[Review, str]]:
        async with open_engine(load()) as engine:
            return [(review, await _load_topic(engine, review)) for review in await engine.reviews()]

    found = asyncio.run(waiting())
    if json:
        typer.echo(text_of.dumps([_review_to_dict(*one) for one in found], indent=2, ensure_ascii=False).encode())
    elif found:
        _print_reviews(found)
    else:
        print_message("Nothing waits for an answer.")


async def _load_topic(engine: Engine, review: Review) -> str:
    """What is being researched."""
    return (await engine.threads.run(review.run)).question


def _print_reviews(found: list[tuple[Review, str]]) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    typer.echo(_COLUMNS.format("thread", "opened", "time left", "then", "kind", "question")[:width])
    for review, about in found:
        typer.echo(_COLUMNS.format(*map(to_one_line, _format_review(review)))[:width])
        typer.echo(f"{'':12}  {to_one_line(about)}"[:width])
    print_message(f"Look at one with: openassay review show {found[0][0].thread}")
    if any(format_due(review.due) == "overdue" for review, _ in found):
        print_message("Overdue: openassay review timers --once settles them.")


def _format_review(review: Review) -> tuple[str, ...]:
    then = THEN[review.on_timeout] if review.due else ""
    opened = f"{review.opened.astimezone():%Y-%m-%d %H:%M}"
    return review.thread, opened, format_due(review.due), then, review.kind, review.question


def _review_to_dict(review: Review, about: str) -> dict[str, Any]:
    asked = review.model_dump(mode="json", exclude={"answered", "answer", "by"})
    return {**asked, "about": about, "overdue": format_due(review.due) == "overdue"}


def format_due(due: datetime | None) -> str:
    if due is None:
        return "no limit"
    seconds = (due - datetime.now(UTC)).total_seconds()
    for size, unit in ((7200, 3600), (90, 60)):
        if seconds >= size:
            return f"{seconds / unit:.0f} {'h' if unit == 3600 else 'min'}"
    return f"{seconds:.0f} s" if seconds > 0 else "overdue"


def show_review(thread: str, json: bool) -> None:
    async def waiting() -> tuple[list[OpenQuestion], str]:
        async with open_engine(load()) as engine:
            return await _load_open_questions(engine, thread), (await engine.threads.runs(thread))[-1].question

    questions, about = asyncio.run(waiting())
    if json:
        told = [{**one.plain(), "schema": answer_schema(one.kind), "example": make_example(one)} for one in questions]
        typer.echo(
            text_of.dumps({"thread": thread, "about": about, "questions": told}, indent=2, ensure_ascii=False).encode()
        )
        return
    for question in questions:
        show_question(thread, about, question, make_example(question))


async def _load_open_questions(engine: Engine, thread: str) -> list[OpenQuestion]:
    await engine.threads.get(thread)
    questions = await engine.open_questions(thread)
    if not questions:
        last = await engine.last_review(thread)
        settled = f"; its last question was {last.refusal}" if last and last.answered else ""
        raise NotFoundError(
            f"thread {thread} does not wait for an answer{settled}",
            help=f"See where it stands with: openassay threads show {thread}",
        )
    return questions


def make_example(question: OpenQuestion) -> Any:
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


class AnswerInput(NamedTuple):
    """An answer as it was typed."""

    words: str
    edits: Any = None
    comment: str = ""


def answer_review(
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
    """Then the run is followed to its end or to its next question, as `openassay resume` does."""
    wishes = CommandOptions(json=json, quiet=quiet, out=out)
    if out is not None:
        check_target(out)
    given = AnswerInput(words.strip(), read_edits(edits, _format_edits_hint(thread)) if edits else None, comment)
    deliver_outcome(asyncio.run(_answer_and_follow(thread, given, question_id, wishes)), wishes)


async def _answer_and_follow(
    thread: str, given: AnswerInput, question_id: str | None, wishes: CommandOptions
) -> RunOutcome:
    async with open_engine(load()) as engine:
        told = await find_last_seq(engine, thread)
        question = await _find_question(engine, thread, question_id)
        run = await engine.answer(thread, question.id, build_answer(thread, question, given))
        progress = ProgressDisplay(run, enabled=not wishes.quiet)
        return await follow_and_ask(engine, run, progress, interactive=wishes.interactive, told=told)


async def _find_question(engine: Engine, thread: str, id: str | None) -> OpenQuestion:
    if id is None:
        return (await _load_open_questions(engine, thread))[0]
    for question in await engine.open_questions(thread):
        if question.id == id:
            return question
    await engine.answer(thread, id, "")  # refused, with the reason why it is not open
    raise AnswerError("this question is not open any more", help="See what is open with: openassay review")


def build_answer(thread: str, question: OpenQuestion, given: AnswerInput) -> object:
    """What was typed, in the form its question needs; whether it will do is for the engine to say."""
    if question.kind not in FORMS:
        if given.edits is not None or given.comment:
            raise UsageError("this question wants an answer in words", help="Leave --edits and --comment out.")
        return _parse_choice(question, given.words)
    decision, comment = _parse_decision(given)
    if given.edits is None:
        return {"decision": decision, **comment}
    if decision.lower() != Decision.MODIFY:
        raise UsageError(f"--edits does not go with {decision!r}", help="Say: modify --edits FILE")
    return {**_parse_changes(thread, question.kind, given.edits), "decision": Decision.MODIFY.value, **comment}


def _parse_decision(given: AnswerInput) -> tuple[str, dict[str, str]]:
    """Words behind a decision are the reason for it, as they are at a prompt."""
    word, _, rest = given.words.partition(" ")
    if word.lower() not in [decision.value for decision in Decision]:
        word, rest = given.words, ""
    comment = ". ".join(part for part in (rest.strip(), given.comment) if part)
    return word, {"comment": comment} if comment else {}


def _parse_choice(question: OpenQuestion, words: str) -> str:
    said = ChoiceDialogue(question).handle_line(words)
    if not words or said.answer is not None:
        return str(said.answer or "")
    if not said.told:
        raise AnswerError("“Custom” stands for an answer of your own", help="Give that answer itself.")
    raise AnswerError(f"{words[:80]!r} is no answer here", help=str(said.told))


def _parse_changes(thread: str, kind: str, edits: Any) -> dict[str, Any]:
    """A list is edits; an object is a plan if it looks like one, else the answer without its decision."""
    if isinstance(edits, list):
        return {"edits": edits}
    if not isinstance(edits, dict):
        raise UsageError("the edits are neither a list nor an object", help=_format_edits_hint(thread))
    return {"plan": edits} if kind == "approve_plan" and "questions" in edits else edits


def _format_edits_hint(thread: str) -> str:
    return f"See what they look like: openassay review show {thread}"


def read_edits(name: str, help: str) -> Any:
    """`help`: where it is said what they look like."""
    try:
        content = sys.stdin.buffer.read(MOST_BYTES + 1) if name == "-" else _read_content(Path(name))
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


def _read_content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


# `openassay review timers`: the clock that answers for people who do not.

AGAIN = 10.0  # seconds after which a database is asked again that could not say when something is due


def run_timers(once: bool) -> None:
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_settle_by_clock(once))


async def _settle_by_clock(once: bool) -> None:
    """Runs that go on are worked on here, so leaving stops them; they can be resumed."""
    loop, mine = asyncio.get_running_loop(), asyncio.current_task()
    leaving: set[asyncio.Task[None]] = set()

    async def leave() -> None:
        await engine.drain()
        if mine is not None:
            mine.cancel()

    async with open_engine(load()) as engine, asyncio.TaskGroup() as runs:
        loop.add_signal_handler(signal.SIGTERM, lambda: leaving.add(loop.create_task(leave())))
        clock = ReviewTimer(engine, runs)
        settled = await clock.settle_overdue()
        if not once:
            typer.echo("Keeping time. Ctrl-C ends it.", err=True)
        while not once:
            await clock.wait()
            await clock.settle_overdue()
    if not settled:
        raise typer.Exit(1)


class ReviewTimer:
    """Settles what is overdue, and tells what becomes of it."""

    def __init__(self, engine: Engine, runs: asyncio.TaskGroup) -> None:
        self._engine = engine
        self._runs = runs

    async def wait(self) -> None:
        try:
            await asyncio.sleep(await self._engine.seconds_until_due())
        except OpenAssayError:  # which the next look tells
            await asyncio.sleep(AGAIN)

    async def settle_overdue(self) -> bool:
        """Whether all could be settled; if not, it is tried again at the next look."""
        try:
            return await self._settle_reviews()
        except OpenAssayError as error:  # a database that is away now may be back by then
            print_message(f"warning: {error.message}")
            return False

    async def _settle_reviews(self) -> bool:
        """The engine tells why one could not be, once."""
        asked = {review.run: review for review in reversed(await self._engine.reviews())}
        for run in await self._engine.answer_overdue():
            if review := asked.get(run.id):
                typer.echo(to_one_line(f"{run.thread}  nobody answered “{review.question}”: {THEN[review.on_timeout]}"))
            self._runs.create_task(self._follow_run(run))
        return not any(format_due(review.due) == "overdue" for review in await self._engine.reviews())

    async def _follow_run(self, run: Run) -> None:
        try:
            outcome = await self._engine.wait(run.id)
        except asyncio.CancelledError:
            typer.echo(f"{run.thread}  stopped; go on with: openassay resume {run.thread}")
            raise
        except OpenAssayError as error:
            typer.echo(to_one_line(f"{run.thread}  failed: {error.message}"))
            return
        typer.echo(to_one_line(f"{run.thread}  {describe_outcome(outcome)}"))


def describe_outcome(outcome: RunOutcome) -> str:
    if outcome.questions:
        return f"waits: {outcome.questions[0].question}"
    if outcome.report is None:
        return f"{outcome.run.status}: {outcome.run.error or 'no report'}"
    return f"done: {outcome.report.status} report, {pluralize(len(outcome.report.sources), 'source')}"
