"""MediaWiki's search as a generator, as www.mediawiki.org/wiki/API:Search and Extension:TextExtracts describe it."""

import json
import re
from collections.abc import Sequence
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked
from assay.testing.search_formats.papers import Catalogue, number, param, within
from assay.testing.wire import Request


class Wikipedia(Catalogue):
    name = "wikipedia"
    builds = "assay.search.wikipedia:Wikipedia"
    filters = frozenset({"language"})
    fields = frozenset({"snippet", "text"})
    most = 20
    openings = True

    def settings(self, url: str) -> dict[str, Any]:
        return {"endpoints": {self.name: f"{url}/{{language}}/w/api.php"}}

    def asked(self, request: Request) -> Asked:
        language = request.path.split("/")[-3]
        return Asked(
            query=re.sub(r" OR ", " ", within(300, param(request, "gsrsearch"))),
            limit=number(request, "gsrlimit"),
            language=None if language == "en" else language,
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_result(result, index) for index, result in enumerate(found, 1)])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        broken = {"pageid": -1, "ns": 0, "title": None, "index": "first"}
        return _page([broken, *(_result(result, index) for index, result in enumerate(found, 2))])


def _page(pages: list[dict[str, Any]]) -> str:
    # Pages come by their numbers and say in `index` where they belong.
    return json.dumps({"batchcomplete": True, **({"query": {"pages": pages[::-1]}} if pages else {})})


def _result(found: Found, index: int) -> dict[str, Any]:
    return {
        "pageid": 1000 - index,
        "ns": 0,
        "title": found.title,
        "index": index,
        "extract": found.text,
        "contentmodel": "wikitext",
        "pagelanguage": "en",
        "touched": "2026-10-01T12:00:00Z",
        "lastrevid": 1,
        "length": 4321,
        "fullurl": found.url,
        "editurl": f"{found.url}?action=edit",
        "canonicalurl": found.url,
    }


FORMAT = Wikipedia()
