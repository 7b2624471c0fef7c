"""Tavily: web search made for machines. https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from collections.abc import Sequence
from typing import Any, ClassVar

from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import ApiSource, Request
from assay.search.entries import Entry
from assay.search.published import published
from assay.search.results import valid

MOST = 20  # results in one answer


class Result(Entry):
    url: str
    title: str
    content: str | None = None
    published_date: str | None = None


class Results(Entry):
    results: tuple[object, ...]


class Tavily(ApiSource):
    name: ClassVar[str] = "tavily"
    endpoint: ClassVar[str] = "https://api.tavily.com"
    longest_query: ClassVar[int] = 400
    # A basic search is one credit, 0.008 USD as you go; development keys have 100 requests a minute. November 2026.
    own_terms: ClassVar[Terms] = Terms(per_minute=100, at_once=8, usd=0.008, key="tavily_api_key", key_required=True)

    def request(self, inquiry: Inquiry) -> Request:
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
        return Request("/search", json=asked, headers={"Authorization": f"Bearer {self.key}"})

    def found(self, body: str) -> Sequence[Found]:
        return [
            Found(
                url=result.url,
                title=result.title,
                snippet=result.content or "",
                published=published(result.published_date),
            )
            for result in valid(Result, Results.read(body).results)
        ]
