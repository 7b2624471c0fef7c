"""Runs that are killed at random moments and taken up again, on SQLite or PostgreSQL, with a provider that keeps books.

A life is a process that starts or resumes the run; SIGKILL ends it at a moment drawn evenly from the length of a life
that nobody ends. What the provider was asked is held against the ledger line by line.
"""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from openassay.bootstrap import open_engine, open_rows
from openassay.engine.engine import Engine
from openassay.errors import ThreadBusyError
from openassay.models.event import RunStatus
from openassay.models.spend import LedgerCall
from openassay.models.thread import ResearchOptions, Run
from openassay.settings import Settings, load
from openassay.storage.ledger import SqlLedger
from openassay.storage.threads import SqlThreads
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel

QUESTION = "What's happening with Tesla and its stock?"
LATENCY = (0.05, 0.4)  # seconds an answer takes, so that kills find calls in flight
LONGEST = 120.0  # seconds a life may take before something is wrong
LEASE = 2.0  # seconds
PRELOADED = ["benchmarks.killing", "openassay.bootstrap", "openassay.engine.checkpoints", "langgraph.graph", "openai"]


class Place(NamedTuple):
    """Where the run is kept, and whom it asks."""

    folder: str
    provider: str
    database: str | None = None

    def settings(self) -> Settings:
        os.environ["OPENAI_API_KEY"] = "sk-bench-not-a-key"
        if self.database:
            os.environ["DATABASE_URL"] = self.database
        return load(
            data_dir=self.folder, source="demo", depth="quick", log_level="error", fleet={"lease_seconds": LEASE},
            persistence={"backend": "postgres" if self.database else "sqlite"},
            llm={"model": "openai:gpt-4o", "endpoints": {"openai": f"{self.provider}/v1"}},
        )  # fmt: skip


def live(place: Place, thread: str) -> None:
    """One life: begin the run, or go on with it."""
    asyncio.run(_live(place, thread))


async def _live(place: Place, thread: str) -> None:
    settings = place.settings()
    async with open_engine(settings) as engine:
        if not thread:
            run = await engine.start(QUESTION, ResearchOptions(depth=settings.depth, source="demo"))
        elif (await engine.threads.runs(thread))[-1].status is RunStatus.DONE:
            return
        else:
            run = await _resumed(engine, thread)
        outcome = await engine.wait(run.id)
        if outcome.report is None:
            raise SystemExit(f"no report: {outcome.run.status} {outcome.run.error}")


async def _resumed(engine: Engine, thread: str) -> Run:
    """On PostgreSQL a thread is its killed process's until its lease ends."""
    while True:
        try:
            return await engine.resume(thread)
        except ThreadBusyError:
            await asyncio.sleep(0.1)


@dataclass
class Tally:
    kills: int = 0
    runs: int = 0
    lost_runs: list[str] = field(default_factory=list)
    paid_again: list[str] = field(default_factory=list)
    unbooked: list[str] = field(default_factory=list)
    ambiguous: int = 0
    requests: int = 0

    def sound(self) -> bool:
        return not (self.lost_runs or self.paid_again or self.unbooked)

    def line(self, where: str) -> str:
        return (
            f"{where:10} {self.kills} kills in {self.runs} runs: {len(self.lost_runs)} runs lost, "
            f"{len(self.paid_again)} answers paid again, {self.ambiguous} calls in flight booked as ambiguous, "
            f"{len(self.unbooked)} requests not in the books (of {self.requests})"
        )


async def trial(folder: Path, kills: int, seed: int, database: str | None = None) -> Tally:
    """So many kills, spread over as many runs as it takes; every run is brought to its end."""
    chance = random.Random(seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    tally = Tally()
    async with FakeLlmServer(FakeModel(), latency=lambda _: chance.uniform(*LATENCY)) as provider:
        place = Place(str(folder), provider.url, database)
        whole = await _undisturbed(context, place)
        while tally.kills < kills:
            before = len(provider.calls)
            thread = await _killed_at_random(context, place, chance, whole, tally, kills)
            await _examined(place, thread, provider, before, tally)
    return tally


async def _undisturbed(context: Any, place: Place) -> float:
    """Seconds a life takes, the second time."""
    seconds = 0.0
    for _ in range(2):
        began = time.monotonic()
        await _ended(_born(context, place, ""))
        seconds = time.monotonic() - began
    return seconds


def _born(context: Any, place: Place, thread: str) -> BaseProcess:
    process: BaseProcess = context.Process(target=live, args=(place, thread))
    process.start()
    return process


async def _ended(process: BaseProcess, seconds: float = LONGEST) -> bool:
    """Whether it came to an end by itself in that time."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if process.exitcode is not None:
            return True
        await asyncio.sleep(0.005)
    return process.exitcode is not None


async def _killed_at_random(
    context: Any, place: Place, chance: random.Random, whole: float, tally: Tally, most: int
) -> str:
    """One run, from its beginning to its end, killed up to eight times on the way."""
    tally.runs += 1
    thread, before = "", await _threads(place)
    for life in range(12):
        process = _born(context, place, thread)
        disturbed = life < 8 and tally.kills < most
        if not await _ended(process, chance.uniform(0, whole) if disturbed else LONGEST):
            os.kill(process.pid or 0, signal.SIGKILL)
            tally.kills += 1
        process.join()
        new = await _threads(place) - before
        thread = thread or (new.pop() if new else "")
        if process.exitcode == 0:
            return thread
    return thread


@asynccontextmanager
async def _kept(place: Place) -> AsyncIterator[tuple[SqlThreads, SqlLedger]]:
    async with AsyncExitStack() as stack:
        rows, _ = open_rows(place.settings(), Path(place.folder), stack)
        yield SqlThreads(rows), SqlLedger(rows)


async def _threads(place: Place) -> set[str]:
    """Those with a run."""
    async with _kept(place) as (threads, _):
        return {kept.id for kept in await threads.list_recent(limit=10_000) if await threads.runs(kept.id)}


async def _examined(place: Place, thread: str, provider: FakeLlmServer, before: int, tally: Tally) -> None:
    async with _kept(place) as (threads, ledger):
        [run] = await threads.runs(thread)
        if run.status is not RunStatus.DONE:
            tally.lost_runs.append(f"{thread}: {run.status} {run.error}")
        calls = await ledger.calls(run.id)
    asked = len(provider.calls) - before
    tally.requests += asked
    _held_against_the_books([call for call in calls if call.provider == "openai"], asked, tally)


def _held_against_the_books(calls: list[LedgerCall], asked: int, tally: Tally) -> None:
    """An attempt without an answer was lost in flight; whatever had an answer was asked for once."""
    made = [call for call in calls if call.state in ("settled", "lost") or (call.state == "void" and call.error)]
    attempts: dict[str, list[LedgerCall]] = {}
    for call in calls:
        attempts.setdefault(call.key.rpartition("#")[0], []).append(call)
    for name, tries in attempts.items():
        answered = [n for n, call in enumerate(tries) if call.state == "settled" and not call.error]
        if any(call.state != "void" for call in tries[answered[0] + 1 :] if answered):
            tally.paid_again.append(name)
    tally.ambiguous += sum(call.state == "lost" and not call.confirmed for call in calls)
    sent = sum(call.state != "void" for call in made)
    if asked > sent:
        tally.unbooked.append(f"{asked} requests, {sent} in the books")
