"""A person's own folders: indexed incrementally, searched by words, widened by names, reranked by meaning."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from assay.errors import NotFoundError, PathError
from assay.model.source import Document, Hit
from assay.model.upload import SCHEME
from assay.ports import DocumentStore, Embedder, FileReader, Folder, Indexed, IndexedPassage, PassageIndex
from assay.search.indexing import add_vectors, changes, synchronise
from assay.search.owned import unnamed
from assay.search.ranking import rank
from assay.search.registry import Bench

PATIENCE = 30.0  # seconds for another process that brings the same index up to date
VECTORS = 1_000  # that a run makes before it begins, some ten seconds; `assay index --vectors` makes all
OTHERS = "{}: another process is indexing it, so files that are new there may be missing."
INCOMPLETE = "{:,} passages are found by their words alone; `assay index --vectors` completes them."


class DocumentsSource:
    """Implements `ports.Source` over folders. `prepare` is called once before the first search."""

    name = "documents"

    def __init__(
        self,
        folders: Sequence[Folder],
        reader: FileReader,
        open_index: Callable[[Path], PassageIndex],
        store: DocumentStore,
        embedder: Embedder,
    ) -> None:
        self._folders = folders
        self._reader = reader
        self._indexes = [open_index(folder.root) for folder in folders]
        self._store = store
        self._embedder = embedder
        self._prepared: Indexed | None = None
        self._lock = asyncio.Lock()

    @classmethod
    def build(cls, bench: Bench) -> Self:
        return cls(bench.folders, bench.reader, bench.open_index, bench.store, bench.embedder)

    def is_available(self) -> bool:
        return bool(self._folders)

    async def prepare(self) -> Indexed:
        async with self._lock:
            if self._prepared is None:
                self._prepared = await asyncio.to_thread(self._synchronise)
        return self._prepared

    def _synchronise(self) -> Indexed:
        results = [self._brought(folder, index) for folder, index in zip(self._folders, self._indexes, strict=True)]
        done = Indexed(
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

    def _brought(self, folder: Folder, index: PassageIndex) -> Indexed:
        """One folder, up to date unless another process is at it."""
        as_it_is = Indexed(index.holdings().files, 0, 0, [(str(path), reason) for path, reason in folder.skipped])
        if not folder.is_here or not changes(folder, index):
            return as_it_is
        with index.turn(wait=PATIENCE) as mine:
            if not mine:
                return as_it_is._replace(notices=[OTHERS.format(folder.root.name)])
            done = synchronise(folder, index, self._reader)
            held = index.holdings()
            if held.vectors and done.new:
                held = held._replace(vectors=held.vectors + add_vectors(index, self._embedder, most=VECTORS))
        if 0 < held.vectors < held.passages:
            return done._replace(notices=[f"{folder.root.name}: {INCOMPLETE.format(held.passages - held.vectors)}"])
        return done

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        await self.prepare()
        found = await asyncio.to_thread(rank, query, self._indexes, self._embedder, limit)
        for name, index in {ranked.match.passage.document: ranked.origin for ranked in found}.items():
            await self._store.put(unnamed(await asyncio.to_thread(index.document, name)))
        return [_hit(ranked.match, query, place) for place, ranked in enumerate(found, 1)]

    async def own(self, hash: str) -> Document | None:
        """What was uploaded, under the name its person has given it."""
        return await asyncio.to_thread(self._own, hash)

    def _own(self, hash: str) -> Document | None:
        for index in self._indexes:
            with suppress(NotFoundError):
                found = index.document(hash)
                return found if found.url.startswith(SCHEME) else None
        return None


def _hit(match: IndexedPassage, query: str, rank: int) -> Hit:
    return Hit(
        provider="documents", query=query, rank=rank, url=match.url, title=match.title, kind="document",
        snippet=match.passage.text[:200], score=round(match.score, 6),
        document=match.passage.document, start=match.passage.start, end=match.passage.end,
    )  # fmt: skip
