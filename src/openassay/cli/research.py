"""`openassay research`, `ask` and `resume`: start a run, show how it goes, print its report."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from openassay.cli import STOPPED
from openassay.cli import options as opt
from openassay.cli.dialogs import Aside, ask_question, can_ask, format_answer_help, reject_commands
from openassay.cli.export import check_target, deliver_report
from openassay.cli.options import complete_thread, json_option
from openassay.cli.runtime import find_thread, handle_signals, run_with_engine
from openassay.cli.screen import ProgressDisplay, format_estimate, print_json, print_message, to_one_line
from openassay.errors import OpenAssayError, StorageError, ThreadBusyError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import Mode as ResearchMode
from openassay.models.report import ReportStatus
from openassay.models.thread import ResearchOptions, Run
from openassay.settings import Settings, load
from openassay.text.words import fold, pluralize

if TYPE_CHECKING:
    from openassay.engine.engine import Engine, RunOutcome

EXIT_CODES = {ReportStatus.COMPLETE: 0, ReportStatus.CANCELLED: 0, ReportStatus.PARTIAL: 5, ReportStatus.NO_DATA: 5}
OPEN = 3  # exit code: a question is open
MAX_QUESTIONS = 60  # that one run may ask a person before something is wrong with the run
MIN_LIKENESS = 0.75  # "Aple" and "Apple" are 0.89 alike, "AAPL" and "Apple" 0.67
MAX_NAMED = 20  # stopped threads that `resume --all` names

Start = Callable[["Engine", str], Awaitable[Run]]  # given the id of the thread, or nothing where there is none yet


@dataclass(frozen=True, slots=True)
class Output:
    """Where a report goes, what is shown on the way there, and whether somebody can be asked."""

    out: Path | None = None
    json: bool = False
    quiet: bool = False
    yes: bool = False
    detach: bool = False  # the run is another process's

    @property
    def interactive(self) -> bool:
        return can_ask() and not self.json and not self.yes and not self.detach


def resolve_docs(docs: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(str(Path(path).absolute()) for path in docs or ())


# -- commands -----------------------------------------------------------------------------------------------


def research(
    question: opt.Question,
    docs: opt.Docs = None,
    depth: opt.Depth = None,
    mode: opt.Mode = None,
    style: opt.Style = None,
    words: opt.Words = None,
    source: opt.Source = None,
    web: opt.Web = False,
    model: opt.Model = None,
    budget: opt.Usd = None,
    context: Annotated[str, typer.Option(metavar="TEXT", help="What the planner should know.")] = "",
    domain: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A field it belongs to; may be repeated.")
    ] = None,
    thread: opt.OnThread = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what it will probably cost and take; nothing is spent.")
    ] = False,
    out: opt.Out = None,
    json: Annotated[bool, json_option("the report, or the estimate,")] = False,
    yes: opt.Yes = False,
    ask: opt.Ask = False,
    quiet: opt.Quiet = False,
    detach: opt.Detach = False,
) -> None:
    """Research a question and print a cited report."""
    settings = load(depth=depth, mode=mode, style_guide=style, target_length=words, source=source)
    output = Output(out=out, json=json, quiet=quiet, yes=yes, detach=detach)
    options = ResearchOptions(
        depth=settings.depth,
        # With --yes nobody will answer, so plan mode gives way; without a terminal its question stays open.
        mode=ResearchMode.AUTO if yes else ResearchMode(mode) if mode else None,
        user=settings.user,
        interactive=output.interactive or (ask and not yes),
        docs=resolve_docs(docs),
        source=settings.source,
        web=web,
        style=style,
        words=words,
        model=model,
        usd=budget,
        context=context,
        domains=tuple(domain or ()),
    )
    if estimate:
        made = run_with_engine(lambda engine: engine.estimate(question, options), settings)
        print_json(made) if json else typer.echo(format_estimate(made))
        return

    async def start(engine: Engine, id: str) -> Run:
        try:
            return await (engine.queue if detach else engine.start)(question, options, thread=id or None)
        except ThreadBusyError as error:
            raise ThreadBusyError(f"{error.message}; your question was not asked", help=error.help) from error

    if detach:
        detach_run(settings, start, output, thread or "")
    else:
        execute_run(settings, start, output, thread or "")


def ask(
    question: opt.Question,
    docs: opt.Docs = None,
    source: opt.Source = None,
    web: opt.Web = False,
    model: opt.Model = None,
    budget: opt.Usd = None,
    thread: opt.OnThread = None,
    out: opt.Out = None,
    json: opt.JsonReport = False,
    yes: opt.Yes = False,
    ask: opt.Ask = False,
    quiet: opt.Quiet = False,
    detach: opt.Detach = False,
) -> None:
    """Ask for a short answer: research at depth quick."""
    given = locals()
    research(**given, depth="quick")


def resume(
    thread: Annotated[
        str,
        typer.Argument(
            metavar="THREAD",
            help="Its id, the start of it, or last.",
            show_default=False,
            autocompletion=complete_thread,
        ),
    ] = "",
    journal: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Restore a run from its journal, and resume it.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Resume every run whose process is gone.")] = False,
    queued: Annotated[bool, typer.Option("--queued", help="Only if it is still queued.")] = False,
    json: opt.JsonReport = False,
    out: opt.Out = None,
    quiet: opt.Quiet = False,
    detach: opt.Detach = False,
) -> None:
    """Resume a run that was stopped; nothing is done twice."""
    if bool(thread) + (journal is not None) + every != 1:
        raise UsageError("give one of THREAD, --from DIR and --all, and only one", help="See: openassay threads")
    settings, output = load(), Output(out=out, json=json, quiet=quiet, detach=detach)
    if every:
        run_with_engine(resume_orphans)
    elif journal is not None:
        outcome = run_with_engine(lambda engine: restore_journal(engine, journal, quiet=quiet))
        if outcome.run.status is RunStatus.DONE:
            deliver_outcome(outcome, output)
        execute_run(settings, lambda engine, id: engine.resume(id), output, outcome.run.thread)
    elif detach:
        detach_run(settings, lambda engine, id: engine.suspend(id), output, thread)
    else:
        execute_run(settings, lambda engine, id: engine.resume(id, queued=queued), output, thread)


# -- a run, from its start to its report ----------------------------------------------------------------------


def execute_run(settings: Settings, start: Start, output: Output, thread: str) -> None:
    """Start or resume a run, follow it to its end or to a question that nobody here answers, and deliver the report."""
    deliver_outcome(asyncio.run(_follow_to_end(settings, start, output, thread)), output)


async def _follow_to_end(settings: Settings, start: Start, output: Output, thread: str) -> RunOutcome:
    from openassay.bootstrap import open_engine

    check_target(output.out)
    async with open_engine(settings) as engine:
        thread = await find_thread(engine, thread)
        last, seen = await find_last_event(engine, thread)
        run = await start(engine, thread)
        progress = ProgressDisplay(run, enabled=not output.quiet)
        try:
            # What a run did before it was stopped is not shown again.
            return await follow_and_ask(
                engine, run, progress, interactive=output.interactive, seen=seen if run.id == last else 0
            )
        except KeyboardInterrupt:
            print_message(f"Stopped. Resume it with: openassay resume {run.thread}")
            raise typer.Exit(STOPPED) from None


async def find_last_event(engine: Engine, thread: str) -> tuple[str, int]:
    """Find the last run of a thread, if there is one, and the number of its last event."""
    runs = await engine.threads.runs(thread) if thread else []
    seen = 0
    for run in runs[-1:]:
        async for event in engine.events(run.id):
            seen = event.seq
    return runs[-1].id if runs else "", seen


async def follow_and_ask(
    engine: Engine,
    run: Run,
    progress: ProgressDisplay,
    *,
    interactive: bool,
    seen: int = 0,
    aside: Aside = reject_commands,
) -> RunOutcome:
    """Follow a run to its end and put each question it opens to the person, if there is one. Ctrl-D leaves it open,
    Ctrl-C is a KeyboardInterrupt."""
    seen, outcome = await _follow_run(engine, run, progress, seen)
    for _ in range(MAX_QUESTIONS):
        if not outcome.questions or not interactive:
            break
        try:
            await ask_question(engine, run.thread, outcome.questions[0], aside)
        except EOFError:
            break
        seen, outcome = await _follow_run(engine, run, progress, seen)
    return outcome


async def _follow_run(engine: Engine, run: Run, progress: ProgressDisplay, seen: int) -> tuple[int, RunOutcome]:
    with _stop_on_signals(engine, run):
        with progress:
            async for event in engine.events(run.id, after=seen):
                seen = event.seq
                progress.show(event)
                if (event.kind, event.stage) == ("enter", "gate"):  # the question has been understood by then
                    values = await engine.state(run.thread)
                    subjects = (values.get("understanding") or {}).get("subjects", ())
                    pairs = match_subjects(str(values.get("original_query", "")), subjects)
                    progress.note(f"“{written}” was taken for {meant}." for written, meant in pairs)
        return seen, await engine.wait(run.id)


def match_subjects(question: str, subjects: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Find names that were read otherwise than written, so that nobody reads about another company unawares."""

    def measure_likeness(words: str, subject: str) -> float:
        return SequenceMatcher(None, fold(words), fold(subject)).ratio()

    words = re.findall(r"[^\W_]+(?:[-'’.&][^\W_]+)*", question)
    for subject in subjects:
        if fold(subject) in fold(question):
            continue
        size = len(subject.split())
        runs = [" ".join(words[at : at + size]).removesuffix("'s") for at in range(len(words) - size + 1)]
        nearest = max(runs, key=partial(measure_likeness, subject=subject), default="")
        if measure_likeness(nearest, subject) >= MIN_LIKENESS:
            yield nearest, subject


@contextlib.contextmanager
def _stop_on_signals(engine: Engine, run: Run | None = None) -> Iterator[asyncio.Event]:
    """Stop a run on Ctrl-C, on other signals after its step, as all runs do where none is named; set an event.

    A second Ctrl-C ends the process at once."""
    stopping, stops = asyncio.Event(), set[asyncio.Task[None]]()

    def stop(message: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if not stopping.is_set():
            print_message(message)
            stopping.set()
            stops.add(asyncio.get_running_loop().create_task(work()))

    def interrupt() -> None:
        if stopping.is_set():
            os._exit(STOPPED)
        if run is None:
            terminate()
        else:
            stop("Stopping (Ctrl-C again to stop at once) ...", partial(engine.cancel, run.id))

    def terminate() -> None:
        again = "" if run else " (Ctrl-C again to stop at once)"
        stop(f"Stopping after this step{again} ...", partial(engine.drain, run.id if run else None))

    with handle_signals(interrupt, terminate):
        yield stopping


def deliver_outcome(outcome: RunOutcome, output: Output) -> NoReturn:
    """Print or write the report, and exit with the code that says how it went."""
    run = outcome.run
    if outcome.questions:
        question = outcome.questions[0]
        print_message(f"openassay: a question is open: {to_one_line(question.question)}")
        for line in (
            *(f"- {to_one_line(option)}" for option in question.options),
            *format_answer_help(run.thread, question),
        ):
            print_message(f"       {line}")
        raise typer.Exit(OPEN)
    if run.status in (RunStatus.CANCELLED, RunStatus.QUEUED):
        when = "" if run.status is RunStatus.CANCELLED else " after the step it was at"
        print_message(f"Stopped{when}. Resume it with: openassay resume {run.thread}")
        raise typer.Exit(STOPPED)
    if run.active:
        raise ThreadBusyError(
            "the run continues in another process", help=f"Follow it with: openassay threads follow {run.thread}"
        )
    if outcome.report is None:
        raise OpenAssayError(
            run.error or "the run ended without a report", help=f"Try again with: openassay resume {run.thread}"
        )
    deliver_report(outcome.report, output.out, as_json=output.json)
    raise typer.Exit(EXIT_CODES[outcome.report.status])


# -- in another process -------------------------------------------------------------------------------------


def detach_run(settings: Settings, start: Start, output: Output, thread: str) -> None:
    """Queue a run, refusing here what can be refused, and start a process that works on it."""
    if settings.persistence.backend == "memory":
        raise UsageError(
            "another process cannot work on a run that is kept in the memory of this one",
            help="Leave out --detach, or set persistence.backend.",
        )
    check_target(output.out)

    async def queue(engine: Engine) -> Run:
        return await start(engine, await find_thread(engine, thread))

    launch_process(settings, run_with_engine(queue, settings), output)


def launch_process(settings: Settings, run: Run, output: Output) -> None:
    """Start the process, and say how to follow, stop and read it.

    Its messages go to a log, but not where what is stored is encrypted: they would be in the clear."""
    from openassay.engine.archive import log_file

    log = None if settings.persistence.encrypt else log_file(settings, run.thread)
    command = [sys.executable, "-m", "openassay", "resume", run.thread, "--queued"]
    command += ["--out", str(output.out.absolute())] if output.out else []
    command += ["--json"] if output.json else []
    try:
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        with open(log or os.devnull, "ab") as file:
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    except OSError as error:
        raise StorageError(
            f"no process could be started: {error.strerror}",
            help=f"The question is kept; resume it with: openassay resume {run.thread}",
        ) from error
    typer.echo(run.thread)
    print_message("It works in the background.")
    for what, how in (
        ("follow it", f"openassay threads follow {run.thread}"),
        ("stop it", f"openassay threads stop {run.thread}"),
        ("read it when it is done", f"openassay threads show {run.thread}"),
        ("its log", str(log or "none, since storage is encrypted")),
    ):
        print_message(f"  {what + ':':24} {how}")


# -- resuming -----------------------------------------------------------------------------------------------


async def restore_journal(engine: Engine, folder: Path, *, quiet: bool) -> RunOutcome:
    """Restore a run that is only there as a journal, and show what is to be said about it."""
    run = await engine.restore(folder)
    remarks = list[str]()  # those of the restoring come last
    async for event in engine.events(run.id):
        remarks = [*remarks, str(event.data["text"])] if event.kind == "notice" and "text" in event.data else []
    print_message(f"Restored as thread {run.thread}.")
    ProgressDisplay(run, enabled=not quiet).note(remarks)
    return await engine.outcome(run.id)


async def resume_orphans(engine: Engine) -> None:
    """Resume the runs whose processes are gone, a few at a time. Exits with 1 where one was not resumed, or failed."""
    with _stop_on_signals(engine) as stopping:
        working: set[asyncio.Task[bool]] = set()
        ends: list[bool] = []
        while True:
            fresh = [] if stopping.is_set() else await engine.resume_abandoned()
            working |= {asyncio.create_task(report_end(engine, run)) for run in fresh}
            if not working:
                break
            ended, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            ends += [task.result() for task in ended]
    if stopping.is_set():
        raise typer.Exit(STOPPED)
    if stopped := await engine.overview(MAX_NAMED, RunStatus.CANCELLED):  # the person decides when those are resumed
        listed = ", ".join(thread.id for thread in stopped)
        print_message(f"Stopped by a person, and not resumed: {listed}. Resume with: openassay resume {stopped[0].id}")
    failed = not all(ends) or engine.unrecoverable
    if ends or not failed:
        print_message(f"{pluralize(len(ends), 'run')} resumed." if ends else "There was nothing to resume.")
    if failed:
        raise typer.Exit(1)


async def report_end(engine: Engine, run: Run, begun: str = "resumed") -> bool:
    """Wait for a run and print what became of it. One that waits for an answer, or was stopped, went well."""
    if begun:
        typer.echo(to_one_line(f"{run.thread}  {begun}: {run.question}"))
    try:
        outcome = await engine.wait(run.id)
    except asyncio.CancelledError:
        typer.echo(f"{run.thread}  stopped; resume it with: openassay resume {run.thread}")
        raise
    except OpenAssayError as error:
        typer.echo(to_one_line(f"{run.thread}  failed: {error.message}"))
        return False
    if outcome.questions:
        end = f"waits: {outcome.questions[0].question}"
    elif outcome.report is None:
        end = f"{outcome.run.status}: {outcome.run.error or 'no report'}"
    else:
        end = f"done: {outcome.report.status} report, {pluralize(len(outcome.report.sources), 'source')}"
    typer.echo(to_one_line(f"{run.thread}  {end}"))
    return outcome.run.status is not RunStatus.FAILED
