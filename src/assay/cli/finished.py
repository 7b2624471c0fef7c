"""The report of a thread. It is there whole or not at all: of what is still being made, why and what to do is told."""

from assay.cli.screen import tell
from assay.engine import Engine
from assay.errors import NotFoundError, ThreadBusyError
from assay.export.report import Report
from assay.model.event import RunStatus
from assay.model.thread import Run


async def finished(engine: Engine, thread: str, run: str | None) -> Report:
    """The latest, or that of one run. Where another run is under way, that is said."""
    await engine.threads.get(thread)
    going = [one for one in await engine.threads.runs(thread) if one.active]
    try:
        report = await engine.report(thread, run)
    except NotFoundError as error:
        asked = [one for one in going if run in (None, one.id)]
        if not asked:
            raise
        what, next_step = await _standing(engine, asked[-1])
        raise ThreadBusyError(f"thread {thread} has no report yet: {what}", help=next_step, retryable=True) from error
    if going and run is None:
        tell("A later run on this thread has not ended: this is the report before it.")
    return report


async def _standing(engine: Engine, run: Run) -> tuple[str, str]:
    if run.status is RunStatus.WAITING:
        return "a question of it is open", f"Answer it: assay review show {run.thread}"
    if await engine.is_left(run):
        return "the process that worked on it is gone", f"Go on with it: assay resume {run.thread}"
    return "it is still being researched", f"See how it goes: assay follow {run.thread}"
