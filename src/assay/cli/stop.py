"""`assay stop`: a run is asked to stop, whatever process works on it."""

import asyncio

import typer

from assay.bootstrap import open_engine
from assay.cli.screen import tell
from assay.engine import Engine
from assay.model.event import RunStatus
from assay.settings import load

PATIENCE = 15.0  # seconds in which a run that looks once a second has stopped
LOOK = 0.3


def stop(thread: str, *, drain: bool) -> None:
    asyncio.run(_stop(thread, drain))


async def _stop(thread: str, drain: bool) -> None:
    async with open_engine(load()) as engine:
        run = await engine.stop(thread, drain=drain)
        if run.status is RunStatus.CANCELLED:
            tell(f"No process was at work on it, and none will take it up by itself. Go on with: assay resume {thread}")
            return
        heeded = await _heeded(engine, run.id, PATIENCE if not drain else 4 * PATIENCE)
        run = await engine.threads.run(run.id)
    if not heeded:
        tell("It was asked to stop" + (" after the step it is at." if drain else " and has not yet."))
        tell(f"See how it goes with: assay follow {thread}")
        raise typer.Exit(1)
    if run.status not in (RunStatus.CANCELLED, RunStatus.QUEUED):
        tell(f"It had come to its end before: {run.status}.")
    else:
        tell(f"Stopped{' after the step it was at' if drain else ''}. Go on with: assay resume {thread}")


async def _heeded(engine: Engine, run: str, patience: float) -> bool:
    """A run that stands still is asked no more."""
    clock = asyncio.get_running_loop().time
    ends = clock() + patience
    while await engine.threads.stopping(run):
        if clock() > ends:
            return False
        await asyncio.sleep(LOOK)
    return True
