"""A web of documents: an address gives the document that was put there, or the reason that was."""

from assay.model.source import Document, Kind
from assay.ports import Page


class FakePages:
    """A ports.Pages. `asked` is every address it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._pages: dict[str, Document | str] = {}

    def put(self, address: str, page: Document | str) -> None:
        self._pages[address] = page

    async def read(self, address: str, *, kind: Kind = "web") -> Page:
        self.asked.append(address)
        found = self._pages.get(address, "answered 404")
        if isinstance(found, str):
            return Page(address, reason=found)
        return Page(address, found.model_copy(update={"kind": kind}))
