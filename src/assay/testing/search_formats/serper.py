"""Serper, as its playground at https://serper.dev has it."""

import json
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format, sited
from assay.testing.wire import Request


class Serper(Format):
    name = "serper"
    builds = "assay.search.serper:Serper"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"snippet", "published"})
    most = 100
    key_setting = "serper_api_key"
    key_required = True

    def asked(self, request: Request) -> Asked:
        if (request.method, request.path) != ("POST", "/search"):
            raise ValueError(f"{request.method} {request.path}")
        body = json.loads(request.body)
        query, sites, without = sited(body["q"])
        period = body.get("tbs", "") if body.get("tbs", "").startswith("cdr:1") else ""
        return Asked(
            query=query, limit=body.get("num", 10), since=_day("cd_min", period), until=_day("cd_max", period),
            sites=sites, without=without, language=body.get("hl"), key=request.headers.get("x-api-key", ""),
        )  # fmt: skip

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([_result(result, place) for place, result in enumerate(found, 1)])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([{"title": "A page", "position": 1}, *(_result(result, 2) for result in found)])

    def _dumped(self, results: list[dict[str, Any]]) -> str:
        asked = {"q": "q", "type": "search", "engine": "google"}
        related = [{"query": "zanzibar port"}]
        return json.dumps({"searchParameters": asked, "organic": results, "relatedSearches": related, "credits": 1})


def _result(found: Found, position: int) -> dict[str, Any]:
    dated = {"date": f"{found.published:%b} {found.published.day}, {found.published.year}"} if found.published else {}
    return {"title": found.title, "link": found.url, "snippet": found.snippet, "position": position, **dated}


def _day(name: str, period: str) -> date | None:
    match = re.search(rf"{name}:(\d+/\d+/\d+)", period)
    return datetime.strptime(match[1], "%m/%d/%Y").date() if match else None


FORMAT = Serper()
