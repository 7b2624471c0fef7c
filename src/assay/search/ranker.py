"""Which passages of pages that were just fetched answer a question: an index for the moment, asked and dropped."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from assay.model.source import Document, Passage
from assay.ports import Embedder, FileStamp, PassageIndex
from assay.search.ranking import rank
from assay.text.passages import passages

_NEW = FileStamp(0, 0)


class IndexRanker:
    """A ports.PassageRanker: what serves a person's own documents serves pages too."""

    def __init__(self, open_index: Callable[[], AbstractContextManager[PassageIndex]], embedder: Embedder) -> None:
        self._open_index = open_index
        self._embedder = embedder

    async def rank(self, documents: Sequence[Document], questions: Sequence[str], *, limit: int) -> list[list[Passage]]:
        return await asyncio.to_thread(self._rank, documents, questions, limit)

    def _rank(self, documents: Sequence[Document], questions: Sequence[str], limit: int) -> list[list[Passage]]:
        with self._open_index() as index:
            for document in documents:
                index.replace(document.hash, _NEW, document, passages(document.hash, document.text))
            return [
                [found.match.passage for found in rank(question, [index], self._embedder, limit)]
                for question in questions
            ]
