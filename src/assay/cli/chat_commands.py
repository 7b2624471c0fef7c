"""What can be said in a chat besides questions: /source 3, /export report.md and the like."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.text import Text

from assay.cli.asking import can_ask
from assay.cli.chat_memory import memory, remember
from assay.cli.delivery import check_target, hand_over
from assay.cli.lines import dollars, one_line
from assay.cli.passages import behind_claim, behind_source
from assay.cli.planning import show_plan
from assay.cli.research import told_before
from assay.cli.screen import listed, open_console, show_sources, tell
from assay.cli.veto import told
from assay.errors import NotFoundError, PathError, UsageError
from assay.export.report import Report
from assay.model.plan import MOST_USD, Plan
from assay.model.question import Depth, Mode
from assay.model.spend import MICRO

if TYPE_CHECKING:
    from assay.cli.chat import Talk

LISTED = 15  # threads


async def carry_out(talk: "Talk", line: str) -> None:
    """A mistyped command is never taken for a question, and nothing that was typed is ignored."""
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        near = get_close_matches(name.lower(), MEANINGS, n=1)
        hint = f"Did you mean {near[0]}?" if near else "/help lists the commands."
        raise UsageError(f"there is no {one_line(name)}", help=f"{hint} //... asks a question that begins with /.")
    if rest.strip() and command.usage == name.lower():
        raise UsageError(f"{name.lower()} stands alone, without “{one_line(rest.strip())}”", help=command.alone)
    await command.does(talk, rest.strip())


# What the last answer rests on -------------------------------------------------------------------------


async def _source(talk: "Talk", name: str) -> None:
    if not name:
        raise UsageError("say which source", help="As in: /source 3. /sources lists them.")
    await _print(behind_source(talk.engine, await _report(talk), name))


async def _sources(talk: "Talk", _: str) -> None:
    report = await _report(talk)
    if not report.sources:
        raise NotFoundError("the last answer has no sources", help="Ask something else, or give documents: /docs PATH")
    show_sources(open_console(), report)


async def _claim(talk: "Talk", name: str) -> None:
    if not name:
        raise UsageError("say which claim", help="As in: /claim C2. They stand behind the statements of an answer.")
    await _print(behind_claim(talk.engine, await _report(talk), f"C{name}" if name.isdecimal() else name))


async def _veto(talk: "Talk", names: str) -> None:
    """What it would cost is shown first, and agreed to where somebody can."""
    if not names:
        raise UsageError("say which source", help="As in: /veto 3. /sources lists them.")
    thread, sources = _thread(talk), names.replace(",", " ").split()
    for line in told(await talk.engine.consequences(thread, sources)):
        tell(line)
    if can_ask() and not await talk.agrees("Take it out? [y/N] "):
        return tell("Nothing was changed.")
    await talk.engine.veto(thread, sources)
    return await talk.follow(thread, 0)


async def _plan(talk: "Talk", _: str) -> None:
    values = await talk.engine.state(_thread(talk))
    if not values.get("plan"):
        raise NotFoundError("the last question was not planned", help="It was called off, or has not got so far.")
    plan = Plan.model_validate(values["plan"])
    console = open_console()
    console.print(Text(one_line(plan.goal), style="bold"))
    show_plan(console, plan)


async def _export(talk: "Talk", name: str) -> None:
    if not name:
        raise UsageError("say where to", help=_EXPORT)
    report, path = await _report(talk), _target(name)
    try:
        check_target(path)
    except PathError as error:
        raise PathError(error.message, help=_EXPORT) from error
    if not _exists(path) or await _may_replace(talk, path.name):
        await asyncio.to_thread(hand_over, report, path, as_json=False)


_EXPORT = "As in: /export report.md, or .html, .pdf, .docx, .json, ..."


def _target(name: str) -> Path:
    """A file; without an ending it is Markdown, which is told with its name."""
    path = _path(name)
    there = _exists(path)
    if name.endswith(os.sep) and not there:
        raise PathError(f"{one_line(name)} names a folder", help=_EXPORT)
    return path if path.suffix or there else path.with_name(f"{path.name}.md")


async def _may_replace(talk: "Talk", name: str) -> bool:
    if not can_ask():
        raise PathError("the file exists", help="Choose another name.")
    agreed = await talk.agrees(f"{one_line(name)} exists. Replace it? [y/N] ")
    if not agreed:
        tell("Nothing was written.")
    return agreed


def _path(name: str) -> Path:
    """As a shell would read it."""
    return Path(os.path.expanduser(name.strip("'\"")))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:  # too long, or with a byte no name may have
        raise PathError("this cannot be the name of a file", help="Choose another name.") from error


async def _report(talk: "Talk") -> Report:
    return await talk.engine.report(_thread(talk))


def _thread(talk: "Talk") -> str:
    if talk.thread is None:
        raise NotFoundError("nothing has been asked yet", help="Ask a question first, or /open a thread.")
    return talk.thread


async def _print(parts: AsyncIterator[Text]) -> None:
    console = open_console()
    async for part in parts:
        console.print(part)


# What holds for the questions to come ------------------------------------------------------------------


async def _budget(talk: "Talk", amount: str) -> None:
    if amount:
        talk.wish(budget=_usd(amount))
        return tell(f"From now on a question may cost {dollars(_usd(amount))} at most.")
    spent = [await _spent(talk, run.id) for run in await talk.engine.threads.runs(talk.thread)] if talk.thread else []
    cap = talk.wishes.budget if talk.wishes.budget is not None else talk.settings.budget.usd
    last = spent[-1] if spent else 0.0
    return tell(
        f"{dollars(sum(spent))} spent in this conversation, {dollars(last)} on the last question; a question may cost "
        f"{dollars(cap)} at most"
    )


async def _spent(talk: "Talk", run: str) -> float:
    """As the run's events tell it, so that stopped and failed questions count too."""
    usd = 0.0
    async for event in talk.engine.events(run):
        if event.kind == "spend":
            usd = float(str(event.data["total_usd"]))
    return round(usd * MICRO) / MICRO


def _usd(amount: str) -> float:
    try:
        usd = float(amount.removeprefix("$"))
    except ValueError:
        usd = -1.0
    if not 0 <= usd <= MOST_USD:
        raise UsageError(f"{one_line(amount)} is no amount", help=f"As in: /budget 0.50, up to {MOST_USD:,}.")
    return usd


async def _mode(talk: "Talk", name: str) -> None:
    if not name:
        said = (await talk.engine.threads.get(talk.thread)).mode if talk.thread else None
        return tell(f"The mode is {talk.wishes.mode or said or talk.settings.mode}. As in: /mode plan")
    mode = Mode(_one_of(name, [mode.value for mode in Mode], "/mode"))
    talk.wish(mode=mode.value)
    tell(f"From now on {'questions are asked first' if mode is Mode.PLAN else 'research begins at once'}.")
    if talk.thread is None:
        return None
    told = await told_before(talk.engine, talk.thread)
    if await talk.engine.set_mode(talk.thread, mode) and not await talk.engine.open_questions(talk.thread):
        await talk.follow(talk.thread, told)
    return None


async def _depth(talk: "Talk", name: str) -> None:
    if not name:
        return tell(f"The depth is {talk.wishes.depth or talk.settings.depth}. As in: /depth standard")
    talk.wish(depth=_one_of(name, [depth.value for depth in Depth], "/depth"))
    return tell(f"The next question is researched at depth {talk.wishes.depth}.")


def _one_of(name: str, known: list[str], command: str) -> str:
    if name.lower() not in known:
        raise UsageError(f"there is no {one_line(name)}", help=f"Choose one: {command} {'|'.join(known)}")
    return name.lower()


async def _docs(talk: "Talk", name: str) -> None:
    if not name:
        return tell(f"Documents: {', '.join(map(one_line, talk.wishes.docs or ())) or 'none'}. As in: /docs notes")
    path = _path(name)
    if not _exists(path):
        raise PathError(f"{one_line(name)} does not exist", help="Give a folder or a file.")
    talk.wish(docs=[str(path)])
    stays = "" if talk.wishes.web or talk.wishes.model else "; nothing about it leaves this machine"
    return tell(f"The next question is asked of {one_line(str(path))}{stays}.")


# Threads -----------------------------------------------------------------------------------------------


async def _new(talk: "Talk", _: str) -> None:
    talk.thread = None
    tell("A new conversation: nothing said before counts.")


async def _threads(talk: "Talk", _: str) -> None:
    found = await talk.engine.threads.recent(limit=LISTED)
    for thread in found:
        here = "*" if thread.id == talk.thread else " "
        typer.echo(f"{here} {thread.id}  {thread.updated:%Y-%m-%d %H:%M}  {one_line(thread.title)}")
    if not found:
        tell("There are none yet.")


async def _open(talk: "Talk", name: str) -> None:
    if not name:
        raise UsageError("say which thread", help="As in: /open 1a2b. /threads lists them.")
    recent = [thread.id for thread in await talk.engine.threads.recent(limit=1000)]
    begun = [id for id in recent if id.startswith(name)]
    await talk.open(begun[0] if len(begun) == 1 else name)


async def _resume(talk: "Talk", _: str) -> None:
    await talk.resume(_thread(talk))


async def _help(talk: "Talk", _: str) -> None:
    show_help(MEANINGS)
    typer.echo("Anything else is a question; //... asks one that begins with /. Ctrl-C stops one under way.")


def show_help(names: Container[str]) -> None:
    known = {command.usage: command.meaning for name, command in COMMANDS.items() if name in names}
    open_console().print(listed(known))


async def _leave(talk: "Talk", _: str) -> None:
    """Whoever reads lines looks for it before it comes here."""


class Command(NamedTuple):
    usage: str
    meaning: str
    does: Callable[["Talk", str], Awaitable[None]]
    alone: str = "Type it alone."  # what to do instead of giving it words it does not take


_ALL = (
    Command("/help", "these lines", _help),
    Command("/source N", "a source of the last answer, and the passages taken from it", _source),
    Command("/sources", "all of them", _sources),
    Command("/veto N", "do without a source: what rests on it is derived again", _veto),
    Command("/claim C2", "the passages behind a statement", _claim),
    Command("/plan", "how the last question was broken down", _plan),
    Command("/export FILE", "write the last answer to a file: .md, .html, .pdf, .docx, .json, ...", _export),
    Command("/budget [USD]", "what was spent, or the most a question may cost from now on", _budget),
    Command("/mode [auto|plan]", "whether questions are asked before research begins", _mode),
    Command("/depth [quick|standard|comprehensive]", "how far to go", _depth),
    Command("/docs [PATH]", "ask your own documents", _docs),
    Command("/remember TEXT", "keep something in mind for all conversations", remember),
    Command("/memory [set|edit|forget ...]", "what is kept in mind, and changing it", memory),
    Command("/resume", "go on with a question that was stopped or is open", _resume),
    Command("/new", "begin another conversation", _new, "Type /new, and then your question."),
    Command("/threads", "conversations of before", _threads),
    Command("/open ID", "go on with one of them", _open),
    Command("/exit", "end; so do exit, quit and Ctrl-D", _leave),
)
COMMANDS = {command.usage.split()[0]: command for command in _ALL}
BESIDE = frozenset({"/help", "/plan", "/mode", "/exit"})  # may be said at a question of a run
MEANINGS = {name: command.meaning for name, command in COMMANDS.items()}
