"""Crossref's list of works, as api.crossref.org/swagger-ui describes it."""

import json
from collections.abc import Sequence
from datetime import date
from html import escape
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked
from assay.testing.search_formats.papers import Catalogue, number, param
from assay.testing.wire import Request

DOIS = ("10.5555/12345678", "10.1002/(SICI)1097-0258(19980815/30)17:15/16%3C1661::AID-SIM968%3E3.0.CO;2-2", "10.1/a")


class Crossref(Catalogue):
    name = "crossref"
    builds = "assay.search.crossref:Crossref"
    filters = frozenset({"since", "until"})
    fields = frozenset({"snippet", "published", "author", "text"})
    most = 1000
    makes_addresses = True

    def samples(self) -> Sequence[Found]:
        pairs = zip(super().samples(), DOIS, strict=True)
        return [found.model_copy(update={"url": f"https://doi.org/{doi}"}) for found, doi in pairs]

    def asked(self, request: Request) -> Asked:
        filters = dict(part.split(":", 1) for part in param(request, "filter").split(",") if part)
        since, until = filters.get("from-pub-date"), filters.get("until-pub-date")
        return Asked(
            query=param(request, "query.bibliographic"),
            limit=number(request, "rows"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_item(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return _page([{"DOI": 7, "title": "not a list", "author": {}}, *map(_item, found)])


def _page(items: list[dict[str, Any]]) -> str:
    message = {"facets": {}, "total-results": len(items), "items": items, "items-per-page": 20, "query": {}}
    return json.dumps({"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": message})


def _item(found: Found) -> dict[str, Any]:
    day = found.published
    given, _, family = (found.author or "").rpartition(" ")
    author = {"given": given, "family": family, "sequence": "first", "affiliation": []}
    text = f"<jats:title>Abstract</jats:title><jats:p>{escape(found.text, quote=False)}</jats:p>"
    return {
        "DOI": found.url.removeprefix("https://doi.org/").replace("%3C", "<").replace("%3E", ">"),
        "title": [escape(found.title, quote=False)],
        "issued": {"date-parts": [[day.year, day.month, day.day] if day else [None]]},
        **({"author": [author]} if found.author else {}),
        **({"abstract": text} if found.text else {}),
    }


FORMAT = Crossref()
