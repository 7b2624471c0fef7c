"""Runs and threads seen from outside: no hang, no run twice, nothing left of what was refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.errors import PathError, StorageError, ThreadBusyError, UsageError
from openassay.models.thread import ResearchOptions
from openassay.python_api import aresearch
from openassay.settings import load

QUESTION = "How deep is Lake Tarsin in the north?"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    (folder / "tarsin.md").write_text("# Lake Tarsin\n\nLake Tarsin in the north is 187 metres deep.\n")
    return folder


async def test_a_run_whose_record_is_gone_ends_instead_of_hanging(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_engine(load()) as engine:

        async def broken(*_: Any, **__: Any) -> Any:
            raise StorageError("the disk is full")

        run = await engine.start(QUESTION, ResearchOptions(docs=(str(lake),)))
        monkeypatch.setattr(engine.threads, "update", broken)
        monkeypatch.setattr(engine._runner.log, "append", broken)
        async with asyncio.timeout(20):
            async for _ in engine.events(run.id):
                pass
        engine._runner.locks.acquire(run.thread)  # the thread is free again


@pytest.mark.slow
async def test_a_second_engine_may_not_take_up_a_living_run_nor_delete_its_thread(lake: Path) -> None:
    async with open_engine(load()) as one, open_engine(load()) as two:
        run = await one.start(QUESTION, ResearchOptions(docs=(str(lake),)))
        with pytest.raises(ThreadBusyError):
            await two.resume(run.thread)
        with pytest.raises(ThreadBusyError):
            await two.archive.delete(run.thread)
        assert (await one.wait(run.id)).report is not None
        await two.archive.delete(run.thread)


@pytest.mark.slow
async def test_a_finished_thread_cannot_be_resumed_and_says_what_to_do(lake: Path) -> None:
    async with open_engine(load()) as engine:
        run = await engine.start(QUESTION, ResearchOptions(docs=(str(lake),)))
        await engine.wait(run.id)
        with pytest.raises(UsageError) as caught:
            await engine.resume(run.thread)
    assert run.thread in caught.value.help


async def test_documents_that_cannot_be_read_leave_no_thread_behind(tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 not really")
    async with open_engine(load()) as engine:
        run = await engine.start(QUESTION, ResearchOptions(docs=(str(folder),)))
        with pytest.raises(PathError):
            await engine.wait(run.id)
        assert await engine.threads.list_recent(limit=10) == []


@pytest.mark.slow
async def test_a_follow_up_asks_the_documents_of_its_thread(lake: Path) -> None:
    async with open_engine(load()) as engine:
        first = await engine.start(QUESTION, ResearchOptions(docs=(str(lake),)))
        await engine.wait(first.id)
        second = await engine.start("How many metres deep is Lake Tarsin?", ResearchOptions(), thread=first.thread)
        report = (await engine.wait(second.id)).report
    assert report is not None
    assert [card.kind for card in report.sources] == ["document"]


@pytest.mark.slow
async def test_one_folder_has_one_index_however_it_is_spelt(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake.parent)
    await aresearch(QUESTION, docs=[lake])
    async with open_engine(load()) as engine:
        run = await engine.start(QUESTION, ResearchOptions(docs=("lake/../lake",)))
        await engine.wait(run.id)
        prepared = [event async for event in engine.events(run.id) if event.stage == "prepare"]
    assert prepared[0].data["new"] == 0


async def test_what_nobody_could_be_asked_is_noted(lake: Path) -> None:
    report = await aresearch(QUESTION, docs=[lake], mode="plan", hitl_before_output=True)
    assert any("Plan mode" in notice for notice in report.notices)
    assert any("Approvals" in notice for notice in report.notices)
