"""Semantic Scholar: papers of all fields, with abstracts and free copies."""

from collections.abc import Sequence

from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import Request
from assay.search.entries import Entry, day, doi_address, keywords, on
from assay.search.papers import PaperSource, paper
from assay.search.results import valid

FIELDS = "title,abstract,url,year,publicationDate,authors,externalIds,openAccessPdf"


class Author(Entry):
    name: str | None = None


class Identifiers(Entry):
    DOI: str | None = None
    ArXiv: str | None = None


class Copy(Entry):
    url: str | None = None


class Paper(Entry):
    title: str
    url: str | None = None
    abstract: str | None = None
    year: int | None = None
    publicationDate: str | None = None
    authors: tuple[Author, ...] | None = None
    externalIds: Identifiers | None = None
    openAccessPdf: Copy | None = None

    @property
    def address(self) -> str:
        ids = self.externalIds or Identifiers()
        if ids.DOI:
            return doi_address(ids.DOI)
        return f"https://arxiv.org/abs/{ids.ArXiv}" if ids.ArXiv else self.url or ""


class Results(Entry):
    total: int
    data: tuple[object, ...] = ()


class SemanticScholar(PaperSource):
    name = "semantic_scholar"
    endpoint = "https://api.semanticscholar.org/graph/v1/paper/search"
    # A new key has one request a second; without one all the world shares a pool, and 429 is common.
    own_terms = Terms(per_minute=60, at_once=1, key="semantic_scholar_api_key")

    def request(self, inquiry: Inquiry) -> Request:
        # Its documentation: no query syntax, and hyphenated words match nothing.
        query = " ".join(keywords(inquiry.query, 24)).replace("-", " ")
        params: dict[str, str | int] = {"query": query, "limit": inquiry.limit, "fields": FIELDS}
        since = self.since(inquiry)
        if since or inquiry.until:
            params["publicationDateOrYear"] = f"{since or ''}:{inquiry.until or ''}"
        return Request(params=params, headers={"x-api-key": self.key} if self.key else {})

    def found(self, body: str) -> Sequence[Found]:
        results = Results.read(body)
        if results.total and "data" not in results.model_fields_set:  # without a result there is none
            raise ValueError("it counts papers and gives none")
        return [_found(entry) for entry in valid(Paper, results.data)]


def _found(entry: Paper) -> Found:
    return paper(
        url=entry.address,
        title=entry.title,
        abstract=entry.abstract or "",
        published=day(entry.publicationDate) or on(entry.year),
        authors=[author.name for author in entry.authors or ()],
        free=entry.openAccessPdf.url if entry.openAccessPdf else None,
    )
