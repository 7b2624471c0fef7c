"""Many files read at once and cut into passages: a few in threads of this process, many in processes of their own, so
that all of the machine works on them and no file can take this process with it."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from assay.errors import ReadError
from assay.model.source import Document
from assay.ports import FileReader
from assay.text.passages import passages

MANY = 200  # files from which on processes are worth the second they take to start
_FILES = 32  # handed to a process at a time, or files of so many bytes
_BYTES = 1_000_000
_AHEAD = 4  # times as many handed out as are worked on; what waits is all that stands in memory
_SECONDS = 240  # for one file; a PDF has a limit of its own below that
_FATAL = "took too long to read, or ended the process that read it"


class Read(NamedTuple):
    """What became of a file: a document with where its passages begin and end, or why there is none."""

    path: str
    document: Document | None
    spans: Sequence[tuple[int, int]] = ()
    reason: str = ""


def read_all(files: Sequence[tuple[str, int]], reader: FileReader, jobs: int) -> Iterator[Read]:
    """Of paths and sizes, in their order. Nothing is read far ahead of whoever takes the results."""
    room = jobs * _AHEAD
    if len(files) < MANY or jobs == 1:
        with ThreadPoolExecutor(jobs) as threads:
            waiting: deque[Future[list[Read]]] = deque()
            for chunk in _chunks(files):
                waiting.append(threads.submit(_read, reader, chunk))
                if len(waiting) >= room:
                    yield from waiting.popleft().result()
            for future in waiting:
                yield from future.result()
        return
    with _Processes(reader, jobs) as processes:
        yield from processes.read_all(_chunks(files), room)


class _Processes:
    """A pool that is made anew when a file has ended one of its processes."""

    def __init__(self, reader: FileReader, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = context.Pipe(duplex=False)
        begin = (reader, self._theirs)
        self._open = partial(ProcessPoolExecutor, jobs, mp_context=context, initializer=_begin, initargs=begin)
        self._pool: Executor = self._open()

    def __enter__(self) -> "_Processes":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Whoever leaves early does not wait for a file that takes long."""
        if kind is not None:
            self._ours.close()
        self._pool.shutdown(cancel_futures=True)
        self._ours.close()
        self._theirs.close()

    def read_all(self, chunks: Iterable[Sequence[str]], room: int) -> Iterator[Read]:
        waiting: deque[tuple[Sequence[str], Future[list[Read]] | None]] = deque()
        for chunk in chunks:
            waiting.append((chunk, self._submitted(chunk)))
            if len(waiting) >= room:
                yield from self._next(waiting)
        while waiting:
            yield from self._next(waiting)

    def _submitted(self, chunk: Sequence[str]) -> Future[list[Read]] | None:
        try:
            return self._pool.submit(_read_there, chunk)
        except BrokenProcessPool:
            return None

    def _next(self, waiting: deque[tuple[Sequence[str], Future[list[Read]] | None]]) -> Iterator[Read]:
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
            yield from self._alone(path)

    def _alone(self, path: str) -> list[Read]:
        for _ in range(2):  # the pool at hand may be broken already
            future = self._submitted([path])
            try:
                if future is not None:
                    return future.result()
            except BrokenProcessPool:
                self._renew()
                return [Read(path, None, reason=f"{Path(path).name}: {_FATAL}")]
            self._renew()
        raise BrokenProcessPool("processes to read files in cannot be started")

    def _renew(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._open()


def _chunks(files: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
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


def _read(reader: FileReader, paths: Sequence[str]) -> list[Read]:
    return [_one(reader, path) for path in paths]


def _one(reader: FileReader, path: str) -> Read:
    try:
        document = reader.read(Path(path))
    except ReadError as error:
        return Read(path, None, reason=error.message)
    return Read(path, document, [(passage.start, passage.end) for passage in passages(document.hash, document.text)])


# In a process of its own -----------------------------------------------------------------------------

_readers: list[FileReader] = []


def _begin(reader: FileReader, parent: Connection) -> None:
    """Ctrl-C is for the process that a person has started."""
    _readers[:] = [reader]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: Connection) -> None:
    """Nothing ever comes through the pipe: it ends when the parent closes it or, in whatever way, dies."""
    parent.poll(None)
    os._exit(1)


def _read_there(paths: Sequence[str]) -> list[Read]:
    found = []
    for path in paths:
        _alarm(_SECONDS)  # ends the process, whatever the file makes it do
        found.append(_one(_readers[0], path))
    _alarm(0)
    return found


def _alarm(seconds: int) -> None:
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_REAL, seconds)
