"""`assay threads`, `document` and `passage`: looking at what is stored."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import TypeVar

import typer
from rich.text import Text

from assay.bootstrap import open_engine
from assay.cli.asking import can_ask
from assay.cli.lines import age, cut, dollars, fitted, one_line
from assay.cli.passages import behind_claim
from assay.cli.screen import open_console, show_report, tell
from assay.cli.with_engine import with_engine
from assay.engine import Engine
from assay.errors import EvidenceError, IntegrityError, UsageError
from assay.export.report import Report
from assay.model.event import ACTIVE
from assay.model.question import Mode
from assay.model.thread import Run, ThreadSummary
from assay.settings import load
from assay.text.words import counted
from assay.view import StateView
from assay.view.short import shortened

T = TypeVar("T")
LONGEST = 160  # characters of a question where it is cut short
MOST_RUNS = 20


def listing(limit: int, *, active: bool, json: bool) -> None:
    async def rows(engine: Engine) -> list[ThreadSummary]:
        return await engine.overview(limit, ACTIVE if active else ())

    found = with_engine(rows)
    if json:
        typer.echo(dumps([one.plain() for one in found], indent=2, ensure_ascii=False).encode())
        return
    if not found:
        ask = 'Ask something: assay ask "What is happening with Apple?"'
        typer.echo("Nothing is at work or waits." if active else f"No threads yet. {ask}", err=True)
        return
    now = datetime.now(UTC)
    told = [(one.id, _standing(one), age(now - one.updated), dollars(one.usd), _asked(one)) for one in found]
    for row in [("thread", "status", "age", "cost", "question"), *told]:
        typer.echo(cut("{:12}  {:9}  {:>8}  {:>8}  {}".format(*map(one_line, row))))


def _asked(thread: ThreadSummary) -> str:
    """The last question, after the title where that says something else. That of a branch begins with what was
    changed, and may end with what was asked."""
    asked = " ".join(thread.question.split())
    before, between, name = thread.title.rpartition(" · ") if thread.parent else ("", "", thread.title)
    if asked.startswith(name.rstrip("…")):
        told = f"{before}{between}{asked}"
    else:
        told = f"{thread.title} · {asked}" if asked else thread.title
    return f"↳ {told}" if thread.parent else told


def _standing(thread: ThreadSummary) -> str:
    return "damaged" if thread.damaged else "stopped" if thread.left else thread.status or ""


def new(title: str) -> None:
    async def create(engine: Engine) -> str:
        return (await engine.create(title)).id

    thread = with_engine(create)
    typer.echo(thread)
    tell(f'Ask on it: assay ask "..." --thread {thread}')


def rename(thread: str, title: str) -> None:
    async def change(engine: Engine) -> str:
        await engine.rename(thread, title)
        return (await engine.threads.get(thread)).title

    typer.echo(f"Thread {thread} is called: {one_line(with_engine(change))}", err=True)


def show(thread: str, json: bool, *, full: bool = False) -> None:
    async def look(engine: Engine) -> tuple[list[Run], Report | None, str]:
        await engine.threads.get(thread)
        values = await engine.state(thread)
        report = await engine.report(thread) if values.get("report") else None
        return await engine.threads.runs(thread), report, await damage(engine, thread) if report else ""

    runs, report, careful = with_engine(look)
    if careful:
        tell(f"Careful: {one_line(careful)}")
    if json:
        typer.echo((report.model_dump_json(indent=2) if report else "null").encode())
        return
    for run in runs if full else runs[-MOST_RUNS:]:
        state = f"{run.id}  {run.status}  {run.stage}  {run.started:%Y-%m-%d %H:%M}"
        typer.echo(fitted(f"{state}  {_cut(run.question, full)}", 14))
        if run.error:
            typer.echo(fitted(f"{'':14}{_cut(run.error, full)}", 14))
    if report is not None:
        show_report(report if full else shortened(report))
    elif runs:
        tell(f"No report yet. Go on with: assay resume {thread}")
    else:
        tell(f'Nothing was asked yet. Ask: assay ask "..." --thread {thread}')


async def damage(engine: Engine, thread: str) -> str:
    """A report tells what was checked when it was written; what it rests on may have been altered since."""
    try:
        await engine.check(thread)
    except (IntegrityError, EvidenceError) as error:
        return error.message
    return ""


def _cut(text: str, full: bool) -> str:
    line = one_line(text)
    return line if full or len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def state(thread: str, json: bool, at: str | None = None) -> None:
    async def look(engine: Engine) -> StateView:
        return await engine.view(thread) if at is None else await engine.view_at(thread, at)

    found = with_engine(look)
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for label, text in _told(found):
        typer.echo(fitted(f"{label:9}  {one_line(text)}".rstrip(), 11))


def _told(view: StateView) -> Iterator[tuple[str, str]]:
    """Few lines; the rest is in the JSON."""
    yield "thread", f"{view.thread}, {view.status}{', next: ' if view.next else ''}{', '.join(view.next)}"
    yield "goal", view.user_inputs.goal
    if view.subject:
        yield "subject", view.subject
    if gate := view.user_inputs.gate:
        signals = f"clarity {gate.clarity:.2f}, coherence {gate.coherence:.2f}, {dollars(gate.usd)}"
        yield "mode", f"{Mode.AUTO if gate.auto else Mode.PLAN} ({signals}): {gate.reason}"
    for about, answer in view.user_inputs.planner_answers.items():
        yield "answer", f"{about}: {answer}"
    if view.plan:
        for step in view.plan.dag:
            yield step.id, f"{step.text} ({counted(len(step.queries), 'query', 'queries')})"
    yield from _found(view)
    yield from (("issue", issue) for issue in view.issues)
    yield from (("note", notice) for notice in view.notices)
    if view.left_out:
        yield "left out", ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in view.left_out.items())


def _found(view: StateView) -> Iterator[tuple[str, str]]:
    if view.search_results:
        results = counted(len(view.search_results), "result")
        yield "found", f"{results} for {counted(len(view.queries), 'query', 'queries')}"
    for one in view.evidence:
        what = one.problem or counted(len(one.chunks), "chunk")
        yield one.id or "chosen", f"{one.title or one.content_hash} ({what})"
    if view.draft:
        words = counted(len(view.draft.text.split()), "word")
        cited = counted(len(view.draft.citations), "source")
        yield "draft", f"{words}, {cited} cited, confidence {view.draft.confidence:.2f}"


def log(thread: str) -> None:
    async def lines(engine: Engine) -> list[str]:
        await engine.threads.get(thread)
        runs = await engine.threads.runs(thread)
        return [
            f"{event.seq:4} {event.time:%H:%M:%S} {event.kind:9} {event.stage:12} {_short(event.data)}"
            for run in runs[-1:]
            async for event in engine.events(run.id)
        ]

    for line in with_engine(lines):
        typer.echo(line)


def _short(data: Mapping[str, object]) -> dict[str, object]:
    """Without the sentences of a section, which the report has."""
    return {name: value for name, value in data.items() if name != "lines"}


def delete(threads: Sequence[str], *, yes: bool) -> None:
    """Nothing is deleted unless all of them are there."""

    async def titles(engine: Engine) -> dict[str, str]:
        return {thread: await _title(engine, thread) for thread in threads}

    async def remove(engine: Engine) -> None:
        for thread in dict.fromkeys(threads):
            await engine.delete(thread)
            typer.echo(f"Thread {thread} deleted.", err=True)

    named = with_engine(titles)
    if not yes:
        if not can_ask():
            raise UsageError("what is deleted is gone for good, and nobody is there to be asked", help="Add --yes.")
        for thread, title in named.items():
            tell(f"{thread}  {one_line(title)}")
        if not typer.confirm(f"Delete {'it' if len(named) == 1 else 'them'} for good?", err=True):
            raise typer.Exit(1)
    with_engine(remove)


async def _title(engine: Engine, thread: str) -> str:
    try:
        return (await engine.threads.get(thread)).title
    except IntegrityError:  # to delete it is what is advised then
        return "(damaged)"


def export(thread: str, out: Path | None) -> None:
    target = out or Path(f"{thread}.zip")

    async def write(engine: Engine) -> None:
        await engine.export(thread, target)

    with_engine(write)
    typer.echo(f"Thread {thread} written to {target}", err=True)


def expire() -> None:
    async def gone() -> int:
        count = 0
        async with open_engine(settings, expire=False) as engine:
            while threads := await engine.expire():
                count += len(threads)
        return count

    settings = load()
    if settings.persistence.ttl_hours is None:
        raise UsageError("threads are kept for ever", help="Set persistence.ttl_hours to have them forgotten.")
    typer.echo(f"{counted(asyncio.run(gone()), 'thread')} deleted.", err=True)


def document(hash: str) -> None:
    async def text(engine: Engine) -> str:
        return (await engine.document(hash)).text

    # Exactly the snapshot, byte for byte: no newline is added and none is translated.
    sys.stdout.buffer.write(with_engine(text).encode())
    sys.stdout.buffer.flush()


def passage(thread: str, claim: str) -> None:
    async def find(engine: Engine) -> list[Text]:
        await engine.threads.get(thread)
        return [part async for part in behind_claim(engine, await engine.report(thread), claim)]

    console = open_console()
    for part in with_engine(find):
        console.print(part)
