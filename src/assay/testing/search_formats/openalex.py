"""OpenAlex's list of works, as developers.openalex.org describes it."""

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked
from assay.testing.search_formats.papers import Catalogue, number, param
from assay.testing.wire import Request


class OpenAlex(Catalogue):
    name = "openalex"
    builds = "assay.search.openalex:OpenAlex"
    filters = frozenset({"since", "until", "language"})
    most = 100
    key_setting = "openalex_api_key"

    def asked(self, request: Request) -> Asked:
        filters = dict(part.split(":", 1) for part in param(request, "filter").split(",") if part)
        since, until = filters.get("from_publication_date"), filters.get("to_publication_date")
        return Asked(
            query=re.sub(r" (?:AND|OR) ", " ", param(request, "search")),
            limit=number(request, "per-page"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
            language=filters.get("language"),
            key=param(request, "api_key"),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_work(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return _page([{"id": None, "display_name": ["?"], "authorships": 7}, *map(_work, found)])


def _page(works: list[dict[str, Any]]) -> str:
    meta = {"count": len(works), "db_response_time_ms": 31, "page": 1, "per_page": 25, "groups_count": None}
    return json.dumps({"meta": meta, "results": works, "group_by": []})


def _work(found: Found) -> dict[str, Any]:
    doi = found.url if found.url.startswith("https://doi.org/") else None
    author = {"id": "https://openalex.org/A5023888391", "display_name": found.author, "orcid": None}
    place = {"is_oa": bool(found.fulltext), "landing_page_url": found.url, "pdf_url": found.fulltext, "source": None}
    return {
        "id": "https://openalex.org/W2741809807",
        "doi": doi,
        "display_name": found.title,
        "publication_date": str(found.published) if found.published else None,
        "authorships": [{"author_position": "first", "author": author, "institutions": []}] if found.author else [],
        "abstract_inverted_index": inverted(found.text) if found.text else None,
        "primary_location": place,
        "best_oa_location": place if found.fulltext else None,
        "open_access": {"is_oa": bool(found.fulltext), "oa_status": "gold", "oa_url": found.fulltext},
    }


def inverted(text: str) -> dict[str, list[int]]:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(text.split()):
        index.setdefault(word, []).append(place)
    return index


FORMAT = OpenAlex()
