"""Documents to find, and a source that finds them."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from assay.model.source import Document, Hit, Kind, Passage
from assay.ports import DocumentStore
from assay.testing.index import distinct_words
from assay.text.passages import passages


def snapshot(
    text: str, *, title: str = "", url: str = "", kind: Kind = "web", published: date | None = None
) -> Document:
    """A document as a source would keep it: named by its text's hash, its host that of its address."""
    name = hashlib.sha256(text.encode()).hexdigest()
    address = url or f"https://{name[:8]}.example/page"
    return Document(
        hash=name, text=text, url=address, title=title or f"Page {name[:4]}", host=urlsplit(address).hostname or "",
        published=published, fetched=datetime(2025, 1, 1, tzinfo=UTC), kind=kind,
    )  # fmt: skip


class FakeSource:
    """A ports.Source over documents given to it: passages that share a word with the query, most shared first.

    `queries` is what it was asked. `before` runs ahead of every search, and may wait, or raise SourceError.
    """

    def __init__(
        self,
        store: DocumentStore,
        documents: Sequence[Document],
        *,
        name: str = "fake",
        before: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.queries: list[str] = []
        self._store = store
        self._documents = documents
        self._before = before

    def is_available(self) -> bool:
        return True

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        self.queries.append(query)
        if self._before is not None:
            await self._before(query)
        wanted = distinct_words(query)
        found = [
            (len(wanted & distinct_words(f"{document.title} {passage.text}")), document, passage)
            for document in self._documents
            for passage in passages(document.hash, document.text)
        ]
        ranked = sorted((item for item in found if item[0]), key=lambda item: (-item[0], item[1].url, item[2].start))
        for _, document, _ in ranked[:limit]:
            await self._store.put(document)
        return [self._hit(query, rank, *item) for rank, item in enumerate(ranked[:limit], 1)]

    def _hit(self, query: str, rank: int, shared: int, document: Document, passage: Passage) -> Hit:
        return Hit(
            provider=self.name, query=query, rank=rank, url=document.url, title=document.title, host=document.host,
            snippet=passage.text[:200], kind=document.kind, published=document.published, score=float(shared),
            document=document.hash, start=passage.start, end=passage.end,
        )  # fmt: skip
