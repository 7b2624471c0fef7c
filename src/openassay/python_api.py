"""`research` and `aresearch`: a question in, a report out, without a server (docs/reference/python.md)."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from openassay.bootstrap import open_engine
from openassay.errors import OpenAssayError, UsageError
from openassay.export import Report
from openassay.models.event import RunStatus
from openassay.models.plan import Mode
from openassay.models.thread import ResearchOptions
from openassay.settings import load


async def aresearch(
    question: str,
    *,
    docs: Sequence[str | Path] = (),
    depth: Literal["quick", "standard", "comprehensive"] | None = None,
    source: str | None = None,
    web: bool = False,
    thread: str | None = None,
    model: str | None = None,
    budget_usd: float | None = None,
    **settings: Any,
) -> Report:
    """Research a question and return the report. Never asks back: defaults are taken and noted in the report."""
    chosen = load(depth=depth, source=source, **settings)
    try:
        options = ResearchOptions(
            depth=chosen.depth,
            mode=Mode.AUTO,
            user=chosen.user,
            docs=_resolve_paths(docs),
            source=chosen.source,
            web=web,
            model=model,
            usd=budget_usd,
        )
    except ValidationError as error:
        raise UsageError("budget_usd or model is not valid", help="A budget is 0 to 10,000, a model a name.") from error
    async with open_engine(chosen) as engine:
        run = await engine.start(question, options, thread=thread)
        outcome = await engine.wait(run.id)
    if outcome.report is None:
        reason = outcome.run.error or f"the run ended as {RunStatus(outcome.run.status)}"
        raise OpenAssayError(reason, help=f"Resume it with: openassay resume {run.thread}")
    return outcome.report


def _resolve_paths(paths: Sequence[str | Path]) -> tuple[str, ...]:
    return tuple(str(Path(path).absolute()) for path in paths)


def research(question: str, **options: Any) -> Report:
    """Research a question from code that does not await; in a notebook, whose event loop runs already, in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aresearch(question, **options))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(aresearch(question, **options))).result()
