"""Semantic Scholar: papers of all fields, with abstracts and free copies."""

from collections.abc import Sequence

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    PaperSource,
    ProviderEntry,
    ProviderRequest,
    date_from_parts,
    doi_url,
    make_paper,
    parse_entries,
    parse_iso_date,
    query_keywords,
)

FIELDS = "title,abstract,url,year,publicationDate,authors,externalIds,openAccessPdf"


class SemanticScholarAuthor(ProviderEntry):
    name: str | None = None


class SemanticScholarIds(ProviderEntry):
    DOI: str | None = None
    ArXiv: str | None = None


class SemanticScholarCopy(ProviderEntry):
    url: str | None = None


class SemanticScholarPaper(ProviderEntry):
    title: str
    url: str | None = None
    abstract: str | None = None
    year: int | None = None
    publicationDate: str | None = None
    authors: tuple[SemanticScholarAuthor, ...] | None = None
    externalIds: SemanticScholarIds | None = None
    openAccessPdf: SemanticScholarCopy | None = None

    @property
    def address(self) -> str:
        ids = self.externalIds or SemanticScholarIds()
        if ids.DOI:
            return doi_url(ids.DOI)
        return f"https://arxiv.org/abs/{ids.ArXiv}" if ids.ArXiv else self.url or ""


class SemanticScholarResponse(ProviderEntry):
    total: int
    data: tuple[object, ...] = ()


class SemanticScholarSource(PaperSource):
    name = "semantic_scholar"
    endpoint = "https://api.semanticscholar.org/graph/v1/paper/search"
    # A new key has one request a second; without one all the world shares a pool, and 429 is common.
    own_terms = ProviderTerms(per_minute=60, at_once=1, key="semantic_scholar_api_key")

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        # Its documentation: no query syntax, and hyphenated words match nothing.
        query = " ".join(query_keywords(inquiry.query, 24)).replace("-", " ")
        params: dict[str, str | int] = {"query": query, "limit": inquiry.limit, "fields": FIELDS}
        since = self.since(inquiry)
        if since or inquiry.until:
            params["publicationDateOrYear"] = f"{since or ''}:{inquiry.until or ''}"
        return ProviderRequest(params=params, headers={"x-api-key": self.key} if self.key else {})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        results = SemanticScholarResponse.read(body)
        if results.total and "data" not in results.model_fields_set:  # without a result there is none
            raise ValueError("it counts papers and gives none")
        return [_to_result(entry) for entry in parse_entries(SemanticScholarPaper, results.data)]


def _to_result(entry: SemanticScholarPaper) -> ProviderResult:
    return make_paper(
        url=entry.address,
        title=entry.title,
        abstract=entry.abstract or "",
        published=parse_iso_date(entry.publicationDate) or date_from_parts(entry.year),
        authors=[author.name for author in entry.authors or ()],
        free=entry.openAccessPdf.url if entry.openAccessPdf else None,
    )
