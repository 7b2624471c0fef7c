"""`openassay research`, `ask` and `resume`: start a run, show how it goes, print what came of it."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import IO, Any

import typer

from openassay.bootstrap import open_engine
from openassay.cli import STOPPED
from openassay.cli.progress import ProgressDisplay
from openassay.cli.prompts import Aside, ask_question, can_ask, format_answer_help, reject_commands
from openassay.cli.runtime import handle_signals
from openassay.cli.screen import format_estimate, print_message, show_report, to_one_line, wrap_line
from openassay.engine.archive import log_file
from openassay.engine.engine import Engine, RunOutcome
from openassay.engine.questions import OpenQuestion
from openassay.errors import NotFoundError, OpenAssayError, PathError, StorageError, ThreadBusyError, UsageError
from openassay.export import FORMATS, ExportFormat, get_file_format, write_atomically
from openassay.export.report import Report
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.plan import Depth, Mode, Style
from openassay.models.report import ReportStatus
from openassay.models.spend import CostEstimate
from openassay.models.thread import Consequences, ResearchOptions, Run
from openassay.settings import Settings, load
from openassay.text.words import fold, pluralize

# A finished report on its way out: onto the screen, into a pipe, or into a file.


def check_target(path: Path) -> None:
    """Before anything is researched: can the report be written there at all, and in that format?"""
    check_place(path)
    get_file_format(path).need()


def check_place(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir():
        raise PathError(f"{path} is a folder", help="Name a file in it for --out.")
    if not folder.is_dir():
        raise PathError(f"the folder of {path} does not exist", help="Create it or choose another --out.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PathError(f"{path} may not be written", help="Change its permissions or choose another --out.")


def deliver_report(report: Report, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        _write_file(report, out, as_json)
    elif as_json:
        # JSON is UTF-8 whatever the terminal speaks, and a quote in it must stay as it was read.
        typer.echo(report.model_dump_json(indent=2).encode())
    elif sys.stdout.isatty():
        show_report(report)
    else:
        typer.echo(report.markdown, nl=False)


def _write_file(report: Report, path: Path, as_json: bool) -> None:
    write_report(report, FORMATS["json"] if as_json else get_file_format(path), path)


def write_report(report: Report, format: ExportFormat, path: Path) -> None:
    """What the file cannot show is told."""
    content = format.write(report)
    try:
        write_atomically(path, content)
    except OSError as error:
        shown = f"The report is kept: openassay threads show {report.provenance.thread}"
        raise PathError(f"cannot write {path}: {error.strerror}", help=shown) from error
    for caveat in format.caveats(report):
        print_message(caveat)
    typer.echo(f"Report written to {path}", err=True)


# `--detach`: a run in a process of its own, which goes on when the terminal is closed.


def require_storage(settings: Settings) -> None:
    if settings.persistence.backend == "memory":
        raise UsageError(
            "a run of another process cannot be kept in the memory of this one",
            help="Leave out --detach, or set persistence.backend.",
        )


def launch_process(settings: Settings, run: Run, wishes: "CommandOptions") -> None:
    """Start the process, and say how to follow, stop and read what it does. Its own words go to a log, but not where
    what is stored is encrypted: they tell of it in the clear."""
    log = None if settings.persistence.encrypt else log_file(settings, run.thread)
    command = [sys.executable, "-m", "openassay", "resume", run.thread, "--queued"]
    command += ["--out", str(wishes.out.absolute())] if wishes.out else []
    command += ["--json"] if wishes.json else []
    try:
        with _open_log(log) as file:
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    except OSError as error:
        raise StorageError(
            f"a process of its own could not be started: {error.strerror}",
            help=f"The question is kept; go on with: openassay resume {run.thread}",
        ) from error
    _print_instructions(run, log)


def _open_log(log: Path | None) -> IO[bytes]:
    if log is None:
        return open(os.devnull, "wb")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


def _print_instructions(run: Run, log: Path | None) -> None:
    typer.echo(run.thread)
    print_message("It works in a process of its own.")
    for what, command in (
        ("follow it", f"openassay follow {run.thread}"), ("stop it", f"openassay stop {run.thread}"),
        ("read it when it is done", f"openassay threads show {run.thread}"),
        ("what it says", str(log or "is not written down, since storage is encrypted")),
    ):  # fmt: skip
        print_message(f"  {what + ':':24} {command}")


# The report of a thread. It is there whole or not at all: of what is still being made, why and what to do is told.


async def load_report(engine: Engine, thread: str, run: str | None) -> Report:
    """The latest, or that of one run. Where another run is under way, that is said."""
    await engine.threads.get(thread)
    going = [one for one in await engine.threads.runs(thread) if one.active]
    try:
        report = await engine.report(thread, run)
    except NotFoundError as error:
        asked = [one for one in going if run in (None, one.id)]
        if not asked:
            raise
        what, next_step = await _explain_missing_report(engine, asked[-1])
        raise ThreadBusyError(f"thread {thread} has no report yet: {what}", help=next_step, retryable=True) from error
    if going and run is None:
        print_message("A later run on this thread has not ended: this is the report before it.")
    return report


async def _explain_missing_report(engine: Engine, run: Run) -> tuple[str, str]:
    if run.status is RunStatus.WAITING:
        return "a question of it is open", f"Answer it: openassay review show {run.thread}"
    if await engine.is_orphaned(run):
        return "the process that worked on it is gone", f"Go on with it: openassay resume {run.thread}"
    return "it is still being researched", f"See how it goes: openassay follow {run.thread}"


# Names that were read otherwise than they were written, so that nobody reads about another company unawares.

ALIKE = 0.75  # "Aple" and "Apple" are 0.89 alike, "AAPL" and "Apple" 0.67


async def find_misspellings(engine: Engine, thread: str) -> list[str]:
    """What to note about the question that is being worked on."""
    values = await engine.state(thread)
    understood = values.get("understanding") or {}
    pairs = match_subjects(str(values.get("original_query", "")), understood.get("subjects", ()))
    return [f"“{written}” was taken for {meant}." for written, meant in pairs]


def match_subjects(message: str, subjects: list[str] | tuple[str, ...]) -> Iterator[tuple[str, str]]:
    words = re.findall(r"[^\W_]+(?:[-'’.&][^\W_]+)*", message)
    for subject in subjects:
        if fold(subject) in fold(message):
            continue
        size = len(subject.split())
        runs = [" ".join(words[at : at + size]).removesuffix("'s") for at in range(len(words) - size + 1)]
        nearest = max(runs, key=lambda run: _measure_similarity(run, subject), default="")
        if _measure_similarity(nearest, subject) >= ALIKE:
            yield nearest, subject


def _measure_similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, fold(one), fold(other)).ratio()


EXIT_CODES = {ReportStatus.COMPLETE: 0, ReportStatus.CANCELLED: 0, ReportStatus.PARTIAL: 5, ReportStatus.NO_DATA: 5}
OPEN = 3
Begin = Callable[[Engine], Awaitable[tuple[Run, int]]]  # the run, and how many of its events were told before
MOST_QUESTIONS = 60  # what one run may ask a person before something is wrong with the run


@dataclass(frozen=True, slots=True)
class CommandOptions:
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


def run_research(question: str, wishes: CommandOptions) -> None:
    settings = load(
        depth=wishes.depth, mode=wishes.mode, style_guide=wishes.style, target_length=wishes.words, source=wishes.source
    )

    async def begin(engine: Engine) -> tuple[Run, int]:
        with _explain_busy_thread():
            return await engine.start(question, build_options(settings, wishes), thread=wishes.thread), 0

    async def queue(engine: Engine) -> Run:
        with _explain_busy_thread():
            return await engine.queue(question, build_options(settings, wishes), thread=wishes.thread)

    if wishes.detach:
        return _detach_run(settings, wishes, queue)
    return _execute_run(settings, wishes, begin)


@contextlib.contextmanager
def _explain_busy_thread() -> Iterator[None]:
    """Who comes second is told what became of the question."""
    try:
        yield
    except ThreadBusyError as error:
        raise ThreadBusyError(f"{error.message}; your question was not asked", help=error.help) from error


def resume_thread(thread: str, wishes: CommandOptions, *, queued: bool = False) -> None:
    """`queued`: not if somebody has stopped it, or taken it up, before this process came to it."""

    async def begin(engine: Engine) -> tuple[Run, int]:
        told = await find_last_seq(engine, thread)
        return await engine.resume(thread, queued=queued), told

    async def put_aside(engine: Engine) -> Run:
        return await engine.suspend(thread)

    if wishes.detach:
        return _detach_run(load(), wishes, put_aside)
    return _execute_run(load(), wishes, begin)


def restore_journal(folder: Path, wishes: CommandOptions) -> None:
    """A run that is only there as a journal; one that was finished is printed."""

    async def begin(engine: Engine) -> tuple[Run, int]:
        run = await engine.restore(folder)
        told, remarks = 0, list[str]()  # of the restoring, which come last
        async for event in engine.events(run.id):
            told, remarks = event.seq, [*remarks, str(event.data["text"])] if _is_remark(event) else []
        print_message(f"Restored as thread {run.thread}.")
        ProgressDisplay(run, enabled=not wishes.quiet).note(remarks)
        return run if run.status is RunStatus.DONE else await engine.resume(run.thread), told

    _execute_run(load(), wishes, begin)


def run_and_deliver(wishes: CommandOptions, begin: Begin) -> None:
    """A run that asks nothing new, followed to its end."""
    _execute_run(load(), wishes, begin)


def _is_remark(event: Event) -> bool:
    return event.kind == "notice" and "text" in event.data


async def find_last_seq(engine: Engine, thread: str) -> int:
    """What was done before a stop is not told again."""
    told = 0
    for run in (await engine.threads.runs(thread))[-1:]:
        async for event in engine.events(run.id):
            told = event.seq
    return told


def build_options(settings: Settings, wishes: CommandOptions) -> ResearchOptions:
    """With --yes nobody will answer, so plan mode gives way; without a terminal its question stays open."""
    said = Mode(wishes.mode) if wishes.mode else None
    return ResearchOptions(
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


def _execute_run(settings: Settings, wishes: CommandOptions, begin: Begin) -> None:
    if wishes.out is not None:
        check_target(wishes.out)
    outcome = asyncio.run(_start_and_follow(settings, wishes, begin))
    deliver_outcome(outcome, wishes)


def _detach_run(settings: Settings, wishes: CommandOptions, begin: Callable[[Engine], Awaitable[Run]]) -> None:
    """What can be refused is refused here; then another process is at work, and this one returns."""
    pass

    async def put_aside() -> Run:
        async with open_engine(settings) as engine:
            return await begin(engine)

    require_storage(settings)
    if wishes.out is not None:
        check_target(wishes.out)
    launch_process(settings, asyncio.run(put_aside()), wishes)


async def _start_and_follow(settings: Settings, wishes: CommandOptions, begin: Begin) -> RunOutcome:
    async with open_engine(settings) as engine:
        run, told = await begin(engine)
        progress = ProgressDisplay(run, enabled=not wishes.quiet)
        try:
            return await follow_and_ask(engine, run, progress, interactive=wishes.interactive, told=told)
        except KeyboardInterrupt:
            print_message(f"Stopped. Go on with: openassay resume {run.thread}")
            raise typer.Exit(STOPPED) from None


async def follow_and_ask(
    engine: Engine,
    run: Run,
    progress: ProgressDisplay,
    *,
    interactive: bool,
    told: int = 0,
    aside: Aside = reject_commands,
) -> RunOutcome:
    """Follow a run to its end; each question it opens is put to the person, if there is one. Ctrl-D leaves it open,
    Ctrl-C is a KeyboardInterrupt."""
    seen, outcome = await _follow_run(engine, run, progress, told)
    for _ in range(MOST_QUESTIONS):
        if not outcome.questions or not interactive:
            break
        try:
            await ask_question(engine, run.thread, outcome.questions[0], aside)
        except EOFError:
            break
        seen, outcome = await _follow_run(engine, run, progress, seen)
    return outcome


async def _follow_run(engine: Engine, run: Run, progress: ProgressDisplay, seen: int) -> tuple[int, RunOutcome]:
    async with _stop_on_signals(engine, run):
        with progress:
            async for event in engine.events(run.id, after=seen):
                seen = event.seq
                progress.show(event)
                if (event.kind, event.stage) == ("enter", "gate"):  # what was understood is kept by then
                    progress.note(await find_misspellings(engine, run.thread))
        return seen, await engine.wait(run.id)


@contextlib.asynccontextmanager
async def _stop_on_signals(engine: Engine, run: Run) -> AsyncIterator[None]:
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

    with handle_signals(interrupt, terminate):
        yield


def deliver_outcome(outcome: RunOutcome, wishes: CommandOptions) -> None:
    """Print or write the report, and leave with the code that says how it went."""
    run = outcome.run
    if outcome.questions:
        _print_open_question(run.thread, outcome.questions[0])
        raise typer.Exit(OPEN)
    if run.status in (RunStatus.CANCELLED, RunStatus.QUEUED):
        where = "" if run.status is RunStatus.CANCELLED else " after the step it was at"
        print_message(f"Stopped{where}. Go on with: openassay resume {run.thread}")
        raise typer.Exit(STOPPED)
    if run.active:
        raise ThreadBusyError(
            "the run goes on in another process", help=f"See how it goes with: openassay follow {run.thread}"
        )
    if outcome.report is None:
        raise OpenAssayError(
            run.error or "the run ended without a report", help=f"Try again with: openassay resume {run.thread}"
        )
    deliver_report(outcome.report, wishes.out, as_json=wishes.json)
    raise typer.Exit(EXIT_CODES[outcome.report.status])


def _print_open_question(thread: str, question: OpenQuestion) -> None:
    print_message(f"openassay: a question is open: {to_one_line(question.question)}")
    for option in question.options:
        print_message(f"       - {to_one_line(option)}")
    for line in format_answer_help(thread, question):
        print_message(f"       {line}")


# `openassay follow`: how a run goes that another process works on.


def follow_thread(thread: str, wishes: CommandOptions, *, new: bool) -> None:
    if wishes.out is not None:
        check_target(wishes.out)
    outcome = asyncio.run(_follow_events(thread, wishes, new))
    if outcome.run.status in AT_WORK:
        raise ThreadBusyError(
            "no process works on this thread any more" if outcome.run.status is RunStatus.RUNNING
            else "this thread waits to be gone on with", help=f"Go on with: openassay resume {thread}",
        )  # fmt: skip
    deliver_outcome(outcome, wishes)


async def _follow_events(thread: str, wishes: CommandOptions, new: bool) -> RunOutcome:
    async with open_engine(load()) as engine:
        runs = await engine.threads.runs(thread)
        if not runs:
            raise NotFoundError(
                f"nothing was asked on thread {thread} yet", help=f"Ask: openassay ask ... --thread {thread}"
            )
        with ProgressDisplay(runs[-1], enabled=not wishes.quiet) as progress:
            async for event in engine.follow(runs[-1].id, after=await find_last_seq(engine, thread) if new else 0):
                progress.show(event)
        return await engine.outcome(runs[-1].id)


# `openassay mode`: a thread goes ahead, or asks first, from now on.


def set_mode(thread: str, mode: str) -> None:
    outcome = asyncio.run(_set_mode(thread, Mode(mode)))
    if outcome is not None:
        deliver_outcome(outcome, CommandOptions())


async def _set_mode(thread: str, mode: Mode) -> RunOutcome | None:
    """A run whose planning questions were dropped goes on in this process, so it is followed to its end."""
    async with open_engine(load()) as engine:
        asked = [review for review in await engine.reviews(thread) if review.kind == "planning"]
        affected = await engine.set_mode(thread, mode)
        when = "at once" if affected else "from the next question on"
        print_message(f"Thread {thread} is in {mode.value} mode, {when}.")
        if not (affected and asked):
            return None
        run = await engine.threads.run(asked[0].run)
        return await follow_and_ask(engine, run, ProgressDisplay(run), interactive=CommandOptions().interactive)


# `openassay quote`: what a question will probably cost, before anything is spent.


def show_estimate(question: str, wishes: CommandOptions) -> None:
    settings = load(depth=wishes.depth, source=wishes.source)
    made = asyncio.run(_estimate_cost(question, settings, wishes))
    typer.echo(made.model_dump_json(indent=2) if wishes.json else format_estimate(made))


async def _estimate_cost(question: str, settings: Settings, wishes: CommandOptions) -> CostEstimate:
    async with open_engine(settings) as engine:
        return await engine.estimate(question, build_options(settings, wishes))


# `openassay stop`: a run is asked to stop, whatever process works on it.

PATIENCE = 15.0  # seconds in which a run that looks once a second has stopped
LOOK = 0.3


def stop_thread(thread: str, *, drain: bool) -> None:
    asyncio.run(_stop_thread(thread, drain))


async def _stop_thread(thread: str, drain: bool) -> None:
    async with open_engine(load()) as engine:
        run = await engine.stop(thread, drain=drain)
        if run.status is RunStatus.CANCELLED:
            print_message(
                "No process was at work on it, and none will take it up by "
                f"itself. Go on with: openassay resume {thread}"
            )
            return
        heeded = await _wait_for_stop(engine, run.id, PATIENCE if not drain else 4 * PATIENCE)
        run = await engine.threads.run(run.id)
    if not heeded:
        print_message("It was asked to stop" + (" after the step it is at." if drain else " and has not yet."))
        print_message(f"See how it goes with: openassay follow {thread}")
        raise typer.Exit(1)
    if run.status not in (RunStatus.CANCELLED, RunStatus.QUEUED):
        print_message(f"It had come to its end before: {run.status}.")
    else:
        print_message(f"Stopped{' after the step it was at' if drain else ''}. Go on with: openassay resume {thread}")


async def _wait_for_stop(engine: Engine, run: str, patience: float) -> bool:
    """A run that stands still is asked no more."""
    clock = asyncio.get_running_loop().time
    ends = clock() + patience
    while await engine.threads.get_stop_request(run):
        if clock() > ends:
            return False
        await asyncio.sleep(LOOK)
    return True


# `openassay veto`: a source is taken out of a report, or what that would change is shown.


def veto_sources(thread: str, sources: Sequence[str], *, json: bool, out: Path | None, quiet: bool) -> None:
    async def begin(engine: Engine) -> tuple[Run, int]:
        return await engine.veto(thread, sources), 0

    run_and_deliver(CommandOptions(json=json, out=out, quiet=quiet), begin)


def show_consequences(thread: str, sources: Sequence[str], json: bool) -> None:
    found = asyncio.run(_load_consequences(thread, sources))
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for line in format_consequences(found):
        typer.echo(wrap_line(line, 2))


async def _load_consequences(thread: str, sources: Sequence[str]) -> Consequences:
    async with open_engine(load()) as engine:
        return await engine.consequences(thread, sources)


def format_consequences(found: Consequences) -> Iterator[str]:
    yield f"Without {'; '.join(to_one_line(source.title) for source in found.sources)}:"
    yield f"- {pluralize(len(found.lost), 'statement')} would go{_format_claim_ids(found.lost)}"
    yield f"- {pluralize(len(found.weaker), 'statement')} would rest on fewer sources{_format_claim_ids(found.weaker)}"
    yield f"- {pluralize(found.untouched, 'statement')} would stay as {'it is' if found.untouched == 1 else 'they are'}"
    for question in found.unanswered:
        yield f"- left without an answer: {to_one_line(question)}"


def _format_claim_ids(claims: Sequence[str]) -> str:
    return f": {', '.join(claims)}" if claims else ""
