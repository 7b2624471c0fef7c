"""Exa: search by meaning. https://exa.ai/docs/reference/search"""

from collections.abc import Sequence

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, read_entries
from openassay.search.fields import parse_date

MAX_RESULTS = 10  # included in the price of a request; up to 100 can be had, at 0.001 USD each


class ExaResult(ProviderEntry):
    url: str
    title: str | None = None
    publishedDate: str | None = None
    author: str | None = None
    highlights: tuple[str, ...] | None = None


class ExaSource(ApiSource):
    name = "exa"
    endpoint = "https://api.exa.ai"
    # 7 USD for 1,000 requests of 10 results with their contents; 10 requests a second. November 2026.
    own_terms = ProviderTerms(per_minute=600, at_once=8, usd=0.007, key="exa_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        body = {
            "query": search.query,
            "type": "auto",
            "numResults": min(search.limit, MAX_RESULTS),
            "contents": {"highlights": True},
            "startPublishedDate": f"{search.since}T00:00:00.000Z" if search.since else None,
            "endPublishedDate": f"{search.until}T23:59:59.999Z" if search.until else None,
            "includeDomains": list(search.sites) or None,
            "excludeDomains": list(search.without) or None,
        }
        return ProviderRequest("/search", json=body, headers={"x-api-key": self.key})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [
            ProviderResult(
                url=result.url,
                title=result.title or "",
                snippet=" … ".join(result.highlights or ()),
                published=parse_date(result.publishedDate),
                author=result.author,
            )
            for result in read_entries(ExaResult, body, "results")
        ]
