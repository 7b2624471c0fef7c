"""A person's own folders: indexed incrementally, searched by words, widened by names, reranked by meaning."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from openassay.errors import NotFoundError, PathError
from openassay.models.evidence import Document, Hit
from openassay.models.user import SCHEME
from openassay.protocols import (
    DocumentFolder,
    DocumentReader,
    DocumentStore,
    Embedder,
    IndexUpdate,
    PassageIndex,
    PassageMatch,
)
from openassay.search.index import add_vectors, find_changes, synchronise
from openassay.search.ranking import rank
from openassay.search.registry import SourceContext, anonymise

WAIT_SECONDS = 30.0  # seconds for another process that brings the same index up to date
MAX_VECTORS = 1_000  # a run makes before it begins, some ten seconds; `openassay sources index --vectors` makes all
BUSY_INDEX = "{}: another process is indexing it, so files that are new there may be missing."
INCOMPLETE = "{:,} passages are found by their words alone; `openassay sources index --vectors` completes them."


class DocumentsSource:
    """Implements `ports.Source` over folders. `prepare` is called once before the first search."""

    name = "documents"

    def __init__(
        self,
        folders: Sequence[DocumentFolder],
        reader: DocumentReader,
        open_index: Callable[[Path], PassageIndex],
        store: DocumentStore,
        embedder: Embedder,
    ) -> None:
        self._folders = folders
        self._reader = reader
        self._indexes = [open_index(folder.root) for folder in folders]
        self._store = store
        self._embedder = embedder
        self._prepared: IndexUpdate | None = None
        self._lock = asyncio.Lock()

    @classmethod
    def build(cls, bench: SourceContext) -> Self:
        return cls(bench.folders, bench.reader, bench.open_index, bench.store, bench.embedder)

    def is_available(self) -> bool:
        return bool(self._folders)

    async def prepare(self) -> IndexUpdate:
        async with self._lock:
            if self._prepared is None:
                self._prepared = await asyncio.to_thread(self._synchronise)
        return self._prepared

    def _synchronise(self) -> IndexUpdate:
        results = [
            self._update_index(folder, index) for folder, index in zip(self._folders, self._indexes, strict=True)
        ]
        done = IndexUpdate(
            files=sum(result.files for result in results),
            new=sum(result.new for result in results),
            removed=sum(result.removed for result in results),
            skipped=[item for result in results for item in result.skipped],
            notices=[notice for result in results for notice in result.notices],
        )
        if not done.files:
            reasons = "; ".join([*done.notices, *(f"{Path(path).name}: {why}" for path, why in done.skipped[:3])])
            raise PathError(
                f"no document could be read ({reasons})",
                help="Give a folder with .md .txt .html .pdf .docx or .csv files.",
            )
        return done

    def _update_index(self, folder: DocumentFolder, index: PassageIndex) -> IndexUpdate:
        """One folder, up to date unless another process is at it."""
        as_it_is = IndexUpdate(
            index.count_contents().files, 0, 0, [(str(path), reason) for path, reason in folder.skipped]
        )
        if not folder.is_here or not find_changes(folder, index):
            return as_it_is
        with index.lock_updates(wait=WAIT_SECONDS) as mine:
            if not mine:
                return as_it_is._replace(notices=[BUSY_INDEX.format(folder.root.name)])
            done = synchronise(folder, index, self._reader)
            held = index.count_contents()
            if held.vectors and done.new:
                held = held._replace(vectors=held.vectors + add_vectors(index, self._embedder, most=MAX_VECTORS))
        if 0 < held.vectors < held.passages:
            return done._replace(notices=[f"{folder.root.name}: {INCOMPLETE.format(held.passages - held.vectors)}"])
        return done

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        await self.prepare()
        found = await asyncio.to_thread(rank, query, self._indexes, self._embedder, limit)
        for name, index in {ranked.match.passage.document: ranked.origin for ranked in found}.items():
            await self._store.add_test(anonymise(await asyncio.to_thread(index.document, name)))
        return [_to_hit(ranked.match, query, place) for place, ranked in enumerate(found, 1)]

    async def own_document(self, hash: str) -> Document | None:
        """What was uploaded, under the name its person has given it."""
        return await asyncio.to_thread(self._find_own, hash)

    def _find_own(self, hash: str) -> Document | None:
        for index in self._indexes:
            with suppress(NotFoundError):
                found = index.document(hash)
                return found if found.url.startswith(SCHEME) else None
        return None


def _to_hit(match: PassageMatch, query: str, rank: int) -> Hit:
    return Hit(
        provider="documents", query=query, rank=rank, url=match.url, title=match.title, kind="document",
        snippet=match.passage.text[:200], score=round(match.score, 6),
        document=match.passage.document, start=match.passage.start, end=match.passage.end,
    )  # fmt: skip
