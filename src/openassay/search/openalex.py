"""OpenAlex: the open catalogue of papers, with abstracts and free copies. https://docs.openalex.org/api-entities/works"""

from collections.abc import Mapping, Sequence

from pydantic import NonNegativeInt

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import PaperSource, ProviderEntry, ProviderRequest, make_paper, nested_field, read_entries
from openassay.search.fields import doi_url, join_terms, parse_iso_date, query_keywords, strip_markup

FIELDS = (
    "id,doi,display_name,publication_date,authorships,abstract_inverted_index,primary_location,best_oa_location,"
    "open_access"
)
MAX_ABSTRACT = 5_000  # words; a longer abstract is a whole text that was taken for one


class OpenAlexAuthorship(ProviderEntry):
    name: str | None = nested_field("author", "display_name")


class OpenAlexWork(ProviderEntry):
    id: str
    display_name: str
    doi: str | None = None
    publication_date: str | None = None
    authorships: tuple[OpenAlexAuthorship, ...] | None = None
    abstract_inverted_index: dict[str, tuple[NonNegativeInt, ...]] | None = None
    landing: str | None = nested_field("primary_location", "landing_page_url")
    pdf: str | None = nested_field("best_oa_location", "pdf_url")
    free: str | None = nested_field("open_access", "oa_url")

    @property
    def abstract(self) -> str:
        """The text, which comes as the positions of its words."""
        index = self.abstract_inverted_index or {}
        words = {position: word for word, positions in index.items() for position in positions}
        return " ".join(words[position] for position in sorted(words) if position < MAX_ABSTRACT)


class OpenAlexSource(PaperSource):
    name = "openalex"
    endpoint = "https://api.openalex.org/works"
    # A search takes 0.001 USD of what is free each day: 0.10 without a key, 1 with one, which is free too.
    own_terms = ProviderTerms(per_minute=300, per_day=100, key="openalex_api_key")

    def better_limits(self) -> Mapping[str, float]:
        return {"per_day": 1000} if self.key else {}

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        filters = ["is_retracted:false"]
        if since := self.since(search):
            filters.append(f"from_publication_date:{since}")
        if search.until:
            filters.append(f"to_publication_date:{search.until}")
        if search.language and search.language.isalpha():
            filters.append(f"language:{search.language.lower()}")
        return ProviderRequest(
            params={
                "search": join_terms(query_keywords(search.query, 12), all_of=6),
                "per-page": search.limit,
                "filter": ",".join(filters),
                "select": FIELDS,
                "mailto": self.settings.contact or None,
            },
            secrets={"api_key": self.key} if self.key else {},
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [
            make_paper(
                url=doi_url(work.doi) if work.doi else work.landing or work.id,
                title=strip_markup(work.display_name),
                abstract=strip_markup(work.abstract),
                published=parse_iso_date(work.publication_date),
                authors=[authorship.name for authorship in work.authorships or ()],
                free=work.pdf or work.free,
            )
            for work in read_entries(OpenAlexWork, body, "results")
        ]
