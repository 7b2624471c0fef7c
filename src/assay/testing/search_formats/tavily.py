"""Tavily, as https://docs.tavily.com/documentation/api-reference/endpoint/search has it."""

import json
from collections.abc import Sequence
from datetime import date
from email.utils import format_datetime
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format, midnight
from assay.testing.wire import Request


class Tavily(Format):
    name = "tavily"
    builds = "assay.search.tavily:Tavily"
    filters = frozenset({"since", "until", "sites", "without"})
    fields = frozenset({"snippet", "published"})
    most = 20
    key_setting = "tavily_api_key"
    key_required = True

    def asked(self, request: Request) -> Asked:
        if (request.method, request.path) != ("POST", "/search"):
            raise ValueError(f"{request.method} {request.path}")
        body = json.loads(request.body)
        return Asked(
            query=body["query"],
            limit=body.get("max_results", 5),
            since=_day(body.get("start_date")),
            until=_day(body.get("end_date")),
            sites=tuple(body.get("include_domains", ())),
            without=tuple(body.get("exclude_domains", ())),
            key=request.headers.get("authorization", "").removeprefix("Bearer "),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([_result(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([{"title": 7, "url": None}, *(_result(result) for result in found)])

    def _dumped(self, results: list[dict[str, Any]]) -> str:
        head: dict[str, Any] = {"query": "q", "follow_up_questions": None, "answer": None, "images": []}
        return json.dumps({**head, "results": results, "response_time": 1.09, "request_id": "1"})


def _result(found: Found) -> dict[str, Any]:
    dated = {"published_date": format_datetime(midnight(found.published), usegmt=True)} if found.published else {}
    return {
        "url": found.url, "title": found.title, "content": found.snippet, "score": 0.8, "raw_content": None, **dated
    }  # fmt: skip


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


FORMAT = Tavily()
