"""Exa, as https://exa.ai/docs/reference/search has it."""

import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format
from assay.testing.wire import Request


class Exa(Format):
    name = "exa"
    builds = "assay.search.exa:Exa"
    filters = frozenset({"since", "until", "sites", "without"})
    fields = frozenset({"snippet", "published", "author"})
    most = 100
    key_setting = "exa_api_key"
    key_required = True

    def asked(self, request: Request) -> Asked:
        if (request.method, request.path) != ("POST", "/search"):
            raise ValueError(f"{request.method} {request.path}")
        body = json.loads(request.body)
        return Asked(
            query=body["query"],
            limit=body.get("numResults", 10),
            since=_day(body.get("startPublishedDate")),
            until=_day(body.get("endPublishedDate")),
            sites=tuple(body.get("includeDomains", ())),
            without=tuple(body.get("excludeDomains", ())),
            key=request.headers.get("x-api-key", ""),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([_result(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([{"title": "A page", "url": {"at": "nowhere"}}, *(_result(result) for result in found)])

    def _dumped(self, results: list[dict[str, Any]]) -> str:
        head = {"requestId": "b5947044c4b78efa9552a7c89b306d95", "searchType": "auto"}
        return json.dumps({**head, "results": results, "costDollars": {"total": 0.007}})


def _result(found: Found) -> dict[str, Any]:
    dated = f"{found.published}T00:00:00.000Z" if found.published else None
    return {
        "id": found.url, "url": found.url, "title": found.title, "publishedDate": dated, "author": found.author,
        "image": "https://example.org/i.png", "highlights": [found.snippet], "highlightScores": [0.46],
    }  # fmt: skip


def _day(text: str | None) -> date | None:
    return datetime.fromisoformat(text).date() if text else None


FORMAT = Exa()
