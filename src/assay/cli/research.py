"""`assay research`, `ask` and `resume`: start a run, show how it goes, print what came of it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from assay.bootstrap import open_engine
from assay.cli import STOPPED
from assay.cli.asking import Aside, answered, can_ask, how_to_answer, no_commands
from assay.cli.delivery import check_target, hand_over
from assay.cli.ending import heeded
from assay.cli.lines import one_line
from assay.cli.progress import Progress
from assay.cli.screen import tell
from assay.cli.spelling import misspelt
from assay.engine import Engine, Outcome
from assay.errors import AssayError, ThreadBusyError
from assay.model.event import Event, RunStatus
from assay.model.plan import Style
from assay.model.question import Depth, Mode
from assay.model.report import ReportStatus
from assay.model.thread import Options, Run
from assay.questions import OpenQuestion
from assay.settings import Settings, load

EXIT_CODES = {ReportStatus.COMPLETE: 0, ReportStatus.CANCELLED: 0, ReportStatus.PARTIAL: 5, ReportStatus.NO_DATA: 5}
OPEN = 3
Begin = Callable[[Engine], Awaitable[tuple[Run, int]]]  # the run, and how many of its events were told before
MOST_QUESTIONS = 60  # what one run may ask a person before something is wrong with the run


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was given on the command line; None leaves it to the settings."""

    docs: list[str] | None = None
    depth: str | None = None
    mode: str | None = None
    style: Style | None = None
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
    ask: bool = False  # leave questions open where nobody can answer them at once
    quiet: bool = False
    detach: bool = False  # in a process of its own

    @property
    def interactive(self) -> bool:
        """Whether somebody sits there to be asked."""
        return can_ask() and not self.json and not self.yes and not self.detach


def research(question: str, wishes: Wishes) -> None:
    settings = load(
        depth=wishes.depth, mode=wishes.mode, style_guide=wishes.style, target_length=wishes.words, source=wishes.source
    )

    async def begin(engine: Engine) -> tuple[Run, int]:
        with _unasked_if_busy():
            return await engine.start(question, options(settings, wishes), thread=wishes.thread), 0

    async def queue(engine: Engine) -> Run:
        with _unasked_if_busy():
            return await engine.queue(question, options(settings, wishes), thread=wishes.thread)

    if wishes.detach:
        return _detached(settings, wishes, queue)
    return _run(settings, wishes, begin)


@contextlib.contextmanager
def _unasked_if_busy() -> Iterator[None]:
    """Who comes second is told what became of the question."""
    try:
        yield
    except ThreadBusyError as error:
        raise ThreadBusyError(f"{error.message}; your question was not asked", help=error.help) from error


def resume(thread: str, wishes: Wishes, *, queued: bool = False) -> None:
    """`queued`: not if somebody has stopped it, or taken it up, before this process came to it."""

    async def begin(engine: Engine) -> tuple[Run, int]:
        told = await told_before(engine, thread)
        return await engine.resume(thread, queued=queued), told

    async def put_aside(engine: Engine) -> Run:
        return await engine.put_aside(thread)

    if wishes.detach:
        return _detached(load(), wishes, put_aside)
    return _run(load(), wishes, begin)


def restore(folder: Path, wishes: Wishes) -> None:
    """A run that is only there as a journal; one that was finished is printed."""

    async def begin(engine: Engine) -> tuple[Run, int]:
        run = await engine.restore(folder)
        told, remarks = 0, list[str]()  # of the restoring, which come last
        async for event in engine.events(run.id):
            told, remarks = event.seq, [*remarks, str(event.data["text"])] if _is_remark(event) else []
        tell(f"Restored as thread {run.thread}.")
        Progress(run, enabled=not wishes.quiet).note(remarks)
        return run if run.status is RunStatus.DONE else await engine.resume(run.thread), told

    _run(load(), wishes, begin)


def conduct(wishes: Wishes, begin: Begin) -> None:
    """A run that asks nothing new, followed to its end."""
    _run(load(), wishes, begin)


def _is_remark(event: Event) -> bool:
    return event.kind == "notice" and "text" in event.data


async def told_before(engine: Engine, thread: str) -> int:
    """What was done before a stop is not told again."""
    told = 0
    for run in (await engine.threads.runs(thread))[-1:]:
        async for event in engine.events(run.id):
            told = event.seq
    return told


def options(settings: Settings, wishes: Wishes) -> Options:
    """With --yes nobody will answer, so plan mode gives way; without a terminal its question stays open."""
    said = Mode(wishes.mode) if wishes.mode else None
    return Options(
        depth=Depth(wishes.depth) if wishes.depth else settings.depth,
        mode=Mode.AUTO if wishes.yes else said,
        user=settings.user,
        interactive=wishes.interactive or (wishes.ask and not wishes.yes),
        docs=tuple(str(Path(path).absolute()) for path in wishes.docs or ()),
        source=settings.source,
        web=wishes.web,
        style=wishes.style,
        words=wishes.words,
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


def _detached(settings: Settings, wishes: Wishes, begin: Callable[[Engine], Awaitable[Run]]) -> None:
    """What can be refused is refused here; then another process is at work, and this one returns."""
    from assay.cli.detach import launch, refuse_without_storage

    async def put_aside() -> Run:
        async with open_engine(settings) as engine:
            return await begin(engine)

    refuse_without_storage(settings)
    if wishes.out is not None:
        check_target(wishes.out)
    launch(settings, asyncio.run(put_aside()), wishes)


async def _conduct(settings: Settings, wishes: Wishes, begin: Begin) -> Outcome:
    async with open_engine(settings) as engine:
        run, told = await begin(engine)
        progress = Progress(run, enabled=not wishes.quiet)
        try:
            return await converse(engine, run, progress, interactive=wishes.interactive, told=told)
        except KeyboardInterrupt:
            tell(f"Stopped. Go on with: assay resume {run.thread}")
            raise typer.Exit(STOPPED) from None


async def converse(
    engine: Engine, run: Run, progress: Progress, *, interactive: bool, told: int = 0, aside: Aside = no_commands
) -> Outcome:
    """Follow a run to its end; each question it opens is put to the person, if there is one. Ctrl-D leaves it open,
    Ctrl-C is a KeyboardInterrupt."""
    seen, outcome = await _follow(engine, run, progress, told)
    for _ in range(MOST_QUESTIONS):
        if not outcome.questions or not interactive:
            break
        try:
            await answered(engine, run.thread, outcome.questions[0], aside)
        except EOFError:
            break
        seen, outcome = await _follow(engine, run, progress, seen)
    return outcome


async def _follow(engine: Engine, run: Run, progress: Progress, seen: int) -> tuple[int, Outcome]:
    async with _stoppable(engine, run):
        with progress:
            async for event in engine.events(run.id, after=seen):
                seen = event.seq
                progress.show(event)
                if (event.kind, event.stage) == ("enter", "gate"):  # what was understood is kept by then
                    progress.note(await misspelt(engine, run.thread))
        return seen, await engine.wait(run.id)


@contextlib.asynccontextmanager
async def _stoppable(engine: Engine, run: Run) -> AsyncIterator[None]:
    """Ctrl-C once stops the run cleanly, twice at once. Who ends this process by a signal lets the step be ended."""
    loop = asyncio.get_running_loop()
    stops: set[asyncio.Task[None]] = set()

    def stop(how: str, stopping: Coroutine[Any, Any, None]) -> None:
        typer.echo(how, err=True)
        stops.add(loop.create_task(stopping))

    def interrupt() -> None:
        if stops:
            os._exit(STOPPED)
        stop("Stopping (Ctrl-C again to stop at once) ...", engine.cancel(run.id))

    def terminate() -> None:
        if not stops:
            stop("Stopping after this step ...", engine.drain(run.id))

    with heeded(interrupt, terminate):
        yield


def deliver(outcome: Outcome, wishes: Wishes) -> None:
    """Print or write the report, and leave with the code that says how it went."""
    run = outcome.run
    if outcome.questions:
        _tell_open(run.thread, outcome.questions[0])
        raise typer.Exit(OPEN)
    if run.status in (RunStatus.CANCELLED, RunStatus.QUEUED):
        where = "" if run.status is RunStatus.CANCELLED else " after the step it was at"
        tell(f"Stopped{where}. Go on with: assay resume {run.thread}")
        raise typer.Exit(STOPPED)
    if run.active:
        raise ThreadBusyError(
            "the run goes on in another process", help=f"See how it goes with: assay follow {run.thread}"
        )
    if outcome.report is None:
        raise AssayError(
            run.error or "the run ended without a report", help=f"Try again with: assay resume {run.thread}"
        )
    hand_over(outcome.report, wishes.out, as_json=wishes.json)
    raise typer.Exit(EXIT_CODES[outcome.report.status])


def _tell_open(thread: str, question: OpenQuestion) -> None:
    tell(f"assay: a question is open: {one_line(question.question)}")
    for option in question.options:
        tell(f"       - {one_line(option)}")
    for line in how_to_answer(thread, question):
        tell(f"       {line}")
