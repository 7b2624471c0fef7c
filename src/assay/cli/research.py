"""`assay research`, `ask` and `resume`: start a run, show how it goes, print what came of it."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from assay.bootstrap import open_engine
from assay.cli.asking import can_ask, put
from assay.cli.progress import Progress
from assay.cli.screen import show_report
from assay.engine import Engine, Outcome
from assay.errors import AnswerError, AssayError, PathError
from assay.export.report import Report
from assay.model.event import RunStatus
from assay.model.question import Depth, Mode
from assay.model.report import ReportStatus
from assay.model.thread import Options, Run
from assay.settings import Settings, load

EXIT_CODES = {ReportStatus.COMPLETE: 0, ReportStatus.CANCELLED: 0, ReportStatus.PARTIAL: 5, ReportStatus.NO_DATA: 5}
OPEN, STOPPED = 3, 130
MOST_QUESTIONS = 12  # what one run may ask a person before something is wrong with the run


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was given on the command line; None leaves it to the settings."""

    docs: list[str] | None = None
    depth: Depth | None = None
    mode: Mode | None = None
    style: str | None = None
    words: int | None = None
    source: str | None = None
    thread: str | None = None
    out: Path | None = None
    json: bool = False
    yes: bool = False
    quiet: bool = False

    @property
    def interactive(self) -> bool:
        return can_ask() and not self.json and not self.yes


def research(question: str, wishes: Wishes) -> None:
    settings = load(
        depth=wishes.depth, mode=wishes.mode, style_guide=wishes.style, target_length=wishes.words, source=wishes.source
    )
    _run(settings, wishes, lambda engine: engine.start(question, options(settings, wishes), thread=wishes.thread))


def resume(thread: str, wishes: Wishes) -> None:
    _run(load(), wishes, lambda engine: engine.resume(thread))


def options(settings: Settings, wishes: Wishes) -> Options:
    """With --yes nobody will answer, so plan mode gives way; without a terminal its question stays open."""
    return Options(
        depth=settings.depth,
        mode=Mode.AUTO if wishes.yes else settings.mode,
        interactive=wishes.interactive,
        docs=tuple(wishes.docs or ()),
        source=settings.source,
        style=settings.style_guide,
        words=settings.target_length,
    )


def _run(settings: Settings, wishes: Wishes, begin: Callable[[Engine], Awaitable[Run]]) -> None:
    if wishes.out is not None and not wishes.out.absolute().parent.is_dir():
        raise PathError(f"the folder of {wishes.out} does not exist", help="Create it or choose another --out.")
    outcome = asyncio.run(_conduct(settings, wishes, begin))
    deliver(outcome, wishes)


async def _conduct(settings: Settings, wishes: Wishes, begin: Callable[[Engine], Awaitable[Run]]) -> Outcome:
    async with open_engine(settings) as engine:
        run = await begin(engine)
        async with stoppable(engine, run):
            return await converse(engine, run, Progress(enabled=not wishes.quiet), interactive=wishes.interactive)


async def converse(engine: Engine, run: Run, progress: Progress, *, interactive: bool) -> Outcome:
    """Follow a run to its end; each question it opens is put to the person, if there is one."""
    seen = await _follow(engine, run, progress, 0)
    outcome = await engine.wait(run.id)
    for _ in range(MOST_QUESTIONS):
        if not outcome.questions or not interactive:
            break
        await _answer(engine, outcome)
        seen = await _follow(engine, run, progress, seen)
        outcome = await engine.wait(run.id)
    return outcome


async def _follow(engine: Engine, run: Run, progress: Progress, seen: int) -> int:
    with progress:
        async for event in engine.events(run.id, after=seen):
            seen = event.seq
            progress.show(event)
    return seen


async def _answer(engine: Engine, outcome: Outcome) -> None:
    question = outcome.questions[0]
    for _ in range(5):
        value = await asyncio.to_thread(put, question)
        try:
            await engine.answer(outcome.run.thread, question.id, value)
        except AnswerError as error:
            typer.echo(f"{error.message}. {error.help}", err=True)
        else:
            return
    raise AnswerError("no usable answer was given", help=f"Go on later with: assay resume {outcome.run.thread}")


@contextlib.asynccontextmanager
async def stoppable(engine: Engine, run: Run) -> AsyncIterator[None]:
    """Ctrl-C once stops the run cleanly, twice at once."""
    loop = asyncio.get_running_loop()
    stops: set[asyncio.Task[None]] = set()

    def stop() -> None:
        if stops:
            os._exit(STOPPED)
        typer.echo("Stopping (Ctrl-C again to stop at once) ...", err=True)
        stops.add(loop.create_task(engine.cancel(run.id)))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def deliver(outcome: Outcome, wishes: Wishes) -> None:
    """Print or write the report, and leave with the code that says how it went."""
    run = outcome.run
    if outcome.questions:
        question = outcome.questions[0]
        typer.echo(f"assay: a question is open: {question.question}", err=True)
        for option in question.options:
            typer.echo(f"       - {option}", err=True)
        typer.echo(f"       Answer it in a terminal with: assay resume {run.thread}", err=True)
        raise typer.Exit(OPEN)
    if run.status is RunStatus.CANCELLED:
        typer.echo(f"Stopped. Go on with: assay resume {run.thread}", err=True)
        raise typer.Exit(STOPPED)
    if outcome.report is None:
        raise AssayError(
            run.error or "the run ended without a report", help=f"Try again with: assay resume {run.thread}"
        )
    _print(outcome.report, wishes)
    raise typer.Exit(EXIT_CODES[outcome.report.status])


def _print(report: Report, wishes: Wishes) -> None:
    if wishes.out is not None:
        as_json = wishes.json or wishes.out.suffix == ".json"
        write_whole(wishes.out, report.model_dump_json(indent=2) if as_json else report.markdown)
        typer.echo(f"Report written to {wishes.out}", err=True)
    elif wishes.json:
        typer.echo(report.model_dump_json(indent=2))
    elif sys.stdout.isatty():
        show_report(report)
    else:
        typer.echo(report.markdown, nl=False)


def write_whole(path: Path, text: str) -> None:
    """The file is complete or not there at all."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.absolute().parent, delete=False) as part:
            part.write(text)
        os.replace(part.name, path)
    except OSError as error:
        raise PathError(f"cannot write {path}: {error.strerror}", help="Choose another --out.") from error
