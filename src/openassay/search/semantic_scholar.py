"""Semantic Scholar: papers of all fields, with abstracts and free copies. https://api.semanticscholar.org/api-docs/"""

from collections.abc import Sequence

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import PaperSource, ProviderEntry, ProviderRequest, make_paper, nested_field, parse_entries
from openassay.search.fields import date_from_parts, doi_url, parse_iso_date, query_keywords

FIELDS = "title,abstract,url,year,publicationDate,authors,externalIds,openAccessPdf"


class SemanticScholarAuthor(ProviderEntry):
    name: str | None = None


class SemanticScholarPaper(ProviderEntry):
    title: str
    url: str | None = None
    abstract: str | None = None
    year: int | None = None
    publicationDate: str | None = None
    authors: tuple[SemanticScholarAuthor, ...] | None = None
    doi: str | None = nested_field("externalIds", "DOI")
    arxiv: str | None = nested_field("externalIds", "ArXiv")
    pdf: str | None = nested_field("openAccessPdf", "url")

    @property
    def address(self) -> str:
        if self.doi:
            return doi_url(self.doi)
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else self.url or ""


class SemanticScholarResponse(ProviderEntry):
    total: int
    data: tuple[object, ...] = ()


class SemanticScholarSource(PaperSource):
    name = "semantic_scholar"
    endpoint = "https://api.semanticscholar.org/graph/v1/paper/search"
    # A new key has one request a second; without one all the world shares a pool, and 429 is common.
    own_terms = ProviderTerms(per_minute=60, at_once=1, key="semantic_scholar_api_key")

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        # Its documentation: no query syntax, and hyphenated words match nothing.
        query = " ".join(query_keywords(search.query, 24)).replace("-", " ")
        since = self.since(search)
        period = f"{since or ''}:{search.until or ''}" if since or search.until else None
        return ProviderRequest(
            params={"query": query, "limit": search.limit, "fields": FIELDS, "publicationDateOrYear": period},
            headers={"x-api-key": self.key} if self.key else {},
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        response = SemanticScholarResponse.read(body)
        if response.total and "data" not in response.model_fields_set:  # it is missing only where nothing was found
            raise ValueError("it counts papers and gives none")
        return [
            make_paper(
                url=paper.address,
                title=paper.title,
                abstract=paper.abstract or "",
                published=parse_iso_date(paper.publicationDate) or date_from_parts(paper.year),
                authors=[author.name for author in paper.authors or ()],
                free=paper.pdf,
            )
            for paper in parse_entries(SemanticScholarPaper, response.data)
        ]
