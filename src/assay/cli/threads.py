"""`assay threads`, `document` and `passage`: looking at what is stored."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer
from rich.text import Text

from assay.bootstrap import open_engine
from assay.cli.lines import one_line
from assay.cli.screen import open_console, show_report
from assay.engine import Engine
from assay.errors import NotFoundError
from assay.export.report import Report
from assay.model.claim import Verdict
from assay.model.report import ReportClaim
from assay.model.thread import Run
from assay.settings import load

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
        typer.echo(f"{run.id}  {run.status}  {run.stage}  {run.started:%Y-%m-%d %H:%M}  {one_line(run.question)}")
        if run.error:
            typer.echo(f"{'':14}{one_line(run.error)}")
    if report is not None:
        show_report(report)
    elif runs:
        typer.echo(f"No report yet. Go on with: assay resume {thread}", err=True)


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
        report = await engine.report(thread)
        chosen = _claim(report, thread, claim)
        titles = {card.id: card.title for card in report.sources}
        shown = [Text(f"{chosen.text}\n{_judged(chosen)}", style="bold")]
        for span in chosen.spans:
            text = (await engine.document(span.document)).text
            before, after = text[max(0, span.start - AROUND) : span.start], text[span.end : span.end + AROUND]
            shown.append(
                Text.assemble((f"\n{span.source} {titles[span.source]}, characters {span.start}-{span.end}\n", "blue"),
                              (before, "dim"), (span.quote, "reverse"), (after, "dim"))
            )  # fmt: skip
        return shown

    console = open_console()
    for part in _with_engine(find):
        console.print(part)


def _claim(report: Report, thread: str, name: str) -> ReportClaim:
    for claim in report.claims:
        if claim.id.lower() == name.lower():
            return claim
    ids = [claim.id for claim in report.claims]
    some = f"{', '.join(ids[:12])}{' ...' if len(ids) > 12 else ''}" if ids else "none: nothing was found"
    raise NotFoundError(f"thread {thread} has no claim {name}", help=f"It has: {some}.")


def _judged(claim: ReportClaim) -> str:
    verdict = Verdict(claim.verdict).value.replace("_", " ")
    return f"{verdict}, confidence {claim.confidence:.2f} {claim.mark or ''}".rstrip()


def _with_engine(work: Callable[[Engine], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())
