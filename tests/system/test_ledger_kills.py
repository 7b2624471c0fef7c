"""Processes that spend from one account and are killed at it: the cap holds, and nearly all of it stays usable."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from openassay.errors import BudgetError
from openassay.models.spend import MICRO, Caps, Reservation
from openassay.storage.ledger import SqlLedger
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase

WORKERS = 6
CALLS = 400  # of each worker: 2,400 for a cap that holds 2,000 of them
AT_ONCE = 50  # calls of one worker that are reserved or wait for money: all are sent long before they are overdue
WORST = 1_000  # micro-dollars; a call costs three quarters of it or more, so that all calls together cost too much
CAP = 2_000 * WORST
KILLS = 6
IN_FLIGHT = 3  # calls of one worker that are sent and not settled, so a kill loses three at most
PATIENCE = 60.0

# Imports in 0.25 s. A worker that was killed begins again with the same keys, as a resumed run does.
WORKER = """
import asyncio, os, random, sys
from pathlib import Path
from openassay.errors import BudgetError, StorageError
from openassay.models.spend import Charge, Reservation
from openassay.storage.ledger import SqlLedger
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase

path, bill, worker, calls, worst, at_once, in_flight = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
provider = os.open(bill, os.O_WRONLY | os.O_APPEND)
chance = random.Random()

async def ask(ledger, key, gate):
    await ledger.reserve(Reservation(key=key, run="r", step="read", provider="p", model="m", micros=worst, tokens=10,
                                     seconds=10))
    async with gate:
        await ledger.record_send(key)
        cost = chance.randint(worst * 3 // 4, worst)
        os.write(provider, f"{key} {cost}\\n".encode())
        await asyncio.sleep(chance.uniform(0, 0.01))
        await ledger.store_answer(key, "{}")
        usage = chance.choices([cost, None, cost * 10**6], [98, 1, 1])[0]
        await ledger.settle(key, Charge(micros=usage, prompt_tokens=5))

async def settled(ledger, key, gate):
    while await ledger.get_answer(key) is None:
        try:
            return await ask(ledger, key, gate)
        except BudgetError as refusal:  # unless only calls under way stand in the way, there is no money left
            if not refusal.retryable:
                return
        except StorageError:  # the reservation of a worker that died is not overdue yet, or this one is
            pass
        await asyncio.sleep(chance.uniform(0.5, 1))  # a run waits as long

async def some(ledger, keys, gate):
    for key in keys:
        await settled(ledger, key, gate)

async def main(ledger):
    gate = asyncio.Semaphore(in_flight)
    keys = iter([f"{worker}/{n}" for n in range(calls)])
    await asyncio.gather(*(some(ledger, keys, gate) for _ in range(at_once)))

with SqliteDatabase(path) as database:
    asyncio.run(main(SqlLedger(Rows(database))))
"""


class Workers:
    """Killed and started again; every one is ended with the test."""

    def __init__(self, path: Path, bill: Path) -> None:
        self._path, self._bill = path, bill
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        words = map(str, (self._path, self._bill, number, CALLS, WORST, AT_ONCE, IN_FLIGHT))
        command = [sys.executable, "-W", "error", "-c", WORKER, *words]
        self.running[number] = subprocess.Popen(command, env=environment)

    def kill(self, number: int) -> None:
        process = self.running.pop(number)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def done(self) -> bool:
        codes = [process.poll() for process in self.running.values()]
        assert not any(codes), f"a worker failed: {codes}"
        return codes == [0] * WORKERS


@contextmanager
def workers(path: Path, bill: Path) -> Iterator[Workers]:
    bill.touch()
    group = Workers(path, bill)
    try:
        for number in range(WORKERS):
            group.start(number)
        yield group
    finally:
        for number in list(group.running):
            group.kill(number)


def check(connection: sqlite3.Connection) -> int:
    """No cap is passed at any moment; returns how many calls have been settled."""
    booked, settled = connection.execute("SELECT total(micros), total(state = 'settled') FROM calls").fetchone()
    assert booked <= CAP
    return int(settled)


def kill_at_random(group: Workers, connection: sqlite3.Connection) -> None:
    """Spread over the work, each at a moment nobody has chosen; the victim begins again."""
    marks = sorted(random.sample(range(20, 900), KILLS))
    until = time.monotonic() + PATIENCE
    while not group.done():
        assert time.monotonic() < until, "the workers have not come to an end"
        settled = check(connection)
        if marks and settled >= marks[0]:
            marks.pop(0)
            victim = random.choice([number for number, process in group.running.items() if process.poll() is None])
            group.kill(victim)
            check(connection)
            group.start(victim)
        time.sleep(0.01)
    assert not marks, "not every kill came to pass"


@pytest.mark.slow
@pytest.mark.requirement("X-06", "W-15")
async def test_the_cap_holds_when_workers_are_killed(tmp_path: Path) -> None:
    bill = tmp_path / "bill"
    with SqliteDatabase(tmp_path / "main.db") as database, database.connection() as connection:
        rows = Rows(database)
        ledger = SqlLedger(rows)
        await ledger.open("r", Caps(micros=CAP, tokens=10**6, requests=10**5, finish_share=0))
        with workers(database.path, bill) as group:
            kill_at_random(group, connection)
        await ledger.recover("r", all=True)
        check(connection)
        rows.check("ledger", "r", deep=True)

        spent = await ledger.get_spend("r")
        calls = await ledger.calls("r")
        billed = totals(line.split() for line in bill.read_text().splitlines())
        booked = totals((call.key, call.micros) for call in calls)
        lost = [call for call in calls if call.state == "lost"]
        assert len(calls) >= 2_000
        assert await ledger.has_refusals("r"), "the cap was reached"
        assert [key for key in billed if billed[key] > booked[key]] == [], "the provider asks for what was not booked"
        assert booked.total() == round(spent.usd * MICRO) <= CAP
        assert sum(call.micros for call in lost) <= KILLS * IN_FLIGHT * WORST

        usable = await reserved_until_refused(ledger)
        check(connection)
        settled = sum(call.micros for call in calls if call.state == "settled")
        assert settled + usable >= 0.99 * CAP


def totals(pairs: Iterable[Sequence[Any]]) -> Counter[str]:
    """Micro-dollars of each key."""
    sums = Counter[str]()
    for key, micros in pairs:
        sums[key] += int(micros)
    return sums


async def reserved_until_refused(ledger: SqlLedger) -> int:
    """All that is left, taken in ever smaller calls."""
    taken, micros = 0, CAP
    while micros:
        try:
            await ledger.reserve(
                Reservation(key=f"rest/{taken}", run="r", step="rest", provider="p", model="m", micros=micros, tokens=0)
            )
        except BudgetError:
            micros //= 2
        else:
            taken += micros
    return taken
