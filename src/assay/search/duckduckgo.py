"""DuckDuckGo's page without scripts, through the package ddgs: no key, a few questions a minute.

ddgs knows the form, the page and how a browser speaks. Its own search loop is not used: it takes every status but 200
for "no results", follows redirects, reads without bounds, and undoes the escapes in addresses.
"""

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs, urlsplit

from assay.errors import SourceError
from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import ApiSource, Request
from assay.search.entries import today
from assay.search.http import LARGEST, Outgoing, Reply, broken, decoded, slow, too_large, unreachable
from assay.search.refusal import FINAL
from assay.search.sites import narrowed

if TYPE_CHECKING:
    from ddgs.engines.duckduckgo import Duckduckgo

REGIONS = {
    "cs": "cz-cs", "da": "dk-da", "de": "de-de", "el": "gr-el", "en": "us-en", "es": "es-es", "fi": "fi-fi",
    "fr": "fr-fr", "hu": "hu-hu", "it": "it-it", "ja": "jp-jp", "ko": "kr-kr", "nl": "nl-nl", "no": "no-no",
    "pl": "pl-pl", "pt": "pt-pt", "ro": "ro-ro", "ru": "ru-ru", "sv": "se-sv", "tr": "tr-tr", "uk": "ua-uk",
    "zh": "cn-zh",
}  # fmt: skip
ANYWHERE = "wt-wt"
MARKS = ('name="q"', "result__body", "no-results")  # of a page of results, also of one without any
CHALLENGES = ("challenge-form", "anomaly-modal")
_FIRST = date(1990, 1, 1)


class DuckDuckGo(ApiSource):
    name: ClassVar[str] = "duckduckgo"
    final: ClassVar[frozenset[int]] = FINAL | {202}
    endpoint: ClassVar[str] = "https://html.duckduckgo.com/html/"
    stands_in: ClassVar[bool] = True  # asked where there is no other source for the web
    # No terms are published; who asks much faster than a person is shown a challenge. November 2026.
    own_terms: ClassVar[Terms] = Terms(per_minute=20, at_once=1)

    def request(self, inquiry: Inquiry) -> Request:
        period = f"{inquiry.since or _FIRST}..{inquiry.until or today()}" if inquiry.since or inquiry.until else None
        region = REGIONS.get(inquiry.language or "", ANYWHERE)
        query = narrowed(inquiry, characters=499)  # more it does not accept
        return Request(params=_engine().build_payload(query, region, "moderate", period))

    async def fetch(self, outgoing: Outgoing, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(self._posted, outgoing, seconds)
        except TimeoutError:
            raise slow(self.name, seconds) from None

    def _posted(self, outgoing: Outgoing, seconds: float) -> Reply:
        import primp

        engine = _engine(seconds)  # a new one each time keeps no cookies
        try:
            response = engine.http_client.client.request(
                engine.search_method, outgoing.url, data=dict(outgoing.params), timeout=seconds,
                follow_redirects=False, stream=True,
            )  # fmt: skip
            with response:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > LARGEST:
                        raise too_large(self.name)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, headers, decoded(bytes(body)))
        except primp.TimeoutError:
            raise slow(self.name, seconds) from None
        except (primp.BodyError, primp.DecodeError):
            raise broken(self.name) from None
        except primp.PrimpError:
            raise unreachable(self.name) from None

    def explain(self, reply: Reply) -> SourceError:
        return self._challenged() if reply.status == 202 else super().explain(reply)

    def found(self, body: str) -> Sequence[Found]:
        if any(mark in body for mark in CHALLENGES):
            raise self._challenged()
        if not any(mark in body for mark in MARKS):
            raise ValueError("not a page of results")
        engine = _engine()
        results = []
        for item in engine.extract_tree(body).xpath(engine.items_xpath):
            said = {name: "".join(item.xpath(path)) for name, path in engine.elements_xpath.items()}
            if address := _address(said["href"]):
                results.append(Found(url=address, title=said["title"], snippet=said["body"]))
        return results

    def _challenged(self) -> SourceError:
        return SourceError(
            "duckduckgo wants to see a person before it answers",
            help="Wait an hour, or set the key of another provider.",
            provider=self.name,
        )


def _engine(seconds: float = 5.0) -> "Duckduckgo":
    from ddgs.engines.duckduckgo import Duckduckgo

    return Duckduckgo(timeout=max(int(seconds), 1))


def _address(link: str) -> str:
    """Where a link leads; those of advertisements lead nowhere, some go through DuckDuckGo."""
    place = urlsplit(link)
    if not (place.hostname or "").endswith("duckduckgo.com"):
        return link
    return "" if place.path == "/y.js" else parse_qs(place.query).get("uddg", [""])[0]
