"""Brave, as https://api-dashboard.search.brave.com/api-reference/web/search/get has it."""

import html
import json
from collections.abc import Sequence
from datetime import date
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format, sited
from assay.testing.wire import Request


class Brave(Format):
    name = "brave"
    builds = "assay.search.brave:Brave"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"snippet", "published"})
    most = 20
    key_setting = "brave_api_key"
    key_required = True

    def settings(self, url: str) -> dict[str, Any]:
        return {"endpoints": {self.name: f"{url}/res/v1"}}

    def asked(self, request: Request) -> Asked:
        if (request.method, request.path) != ("GET", "/res/v1/web/search"):
            raise ValueError(f"{request.method} {request.path}")
        said = {name: values[0] for name, values in request.query.items()}
        if len(said["q"]) > 400 or len(said["q"].split()) > 50:
            raise ValueError("a query of more than 400 characters or 50 words is answered with 422")
        query, sites, without = sited(said["q"])
        since, _, until = said.get("freshness", "").partition("to")
        return Asked(
            query=query, limit=int(said.get("count", 20)), since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None, sites=sites, without=without,
            language=said.get("search_lang"), key=request.headers.get("x-subscription-token", ""),
        )  # fmt: skip

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([_result(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([{"type": "search_result", "title": "A page"}, *(_result(result) for result in found)])

    def _dumped(self, results: list[dict[str, Any]]) -> str:
        head = {"type": "search", "query": {"original": "q", "more_results_available": False}, "mixed": {"main": []}}
        return json.dumps({**head, **({"web": {"type": "search", "results": results}} if results else {})})


def _result(found: Found) -> dict[str, Any]:
    dated = {"page_age": f"{found.published}T09:30:00", "age": "March 5, 2024"} if found.published else {}
    return {
        "type": "search_result", "url": found.url, "title": html.escape(found.title),
        "description": html.escape(found.snippet), "language": "en", "family_friendly": True,
        "profile": {"name": "Example"}, **dated,
    }  # fmt: skip


FORMAT = Brave()
