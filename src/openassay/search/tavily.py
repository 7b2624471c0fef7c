"""Tavily: web search made for machines. https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from collections.abc import Sequence

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderRequest, WebEntry, read_entries

MAX_RESULTS = 20


class TavilyResult(WebEntry):
    snippet: str | None = Field(None, alias="content")
    published: str | None = Field(None, alias="published_date")


class TavilySource(ApiSource):
    name = "tavily"
    endpoint = "https://api.tavily.com"
    max_query = 400
    # A basic search is one credit, 0.008 USD as you go; development keys have 100 requests a minute. November 2026.
    own_terms = ProviderTerms(per_minute=100, at_once=8, usd=0.008, key="tavily_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        body = {
            "query": search.query,
            "topic": "general",
            "search_depth": "basic",
            "max_results": min(search.limit, MAX_RESULTS),
            "start_date": search.since and search.since.isoformat(),
            "end_date": search.until and search.until.isoformat(),
            "include_domains": list(search.sites) or None,
            "exclude_domains": list(search.without) or None,
        }
        return ProviderRequest("/search", json=body, headers={"Authorization": f"Bearer {self.key}"})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [result.to_result() for result in read_entries(TavilyResult, body, "results")]
