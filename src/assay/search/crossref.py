"""Crossref: whatever has a DOI, as its publishers describe it."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import Request
from assay.search.courtesy import raised
from assay.search.entries import Entry, doi_address, on, plain
from assay.search.papers import PaperSource, paper
from assay.search.results import valid

FIELDS = "DOI,title,abstract,author,issued"


class Author(Entry):
    given: str | None = None
    family: str | None = None
    name: str | None = None  # of an organisation

    @property
    def full(self) -> str:
        return self.name or f"{self.given or ''} {self.family or ''}"


class When(Entry):
    parts: tuple[tuple[int | None, ...], ...] = Field(default=(), alias="date-parts")


class Item(Entry):
    DOI: str = Field(pattern=r"^10\.\d")
    title: tuple[str, ...] = Field(min_length=1)
    abstract: str = ""
    author: tuple[Author, ...] = ()
    issued: When = When()


class Message(Entry):
    items: tuple[object, ...]


class Results(Entry):
    message: Message


class Crossref(PaperSource):
    name = "crossref"
    endpoint = "https://api.crossref.org/works"
    longest_query = 500
    # Of lists, since December 2025: one a second, one at a time; three of each for those who give a contact.
    own_terms = Terms(per_minute=60, at_once=1)

    @property
    def terms(self) -> Terms:
        own = super().terms
        return raised(own, self.name, self.settings, per_minute=180, at_once=3) if self.settings.contact else own

    def request(self, inquiry: Inquiry) -> Request:
        params: dict[str, str | int] = {
            "query.bibliographic": inquiry.query,
            "rows": inquiry.limit,
            "select": FIELDS,
        }
        if filters := ",".join(self._filters(inquiry)):
            params["filter"] = filters
        if self.settings.contact:
            params["mailto"] = self.settings.contact
        return Request(params=params)

    def _filters(self, inquiry: Inquiry) -> Iterator[str]:
        if since := self.since(inquiry):
            yield f"from-pub-date:{since}"
        if inquiry.until:
            yield f"until-pub-date:{inquiry.until}"

    def found(self, body: str) -> Sequence[Found]:
        items = Results.read(body).message.items
        # Issues and whole proceedings have no title; where only such are found, nothing is.
        titled = [item for item in items if not isinstance(item, dict) or item.get("title")]
        return [_found(item) for item in valid(Item, titled)]


def _found(item: Item) -> Found:
    parts = item.issued.parts
    return paper(
        url=doi_address(item.DOI),
        title=plain(item.title[0]),
        abstract=plain(item.abstract),
        published=on(*parts[0]) if parts else None,
        authors=[author.full for author in item.author],
    )
