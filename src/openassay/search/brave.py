"""Brave Search, an index of its own. https://api-dashboard.search.brave.com/api-reference/web/search/get"""

import html
from collections.abc import Sequence
from datetime import date

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, WebEntry, read_entries
from openassay.search.fields import add_site_filters, strip_markup, today

MAX_RESULTS = 20
_FIRST_DAY = date(1990, 1, 1)
LANGUAGES = frozenset(
    "ar eu bn bg ca hr cs da nl en et fi fr gl de el gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es "
    "sv ta te th tr uk vi".split()
)
LANGUAGE_CODES = {"ja": "jp", "pt": "pt-pt", "zh": "zh-hans", "no": "nb"}


class BraveResult(WebEntry):
    snippet: str | None = Field(None, alias="description")
    published: str | None = Field(None, alias="page_age")


class BraveResponse(ProviderEntry):
    type: str  # of the answer
    web: dict[str, object] | None = None  # missing where nothing was found


class BraveSource(ApiSource):
    name = "brave"
    endpoint = "https://api.search.brave.com/res/v1"
    # 5 USD for 1,000 requests, 50 a second; keys of older plans have one a second and answer 429. November 2026.
    own_terms = ProviderTerms(per_minute=600, at_once=8, usd=0.005, key="brave_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        language = LANGUAGE_CODES.get(search.language or "", search.language or "")
        is_known = language in LANGUAGES or language in LANGUAGE_CODES.values()  # it refuses others
        is_dated = search.since or search.until
        return ProviderRequest(
            "/web/search",
            {
                "q": add_site_filters(search, characters=400, words=50),
                "count": min(search.limit, MAX_RESULTS),
                "text_decorations": "false",
                "result_filter": "web",
                "search_lang": language if is_known else None,
                "freshness": f"{search.since or _FIRST_DAY}to{search.until or today()}" if is_dated else None,
            },
            headers={"X-Subscription-Token": self.key, "Accept": "application/json"},
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        answer = BraveResponse.read(body)
        if answer.type != "search":
            raise ValueError(f"an answer of type {answer.type[:40]!r}")
        return [
            result.to_result(title=html.unescape(result.title), snippet=strip_markup(result.snippet or ""))
            for result in (read_entries(BraveResult, body, "web", "results") if answer.web else ())
        ]
