"""`assay chat`: one thread, many short questions."""

import asyncio
import contextlib

import typer

from assay.bootstrap import open_engine
from assay.cli.asking import can_ask, read_line
from assay.cli.progress import Progress
from assay.cli.research import OPEN, Wishes, converse, options
from assay.cli.screen import show_report
from assay.engine import Engine
from assay.errors import AssayError
from assay.model.question import Depth
from assay.settings import Settings, load

LEAVE = frozenset({"/exit", "/quit", "exit", "quit"})


def chat(wishes: Wishes, thread: str | None) -> None:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # arrow keys and history at the prompt
    asyncio.run(_talk(load(depth=Depth.QUICK, source=wishes.source), wishes, thread))


async def _talk(settings: Settings, wishes: Wishes, thread: str | None) -> None:
    async with open_engine(settings) as engine:
        if thread:
            await engine.threads.get(thread)
        typer.echo("Ask a question. /exit or Ctrl-D ends the conversation.", err=True)
        while (line := _line()) is not None:
            if line.strip().lower() in LEAVE:
                break
            if line.strip():
                thread = await _turn(engine, settings, wishes, line, thread)
        if thread:
            typer.echo(f"This conversation is thread {thread}. Go on with: assay chat --thread {thread}", err=True)


def _line() -> str | None:
    """The next question; nothing else is to be done until it comes, so waiting may block the event loop."""
    try:
        return read_line("\nyou> ") if can_ask() else input()
    except (EOFError, KeyboardInterrupt):
        if can_ask():
            typer.echo(err=True)
        return None


async def _turn(engine: Engine, settings: Settings, wishes: Wishes, line: str, thread: str | None) -> str | None:
    """A failed turn is told and forgotten; the conversation goes on."""
    try:
        run = await engine.start(line, options(settings, wishes), thread=thread)
        outcome = await converse(engine, run, Progress(), interactive=wishes.interactive)
    except AssayError as error:
        typer.echo(f"assay: {error.message}\n       {error.help}", err=True)
        return thread
    if outcome.questions:
        typer.echo(f"The question stays open. Answer it with: assay resume {run.thread}", err=True)
        raise typer.Exit(OPEN)
    if outcome.report is not None:
        show_report(outcome.report)
    else:
        typer.echo(f"assay: {outcome.run.error or 'stopped; no answer was made'}", err=True)
    return run.thread
