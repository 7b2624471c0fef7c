"""NewsAPI's "everything", as newsapi.org/docs/endpoints/everything describes it."""

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format
from assay.testing.search_formats.papers import number, param, within
from assay.testing.wire import Request


class NewsApi(Format):
    name = "newsapi"
    builds = "assay.search.newsapi:NewsApi"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"snippet", "published", "author"})
    most = 100
    key_setting = "news_api_key"
    key_required = True

    def asked(self, request: Request) -> Asked:
        since, until = param(request, "from"), param(request, "to")
        return Asked(
            query=re.sub(r" (?:AND|OR) ", " ", within(500, param(request, "q"))),
            limit=number(request, "pageSize"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
            sites=tuple(filter(None, param(request, "domains").split(","))),
            without=tuple(filter(None, param(request, "excludeDomains").split(","))),
            language=param(request, "language") or None,
            key=request.headers.get("x-api-key", ""),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_article(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return _page([{"source": None, "title": 7, "url": None}, *map(_article, found)])


def _page(articles: list[dict[str, Any]]) -> str:
    return json.dumps({"status": "ok", "totalResults": len(articles), "articles": articles})


def _article(found: Found) -> dict[str, Any]:
    return {
        "source": {"id": None, "name": "Example News"},
        "author": found.author,
        "title": found.title,
        "description": found.snippet,
        "url": found.url,
        "urlToImage": None,
        "publishedAt": f"{found.published}T21:16:00Z" if found.published else None,
        "content": f"{found.snippet}… [+4321 chars]",
    }


FORMAT = NewsApi()
