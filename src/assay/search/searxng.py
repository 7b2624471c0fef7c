"""SearXNG, a metasearch of one's own. https://docs.searxng.org/dev/search_api.html"""

from collections.abc import Sequence
from typing import ClassVar

from assay.errors import SourceError
from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import ApiSource, Request
from assay.search.entries import Entry, today
from assay.search.http import Reply
from assay.search.published import published
from assay.search.results import valid
from assay.search.sites import narrowed

RANGES = ((1, "day"), (31, "month"), (366, "year"))


class Result(Entry):
    url: str
    title: str
    content: str | None = None
    publishedDate: str | None = None


class Results(Entry):
    results: tuple[object, ...]
    unresponsive_engines: tuple[object, ...] = ()


class Searxng(ApiSource):
    name: ClassVar[str] = "searxng"
    endpoint: ClassVar[str] = ""  # search.searxng_url says where
    own_terms: ClassVar[Terms] = Terms(  # the engines behind it are not one's own
        per_minute=60, at_once=2, needs="search.searxng_url"
    )

    @property
    def address(self) -> str:
        return self.settings.searxng_url or super().address

    def is_available(self) -> bool:
        return bool(self.address) and super().is_available()

    def request(self, inquiry: Inquiry) -> Request:
        asked: dict[str, str | int] = {"q": narrowed(inquiry, characters=1000), "format": "json"}
        if inquiry.language:
            asked["language"] = inquiry.language
        if inquiry.since and not inquiry.until:
            age = (today() - inquiry.since).days
            wide = [name for days, name in RANGES if age <= days]
            asked |= {"time_range": wide[0]} if wide else {}
        return Request("/search", asked)

    def explain(self, reply: Reply) -> SourceError:
        if reply.status != 403:
            return super().explain(reply)
        return SourceError(
            "searxng does not give its results as JSON",
            help="Add json to search.formats in its settings.yml, and look whether its limiter lets you in.",
            provider=self.name,
            status=403,
        )

    def found(self, body: str) -> Sequence[Found]:
        answer = Results.read(body)
        if answer.unresponsive_engines and not answer.results:
            raise SourceError(
                "none of the engines behind searxng answered", help="Try again later.", retryable=True,
                provider=self.name,
            )  # fmt: skip
        return [
            Found(
                url=result.url,
                title=result.title,
                snippet=result.content or "",
                published=published(result.publishedDate),
            )
            for result in valid(Result, answer.results)
        ]
