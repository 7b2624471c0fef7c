"""Commands on the run of a thread, in whatever process it works: follow, stop, mode and veto."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from openassay.cli.dialogs import can_ask
from openassay.cli.export import check_target
from openassay.cli.options import JsonReport, ModeName, Out, Quiet, ThreadId, json_option
from openassay.cli.progress import ProgressDisplay
from openassay.cli.research import Output, deliver_outcome, execute_run, find_last_event, follow_and_ask
from openassay.cli.runtime import run_on_thread
from openassay.cli.screen import print_json, print_message, to_one_line, wrap_line
from openassay.errors import NotFoundError, ThreadBusyError
from openassay.models.event import AT_WORK, RunStatus
from openassay.models.plan import Mode
from openassay.models.thread import Consequences
from openassay.settings import load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.engine import Engine, RunOutcome

STOP_SECONDS = 15.0  # in which a run that looks once a second has stopped
POLL_SECONDS = 0.3


def follow(
    thread: ThreadId,
    new: Annotated[bool, typer.Option("--new", help="Show only what happens from now on.")] = False,
    json: JsonReport = False,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Follow a run in whatever process, then print its report. Ctrl-C leaves the run alone."""
    check_target(out)

    async def follow_events(engine: Engine, thread: str) -> RunOutcome:
        runs = await engine.threads.runs(thread)
        if not runs:
            raise NotFoundError(
                f"nothing was asked on thread {thread} yet", help=f"Ask: openassay ask ... --thread {thread}"
            )
        with ProgressDisplay(runs[-1], enabled=not quiet) as progress:
            after = (await find_last_event(engine, thread))[1] if new else 0
            async for event in engine.follow(runs[-1].id, after=after):
                progress.show(event)
        return await engine.outcome(runs[-1].id)

    outcome = run_on_thread(thread, follow_events)
    if outcome.run.status in AT_WORK:
        running = outcome.run.status is RunStatus.RUNNING
        raise ThreadBusyError(
            "no process works on this thread any more" if running else "this thread waits to be resumed",
            help=f"Resume it with: openassay resume {outcome.run.thread}",
        )
    deliver_outcome(outcome, Output(out=out, json=json))


def stop(
    thread: ThreadId,
    drain: Annotated[bool, typer.Option("--drain", help="Let it end the step it is at.")] = False,
) -> None:
    """Stop a run, whatever process works on it. It can be resumed."""

    async def stop_run(engine: Engine, thread: str) -> None:
        resume = f"Resume it with: openassay resume {thread}"
        run = await engine.stop(thread, drain=drain)
        if run.status is RunStatus.CANCELLED:
            return print_message(f"No process worked on it, and none will resume it by itself. {resume}")
        clock = asyncio.get_running_loop().time
        ends = clock() + (4 * STOP_SECONDS if drain else STOP_SECONDS)
        while await engine.threads.get_stop_request(run.id):  # which is gone once it has stopped
            if clock() > ends:
                print_message("It was asked to stop" + (" after the step it is at." if drain else " and has not yet."))
                print_message(f"Follow it with: openassay threads follow {thread}")
                raise typer.Exit(1)
            await asyncio.sleep(POLL_SECONDS)
        run = await engine.threads.run(run.id)
        if run.status in (RunStatus.CANCELLED, RunStatus.QUEUED):
            return print_message(f"Stopped{' after the step it was at' if drain else ''}. {resume}")
        return print_message(f"It had ended before: {run.status}.")

    run_on_thread(thread, stop_run)


def mode(thread: ThreadId, mode: Annotated[ModeName, typer.Argument(help="auto goes ahead, plan asks first.")]) -> None:
    """Change a thread's mode at once; turning to auto drops planning questions that are open."""

    async def set_mode(engine: Engine, thread: str) -> RunOutcome | None:
        planning = [review for review in await engine.interrupts.reviews(thread) if review.kind == "planning"]
        affected = await engine.interrupts.set_mode(thread, Mode(mode))
        print_message(f"Thread {thread} is in {mode} mode, {'at once' if affected else 'from the next question on'}.")
        if not (affected and planning):
            return None
        # A run whose planning questions were dropped goes on in this process, so it is followed to its end.
        run = await engine.threads.run(planning[0].run)
        return await follow_and_ask(engine, run, ProgressDisplay(run), interactive=can_ask())

    if (outcome := run_on_thread(thread, set_mode)) is not None:
        deliver_outcome(outcome, Output())


def veto(
    thread: ThreadId,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="S3, an address, or a host.")],
    what_if: Annotated[bool, typer.Option("--what-if", help="Show what would change, and change nothing.")] = False,
    json: Annotated[bool, json_option("the report, or what would change,")] = False,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Take sources out of a report, and derive again only what rested on them."""
    if not what_if:
        output = Output(json=json, out=out, quiet=quiet)
        run = execute_run(load(), lambda engine, id: engine.vetoes.begin(id, sources), output, thread)
        return deliver_outcome(asyncio.run(run), output)
    found = run_on_thread(thread, lambda engine, id: engine.vetoes.consequences(id, sources))
    if json:
        return print_json(found)
    for line in format_consequences(found):
        typer.echo(wrap_line(line, 2))
    return None


def format_consequences(found: Consequences) -> Iterator[str]:
    lost, weaker = (f": {', '.join(claims)}" if claims else "" for claims in (found.lost, found.weaker))
    yield f"Without {'; '.join(to_one_line(source.title) for source in found.sources)}:"
    yield f"- {pluralize(len(found.lost), 'statement')} would go{lost}"
    yield f"- {pluralize(len(found.weaker), 'statement')} would rest on fewer sources{weaker}"
    yield f"- {pluralize(found.untouched, 'statement')} would stay as {'it is' if found.untouched == 1 else 'they are'}"
    for question in found.unanswered:
        yield f"- left without an answer: {to_one_line(question)}"
