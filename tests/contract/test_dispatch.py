"""Who takes up runs in line: the server itself, or workers that it knocks at. Both keep the same promises."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openassay.bootstrap import open_server_resources
from openassay.context import current_run
from openassay.engine.engine import Engine
from openassay.errors import StorageError
from openassay.models.event import RunStatus
from openassay.models.evidence import Hit
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions, Run
from openassay.models.user import SCHEME
from openassay.protocols import RunDispatcher
from openassay.search.demo import DemoSource
from openassay.server.service import Service
from openassay.settings import Settings, load
from openassay.worker.queue import prepare_tables
from openassay.worker.worker import open_worker

QUESTION = "What's happening with Apple?"
PATIENCE = 60.0


class Gate:
    """Runs come to it as soon as they search, and go on when it is opened."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.open = asyncio.Event()

    async def passed(self) -> None:
        run = current_run.get()
        if run is not None and run.id not in self.came:
            self.came.append(run.id)
        await self.open.wait()


class Place(NamedTuple):
    engine: Engine
    dispatch: RunDispatcher

    async def put(self, *people: str, **options: Any) -> list[Run]:
        """One run in line for each, in this order."""
        runs = []
        for user in people:
            wanted = {"source": "demo", "depth": Depth.QUICK, "user": user, **options}
            runs.append(await self.engine.queue(QUESTION, ResearchOptions(**wanted)))
            self.dispatch.announce(runs[-1].id)
        return runs

    async def ended(self, *runs: Run) -> list[RunStatus]:
        async def all_have() -> bool:
            return not any([(await self.engine.threads.run(run.id)).active for run in runs])

        await until(all_have)
        return [(await self.engine.threads.run(run.id)).status for run in runs]

    async def places(self, *runs: Run) -> None:
        """Until these are all that wait, and in this order."""

        async def wait() -> bool:
            told = [self.dispatch.position(run.id) for run in runs]
            return told == list(range(1, len(runs) + 1)) and self.dispatch.queue_length == len(runs)

        await until(wait)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made, real = Gate(), DemoSource.search

    async def search(self: DemoSource, query: str, *, limit: int) -> list[Hit]:
        await made.passed()
        return await real(self, query, limit=limit)

    monkeypatch.setattr(DemoSource, "search", search)
    return made


@pytest.fixture(params=["here", "workers"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """One run at a time."""
    monkeypatch.setenv("OPENASSAY_OFFLINE", "true")
    monkeypatch.setattr("openassay.server.dispatch.POLL_SECONDS", 0.2)
    monkeypatch.setattr("openassay.server.dispatch.MIN_POLL_SECONDS", 0.1)
    monkeypatch.setattr("openassay.server.dispatch.RETRY_SECONDS", 0.2)
    monkeypatch.setattr("openassay.worker.queue.POLL_SECONDS", 0.2)
    given: dict[str, Any] = {"server": {"runs": request.param, "runs_at_once": 1}}
    if request.param == "workers":
        address = request.getfixturevalue("postgres_address")
        given["persistence"] = {"backend": "postgres", "connection_string": address}
        given["fleet"] = {"lease_seconds": 5, "concurrency": 1}
    return load(data_dir=tmp_path / "data", source="demo", **given)


@asynccontextmanager
async def taking_up(settings: Settings) -> AsyncIterator[Place]:
    """Everything that takes up runs, until the end."""
    stopping, works = asyncio.Event(), list[asyncio.Task[None]]()
    async with AsyncExitStack() as stack:
        resources = await stack.enter_async_context(open_server_resources(settings))
        if settings.server.runs == "workers":
            await asyncio.to_thread(prepare_tables, resources.rows.database)
            worker = await stack.enter_async_context(open_worker(settings))
            works.append(asyncio.create_task(worker.run(stopping)))
        service = Service(resources=resources, open_to_all=True)
        works.append(asyncio.create_task(service.dispatcher.run()))
        try:
            yield Place(service.engine, service.dispatcher)
        finally:
            stopping.set()
            works[-1].cancel()
            done, _ = await asyncio.wait(works)
            await resources.engine.drain(seconds=5)
            assert not [task.exception() for task in done if not task.cancelled() and task.exception()]


async def times_begun(engine: Engine, run: Run) -> int:
    told = [event async for event in engine.events(run.id)]
    return sum(event.kind == "run" and event.data["status"] == RunStatus.RUNNING for event in told)


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_run_that_was_put_in_line_is_worked_on_once(settings: Settings) -> None:
    async with taking_up(settings) as place:
        runs = await place.put("ann", "ben")
        for run in runs * 3:  # whoever knocks too often
            place.dispatch.announce(run.id)
        assert await place.ended(*runs) == [RunStatus.DONE] * 2
        assert [await times_begun(place.engine, run) for run in runs] == [1, 1]

        async def is_at_rest() -> bool:
            return place.dispatch.is_alive() and (place.dispatch.queue_length, place.dispatch.running_count) == (0, 0)

        await until(is_at_rest)


@pytest.mark.slow
@pytest.mark.requirement("W-15", "W-16")
async def test_people_take_turns_and_are_told_their_places(settings: Settings, gate: Gate) -> None:
    async with taking_up(settings) as place:
        [first] = await place.put("ann")
        await until(lambda: _came(gate, first))
        later = await place.put("ann", "ann", "ben", "cat", "ben")
        ann1, ann2, ben1, cat, ben2 = later
        order = [ben1, cat, ann1, ben2, ann2]
        await place.places(*order)
        assert place.dispatch.position(first.id) is None
        assert place.dispatch.running_count == 1
        gate.open.set()
        assert await place.ended(first, *later) == [RunStatus.DONE] * 6
        assert gate.came == [run.id for run in (first, *order)]


async def _came(gate: Gate, run: Run) -> bool:
    return run.id in gate.came


@pytest.mark.slow
async def test_what_can_wait_waits_until_nothing_else_does(settings: Settings, gate: Gate) -> None:
    async with taking_up(settings) as place:
        [first] = await place.put("ann")
        await until(lambda: _came(gate, first))
        low1, low2 = await place.put("ben", "cat", priority="low")
        ann1, ann2 = await place.put("ann", "ann")
        await place.places(ann1, ann2, low1, low2)
        gate.open.set()
        await place.ended(low1, low2)
    assert gate.came == [run.id for run in (first, ann1, ann2, low1, low2)]


@pytest.mark.slow
async def test_turns_are_remembered(settings: Settings, gate: Gate) -> None:
    """With one at a time nobody has anything at work when the next is chosen: whoever was served last waits."""
    async with taking_up(settings) as place:
        [first] = await place.put("ann")
        await until(lambda: _came(gate, first))
        others = await place.put(*["ann"] * 3, *["ben"] * 3)
        gate.open.set()
        await place.ended(first, *others)
    person = {run.id: run.options.user for run in (first, *others)}
    assert [person[run] for run in gate.came] == ["ann", "ben"] * 3 + ["ann"]


@pytest.mark.slow
@pytest.mark.requirement("F-10", "W-16")
async def test_what_was_left_is_taken_up(settings: Settings) -> None:
    """By a process that died at work, and by one that died before anybody was told."""
    async with open_server_resources(settings) as resources:
        options = ResearchOptions(source="demo", depth=Depth.QUICK)
        working, queued, waiting = [await resources.engine.queue(QUESTION, options) for _ in range(3)]
        await resources.engine.threads.update(working.id, status=RunStatus.RUNNING)
        await resources.engine.threads.update(waiting.id, status=RunStatus.CANCELLED)
    async with taking_up(settings) as place:
        assert await place.ended(working, queued) == [RunStatus.DONE] * 2
        assert (await place.engine.threads.run(waiting.id)).status is RunStatus.CANCELLED


@pytest.mark.slow
async def test_one_that_is_stopped_in_line_is_not_worked_on(settings: Settings, gate: Gate) -> None:
    async with taking_up(settings) as place:
        [first] = await place.put("ann")
        await until(lambda: _came(gate, first))
        stopped, last = await place.put("ann", "ann")
        await place.places(stopped, last)
        await place.engine.stop(stopped.thread)
        await place.places(last)
        gate.open.set()
        assert await place.ended(first, stopped, last) == [RunStatus.DONE, RunStatus.CANCELLED, RunStatus.DONE]
    assert gate.came == [first.id, last.id]


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_what_cannot_be_taken_up_is_told_and_holds_up_nobody(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tides.md").write_text("The tide turns twice a day.", encoding="utf-8")
    async with open_server_resources(settings) as resources:
        lost = await resources.engine.queue(
            QUESTION, ResearchOptions(docs=(str(tmp_path / "docs"),), source="documents")
        )
    shutil.rmtree(tmp_path / "docs")
    async with taking_up(settings) as place:
        [run] = await place.put("ann")
        assert await place.ended(lost, run) == [RunStatus.FAILED, RunStatus.DONE]
        assert "docs" in ((await place.engine.threads.run(lost.id)).error or "")
        told = [event.kind async for event in place.engine.events(lost.id)]
        assert "error" in told


async def test_one_whose_upload_is_gone_is_told(settings: Settings) -> None:
    async with open_server_resources(settings) as resources:
        ended = await resources.engine.queue(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        gone = {"source": "documents", "docs": (f"{SCHEME}local/{'0' * 24}",)}
        await resources.engine.threads.set_options(ended.id, ended.options.model_copy(update=gone))
    async with taking_up(settings) as place:
        place.dispatch.announce(ended.id)
        assert await place.ended(ended) == [RunStatus.FAILED]
        assert (await place.engine.threads.run(ended.id)).error


@pytest.mark.slow
async def test_one_that_nobody_can_take_up_is_not_tried_for_ever(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.worker.attempts.CRASH_RETRY_SECONDS", 0.2)

    async def take_up(self: Engine, run: Run, **more: Any) -> bool:
        raise OSError("unforeseen")

    monkeypatch.setattr(Engine, "claim", take_up)
    async with taking_up(settings) as place:
        [run] = await place.put("ann")
        assert await place.ended(run) == [RunStatus.FAILED]
        assert "a bug in OpenAssay" in ((await place.engine.threads.run(run.id)).error or "")


@pytest.mark.slow
async def test_what_may_pass_is_tried_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    real, faults = Engine.claim, [StorageError("the disk is full", retryable=True), OSError("unforeseen")]
    monkeypatch.setattr("openassay.worker.attempts.CRASH_RETRY_SECONDS", 0.2)

    async def take_up(self: Engine, run: Run, **more: Any) -> bool:
        if faults:
            raise faults.pop()
        return await real(self, run, **more)

    monkeypatch.setattr(Engine, "claim", take_up)
    async with taking_up(settings) as place:
        [run] = await place.put("ann")
        assert await place.ended(run) == [RunStatus.DONE]
    assert not faults
