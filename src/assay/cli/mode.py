"""`assay mode`: a thread goes ahead, or asks first, from now on."""

import asyncio

from assay.bootstrap import open_engine
from assay.cli.progress import Progress
from assay.cli.research import Wishes, converse, deliver
from assay.cli.screen import tell
from assay.engine import Outcome
from assay.model.question import Mode
from assay.settings import load


def set_mode(thread: str, mode: str) -> None:
    outcome = asyncio.run(_set(thread, Mode(mode)))
    if outcome is not None:
        deliver(outcome, Wishes())


async def _set(thread: str, mode: Mode) -> Outcome | None:
    """A run whose planning questions were dropped goes on in this process, so it is followed to its end."""
    async with open_engine(load()) as engine:
        asked = [review for review in await engine.reviews(thread) if review.kind == "planning"]
        affected = await engine.set_mode(thread, mode)
        when = "at once" if affected else "from the next question on"
        tell(f"Thread {thread} is in {mode.value} mode, {when}.")
        if not (affected and asked):
            return None
        run = await engine.threads.run(asked[0].run)
        return await converse(engine, run, Progress(run), interactive=Wishes().interactive)
