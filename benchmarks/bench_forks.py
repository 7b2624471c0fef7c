"""Forks at each checkpoint of a finished thread, all of them finished: python benchmarks/bench_forks.py

First without a model, on the example library, with a second question on the thread. Then with a scripted model of a
fake provider, which counts what it is asked: a branch that changes nothing pays for nothing. Every branch must end with
a report that states what its parent's does, and no byte of the parent's rows may change. Last, how long the history of
a thread with 2,000 checkpoints takes.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import keep
from openassay.bootstrap import open_engine
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.engine import Engine
from openassay.models.plan import Depth
from openassay.models.report import ReportData
from openassay.models.thread import BranchChanges, ResearchOptions
from openassay.settings import load
from openassay.storage.database import ALL_TABLES, CHECKPOINTS
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel

LIBRARY = Path(__file__).resolve().parent.parent / "examples" / "library"
ASKED = ("What is the value of the Hubble constant, and why do measurements of it disagree?", Depth.STANDARD)
THEN = ("How was it measured with supernovae?", Depth.QUICK)
COMPANY = ("What's happening with Tesla and its stock?", Depth.STANDARD)
MANY = 2_000
CHANGES = (
    BranchChanges(style="executive", words=150),
    BranchChanges(deliverable="a one-page briefing"),
    BranchChanges(depth=Depth.QUICK),
    BranchChanges(edits=({"op": "add", "text": "How precise are the measurements?"},)),
    BranchChanges(question="How old is the universe?"),
)


class Forked(NamedTuple):
    moments: int
    done: int
    alike: int
    unchanged: bool
    seconds: float


def facts(report: ReportData | None) -> set[str]:
    sections = report.sections if report else ()
    return {s.text for section in sections for s in section.sentences if s.kind == "fact"}


def kept(path: Path, thread: str) -> list[Any]:
    """Every row of a thread."""
    of_runs = "run IN (SELECT id FROM runs WHERE thread = ?)"
    with SqliteDatabase(path) as database, database.connection() as connection:
        return [
            tuple(row)
            for table in ALL_TABLES
            if table.scope in ("thread", "run", "ledger")
            for row in connection.execute(
                f"SELECT * FROM {table.name} WHERE "  # noqa: S608  # names of ours
                + (f"{table.owner} = ?" if table.scope == "thread" else of_runs),
                (thread,),
            ).fetchall()
        ]


async def ask(engine: Engine, asked: tuple[str, Depth], options: ResearchOptions, thread: str | None = None) -> str:
    question, depth = asked
    run = await engine.start(question, options.model_copy(update={"depth": depth}), thread=thread)
    outcome = await engine.wait(run.id)
    if outcome.report is None:
        sys.exit(f"the parent has no report: {outcome.run.error}")
    return run.thread


async def at_each(engine: Engine, thread: str, path: Path) -> Forked:
    moments = await engine.history.list_page(thread, limit=None)
    ends = {moment.run: moment.checkpoint for moment in moments if not moment.next}
    reports = {
        run: ReportData.model_validate((await engine.history.state(thread, at))["report"]) for run, at in ends.items()
    }
    before, done, alike, began = kept(path, thread), 0, 0, time.perf_counter()
    for moment in moments:
        run = await engine.branches.fork(thread, moment.checkpoint)
        outcome = await engine.wait(run.id)
        done += outcome.report is not None
        alike += facts(outcome.report) == facts(reports[moment.run])
    return Forked(len(moments), done, alike, kept(path, thread) == before, time.perf_counter() - began)


async def with_changes(engine: Engine, thread: str) -> int:
    done = 0
    for changes in CHANGES:
        run = await engine.branches.fork(thread, None, changes)
        done += (await engine.wait(run.id)).report is not None
    return done


@asynccontextmanager
async def modelled(provider: FakeLlmServer, folder: Path) -> AsyncIterator[Engine]:
    settings = load(
        data_dir=folder, source="demo", log_level="error",
        llm={"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}},
    )  # fmt: skip
    async with open_engine(settings) as engine:
        yield engine


async def long_history(folder: Path) -> tuple[float, float]:
    """Seconds for the first page, and for all of it."""
    async with open_engine(load(data_dir=folder, log_level="error")) as engine:
        thread = await ask(engine, ("What's happening with Apple?", Depth.QUICK), ResearchOptions(source="demo"))
    with SqliteDatabase(folder / "openassay.sqlite3") as database:
        rows = Rows(database)
        found = rows.read(CHECKPOINTS, "WHERE thread = ? ORDER BY id", (thread,))
        with rows.open_writer("thread", thread) as writer:
            for number in range(MANY - len(found)):
                row = found[number % len(found)]
                writer.insert(CHECKPOINTS, {**row, "id": f"{row['id'][:-8]}{number:08x}"}, on_conflict="keep")
        began = time.perf_counter()
        outlined = len(await SqlCheckpointSaver(rows).outline(thread))
        print(f"outline of {outlined:,} checkpoints {time.perf_counter() - began:.3f} s")
    async with open_engine(load(data_dir=folder, log_level="error")) as engine:
        began = time.perf_counter()
        await engine.history.list_page(thread)
        page = time.perf_counter() - began
        began = time.perf_counter()
        await engine.history.list_page(thread, limit=None)
        return page, time.perf_counter() - began


def told(name: str, found: Forked) -> bool:
    print(
        f"{name:24} {found.moments:3} checkpoints  {found.done:3} finished  {found.alike:3} state the same  parent "
        f"{'unchanged' if found.unchanged else 'CHANGED'}  {found.seconds:.1f} s",
        flush=True,
    )
    return found.done == found.alike == found.moments and found.unchanged


async def without_model(folder: Path) -> tuple[Forked, int]:
    """Forks at each checkpoint of two questions, and how many of the changes were finished."""
    async with open_engine(load(data_dir=folder, llm={"model": "embedded"}, log_level="error")) as engine:
        options = ResearchOptions(docs=(str(LIBRARY),))
        thread = await ask(engine, ASKED, options)
        await ask(engine, THEN, options, thread)
        return await at_each(engine, thread, folder / "openassay.sqlite3"), await with_changes(engine, thread)


async def with_model(folder: Path) -> tuple[Forked, int, int]:
    """Forks at each checkpoint of a question; the calls that the parent paid, and all branches."""
    async with FakeLlmServer(FakeModel()) as provider, modelled(provider, folder) as engine:
        thread = await ask(engine, COMPANY, ResearchOptions(source="demo"))
        paid = len(provider.billable_calls)
        return await at_each(engine, thread, folder / "openassay.sqlite3"), paid, len(provider.billable_calls) - paid


async def main() -> None:
    os.environ["OPENAI_API_KEY"] = "sk-bench-not-a-key"
    with tempfile.TemporaryDirectory() as name:
        plain, changed = await without_model(Path(name))
    good = told("no model, two questions", plain) and changed == len(CHANGES)
    print(f"{'':24} {len(CHANGES):3} changes      {changed:3} finished")
    with tempfile.TemporaryDirectory() as name:
        paying, paid, again = await with_model(Path(name))
    good = told("a model, one question", paying) and good and paid > 0 and not again
    print(f"{'':24} {paid} calls paid for by the parent, {again} by all branches")
    with tempfile.TemporaryDirectory() as name:
        page, whole = await long_history(Path(name))
    print(f"history of {MANY:,} checkpoints  a page {page:.3f} s  all of it {whole:.3f} s")
    keep("forks", ("", ""), [
        ("forks at each checkpoint of two questions", _in_words(plain)),
        ("forks at each checkpoint with a paid model", _in_words(paying)),
        ("calls that the parent paid, and all its branches", f"{paid}, **{again}**"),
        ("one fork for each kind of change", f"{changed} of {len(CHANGES)} finished"),
        (f"history of {MANY:,} checkpoints", f"a page of it in {1000 * page:.0f} ms, all in {1000 * whole:.0f} ms"),
    ])  # fmt: skip
    if not good or page >= 1.0:
        sys.exit("not as it should be")


def _in_words(found: Forked) -> str:
    parent = "unchanged" if found.unchanged else "CHANGED"
    return f"{found.done} of {found.moments} finished, {found.alike} state the same, parent {parent}"


if __name__ == "__main__":
    asyncio.run(main())
