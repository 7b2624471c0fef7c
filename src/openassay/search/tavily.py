"""Tavily: web search made for machines. https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from collections.abc import Sequence
from typing import Any, ClassVar

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, parse_date, parse_entries

MOST = 20  # results in one answer


class TavilyResult(ProviderEntry):
    url: str
    title: str
    content: str | None = None
    published_date: str | None = None


class TavilyResponse(ProviderEntry):
    results: tuple[object, ...]


class TavilySource(ApiSource):
    name: ClassVar[str] = "tavily"
    endpoint: ClassVar[str] = "https://api.tavily.com"
    longest_query: ClassVar[int] = 400
    # A basic search is one credit, 0.008 USD as you go; development keys have 100 requests a minute. November 2026.
    own_terms: ClassVar[ProviderTerms] = ProviderTerms(
        per_minute=100, at_once=8, usd=0.008, key="tavily_api_key", key_required=True
    )

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        asked: dict[str, Any] = {
            "query": inquiry.query,
            "topic": "general",
            "search_depth": "basic",
            "max_results": min(inquiry.limit, MOST),
        }
        if inquiry.since:
            asked["start_date"] = inquiry.since.isoformat()
        if inquiry.until:
            asked["end_date"] = inquiry.until.isoformat()
        if inquiry.sites:
            asked["include_domains"] = list(inquiry.sites)
        if inquiry.without:
            asked["exclude_domains"] = list(inquiry.without)
        return ProviderRequest("/search", json=asked, headers={"Authorization": f"Bearer {self.key}"})

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
