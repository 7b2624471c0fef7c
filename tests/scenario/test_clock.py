"""`openassay review timers` outlives a database that is away for a while."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from openassay.cli import review as clocks
from openassay.cli.review import settle_overdue, wait_until_due
from openassay.engine.engine import Engine
from openassay.engine.interrupts import InterruptService
from openassay.errors import StorageError
from openassay.models.thread import Review, Run


class Away(InterruptService):
    """An engine whose database cannot be reached the first few times it is asked for anything."""

    def __init__(self, faults: int) -> None:
        self.faults = faults
        self.asked = 0

    def _database(self) -> None:
        self.asked += 1
        if self.asked <= self.faults:
            raise StorageError("the database cannot be reached", help="Start it.", retryable=True)

    async def seconds_until_due(self) -> float:
        self._database()
        return 0.0

    async def reviews(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        self._database()
        return []

    async def answer_overdue(self, *, queued: bool = False) -> list[Run]:
        return []


@pytest.mark.requirement("F-09")
async def test_timers_go_on_after_a_database_was_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clocks, "RETRY_SECONDS", 0.01)
    engine = cast("Engine", SimpleNamespace(interrupts=Away(faults=3)))
    async with asyncio.timeout(5), asyncio.TaskGroup() as runs:
        looks = []
        for _ in range(3):
            await wait_until_due(engine)
            looks.append(await settle_overdue(engine, runs))
    assert looks == [False, True, True]
    assert capsys.readouterr().err.count("the database cannot be reached") == 1
