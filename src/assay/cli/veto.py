"""`assay veto`: a source is taken out of a report, or what that would change is shown."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from assay.bootstrap import open_engine
from assay.cli.lines import fitted, one_line
from assay.cli.research import Wishes, conduct
from assay.engine import Engine
from assay.model.thread import Run
from assay.model.veto import Consequences
from assay.settings import load
from assay.text.words import counted


def veto(thread: str, sources: Sequence[str], *, json: bool, out: Path | None, quiet: bool) -> None:
    async def begin(engine: Engine) -> tuple[Run, int]:
        return await engine.veto(thread, sources), 0

    conduct(Wishes(json=json, out=out, quiet=quiet), begin)


def what_would_change(thread: str, sources: Sequence[str], json: bool) -> None:
    found = asyncio.run(_consequences(thread, sources))
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for line in told(found):
        typer.echo(fitted(line, 2))


async def _consequences(thread: str, sources: Sequence[str]) -> Consequences:
    async with open_engine(load()) as engine:
        return await engine.consequences(thread, sources)


def told(found: Consequences) -> Iterator[str]:
    yield f"Without {'; '.join(one_line(source.title) for source in found.sources)}:"
    yield f"- {counted(len(found.lost), 'statement')} would go{_named(found.lost)}"
    yield f"- {counted(len(found.weaker), 'statement')} would rest on fewer sources{_named(found.weaker)}"
    yield f"- {counted(found.untouched, 'statement')} would stay as {'it is' if found.untouched == 1 else 'they are'}"
    for question in found.unanswered:
        yield f"- left without an answer: {one_line(question)}"


def _named(claims: Sequence[str]) -> str:
    return f": {', '.join(claims)}" if claims else ""
