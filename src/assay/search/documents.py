"""A person's own folders: indexed incrementally, searched by words, widened by names, reranked by meaning."""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

from assay.errors import NotFoundError, PathError, ReadError
from assay.model.source import Document, Hit
from assay.model.upload import SCHEME
from assay.ports import (
    DocumentStore,
    Embedder,
    FileReader,
    FileStamp,
    Folder,
    Indexed,
    IndexedPassage,
    PassageIndex,
)
from assay.search.owned import unnamed
from assay.search.ranking import rank
from assay.search.registry import Bench
from assay.text.passages import passages


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
        results = [
            synchronise(folder, index, self._reader) for folder, index in zip(self._folders, self._indexes, strict=True)
        ]
        done = Indexed(
            files=sum(result.files for result in results),
            new=sum(result.new for result in results),
            removed=sum(result.removed for result in results),
            skipped=[item for result in results for item in result.skipped],
        )
        if not done.files:
            reasons = "; ".join(f"{Path(path).name}: {reason}" for path, reason in done.skipped[:3])
            raise PathError(
                f"no document could be read ({reasons})",
                help="Give a folder with .md .txt .html .pdf .docx or .csv files.",
            )
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


def synchronise(folder: Folder, index: PassageIndex, reader: FileReader) -> Indexed:
    """Only files that are new or have changed are read; what is gone leaves the index."""
    known = index.stamps()
    stamps = {str(path): stamp for path in folder.files if (stamp := _stamp(path))}
    changed = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    gone = [path for path in known if path not in stamps]
    index.remove(gone)
    skipped = [(str(path), reason) for path, reason in folder.skipped]
    unreadable = 0
    for path, outcome in _read_all(changed, reader):
        if isinstance(outcome, ReadError):
            unreadable += 1
            skipped.append((path, outcome.message))
            index.remove([path])  # tried again by every run, so that every run can say that it was skipped
        else:
            index.replace(path, stamps[path], outcome, passages(outcome.hash, outcome.text))
    return Indexed(files=len(stamps) - unreadable, new=len(changed) - unreadable, removed=len(gone), skipped=skipped)


def _read_all(paths: Sequence[str], reader: FileReader) -> Iterable[tuple[str, Document | ReadError]]:
    """Files are read in parallel (PDFs each in a process of their own), results come in order."""
    with ThreadPoolExecutor(max_workers=min(4, (os.cpu_count() or 2))) as pool:
        yield from zip(paths, pool.map(lambda path: _read(Path(path), reader), paths), strict=True)


def _read(path: Path, reader: FileReader) -> Document | ReadError:
    try:
        return reader.read(path)
    except ReadError as error:
        return error


def _stamp(path: Path) -> FileStamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return FileStamp(status.st_size, status.st_mtime_ns)


def _hit(match: IndexedPassage, query: str, rank: int) -> Hit:
    return Hit(
        provider="documents", query=query, rank=rank, url=match.url, title=match.title, kind="document",
        snippet=match.passage.text[:200], score=round(match.score, 6),
        document=match.passage.document, start=match.passage.start, end=match.passage.end,
    )  # fmt: skip
