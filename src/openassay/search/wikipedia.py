"""Wikipedia, in the language of the search. https://www.mediawiki.org/wiki/API:Search"""

import re
from collections.abc import Mapping, Sequence

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import READABLE, ApiSource, ProviderEntry, ProviderRequest, read_entries
from openassay.search.fields import join_terms, query_keywords, shorten
from openassay.search.http import HttpResponse

# Editions with more than 100,000 articles. A language becomes part of a host name: no other is tried.
EDITIONS = frozenset(
    "ar az be bg bn ca cs cy da de el en eo es et eu fa fi fr gl he hi hr hu hy id it ja ka kk ko la lt lv mk ms nl "
    "no pl pt ro ru sk sl sq sr sv ta te th tr uk ur uz vi zh".split()
)
MAX_QUERY = 300  # characters
MAX_RESULTS = 20  # introductions in one answer
MAX_SNIPPET = 300  # characters of an introduction
_BUSY = re.compile(r'\{\s*"error"\s*:\s*\{\s*"code"\s*:\s*"(?:ratelimited|maxlag|readonly)"')


class WikipediaPage(ProviderEntry):
    title: str
    fullurl: str
    index: int  # its rank
    extract: str = ""
    pageprops: dict[str, object] = {}


class WikipediaResponse(ProviderEntry):
    batchcomplete: bool = False
    query: dict[str, object] | None = None


class WikipediaSource(ApiSource):
    name = "wikipedia"
    endpoint = "https://{language}.wikipedia.org/w/api.php"
    # Wikimedia's limits of 2026: 10 a minute for clients that do not say who they are, 200 for those whose User-Agent
    # has a contact; no more than three at once.
    own_terms = ProviderTerms(per_minute=10, at_once=2)
    one_site = True

    def better_limits(self) -> Mapping[str, float]:
        return {"per_minute": 200, "at_once": 3} if self.settings.contact else {}

    @property
    def address(self) -> str:
        return super().address.replace("{language}", "en")

    def _url(self, request: ProviderRequest) -> str:
        """Return the address of the edition that `build_request` has chosen."""
        return super().address.replace("{language}", request.url)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        language = (search.language or "").lower().partition("-")[0]
        words = join_terms(query_keywords(search.query, 12), all_of=4, together=" ", longest=MAX_QUERY)
        agent, contact = self.context.settings.harvest.user_agent, self.settings.contact
        return ProviderRequest(
            url=language if language in EDITIONS else "en",
            params={
                "action": "query",
                "format": "json",
                "formatversion": 2,
                "generator": "search",
                "gsrsearch": words,
                "gsrnamespace": 0,
                "gsrlimit": min(search.limit, MAX_RESULTS),
                "prop": "extracts|info|pageprops",
                "inprop": "url",
                "ppprop": "disambiguation",
                "exintro": 1,
                "explaintext": 1,
                "exlimit": MAX_RESULTS,
            },
            headers={"User-Agent": f"{agent} ({contact})" if contact and contact.isascii() else agent},
        )

    def read_status(self, reply: HttpResponse) -> int:
        return 429 if reply.status == 200 and _BUSY.match(reply.text) else reply.status

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        response = WikipediaResponse.read(body)
        if response.query is None and response.batchcomplete:
            return []  # nothing was found
        pages = read_entries(WikipediaPage, body, "query", "pages")
        return [
            ProviderResult(
                url=page.fullurl,
                title=page.title,
                snippet=shorten(page.extract, MAX_SNIPPET),
                text=page.extract if len(page.extract) >= READABLE else "",
                fulltext=page.fullurl,  # the extract is the introduction alone
            )
            for page in sorted(pages, key=lambda page: page.index)
            if "disambiguation" not in page.pageprops
        ]
