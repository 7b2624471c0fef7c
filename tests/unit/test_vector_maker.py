"""Vectors of folders that were asked about are made between runs, and no question waits for them."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from openassay.fetch.documents import LocalFileReader
from openassay.protocols import IndexCounts
from openassay.search import vector_maker
from openassay.search.index_builder import synchronise
from openassay.search.vector_maker import VectorMaker
from openassay.storage.index_sqlite import SqliteIndex
from tests.unit.test_embedding import CountingEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILES = 40


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "kilns"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"Kiln {number} stands at Harrowby.\n", encoding="utf-8")
    return folder


@pytest.fixture
def index(tmp_path: Path, root: Path) -> Iterator[SqliteIndex]:
    from openassay.engine.maintenance import scan_folder

    with SqliteIndex(tmp_path / "index.db") as opened:
        synchronise(scan_folder(root), opened, LocalFileReader(max_bytes=10_000, pdf_seconds=1))
        yield opened


class EmbedderWithLimit(CountingEmbedder):
    """Tells after how many texts somebody begins to be busy."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.made = 0

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        self.made += len(texts)
        return super().embed(texts)

    def is_used_up(self) -> bool:
        return self.made >= self.limit


async def test_all_passages_get_a_vector(index: SqliteIndex, root: Path) -> None:
    maker = VectorMaker(CountingEmbedder(), lambda: False)
    assert maker.complete(root, index)
    maker.start()
    await maker.wait()
    assert index.count_contents() == IndexCounts(FILES, FILES, FILES)


async def test_what_was_asked_for_is_made_before_more(
    index: SqliteIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run is under way nothing is made, and what is left is made after it."""
    monkeypatch.setattr(vector_maker, "PAUSE_SECONDS", 0.01)
    embedder = EmbedderWithLimit(1)
    maker = VectorMaker(embedder, embedder.is_used_up)
    maker.complete(root, index)
    maker.start()
    while not embedder.made:  # noqa: ASYNC110  # nothing tells
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert embedder.made == vector_maker.BATCH < FILES
    embedder.limit = 10 * FILES
    await maker.wait()
    assert index.count_contents().vectors == FILES == embedder.made


async def test_what_is_closed_goes_on_the_next_time(index: SqliteIndex, root: Path) -> None:
    embedder = EmbedderWithLimit(1)
    maker = VectorMaker(embedder, lambda: False)
    maker.complete(root, index)
    maker.start()
    while not embedder.made:  # noqa: ASYNC110  # nothing tells
        await asyncio.sleep(0.001)
    await maker.close()
    made = index.count_contents().vectors
    assert 0 < made < FILES
    again = VectorMaker(embedder, lambda: False)
    again.complete(root, index)
    again.start()
    await again.wait()
    assert index.count_contents().vectors == FILES == embedder.made, "none is made twice"


async def test_another_process_at_work_is_left_alone(index: SqliteIndex, root: Path) -> None:
    embedder = EmbedderWithLimit(1)
    maker = VectorMaker(embedder, lambda: False)
    maker.complete(root, index)
    with index.lock_updates(wait=0) as mine:
        assert mine
        maker.start()
        await maker.wait()
    assert not embedder.made


def test_a_large_folder_is_left_to_the_command(index: SqliteIndex, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_maker, "MOST_PASSAGES", FILES - 1)
    assert not VectorMaker(CountingEmbedder(), lambda: False).complete(root, index)


async def test_a_failure_is_told_and_ends_nothing(
    index: SqliteIndex, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteIndex(tmp_path / "other.db") as other:
        maker = VectorMaker(CountingEmbedder(), lambda: False)
        maker.complete(root, index)
        index.close()
        (tmp_path / "index.db").write_bytes(b"no database" * 1000)
        maker.complete(tmp_path, other)
        maker.start()
        await maker.wait()
    assert "no vectors were made" in caplog.text
