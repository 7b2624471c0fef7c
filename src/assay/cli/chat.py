"""`assay chat`: one thread, many short questions."""

import asyncio

import typer

from assay.bootstrap import open_engine
from assay.cli.asking import can_ask
from assay.cli.progress import Progress
from assay.cli.research import Wishes, converse, options, stoppable
from assay.cli.screen import show_report
from assay.engine import Engine
from assay.errors import AssayError
from assay.model.event import RunStatus
from assay.model.question import Depth
from assay.settings import Settings, load

LEAVE = frozenset({"/exit", "/quit", "exit", "quit"})


def chat(docs: list[str] | None, source: str | None, thread: str | None) -> None:
    settings = load(depth=Depth.QUICK, source=source)
    asyncio.run(_talk(settings, Wishes(docs=docs, source=source), thread))


async def _talk(settings: Settings, wishes: Wishes, thread: str | None) -> None:
    async with open_engine(settings) as engine:
        typer.echo("Ask a question. /exit or Ctrl-D ends the conversation.", err=True)
        while (line := await asyncio.to_thread(_line)) is not None:
            if line.strip().lower() in LEAVE:
                break
            if line.strip():
                thread = await _turn(engine, settings, wishes, line, thread)
        if thread:
            typer.echo(f"This conversation is thread {thread}. Go on with: assay chat --thread {thread}", err=True)


def _line() -> str | None:
    try:
        return input("\nyou> " if can_ask() else "")
    except (EOFError, KeyboardInterrupt):
        return None


async def _turn(engine: Engine, settings: Settings, wishes: Wishes, line: str, thread: str | None) -> str | None:
    """A failed turn is told and forgotten; the conversation goes on."""
    try:
        run = await engine.start(line, options(settings, wishes), thread=thread)
        async with stoppable(engine, run):
            outcome = await converse(engine, run, Progress(), interactive=wishes.interactive)
    except AssayError as error:
        typer.echo(f"assay: {error.message} {error.help}", err=True)
        return thread
    if outcome.report is not None:
        show_report(outcome.report)
    elif outcome.run.status is not RunStatus.CANCELLED:
        typer.echo(f"assay: {outcome.run.error or 'no answer'}", err=True)
    return run.thread
