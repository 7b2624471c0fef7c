"""`assay resume --all`: what processes that are gone have left undone."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial

import typer

from assay.bootstrap import open_engine
from assay.cli import STOPPED
from assay.cli.clock import standing
from assay.cli.ending import heeded
from assay.cli.lines import one_line
from assay.cli.screen import tell
from assay.engine import Engine
from assay.errors import AssayError
from assay.model.event import RunStatus
from assay.model.thread import Run
from assay.settings import load
from assay.text.words import counted

MOST_TOLD = 20  # threads that are left and named


def resume_all() -> None:
    """The code says whether everything that was left could be gone on with, and nothing of it failed."""
    done, failed = asyncio.run(_taken_up())
    if done or not failed:
        tell(f"{counted(done, 'run')} gone on with." if done else "Nothing was left undone.")
    if failed:
        raise typer.Exit(1)


async def _taken_up() -> tuple[int, int]:
    """A few at a time: whenever one stands still, the next is taken up."""
    async with open_engine(load()) as engine:
        with _stoppable(engine) as stopping:
            working: set[asyncio.Task[bool]] = set()
            ends: list[bool] = []
            while True:
                fresh = [] if stopping.is_set() else await engine.adopt()
                working |= {asyncio.create_task(_follow(engine, run)) for run in fresh}
                if not working:
                    break
                ended, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                ends += [task.result() for task in ended]
        if stopping.is_set():
            raise typer.Exit(STOPPED)
        await _tell_stopped(engine)
        return len(ends), ends.count(False) + len(engine.unable())


async def _tell_stopped(engine: Engine) -> None:
    """Whoever has stopped a run is to say when it goes on."""
    if stopped := await engine.overview(MOST_TOLD, RunStatus.CANCELLED):
        listed = ", ".join(thread.id for thread in stopped)
        tell(f"Stopped by a person, and left: {listed}. Go on with: assay resume {stopped[0].id}")


@contextlib.contextmanager
def _stoppable(engine: Engine) -> Iterator[asyncio.Event]:
    """Ctrl-C, or whoever ends this process, lets every run end the step it is at; Ctrl-C again does not."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def stop(number: signal.Signals) -> None:
        if stopping.is_set():
            if number == signal.SIGINT:
                os._exit(STOPPED)
            return
        tell("Stopping after this step (Ctrl-C again to stop at once) ...")
        stopping.set()
        tasks.add(loop.create_task(engine.drain()))

    with heeded(partial(stop, signal.SIGINT), partial(stop, signal.SIGTERM)):
        yield stopping


async def _follow(engine: Engine, run: Run) -> bool:
    """Whether it went well; a run that waits for an answer, or was stopped, did."""
    typer.echo(one_line(f"{run.thread}  goes on: {run.question}"))
    try:
        outcome = await engine.wait(run.id)
    except AssayError as error:
        typer.echo(one_line(f"{run.thread}  failed: {error.message}"))
        return False
    typer.echo(one_line(f"{run.thread}  {standing(outcome)}"))
    return outcome.run.status is not RunStatus.FAILED
