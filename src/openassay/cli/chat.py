"""`openassay chat`: one thread, many short questions, and commands that begin with a slash."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.text import Text

from openassay.bootstrap import open_engine
from openassay.cli.memory import MemoryEditor
from openassay.cli.progress import ProgressDisplay
from openassay.cli.prompts import can_ask, format_answer_help, show_plan
from openassay.cli.research import (
    OPEN,
    CommandOptions,
    build_options,
    check_target,
    deliver_report,
    find_last_seq,
    follow_and_ask,
    format_consequences,
)
from openassay.cli.screen import (
    format_dollars,
    is_command,
    make_usage_table,
    open_console,
    print_message,
    show_report,
    show_sources,
    to_one_line,
    unescape_line,
)
from openassay.cli.threads import render_claim_passages, render_source_passages
from openassay.engine.engine import Engine, RunOutcome
from openassay.engine.questions import OpenQuestion
from openassay.errors import NotFoundError, OpenAssayError, PathError, UsageError
from openassay.export.report import Report
from openassay.models.event import RunStatus
from openassay.models.plan import MOST_USD, Depth, Mode, Plan
from openassay.models.spend import MICRO
from openassay.models.thread import Run
from openassay.settings import Settings, load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.cli.line_editor import LineEditor


# /remember and /memory: what `openassay memory` does, without leaving the conversation.

_WAYS = "As in: /memory set style executive, /memory edit M1 TEXT, /memory forget M1. /remember TEXT keeps a fact."


async def handle_remember(talk: "TerminalChat", text: str) -> None:
    if not text:
        raise UsageError("say what to remember", help="As in: /remember we report in euros")
    fact = await talk.engine.memory.remember(talk.settings.user, text)
    print_message(f"Remembered as {fact.id}. Forget it with: /memory forget {fact.id}")


async def handle_memory(talk: "TerminalChat", said: str) -> None:
    kept = MemoryEditor(talk.engine.memory, talk.settings.user)
    match said.split(None, 2):
        case []:
            await _show_memory(kept)
        case ["set", key, value]:
            for line in await kept.set(key, value):
                typer.echo(line)
        case ["edit", id, text]:
            typer.echo(await kept.edit(id, text))
        case ["remember", *_]:
            await handle_remember(talk, said.partition(" ")[2].strip())
        case ["forget", "all"]:
            await _forget_all(talk)
        case ["forget", what]:
            print_message(await kept.forget(what))
        case _:
            raise UsageError(f"“{to_one_line(said)}” is not understood", help=_WAYS)


async def _show_memory(kept: MemoryEditor) -> None:
    rows = [*await kept.list_preferences(), *((fact.id, to_one_line(fact.text)) for fact in await kept.facts())]
    for name, text in rows:
        typer.echo(f"{name:8}  {text}")
    print_message(_WAYS if rows else "Nothing is remembered of you. As in: /remember we report in euros", "dim")


async def _forget_all(talk: "TerminalChat") -> None:
    user = talk.settings.user
    if not can_ask():
        raise UsageError(
            "everything would be forgotten", help="If that is what you want: openassay memory forget all --yes"
        )
    if await talk.confirm(f"Forget everything about {user}? [y/N] "):
        await talk.engine.memory.forget_all(user)
        print_message(f"Everything about {user} is forgotten.")
    else:
        print_message("Nothing was forgotten.")


# What can be said in a chat besides questions: /source 3, /export report.md and the like.

LISTED = 15  # threads


async def run_command(talk: "TerminalChat", line: str) -> None:
    """A mistyped command is never taken for a question, and nothing that was typed is ignored."""
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        near = get_close_matches(name.lower(), MEANINGS, n=1)
        hint = f"Did you mean {near[0]}?" if near else "/help lists the commands."
        raise UsageError(f"there is no {to_one_line(name)}", help=f"{hint} //... asks a question that begins with /.")
    if rest.strip() and command.usage == name.lower():
        raise UsageError(f"{name.lower()} stands alone, without “{to_one_line(rest.strip())}”", help=command.alone)
    await command.does(talk, rest.strip())


# What the last answer rests on -------------------------------------------------------------------------


async def _handle_source(talk: "TerminalChat", name: str) -> None:
    if not name:
        raise UsageError("say which source", help="As in: /source 3. /sources lists them.")
    await _print_parts(render_source_passages(talk.engine, await _load_report(talk), name))


async def _handle_sources(talk: "TerminalChat", _: str) -> None:
    report = await _load_report(talk)
    if not report.sources:
        raise NotFoundError("the last answer has no sources", help="Ask something else, or give documents: /docs PATH")
    show_sources(open_console(), report)


async def _handle_claim(talk: "TerminalChat", name: str) -> None:
    if not name:
        raise UsageError("say which claim", help="As in: /claim C2. They stand behind the statements of an answer.")
    await _print_parts(
        render_claim_passages(talk.engine, await _load_report(talk), f"C{name}" if name.isdecimal() else name)
    )


async def _handle_veto(talk: "TerminalChat", names: str) -> None:
    """What it would cost is shown first, and agreed to where somebody can."""
    if not names:
        raise UsageError("say which source", help="As in: /veto 3. /sources lists them.")
    thread, sources = _require_thread(talk), names.replace(",", " ").split()
    for line in format_consequences(await talk.engine.consequences(thread, sources)):
        print_message(line)
    if can_ask() and not await talk.confirm("Take it out? [y/N] "):
        return print_message("Nothing was changed.")
    await talk.engine.veto(thread, sources)
    return await talk.follow(thread, 0)


async def _handle_plan(talk: "TerminalChat", _: str) -> None:
    values = await talk.engine.state(_require_thread(talk))
    if not values.get("plan"):
        raise NotFoundError("the last question was not planned", help="It was called off, or has not got so far.")
    plan = Plan.model_validate(values["plan"])
    console = open_console()
    console.print(Text(to_one_line(plan.goal), style="bold"))
    show_plan(console, plan)


async def _handle_export(talk: "TerminalChat", name: str) -> None:
    if not name:
        raise UsageError("say where to", help=_EXPORT)
    report, path = await _load_report(talk), _resolve_target(name)
    try:
        check_target(path)
    except PathError as error:
        raise PathError(error.message, help=_EXPORT) from error
    if not _exists(path) or await _confirm_replace(talk, path.name):
        await asyncio.to_thread(deliver_report, report, path, as_json=False)


_EXPORT = "As in: /export report.md, or .html, .pdf, .docx, .json, ..."


def _resolve_target(name: str) -> Path:
    """A file; without an ending it is Markdown, which is told with its name."""
    path = _parse_path(name)
    there = _exists(path)
    if name.endswith(os.sep) and not there:
        raise PathError(f"{to_one_line(name)} names a folder", help=_EXPORT)
    return path if path.suffix or there else path.with_name(f"{path.name}.md")


async def _confirm_replace(talk: "TerminalChat", name: str) -> bool:
    if not can_ask():
        raise PathError("the file exists", help="Choose another name.")
    agreed = await talk.confirm(f"{to_one_line(name)} exists. Replace it? [y/N] ")
    if not agreed:
        print_message("Nothing was written.")
    return agreed


def _parse_path(name: str) -> Path:
    """As a shell would read it."""
    return Path(os.path.expanduser(name.strip("'\"")))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:  # too long, or with a byte no name may have
        raise PathError("this cannot be the name of a file", help="Choose another name.") from error


async def _load_report(talk: "TerminalChat") -> Report:
    return await talk.engine.report(_require_thread(talk))


def _require_thread(talk: "TerminalChat") -> str:
    if talk.thread is None:
        raise NotFoundError("nothing has been asked yet", help="Ask a question first, or /open a thread.")
    return talk.thread


async def _print_parts(parts: AsyncIterator[Text]) -> None:
    console = open_console()
    async for part in parts:
        console.print(part)


# What holds for the questions to come ------------------------------------------------------------------


async def _handle_budget(talk: "TerminalChat", amount: str) -> None:
    if amount:
        talk.set_options(budget=_parse_usd(amount))
        return print_message(f"From now on a question may cost {format_dollars(_parse_usd(amount))} at most.")
    spent = (
        [await _sum_spend(talk, run.id) for run in await talk.engine.threads.runs(talk.thread)] if talk.thread else []
    )
    cap = talk.wishes.budget if talk.wishes.budget is not None else talk.settings.budget.usd
    last = spent[-1] if spent else 0.0
    return print_message(
        f"{format_dollars(sum(spent))} spent in this conversation, "
        f"{format_dollars(last)} on the last question; a question may cost "
        f"{format_dollars(cap)} at most"
    )


async def _sum_spend(talk: "TerminalChat", run: str) -> float:
    """As the run's events tell it, so that stopped and failed questions count too."""
    usd = 0.0
    async for event in talk.engine.events(run):
        if event.kind == "spend":
            usd = float(str(event.data["total_usd"]))
    return round(usd * MICRO) / MICRO


def _parse_usd(amount: str) -> float:
    try:
        usd = float(amount.removeprefix("$"))
    except ValueError:
        usd = -1.0
    if not 0 <= usd <= MOST_USD:
        raise UsageError(f"{to_one_line(amount)} is no amount", help=f"As in: /budget 0.50, up to {MOST_USD:,}.")
    return usd


async def _handle_mode(talk: "TerminalChat", name: str) -> None:
    if not name:
        said = (await talk.engine.threads.get(talk.thread)).mode if talk.thread else None
        return print_message(f"The mode is {talk.wishes.mode or said or talk.settings.mode}. As in: /mode plan")
    mode = Mode(_parse_choice(name, [mode.value for mode in Mode], "/mode"))
    talk.set_options(mode=mode.value)
    print_message(f"From now on {'questions are asked first' if mode is Mode.PLAN else 'research begins at once'}.")
    if talk.thread is None:
        return None
    told = await find_last_seq(talk.engine, talk.thread)
    if await talk.engine.set_mode(talk.thread, mode) and not await talk.engine.open_questions(talk.thread):
        await talk.follow(talk.thread, told)
    return None


async def _handle_depth(talk: "TerminalChat", name: str) -> None:
    if not name:
        return print_message(f"The depth is {talk.wishes.depth or talk.settings.depth}. As in: /depth standard")
    talk.set_options(depth=_parse_choice(name, [depth.value for depth in Depth], "/depth"))
    return print_message(f"The next question is researched at depth {talk.wishes.depth}.")


def _parse_choice(name: str, known: list[str], command: str) -> str:
    if name.lower() not in known:
        raise UsageError(f"there is no {to_one_line(name)}", help=f"Choose one: {command} {'|'.join(known)}")
    return name.lower()


async def _handle_docs(talk: "TerminalChat", name: str) -> None:
    if not name:
        return print_message(
            f"Documents: {', '.join(map(to_one_line, talk.wishes.docs or ())) or 'none'}. As in: /docs notes"
        )
    path = _parse_path(name)
    if not _exists(path):
        raise PathError(f"{to_one_line(name)} does not exist", help="Give a folder or a file.")
    talk.set_options(docs=[str(path)])
    stays = "" if talk.wishes.web or talk.wishes.model else "; nothing about it leaves this machine"
    return print_message(f"The next question is asked of {to_one_line(str(path))}{stays}.")


# Threads -----------------------------------------------------------------------------------------------


async def _handle_new(talk: "TerminalChat", _: str) -> None:
    talk.thread = None
    print_message("A new conversation: nothing said before counts.")


async def _handle_threads(talk: "TerminalChat", _: str) -> None:
    found = await talk.engine.threads.list_recent(limit=LISTED)
    for thread in found:
        here = "*" if thread.id == talk.thread else " "
        typer.echo(f"{here} {thread.id}  {thread.updated:%Y-%m-%d %H:%M}  {to_one_line(thread.title)}")
    if not found:
        print_message("There are none yet.")


async def _handle_open(talk: "TerminalChat", name: str) -> None:
    if not name:
        raise UsageError("say which thread", help="As in: /open 1a2b. /threads lists them.")
    recent = [thread.id for thread in await talk.engine.threads.list_recent(limit=1000)]
    begun = [id for id in recent if id.startswith(name)]
    await talk.open_thread(begun[0] if len(begun) == 1 else name)


async def _handle_resume(talk: "TerminalChat", _: str) -> None:
    await talk.resume(_require_thread(talk))


async def _handle_help(talk: "TerminalChat", _: str) -> None:
    show_help(MEANINGS)
    typer.echo("Anything else is a question; //... asks one that begins with /. Ctrl-C stops one under way.")


def show_help(names: Container[str]) -> None:
    known = {command.usage: command.meaning for name, command in COMMANDS.items() if name in names}
    open_console().print(make_usage_table(known))


async def _handle_exit(talk: "TerminalChat", _: str) -> None:
    """Whoever reads lines looks for it before it comes here."""


class ChatCommand(NamedTuple):
    usage: str
    meaning: str
    does: Callable[["TerminalChat", str], Awaitable[None]]
    alone: str = "Type it alone."  # what to do instead of giving it words it does not take


_ALL = (
    ChatCommand("/help", "these lines", _handle_help),
    ChatCommand("/source N", "a source of the last answer, and the passages taken from it", _handle_source),
    ChatCommand("/sources", "all of them", _handle_sources),
    ChatCommand("/veto N", "do without a source: what rests on it is derived again", _handle_veto),
    ChatCommand("/claim C2", "the passages behind a statement", _handle_claim),
    ChatCommand("/plan", "how the last question was broken down", _handle_plan),
    ChatCommand("/export FILE", "write the last answer to a file: .md, .html, .pdf, .docx, .json, ...", _handle_export),
    ChatCommand("/budget [USD]", "what was spent, or the most a question may cost from now on", _handle_budget),
    ChatCommand("/mode [auto|plan]", "whether questions are asked before research begins", _handle_mode),
    ChatCommand("/depth [quick|standard|comprehensive]", "how far to go", _handle_depth),
    ChatCommand("/docs [PATH]", "ask your own documents", _handle_docs),
    ChatCommand("/remember TEXT", "keep something in mind for all conversations", handle_remember),
    ChatCommand("/memory [set|edit|forget ...]", "what is kept in mind, and changing it", handle_memory),
    ChatCommand("/resume", "go on with a question that was stopped or is open", _handle_resume),
    ChatCommand("/new", "begin another conversation", _handle_new, "Type /new, and then your question."),
    ChatCommand("/threads", "conversations of before", _handle_threads),
    ChatCommand("/open ID", "go on with one of them", _handle_open),
    ChatCommand("/exit", "end; so do exit, quit and Ctrl-D", _handle_exit),
)
COMMANDS = {command.usage.split()[0]: command for command in _ALL}
BESIDE = frozenset({"/help", "/plan", "/mode", "/exit"})  # may be said at a question of a run
MEANINGS = {name: command.meaning for name, command in COMMANDS.items()}


LEAVE = frozenset({"/exit", "/quit", "exit", "quit"})
_WELCOME = """Ask a question: every sentence of the answer opens the passage behind it.
Follow-ups keep the subject. /help tells what else can be done, /exit ends."""
HISTORY = "chat_history"  # in the data directory


def run_chat(wishes: CommandOptions, thread: str | None) -> None:
    settings = load(depth=wishes.depth or Depth.QUICK, mode=wishes.mode, source=wishes.source)
    asyncio.run(_run_conversation(settings, wishes, thread))


async def _run_conversation(settings: Settings, wishes: CommandOptions, thread: str | None) -> None:
    async with open_engine(settings) as engine:
        talk = TerminalChat(engine, settings, wishes)
        print_message(_WELCOME, "bold")
        await talk.begin(thread)
        while not talk.leaving and (line := await talk.read_line()) is not None and line.lower() not in LEAVE:
            if line:
                await talk.handle_line(line)
        await talk.close()


class TerminalChat:
    """A conversation at a terminal or through a pipe. What was wished for holds for the questions to come."""

    def __init__(self, engine: Engine, settings: Settings, wishes: CommandOptions) -> None:
        self.engine, self.settings, self.wishes = engine, settings, wishes
        self.thread: str | None = None
        self.leaving = False
        self._at_question = False
        self._noted: set[str] = set()  # of the sources and models at hand, which stay as they are
        self._prompt: LineEditor | None = None
        self._warned = False

    def set_options(self, **wishes: object) -> None:
        self.wishes = replace(self.wishes, **wishes)  # type: ignore[arg-type]  # the fields of Wishes

    # -- lines --------------------------------------------------------------------------------------------

    async def read_line(self) -> str | None:
        """The next line; None at the end. Ctrl-C twice is one."""
        try:
            line = await self._prompt_line() if can_ask() else _read_stdin_line()
        except EOFError:
            return None
        except KeyboardInterrupt:
            if self._warned or not can_ask():
                return None
            self._warned = True
            print_message("Ctrl-C again, or Ctrl-D, ends the conversation.")
            return ""
        self._warned = False
        return line.strip()

    async def _prompt_line(self) -> str:
        print_message("")
        return await self.prompt.read_line("you> ")

    @property
    def prompt(self) -> "LineEditor":
        if self._prompt is None:
            from openassay.cli.line_editor import LineEditor

            folder = self.settings.data_dir
            history = folder / HISTORY if folder.is_dir() else None
            self._prompt = LineEditor(history=history, commands=MEANINGS)
        return self._prompt

    async def confirm(self, question: str) -> bool:
        """A word between two questions, which is not kept in the history. Ctrl-C and Ctrl-D are a no."""
        from openassay.cli.line_editor import LineEditor

        try:
            return (await LineEditor().read_line(question)).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    async def handle_line(self, line: str) -> None:
        """A command or a question. What fails is told and forgotten; the conversation goes on."""
        try:
            if is_command(line):
                await run_command(self, line)
            elif not await self._resume_open_question():
                await self.ask(unescape_line(line))
        except OpenAssayError as error:
            print_message(
                f"openassay: {to_one_line(error.message)}\n       {to_one_line(adapt_help(error.help))}".rstrip()
            )

    async def _handle_aside(self, line: str) -> bool:
        """At a question of a run: a few commands are carried out there, the others come after it."""
        name = line.strip().lower()
        if name in LEAVE:
            self.leaving = True
            raise EOFError
        if not is_command(line):
            return False
        if name == "/help":
            show_help(BESIDE)
            print_message("help tells how to answer, Ctrl-D leaves the question open. An answer may begin with //.")
        elif name.split()[0] in BESIDE or name.split()[0] not in MEANINGS:
            await self.handle_line(line.strip())
        else:
            print_message("Answer first, or Ctrl-D leaves it open.")
        return True

    # -- questions ----------------------------------------------------------------------------------------

    async def ask(self, question: str) -> None:
        run = await self.engine.start(question, build_options(self.settings, self.wishes), thread=self.thread)
        self._show_outcome(run, await self._follow_run(run))

    async def resume(self, thread: str) -> None:
        """What was stopped, or waits for an answer."""
        told = await find_last_seq(self.engine, thread)
        run = await self.engine.resume(thread)
        self._show_outcome(run, await self._follow_run(run, told))

    async def follow(self, thread: str, told: int) -> None:
        """A run that goes on by itself. One that was asking is being followed already."""
        if self._at_question:
            return
        run = (await self.engine.threads.runs(thread))[-1]
        self._show_outcome(run, await self._follow_run(run, told))

    async def _follow_run(self, run: Run, told: int = 0) -> RunOutcome:
        async def aside(line: str) -> bool:
            self.thread, self._at_question = run.thread, True
            try:
                return await self._handle_aside(line)
            finally:
                self._at_question = False

        progress = ProgressDisplay(run, noted=self._noted)
        try:
            return await follow_and_ask(
                self.engine, run, progress, interactive=self.wishes.interactive, told=told, aside=aside
            )
        except KeyboardInterrupt:  # at one of its questions
            return await self.engine.outcome(run.id)

    def _show_outcome(self, run: Run, outcome: RunOutcome) -> None:
        self.thread = run.thread
        if outcome.report is not None:
            return show_report(outcome.report, talking=True, noted=self._noted)
        if outcome.questions:
            print_message(f"openassay: a question is open: {to_one_line(outcome.questions[0].question)}")
            return None if self.leaving else self._explain_open_question(run, outcome)
        stopped = outcome.run.status is RunStatus.CANCELLED
        print_message("Stopped. /resume goes on with it." if stopped else f"openassay: {_format_failure(outcome)}")
        return None

    def _explain_open_question(self, run: Run, outcome: RunOutcome) -> None:
        if not self.wishes.interactive:
            self._print_answer_help(run.thread, outcome.questions[0])
            raise typer.Exit(OPEN)
        print_message("It stays open: /resume puts it again, /new begins another conversation.")

    @staticmethod
    def _print_answer_help(thread: str, question: OpenQuestion) -> None:
        print_message("\n".join(format_answer_help(thread, question)))

    async def _resume_open_question(self) -> bool:
        """A thread is asked one thing after the other: what it waits for comes first."""
        if not self.thread or not self.wishes.interactive or not await self.engine.open_questions(self.thread):
            return False
        print_message("A question of this conversation is still open; it comes first (/new leaves it alone).")
        await self.resume(self.thread)
        return True

    # -- threads ------------------------------------------------------------------------------------------

    async def begin(self, thread: str | None) -> None:
        said = build_options(self.settings, self.wishes)
        docs = f" · documents {', '.join(to_one_line(path) for path in self.wishes.docs)}" if self.wishes.docs else ""
        print_message(f"depth {said.depth} · mode {said.mode or self.settings.mode}{docs}", "dim")
        if thread:
            await self.open_thread(thread)

    async def open_thread(self, thread: str) -> None:
        found = await self.engine.threads.get(thread)
        self.thread = found.id
        asked = len(await self.engine.threads.runs(found.id))
        print_message(f"thread {found.id}, {pluralize(asked, 'question')} so far: {to_one_line(found.title)}", "dim")
        if self.wishes.interactive and await self.engine.open_questions(found.id):
            await self.handle_line("/resume")

    async def close(self) -> None:
        if not self.thread:
            return
        print_message(f"This conversation is thread {self.thread}. Go on with: openassay chat --thread {self.thread}")
        if questions := await self.engine.open_questions(self.thread):
            self._print_answer_help(self.thread, questions[0])
            raise typer.Exit(OPEN)


def _read_stdin_line() -> str:
    """Nothing else is to be done until the next line comes, so waiting may block the event loop."""
    return input()


def adapt_help(help: str) -> str:
    """What can be done about something here, where commands of the shell have names of their own."""
    help = re.sub(r"openassay resume [0-9a-f]+", "/resume", help)
    return re.sub(r"Ask a new one: openassay ask .*", "Ask a new one.", help)


def _format_failure(outcome: RunOutcome) -> str:
    return to_one_line(outcome.run.error or "no answer was made")
