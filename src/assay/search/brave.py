"""Brave Search, an index of its own. https://api-dashboard.search.brave.com/api-reference/web/search/get"""

import html
from collections.abc import Sequence
from datetime import date
from typing import ClassVar

from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import ApiSource, Request
from assay.search.entries import Entry, plain, today
from assay.search.published import published
from assay.search.results import valid
from assay.search.sites import narrowed

MOST = 20
LANGUAGES = frozenset(
    "ar eu bn bg ca hr cs da nl en et fi fr gl de el gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es "
    "sv ta te th tr uk vi".split()
)
SPELT_OTHERWISE = {"ja": "jp", "pt": "pt-pt", "zh": "zh-hans", "no": "nb"}
_FIRST = date(1990, 1, 1)


class Result(Entry):
    url: str
    title: str
    description: str | None = None
    page_age: str | None = None


class Web(Entry):
    results: tuple[object, ...]


class Results(Entry):
    type: str  # of the answer; there is no `web` where nothing was found
    web: Web | None = None


class Brave(ApiSource):
    name: ClassVar[str] = "brave"
    endpoint: ClassVar[str] = "https://api.search.brave.com/res/v1"
    # 5 USD for 1,000 requests, 50 a second; keys of older plans have one a second and answer 429. November 2026.
    own_terms: ClassVar[Terms] = Terms(per_minute=600, at_once=8, usd=0.005, key="brave_api_key", key_required=True)

    def request(self, inquiry: Inquiry) -> Request:
        asked: dict[str, str | int] = {
            "q": narrowed(inquiry, characters=400, words=50),
            "count": min(inquiry.limit, MOST),
            "text_decorations": "false",
            "result_filter": "web",
        }
        language = SPELT_OTHERWISE.get(inquiry.language or "", inquiry.language or "")
        if language in LANGUAGES or language in SPELT_OTHERWISE.values():  # it turns others down
            asked["search_lang"] = language
        if inquiry.since or inquiry.until:
            asked["freshness"] = f"{inquiry.since or _FIRST}to{inquiry.until or today()}"
        return Request("/web/search", asked, headers={"X-Subscription-Token": self.key, "Accept": "application/json"})

    def found(self, body: str) -> Sequence[Found]:
        answer = Results.read(body)
        if answer.type != "search":
            raise ValueError(f"an answer of type {answer.type[:40]!r}")
        return [
            Found(
                url=result.url,
                title=html.unescape(result.title),
                snippet=plain(result.description or ""),
                published=published(result.page_age),
            )
            for result in valid(Result, answer.web.results if answer.web else ())
        ]
