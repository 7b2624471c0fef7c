"""`openassay review`: what waits for a person, shown and answered from anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsonlib
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from openassay.cli import screen
from openassay.cli.dialogs import MEANWHILE, ChoiceDialogue, format_deadline, show_plan
from openassay.cli.options import JsonReport, Out, Quiet, ThreadId, group, json_option
from openassay.cli.research import Output, execute_run, report_end
from openassay.cli.runtime import match_id, run_on_thread, run_with_engine
from openassay.errors import AnswerError, NotFoundError, OpenAssayError, PathError, UsageError
from openassay.models.plan import Plan
from openassay.models.thread import Decision, Review, Run
from openassay.settings import load

if TYPE_CHECKING:
    from openassay.engine.engine import Engine
    from openassay.engine.validation import OpenQuestion

MAX_EDIT_BYTES = 2_000_000  # of a file of edits; an answer may have a tenth of that
RETRY_SECONDS = 10.0  # after which a database is asked again that could not say when something is due
THEN = {"approve": "continues", "end": "ends", "guess": "guesses"}
_COLUMNS = "{:12}  {:16}  {:10}  {:9}  {:16}  {}"
_OWN = frozenset({"breakpoint", "key", "id", "number", "of", "plan"})

app = group("List, show and answer what waits for a person.")


# -- listing and showing ------------------------------------------------------------------------------------


@app.callback()
def review(context: typer.Context, json: Annotated[bool, json_option("the open questions")] = False) -> None:
    """List what waits for a person; or show and answer it."""
    if context.invoked_subcommand is not None:
        return None

    async def load_reviews(engine: Engine) -> list[tuple[Review, str]]:
        return [(one, (await engine.threads.run(one.run)).question) for one in await engine.interrupts.reviews()]

    found = run_with_engine(load_reviews)
    if json:
        rows = []
        for one, about in found:
            asked = one.model_dump(mode="json", exclude={"answered", "answer", "by"})
            rows.append({**asked, "about": about, "overdue": format_due(one.due) == "overdue"})
        return screen.print_json(rows)
    if not found:
        return screen.print_message("Nothing waits for an answer.")
    typer.echo(screen.truncate_line(_COLUMNS.format("thread", "opened", "time left", "then", "kind", "question")))
    for one, about in found:
        opened, then = f"{one.opened.astimezone():%Y-%m-%d %H:%M}", THEN[one.on_timeout] if one.due else ""
        row = (one.thread, opened, format_due(one.due), then, one.kind, one.question)
        typer.echo(screen.truncate_line(_COLUMNS.format(*map(screen.to_one_line, row))))
        typer.echo(screen.truncate_line(f"{'':12}  {screen.to_one_line(about)}"))
    screen.print_message(f"Look at one with: openassay review show {found[0][0].thread}")
    if any(format_due(one.due) == "overdue" for one, _ in found):
        screen.print_message("Overdue: openassay review timers --once settles them.")
    return None


def format_due(due: datetime | None) -> str:
    if due is None:
        return "no limit"
    seconds = (due - datetime.now(UTC)).total_seconds()
    for size, unit in ((7200, 3600), (90, 60)):
        if seconds >= size:
            return f"{seconds / unit:.0f} {'h' if unit == 3600 else 'min'}"
    return f"{seconds:.0f} s" if seconds > 0 else "overdue"


@app.command()
def show(thread: ThreadId, json: Annotated[bool, json_option("questions and example answers")] = False) -> None:
    """Show everything there is to decide by, and what an answer looks like."""

    async def load_questions(engine: Engine, thread: str) -> tuple[str, list[OpenQuestion], str]:
        questions = await _load_open_questions(engine, thread)
        return thread, questions, (await engine.threads.runs(thread))[-1].question

    id, questions, about = run_on_thread(thread, load_questions)
    if json:
        from openassay.engine.validation import answer_schema

        asked = [{**one.plain(), "schema": answer_schema(one.kind), "example": make_example(one)} for one in questions]
        return screen.print_json({"thread": id, "about": about, "questions": asked})
    for question in questions:
        _show_question(id, about, question, make_example(question))
    return None


async def _load_open_questions(engine: Engine, thread: str) -> list[OpenQuestion]:
    await engine.threads.get(thread)
    questions = await engine.interrupts.open_questions(thread)
    if not questions:
        last = await engine.interrupts.last_review(thread)
        settled = f"; its last question was {last.refusal}" if last and last.answered else ""
        raise NotFoundError(
            f"thread {thread} does not wait for an answer{settled}",
            help=f"See where it stands with: openassay threads show {thread}",
        )
    return questions


def make_example(question: OpenQuestion) -> Any:
    """Make an answer that would be accepted; at a breakpoint, one that changes something."""
    from openassay.engine.validation import FORMS

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


def _show_question(thread: str, about: str, question: OpenQuestion, example: Any) -> None:
    console = screen.open_console()
    console.print(Text(f"Asked while researching: {screen.to_one_line(about)}", style="dim"))
    place = f" ({question.shown['number']} of {question.shown['of']})" if "of" in question.shown else ""
    console.print(Text.assemble((screen.to_one_line(question.question), "bold"), place, (f"  {question.kind}", "dim")))
    if question.due is not None:
        then = MEANWHILE[question.on_timeout]
        console.print(Text(f"Answer {format_deadline(question.due)}, else {then}.", style="dim"))
    if "plan" in question.shown:
        show_plan(console, Plan.model_validate(question.shown["plan"]), by_id=True)
    for key, value in question.shown.items():
        if key in _OWN or value in (None, [], {}, ""):
            continue
        if key in ("draft", "issues", "critique", "claims", "sources"):
            console.print(Text(f"\n{key.capitalize()}", style="bold"))
            for head, text in _format_section(key, value):
                console.print(screen.make_list_item(head, Text(screen.to_one_line(text)), len(head)))
            continue
        match key, value:
            case _, str():
                line = value
            case "usd", _:
                line = f"about {screen.format_dollars(value)}"
            case "hosts", _:
                line = ", ".join(value)
            case _:
                line = jsonlib.dumps(value, ensure_ascii=False, default=str)
        console.print(screen.make_list_item(key, Text(screen.to_one_line(line)), max(len(key), 8)))
    command = f"openassay review answer {thread}"
    if isinstance(example, dict):
        decisions = [option for option in question.options if option != "modify"]
        lines = [f"Answer with: {command} {'|'.join(decisions)} [--comment WHY]"]
        if "modify" in question.options:
            changes = {key: value for key, value in example.items() if key not in ("decision", "comment")}
            lines.append(f"or change it: echo '{jsonlib.dumps(changes)}' | {command} modify --edits -")
    else:
        lines = [f"  {number}. {screen.to_one_line(option)}" for number, option in enumerate(question.options, 1)]
        lines.append(f"Answer with: {command} {'NUMBER|TEXT' if question.options else 'TEXT'}")
    for line in ("", *lines):
        console.print(Text(line), soft_wrap=True)  # so that it can be copied


def _format_section(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match name:
        case "draft":
            yield "", value["title"]
            for section in value["sections"]:
                yield "#", section["title"] or section.get("role", "")
                for sentence in section["sentences"]:
                    yield "•", f"{sentence['text']} {','.join(sentence['claims'])}".rstrip()
        case "issues":
            for issue in value:
                fix = f" → {issue['fix']}" if issue.get("fix") else ""
                yield f"{issue['severity']}:", f"{issue['description']} ({issue['location']}){fix}"
        case "critique":
            yield "", f"{value['score']:.1f} of 10, {value['recommendation']}"
            yield "", ", ".join(f"{name} {score:.1f}" for name, score in value["scores"].items())
        case "claims":
            for claim in value:
                judged = f"{claim['verdict'].replace('_', ' ')} {claim.get('mark') or ''}".rstrip()
                yield claim["id"], f"{claim['text']} ({judged})"
        case "sources":
            for source in value:
                yield source["id"], f"{source['title']} ({source['published'] or 'undated'})"


# -- answering ----------------------------------------------------------------------------------------------


@app.command()
def answer(
    thread: ThreadId,
    words: Annotated[
        list[str], typer.Argument(metavar="ANSWER...", help="approve, reject, skip, modify; an option's number; words.")
    ],
    edits: Annotated[
        str | None, typer.Option("--edits", metavar="FILE", help="What to change, as JSON; - reads it from stdin.")
    ] = None,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why.")] = "",
    question: Annotated[
        str | None, typer.Option("--question", metavar="ID", help="Refuse if another question is open by now.")
    ] = None,
    out: Out = None,
    json: JsonReport = False,
    quiet: Quiet = False,
) -> None:
    """Answer what a thread waits for, and resume it."""
    output = Output(json=json, quiet=quiet, out=out)
    hint = f"See what they look like: openassay review show {thread}"
    changes = read_edits(edits, hint) if edits else None

    async def submit(engine: Engine, thread: str) -> Run:
        if question is None:
            asked = (await _load_open_questions(engine, thread))[0]
        else:
            found = {one.id: one for one in await engine.interrupts.open_questions(thread)}
            id = match_id(question, found, "questions")
            if id not in found:
                await engine.interrupts.answer(thread, id, "")  # refused, with the reason why it is not open
                raise AnswerError("this question is not open any more", help="See what is open with: openassay review")
            asked = found[id]
        value = build_answer(asked, " ".join(words).strip(), changes, comment, hint)
        return await engine.interrupts.answer(thread, asked.id, value)

    execute_run(load(), submit, output, thread)


def build_answer(question: OpenQuestion, words: str, edits: Any, comment: str, hint: str) -> object:
    """Put what was typed in the form its question needs; whether it will do is for the engine to say."""
    from openassay.engine.validation import FORMS

    if question.kind not in FORMS:
        if edits is not None or comment:
            raise UsageError("this question wants an answer in words", help="Leave --edits and --comment out.")
        reply = ChoiceDialogue(question).handle_line(words)
        if not words or reply.answer is not None:
            return str(reply.answer or "")
        if not reply.message:
            raise AnswerError("“Custom” stands for an answer of your own", help="Give that answer itself.")
        raise AnswerError(f"{words[:80]!r} is not an answer here", help=str(reply.message))
    # Words behind a decision are the reason for it, as they are at a prompt.
    decision, _, reason = words.partition(" ")
    if decision.lower() not in [known.value for known in Decision]:
        decision, reason = words, ""
    why = ". ".join(part for part in (reason.strip(), comment) if part)
    answer: dict[str, Any] = {"decision": decision, **({"comment": why} if why else {})}
    if edits is None:
        return answer
    if decision.lower() != Decision.MODIFY:
        raise UsageError(f"--edits does not go with {decision!r}", help="Say: modify --edits FILE")
    if isinstance(edits, list):
        edits = {"edits": edits}
    elif not isinstance(edits, dict):
        raise UsageError("the edits are neither a list nor an object", help=hint)
    elif question.kind == "approve_plan" and "questions" in edits:
        edits = {"plan": edits}
    return {**edits, **answer, "decision": Decision.MODIFY.value}


def read_edits(name: str, help: str) -> Any:
    """Read JSON from a file, or from stdin; `help` says where to see what it looks like."""
    try:
        with contextlib.ExitStack() as stack:
            file = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
            content = file.read(MAX_EDIT_BYTES + 1)
    except OSError as error:
        raise PathError(
            f"{name} cannot be read: {error.strerror}", help="Name a file of JSON, or - for stdin."
        ) from error
    if len(content) > MAX_EDIT_BYTES:
        raise UsageError(f"the edits have more than {MAX_EDIT_BYTES:,} bytes", help="Send only what is to change.")
    try:
        return jsonlib.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the edits are not JSON: {error}", help=help) from error


# -- answering by the clock ---------------------------------------------------------------------------------


@app.command()
def timers(once: Annotated[bool, typer.Option("--once", help="Settle what is overdue, and exit.")] = False) -> None:
    """Settle what nobody answers in time, until Ctrl-C."""

    async def settle(engine: Engine) -> None:
        """Runs that go on are worked on here, so leaving stops them; they can be resumed."""
        loop, mine = asyncio.get_running_loop(), asyncio.current_task()
        leaving: set[asyncio.Task[None]] = set()

        async def leave() -> None:
            await engine.drain()
            if mine is not None:
                mine.cancel()

        async with asyncio.TaskGroup() as runs:
            loop.add_signal_handler(signal.SIGTERM, lambda: leaving.add(loop.create_task(leave())))
            settled = await settle_overdue(engine, runs)
            if not once:
                typer.echo("Waiting for deadlines. Ctrl-C ends it.", err=True)
            while not once:
                await wait_until_due(engine)
                await settle_overdue(engine, runs)
        if not settled:
            raise typer.Exit(1)

    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run_with_engine(settle)


async def wait_until_due(engine: Engine) -> None:
    try:
        await asyncio.sleep(await engine.interrupts.seconds_until_due())
    except OpenAssayError:  # which settle_overdue reports
        await asyncio.sleep(RETRY_SECONDS)


async def settle_overdue(engine: Engine, runs: asyncio.TaskGroup) -> bool:
    """Settle what is overdue, say what becomes of it, and return whether all could be settled; the engine says why one
    could not be, and it is tried again."""
    try:
        asked = {review.run: review for review in reversed(await engine.interrupts.reviews())}
        for run in await engine.interrupts.answer_overdue():
            if review := asked.get(run.id):
                what = f"nobody answered “{review.question}”: {THEN[review.on_timeout]}"
                typer.echo(screen.to_one_line(f"{run.thread}  {what}"))
            runs.create_task(report_end(engine, run, begun=""))
        return not any(format_due(review.due) == "overdue" for review in await engine.interrupts.reviews())
    except OpenAssayError as error:  # a database that is away now may be back by then
        screen.print_message(f"warning: {error.message}")
        return False
