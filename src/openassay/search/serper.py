"""Serper: Google's results. https://serper.dev"""

from collections.abc import Sequence
from datetime import date
from typing import Any

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, parse_entries
from openassay.search.fields import add_site_filters, parse_date

MAX_RESULTS = 10  # more cost a second credit


class SerperResult(ProviderEntry):
    link: str
    title: str
    snippet: str | None = None
    date: str | None = None


class SerperResponse(ProviderEntry):
    organic: tuple[object, ...]


class SerperSource(ApiSource):
    name = "serper"
    endpoint = "https://google.serper.dev"
    # One credit a search, 0.0003 to 0.001 USD by the size of the package; 5 requests a second while it is free.
    # November 2026.
    own_terms = ProviderTerms(per_minute=300, at_once=5, usd=0.001, key="serper_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        body: dict[str, Any] = {"q": add_site_filters(search, characters=2000), "num": min(search.limit, MAX_RESULTS)}
        if search.language:
            body["hl"] = search.language
        if search.since or search.until:
            body["tbs"] = ",".join(
                ["cdr:1"]
                + ([f"cd_min:{_format_us_date(search.since)}"] if search.since else [])
                + ([f"cd_max:{_format_us_date(search.until)}"] if search.until else [])
            )
        return ProviderRequest("/search", json=body, headers={"X-API-KEY": self.key})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [
            ProviderResult(
                url=result.link,
                title=result.title,
                snippet=result.snippet or "",
                published=parse_date(result.date),
            )
            for result in parse_entries(SerperResult, SerperResponse.read(body).organic)
        ]


def _format_us_date(day: date) -> str:
    return f"{day.month}/{day.day}/{day.year}"
