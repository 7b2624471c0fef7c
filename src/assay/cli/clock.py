"""`assay review timers`: the clock that answers for people who do not."""

import asyncio
import contextlib
import signal

import typer

from assay.bootstrap import open_engine
from assay.cli.lines import one_line
from assay.cli.review import THEN, left
from assay.cli.screen import tell
from assay.engine import Engine, Outcome
from assay.errors import AssayError
from assay.model.thread import Run
from assay.settings import load
from assay.text.words import counted

AGAIN = 10.0  # seconds after which a database is asked again that could not say when something is due


def timers(once: bool) -> None:
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_keep_time(once))


async def _keep_time(once: bool) -> None:
    """Runs that go on are worked on here, so leaving stops them; they can be resumed."""
    loop, mine = asyncio.get_running_loop(), asyncio.current_task()
    leaving: set[asyncio.Task[None]] = set()

    async def leave() -> None:
        await engine.drain()
        if mine is not None:
            mine.cancel()

    async with open_engine(load()) as engine, asyncio.TaskGroup() as runs:
        loop.add_signal_handler(signal.SIGTERM, lambda: leaving.add(loop.create_task(leave())))
        clock = Clock(engine, runs)
        settled = await clock.look()
        if not once:
            typer.echo("Keeping time. Ctrl-C ends it.", err=True)
        while not once:
            await clock.wait()
            await clock.look()
    if not settled:
        raise typer.Exit(1)


class Clock:
    """Settles what is overdue, and tells what becomes of it."""

    def __init__(self, engine: Engine, runs: asyncio.TaskGroup) -> None:
        self._engine = engine
        self._runs = runs

    async def wait(self) -> None:
        try:
            await asyncio.sleep(await self._engine.until_due())
        except AssayError:  # which the next look tells
            await asyncio.sleep(AGAIN)

    async def look(self) -> bool:
        """Whether all could be settled; if not, it is tried again at the next look."""
        try:
            return await self._settle()
        except AssayError as error:  # a database that is away now may be back by then
            tell(f"warning: {error.message}")
            return False

    async def _settle(self) -> bool:
        """The engine tells why one could not be, once."""
        asked = {review.run: review for review in reversed(await self._engine.reviews())}
        for run in await self._engine.settle_overdue():
            if review := asked.get(run.id):
                typer.echo(one_line(f"{run.thread}  nobody answered “{review.question}”: {THEN[review.on_timeout]}"))
            self._runs.create_task(self._follow(run))
        return not any(left(review.due) == "overdue" for review in await self._engine.reviews())

    async def _follow(self, run: Run) -> None:
        try:
            outcome = await self._engine.wait(run.id)
        except asyncio.CancelledError:
            typer.echo(f"{run.thread}  stopped; go on with: assay resume {run.thread}")
            raise
        except AssayError as error:
            typer.echo(one_line(f"{run.thread}  failed: {error.message}"))
            return
        typer.echo(one_line(f"{run.thread}  {standing(outcome)}"))


def standing(outcome: Outcome) -> str:
    if outcome.questions:
        return f"waits: {outcome.questions[0].question}"
    if outcome.report is None:
        return f"{outcome.run.status}: {outcome.run.error or 'no report'}"
    return f"done: {outcome.report.status} report, {counted(len(outcome.report.sources), 'source')}"
