"""Exa: search by meaning. https://exa.ai/docs/reference/search"""

from collections.abc import Sequence
from typing import Any, ClassVar

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, parse_date, parse_entries

MOST = 10  # what the price of a request includes; up to 100 are to be had, at 0.001 USD each


class ExaResult(ProviderEntry):
    url: str
    title: str | None = None
    publishedDate: str | None = None
    author: str | None = None
    highlights: tuple[str, ...] | None = None


class ExaResponse(ProviderEntry):
    results: tuple[object, ...]


class ExaSource(ApiSource):
    name: ClassVar[str] = "exa"
    endpoint: ClassVar[str] = "https://api.exa.ai"
    # 7 USD for 1,000 requests of 10 results with their contents; 10 requests a second. November 2026.
    own_terms: ClassVar[ProviderTerms] = ProviderTerms(
        per_minute=600, at_once=8, usd=0.007, key="exa_api_key", key_required=True
    )

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        asked: dict[str, Any] = {
            "query": inquiry.query,
            "type": "auto",
            "numResults": min(inquiry.limit, MOST),
            "contents": {"highlights": True},
        }
        if inquiry.since:
            asked["startPublishedDate"] = f"{inquiry.since}T00:00:00.000Z"
        if inquiry.until:
            asked["endPublishedDate"] = f"{inquiry.until}T23:59:59.999Z"
        if inquiry.sites:
            asked["includeDomains"] = list(inquiry.sites)
        if inquiry.without:
            asked["excludeDomains"] = list(inquiry.without)
        return ProviderRequest("/search", json=asked, headers={"x-api-key": self.key})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [
            ProviderResult(
                url=result.url,
                title=result.title or "",
                snippet=" … ".join(result.highlights or ()),
                published=parse_date(result.publishedDate),
                author=result.author,
            )
            for result in parse_entries(ExaResult, ExaResponse.read(body).results)
        ]
