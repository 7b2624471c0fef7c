"""Indexes folders: only files that are new or have changed are read, and those that are gone leave the index.

A few files are read in threads of this process, many in processes of their own, so that all of the machine works on
them and no file can take this process with it. What was read is stored every few seconds: an interrupted update
continues there the next time.
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
from contextlib import suppress
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
    IndexProgress,
    IndexUpdate,
    PassageIndex,
    PendingPassage,
)
from openassay.text.sentences import split_passages

MIN_PROCESS_FILES = 200  # files from which on processes are worth the second they take to start
_CHUNK_FILES = 32  # given to a process at a time, or files of so many bytes
_CHUNK_BYTES = 1_000_000
_CHUNKS_AHEAD = 4  # for each process; what waits is all that stands in memory
_FILE_SECONDS = 240  # for one file; a PDF has a limit of its own below that
_FATAL = "took too long to read, or ended the process that read it"
# In one transaction. With 1,000 and 16,000 passages PostgreSQL took a sixth more and an eighth less of CPU, and SQLite
# as much and a tenth less: it is not worth their memory.
_BATCH_PASSAGES = 4_000
_BATCH_CHARACTERS = 16_000_000
_FLUSH_SECONDS = 5.0
_OPTIMIZE_PASSAGES = 2_000  # new passages after which an index is worth putting in order
_VECTOR_BATCH = 256
_REMOVE_BATCH = 10_000  # paths


class FileResult(NamedTuple):
    """A document with the spans of its passages, or the reason why there is none."""

    path: str
    document: Document | None
    spans: Sequence[tuple[int, int]] = ()
    reason: str = ""


def read_files(files: Sequence[tuple[str, int]], reader: DocumentReader, jobs: int) -> Iterator[FileResult]:
    """Read files, given as paths and sizes, in their order and not far ahead of the caller."""
    room = jobs * _CHUNKS_AHEAD
    if len(files) < MIN_PROCESS_FILES or jobs == 1:
        with ThreadPoolExecutor(jobs) as threads:
            waiting: deque[Future[FileResult]] = deque()
            for path, _ in files:
                waiting.append(threads.submit(_read_path, reader, path))
                if len(waiting) >= room:
                    yield waiting.popleft().result()
            for future in waiting:
                yield future.result()
        return
    chunks: list[list[str]] = [[]]
    total = 0
    for path, size in files:
        if chunks[-1] and (len(chunks[-1]) >= _CHUNK_FILES or total + size > _CHUNK_BYTES):
            chunks.append([])
            total = 0
        chunks[-1].append(path)
        total += size
    with _ReaderPool(reader, jobs) as processes:
        yield from processes.read_chunks(chunks, room)


class _ReaderPool:
    """A pool of processes that is renewed when a file has ended one of them."""

    def __init__(self, reader: DocumentReader, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = context.Pipe(duplex=False)
        begin = (reader, self._theirs)
        self._open = partial(ProcessPoolExecutor, jobs, mp_context=context, initializer=_init_process, initargs=begin)
        self._pool: Executor = self._open()

    def __enter__(self) -> "_ReaderPool":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the pool; after an error without waiting for a file that takes long."""
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
        # Nobody knows which file it was: all files that were submitted are read once more, one by one.
        paths = [path for some, _ in ((chunk, None), *waiting) for path in some]
        waiting.clear()
        for path in paths:
            for _ in range(2):  # the pool may be broken already
                future = self._submit([path])
                try:
                    if future is not None:
                        yield from future.result()
                        break
                except BrokenProcessPool:
                    self._renew()
                    yield FileResult(path, None, reason=f"{Path(path).name}: {_FATAL}")
                    break
                self._renew()
            else:
                raise BrokenProcessPool("processes to read files in cannot be started")

    def _renew(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._open()


def _read_path(reader: DocumentReader, path: str) -> FileResult:
    try:
        document = reader.read(Path(path))
    except ReadError as error:
        return FileResult(path, None, reason=error.message)
    spans = [(passage.start, passage.end) for passage in split_passages(document.hash, document.text)]
    return FileResult(path, document, spans)


_readers: list[DocumentReader] = []  # in a process of the pool, its reader


def _init_process(reader: DocumentReader, parent: Connection) -> None:
    """Prepare a process of the pool; Ctrl-C is for the process that a person has started."""
    _readers[:] = [reader]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: Connection) -> None:
    """End with the parent: nothing ever comes through the pipe, which ends when the parent closes it or dies."""
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


OnProgress = Callable[[IndexProgress], None]


class IndexChanges(NamedTuple):
    """How the files of a folder differ from its index."""

    stamps: Mapping[str, FileStamp]
    new: Sequence[str]
    gone: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.new or self.gone)


def find_changes(folder: DocumentFolder, index: PassageIndex) -> IndexChanges:
    """Compare the files of a folder with what its index holds."""
    known = index.stamps()
    stamps: dict[str, FileStamp] = {}
    for path in folder.files:
        with suppress(OSError):
            status = path.stat()
            stamps[str(path)] = FileStamp(status.st_size, status.st_mtime_ns)
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
    """Update the index of a folder. `jobs` files are read at once, by default as many as there are processors."""
    changes = find_changes(folder, index)
    for start in range(0, len(changes.gone), _REMOVE_BATCH):
        index.remove(changes.gone[start : start + _REMOVE_BATCH])
    batch = _IndexBatch(index, changes, watch)
    sizes = [(path, changes.stamps[path].size) for path in changes.new]
    for result in read_files(sizes, reader, jobs or os.cpu_count() or 2):
        batch.add(result)
    batch.flush()
    if batch.passages >= _OPTIMIZE_PASSAGES or len(changes.gone) >= _OPTIMIZE_PASSAGES:
        index.optimize()
    return IndexUpdate(
        files=len(changes.stamps) - len(batch.skipped),
        new=len(changes.new) - len(batch.skipped),
        removed=len(changes.gone),
        skipped=[*((str(path), reason) for path, reason in folder.skipped), *batch.skipped],
    )


class _IndexBatch:
    """Collects what was read until it is stored; never much."""

    def __init__(self, index: PassageIndex, changes: IndexChanges, watch: OnProgress) -> None:
        self._index = index
        self._changes = changes
        self._watch = watch
        self._total_bytes = sum(changes.stamps[path].size for path in changes.new)
        self._bytes = self._done = self._pending = self._characters = 0
        self._flushed = time.monotonic()
        self._files: list[IndexEntry] = []
        self._unreadable: list[str] = []
        self.passages = 0
        self.skipped: list[tuple[str, str]] = []

    def add(self, result: FileResult) -> None:
        stamp, document = self._changes.stamps[result.path], result.document
        self._done += 1
        self._bytes += stamp.size
        if document is None:
            self.skipped.append((result.path, result.reason))
            self._unreadable.append(result.path)  # tried again by every run, which can then report that it was skipped
        else:
            passages = [
                Passage(document=document.hash, start=start, end=end, text=document.text[start:end])
                for start, end in result.spans
            ]
            self._files.append(IndexEntry(result.path, stamp, document, passages))
            self._pending += len(passages)
            self._characters += len(document.text)
        is_full = self._pending >= _BATCH_PASSAGES or self._characters >= _BATCH_CHARACTERS
        if is_full or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._unreadable:
            self._index.remove(self._unreadable)
        if self._files:
            self._index.replace_all(self._files)
        self.passages += self._pending
        self._files, self._unreadable, self._pending, self._characters = [], [], 0, 0
        self._flushed = time.monotonic()
        share = self._bytes / self._total_bytes if self._total_bytes else 1.0
        self._watch(IndexProgress(self._done, len(self._changes.new), self.passages, share))


def add_vectors(index: PassageIndex, embedder: Embedder, *, watch: OnProgress = lambda _: None) -> int:
    """Make vectors for the passages that have none; return how many were made."""
    contents = index.count_contents()
    missing = contents.passages - contents.vectors
    made = after = 0
    while batch := make_vectors(index, embedder, after=after):
        made += len(batch)
        after = batch[-1].id
        watch(IndexProgress(made, missing, made, made / max(missing, made)))
    return made


def make_vectors(
    index: PassageIndex, embedder: Embedder, *, after: int = 0, limit: int = _VECTOR_BATCH
) -> list[PendingPassage]:
    """Make vectors for the next passages that have none; return these."""
    batch = index.list_pending(embedder.name, after=after, limit=limit)
    vectors = embedder.embed([passage.text for passage in batch])
    index.add_vectors(embedder.name, {passage.id: vector for passage, vector in zip(batch, vectors, strict=True)})
    return batch
