"""Semantic Scholar's paper relevance search, as api.semanticscholar.org/api-docs/graph describes it."""

import json
from collections.abc import Sequence
from datetime import date
from typing import Any

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked
from assay.testing.search_formats.papers import Catalogue, number, param
from assay.testing.wire import Request


class SemanticScholar(Catalogue):
    name = "semantic_scholar"
    builds = "assay.search.semantic_scholar:SemanticScholar"
    filters = frozenset({"since", "until"})
    most = 100
    key_setting = "semantic_scholar_api_key"

    def asked(self, request: Request) -> Asked:
        since, _, until = param(request, "publicationDateOrYear").partition(":")
        return Asked(
            query=param(request, "query"),
            limit=number(request, "limit"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
            key=request.headers.get("x-api-key", ""),
        )

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return self._page([_paper(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return self._page([{"paperId": 7, "title": None, "authors": "nobody"}, *map(_paper, found)])

    def _page(self, papers: list[dict[str, Any]]) -> str:
        # `data` is missing where nothing was found.
        return json.dumps({"total": len(papers), "offset": 0, **({"data": papers} if papers else {})})


def _paper(found: Found) -> dict[str, Any]:
    doi, arxiv = "https://doi.org/", "https://arxiv.org/abs/"
    ids: dict[str, Any] = {"CorpusId": 235683434}
    if found.url.startswith(doi):
        ids["DOI"] = found.url.removeprefix(doi)
    if found.url.startswith(arxiv):
        ids["ArXiv"] = found.url.removeprefix(arxiv)
    page = (
        found.url if len(ids) == 1 else "https://www.semanticscholar.org/paper/649def34f8be52c8b66281af98ae884c09aef38b"
    )
    return {
        "paperId": "649def34f8be52c8b66281af98ae884c09aef38b",
        "externalIds": ids,
        "url": page,
        "title": found.title,
        "abstract": found.text or None,
        "venue": "",
        "year": found.published.year if found.published else None,
        "publicationDate": str(found.published) if found.published else None,
        "openAccessPdf": {"url": found.fulltext or "", "status": "GREEN" if found.fulltext else None, "license": None},
        "authors": [{"authorId": "1741101", "name": found.author}] if found.author else [],
    }


FORMAT = SemanticScholar()
