"""The seams of Assay: what the pipeline needs from the world, one or two methods each.

    Source          where hits come from             search/*        registered as entry points `assay.sources`
    FileReader      a file on disk -> Document       harvest/
    PassageIndex    full-text search over passages   storage/
    DocumentStore   snapshots by content hash        storage/
    ThreadStore     threads and their runs           storage/
    RunLocks        one worker a thread              storage/
    EventLog        what happened, in order          storage/
    Embedder        text -> vectors                  embedding/
    SupportScorer   does a quote support a sentence  trust/
    Reasoner        all thinking                     reasoning/      (reasoning/protocol.py)

`bootstrap.py` is the only place that chooses implementations; `testing.py` has a fake of each that passes
the same contract tests.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from assay.model.event import Event, RunStatus, Status
from assay.model.source import Document, Hit, Passage
from assay.model.thread import Run, Thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Source(Protocol):
    """Raises SourceError when it cannot be searched; an empty list means that nothing was found."""

    @property
    def name(self) -> str: ...

    def is_available(self) -> bool: ...

    async def search(self, query: str, *, limit: int) -> list[Hit]: ...


class Indexed(NamedTuple):
    """What bringing an index up to date has done."""

    files: int
    new: int
    removed: int
    skipped: Sequence[tuple[str, str]]


@runtime_checkable
class Prepared(Protocol):
    """A source with something to do before its first search."""

    async def prepare(self) -> Indexed: ...


@runtime_checkable
class Assessed(Protocol):
    """A source that can tell how complete its data on a subject are, 0 to 1; None for one it does not know."""

    def confidence(self, subject: str) -> float | None: ...


class FileReader(Protocol):
    """Turns one file into a document, or raises ReadError saying why not."""

    def reads(self, path: Path) -> bool: ...

    def read(self, path: Path) -> Document: ...


class Folder(NamedTuple):
    """A root with the files found below it; skipped ones keep their reason."""

    root: Path
    files: Sequence[Path]
    skipped: Sequence[tuple[Path, str]]


class FileStamp(NamedTuple):
    """How an index tells that a file has not changed since it was read."""

    size: int
    mtime_ns: int


class IndexedPassage(NamedTuple):
    passage: Passage
    title: str
    url: str
    score: float  # BM25, larger is better


class PassageIndex(Protocol):
    """Full-text index of one folder. Synchronous: callers run it in a thread."""

    def stamps(self) -> dict[str, FileStamp]: ...

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None: ...

    def remove(self, paths: Sequence[str]) -> None: ...

    def match(self, words: Sequence[str], *, limit: int) -> list[IndexedPassage]: ...

    def document(self, hash: str) -> Document: ...


class DocumentStore(Protocol):
    """Content-addressed snapshots. `get` raises NotFoundError, or EvidenceError if the text was altered."""

    async def put(self, document: Document) -> None: ...

    async def get(self, hash: str) -> Document: ...


class ThreadStore(Protocol):
    """`begin` raises ThreadBusyError when another run is active on the thread."""

    async def create(self, thread: Thread) -> None: ...

    async def get(self, id: str) -> Thread: ...

    async def recent(self, *, limit: int) -> list[Thread]: ...

    async def delete(self, id: str) -> None: ...

    async def begin(self, run: Run) -> None: ...

    async def update(
        self,
        run: str,
        *,
        status: RunStatus | None = None,
        stage: Status | None = None,
        error: str | None = None,
    ) -> None: ...

    async def run(self, id: str) -> Run: ...

    async def runs(self, thread: str) -> list[Run]: ...


class RunLocks(Protocol):
    """One worker at a time on a thread; `take` raises ThreadBusyError, and a dead holder's lock is free."""

    def take(self, thread: str) -> None: ...

    def release(self, thread: str) -> None: ...


class EventLog(Protocol):
    """Append-only; `append` returns the event with its sequence number within the run."""

    async def append(self, event: Event) -> Event: ...

    async def since(self, run: str, seq: int) -> list[Event]: ...


class Embedder(Protocol):
    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]": ...


class SupportScorer(Protocol):
    """How far a quote supports a statement, 0 to 1. Never the only judge."""

    def score(self, statement: str, quote: str) -> float: ...
