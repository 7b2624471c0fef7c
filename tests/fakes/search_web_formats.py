"""DuckDuckGo's page without scripts, as html.duckduckgo.com serves it."""

import html
import json
import re
from collections.abc import Sequence
from datetime import date, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qs, quote

from openassay.models.evidence import ProviderResult
from tests.fakes.http_server import ServerRequest
from tests.fakes.search_api import QueryParameters, SearchFormat, split_site_filters, to_midnight

# Brave, as https://api-dashboard.search.brave.com/api-reference/web/search/get has it.


class BraveFormat(SearchFormat):
    name = "brave"
    builds = "openassay.search.brave:BraveSource"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"snippet", "published"})
    most = 20
    key_setting = "brave_api_key"
    key_required = True

    def settings(self, url: str) -> dict[str, Any]:
        return {"endpoints": {self.name: f"{url}/res/v1"}}

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        if (request.method, request.path) != ("GET", "/res/v1/web/search"):
            raise ValueError(f"{request.method} {request.path}")
        said = {name: values[0] for name, values in request.query.items()}
        if len(said["q"]) > 400 or len(said["q"].split()) > 50:
            raise ValueError("a query of more than 400 characters or 50 words is answered with 422")
        query, sites, without = split_site_filters(said["q"])
        since, _, until = said.get("freshness", "").partition("to")
        return QueryParameters(
            query=query, limit=int(said.get("count", 20)), since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None, sites=sites, without=without,
            language=said.get("search_lang"), key=request.headers.get("x-subscription-token", ""),
        )  # fmt: skip

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([_build_brave_result(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results(
            [{"type": "search_result", "title": "A page"}, *(_build_brave_result(result) for result in found)]
        )

    def _dump_results(self, results: list[dict[str, Any]]) -> str:
        head = {"type": "search", "query": {"original": "q", "more_results_available": False}, "mixed": {"main": []}}
        return json.dumps({**head, **({"web": {"type": "search", "results": results}} if results else {})})


def _build_brave_result(found: ProviderResult) -> dict[str, Any]:
    dated = {"page_age": f"{found.published}T09:30:00", "age": "March 5, 2024"} if found.published else {}
    return {
        "type": "search_result", "url": found.url, "title": html.escape(found.title),
        "description": html.escape(found.snippet), "language": "en", "family_friendly": True,
        "profile": {"name": "Example"}, **dated,
    }  # fmt: skip


BRAVE = BraveFormat()


DUCKDUCKGO_FORM = (
    '<form action="/html/" method="post"><input class="search__input" name="q" type="text" value="q"></form>'
)


class DuckDuckGoFormat(SearchFormat):
    name = "duckduckgo"
    builds = "openassay.search.duckduckgo:DuckDuckGoSource"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    content_type = "text/html; charset=UTF-8"

    def settings(self, url: str) -> dict[str, Any]:
        return {"endpoints": {self.name: f"{url}/html/"}}

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        if (request.method, request.path) != ("POST", "/html/"):
            raise ValueError(f"{request.method} {request.path}")
        said = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        if len(said["q"]) > 499:
            raise ValueError("a query of more than 499 characters is not accepted")
        query, sites, without = split_site_filters(said["q"])
        since, _, until = said.get("df", "").partition("..")
        return QueryParameters(
            query=query, since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None, sites=sites, without=without,
            language=said["l"].partition("-")[2],
        )  # fmt: skip

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_duckduckgo_page([_build_duckduckgo_result(place, result) for place, result in enumerate(found)])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        advertisement = ProviderResult(
            url="https://duckduckgo.com/y.js?ad_domain=example.com", title="Buy", snippet="Now"
        )
        bare = '<div class="result results_links"><div class="links_main result__body"><h2></h2></div></div>'
        results = (_build_duckduckgo_result(place, result) for place, result in enumerate(found))
        return _build_duckduckgo_page([bare, _build_duckduckgo_result(0, advertisement), *results])

    def build_invalid_answer(self) -> str:
        return "<html><body><h1>Something else</h1></body></html>"


def _build_duckduckgo_page(results: Sequence[str]) -> str:
    shown = "\n".join(results) or '<div class="no-results">No results found for <b>q</b></div>'
    head = "<!DOCTYPE html><html><head><title>q at DuckDuckGo</title></head>"
    return f'{head}<body>{DUCKDUCKGO_FORM}<div id="links" class="results">{shown}</div></body></html>'


def _build_duckduckgo_result(place: int, found: ProviderResult) -> str:
    """Every other one goes through DuckDuckGo, as they do for some clients."""
    link = f"//duckduckgo.com/l/?uddg={quote(found.url, safe='')}&rut=3f" if place % 2 else found.url
    target, words = html.escape(link), found.snippet.split(" ")
    shown = " ".join([f"<b>{html.escape(words[0])}</b>", *map(html.escape, words[1:])])
    return (
        '<div class="result results_links results_links_deep web-result"><div class="links_main links_deep '
        f'result__body"><h2 class="result__title"><a rel="nofollow" class="result__a" href="{target}">'
        f'{html.escape(found.title)}</a></h2><div class="result__extras"></div>'
        f'<a class="result__snippet" href="{target}">{shown}</a></div></div>'
    )


DUCKDUCKGO = DuckDuckGoFormat()


# Exa, as https://exa.ai/docs/reference/search has it.


class ExaFormat(SearchFormat):
    name = "exa"
    builds = "openassay.search.exa:ExaSource"
    filters = frozenset({"since", "until", "sites", "without"})
    fields = frozenset({"snippet", "published", "author"})
    most = 100
    key_setting = "exa_api_key"
    key_required = True

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        if (request.method, request.path) != ("POST", "/search"):
            raise ValueError(f"{request.method} {request.path}")
        body = json.loads(request.body)
        return QueryParameters(
            query=body["query"],
            limit=body.get("numResults", 10),
            since=_parse_exa_day(body.get("startPublishedDate")),
            until=_parse_exa_day(body.get("endPublishedDate")),
            sites=tuple(body.get("includeDomains", ())),
            without=tuple(body.get("excludeDomains", ())),
            key=request.headers.get("x-api-key", ""),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([_build_exa_result(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results(
            [{"title": "A page", "url": {"at": "nowhere"}}, *(_build_exa_result(result) for result in found)]
        )

    def _dump_results(self, results: list[dict[str, Any]]) -> str:
        head = {"requestId": "b5947044c4b78efa9552a7c89b306d95", "searchType": "auto"}
        return json.dumps({**head, "results": results, "costDollars": {"total": 0.007}})


def _build_exa_result(found: ProviderResult) -> dict[str, Any]:
    dated = f"{found.published}T00:00:00.000Z" if found.published else None
    return {
        "id": found.url, "url": found.url, "title": found.title, "publishedDate": dated, "author": found.author,
        "image": "https://example.org/i.png", "highlights": [found.snippet], "highlightScores": [0.46],
    }  # fmt: skip


def _parse_exa_day(text: str | None) -> date | None:
    return datetime.fromisoformat(text).date() if text else None


EXA = ExaFormat()


# SearXNG, as https://docs.searxng.org/dev/search_api.html has it.


class SearxngFormat(SearchFormat):
    name = "searxng"
    builds = "openassay.search.searxng:SearxngSource"
    filters = frozenset({"sites", "without", "language"})  # its time ranges are too coarse for days
    fields = frozenset({"snippet", "published"})

    def settings(self, url: str) -> dict[str, Any]:
        return {"searxng_url": url}

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        said = {name: values[0] for name, values in request.query.items()}
        if (request.method, request.path, said["format"]) != ("GET", "/search", "json"):
            raise ValueError(f"{request.method} {request.path}")
        query, sites, without = split_site_filters(said["q"])
        return QueryParameters(query=query, sites=sites, without=without, language=said.get("language"))

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([_build_searxng_result(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([{"template": "default.html"}, *(_build_searxng_result(result) for result in found)])

    def _dump_results(self, results: list[dict[str, Any]]) -> str:
        tail: dict[str, Any] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": []}
        head = {"query": "q", "number_of_results": 0}
        return json.dumps({**head, "results": results, **tail, "unresponsive_engines": []})


def _build_searxng_result(found: ProviderResult) -> dict[str, Any]:
    return {
        "url": found.url, "title": found.title, "content": found.snippet, "thumbnail": None, "engine": "google",
        "publishedDate": f"{found.published}T00:00:00" if found.published else None, "template": "default.html",
        "parsed_url": ["https", "example.org", "/", "", "", ""], "engines": ["google"], "positions": [1],
        "score": 1.0, "category": "general",
    }  # fmt: skip


SEARXNG = SearxngFormat()


# Serper, as its playground at https://serper.dev has it.


class SerperFormat(SearchFormat):
    name = "serper"
    builds = "openassay.search.serper:SerperSource"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"snippet", "published"})
    most = 100
    key_setting = "serper_api_key"
    key_required = True

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        if (request.method, request.path) != ("POST", "/search"):
            raise ValueError(f"{request.method} {request.path}")
        body = json.loads(request.body)
        query, sites, without = split_site_filters(body["q"])
        period = body.get("tbs", "") if body.get("tbs", "").startswith("cdr:1") else ""
        return QueryParameters(
            query=query,
            limit=body.get("num", 10),
            since=_parse_serper_day("cd_min", period),
            until=_parse_serper_day("cd_max", period),
            sites=sites,
            without=without,
            language=body.get("hl"),
            key=request.headers.get("x-api-key", ""),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([_build_serper_result(result, place) for place, result in enumerate(found, 1)])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results(
            [{"title": "A page", "position": 1}, *(_build_serper_result(result, 2) for result in found)]
        )

    def _dump_results(self, results: list[dict[str, Any]]) -> str:
        asked = {"q": "q", "type": "search", "engine": "google"}
        related = [{"query": "zanzibar port"}]
        return json.dumps({"searchParameters": asked, "organic": results, "relatedSearches": related, "credits": 1})


def _build_serper_result(found: ProviderResult, position: int) -> dict[str, Any]:
    dated = {"date": f"{found.published:%b} {found.published.day}, {found.published.year}"} if found.published else {}
    return {"title": found.title, "link": found.url, "snippet": found.snippet, "position": position, **dated}


def _parse_serper_day(name: str, period: str) -> date | None:
    match = re.search(rf"{name}:(\d+/\d+/\d+)", period)
    return datetime.strptime(match[1], "%m/%d/%Y").date() if match else None


SERPER = SerperFormat()


# Tavily, as https://docs.tavily.com/documentation/api-reference/endpoint/search has it.


class TavilyFormat(SearchFormat):
    name = "tavily"
    builds = "openassay.search.tavily:TavilySource"
    filters = frozenset({"since", "until", "sites", "without"})
    fields = frozenset({"snippet", "published"})
    most = 20
    key_setting = "tavily_api_key"
    key_required = True

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        if (request.method, request.path) != ("POST", "/search"):
            raise ValueError(f"{request.method} {request.path}")
        body = json.loads(request.body)
        return QueryParameters(
            query=body["query"],
            limit=body.get("max_results", 5),
            since=_parse_tavily_day(body.get("start_date")),
            until=_parse_tavily_day(body.get("end_date")),
            sites=tuple(body.get("include_domains", ())),
            without=tuple(body.get("exclude_domains", ())),
            key=request.headers.get("authorization", "").removeprefix("Bearer "),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([_build_tavily_result(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return self._dump_results([{"title": 7, "url": None}, *(_build_tavily_result(result) for result in found)])

    def _dump_results(self, results: list[dict[str, Any]]) -> str:
        head: dict[str, Any] = {"query": "q", "follow_up_questions": None, "answer": None, "images": []}
        return json.dumps({**head, "results": results, "response_time": 1.09, "request_id": "1"})


def _build_tavily_result(found: ProviderResult) -> dict[str, Any]:
    dated = {"published_date": format_datetime(to_midnight(found.published), usegmt=True)} if found.published else {}
    return {
        "url": found.url, "title": found.title, "content": found.snippet, "score": 0.8, "raw_content": None, **dated
    }  # fmt: skip


def _parse_tavily_day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


TAVILY = TavilyFormat()
