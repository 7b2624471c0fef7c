"""Brave Search, an index of its own. https://api-dashboard.search.brave.com/api-reference/web/search/get"""

import html
from collections.abc import Sequence
from datetime import date

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, parse_entries
from openassay.search.fields import add_site_filters, parse_date, strip_markup, today

MAX_RESULTS = 20
_FIRST_DAY = date(1990, 1, 1)
LANGUAGES = frozenset(
    "ar eu bn bg ca hr cs da nl en et fi fr gl de el gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es "
    "sv ta te th tr uk vi".split()
)
LANGUAGE_CODES = {"ja": "jp", "pt": "pt-pt", "zh": "zh-hans", "no": "nb"}


class BraveResult(ProviderEntry):
    url: str
    title: str
    description: str | None = None
    page_age: str | None = None


class BraveWeb(ProviderEntry):
    results: tuple[object, ...]


class BraveResponse(ProviderEntry):
    type: str  # of the answer; there is no `web` where nothing was found
    web: BraveWeb | None = None


class BraveSource(ApiSource):
    name = "brave"
    endpoint = "https://api.search.brave.com/res/v1"
    # 5 USD for 1,000 requests, 50 a second; keys of older plans have one a second and answer 429. November 2026.
    own_terms = ProviderTerms(per_minute=600, at_once=8, usd=0.005, key="brave_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        params: dict[str, str | int] = {
            "q": add_site_filters(search, characters=400, words=50),
            "count": min(search.limit, MAX_RESULTS),
            "text_decorations": "false",
            "result_filter": "web",
        }
        language = LANGUAGE_CODES.get(search.language or "", search.language or "")
        if language in LANGUAGES or language in LANGUAGE_CODES.values():  # it refuses others
            params["search_lang"] = language
        if search.since or search.until:
            params["freshness"] = f"{search.since or _FIRST_DAY}to{search.until or today()}"
        return ProviderRequest(
            "/web/search", params, headers={"X-Subscription-Token": self.key, "Accept": "application/json"}
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        answer = BraveResponse.read(body)
        if answer.type != "search":
            raise ValueError(f"an answer of type {answer.type[:40]!r}")
        return [
            ProviderResult(
                url=result.url,
                title=html.unescape(result.title),
                snippet=strip_markup(result.description or ""),
                published=parse_date(result.page_age),
            )
            for result in parse_entries(BraveResult, answer.web.results if answer.web else ())
        ]
