"""`assay follow`: how a run goes that another process works on."""

import asyncio

from assay.bootstrap import open_engine
from assay.cli.delivery import check_target
from assay.cli.progress import Progress
from assay.cli.research import Wishes, deliver, told_before
from assay.engine import Outcome
from assay.errors import NotFoundError, ThreadBusyError
from assay.model.event import AT_WORK, RunStatus
from assay.settings import load


def follow(thread: str, wishes: Wishes, *, new: bool) -> None:
    if wishes.out is not None:
        check_target(wishes.out)
    outcome = asyncio.run(_followed(thread, wishes, new))
    if outcome.run.status in AT_WORK:
        raise ThreadBusyError(
            "no process works on this thread any more" if outcome.run.status is RunStatus.RUNNING
            else "this thread waits to be gone on with", help=f"Go on with: assay resume {thread}",
        )  # fmt: skip
    deliver(outcome, wishes)


async def _followed(thread: str, wishes: Wishes, new: bool) -> Outcome:
    async with open_engine(load()) as engine:
        runs = await engine.threads.runs(thread)
        if not runs:
            raise NotFoundError(
                f"nothing was asked on thread {thread} yet", help=f"Ask: assay ask ... --thread {thread}"
            )
        with Progress(runs[-1], enabled=not wishes.quiet) as progress:
            async for event in engine.follow(runs[-1].id, after=await told_before(engine, thread) if new else 0):
                progress.show(event)
        return await engine.outcome(runs[-1].id)
