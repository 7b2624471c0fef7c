"""GDELT's list of articles, as blog.gdeltproject.org/gdelt-doc-2-0-api-debuts describes it."""

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format
from assay.testing.search_formats.papers import number, param, within
from assay.testing.wire import Request

_CODES = {"german": "de", "english": "en", "french": "fr", "spanish": "es", "japanese": "ja"}
_FILTER = re.compile(r"(-?)(domain|domainis|sourcelang):(\S+?)(?=[\s)]|\Z)")


class Gdelt(Format):
    name = "gdelt"
    builds = "assay.search.gdelt:Gdelt"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"published"})
    most = 250

    def asked(self, request: Request) -> Asked:
        query, since, until = (param(request, name) for name in ("query", "startdatetime", "enddatetime"))
        said = _FILTER.findall(within(250, query))
        if any(len(word) < 3 for word in re.findall(r"(?<!\S)[A-Za-z]+(?!\S)", query) if word != "OR"):
            raise ValueError("a query with a short word is refused")
        languages = [_CODES[value] for _, name, value in said if name == "sourcelang"]
        return Asked(
            query=" ".join(re.sub(r"[()]|\bOR\b", " ", _FILTER.sub(" ", query)).split()),
            limit=number(request, "maxrecords"),
            since=date.fromisoformat(since[:8]) if since else None,
            until=date.fromisoformat(until[:8]) if until else None,
            sites=tuple(value for sign, name, value in said if not sign and name != "sourcelang"),
            without=tuple(value for sign, _, value in said if sign),
            language=next(iter(languages), None),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_article(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return _page([{"url": 7, "title": None}, *map(_article, found)])


def _page(articles: list[dict[str, Any]]) -> str:
    return json.dumps({"articles": articles} if articles else {})


def _article(found: Found) -> dict[str, Any]:
    return {
        "url": found.url,
        "url_mobile": "",
        "title": found.title,
        **({"seendate": f"{found.published:%Y%m%d}T093000Z"} if found.published else {}),
        "socialimage": "",
        "domain": "example.org",
        "language": "English",
        "sourcecountry": "United States",
    }


FORMAT = Gdelt()
