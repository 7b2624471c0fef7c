"""Stored threads that are damaged by accident, or altered on purpose, and what is made of them.

A thread that is finished and one that was stopped half-way are kept, then damaged in a copy. Everything a person or a
run would see of the copy is read through the engine, after the check that every run begins with. An alteration is
*refused* (an error of ours), *harmless* (all that is seen is what it was), or *wrong*.
"""

import asyncio
import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.forging import Forger
from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.engine.journal import read_journal
from openassay.errors import IntegrityError, OpenAssayError
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.settings import Settings, load
from openassay.storage.sealed_rows import Seals

DATABASE = "openassay.sqlite3"
KEY = "a key that only this measurement has"
QUESTIONS = ("What's happening with Apple?", "What's happening with Tesla?")
OPTIONS = ResearchOptions(depth=Depth.QUICK, source="demo")


@dataclass
class Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def count(self, outcome: str, what: str) -> None:
        self.outcomes[outcome] += 1
        if outcome not in ("refused", "harmless"):
            self.wrong.append(f"{outcome}: {what}")

    def line(self, title: str) -> str:
        total = sum(self.outcomes.values())
        refused, harmless = self.outcomes["refused"], self.outcomes["harmless"]
        return f"{title:34} {total:5} alterations: {refused} refused, {harmless} harmless, {len(self.wrong)} wrong"


@dataclass(frozen=True)
class Place:
    folder: Path
    keyed: bool = False

    def settings(self) -> Settings:
        keys = {"openassay_storage_key": KEY} if self.keyed else {}
        return load(
            data_dir=self.folder, source="demo", log_level="error", offline=True, keys=keys,
            persistence={"encrypt": self.keyed},
        )  # fmt: skip

    @property
    def seals(self) -> Seals:
        return Seals(KEY, encrypt=True) if self.keyed else Seals()


# -- what is there ----------------------------------------------------------------------------------------------------


async def prepare(place: Place) -> list[Path]:
    """A finished thread and a stopped one; returns copies of the database from moments before."""
    earlier: list[Path] = []
    async with open_engine(place.settings()) as engine:
        run = await engine.start(QUESTIONS[0], OPTIONS)
        async for event in engine.events(run.id):
            if event.kind == "leave" and event.stage in ("plan", "search", "consolidate", "write"):
                earlier.append(_copied(place.folder / DATABASE, f"before-{len(earlier)}.sqlite3"))
        await engine.wait(run.id)
        earlier.append(_copied(place.folder / DATABASE, f"before-{len(earlier)}.sqlite3"))
        stopped = await engine.start(QUESTIONS[1], OPTIONS)
        async for event in engine.events(stopped.id):
            if (event.kind, event.stage) == ("leave", "fuse"):
                await engine.cancel(stopped.id)
        await engine.wait(stopped.id)
    with closing(sqlite3.connect(place.folder / DATABASE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return earlier[:-1]  # since the last one nothing of the first thread has changed


def _copied(path: Path, name: str) -> Path:
    target = path.with_name(name)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target


async def seen(place: Place) -> str:
    """A digest of everything there is to see, once every thread has passed the check a run begins with."""
    told: list[Any] = []
    async with open_engine(place.settings()) as engine:
        for summary in await engine.overview(100):
            if summary.damaged:
                raise IntegrityError(f"thread {summary.id} is listed as damaged")
            told.append([summary.plain(), *await _seen(engine, summary.id)])
    return sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


async def _seen(engine: Engine, thread: str) -> list[Any]:
    runner = engine._runner
    await runner.check(thread)
    runs = await engine.threads.runs(thread)
    ledger = runner.ledger
    assert ledger is not None
    return [
        (await engine.threads.get(thread)).plain(),
        [run.plain() for run in runs],
        [[event.plain() for event in await runner.log.since(run.id, 0)] for run in runs],
        [await ledger.export(run.id) for run in runs],
        await engine.state(thread),
        (await engine.view(thread)).plain(),
        [review.plain() for review in await engine.interrupts.reviews(thread)],
    ]


async def judged(place: Place, original: str) -> str:
    try:
        found = await seen(place)
    except OpenAssayError:
        return "refused"
    except Exception as error:  # noqa: BLE001  # what is not an error of ours would be a traceback for a person
        return f"broke ({type(error).__name__})"
    return "harmless" if found == original else "wrong"


# -- accidents --------------------------------------------------------------------------------------------------------


def flipped(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    at, bit = chance.randrange(len(content)), chance.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"{path.name} byte {at} bit {bit}"


async def flips(place: Place, work: Path, count: int, chance: random.Random) -> Tally:
    """Single bits of the database."""
    tally, original = Tally(), await seen(place)
    for _ in range(count):
        copy = _work_copy(place, work)
        what = flipped(copy.folder / DATABASE, chance)
        tally.count(await judged(copy, original), what)
    return tally


def journal_flips(place: Place, work: Path, count: int, chance: random.Random) -> Tally:
    """Single bits of the journal's files; each file as often as it is large."""
    tally = Tally()
    [journal, *_] = sorted((place.folder / "checkpoints").iterdir())
    original = _journal(journal, place.seals)
    files = [path for path in sorted(journal.rglob("*")) if path.is_file()]
    sizes = [path.stat().st_size for path in files]
    copy = work / journal.name
    for _ in range(count):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(journal, copy)
        [chosen] = chance.choices(files, sizes)
        what = flipped(copy / chosen.relative_to(journal), chance)
        try:
            outcome = "harmless" if _journal(copy, place.seals) == original else "wrong"
        except OpenAssayError:
            outcome = "refused"
        except Exception as error:  # noqa: BLE001
            outcome = f"broke ({type(error).__name__})"
        tally.count(outcome, what)
    return tally


def _journal(folder: Path, seals: Seals) -> str:
    kept = read_journal(folder, seals)
    held = (kept.rows, kept.events, kept.calls, kept.checkpoints, kept.results, kept.documents, kept.notes)
    return sha256(json.dumps(held, sort_keys=True, default=str).encode()).hexdigest()


def _work_copy(place: Place, work: Path) -> Place:
    target = work / "copy"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(place.folder / DATABASE, target)
    return Place(target, place.keyed)


# -- on purpose -------------------------------------------------------------------------------------------------------


async def forgeries(place: Place, work: Path, earlier: list[Path], count: int, chance: random.Random) -> Tally:
    tally, original = Tally(), await seen(place)
    for number in range(count):
        copy = _work_copy(place, work)
        forger = Forger(copy.folder / DATABASE, earlier, chance)
        kinds: list[Callable[[], str]] = [
            forger.edit, forger.swap, forger.roll_back, forger.remove, forger.in_the_clear, forger.carry,
            forger.make_up, forger.make_up_heads,
        ]  # fmt: skip
        with closing(forger):
            what = kinds[number % len(kinds)]()
        tally.count(await judged(copy, original), what)
    return tally


def trial(folder: Path, in_database: int, in_journal: int, forged: int, seed: int) -> Iterator[tuple[str, Tally]]:
    chance = random.Random(seed)
    plain, keyed, work = Place(folder / "plain"), Place(folder / "keyed", keyed=True), folder / "work"
    asyncio.run(prepare(plain))
    yield "single bits of the database, no key", asyncio.run(flips(plain, work, in_database, chance))
    yield "single bits of the journal, no key", journal_flips(plain, work, in_journal, chance)
    earlier = asyncio.run(prepare(keyed))
    yield (
        "rows edited, exchanged, put back, removed; with a key",
        asyncio.run(forgeries(keyed, work, earlier, forged, chance)),
    )
