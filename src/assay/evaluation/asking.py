"""Questions asked of an engine of its own: the embedded reasoner, no network, nothing of the person's storage."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from assay.bootstrap import open_engine
from assay.engine import Engine
from assay.errors import ReasoningError
from assay.export.report import Report
from assay.model.thread import Options
from assay.settings import load


@asynccontextmanager
async def engine_apart(folder: Path) -> AsyncIterator[Engine]:
    """Whatever keys and databases the person has: figures are of what everybody has, and cost nothing."""
    settings = load(data_dir=folder, offline=True, llm={"model": "embedded"}, persistence={"backend": "sqlite"})
    async with open_engine(settings) as engine:
        yield engine


async def reported(engine: Engine, question: str, docs: Path, words: int | None = None) -> Report:
    run = await engine.start(question, Options(docs=(str(docs),), words=words))
    outcome = await engine.wait(run.id)
    if outcome.report is None:
        raise ReasoningError(f"no report on {question!r}: {outcome.run.error}", help="This is a fault in Assay.")
    return outcome.report
