"""Documents people have given. They are stored once, by what they say: the same text may be several people's, and what
one of them calls it, or when they gave it, is told to nobody else. Each run calls them what its own person does."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from assay.model.source import Document
from assay.model.upload import SCHEME
from assay.ports import DocumentStore, Source

TITLE = 60  # characters
NEVER = datetime.fromtimestamp(0, UTC)
_NAMES = ("url", "title", "author", "published", "fetched", "origin", "language")


@runtime_checkable
class Owned(Protocol):
    """A source that knows documents by other names than the store does."""

    async def own(self, hash: str) -> Document | None: ...


def unnamed(document: Document) -> Document:
    """As it is stored: of what a person has given, nothing that does not stand in its text."""
    if not document.url.startswith(SCHEME):
        return document
    return Document(
        hash=document.hash, text=document.text, url=f"{SCHEME}{document.hash[:16]}", fetched=NEVER, kind=document.kind,
        title=" ".join(document.text[: 4 * TITLE].split())[:TITLE] or "untitled",
    )  # fmt: skip


class OwnDocuments:
    """A ports.DocumentStore for one run."""

    def __init__(self, documents: DocumentStore, sources: Sequence[Source]) -> None:
        self._documents = documents
        self._sources = [source for source in sources if isinstance(source, Owned)]
        self._names: dict[str, dict[str, Any]] = {}

    async def put(self, document: Document) -> None:
        await self._documents.put(document)

    async def used(self, thread: str) -> list[str]:
        return await self._documents.used(thread)

    async def get(self, hash: str) -> Document:
        document = await self._documents.get(hash)
        if not self._sources:
            return document
        if document.hash not in self._names:
            self._names[document.hash] = await self._called(document.hash)
        return document.model_copy(update=self._names[document.hash])

    async def _called(self, hash: str) -> dict[str, Any]:
        for source in self._sources:
            if own := await source.own(hash):
                return {name: getattr(own, name) for name in _NAMES}
        return {}
