"""Wikipedia, in the language of the inquiry."""

import re
from collections.abc import Sequence

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    READABLE,
    ApiSource,
    ProviderEntry,
    ProviderRequest,
    add_contact,
    join_terms,
    parse_entries,
    query_keywords,
    raise_limits,
    shorten,
)
from openassay.search.http import HttpRequest, HttpResponse

# Editions with more than 100,000 articles. A language becomes part of a host name: no other is tried.
EDITIONS = frozenset(
    "ar az be bg bn ca cs cy da de el en eo es et eu fa fi fr gl he hi hr hu hy id it ja ka kk ko la lt lv mk ms nl "
    "no pl pt ro ru sk sl sq sr sv ta te th tr uk ur uz vi zh".split()
)
LONGEST = 300  # characters of a query
MOST = 20  # introductions in one answer
SNIPPET = 300  # characters of an introduction
_BUSY = re.compile(r'\{\s*"error"\s*:\s*\{\s*"code"\s*:\s*"(?:ratelimited|maxlag|readonly)"')


class WikipediaPage(ProviderEntry):
    title: str
    fullurl: str
    index: int  # its place among the results
    extract: str = ""
    pageprops: dict[str, object] = {}


class WikipediaQuery(ProviderEntry):
    pages: tuple[object, ...]


class WikipediaResponse(ProviderEntry):
    batchcomplete: bool = False
    query: WikipediaQuery | None = None


class WikipediaSource(ApiSource):
    name = "wikipedia"
    endpoint = "https://{language}.wikipedia.org/w/api.php"
    # Wikimedia's limits of 2026: 10 a minute for clients that do not say who they are, 200 for those whose User-Agent
    # has a contact; no more than three at once.
    own_terms = ProviderTerms(per_minute=10, at_once=2)
    one_site = True

    @property
    def terms(self) -> ProviderTerms:
        own = super().terms
        return raise_limits(own, self.name, self.settings, per_minute=200, at_once=3) if self.settings.contact else own

    @property
    def address(self) -> str:
        return self._edition_url("en")

    def _edition_url(self, language: str) -> str:
        return super().address.replace("{language}", language)

    def _url(self, request: ProviderRequest) -> str:
        return self._edition_url(request.url)

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        language = (inquiry.language or "").lower().partition("-")[0]
        words = join_terms(query_keywords(inquiry.query, 12), all_of=4, together=" ", longest=LONGEST)
        return ProviderRequest(
            url=language if language in EDITIONS else "en",
            params={
                "action": "query", "format": "json", "formatversion": 2,
                "generator": "search", "gsrsearch": words,
                "gsrnamespace": 0, "gsrlimit": min(inquiry.limit, MOST),
                "prop": "extracts|info|pageprops", "inprop": "url", "ppprop": "disambiguation",
                "exintro": 1, "explaintext": 1, "exlimit": MOST,
            },
            headers={"User-Agent": add_contact(self._bench.settings.harvest.user_agent, self.settings.contact)},
        )  # fmt: skip

    async def fetch(self, outgoing: HttpRequest, seconds: float) -> HttpResponse:
        """Its errors have the status of a success."""
        reply = await super().fetch(outgoing, seconds)
        return reply._replace(status=429) if reply.status == 200 and _BUSY.match(reply.text) else reply

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        results = WikipediaResponse.read(body)
        if results.query is None:
            if results.batchcomplete:  # nothing found
                return []
            raise ValueError("it has no pages")
        pages = [
            page for page in parse_entries(WikipediaPage, results.query.pages) if "disambiguation" not in page.pageprops
        ]
        return [_to_result(page) for page in sorted(pages, key=lambda page: page.index)]


def _to_result(page: WikipediaPage) -> ProviderResult:
    return ProviderResult(
        url=page.fullurl,
        title=page.title,
        snippet=shorten(page.extract, SNIPPET),
        text=page.extract if len(page.extract) >= READABLE else "",
        fulltext=page.fullurl,  # the extract is the introduction alone
    )
