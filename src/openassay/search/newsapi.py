"""NewsAPI: articles of some 150,000 newspapers and blogs. https://newsapi.org/docs/endpoints/everything"""

import re
from collections.abc import Sequence
from datetime import timedelta

from pydantic import Field

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderRequest, WebEntry, read_entries
from openassay.search.fields import join_terms, query_keywords, today
from openassay.search.http import HttpResponse

LANGUAGES = frozenset("ar de en es fr he it nl no pt ru sv ud zh".split())
MAX_QUERY = 500  # characters
_STATUSES = {"rateLimited": 429, "unexpectedError": 500}
_ERROR = re.compile(r'\A\s*\{\s*"status"\s*:\s*"error"\s*,\s*"code"\s*:\s*"(\w+)"')


class NewsApiArticle(WebEntry):
    snippet: str | None = Field(None, alias="description")
    published: str | None = Field(None, alias="publishedAt")
    author: str | None = None


class NewsApiSource(ApiSource):
    name = "newsapi"
    types = ("news",)
    kind = "news"
    endpoint = "https://newsapi.org/v2/everything"
    # The free plan: a hundred requests a day, articles of the last month. Other plans are paid by the month.
    own_terms = ProviderTerms(per_minute=60, per_day=100, key="news_api_key", key_required=True)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        days = self.settings.news_days
        if 28 <= days <= 31:  # a month is what the free plan has; an older day is refused, and February has 28
            days = 28
        return ProviderRequest(
            params={
                "q": join_terms(query_keywords(search.query, 20), all_of=4, longest=MAX_QUERY),
                "from": str(search.since or (search.until or today()) - timedelta(days=days)),
                "pageSize": search.limit,
                "sortBy": "relevancy",
                "to": str(search.until) if search.until else None,
                "language": search.language if search.language in LANGUAGES else None,
                "domains": ",".join(search.sites) or None,
                "excludeDomains": ",".join(search.without) or None,
            },
            headers={"X-Api-Key": self.key},
        )

    def read_status(self, reply: HttpResponse) -> int:
        error = _ERROR.match(reply.text) if reply.status == 200 else None
        return _STATUSES.get(error[1], 401 if "apiKey" in error[1] else 400) if error else reply.status

    def explain(self, reply: HttpResponse) -> SourceError:
        if reply.status == 426:
            return SourceError(
                "newsapi does not cover dates that far back on your plan",
                help="Lower search.news_days, or ask for later days.",
                provider=self.name,
                status=426,
            )
        return super().explain(reply)

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        results = []
        for article in read_entries(NewsApiArticle, body, "articles"):
            author = (article.author or "").strip()
            if article.title != "[Removed]" and not article.url.startswith("https://removed.com"):
                results.append(article.to_result(author=None if author.startswith("http") else author or None))
        return results
