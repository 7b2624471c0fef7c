"""A web of as many pages as a test wants: every query finds others of them."""

import zlib

from assay.model.inquiry import Inquiry
from assay.model.source import Document, Hit
from assay.testing.remote import FakeRemote
from assay.testing.sources import snapshot

_STRIDE = 7919  # a prime: two queries have few pages in common
_WORDS = 20  # of its own on each page, so that none is a copy of another


class WideWeb(FakeRemote):
    """A ports.Remote; `documents` are what stands at its addresses."""

    def __init__(self, pages: int) -> None:
        super().__init__("wide")
        self.documents = [_page(number) for number in range(pages)]

    def _found(self, inquiry: Inquiry) -> list[Hit]:
        count, first = len(self.documents), zlib.crc32(inquiry.query.encode())
        found = [self.documents[(first + n * _STRIDE) % count] for n in range(min(inquiry.limit, count))]
        return [
            Hit(provider=self.name, query=inquiry.query, rank=rank, url=page.url, title=page.title, host=page.host,
                snippet=page.text[:160])
            for rank, page in enumerate(found, 1)
        ]  # fmt: skip


def _page(number: int) -> Document:
    own = " ".join(f"w{number}x{n}" for n in range(_WORDS))
    text = (
        f"Station {number} on Lake Marrow reported a depth of {number + 3} metres. "
        f"Its observer counted {number + 7} trout and {number + 11} pike in the lake. "
        f"The water of Lake Marrow was {number % 19 + 2} degrees cold at station {number}. {own}"
    )
    return snapshot(text, title=f"Log of station {number}", url=f"https://lake{number % 50}.example/station-{number}")
