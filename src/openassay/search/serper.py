"""Serper: Google's results. https://serper.dev"""

from collections.abc import Sequence
from datetime import date
from typing import Any, ClassVar

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, add_site_filters, parse_date, parse_entries

MOST = 10  # more of them cost a second credit


class SerperResult(ProviderEntry):
    link: str
    title: str
    snippet: str | None = None
    date: str | None = None


class SerperResponse(ProviderEntry):
    organic: tuple[object, ...]


class SerperSource(ApiSource):
    name: ClassVar[str] = "serper"
    endpoint: ClassVar[str] = "https://google.serper.dev"
    # One credit a search, 0.0003 to 0.001 USD by the size of the package; 5 requests a second while it is free.
    # November 2026.
    own_terms: ClassVar[ProviderTerms] = ProviderTerms(
        per_minute=300, at_once=5, usd=0.001, key="serper_api_key", key_required=True
    )

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        asked: dict[str, Any] = {"q": add_site_filters(inquiry, characters=2000), "num": min(inquiry.limit, MOST)}
        if inquiry.language:
            asked["hl"] = inquiry.language
        if inquiry.since or inquiry.until:
            asked["tbs"] = ",".join(
                ["cdr:1"]
                + ([f"cd_min:{_format_us_date(inquiry.since)}"] if inquiry.since else [])
                + ([f"cd_max:{_format_us_date(inquiry.until)}"] if inquiry.until else [])
            )
        return ProviderRequest("/search", json=asked, headers={"X-API-KEY": self.key})

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
