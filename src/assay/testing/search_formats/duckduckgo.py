"""DuckDuckGo's page without scripts, as html.duckduckgo.com serves it."""

import html
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import parse_qs, quote

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format, sited
from assay.testing.wire import Request

FORM = '<form action="/html/" method="post"><input class="search__input" name="q" type="text" value="q"></form>'


class DuckDuckGo(Format):
    name = "duckduckgo"
    builds = "assay.search.duckduckgo:DuckDuckGo"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    content_type = "text/html; charset=UTF-8"

    def settings(self, url: str) -> dict[str, Any]:
        return {"endpoints": {self.name: f"{url}/html/"}}

    def asked(self, request: Request) -> Asked:
        if (request.method, request.path) != ("POST", "/html/"):
            raise ValueError(f"{request.method} {request.path}")
        said = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        if len(said["q"]) > 499:
            raise ValueError("a query of more than 499 characters is not accepted")
        query, sites, without = sited(said["q"])
        since, _, until = said.get("df", "").partition("..")
        return Asked(
            query=query, since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None, sites=sites, without=without,
            language=said["l"].partition("-")[2],
        )  # fmt: skip

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return _page([_result(place, result) for place, result in enumerate(found)])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        advertisement = Found(url="https://duckduckgo.com/y.js?ad_domain=example.com", title="Buy", snippet="Now")
        bare = '<div class="result results_links"><div class="links_main result__body"><h2></h2></div></div>'
        results = (_result(place, result) for place, result in enumerate(found))
        return _page([bare, _result(0, advertisement), *results])

    def misshapen(self) -> str:
        return "<html><body><h1>Something else</h1></body></html>"


def _page(results: Sequence[str]) -> str:
    shown = "\n".join(results) or '<div class="no-results">No results found for <b>q</b></div>'
    head = "<!DOCTYPE html><html><head><title>q at DuckDuckGo</title></head>"
    return f'{head}<body>{FORM}<div id="links" class="results">{shown}</div></body></html>'


def _result(place: int, found: Found) -> str:
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


FORMAT = DuckDuckGo()
