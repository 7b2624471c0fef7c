"""Serper: Google's results. https://serper.dev"""

from collections.abc import Sequence
from datetime import date
from typing import Any, ClassVar

from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import ApiSource, Request
from assay.search.entries import Entry
from assay.search.published import published
from assay.search.results import valid
from assay.search.sites import narrowed

MOST = 10  # more of them cost a second credit


class Result(Entry):
    link: str
    title: str
    snippet: str | None = None
    date: str | None = None


class Results(Entry):
    organic: tuple[object, ...]


class Serper(ApiSource):
    name: ClassVar[str] = "serper"
    endpoint: ClassVar[str] = "https://google.serper.dev"
    # One credit a search, 0.0003 to 0.001 USD by the size of the package; 5 requests a second while it is free.
    # November 2026.
    own_terms: ClassVar[Terms] = Terms(per_minute=300, at_once=5, usd=0.001, key="serper_api_key", key_required=True)

    def request(self, inquiry: Inquiry) -> Request:
        asked: dict[str, Any] = {"q": narrowed(inquiry, characters=2000), "num": min(inquiry.limit, MOST)}
        if inquiry.language:
            asked["hl"] = inquiry.language
        if inquiry.since or inquiry.until:
            asked["tbs"] = ",".join(
                ["cdr:1"]
                + ([f"cd_min:{_american(inquiry.since)}"] if inquiry.since else [])
                + ([f"cd_max:{_american(inquiry.until)}"] if inquiry.until else [])
            )
        return Request("/search", json=asked, headers={"X-API-KEY": self.key})

    def found(self, body: str) -> Sequence[Found]:
        return [
            Found(
                url=result.link,
                title=result.title,
                snippet=result.snippet or "",
                published=published(result.date),
            )
            for result in valid(Result, Results.read(body).organic)
        ]


def _american(day: date) -> str:
    return f"{day.month}/{day.day}/{day.year}"
