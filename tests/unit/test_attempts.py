"""Which runs a process takes up beside which."""

import asyncio
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from openassay.engine.engine import Engine
from openassay.models.event import RunStatus
from openassay.models.thread import Run
from openassay.worker.attempts import Attempts

ELSEWHERE = 7.0


class FakeEngine:
    """Runs go on until they are let go."""

    def __init__(self) -> None:
        self.fallen: dict[str, int] = defaultdict(int)
        self.came: list[str] = []
        self.gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.threads = self

    async def crash_count(self, thread: str) -> int:
        return self.fallen[thread]

    async def claim(self, run: Run) -> bool:
        self.came.append(run.id)
        return True

    async def wait(self, run: str) -> None:
        await self.gates[run].wait()

    async def run(self, id: str) -> Run:
        return made(id, RunStatus.DONE)


def made(id: str, status: RunStatus = RunStatus.QUEUED) -> Run:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Run(id=id, thread=id, question="What?", status=status, started=now, settings="")


@pytest.mark.requirement("W-16")
async def test_a_run_that_outlived_several_processes_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has got somewhere."""
    monkeypatch.setattr("openassay.worker.attempts.POLL_SECONDS", 0.01)
    engine = FakeEngine()
    attempts = Attempts(cast(Engine, engine), retry_seconds=ELSEWHERE)
    engine.fallen["suspect"] = 3

    async def comes(id: str) -> "asyncio.Task[Any]":
        task = asyncio.create_task(attempts.attempt(made(id)))
        await asyncio.sleep(0.05)
        return task

    first = await comes("first")
    suspect = await comes("suspect")
    assert engine.came == ["first"], "it waits for the others to end"
    assert await attempts.attempt(made("second")) == ELSEWHERE, "and others wait for it"
    engine.gates["first"].set()
    await first
    await asyncio.sleep(0.05)
    assert engine.came == ["first", "suspect"]
    assert await attempts.attempt(made("second")) == ELSEWHERE

    engine.fallen["suspect"] = 1
    await asyncio.sleep(0.1)
    second = await comes("second")
    assert engine.came == ["first", "suspect", "second"], "it has got somewhere"
    for id in ("suspect", "second"):
        engine.gates[id].set()
    assert [await suspect, await second] == [None, None]


@pytest.mark.requirement("W-16")
async def test_suspects_come_one_after_the_other() -> None:
    engine = FakeEngine()
    attempts = Attempts(cast(Engine, engine), retry_seconds=ELSEWHERE)
    engine.fallen.update({"one": 3, "two": 4})
    one = asyncio.create_task(attempts.attempt(made("one")))
    await asyncio.sleep(0.05)
    assert await attempts.attempt(made("two")) == ELSEWHERE
    engine.gates["one"].set()
    assert await one is None
    engine.gates["two"].set()
    assert await attempts.attempt(made("two")) is None
    assert engine.came == ["one", "two"]


@pytest.mark.requirement("W-16")
async def test_a_suspect_that_got_somewhere_leaves_the_next_one_alone_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("openassay.worker.attempts.POLL_SECONDS", 0.01)
    engine = FakeEngine()
    attempts = Attempts(cast(Engine, engine), retry_seconds=ELSEWHERE)
    engine.fallen.update({"one": 3, "two": 3})
    one = asyncio.create_task(attempts.attempt(made("one")))
    await asyncio.sleep(0.05)
    engine.fallen["one"] = 1  # it has got somewhere
    await asyncio.sleep(0.1)
    two = asyncio.create_task(attempts.attempt(made("two")))
    await asyncio.sleep(0.05)
    assert engine.came == ["one"]

    engine.gates["one"].set()
    assert await one is None
    await asyncio.sleep(0.05)

    assert engine.came == ["one", "two"]
    assert await attempts.attempt(made("three")) == ELSEWHERE, "the second suspect is alone as well"
    engine.gates["two"].set()
    assert await two is None


@pytest.mark.requirement("W-16")
async def test_a_suspect_that_is_cancelled_while_it_waits_stands_in_nobodys_way() -> None:
    engine = FakeEngine()
    attempts = Attempts(cast(Engine, engine), retry_seconds=ELSEWHERE)
    engine.fallen["suspect"] = 3
    first = asyncio.create_task(attempts.attempt(made("first")))
    await asyncio.sleep(0.05)
    suspect = asyncio.create_task(attempts.attempt(made("suspect")))
    await asyncio.sleep(0.05)
    suspect.cancel()
    await asyncio.wait([suspect])
    engine.gates.update({id: asyncio.Event() for id in ("second",)})
    engine.gates["second"].set()
    assert await attempts.attempt(made("second")) is None
    engine.gates["first"].set()
    assert await first is None
