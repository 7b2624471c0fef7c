"""A person's own folders: indexed incrementally, searched by words, widened by names, reranked by meaning."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from openassay.errors import NotFoundError, PathError
from openassay.models.evidence import Document, Hit
from openassay.models.user import SCHEME
from openassay.protocols import DocumentFolder, DocumentReader, DocumentStore, Embedder, IndexUpdate, PassageIndex
from openassay.search.index_builder import find_changes, synchronise
from openassay.search.ranking import rank
from openassay.search.registry import SourceContext, anonymise
from openassay.search.vector_maker import VectorMaker

WAIT_SECONDS = 30.0  # for another process that updates the same index
BUSY_INDEX = "{}: another process is indexing it, so files that are new there may be missing."
INCOMPLETE = "{:,} passages are found by their words alone; `openassay sources index --vectors` completes them."


class DocumentsSource:
    """A `protocols.Source` over folders. `prepare` is called once before the first search."""

    name = "documents"
    is_private = True  # what is asked of it leaves the machine to nobody

    def __init__(
        self,
        folders: Sequence[DocumentFolder],
        reader: DocumentReader,
        open_index: Callable[[Path], PassageIndex],
        store: DocumentStore,
        embedder: Embedder,
        vectors: VectorMaker | None = None,
    ) -> None:
        self._folders = folders
        self._reader = reader
        self._indexes = [open_index(folder.root) for folder in folders]
        self._store = store
        self._embedder = embedder
        self._vectors = vectors
        self._prepared: IndexUpdate | None = None
        self._lock = asyncio.Lock()

    @classmethod
    def build(cls, context: SourceContext) -> Self:
        return cls(
            context.folders, context.reader, context.open_index, context.store, context.embedder, context.vectors
        )

    def is_available(self) -> bool:
        return bool(self._folders)

    async def prepare(self) -> IndexUpdate:
        async with self._lock:
            if self._prepared is None:
                self._prepared = await asyncio.to_thread(self._synchronise)
                if self._vectors is not None:
                    self._vectors.start()
        return self._prepared

    def _synchronise(self) -> IndexUpdate:
        results = []
        for folder, index in zip(self._folders, self._indexes, strict=True):
            skipped = [(str(path), reason) for path, reason in folder.skipped]
            result = IndexUpdate(index.count_contents().files, 0, 0, skipped)
            if folder.is_here and find_changes(folder, index):
                with index.lock_updates(wait=WAIT_SECONDS) as locked:
                    if locked:
                        result = synchronise(folder, index, self._reader)
                    else:
                        result = result._replace(notices=[BUSY_INDEX.format(folder.root.name)])
            # To make vectors now would keep the question waiting, 15 ms for each passage.
            if not (folder.is_here and self._vectors is not None and self._vectors.complete(folder.root, index)):
                contents = index.count_contents()
                if result.new and 0 < contents.vectors < contents.passages:
                    notice = INCOMPLETE.format(contents.passages - contents.vectors)
                    result = result._replace(notices=[*result.notices, f"{folder.root.name}: {notice}"])
            results.append(result)
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

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        await self.prepare()
        found = await asyncio.to_thread(rank, query, self._indexes, self._embedder, limit)
        for name, index in {ranked.match.passage.document: ranked.origin for ranked in found}.items():
            await self._store.put(anonymise(await asyncio.to_thread(index.document, name)))
        return [
            Hit(
                provider="documents",
                query=query,
                rank=number,
                url=match.url,
                title=match.title,
                kind="document",
                snippet=match.passage.text[:200],
                score=round(match.score, 6),
                document=match.passage.document,
                start=match.passage.start,
                end=match.passage.end,
            )
            for number, (_, match) in enumerate(found, 1)
        ]

    async def own_document(self, hash: str) -> Document | None:
        """Return an uploaded document under the name that its person has given it."""
        for index in self._indexes:
            with suppress(NotFoundError):
                found = await asyncio.to_thread(index.document, hash)
                return found if found.url.startswith(SCHEME) else None
        return None
