"""NewsAPI: articles of some 150,000 newspapers and blogs."""

import re
from collections.abc import Sequence
from datetime import timedelta

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    ApiSource,
    ProviderEntry,
    ProviderRequest,
    join_terms,
    parse_entries,
    parse_iso_date,
    query_keywords,
    today,
)
from openassay.search.http import HttpRequest, HttpResponse

LANGUAGES = frozenset("ar de en es fr he it nl no pt ru sv ud zh".split())
LONGEST = 500  # characters of a query
_STATUS = {"rateLimited": 429, "unexpectedError": 500}
_ERROR = re.compile(r'\A\s*\{\s*"status"\s*:\s*"error"\s*,\s*"code"\s*:\s*"(\w+)"')


class NewsApiArticle(ProviderEntry):
    url: str
    title: str
    author: str | None = None
    description: str | None = None
    publishedAt: str | None = None

    @property
    def is_gone(self) -> bool:
        return self.title == "[Removed]" or self.url.startswith("https://removed.com")


class NewsApiResponse(ProviderEntry):
    articles: tuple[object, ...]


class NewsApiSource(ApiSource):
    name = "newsapi"
    types = ("news",)
    kind = "news"
    endpoint = "https://newsapi.org/v2/everything"
    # The free plan: a hundred requests a day, articles of the last month. Other plans are paid by the month.
    own_terms = ProviderTerms(per_minute=60, per_day=100, key="news_api_key", key_required=True)

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        params: dict[str, str | int] = {
            "q": join_terms(query_keywords(inquiry.query, 20), all_of=4, longest=LONGEST),
            "from": str(inquiry.since or (inquiry.until or today()) - timedelta(days=self._days())),
            "pageSize": inquiry.limit,
            "sortBy": "relevancy",
        }
        if inquiry.until:
            params["to"] = str(inquiry.until)
        if inquiry.language in LANGUAGES:
            params["language"] = str(inquiry.language)
        if inquiry.sites:
            params["domains"] = ",".join(inquiry.sites)
        if inquiry.without:
            params["excludeDomains"] = ",".join(inquiry.without)
        return ProviderRequest(params=params, headers={"X-Api-Key": self.key})

    def _days(self) -> int:
        """A month is what the free plan has; an older day is refused, and in March a month has 28."""
        days = self.settings.news_days
        return 28 if 28 <= days <= 31 else days

    async def fetch(self, outgoing: HttpRequest, seconds: float) -> HttpResponse:
        """An error is one whatever its status says."""
        reply = await super().fetch(outgoing, seconds)
        error = _ERROR.match(reply.text) if reply.status == 200 else None
        return reply._replace(status=_STATUS.get(error[1], 401 if "apiKey" in error[1] else 400)) if error else reply

    def explain(self, reply: HttpResponse) -> SourceError:
        if reply.status == 426:
            return SourceError(
                "newsapi does not go back that far on your plan", help="Lower search.news_days, or ask for later days.",
                provider=self.name, status=426,
            )  # fmt: skip
        return super().explain(reply)

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        articles = parse_entries(NewsApiArticle, NewsApiResponse.read(body).articles)
        return [_to_result(article) for article in articles if not article.is_gone]


def _to_result(article: NewsApiArticle) -> ProviderResult:
    author = (article.author or "").strip()
    return ProviderResult(
        url=article.url,
        title=article.title,
        snippet=article.description or "",
        published=parse_iso_date(article.publishedAt),
        author=None if author.startswith("http") else author or None,
    )
