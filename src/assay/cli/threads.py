"""`assay threads`, `document` and `passage`: looking at what is stored."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import typer
from rich.text import Text

from assay.bootstrap import open_engine
from assay.cli.lines import counted, dollars, fitted, one_line
from assay.cli.passages import behind_claim
from assay.cli.screen import open_console, show_report, tell
from assay.engine import Engine
from assay.export.report import Report
from assay.model.question import Mode
from assay.model.thread import Run
from assay.settings import load
from assay.view import StateView

T = TypeVar("T")
AROUND = 300  # characters of context shown on each side of a span


def listing(limit: int) -> None:
    async def rows(engine: Engine) -> list[tuple[str, str, str, str]]:
        found = []
        for thread in await engine.threads.recent(limit=limit):
            runs = await engine.threads.runs(thread.id)
            found.append((thread.id, runs[-1].status if runs else "", f"{thread.updated:%Y-%m-%d %H:%M}", thread.title))
        return found

    found = _with_engine(rows)
    if not found:
        typer.echo('No threads yet. Ask something: assay ask "What is happening with Apple?"', err=True)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in [("thread", "status", "updated", "title"), *found]:
        typer.echo("{:12}  {:9}  {:16}  {}".format(*map(one_line, row))[:width])


def show(thread: str, json: bool) -> None:
    async def look(engine: Engine) -> tuple[list[Run], Report | None]:
        await engine.threads.get(thread)
        values = await engine.state(thread)
        return await engine.threads.runs(thread), await engine.report(thread) if values.get("report") else None

    runs, report = _with_engine(look)
    if json:
        typer.echo((report.model_dump_json(indent=2) if report else "null").encode())
        return
    for run in runs:
        state = f"{run.id}  {run.status}  {run.stage}  {run.started:%Y-%m-%d %H:%M}"
        typer.echo(fitted(f"{state}  {one_line(run.question)}", 14))
        if run.error:
            typer.echo(fitted(f"{'':14}{one_line(run.error)}", 14))
    if report is not None:
        show_report(report)
    elif runs:
        tell(f"No report yet. Go on with: assay resume {thread}")


def state(thread: str, json: bool) -> None:
    async def look(engine: Engine) -> StateView:
        return await engine.view(thread)

    found = _with_engine(look)
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
            f"{event.seq:4} {event.time:%H:%M:%S} {event.kind:9} {event.stage:12} {event.data}"
            for run in runs[-1:]
            async for event in engine.events(run.id)
        ]

    for line in _with_engine(lines):
        typer.echo(line)


def delete(thread: str) -> None:
    async def remove(engine: Engine) -> None:
        await engine.delete(thread)

    _with_engine(remove)
    typer.echo(f"Thread {thread} deleted.", err=True)


def document(hash: str) -> None:
    async def text(engine: Engine) -> str:
        return (await engine.document(hash)).text

    # Exactly the snapshot, byte for byte: no newline is added and none is translated.
    sys.stdout.buffer.write(_with_engine(text).encode())
    sys.stdout.buffer.flush()


def passage(thread: str, claim: str) -> None:
    async def find(engine: Engine) -> list[Text]:
        await engine.threads.get(thread)
        return [part async for part in behind_claim(engine, await engine.report(thread), claim)]

    console = open_console()
    for part in _with_engine(find):
        console.print(part)


def _with_engine(work: Callable[[Engine], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())
