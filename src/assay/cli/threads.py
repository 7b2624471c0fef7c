"""`assay threads`, `document` and `passage`: looking at what is stored."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.bootstrap import open_engine
from assay.cli.screen import show_report
from assay.engine import Engine
from assay.errors import NotFoundError
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

    table = Table("thread", "status", "updated", "title", box=None)
    for row in _with_engine(rows):
        table.add_row(*row)
    Console(highlight=False).print(table if table.rows else Text('No threads yet. Ask something: assay ask "..."'))


def show(thread: str, json: bool) -> None:
    async def look(engine: Engine) -> tuple[list[Run], object]:
        await engine.threads.get(thread)
        values = await engine.state(thread)
        return await engine.threads.runs(thread), await engine.report(thread) if values.get("report") else None

    runs, report = _with_engine(look)
    if json:
        typer.echo(report.model_dump_json(indent=2) if report else "null")  # type: ignore[attr-defined]
        return
    for run in runs:
        typer.echo(f"{run.id}  {run.status}  {run.stage}  {run.started:%Y-%m-%d %H:%M}  {run.question}")
    if report is not None:
        show_report(report)  # type: ignore[arg-type]


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
        report = await engine.report(thread)
        chosen = next((item for item in report.claims if item.id.lower() == claim.lower()), None)
        if chosen is None:
            ids = ", ".join(item.id for item in report.claims[:12])
            raise NotFoundError(f"thread {thread} has no claim {claim}", help=f"It has: {ids} ...")
        titles = {card.id: card.title for card in report.sources}
        shown = [
            Text(
                f"{chosen.text}\n{chosen.verdict}, confidence {chosen.confidence:.2f} {chosen.mark or ''}", style="bold"
            )
        ]
        for span in chosen.spans:
            text = (await engine.document(span.document)).text
            before, after = text[max(0, span.start - AROUND) : span.start], text[span.end : span.end + AROUND]
            shown.append(
                Text.assemble((f"\n{span.source} {titles[span.source]}, characters {span.start}-{span.end}\n", "blue"),
                              (before, "dim"), (span.quote, "reverse"), (after, "dim"))
            )  # fmt: skip
        return shown

    console = Console(highlight=False)
    for part in _with_engine(find):
        console.print(part)


def _with_engine(work: Callable[[Engine], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())
