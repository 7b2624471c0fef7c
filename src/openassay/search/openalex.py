"""OpenAlex: the open catalogue of papers, with abstracts and free copies."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import NonNegativeInt

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    PaperSource,
    ProviderEntry,
    ProviderRequest,
    doi_url,
    join_terms,
    make_paper,
    parse_entries,
    parse_iso_date,
    query_keywords,
    raise_limits,
    strip_markup,
)

FIELDS = (
    "id,doi,display_name,publication_date,authorships,abstract_inverted_index,primary_location,best_oa_location,"
    "open_access"
)
LONGEST = 5_000  # words of an abstract; what is longer is a whole text that was taken for one


class OpenAlexAuthor(ProviderEntry):
    display_name: str | None = None


class OpenAlexAuthorship(ProviderEntry):
    author: OpenAlexAuthor = OpenAlexAuthor()


class OpenAlexLocation(ProviderEntry):
    landing_page_url: str | None = None
    pdf_url: str | None = None


class OpenAlexAccess(ProviderEntry):
    oa_url: str | None = None


class OpenAlexWork(ProviderEntry):
    id: str
    display_name: str
    doi: str | None = None
    publication_date: str | None = None
    authorships: tuple[OpenAlexAuthorship, ...] | None = None
    abstract_inverted_index: dict[str, tuple[NonNegativeInt, ...]] | None = None
    primary_location: OpenAlexLocation | None = None
    best_oa_location: OpenAlexLocation | None = None
    open_access: OpenAlexAccess | None = None

    @property
    def address(self) -> str:
        landing = self.primary_location.landing_page_url if self.primary_location else None
        return doi_url(self.doi) if self.doi else landing or self.id

    @property
    def free(self) -> str | None:
        pdf = self.best_oa_location.pdf_url if self.best_oa_location else None
        return pdf or (self.open_access.oa_url if self.open_access else None)


class OpenAlexResponse(ProviderEntry):
    results: tuple[object, ...]


class OpenAlexSource(PaperSource):
    name = "openalex"
    endpoint = "https://api.openalex.org/works"
    # A search takes 0.001 USD of what is free each day: 0.10 without a key, 1 with one, which is free too.
    own_terms = ProviderTerms(per_minute=300, per_day=100, key="openalex_api_key")

    @property
    def terms(self) -> ProviderTerms:
        return raise_limits(super().terms, self.name, self.settings, per_day=1000) if self.key else super().terms

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        params: dict[str, str | int] = {
            "search": join_terms(query_keywords(inquiry.query, 12), all_of=6),
            "per-page": inquiry.limit,
            "filter": ",".join(self._filters(inquiry)),
            "select": FIELDS,
        }
        if self.settings.contact:
            params["mailto"] = self.settings.contact
        return ProviderRequest(params=params, secrets={"api_key": self.key} if self.key else {})

    def _filters(self, inquiry: SearchRequest) -> Iterator[str]:
        yield "is_retracted:false"
        if since := self.since(inquiry):
            yield f"from_publication_date:{since}"
        if inquiry.until:
            yield f"to_publication_date:{inquiry.until}"
        if inquiry.language and inquiry.language.isalpha():
            yield f"language:{inquiry.language.lower()}"

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [_to_result(work) for work in parse_entries(OpenAlexWork, OpenAlexResponse.read(body).results)]


def _to_result(work: OpenAlexWork) -> ProviderResult:
    return make_paper(
        url=work.address,
        title=strip_markup(work.display_name),
        abstract=strip_markup(_rebuild_abstract(work.abstract_inverted_index or {})),
        published=parse_iso_date(work.publication_date),
        authors=[authorship.author.display_name for authorship in work.authorships or ()],
        free=work.free,
    )


def _rebuild_abstract(index: Mapping[str, Sequence[int]]) -> str:
    """A text that is told as the places of its words."""
    words = {place: word for word, places in index.items() for place in places if place < LONGEST}
    return " ".join(words[place] for place in sorted(words))
