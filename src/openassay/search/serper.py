"""Serper: Google's results. https://serper.dev"""

from collections.abc import Sequence

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderRequest, WebEntry, read_entries
from openassay.search.fields import add_site_filters

MAX_RESULTS = 10  # more cost a second credit


class SerperResult(WebEntry):
    url: str = Field(alias="link")
    published: str | None = Field(None, alias="date")


class SerperSource(ApiSource):
    name = "serper"
    endpoint = "https://google.serper.dev"
    # One credit a search, 0.0003 to 0.001 USD by the size of the package; 5 requests a second while it is free.
    # November 2026.
    own_terms = ProviderTerms(per_minute=300, at_once=5, usd=0.001, key="serper_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        days = {"cd_min": search.since, "cd_max": search.until}
        period = [f"{name}:{day.month}/{day.day}/{day.year}" for name, day in days.items() if day]
        body = {
            "q": add_site_filters(search, characters=2000),
            "num": min(search.limit, MAX_RESULTS),
            "hl": search.language or None,
            "tbs": ",".join(["cdr:1", *period]) if period else None,
        }
        return ProviderRequest("/search", json=body, headers={"X-API-KEY": self.key})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [result.to_result() for result in read_entries(SerperResult, body, "organic")]
