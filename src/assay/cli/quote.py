"""`assay quote`: what a question will probably cost, before anything is spent."""

import asyncio

import typer

from assay.bootstrap import open_engine
from assay.cli.lines import quoted
from assay.cli.research import Wishes, options
from assay.model.spend import Quote
from assay.settings import Settings, load


def quote(question: str, wishes: Wishes) -> None:
    settings = load(depth=wishes.depth, source=wishes.source)
    made = asyncio.run(_make(question, settings, wishes))
    typer.echo(made.model_dump_json(indent=2) if wishes.json else quoted(made))


async def _make(question: str, settings: Settings, wishes: Wishes) -> Quote:
    async with open_engine(settings) as engine:
        return await engine.quote(question, options(settings, wishes))
