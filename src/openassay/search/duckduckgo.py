"""DuckDuckGo's page without scripts, through the package ddgs: no key, a few queries a minute.

ddgs knows the form, the page and how a browser speaks. Its own search loop is not used: it takes every status but 200
for "no results", follows redirects, reads without bounds, and undoes the escapes in addresses.
"""

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search import http
from openassay.search.base import FINAL_STATUSES, ApiSource, ProviderRequest
from openassay.search.fields import add_site_filters, today

if TYPE_CHECKING:
    from ddgs.engines.duckduckgo import Duckduckgo

REGIONS = {
    "cs": "cz-cs", "da": "dk-da", "de": "de-de", "el": "gr-el", "en": "us-en", "es": "es-es", "fi": "fi-fi",
    "fr": "fr-fr", "hu": "hu-hu", "it": "it-it", "ja": "jp-jp", "ko": "kr-kr", "nl": "nl-nl", "no": "no-no",
    "pl": "pl-pl", "pt": "pt-pt", "ro": "ro-ro", "ru": "ru-ru", "sv": "se-sv", "tr": "tr-tr", "uk": "ua-uk",
    "zh": "cn-zh",
}  # fmt: skip
ANYWHERE = "wt-wt"
RESULT_MARKS = ('name="q"', "result__body", "no-results")  # of a page of results, also of one without any
CHALLENGE_MARKS = ("challenge-form", "anomaly-modal")
_FIRST_DAY = date(1990, 1, 1)


class DuckDuckGoSource(ApiSource):
    name = "duckduckgo"
    final_statuses = FINAL_STATUSES | {202}
    endpoint = "https://html.duckduckgo.com/html/"
    stands_in = True
    # No terms are published; a client much faster than a person is shown a challenge. November 2026.
    own_terms = ProviderTerms(per_minute=20, at_once=1)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        period = f"{search.since or _FIRST_DAY}..{search.until or today()}" if search.since or search.until else None
        region = REGIONS.get(search.language or "", ANYWHERE)
        query = add_site_filters(search, characters=499)  # it accepts no more
        return ProviderRequest(params=_make_engine().build_payload(query, region, "moderate", period))

    async def fetch(self, request: http.HttpRequest, seconds: float) -> http.HttpResponse:
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(self._post, request, seconds)
        except TimeoutError:
            raise http.timeout_error(self.name, seconds) from None

    def _post(self, request: http.HttpRequest, seconds: float) -> http.HttpResponse:
        import primp

        engine = _make_engine(seconds)  # a new one each time keeps no cookies
        try:
            response = engine.http_client.client.request(
                engine.search_method,
                request.url,
                data=dict(request.params),
                timeout=seconds,
                follow_redirects=False,
                stream=True,
            )
            with response:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > http.MAX_BYTES:
                        raise http.too_large_error(self.name)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return http.HttpResponse(response.status_code, headers, body.decode("utf-8-sig", errors="replace"))
        except primp.TimeoutError:
            raise http.timeout_error(self.name, seconds) from None
        except (primp.BodyError, primp.DecodeError):
            raise http.unpack_error(self.name) from None
        except primp.PrimpError:
            raise http.unreachable_error(self.name) from None

    def explain(self, reply: http.HttpResponse) -> SourceError:
        return self._challenge_error() if reply.status == 202 else super().explain(reply)

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        if any(mark in body for mark in CHALLENGE_MARKS):
            raise self._challenge_error()
        if not any(mark in body for mark in RESULT_MARKS):
            raise ValueError("not a page of results")
        engine = _make_engine()
        results = []
        for item in engine.extract_tree(body).xpath(engine.items_xpath):
            fields = {name: "".join(item.xpath(path)) for name, path in engine.elements_xpath.items()}
            url = urlsplit(fields["href"])
            if not (url.hostname or "").endswith("duckduckgo.com"):
                target = fields["href"]
            else:  # some links go through DuckDuckGo; those of advertisements lead nowhere
                target = "" if url.path == "/y.js" else parse_qs(url.query).get("uddg", [""])[0]
            if target:
                results.append(ProviderResult(url=target, title=fields["title"], snippet=fields["body"]))
        return results

    def _challenge_error(self) -> SourceError:
        return SourceError(
            "duckduckgo is showing a CAPTCHA",
            help="Wait an hour, or set the key of another provider.",
            provider=self.name,
        )


def _make_engine(seconds: float = 5.0) -> "Duckduckgo":
    from ddgs.engines.duckduckgo import Duckduckgo

    return Duckduckgo(timeout=max(int(seconds), 1))
