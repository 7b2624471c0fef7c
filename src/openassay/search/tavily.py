"""Tavily: web search made for machines. https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from collections.abc import Sequence
from typing import Any

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, parse_entries
from openassay.search.fields import parse_date

MAX_RESULTS = 20


class TavilyResult(ProviderEntry):
    url: str
    title: str
    content: str | None = None
    published_date: str | None = None


class TavilyResponse(ProviderEntry):
    results: tuple[object, ...]


class TavilySource(ApiSource):
    name = "tavily"
    endpoint = "https://api.tavily.com"
    max_query = 400
    # A basic search is one credit, 0.008 USD as you go; development keys have 100 requests a minute. November 2026.
    own_terms = ProviderTerms(per_minute=100, at_once=8, usd=0.008, key="tavily_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        body: dict[str, Any] = {
            "query": search.query,
            "topic": "general",
            "search_depth": "basic",
            "max_results": min(search.limit, MAX_RESULTS),
        }
        if search.since:
            body["start_date"] = search.since.isoformat()
        if search.until:
            body["end_date"] = search.until.isoformat()
        if search.sites:
            body["include_domains"] = list(search.sites)
        if search.without:
            body["exclude_domains"] = list(search.without)
        return ProviderRequest("/search", json=body, headers={"Authorization": f"Bearer {self.key}"})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [
            ProviderResult(
                url=result.url,
                title=result.title,
                snippet=result.content or "",
                published=parse_date(result.published_date),
            )
            for result in parse_entries(TavilyResult, TavilyResponse.read(body).results)
        ]
