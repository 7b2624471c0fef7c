"""SearXNG, as https://docs.searxng.org/dev/search_api.html has it."""

import json
from collections.abc import Sequence
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format, sited
from assay.testing.wire import Request


class Searxng(Format):
    name = "searxng"
    builds = "assay.search.searxng:Searxng"
    filters = frozenset({"sites", "without", "language"})  # its time ranges are too coarse for days
    fields = frozenset({"snippet", "published"})

    def settings(self, url: str) -> dict[str, Any]:
        return {"searxng_url": url}

    def asked(self, request: Request) -> Asked:
        said = {name: values[0] for name, values in request.query.items()}
        if (request.method, request.path, said["format"]) != ("GET", "/search", "json"):
            raise ValueError(f"{request.method} {request.path}")
        query, sites, without = sited(said["q"])
        return Asked(query=query, sites=sites, without=without, language=said.get("language"))

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([_result(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return self._dumped([{"template": "default.html"}, *(_result(result) for result in found)])

    def _dumped(self, results: list[dict[str, Any]]) -> str:
        tail: dict[str, Any] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": []}
        head = {"query": "q", "number_of_results": 0}
        return json.dumps({**head, "results": results, **tail, "unresponsive_engines": []})


def _result(found: Found) -> dict[str, Any]:
    return {
        "url": found.url, "title": found.title, "content": found.snippet, "thumbnail": None, "engine": "google",
        "publishedDate": f"{found.published}T00:00:00" if found.published else None, "template": "default.html",
        "parsed_url": ["https", "example.org", "/", "", "", ""], "engines": ["google"], "positions": [1],
        "score": 1.0, "category": "general",
    }  # fmt: skip


FORMAT = Searxng()
