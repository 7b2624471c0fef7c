"""`openassay resume --all`: what processes that are gone have left undone."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial

import typer

from openassay.bootstrap import open_engine
from openassay.cli import STOPPED
from openassay.cli.review import describe_outcome
from openassay.cli.runtime import handle_signals
from openassay.cli.screen import print_message, to_one_line
from openassay.engine.engine import Engine
from openassay.errors import OpenAssayError
from openassay.models.event import RunStatus
from openassay.models.thread import Run
from openassay.settings import load
from openassay.text.words import pluralize

MOST_TOLD = 20  # threads that are left and named


def resume_all() -> None:
    """The code says whether everything that was left could be gone on with, and nothing of it failed."""
    done, failed = asyncio.run(_resume_orphans())
    if done or not failed:
        print_message(f"{pluralize(done, 'run')} gone on with." if done else "Nothing was left undone.")
    if failed:
        raise typer.Exit(1)


async def _resume_orphans() -> tuple[int, int]:
    """A few at a time: whenever one stands still, the next is taken up."""
    async with open_engine(load()) as engine:
        with _drain_on_signals(engine) as stopping:
            working: set[asyncio.Task[bool]] = set()
            ends: list[bool] = []
            while True:
                fresh = [] if stopping.is_set() else await engine.resume_abandoned()
                working |= {asyncio.create_task(_follow_run(engine, run)) for run in fresh}
                if not working:
                    break
                ended, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                ends += [task.result() for task in ended]
        if stopping.is_set():
            raise typer.Exit(STOPPED)
        await _print_user_stops(engine)
        return len(ends), ends.count(False) + len(engine.list_unrecoverable())


async def _print_user_stops(engine: Engine) -> None:
    """Whoever has stopped a run is to say when it goes on."""
    if stopped := await engine.overview(MOST_TOLD, RunStatus.CANCELLED):
        listed = ", ".join(thread.id for thread in stopped)
        print_message(f"Stopped by a person, and left: {listed}. Go on with: openassay resume {stopped[0].id}")


@contextlib.contextmanager
def _drain_on_signals(engine: Engine) -> Iterator[asyncio.Event]:
    """Ctrl-C, or whoever ends this process, lets every run end the step it is at; Ctrl-C again does not."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def stop(number: signal.Signals) -> None:
        if stopping.is_set():
            if number == signal.SIGINT:
                os._exit(STOPPED)
            return
        print_message("Stopping after this step (Ctrl-C again to stop at once) ...")
        stopping.set()
        tasks.add(loop.create_task(engine.drain()))

    with handle_signals(partial(stop, signal.SIGINT), partial(stop, signal.SIGTERM)):
        yield stopping


async def _follow_run(engine: Engine, run: Run) -> bool:
    """Whether it went well; a run that waits for an answer, or was stopped, did."""
    typer.echo(to_one_line(f"{run.thread}  goes on: {run.question}"))
    try:
        outcome = await engine.wait(run.id)
    except OpenAssayError as error:
        typer.echo(to_one_line(f"{run.thread}  failed: {error.message}"))
        return False
    typer.echo(to_one_line(f"{run.thread}  {describe_outcome(outcome)}"))
    return outcome.run.status is not RunStatus.FAILED
