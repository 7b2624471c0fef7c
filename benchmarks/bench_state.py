"""How small the state stays, and how quickly a long thread opens: python benchmarks/bench_state.py [TURNS]

Sizes: one question at standard depth over a web of synthetic pages, of which 50 and 500 are read. "held" is what
LangGraph holds at a checkpoint, as JSON, the tasks that wait to be done included; "stored" is what was written for it
at most: its row, all parts of the thread, and the notes that it is the first to name. "whole" is the state as the
stages see it.

Turns: questions at quick depth about the companies that come with OpenAssay, on one thread. Opening is the view, the
report, the runs and the first page of the history, best of five; a further question is timed in turn with one on a
fresh thread, best of five each;
docs/quality.md shows what was measured.
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import keep, keep_curve
from openassay import bootstrap
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.engine import Engine
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.nodes import search
from openassay.protocols import Cache, PageReader
from openassay.settings import Settings, load
from openassay.state import note_names
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.testing import FakePages
from tests.fakes.web import LargeRemote

QUESTION = (
    "How deep is Lake Marrow, which fish live in it, how cold is its water, how many stations are there, "
    "and who observes them?"
)
TALK = (
    "What's happening with {}?", "What about their stock?", "Who are their competitors?", "Tell me more.",
    "Compare them to Apple.",
)  # fmt: skip
COMPANIES = ("Apple", "Tesla", "Microsoft")
BEST_OF = 5


class Step(NamedTuple):
    number: int
    held: int
    stored: int


class Reading(NamedTuple):
    read: int  # pages
    whole: int
    steps: list[Step]


# Sizes ------------------------------------------------------------------------------------------------


async def reading(settings: Settings, web: LargeRemote, question: str) -> Reading:
    readable = FakePages()
    for page in web.documents:
        readable.put(page.url, page)

    @asynccontextmanager
    async def pages(settings: Settings, cache: Cache | None = None) -> AsyncIterator[PageReader]:
        yield readable

    real, bootstrap.open_pages = bootstrap.open_pages, pages
    try:
        async with bootstrap.open_engine(settings, lambda options: ([web], {})) as engine:
            run = await engine.start(question, ResearchOptions(source="wide"))
            outcome = await engine.wait(run.id)
            assert outcome.report is not None, outcome.run.error
            whole = len(json.dumps(await engine.state(run.thread)))
    finally:
        bootstrap.open_pages = real
    return Reading(len(set(readable.asked)), whole, await steps(settings.data_dir, run.thread))


async def steps(data: Path, thread: str) -> list[Step]:
    """Of the thread's checkpoints in a data directory that nobody has open, oldest first."""
    with SqliteDatabase(data / "openassay.sqlite3") as database:
        saver = SqlCheckpointSaver(Rows(database))
        kept = [one async for one in saver.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})]
    named: set[str] = set()
    found = []
    for one in reversed(kept):
        values = one.checkpoint["channel_values"]
        fresh = set(note_names(values)) - named
        named |= fresh
        held = len(json.dumps(values, default=lambda send: send.arg))
        found.append(Step(one.metadata["step"], held, _stored(data, thread, one.checkpoint["id"], fresh)))
    return found


def _stored(data: Path, thread: str, checkpoint: str, notes: set[str]) -> int:
    database = sqlite3.connect(data / "openassay.sqlite3")
    [row] = database.execute("SELECT length(payload) + length(metadata) FROM checkpoints WHERE id = ?", (checkpoint,))
    [parts] = database.execute("SELECT coalesce(sum(length(payload)), 0) FROM parts WHERE thread = ?", (thread,))
    sizes = dict(database.execute("SELECT name, length(content) FROM notes WHERE thread = ?", (thread,)))
    database.close()
    return int(row[0] + parts[0] + sum(sizes[name] for name in notes))


def wide(data: Path, per_question: int) -> Settings:
    """So many pages a sub-question, even above what OpenAssay allows."""
    search.MAX_HITS = max(search.MAX_HITS, per_question)
    chosen = load(data_dir=data, budget={"requests": 100_000})
    harvest = chosen.harvest.model_copy(update={"pages_per_question": per_question})
    limits = {"documents_per_question": per_question, "passages_per_question": 4 * per_question}
    return chosen.model_copy(update={"harvest": harvest, "reading": chosen.reading.model_copy(update=limits)})


def measure_sizes() -> None:
    print(f"{'pages read':>10} {'whole KB':>9} {'most held KB':>13} {'most stored KB':>15} {'checkpoints':>12}")
    found: list[tuple[int, float, float, float, int]] = []
    for pages, per_question in ((50, 50), (5_000, 120)):
        with tempfile.TemporaryDirectory() as folder:
            done = asyncio.run(reading(wide(Path(folder), per_question), LargeRemote(pages), QUESTION))
        held, stored = (max(sizes) / 1024 for sizes in list(zip(*done.steps, strict=True))[1:])
        found.append((done.read, done.whole / 1024, held, stored, len(done.steps)))
        print("{:>10} {:>9.0f} {:>13.1f} {:>15.1f} {:>12}".format(*found[-1]), flush=True)
    keep(
        "state",
        ("pages read", "held at a checkpoint, at most", "stored for it, at most", "the state as stages see it"),
        [(read, f"{held:.1f} KB", f"{stored:.1f} KB", f"{whole:.0f} KB") for read, whole, held, stored, _ in found],
    )  # fmt: skip
    keep_curve(
        "state-size", ("State of a run at a checkpoint", "pages read", "KB"),
        {"stored": [(one[0], one[3]) for one in found], "held": [(one[0], one[2]) for one in found]},
        note="Pages, passages and claims are rows of the database; a checkpoint names them.",
    )  # fmt: skip


# Turns ------------------------------------------------------------------------------------------------


async def converse(engine: Engine, turns: int) -> str:
    thread = None
    for turn in range(turns):
        question = TALK[turn % len(TALK)].format(COMPANIES[turn // len(TALK) % len(COMPANIES)])
        thread = await ask(engine, question, thread)
    assert thread is not None
    return thread


async def ask(engine: Engine, question: str, thread: str | None) -> str:
    run = await engine.start(question, ResearchOptions(source="demo", depth=Depth.QUICK), thread=thread)
    outcome = await engine.wait(run.id)
    assert outcome.report is not None, outcome.run.error
    return run.thread


async def opened(engine: Engine, thread: str) -> None:
    """What a reader of a thread sees first."""
    await engine.view(thread)
    await engine.history.report(thread)
    await engine.threads.runs(thread)
    await engine.history.list_page(thread)


async def best(*calls: Callable[[], Awaitable[Any]]) -> list[float]:
    """Seconds of each, taken in turn so that all have the same luck."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(BEST_OF):
        for times, call in zip(taken, calls, strict=True):
            began = time.perf_counter()
            await call()
            times.append(time.perf_counter() - began)
    return [min(times) for times in taken]


async def measure_turns(data: Path, turns: int) -> None:
    async with bootstrap.open_engine(load(data_dir=data)) as engine:
        thread, short = await converse(engine, turns), await converse(engine, 1)
        question = "What's happening with Tesla?"
        opening = await best(lambda: opened(engine, short), lambda: opened(engine, thread))
        asking = await best(lambda: ask(engine, question, None), lambda: ask(engine, question, thread))
    times = asking[1] / asking[0]
    rows = [(1, opening[0] * 1000, asking[0] * 1000, 1.0), (turns, opening[1] * 1000, asking[1] * 1000, times)]
    print(f"\n{'turns':>10} {'opening ms':>11} {'a question ms':>14} {'of a fresh one':>15}")
    for row in rows:
        print("{:>10} {:>11.0f} {:>14.0f} {:>15.2f}".format(*row))
    keep(
        "turns", ("turns of the thread", "opens in", "a question takes", "against one on a fresh thread"),
        [(count, f"{opens:.0f} ms", f"{takes:.0f} ms", f"{of:.2f}") for count, opens, takes, of in rows],
    )  # fmt: skip


def main(turns: int) -> None:
    measure_sizes()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_turns(Path(folder), turns))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
