"""OpenAlex's list of works, as developers.openalex.org describes it."""

import json
import re
from collections.abc import Sequence
from datetime import date
from html import escape
from typing import Any

from openassay.models.evidence import ProviderResult
from tests.fakes.http_server import ServerRequest
from tests.fakes.search_api import CatalogueFormat, QueryParameters, check_length, get_int_param, get_param

# Crossref's list of works, as api.crossref.org/swagger-ui describes it.

CROSSREF_DOIS = (
    "10.5555/12345678",
    "10.1002/(SICI)1097-0258(19980815/30)17:15/16%3C1661::AID-SIM968%3E3.0.CO;2-2",
    "10.1/a",
)


class CrossrefFormat(CatalogueFormat):
    name = "crossref"
    builds = "openassay.search.crossref:CrossrefSource"
    filters = frozenset({"since", "until"})
    fields = frozenset({"snippet", "published", "author", "text"})
    most = 1000
    makes_addresses = True

    def samples(self) -> Sequence[ProviderResult]:
        pairs = zip(super().samples(), CROSSREF_DOIS, strict=True)
        return [found.model_copy(update={"url": f"https://doi.org/{doi}"}) for found, doi in pairs]

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        filters = dict(part.split(":", 1) for part in get_param(request, "filter").split(",") if part)
        since, until = filters.get("from-pub-date"), filters.get("until-pub-date")
        return QueryParameters(
            query=get_param(request, "query.bibliographic"),
            limit=get_int_param(request, "rows"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_crossref_page([_build_crossref_item(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_crossref_page(
            [{"DOI": 7, "title": "not a list", "author": {}}, *map(_build_crossref_item, found)]
        )


def _build_crossref_page(items: list[dict[str, Any]]) -> str:
    message = {"facets": {}, "total-results": len(items), "items": items, "items-per-page": 20, "query": {}}
    return json.dumps({"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": message})


def _build_crossref_item(found: ProviderResult) -> dict[str, Any]:
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


CROSSREF = CrossrefFormat()


class OpenAlexFormat(CatalogueFormat):
    name = "openalex"
    builds = "openassay.search.openalex:OpenAlexSource"
    filters = frozenset({"since", "until", "language"})
    most = 100
    key_setting = "openalex_api_key"

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        filters = dict(part.split(":", 1) for part in get_param(request, "filter").split(",") if part)
        since, until = filters.get("from_publication_date"), filters.get("to_publication_date")
        return QueryParameters(
            query=re.sub(r" (?:AND|OR) ", " ", get_param(request, "search")),
            limit=get_int_param(request, "per-page"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
            language=filters.get("language"),
            key=get_param(request, "api_key"),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_openalex_page([_build_openalex_work(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_openalex_page(
            [{"id": None, "display_name": ["?"], "authorships": 7}, *map(_build_openalex_work, found)]
        )


def _build_openalex_page(works: list[dict[str, Any]]) -> str:
    meta = {"count": len(works), "db_response_time_ms": 31, "page": 1, "per_page": 25, "groups_count": None}
    return json.dumps({"meta": meta, "results": works, "group_by": []})


def _build_openalex_work(found: ProviderResult) -> dict[str, Any]:
    doi = found.url if found.url.startswith("https://doi.org/") else None
    author = {"id": "https://openalex.org/A5023888391", "display_name": found.author, "orcid": None}
    place = {"is_oa": bool(found.fulltext), "landing_page_url": found.url, "pdf_url": found.fulltext, "source": None}
    return {
        "id": "https://openalex.org/W2741809807",
        "doi": doi,
        "display_name": found.title,
        "publication_date": str(found.published) if found.published else None,
        "authorships": [{"author_position": "first", "author": author, "institutions": []}] if found.author else [],
        "abstract_inverted_index": invert_abstract(found.text) if found.text else None,
        "primary_location": place,
        "best_oa_location": place if found.fulltext else None,
        "open_access": {"is_oa": bool(found.fulltext), "oa_status": "gold", "oa_url": found.fulltext},
    }


def invert_abstract(text: str) -> dict[str, list[int]]:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(text.split()):
        index.setdefault(word, []).append(place)
    return index


OPENALEX = OpenAlexFormat()


# Semantic Scholar's paper relevance search, as api.semanticscholar.org/api-docs/graph describes it.


class SemanticScholarFormat(CatalogueFormat):
    name = "semantic_scholar"
    builds = "openassay.search.semantic_scholar:SemanticScholarSource"
    filters = frozenset({"since", "until"})
    most = 100
    key_setting = "semantic_scholar_api_key"

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        since, _, until = get_param(request, "publicationDateOrYear").partition(":")
        return QueryParameters(
            query=get_param(request, "query"),
            limit=get_int_param(request, "limit"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
            key=request.headers.get("x-api-key", ""),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_papers([_build_semantic_scholar_paper(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_papers(
            [{"paperId": 7, "title": None, "authors": "nobody"}, *map(_build_semantic_scholar_paper, found)]
        )

    def _dump_papers(self, papers: list[dict[str, Any]]) -> str:
        # `data` is missing where nothing was found.
        return json.dumps({"total": len(papers), "offset": 0, **({"data": papers} if papers else {})})


def _build_semantic_scholar_paper(found: ProviderResult) -> dict[str, Any]:
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


SEMANTIC_SCHOLAR = SemanticScholarFormat()


# MediaWiki's search as a generator, as www.mediawiki.org/wiki/API:Search and Extension:TextExtracts describe it.


class WikipediaFormat(CatalogueFormat):
    name = "wikipedia"
    builds = "openassay.search.wikipedia:WikipediaSource"
    filters = frozenset({"language"})
    fields = frozenset({"snippet", "text"})
    most = 20
    openings = True

    def settings(self, url: str) -> dict[str, Any]:
        return {"endpoints": {self.name: f"{url}/{{language}}/w/api.php"}}

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        language = request.path.split("/")[-3]
        return QueryParameters(
            query=re.sub(r" OR ", " ", check_length(300, get_param(request, "gsrsearch"))),
            limit=get_int_param(request, "gsrlimit"),
            language=None if language == "en" else language,
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_wikipedia_page([_build_wikipedia_result(result, index) for index, result in enumerate(found, 1)])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        broken = {"pageid": -1, "ns": 0, "title": None, "index": "first"}
        return _build_wikipedia_page(
            [broken, *(_build_wikipedia_result(result, index) for index, result in enumerate(found, 2))]
        )


def _build_wikipedia_page(pages: list[dict[str, Any]]) -> str:
    # Pages come by their numbers and say in `index` where they belong.
    return json.dumps({"batchcomplete": True, **({"query": {"pages": pages[::-1]}} if pages else {})})


def _build_wikipedia_result(found: ProviderResult, index: int) -> dict[str, Any]:
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


WIKIPEDIA = WikipediaFormat()
