"""An engine that stays open completes the folders it was asked about; the first answer does not wait for that."""

import asyncio
from pathlib import Path

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.maintenance import open_folder_indexes
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.protocols import IndexCounts
from openassay.settings import Settings, load

PATIENCE = 120.0


def count_contents(settings: Settings) -> IndexCounts:
    with open_folder_indexes(settings) as indexes:
        (found,) = indexes.list()
    return found.holdings


@pytest.mark.requirement("X-10")
async def test_a_folder_gets_its_vectors_after_the_answer(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tides.md").write_text("The tides in the Bay of Fundy rise 16 metres.\n", encoding="utf-8")
    (docs / "kilns.md").write_text("The kilns of Harrowby were lit in 1811.\n", encoding="utf-8")
    settings = load(data_dir=tmp_path / "data", llm={"model": "embedded"})
    options = ResearchOptions(docs=(str(docs),), depth=Depth.QUICK)
    async with open_engine(settings, stays=True) as engine:
        run = await engine.start("How high do the tides in the Bay of Fundy rise?", options)
        outcome = await engine.wait(run.id)
        assert outcome.report is not None
        async with asyncio.timeout(PATIENCE):
            while count_contents(settings).vectors < 2:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0.1)
        (docs / "kilns.md").write_text("The kilns of Harrowby went out in 1911.\n", encoding="utf-8")
        run = await engine.start("When did the kilns of Harrowby go out?", options, thread=run.thread)
        outcome = await engine.wait(run.id)
        assert outcome.report is not None
        assert not [text for text in outcome.report.notices if "words alone" in text]


async def test_a_single_answer_ends_without_them(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tides.md").write_text("The tides in the Bay of Fundy rise 16 metres.\n", encoding="utf-8")
    settings = load(data_dir=tmp_path / "data", llm={"model": "embedded"})
    async with open_engine(settings) as engine:
        options = ResearchOptions(docs=(str(docs),), depth=Depth.QUICK)
        run = await engine.start("How high do the tides in the Bay of Fundy rise?", options)
        await engine.wait(run.id)
    assert count_contents(settings) == IndexCounts(1, 1, 0)
