"""OpenAlex: the open catalogue of papers, with abstracts and free copies."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import NonNegativeInt

from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import Request
from assay.search.courtesy import raised
from assay.search.entries import Entry, combined, day, doi_address, keywords, plain
from assay.search.papers import PaperSource, paper
from assay.search.results import valid

FIELDS = (
    "id,doi,display_name,publication_date,authorships,abstract_inverted_index,primary_location,best_oa_location,"
    "open_access"
)
LONGEST = 5_000  # words of an abstract; what is longer is a whole text that was taken for one


class Author(Entry):
    display_name: str | None = None


class Authorship(Entry):
    author: Author = Author()


class Location(Entry):
    landing_page_url: str | None = None
    pdf_url: str | None = None


class Access(Entry):
    oa_url: str | None = None


class Work(Entry):
    id: str
    display_name: str
    doi: str | None = None
    publication_date: str | None = None
    authorships: tuple[Authorship, ...] | None = None
    abstract_inverted_index: dict[str, tuple[NonNegativeInt, ...]] | None = None
    primary_location: Location | None = None
    best_oa_location: Location | None = None
    open_access: Access | None = None

    @property
    def address(self) -> str:
        landing = self.primary_location.landing_page_url if self.primary_location else None
        return doi_address(self.doi) if self.doi else landing or self.id

    @property
    def free(self) -> str | None:
        pdf = self.best_oa_location.pdf_url if self.best_oa_location else None
        return pdf or (self.open_access.oa_url if self.open_access else None)


class Results(Entry):
    results: tuple[object, ...]


class OpenAlex(PaperSource):
    name = "openalex"
    endpoint = "https://api.openalex.org/works"
    # A search takes 0.001 USD of what is free each day: 0.10 without a key, 1 with one, which is free too.
    own_terms = Terms(per_minute=300, per_day=100, key="openalex_api_key")

    @property
    def terms(self) -> Terms:
        return raised(super().terms, self.name, self.settings, per_day=1000) if self.key else super().terms

    def request(self, inquiry: Inquiry) -> Request:
        params: dict[str, str | int] = {
            "search": combined(keywords(inquiry.query, 12), all_of=6),
            "per-page": inquiry.limit,
            "filter": ",".join(self._filters(inquiry)),
            "select": FIELDS,
        }
        if self.settings.contact:
            params["mailto"] = self.settings.contact
        return Request(params=params, secrets={"api_key": self.key} if self.key else {})

    def _filters(self, inquiry: Inquiry) -> Iterator[str]:
        yield "is_retracted:false"
        if since := self.since(inquiry):
            yield f"from_publication_date:{since}"
        if inquiry.until:
            yield f"to_publication_date:{inquiry.until}"
        if inquiry.language and inquiry.language.isalpha():
            yield f"language:{inquiry.language.lower()}"

    def found(self, body: str) -> Sequence[Found]:
        return [_found(work) for work in valid(Work, Results.read(body).results)]


def _found(work: Work) -> Found:
    return paper(
        url=work.address,
        title=plain(work.display_name),
        abstract=plain(_abstract(work.abstract_inverted_index or {})),
        published=day(work.publication_date),
        authors=[authorship.author.display_name for authorship in work.authorships or ()],
        free=work.free,
    )


def _abstract(index: Mapping[str, Sequence[int]]) -> str:
    """A text that is told as the places of its words."""
    words = {place: word for word, places in index.items() for place in places if place < LONGEST}
    return " ".join(words[place] for place in sorted(words))
