"""People's own documents, and the search over them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from assay.model.source import Document, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class FileReader(Protocol):
    """Turns one file into a document, or raises ReadError saying why not."""

    def reads(self, path: Path) -> bool: ...

    def read(self, path: Path) -> Document: ...


class Folder(NamedTuple):
    """A root with the files found below it; skipped ones keep their reason."""

    root: Path
    files: Sequence[Path]
    skipped: Sequence[tuple[Path, str]]
    is_here: bool = True  # or it was indexed on another machine, and is searched as it was then


class FileStamp(NamedTuple):
    """How an index tells that a file has not changed since it was read."""

    size: int
    mtime_ns: int


class IndexedFile(NamedTuple):
    """A file as an index takes it; no document if it has no text."""

    path: str
    stamp: FileStamp
    document: Document | None
    passages: Sequence[Passage]


class IndexedPassage(NamedTuple):
    passage: Passage
    title: str
    url: str
    score: float  # larger is better: BM25 or the like of a match, the cosine of a neighbour


class BarePassage(NamedTuple):
    """A passage without a vector, by the number its index knows it under; `text` begins with the title."""

    id: int
    text: str


class Holdings(NamedTuple):
    files: int
    passages: int
    vectors: int


class PassageIndex(Protocol):
    """Full-text index of one folder, with a vector for each passage where somebody wanted them. Synchronous: callers
    run it in a thread."""

    def stamps(self) -> dict[str, FileStamp]: ...

    def replace_all(self, files: Sequence[IndexedFile]) -> None:
        """Forget what these paths held and index what they hold now, all or nothing."""
        ...

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None: ...

    def remove(self, paths: Sequence[str]) -> None: ...

    def match(self, words: Sequence[str], *, limit: int) -> list[IndexedPassage]: ...

    def document(self, hash: str) -> Document: ...

    def holdings(self) -> Holdings: ...

    def turn(self, *, wait: float) -> AbstractContextManager[bool]:
        """Whether it is ours to bring up to date, until we leave. Who has waited so long in vain may read it all the
        same. What a process held that died is free."""
        ...

    def settle(self) -> None:
        """After many changes: put in order what was left for later, so that questions are answered quickly."""
        ...

    def without_vectors(self) -> str:
        """Why it cannot keep vectors; nothing where it can."""
        ...

    def bare(self, model: str, *, after: int, limit: int) -> list[BarePassage]:
        """Passages of higher numbers that have no vector of this model, in order. Those of another are forgotten."""
        ...

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        """Of unit length, by the number of the passage. One that is gone by now is left out."""
        ...

    def nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[IndexedPassage]:
        """The nearest by meaning, best first; none where there are no vectors of this model."""
        ...


class PassageRanker(Protocol):
    """The passages of some documents that answer each of several questions best, best first."""

    async def rank(
        self, documents: Sequence[Document], questions: Sequence[str], *, limit: int
    ) -> list[list[Passage]]: ...
