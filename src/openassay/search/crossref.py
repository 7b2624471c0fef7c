"""Crossref: whatever has a DOI, as its publishers describe it."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    PaperSource,
    ProviderEntry,
    ProviderRequest,
    date_from_parts,
    doi_url,
    make_paper,
    parse_entries,
    raise_limits,
    strip_markup,
)

FIELDS = "DOI,title,abstract,author,issued"


class CrossrefAuthor(ProviderEntry):
    given: str | None = None
    family: str | None = None
    name: str | None = None  # of an organisation

    @property
    def full(self) -> str:
        return self.name or f"{self.given or ''} {self.family or ''}"


class CrossrefDate(ProviderEntry):
    parts: tuple[tuple[int | None, ...], ...] = Field(default=(), alias="date-parts")


class CrossrefWork(ProviderEntry):
    DOI: str = Field(pattern=r"^10\.\d")
    title: tuple[str, ...] = Field(min_length=1)
    abstract: str = ""
    author: tuple[CrossrefAuthor, ...] = ()
    issued: CrossrefDate = CrossrefDate()


class CrossrefMessage(ProviderEntry):
    items: tuple[object, ...]


class CrossrefResponse(ProviderEntry):
    message: CrossrefMessage


class CrossrefSource(PaperSource):
    name = "crossref"
    endpoint = "https://api.crossref.org/works"
    longest_query = 500
    # Of lists, since December 2025: one a second, one at a time; three of each for those who give a contact.
    own_terms = ProviderTerms(per_minute=60, at_once=1)

    @property
    def terms(self) -> ProviderTerms:
        own = super().terms
        return raise_limits(own, self.name, self.settings, per_minute=180, at_once=3) if self.settings.contact else own

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        params: dict[str, str | int] = {
            "query.bibliographic": inquiry.query,
            "rows": inquiry.limit,
            "select": FIELDS,
        }
        if filters := ",".join(self._filters(inquiry)):
            params["filter"] = filters
        if self.settings.contact:
            params["mailto"] = self.settings.contact
        return ProviderRequest(params=params)

    def _filters(self, inquiry: SearchRequest) -> Iterator[str]:
        if since := self.since(inquiry):
            yield f"from-pub-date:{since}"
        if inquiry.until:
            yield f"until-pub-date:{inquiry.until}"

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        items = CrossrefResponse.read(body).message.items
        # Issues and whole proceedings have no title; where only such are found, nothing is.
        titled = [item for item in items if not isinstance(item, dict) or item.get("title")]
        return [_to_result(item) for item in parse_entries(CrossrefWork, titled)]


def _to_result(item: CrossrefWork) -> ProviderResult:
    parts = item.issued.parts
    return make_paper(
        url=doi_url(item.DOI),
        title=strip_markup(item.title[0]),
        abstract=strip_markup(item.abstract),
        published=date_from_parts(*parts[0]) if parts else None,
        authors=[author.full for author in item.author],
    )
