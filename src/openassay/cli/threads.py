"""`openassay threads`: list, show, change and delete threads; follow, stop and change their runs, and time them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.text import Text

from openassay.cli import branches, evidence, export
from openassay.cli import options as opt
from openassay.cli.dialogs import can_ask
from openassay.cli.options import ModeName, ThreadId, complete_thread, group, json_option
from openassay.cli.research import Output, deliver_outcome, execute_run, find_last_event, follow_and_ask
from openassay.cli.runtime import find_run, find_thread, run_on_thread, run_with_engine
from openassay.cli.screen import (
    ProgressDisplay,
    format_age,
    format_dollars,
    format_table,
    open_console,
    print_found,
    print_json,
    print_message,
    shorten,
    show_report,
    to_one_line,
    wrap_line,
)
from openassay.errors import IntegrityError, NotFoundError, ThreadBusyError, UsageError
from openassay.models.event import ACTIVE, AT_WORK, RunStatus
from openassay.models.plan import Mode
from openassay.models.report import ReportSpan
from openassay.models.thread import Consequences, Run, ThreadSummary
from openassay.settings import load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.engine import Engine, RunOutcome
    from openassay.engine.state_view import StateView
    from openassay.engine.timings import Timings
    from openassay.export import Report

T = TypeVar("T")
CONTEXT_CHARACTERS = 300  # shown on each side of a passage
MAX_PASSAGES = 6  # of one source; the others are counted
MAX_QUESTION = 160  # characters of a question where it is cut short
MAX_RUNS = 20
STOP_SECONDS = 15.0  # in which a run that looks once a second has stopped
POLL_SECONDS = 0.3

app = group("List, show, follow, change, fork, export and delete threads.")


@app.callback()
def threads(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to list.")] = 20,
    active: Annotated[bool, typer.Option("--active", help="Only those running, or waiting for an answer.")] = False,
    json: Annotated[bool, json_option("the threads")] = False,
) -> None:
    """List threads, the newest first; or do something with them."""
    if context.invoked_subcommand is not None:
        return None
    found = run_with_engine(lambda engine: engine.overview(limit, ACTIVE if active else ()))
    if not found and not json:
        ask = 'Ask something: openassay ask "What is happening with Apple?"'
        return print_message("Nothing is running or waiting." if active else f"No threads yet. {ask}")
    return print_found(found, _format_overview(found), json=json)


def _format_overview(found: list[ThreadSummary]) -> Iterator[str]:
    columns = "{:12}  {:9}  {:>8}  {:>8}  {}"
    yield columns.format("thread", "status", "age", "cost", "question")
    now = datetime.now(UTC)
    for one in found:
        status = "damaged" if one.damaged else "stopped" if one.left else one.status or ""
        # What was asked last, after the title where that says something else. The title of a branch begins with what
        # was changed, and may end with what was asked.
        asked = " ".join(one.question.split())
        before, between, name = one.title.rpartition(" · ") if one.parent else ("", "", one.title)
        if asked.startswith(name.rstrip("…")):
            text = f"{before}{between}{asked}"
        else:
            text = f"{one.title} · {asked}" if asked else one.title
        age, cost = format_age(now - one.updated), format_dollars(one.usd)
        row = (one.id, status, age, cost, f"↳ {text}" if one.parent else text)
        yield columns.format(*map(to_one_line, row))


@app.command()
def new(title: Annotated[str, typer.Argument(metavar="[TITLE]", show_default=False)] = "") -> None:
    """Make a thread on which nothing is asked yet, and print its id for --thread."""
    thread = run_with_engine(lambda engine: engine.create_thread(title)).id
    typer.echo(thread)
    print_message(f'Ask on it: openassay ask "..." --thread {thread}')


@app.command()
def show(
    thread: ThreadId,
    full: Annotated[bool, typer.Option("--full", help="Leave nothing out.")] = False,
    json: Annotated[bool, json_option("the report, or null,")] = False,
) -> None:
    """Show a thread with its runs, and its report if there is one; long texts are cut short."""

    async def look(engine: Engine, thread: str) -> tuple[str, list[Run], Report | None]:
        await engine.threads.get(thread)
        report = await engine.history.report(thread) if (await engine.state(thread)).get("report") else None
        if report is not None:
            await export.warn_of_damage(engine, thread)
        return thread, await engine.threads.runs(thread), report

    id, found, report = run_on_thread(thread, look)
    if json:
        return print_json(report)
    for run in found if full else found[-MAX_RUNS:]:
        head = f"{run.id}  {run.status}  {run.stage}  {run.started:%Y-%m-%d %H:%M}"
        texts = [run.question, run.error or ""]
        question, error = map(to_one_line, texts) if full else (shorten(text, MAX_QUESTION) for text in texts)
        typer.echo(wrap_line(f"{head}  {question}", 14))
        if error:
            typer.echo(wrap_line(f"{'':14}{error}", 14))
    if report is not None:
        from openassay.engine.artifacts import shorten_report

        return show_report(report if full else shorten_report(report))
    if found:
        return print_message(f"No report yet. Resume it with: openassay resume {id}")
    return print_message(f'Nothing was asked yet. Ask: openassay ask "..." --thread {id}')


@app.command()
def rename(thread: ThreadId, title: Annotated[str, typer.Argument(metavar="TITLE")]) -> None:
    """Give a thread another title."""

    async def change(engine: Engine, thread: str) -> str:
        await engine.rename(thread, title)
        return f"Thread {thread} is called: {to_one_line((await engine.threads.get(thread)).title)}"

    typer.echo(run_on_thread(thread, change), err=True)


@app.command()
def state(
    thread: ThreadId,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="CHECKPOINT", help="As it was then; see `openassay threads history`."),
    ] = None,
    json: Annotated[bool, json_option("the state")] = False,
) -> None:
    """Show what a thread holds right now: plan, queries, results, evidence, draft, issues."""
    found = run_on_thread(thread, lambda engine, id: engine.view(id) if at is None else engine.history.view(id, at))
    lines = (f"{label:9}  {to_one_line(text)}".rstrip() for label, text in _summarize_state(found))
    print_found(found, lines, json=json, indent=11)


def _summarize_state(found: StateView) -> Iterator[tuple[str, str]]:
    """Yield what there is in few lines, each with a label; the rest is in the JSON."""
    then = f", next: {', '.join(found.next)}" if found.next else ""
    yield "thread", f"{found.thread}, {found.status}{then}"
    yield "goal", found.user_inputs.goal
    if found.subject:
        yield "subject", found.subject
    if gate := found.user_inputs.gate:
        signals = f"clarity {gate.clarity:.2f}, coherence {gate.coherence:.2f}, {format_dollars(gate.usd)}"
        yield "mode", f"{Mode.AUTO if gate.auto else Mode.PLAN} ({signals}): {gate.reason}"
    for about, answer in found.user_inputs.planner_answers.items():
        yield "answer", f"{about}: {answer}"
    for step in found.plan.dag if found.plan else ():
        yield step.id, f"{step.text} ({pluralize(len(step.queries), 'query', 'queries')})"
    if found.search_results:
        results = pluralize(len(found.search_results), "result")
        yield "found", f"{results} for {pluralize(len(found.queries), 'query', 'queries')}"
    for one in found.evidence:
        what = one.problem or pluralize(len(one.chunks), "chunk")
        yield one.id or "chosen", f"{one.title or one.content_hash} ({what})"
    if found.draft:
        words, cited = len(found.draft.text.split()), pluralize(len(found.draft.citations), "source")
        yield "draft", f"{pluralize(words, 'word')}, {cited} cited, confidence {found.draft.confidence:.2f}"
    yield from (("issue", issue) for issue in found.issues)
    yield from (("note", notice) for notice in found.notices)
    if found.left_out:
        yield "left out", ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in found.left_out.items())


@app.command()
def log(thread: ThreadId) -> None:
    """Show everything that happened in a thread's last run."""

    async def lines(engine: Engine, thread: str) -> list[str]:
        await engine.threads.get(thread)
        return [
            f"{event.seq:4} {event.time:%H:%M:%S} {event.kind:9} {event.stage:12} "
            # The sentences of a section are in the report.
            f"{ {name: value for name, value in event.data.items() if name != 'lines'} }"
            for run in (await engine.threads.runs(thread))[-1:]
            async for event in engine.events(run.id)
        ]

    for line in run_on_thread(thread, lines):
        typer.echo(line)


@app.command()
def passage(
    thread: ThreadId, claim: Annotated[str, typer.Argument(metavar="CLAIM", help="A claim's id, such as C3.")]
) -> None:
    """Show the passages behind a statement, in context."""

    async def find(engine: Engine, thread: str) -> list[Text]:
        await engine.threads.get(thread)
        return [part async for part in render_claim_passages(engine, await engine.history.report(thread), claim)]

    console = open_console()
    for part in run_on_thread(thread, find):
        console.print(part)


async def render_claim_passages(engine: Engine, report: Report, name: str) -> AsyncIterator[Text]:
    claim = _find_by_id(name, "claim", {claim.id: claim for claim in report.claims})
    titles = {card.id: card.title for card in report.sources}
    verdict = claim.verdict.value.replace("_", " ")
    judged = f"{verdict}, confidence {claim.confidence:.2f} {claim.mark or ''}".rstrip()
    yield Text(f"{claim.text}\n{judged}", style="bold")
    for span in claim.spans:
        head = f"\n{span.source} {to_one_line(titles[span.source])}, characters {span.start}-{span.end}\n"
        yield Text.assemble((head, "blue"), await _render_context(engine, span))


async def render_source_passages(engine: Engine, report: Report, name: str) -> AsyncIterator[Text]:
    """Render a source's card, and the passages taken from it. S3 and 3 are the same."""
    card = _find_by_id(f"S{name}" if name.isdecimal() else name, "source", {card.id: card for card in report.sources})
    facts = [
        card.author,
        card.published or "undated",
        card.place or card.kind,
        f"credibility {card.credibility:.2f}",
    ]
    lines = [card.url, " · ".join(fact for fact in facts if fact), *card.credibility_reasons, card.why_used]
    body = "\n".join(to_one_line(line) for line in lines if line)
    yield Text.assemble((f"{card.id} {to_one_line(card.title)}\n", "bold"), (body, "dim"))
    used = [(span, claim) for claim in report.claims for span in claim.spans if span.source == card.id]
    for span, claim in used[:MAX_PASSAGES]:
        yield Text.assemble((f"\n{claim.id} {claim.text}\n", "blue"), await _render_context(engine, span))
    if used[MAX_PASSAGES:]:
        yield Text(f"\n… and {len(used) - MAX_PASSAGES} more passages", style="dim")


def _find_by_id(name: str, kind: str, known: Mapping[str, T]) -> T:
    for id, found in known.items():
        if id.lower() == name.lower():
            return found
    some = f"{', '.join(list(known)[:12])}{' ...' if len(known) > 12 else ''}" or "none, since nothing was found"
    raise NotFoundError(f"there is no {kind} {to_one_line(name)}", help=f"There are: {some}.")


async def _render_context(engine: Engine, span: ReportSpan) -> Text:
    text = (await engine.document(span.document)).text
    before = text[max(0, span.start - CONTEXT_CHARACTERS) : span.start]
    after = text[span.end : span.end + CONTEXT_CHARACTERS]
    return Text.assemble((before, "dim"), (span.quote, "reverse"), (after, "dim"))


@app.command()
def delete(
    threads: Annotated[
        list[str],
        typer.Argument(metavar="THREAD...", help="Their ids, or the start of them.", autocompletion=complete_thread),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete threads for good, with all that was said and found; what was spent stays in the ledger."""

    async def load_titles(engine: Engine) -> dict[str, str]:
        found = {}
        for name in threads:
            thread = await find_thread(engine, name)
            try:
                found[thread] = (await engine.threads.get(thread)).title
            except IntegrityError:  # the advice then is to delete it
                found[thread] = "(damaged)"
        return found

    async def remove(engine: Engine) -> None:
        for thread in titles:
            await engine.archive.delete(thread)
            typer.echo(f"Thread {thread} deleted.", err=True)

    titles = run_with_engine(load_titles)  # nothing is deleted unless all of them are there
    if not yes:
        if not can_ask():
            raise UsageError("what is deleted is gone for good, and nobody is there to be asked", help="Add --yes.")
        for thread, title in titles.items():
            print_message(f"{thread}  {to_one_line(title)}")
        if not typer.confirm(f"Delete {'it' if len(titles) == 1 else 'them'} for good?", err=True):
            raise typer.Exit(1)
    run_with_engine(remove)


@app.command()
def expire() -> None:
    """Delete threads that nobody has touched for persistence.ttl_hours."""
    settings = load()
    if settings.persistence.ttl_hours is None:
        raise UsageError("threads are kept for ever", help="Set persistence.ttl_hours to have them deleted.")

    async def delete_expired() -> int:
        from openassay.bootstrap import open_engine

        count = 0
        async with open_engine(settings, expire=False) as engine:
            while threads := await engine.archive.expire():
                count += len(threads)
        return count

    typer.echo(f"{pluralize(asyncio.run(delete_expired()), 'thread')} deleted.", err=True)


@app.command()
def timings(thread: ThreadId, run: opt.RunId = None, json: Annotated[bool, json_option("the timings")] = False) -> None:
    """Show where the time of a run went: stages, calls to others, caches, and waiting."""

    async def look(engine: Engine, thread: str) -> Timings:
        await engine.threads.get(thread)
        return await engine.timings(thread, await find_run(engine, thread, run))

    found = run_on_thread(thread, look)
    print_found(found, map(to_one_line, _format_timings(found)), json=json)


def _format_timings(found: Timings) -> Iterator[str]:
    request = f", request {found.request}" if found.request else ""
    attempts = f", {pluralize(found.attempts, 'attempt')}" if found.attempts > 1 else ""
    yield f"run {found.run}  {found.status}{attempts}{request}"
    clock = found.seconds
    parts = {"queued": clock.queued, "running": clock.working}
    parts |= {"waiting for an answer": clock.waiting, "stopped": clock.stopped}
    spent = [f"{_format_duration(value)} {name}" for name, value in parts.items() if value or name == "running"]
    yield f"{_format_duration(clock.total)}: {', '.join(spent)}"
    stages = [
        (one.stage, str(one.count), str(one.unfinished or ""), *map(_format_seconds, (one.seconds, one.longest)))
        for one in found.stages
    ]
    yield from ("", *format_table(("stage", "ended", "not ended", "seconds", "longest"), stages))
    if found.parties:
        parties = [
            (
                f"{one.party} ({one.kind})" if one.kind != "model" else one.party,
                str(one.calls),
                str(one.failures or ""),
                *map(_format_seconds, (one.seconds, one.median, one.longest)),
                format_dollars(one.usd) if one.usd else "",
            )
            for one in found.parties
        ]
        yield from ("", *format_table(("asked", "answered", "failed", "seconds", "median", "longest", "cost"), parties))
    for cache in found.caches:
        if cache.rate is not None:
            yield f"{cache.cache}: the cache knew {cache.hits:,} of {cache.asked:,} ({cache.rate:.0%})"
    if found.errors:
        yield f"errors: {', '.join(f'{category} {count:,}' for category, count in sorted(found.errors.items()))}"


def _format_seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _format_duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


# -- the run of a thread, in whatever process it works -----------------------------------------------------------


@app.command()
def follow(
    thread: ThreadId,
    new: Annotated[bool, typer.Option("--new", help="Show only what happens from now on.")] = False,
    json: opt.JsonReport = False,
    out: opt.Out = None,
    quiet: opt.Quiet = False,
) -> None:
    """Follow a run in whatever process, then print its report. Ctrl-C leaves the run alone."""
    export.check_target(out)

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


@app.command()
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


@app.command()
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


@app.command()
def veto(
    thread: ThreadId,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="S3, an address, or a host.")],
    what_if: Annotated[bool, typer.Option("--what-if", help="Show what would change, and change nothing.")] = False,
    json: Annotated[bool, json_option("the report, or what would change,")] = False,
    out: opt.Out = None,
    quiet: opt.Quiet = False,
) -> None:
    """Take sources out of a report, and derive again only what rested on them."""
    if not what_if:
        output = Output(json=json, out=out, quiet=quiet)
        return execute_run(load(), lambda engine, id: engine.vetoes.begin(id, sources), output, thread)
    found = run_on_thread(thread, lambda engine, id: engine.vetoes.consequences(id, sources))
    return print_found(found, format_consequences(found), json=json, indent=2)


def format_consequences(found: Consequences) -> Iterator[str]:
    lost, weaker = (f": {', '.join(claims)}" if claims else "" for claims in (found.lost, found.weaker))
    yield f"Without {'; '.join(to_one_line(source.title) for source in found.sources)}:"
    yield f"- {pluralize(len(found.lost), 'statement')} would go{lost}"
    yield f"- {pluralize(len(found.weaker), 'statement')} would rest on fewer sources{weaker}"
    yield f"- {pluralize(found.untouched, 'statement')} would stay as {'it is' if found.untouched == 1 else 'they are'}"
    for question in found.unanswered:
        yield f"- left without an answer: {to_one_line(question)}"


for command in (
    branches.history,
    branches.fork,
    branches.replay,
    branches.diff,
    export.export,
    evidence.bundle,
    evidence.watch,
):
    app.command()(command)
app.command("branches")(branches.show_branches)
