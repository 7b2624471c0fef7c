"""Bringing the index of a folder up to date: only files that are new or have changed are read, and what is gone leaves.

What was read is kept every few seconds, so whoever is stopped, in whatever way, goes on there the next time.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.model.source import Passage
from assay.ports import BarePassage, Embedder, FileReader, FileStamp, Folder, Indexed, IndexedFile, PassageIndex
from assay.search.reading import Read, read_all

# In one transaction. With 1,000 and 16,000 passages PostgreSQL took a sixth more and an eighth less of CPU, and SQLite
# as much and a tenth less: it is not worth their memory.
_PASSAGES = 4_000
_CHARACTERS = 16_000_000
_SECONDS = 5.0
_UNSETTLED = 2_000  # new passages after which an index is worth putting in order
_VECTORS = 256  # made at a time
_REMOVED = 10_000  # paths


class Progress(NamedTuple):
    """`done` and `total` are files, or passages where vectors are made; `share` is of the work, as far as it can be
    told."""

    done: int
    total: int
    passages: int
    share: float


Watch = Callable[[Progress], None]


class Changes(NamedTuple):
    """What an index does not know yet."""

    stamps: Mapping[str, FileStamp]
    new: Sequence[str]
    gone: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.new or self.gone)


def changes(folder: Folder, index: PassageIndex) -> Changes:
    known = index.stamps()
    stamps = {str(path): stamp for path in folder.files if (stamp := _stamp(path))}
    new = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    return Changes(stamps, new, [path for path in known if path not in stamps])


def synchronise(
    folder: Folder, index: PassageIndex, reader: FileReader, *, jobs: int | None = None, watch: Watch = lambda _: None
) -> Indexed:
    """`jobs` files are read at once; unless said, as many as the machine has processors."""
    found = changes(folder, index)
    for start in range(0, len(found.gone), _REMOVED):
        index.remove(found.gone[start : start + _REMOVED])
    work = _Work(index, found, watch)
    sizes = [(path, found.stamps[path].size) for path in found.new]
    for read in read_all(sizes, reader, jobs or os.cpu_count() or 2):
        work.take(read)
    work.keep()
    if work.passages >= _UNSETTLED or len(found.gone) >= _UNSETTLED:
        index.settle()
    skipped = [*((str(path), reason) for path, reason in folder.skipped), *work.skipped]
    return Indexed(
        files=len(found.stamps) - len(work.skipped), new=len(found.new) - len(work.skipped), removed=len(found.gone),
        skipped=skipped,
    )  # fmt: skip


class _Work:
    """What was read since it was kept last; never much."""

    def __init__(self, index: PassageIndex, found: Changes, watch: Watch) -> None:
        self._index = index
        self._found = found
        self._watch = watch
        self._size = sum(found.stamps[path].size for path in found.new)
        self._seen = self._done = self._held = self._characters = 0
        self._kept = time.monotonic()
        self._files: list[IndexedFile] = []
        self._unreadable: list[str] = []
        self.passages = 0
        self.skipped: list[tuple[str, str]] = []

    def take(self, read: Read) -> None:
        stamp = self._found.stamps[read.path]
        self._done += 1
        self._seen += stamp.size
        if read.document is None:
            self.skipped.append((read.path, read.reason))
            self._unreadable.append(
                read.path
            )  # tried again by every run, so that every run can say that it was skipped
        else:
            self._files.append(IndexedFile(read.path, stamp, read.document, list(_passages(read))))
            self._held += len(read.spans)
            self._characters += len(read.document.text)
        if (
            self._held >= _PASSAGES or self._characters >= _CHARACTERS
            or time.monotonic() - self._kept > _SECONDS
        ):  # fmt: skip
            self.keep()

    def keep(self) -> None:
        if self._unreadable:
            self._index.remove(self._unreadable)
        if self._files:
            self._index.replace_all(self._files)
        self.passages += self._held
        self._files, self._unreadable, self._held, self._characters = [], [], 0, 0
        self._kept = time.monotonic()
        share = self._seen / self._size if self._size else 1.0
        self._watch(Progress(self._done, len(self._found.new), self.passages, share))


def _passages(read: Read) -> Iterator[Passage]:
    if read.document:
        for start, end in read.spans:
            yield Passage(document=read.document.hash, start=start, end=end, text=read.document.text[start:end])


def add_vectors(
    index: PassageIndex, embedder: Embedder, *, most: int | None = None, watch: Watch = lambda _: None
) -> int:
    """A vector for every passage that has none, or for so many of them; how many were made."""
    holdings = index.holdings()
    missing = holdings.passages - holdings.vectors
    made = 0
    for some in _bare(index, embedder.name):
        vectors = embedder.embed([passage.text for passage in some])
        index.add_vectors(embedder.name, {passage.id: vector for passage, vector in zip(some, vectors, strict=True)})
        made += len(some)
        watch(Progress(made, missing, made, made / max(missing, made)))
        if most is not None and made >= most:
            break
    return made


def _bare(index: PassageIndex, model: str) -> Iterator[list[BarePassage]]:
    after = 0
    while some := index.bare(model, after=after, limit=_VECTORS):
        yield some
        after = some[-1].id


def _stamp(path: Path) -> FileStamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return FileStamp(status.st_size, status.st_mtime_ns)
