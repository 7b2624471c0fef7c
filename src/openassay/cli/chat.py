"""`openassay chat`: one thread, many short questions, and commands that begin with a slash."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Container
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.text import Text

from openassay.cli import options as opt
from openassay.cli.dialogs import can_ask, format_answer_help, show_plan
from openassay.cli.export import check_target, deliver_report
from openassay.cli.research import OPEN, find_last_event, follow_and_ask, resolve_docs
from openassay.cli.runtime import find_thread
from openassay.cli.screen import (
    ProgressDisplay,
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
from openassay.cli.threads import format_consequences, render_claim_passages, render_source_passages
from openassay.errors import NotFoundError, OpenAssayError, PathError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import MOST_USD, Depth, Mode, Plan
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions, Run
from openassay.settings import Settings, load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.cli.line_editor import LineEditor
    from openassay.engine.engine import Engine
    from openassay.export import Report

LEAVE = frozenset({"/exit", "/quit", "exit", "quit"})
HISTORY = "chat_history"  # in the data directory
MAX_THREADS = 15  # that /threads lists
_WELCOME = """Ask a question: every sentence of the answer opens the passage behind it.
Follow-ups keep the subject. /help lists what else you can do, /exit ends."""
_EXPORT = "As in: /export report.md, or .html, .pdf, .docx, .json, ..."
_MEMORY = "As in: /memory set style executive, /memory edit M1 TEXT, /memory forget M1. /remember TEXT keeps a fact."


def chat(
    docs: opt.Docs = None,
    source: opt.Source = None,
    web: opt.Web = False,
    model: opt.Model = None,
    budget: opt.Usd = None,
    depth: opt.Depth = None,
    mode: opt.Mode = None,
    thread: opt.OnThread = None,
) -> None:
    """Have a conversation: follow-up questions keep the subject. /exit or Ctrl-D ends it.

    The depth is quick by default."""
    settings = load(depth=depth or Depth.QUICK, mode=mode, source=source)
    options = ResearchOptions(
        depth=settings.depth,
        mode=Mode(mode) if mode else None,
        user=settings.user,
        interactive=can_ask(),
        docs=resolve_docs(docs),
        source=settings.source,
        web=web,
        model=model,
        usd=budget,
    )

    async def run() -> None:
        from openassay.bootstrap import open_engine

        async with open_engine(settings, stays=True) as engine:
            talk = TerminalChat(engine, settings, options)
            print_message(_WELCOME, "bold")
            about = f" · documents {', '.join(map(to_one_line, options.docs))}" if options.docs else ""
            print_message(f"depth {options.depth} · mode {options.mode or settings.mode}{about}", "dim")
            if thread:
                await talk.open_thread(await find_thread(engine, thread))
            while not talk.leaving and (line := await talk.read_line()) is not None and line.lower() not in LEAVE:
                if line:
                    await talk.handle_line(line)
            await talk.close()

    asyncio.run(run())


# -- the conversation ---------------------------------------------------------------------------------------


class TerminalChat:
    """A conversation at a terminal or through a pipe. `options` hold for the questions to come."""

    def __init__(self, engine: Engine, settings: Settings, options: ResearchOptions) -> None:
        self.engine, self.settings, self.options = engine, settings, options
        self.thread: str | None = None
        self.leaving = False
        self._at_question = False
        self._noted: set[str] = set()  # notices about sources and models, which stay as they are
        self._editor: LineEditor | None = None
        self._warned = False

    def set_options(self, **changes: object) -> None:
        self.options = self.options.model_copy(update=changes)

    def require_thread(self) -> str:
        if self.thread is None:
            raise NotFoundError("nothing has been asked yet", help="Ask a question first, or /open a thread.")
        return self.thread

    async def load_report(self) -> Report:
        return await self.engine.history.report(self.require_thread())

    # Lines.

    async def read_line(self) -> str | None:
        """Read the next line; None at the end. Ctrl-C twice is one."""
        try:
            if can_ask():
                if self._editor is None:
                    from openassay.cli.line_editor import LineEditor

                    folder = self.settings.data_dir
                    history = folder / HISTORY if folder.is_dir() else None
                    self._editor = LineEditor(history=history, commands=MEANINGS)
                print_message("")
                line = await self._editor.read_line("you> ")
            else:
                line = input()  # noqa: ASYNC250  # nothing else is to be done until a line comes
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

    async def confirm(self, question: str) -> bool:
        """Ask for a yes, which is not kept in the history. Ctrl-C and Ctrl-D are a no."""
        from openassay.cli.line_editor import LineEditor

        try:
            return (await LineEditor().read_line(question)).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    async def handle_line(self, line: str) -> None:
        """Handle a command or a question. An error is shown, and the conversation goes on."""
        try:
            if is_command(line):
                await run_command(self, line)
            elif self.thread and can_ask() and await self.engine.interrupts.open_questions(self.thread):
                print_message("A question of this conversation is still open; it comes first (/new leaves it alone).")
                await self.resume(self.thread)
            else:
                await self._follow_run(await self.engine.start(unescape_line(line), self.options, thread=self.thread))
        except OpenAssayError as error:
            help = to_one_line(adapt_help(error.help))
            print_message(f"openassay: {to_one_line(error.message)}\n       {help}".rstrip())

    # Runs.

    async def resume(self, thread: str) -> None:
        """Resume what was stopped, or waits for an answer."""
        _, seen = await find_last_event(self.engine, thread)
        await self._follow_run(await self.engine.resume(thread), seen)

    async def follow(self, thread: str, seen: int) -> None:
        """Follow a run that goes on by itself. One that was asking is being followed already."""
        if not self._at_question:
            await self._follow_run((await self.engine.threads.runs(thread))[-1], seen)

    async def _follow_run(self, run: Run, seen: int = 0) -> None:
        async def aside(line: str) -> bool:
            """Handle a line at a question of the run: a few commands are carried out there, the others after it."""
            self.thread, name = run.thread, line.strip().lower()
            if name in LEAVE:
                self.leaving = True
                raise EOFError
            if not is_command(line):
                return False
            if name == "/help":
                show_help(BESIDE)
                print_message(
                    "help explains how to answer, Ctrl-D leaves the question open. An answer may begin with //."
                )
            elif name.split()[0] in BESIDE or name.split()[0] not in MEANINGS:
                self._at_question = True
                try:
                    await self.handle_line(line.strip())
                finally:
                    self._at_question = False
            else:
                print_message("Answer first, or Ctrl-D leaves it open.")
            return True

        progress = ProgressDisplay(run, noted=self._noted)
        try:
            outcome = await follow_and_ask(self.engine, run, progress, interactive=can_ask(), seen=seen, aside=aside)
        except KeyboardInterrupt:  # at one of its questions
            outcome = await self.engine.outcome(run.id)
        self.thread = run.thread
        if outcome.report is not None:
            return show_report(outcome.report, talking=True, noted=self._noted)
        if outcome.questions:
            print_message(f"openassay: a question is open: {to_one_line(outcome.questions[0].question)}")
            if self.leaving:
                return None
            if not can_ask():
                print_message("\n".join(format_answer_help(run.thread, outcome.questions[0])))
                raise typer.Exit(OPEN)
            return print_message("It stays open: /resume asks it again, /new begins another conversation.")
        if outcome.run.status is RunStatus.CANCELLED:
            return print_message("Stopped. /resume resumes it.")
        return print_message(f"openassay: {to_one_line(outcome.run.error or 'no answer was made')}")

    async def open_thread(self, thread: str) -> None:
        found = await self.engine.threads.get(thread)
        self.thread = found.id
        asked = len(await self.engine.threads.runs(found.id))
        print_message(f"thread {found.id}, {pluralize(asked, 'question')} so far: {to_one_line(found.title)}", "dim")
        if can_ask() and await self.engine.interrupts.open_questions(found.id):
            await self.handle_line("/resume")

    async def close(self) -> None:
        if not self.thread:
            return
        print_message(
            f"This conversation is thread {self.thread}. Continue with: openassay chat --thread {self.thread}"
        )
        if questions := await self.engine.interrupts.open_questions(self.thread):
            print_message("\n".join(format_answer_help(self.thread, questions[0])))
            raise typer.Exit(OPEN)


def adapt_help(help: str) -> str:
    """Name what can be typed in a conversation in place of commands of the shell."""
    help = re.sub(r"openassay resume [0-9a-f]+", "/resume", help)
    return re.sub(r"Ask a new one: openassay ask .*", "Ask a new one.", help)


# -- commands -----------------------------------------------------------------------------------------------


class ChatCommand(NamedTuple):
    usage: str
    meaning: str
    missing: str = ""  # what to say where the words are missing that it needs
    help: str = "Type it alone."  # what to do where words are missing, or it takes none


_ALL = (
    ChatCommand("/help", "these lines"),
    ChatCommand(
        "/source N",
        "a source of the last answer, and the passages taken from it",
        "say which source",
        "As in: /source 3. /sources lists them.",
    ),
    ChatCommand("/sources", "all of them"),
    ChatCommand(
        "/veto N",
        "leave out a source: what rests on it is derived again",
        "say which source",
        "As in: /veto 3. /sources lists them.",
    ),
    ChatCommand(
        "/claim C2",
        "the passages behind a statement",
        "say which claim",
        "As in: /claim C2. They stand behind the statements of an answer.",
    ),
    ChatCommand("/plan", "how the last question was broken down"),
    ChatCommand(
        "/export FILE", "write the last answer to a file: .md, .html, .pdf, .docx, .json, ...", "say where to", _EXPORT
    ),
    ChatCommand("/budget [USD]", "what was spent, or the most a question may cost from now on"),
    ChatCommand("/mode [auto|plan]", "whether questions are asked before research begins"),
    ChatCommand("/depth [quick|standard|comprehensive]", "how far to go"),
    ChatCommand("/docs [PATH]", "ask your own documents"),
    ChatCommand(
        "/remember TEXT",
        "remember something for all conversations",
        "say what to remember",
        "As in: /remember we report in euros",
    ),
    ChatCommand("/memory [set|edit|forget ...]", "what is remembered about you, and changing it"),
    ChatCommand("/resume", "resume a question that was stopped or is open"),
    ChatCommand("/new", "begin another conversation", help="Type /new, and then your question."),
    ChatCommand("/threads", "earlier conversations"),
    ChatCommand("/open ID", "continue one of them", "say which thread", "As in: /open 1a2b. /threads lists them."),
    ChatCommand("/exit", "end; so do exit, quit and Ctrl-D"),
)
COMMANDS = {command.usage.split()[0]: command for command in _ALL}
BESIDE = frozenset({"/help", "/plan", "/mode", "/exit"})  # may be said at a question of a run
MEANINGS = {name: command.meaning for name, command in COMMANDS.items()}


async def run_command(talk: TerminalChat, line: str) -> None:
    """Carry out a command. A mistyped one is never researched, and nothing that was typed is ignored."""
    typed, _, rest = line.partition(" ")
    name, rest = typed.lower(), rest.strip()
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, MEANINGS, n=1)
        hint = f"Did you mean {near[0]}?" if near else "/help lists the commands."
        raise UsageError(f"there is no {to_one_line(typed)}", help=f"{hint} //... asks a question that begins with /.")
    if rest and command.usage == name:
        raise UsageError(f"{name} takes no words after it, such as “{to_one_line(rest)}”", help=command.help)
    if command.missing and not rest:
        raise UsageError(command.missing, help=command.help)
    match name:
        case "/help":
            show_help(MEANINGS)
            typer.echo("Anything else is a question; //... asks one that begins with /. Ctrl-C stops one under way.")
        case "/source":
            await _print_parts(render_source_passages(talk.engine, await talk.load_report(), rest))
        case "/sources":
            report = await talk.load_report()
            if not report.sources:
                help = "Ask something else, or give documents: /docs PATH"
                raise NotFoundError("the last answer has no sources", help=help)
            show_sources(open_console(), report)
        case "/claim":
            claim = f"C{rest}" if rest.isdecimal() else rest
            await _print_parts(render_claim_passages(talk.engine, await talk.load_report(), claim))
        case "/depth" if rest:
            talk.set_options(depth=Depth(_parse_choice(rest, [depth.value for depth in Depth], "/depth")))
            print_message(f"The next question is researched at depth {talk.options.depth}.")
        case "/depth":
            print_message(f"The depth is {talk.options.depth}. As in: /depth standard")
        case "/remember":
            fact = await talk.engine.memory.remember(talk.settings.user, rest)
            print_message(f"Remembered as {fact.id}. Forget it with: /memory forget {fact.id}")
        case "/resume":
            await talk.resume(talk.require_thread())
        case "/new":
            talk.thread = None
            print_message("A new conversation: it does not know what was said before.")
        case "/open":
            await talk.open_thread(await find_thread(talk.engine, rest))
        case "/veto":
            await _veto_sources(talk, rest)
        case "/plan":
            await _show_last_plan(talk)
        case "/export":
            await _export_report(talk, rest)
        case "/budget":
            await _handle_budget(talk, rest)
        case "/mode":
            await _handle_mode(talk, rest)
        case "/docs":
            _choose_docs(talk, rest)
        case "/memory":
            await _handle_memory(talk, rest)
        case "/threads":
            await _list_threads(talk)
    # Whoever reads lines has looked for /exit before it comes here.


async def _veto_sources(talk: TerminalChat, names: str) -> None:
    """Take a source out, after showing what that changes and asking whether to."""
    thread, sources = talk.require_thread(), names.replace(",", " ").split()
    for line in format_consequences(await talk.engine.vetoes.consequences(thread, sources)):
        print_message(line)
    if can_ask() and not await talk.confirm("Take it out? [y/N] "):
        return print_message("Nothing was changed.")
    await talk.engine.vetoes.begin(thread, sources)
    return await talk.follow(thread, 0)


async def _show_last_plan(talk: TerminalChat) -> None:
    values = await talk.engine.state(talk.require_thread())
    if not values.get("plan"):
        raise NotFoundError("the last question was not planned", help="It was cancelled, or has not got that far.")
    plan = Plan.model_validate(values["plan"])
    console = open_console()
    console.print(Text(to_one_line(plan.goal), style="bold"))
    show_plan(console, plan)


async def _export_report(talk: TerminalChat, name: str) -> None:
    report, path = await talk.load_report(), _parse_path(name)
    exists = _exists(path)
    if name.endswith(os.sep) and not exists:
        raise PathError(f"{to_one_line(name)} names a folder", help=_EXPORT)
    if not path.suffix and not exists:  # Markdown, as its name will say
        path = path.with_name(f"{path.name}.md")
    try:
        check_target(path)
    except PathError as error:
        raise PathError(error.message, help=_EXPORT) from error
    if _exists(path):
        if not can_ask():
            raise PathError("the file exists", help="Choose another name.")
        if not await talk.confirm(f"{to_one_line(path.name)} exists. Replace it? [y/N] "):
            return print_message("Nothing was written.")
    return await asyncio.to_thread(deliver_report, report, path, as_json=False)


def _parse_path(name: str) -> Path:
    """Read a path as a shell would."""
    return Path(os.path.expanduser(name.strip("'\"")))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:  # too long, or with a byte no name may have
        raise PathError("this cannot be the name of a file", help="Choose another name.") from error


async def _print_parts(parts: AsyncIterator[Text]) -> None:
    console = open_console()
    async for part in parts:
        console.print(part)


async def _handle_budget(talk: TerminalChat, amount: str) -> None:
    if amount:
        talk.set_options(usd=_parse_usd(amount))
        return print_message(f"From now on a question may cost {format_dollars(_parse_usd(amount))} at most.")
    spent = [0.0]
    for run in await talk.engine.threads.runs(talk.thread) if talk.thread else ():
        usd = 0.0
        async for event in talk.engine.events(run.id):  # which tell what stopped and failed questions have cost, too
            if event.kind == "spend":
                usd = float(str(event.data["total_usd"]))
        spent.append(round(usd * MICRO) / MICRO)
    cap = talk.options.max_usd(talk.settings.budget.usd)
    return print_message(
        f"{format_dollars(sum(spent))} spent in this conversation, {format_dollars(spent[-1])} on the last question; "
        f"a question may cost {format_dollars(cap)} at most"
    )


def _parse_usd(amount: str) -> float:
    try:
        usd = float(amount.removeprefix("$"))
    except ValueError:
        usd = -1.0
    if not 0 <= usd <= MOST_USD:
        raise UsageError(f"{to_one_line(amount)} is not an amount", help=f"As in: /budget 0.50, up to {MOST_USD:,}.")
    return usd


async def _handle_mode(talk: TerminalChat, name: str) -> None:
    if not name:
        said = (await talk.engine.threads.get(talk.thread)).mode if talk.thread else None
        return print_message(f"The mode is {talk.options.mode or said or talk.settings.mode}. As in: /mode plan")
    mode = Mode(_parse_choice(name, [mode.value for mode in Mode], "/mode"))
    talk.set_options(mode=mode)
    print_message(f"From now on {'questions are asked first' if mode is Mode.PLAN else 'research begins at once'}.")
    if talk.thread is None:
        return None
    _, seen = await find_last_event(talk.engine, talk.thread)
    if await talk.engine.interrupts.set_mode(talk.thread, mode) and not await talk.engine.interrupts.open_questions(
        talk.thread
    ):
        await talk.follow(talk.thread, seen)
    return None


def _parse_choice(name: str, known: list[str], command: str) -> str:
    if name.lower() not in known:
        raise UsageError(f"there is no {to_one_line(name)}", help=f"Choose one: {command} {'|'.join(known)}")
    return name.lower()


def _choose_docs(talk: TerminalChat, name: str) -> None:
    if not name:
        listed = ", ".join(map(to_one_line, talk.options.docs)) or "none"
        return print_message(f"Documents: {listed}. As in: /docs notes")
    path = _parse_path(name)
    if not _exists(path):
        raise PathError(f"{to_one_line(name)} does not exist", help="Give a folder or a file.")
    talk.set_options(docs=resolve_docs([str(path)]))
    stays = "" if talk.options.web or talk.options.model else "; nothing about it leaves this machine"
    return print_message(f"The next question is asked of {to_one_line(str(path))}{stays}.")


async def _handle_memory(talk: TerminalChat, line: str) -> None:
    from openassay.engine.memory import forget_entry, format_preferences, set_preference

    user, memory = talk.settings.user, talk.engine.memory
    match line.split(None, 2):
        case []:
            rows = format_preferences(await memory.preferences(user))
            rows += [(fact.id, fact.text) for fact in await memory.facts(user)]
            for name, text in rows:
                typer.echo(f"{name:8}  {to_one_line(text)}")
            nothing = "Nothing is remembered about you. As in: /remember we report in euros"
            print_message(_MEMORY if rows else nothing, "dim")
        case ["set", key, value]:
            for changed in await set_preference(memory, user, key, value):
                typer.echo(to_one_line(changed))
        case ["edit", id, text]:
            fact = await memory.edit(user, id, text)
            typer.echo(f"{fact.id}  {to_one_line(fact.text)}")
        case ["remember", *_]:
            await run_command(talk, f"/remember {line.partition(' ')[2]}")
        case ["forget", "all"]:
            if not can_ask():
                help = "If that is what you want: openassay memory forget all --yes"
                raise UsageError("everything would be forgotten", help=help)
            if await talk.confirm(f"Forget everything about {user}? [y/N] "):
                await memory.forget_all(user)
                print_message(f"Everything about {user} is forgotten.")
            else:
                print_message("Nothing was forgotten.")
        case ["forget", what]:
            print_message(await forget_entry(memory, user, what))
        case _:
            raise UsageError(f"“{to_one_line(line)}” is not understood", help=_MEMORY)


async def _list_threads(talk: TerminalChat) -> None:
    found = await talk.engine.threads.list_recent(limit=MAX_THREADS)
    for thread in found:
        here = "*" if thread.id == talk.thread else " "
        typer.echo(f"{here} {thread.id}  {thread.updated:%Y-%m-%d %H:%M}  {to_one_line(thread.title)}")
    if not found:
        print_message("There are none yet.")


def show_help(names: Container[str]) -> None:
    known = {command.usage: command.meaning for name, command in COMMANDS.items() if name in names}
    open_console().print(make_usage_table(known))
