"""What becomes of a run when its provider fails, in every way the fake provider knows, 25 runs each.

First every fault by itself, at half of all calls. Then all faults that need no patience at 30% of all calls. A run has
ended well when its report stands (complete, partial or an honest nothing) and no reservation is open; what was booked
is held against what the provider would bill. Names of faults as arguments choose some.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.llm.names import parse_name
from openassay.llm.prices import find_price
from openassay.llm.router import ModelRouter
from openassay.models.event import RunStatus
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions
from openassay.settings import Settings, load
from openassay.storage.ledger import SqlLedger
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.fakes.llm_faults import FAULTS
from tests.fakes.llm_server import FakeLlmServer, FaultShare
from tests.fakes.model import FakeModel

RUNS = 25
SIDE_BY_SIDE = 5
QUESTION = "What's happening with Tesla and its stock?"
MODELS = {"openai": "openai:gpt-4o", "anthropic": "anthropic:claude-sonnet-4-5"}
ENDED = {RunStatus.DONE}


class Ending(NamedTuple):
    run: str
    status: str
    finished: bool
    booked: int
    unconfirmed: int


class Clock:
    """Pauses are decided and counted, not waited out; a provider that is left alone is so for 0.3 s instead of 30."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def __call__(self) -> float:
        return 100 * time.monotonic() + self._skipped

    async def sleep(self, seconds: float) -> None:
        self._skipped += seconds
        await asyncio.sleep(0)


@asynccontextmanager
async def world(provider: FakeLlmServer, folder: Path, vendor: str) -> AsyncIterator[Engine]:
    settings = load(
        data_dir=folder, source="demo", depth="quick", log_level="error",
        llm={
            "model": MODELS[vendor], "endpoints": {"openai": f"{provider.url}/v1", "anthropic": provider.url},
            "call_seconds": 2.0, "step_seconds": 60_000,
        },
    )  # fmt: skip
    async with open_engine(settings) as engine:
        router: ModelRouter = engine._runner.reasoners._router  # type: ignore[attr-defined]
        clock = Clock()
        router.sleep, router.clock = clock.sleep, clock
        yield engine


async def one(engine: Engine) -> str:
    run = await engine.start(QUESTION, ResearchOptions(depth=engine.settings.depth, source="demo"))
    async with asyncio.timeout(120):
        await engine.wait(run.id)
    return run.id


async def endings(engine: Engine, runs: list[str], database: SqliteDatabase) -> list[Ending]:
    ledger = SqlLedger(Rows(database))
    found = []
    for run in runs:
        outcome = await engine.outcome(run)
        calls = await ledger.calls(run)
        closed = all(call.state in ("settled", "void") for call in calls)
        typed = outcome.run.status in ENDED and outcome.report is not None and closed
        micros = sum(call.micros for call in calls)
        unconfirmed = sum(call.micros for call in calls if not call.confirmed)
        status = str(outcome.report.status) if outcome.report else f"{outcome.run.status}: {outcome.run.error}"
        found.append(Ending(run, status, typed, micros, unconfirmed))
    return found


def bill(provider: FakeLlmServer, settings: Settings) -> int:
    """What the providers would charge, in micro-dollars; a run may have gone on to the next tier."""
    return sum(
        find_price(parse_name(f"{call.format}:{call.model}"), settings)(call.prompt_tokens, call.completion_tokens)
        for call in provider.billable_calls
    )


async def trial(vendor: str, faults: FaultShare, runs: int) -> tuple[list[Ending], int, Counter[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with FakeLlmServer(FakeModel(), faults=faults) as provider:
            async with world(provider, folder, vendor) as engine:
                ids: list[str] = []
                for _ in range(0, runs, SIDE_BY_SIDE):
                    ids += await asyncio.gather(*(one(engine) for _ in range(min(SIDE_BY_SIDE, runs))))
                with SqliteDatabase(folder / "openassay.sqlite3") as database:
                    found = await endings(engine, ids, database)
            met = Counter(call.fault or "" for call in provider.calls)
            return found, bill(provider, engine.settings), met


async def main() -> None:
    for vendor in MODELS:
        os.environ[f"{vendor.upper()}_API_KEY"] = "sk-bench-not-a-key"
    wrong: list[str] = []
    began = time.perf_counter()
    total = 0
    chosen = [fault for fault in FAULTS.values() if not sys.argv[1:] or fault.name in sys.argv[1:]]
    for number, fault in enumerate(chosen):
        vendor = sorted(fault.formats & set(MODELS))[number % len(fault.formats & set(MODELS))]
        found, billed, met = await trial(vendor, FaultShare(0.5, number, [fault]), RUNS)
        total += len(found)
        booked, unconfirmed = sum(one.booked for one in found), sum(one.unconfirmed for one in found)
        ended = sum(one.finished for one in found)
        statuses = dict(Counter(one.status for one in found))
        print(
            f"{fault.name:26} {vendor:9} met {met[fault.name]:4}  ended {ended}/{len(found)} {statuses}  "
            f"billed ${billed / MICRO:.4f}  booked ${booked / MICRO:.4f}  unconfirmed ${unconfirmed / MICRO:.4f}",
            flush=True,
        )
        if ended != len(found):
            wrong.append(f"{fault.name}: {len(found) - ended} runs without a typed ending")
        if booked < billed:
            wrong.append(f"{fault.name}: ${(billed - booked) / MICRO:.6f} billed and not booked")
        if not fault.billed and booked != billed:
            wrong.append(f"{fault.name} is not billed, and added ${(booked - billed) / MICRO:.6f}")
    for vendor in () if sys.argv[1:] else MODELS:
        found, billed, met = await trial(vendor, FaultShare(0.3, 7), 100)
        whole = sum(one.finished for one in found)
        booked = sum(one.booked for one in found)
        faulty = 1 - met[""] / met.total()
        statuses = dict(Counter(one.status for one in found))
        print(f"{faulty:.0%} faults, {vendor}: {whole} of {len(found)} runs finish, {statuses}")
        if whole < 0.99 * len(found) or booked < billed:
            wrong.append(f"at 30% faults {vendor} finished {whole} of {len(found)}")
    print(f"{len(chosen)} faults, {total} runs, {time.perf_counter() - began:.0f} s")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    asyncio.run(main())
