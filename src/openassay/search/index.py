"""Many files read at once and cut into passages: a few in threads of this process, many in processes of their own, so
that all of the machine works on them and no file can take this process with it.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from openassay.errors import ReadError
from openassay.models.evidence import Document, Passage
from openassay.protocols import (
    DocumentFolder,
    DocumentReader,
    Embedder,
    FileStamp,
    IndexEntry,
    IndexUpdate,
    PassageIndex,
    PendingPassage,
)
from openassay.text.sentences import split_passages

MIN_PROCESS_FILES = 200  # files from which on processes are worth the second they take to start
_FILES = 32  # handed to a process at a time, or files of so many bytes
_BYTES = 1_000_000
_AHEAD = 4  # times as many handed out as are worked on; what waits is all that stands in memory
_FILE_SECONDS = 240  # for one file; a PDF has a limit of its own below that
_FATAL = "took too long to read, or ended the process that read it"


class FileResult(NamedTuple):
    """What became of a file: a document with where its passages begin and end, or why there is none."""

    path: str
    document: Document | None
    spans: Sequence[tuple[int, int]] = ()
    reason: str = ""


def read_files(files: Sequence[tuple[str, int]], reader: DocumentReader, jobs: int) -> Iterator[FileResult]:
    """Of paths and sizes, in their order. Nothing is read far ahead of whoever takes the results."""
    room = jobs * _AHEAD
    if len(files) < MIN_PROCESS_FILES or jobs == 1:
        with ThreadPoolExecutor(jobs) as threads:
            waiting: deque[Future[list[FileResult]]] = deque()
            for chunk in _split_chunks(files):
                waiting.append(threads.submit(_read_paths, reader, chunk))
                if len(waiting) >= room:
                    yield from waiting.popleft().result()
            for future in waiting:
                yield from future.result()
        return
    with _ReaderPool(reader, jobs) as processes:
        yield from processes.read_chunks(_split_chunks(files), room)


class _ReaderPool:
    """A pool that is made anew when a file has ended one of its processes."""

    def __init__(self, reader: DocumentReader, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = context.Pipe(duplex=False)
        begin = (reader, self._theirs)
        self._open = partial(ProcessPoolExecutor, jobs, mp_context=context, initializer=_init_process, initargs=begin)
        self._pool: Executor = self._open()

    def __enter__(self) -> "_ReaderPool":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Whoever leaves early does not wait for a file that takes long."""
        if kind is not None:
            self._ours.close()
        self._pool.shutdown(cancel_futures=True)
        self._ours.close()
        self._theirs.close()

    def read_chunks(self, chunks: Iterable[Sequence[str]], room: int) -> Iterator[FileResult]:
        waiting: deque[tuple[Sequence[str], Future[list[FileResult]] | None]] = deque()
        for chunk in chunks:
            waiting.append((chunk, self._submit(chunk)))
            if len(waiting) >= room:
                yield from self._take_next(waiting)
        while waiting:
            yield from self._take_next(waiting)

    def _submit(self, chunk: Sequence[str]) -> Future[list[FileResult]] | None:
        try:
            return self._pool.submit(_read_in_process, chunk)
        except BrokenProcessPool:
            return None

    def _take_next(self, waiting: deque[tuple[Sequence[str], Future[list[FileResult]] | None]]) -> Iterator[FileResult]:
        chunk, future = waiting.popleft()
        try:
            if future is not None:
                yield from future.result()
                return
        except BrokenProcessPool:
            pass
        # Nobody knows which file it was: all that were handed out are read once more, one by one.
        paths = [path for some, _ in ((chunk, None), *waiting) for path in some]
        waiting.clear()
        for path in paths:
            yield from self._read_alone(path)

    def _read_alone(self, path: str) -> list[FileResult]:
        for _ in range(2):  # the pool at hand may be broken already
            future = self._submit([path])
            try:
                if future is not None:
                    return future.result()
            except BrokenProcessPool:
                self._renew()
                return [FileResult(path, None, reason=f"{Path(path).name}: {_FATAL}")]
            self._renew()
        raise BrokenProcessPool("processes to read files in cannot be started")

    def _renew(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._open()


def _split_chunks(files: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    chunk: list[str] = []
    held = 0
    for path, size in files:
        if chunk and (len(chunk) >= _FILES or held + size > _BYTES):
            yield chunk
            chunk, held = [], 0
        chunk.append(path)
        held += size
    if chunk:
        yield chunk


def _read_paths(reader: DocumentReader, paths: Sequence[str]) -> list[FileResult]:
    return [_read_path(reader, path) for path in paths]


def _read_path(reader: DocumentReader, path: str) -> FileResult:
    try:
        document = reader.read(Path(path))
    except ReadError as error:
        return FileResult(path, None, reason=error.message)
    return FileResult(
        path, document, [(passage.start, passage.end) for passage in split_passages(document.hash, document.text)]
    )


# In a process of its own -----------------------------------------------------------------------------

_readers: list[DocumentReader] = []


def _init_process(reader: DocumentReader, parent: Connection) -> None:
    """Ctrl-C is for the process that a person has started."""
    _readers[:] = [reader]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: Connection) -> None:
    """Nothing ever comes through the pipe: it ends when the parent closes it or, in whatever way, dies."""
    parent.poll(None)
    os._exit(1)


def _read_in_process(paths: Sequence[str]) -> list[FileResult]:
    found = []
    for path in paths:
        _set_alarm(_FILE_SECONDS)  # ends the process, whatever the file makes it do
        found.append(_read_path(_readers[0], path))
    _set_alarm(0)
    return found


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_REAL, seconds)


# Bringing the index of a folder up to date: only files that are new or have changed are read, and what is gone leaves.
#
# What was read is kept every few seconds, so whoever is stopped, in whatever way, goes on there the next time.

# In one transaction. With 1,000 and 16,000 passages PostgreSQL took a sixth more and an eighth less of CPU, and SQLite
# as much and a tenth less: it is not worth their memory.
_PASSAGES = 4_000
_CHARACTERS = 16_000_000
_FLUSH_SECONDS = 5.0
_SETTLE_PASSAGES = 2_000  # new passages after which an index is worth putting in order
_VECTORS = 256  # made at a time
_REMOVE_BATCH = 10_000  # paths


class IndexProgress(NamedTuple):
    """`done` and `total` are files, or passages where vectors are made; `share` is of the work, as far as it can be
    told."""

    done: int
    total: int
    passages: int
    share: float


OnProgress = Callable[[IndexProgress], None]


class IndexChanges(NamedTuple):
    """What an index does not know yet."""

    stamps: Mapping[str, FileStamp]
    new: Sequence[str]
    gone: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.new or self.gone)


def find_changes(folder: DocumentFolder, index: PassageIndex) -> IndexChanges:
    known = index.stamps()
    stamps = {str(path): stamp for path in folder.files if (stamp := _read_stamp(path))}
    new = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    return IndexChanges(stamps, new, [path for path in known if path not in stamps])


def synchronise(
    folder: DocumentFolder,
    index: PassageIndex,
    reader: DocumentReader,
    *,
    jobs: int | None = None,
    watch: OnProgress = lambda _: None,
) -> IndexUpdate:
    """`jobs` files are read at once; unless said, as many as the machine has processors."""
    found = find_changes(folder, index)
    for start in range(0, len(found.gone), _REMOVE_BATCH):
        index.remove(found.gone[start : start + _REMOVE_BATCH])
    work = _IndexBatch(index, found, watch)
    sizes = [(path, found.stamps[path].size) for path in found.new]
    for read in read_files(sizes, reader, jobs or os.cpu_count() or 2):
        work.add(read)
    work.flush()
    if work.passages >= _SETTLE_PASSAGES or len(found.gone) >= _SETTLE_PASSAGES:
        index.optimize()
    skipped = [*((str(path), reason) for path, reason in folder.skipped), *work.skipped]
    return IndexUpdate(
        files=len(found.stamps) - len(work.skipped), new=len(found.new) - len(work.skipped), removed=len(found.gone),
        skipped=skipped,
    )  # fmt: skip


class _IndexBatch:
    """What was read since it was kept last; never much."""

    def __init__(self, index: PassageIndex, found: IndexChanges, watch: OnProgress) -> None:
        self._index = index
        self._found = found
        self._watch = watch
        self._size = sum(found.stamps[path].size for path in found.new)
        self._seen = self._done = self._held = self._characters = 0
        self._kept = time.monotonic()
        self._files: list[IndexEntry] = []
        self._unreadable: list[str] = []
        self.passages = 0
        self.skipped: list[tuple[str, str]] = []

    def add(self, read: FileResult) -> None:
        stamp = self._found.stamps[read.path]
        self._done += 1
        self._seen += stamp.size
        if read.document is None:
            self.skipped.append((read.path, read.reason))
            self._unreadable.append(
                read.path
            )  # tried again by every run, so that every run can say that it was skipped
        else:
            self._files.append(IndexEntry(read.path, stamp, read.document, list(_passages(read))))
            self._held += len(read.spans)
            self._characters += len(read.document.text)
        if (
            self._held >= _PASSAGES or self._characters >= _CHARACTERS
            or time.monotonic() - self._kept > _FLUSH_SECONDS
        ):  # fmt: skip
            self.flush()

    def flush(self) -> None:
        if self._unreadable:
            self._index.remove(self._unreadable)
        if self._files:
            self._index.replace_all(self._files)
        self.passages += self._held
        self._files, self._unreadable, self._held, self._characters = [], [], 0, 0
        self._kept = time.monotonic()
        share = self._seen / self._size if self._size else 1.0
        self._watch(IndexProgress(self._done, len(self._found.new), self.passages, share))


def _passages(read: FileResult) -> Iterator[Passage]:
    if read.document:
        for start, end in read.spans:
            yield Passage(document=read.document.hash, start=start, end=end, text=read.document.text[start:end])


def add_vectors(
    index: PassageIndex, embedder: Embedder, *, most: int | None = None, watch: OnProgress = lambda _: None
) -> int:
    """A vector for every passage that has none, or for so many of them; how many were made."""
    holdings = index.count_contents()
    missing = holdings.passages - holdings.vectors
    made = 0
    for some in _iter_without_vectors(index, embedder.name):
        vectors = embedder.embed([passage.text for passage in some])
        index.add_vectors(embedder.name, {passage.id: vector for passage, vector in zip(some, vectors, strict=True)})
        made += len(some)
        watch(IndexProgress(made, missing, made, made / max(missing, made)))
        if most is not None and made >= most:
            break
    return made


def _iter_without_vectors(index: PassageIndex, model: str) -> Iterator[list[PendingPassage]]:
    after = 0
    while some := index.list_pending(model, after=after, limit=_VECTORS):
        yield some
        after = some[-1].id


def _read_stamp(path: Path) -> FileStamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return FileStamp(status.st_size, status.st_mtime_ns)
