"""`assay research`, `ask` and `resume`: start a run, show how it goes, print what came of it."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from assay.bootstrap import open_engine
from assay.cli import STOPPED
from assay.cli.asking import can_ask, put
from assay.cli.delivery import check_target, hand_over
from assay.cli.progress import Progress
from assay.engine import Engine, Outcome
from assay.errors import AnswerError, AssayError
from assay.model.event import RunStatus
from assay.model.question import Mode
from assay.model.report import ReportStatus
from assay.model.thread import Options, Run
from assay.settings import Settings, load

EXIT_CODES = {ReportStatus.COMPLETE: 0, ReportStatus.CANCELLED: 0, ReportStatus.PARTIAL: 5, ReportStatus.NO_DATA: 5}
OPEN = 3
Begin = Callable[[Engine], Awaitable[tuple[Run, int]]]  # the run, and how many of its events were told before
MOST_QUESTIONS = 12  # what one run may ask a person before something is wrong with the run


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was given on the command line; None leaves it to the settings."""

    docs: list[str] | None = None
    depth: str | None = None
    mode: str | None = None
    style: str | None = None
    words: int | None = None
    source: str | None = None
    web: bool = False
    model: str | None = None
    budget: float | None = None
    context: str | None = None
    domains: list[str] | None = None
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

    async def begin(engine: Engine) -> tuple[Run, int]:
        return await engine.start(question, options(settings, wishes), thread=wishes.thread), 0

    _run(settings, wishes, begin)


def resume(thread: str, wishes: Wishes) -> None:
    async def begin(engine: Engine) -> tuple[Run, int]:
        """What was done before the stop is not told again."""
        told = 0
        for run in (await engine.threads.runs(thread))[-1:]:
            async for event in engine.events(run.id):
                told = event.seq
        return await engine.resume(thread), told

    _run(load(), wishes, begin)


def options(settings: Settings, wishes: Wishes) -> Options:
    """With --yes nobody will answer, so plan mode gives way; without a terminal its question stays open."""
    return Options(
        depth=settings.depth,
        mode=Mode.AUTO if wishes.yes else settings.mode,
        interactive=wishes.interactive,
        docs=tuple(str(Path(path).absolute()) for path in wishes.docs or ()),
        source=settings.source,
        web=wishes.web,
        style=settings.style_guide,
        words=settings.target_length,
        model=wishes.model,
        usd=wishes.budget,
        context=wishes.context or "",
        domains=tuple(wishes.domains or ()),
    )


def _run(settings: Settings, wishes: Wishes, begin: Begin) -> None:
    if wishes.out is not None:
        check_target(wishes.out)
    outcome = asyncio.run(_conduct(settings, wishes, begin))
    deliver(outcome, wishes)


async def _conduct(settings: Settings, wishes: Wishes, begin: Begin) -> Outcome:
    async with open_engine(settings) as engine:
        run, told = await begin(engine)
        progress = Progress(enabled=not wishes.quiet)
        return await converse(engine, run, progress, interactive=wishes.interactive, told=told)


async def converse(engine: Engine, run: Run, progress: Progress, *, interactive: bool, told: int = 0) -> Outcome:
    """Follow a run to its end; each question it opens is put to the person, if there is one."""
    seen, outcome = await _follow(engine, run, progress, told)
    for _ in range(MOST_QUESTIONS):
        if not outcome.questions or not interactive or not await _answered(engine, outcome):
            break
        seen, outcome = await _follow(engine, run, progress, seen)
    return outcome


async def _follow(engine: Engine, run: Run, progress: Progress, seen: int) -> tuple[int, Outcome]:
    async with _stoppable(engine, run):
        with progress:
            async for event in engine.events(run.id, after=seen):
                seen = event.seq
                progress.show(event)
        return seen, await engine.wait(run.id)


async def _answered(engine: Engine, outcome: Outcome) -> bool:
    """Whether the run goes on. Ctrl-D leaves the question open; until it is answered nothing else is to be done
    in this process, so the prompt may block it."""
    question = outcome.questions[0]
    for _ in range(5):
        try:
            await engine.answer(outcome.run.thread, question.id, put(question))
        except AnswerError as error:
            typer.echo(f"{error.message}. {error.help}", err=True)
        except EOFError:
            typer.echo(err=True)
            return False
        except KeyboardInterrupt:
            typer.echo(f"\nStopped. Go on with: assay resume {outcome.run.thread}", err=True)
            raise typer.Exit(STOPPED) from None
        else:
            return True
    return False


@contextlib.asynccontextmanager
async def _stoppable(engine: Engine, run: Run) -> AsyncIterator[None]:
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
    hand_over(outcome.report, wishes.out, as_json=wishes.json)
    raise typer.Exit(EXIT_CODES[outcome.report.status])
