"""A full-text index in memory."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from openassay.protocols import FileStamp, IndexCounts, IndexEntry, PassageMatch, PendingPassage
from openassay.storage.documents import get_only
from openassay.storage.index_sqlite import check_indexable
from openassay.testing import distinct_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from openassay.models.evidence import Document, Passage


class MemoryIndex:
    """A ports.PassageIndex that goes through all passages; words count by their rarity, twice in a title."""

    def __init__(self) -> None:
        self._files: dict[str, IndexEntry] = {}
        self._turn = Lock()
        self._model = ""
        self._numbers: dict[tuple[Passage, str], int] = {}
        self._vectors: dict[int, NDArray[np.float32]] = {}

    @contextmanager
    def batch(self) -> Iterator[None]:
        before = dict(self._files)
        with ExitStack() as undo:
            undo.callback(self._files.update, before)
            undo.callback(self._files.clear)
            yield
            undo.pop_all()

    def stamps(self) -> dict[str, FileStamp]:
        return {path: file.stamp for path, file in sorted(self._files.items())}

    def replace_all(self, files: Sequence[IndexEntry]) -> None:
        with self.batch():
            for file in files:
                self.replace(*file)

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None:
        check_indexable(path, document, passages)
        self._files[path] = IndexEntry(path, stamp, document, tuple(passages))

    def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._files.pop(path, None)

    def match(self, words: Sequence[str], *, limit: int) -> list[PassageMatch]:
        asked = distinct_words(" ".join(words))
        entries = [
            (document, passage, distinct_words(document.title), distinct_words(passage.text))
            for document, passages in self._documents().values()
            for passage in passages
        ]
        holders = {word: sum(word in title | text for _, _, title, text in entries) for word in asked}
        weight = {word: math.log(1 + len(entries) / count) for word, count in holders.items() if count}
        found = [
            PassageMatch(passage, document.title, document.url, score)
            for document, passage, title, text in entries
            if (score := sum(weight.get(word, 0) * (2 * (word in title) + (word in text)) for word in asked))
        ]
        return sorted(found, key=lambda match: -match.score)[: max(limit, 0)]

    def document(self, hash: str) -> Document:
        documents = self._documents()
        return get_only([documents[hash][0]] if hash in documents else [], hash)

    def count_contents(self) -> IndexCounts:
        passages = list(self._passages())
        return IndexCounts(len(self._files), len(passages), sum(number in self._vectors for number, _ in passages))

    @contextmanager
    def lock_updates(self, *, wait: float) -> Iterator[bool]:
        mine = self._turn.acquire(timeout=wait)
        try:
            yield mine
        finally:
            if mine:
                self._turn.release()

    def optimize(self) -> None:
        """It is in order."""

    def vector_problem(self) -> str:
        return ""

    def list_pending(self, model: str, *, after: int, limit: int) -> list[PendingPassage]:
        self._set_model(model)
        missing = [(number, found) for number, found in self._passages() if number not in self._vectors]
        return [
            PendingPassage(number, f"{found.title}. {found.passage.text}")
            for number, found in missing
            if number > after
        ][:limit]

    def add_vectors(self, model: str, vectors: Mapping[int, NDArray[np.float32]]) -> None:
        self._set_model(model)
        self._vectors.update(vectors)

    def find_nearest(self, model: str, vector: NDArray[np.float32], *, limit: int) -> list[PassageMatch]:
        known = self._vectors if model == self._model else {}
        near = [
            found._replace(score=float(known[number] @ vector)) for number, found in self._passages() if number in known
        ]
        return sorted(near, key=lambda found: -found.score)[: max(limit, 0)]

    def _set_model(self, model: str) -> None:
        if model != self._model:
            self._model, self._vectors = model, {}

    def _passages(self) -> Iterator[tuple[int, PassageMatch]]:
        """By number: one that is the same has the same."""
        found = [
            PassageMatch(passage, document.title, document.url, 0.0)
            for document, passages in self._documents().values()
            for passage in passages
        ]
        for one in found:
            self._numbers.setdefault((one.passage, one.title), len(self._numbers) + 1)
        yield from sorted((self._numbers[one.passage, one.title], one) for one in found)

    def _documents(self) -> dict[str, tuple[Document, Sequence[Passage]]]:
        """Files with the same text share a document: that of the first path."""
        shared: dict[str, tuple[Document, Sequence[Passage]]] = {}
        for _, file in sorted(self._files.items()):
            if file.document:
                shared.setdefault(file.document.hash, (file.document, file.passages))
        return shared
