"""Vectors of folders that were asked about, made while nothing else is done and never on the way to an answer."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from openassay.errors import OpenAssayError
from openassay.protocols import Embedder, PassageIndex
from openassay.search.index_builder import make_vectors

_log = logging.getLogger("openassay")
MOST_PASSAGES = 50_000  # ten minutes of one core; `openassay sources index --vectors` completes larger folders
BATCH = 16  # passages; a question that comes meanwhile waits for .2 s at most
PAUSE_SECONDS = 1.0  # before it looks again whether a run has ended


class VectorMaker:
    """Takes one index after the other, a few passages at a time, and stands back while a run is under way."""

    def __init__(self, embedder: Embedder, is_busy: Callable[[], bool]) -> None:
        self._embedder = embedder
        self._is_busy = is_busy
        self._waiting: dict[Path, PassageIndex] = {}
        self._task: asyncio.Task[None] | None = None

    def complete(self, root: Path, index: PassageIndex) -> bool:
        """Have the vectors of a folder's index made later; False for one that is too large for that."""
        contents = index.count_contents()
        if contents.passages > MOST_PASSAGES:
            return False
        if contents.vectors < contents.passages:
            self._waiting[root] = index
        return True

    def start(self) -> None:
        """Begin, in the event loop that this is called in, unless it is at it."""
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work(), name="vectors")

    def clear(self) -> None:
        """Forget what waits; the next question to a folder has it completed again."""
        self._waiting.clear()

    async def wait(self) -> None:
        """Wait until nothing is left to be made."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Stop after the passages at hand."""
        self.clear()
        await self.wait()

    async def _work(self) -> None:
        while self._waiting:
            root, index = next(iter(self._waiting.items()))
            try:
                await self._complete(root, index)
            except OpenAssayError as error:
                _log.warning("%s: no vectors were made: %s", root, error.message)
            self._waiting.pop(root, None)

    async def _complete(self, root: Path, index: PassageIndex) -> None:
        after: int | None = 0
        while after is not None and root in self._waiting:
            if self._is_busy():
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                after = await asyncio.to_thread(self._make_some, index, after)

    def _make_some(self, index: PassageIndex, after: int) -> int | None:
        """Make the vectors of a few passages; return the last one's number, or None where all are made or another
        process is at work on the index."""
        with index.lock_updates(wait=0) as mine:
            made = make_vectors(index, self._embedder, after=after, limit=BATCH) if mine else []
        return made[-1].id if made else None
