"""Crossref: whatever has a DOI, as its publishers describe it. https://api.crossref.org/swagger-ui/"""

from collections.abc import Mapping, Sequence

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search import base
from openassay.search.fields import date_from_parts, doi_url, strip_markup

FIELDS = "DOI,title,abstract,author,issued"


class CrossrefAuthor(base.ProviderEntry):
    given: str | None = None
    family: str | None = None
    name: str | None = None  # of an organisation


class CrossrefWork(base.ProviderEntry):
    DOI: str = Field(pattern=r"^10\.\d")
    title: tuple[str, ...] = Field(min_length=1)
    abstract: str = ""
    author: tuple[CrossrefAuthor, ...] = ()
    issued: tuple[tuple[int | None, ...], ...] = base.nested_field("issued", "date-parts", default=())


class CrossrefSource(base.PaperSource):
    name = "crossref"
    endpoint = "https://api.crossref.org/works"
    max_query = 500
    # Of lists, since December 2025: one a second, one at a time; three of each for those who give a contact.
    own_terms = ProviderTerms(per_minute=60, at_once=1)

    def better_limits(self) -> Mapping[str, float]:
        return {"per_minute": 180, "at_once": 3} if self.settings.contact else {}

    def build_request(self, search: SearchRequest) -> base.ProviderRequest:
        days = {"from-pub-date": self.since(search), "until-pub-date": search.until}
        return base.ProviderRequest(
            params={
                "query.bibliographic": search.query,
                "rows": search.limit,
                "select": FIELDS,
                "filter": ",".join(f"{name}:{day}" for name, day in days.items() if day) or None,
                "mailto": self.settings.contact or None,
            }
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        items = base.read_list(body, "message", "items")
        # Issues and whole proceedings have no title; where only such are found, nothing is.
        titled = [item for item in items if not isinstance(item, dict) or item.get("title")]
        return [
            base.make_paper(
                url=doi_url(work.DOI),
                title=strip_markup(work.title[0]),
                abstract=strip_markup(work.abstract),
                published=date_from_parts(*work.issued[0]) if work.issued else None,
                authors=[one.name or f"{one.given or ''} {one.family or ''}" for one in work.author],
            )
            for work in base.parse_entries(CrossrefWork, titled)
        ]
