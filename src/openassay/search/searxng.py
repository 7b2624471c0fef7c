"""SearXNG, a metasearch that you host yourself. https://docs.searxng.org/dev/search_api.html"""

from collections.abc import Sequence

from pydantic import Field

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderEntry, ProviderRequest, WebEntry, parse_entries
from openassay.search.fields import add_site_filters, today
from openassay.search.http import HttpResponse

TIME_RANGES = ((1, "day"), (31, "month"), (366, "year"))


class SearxngResult(WebEntry):
    snippet: str | None = Field(None, alias="content")
    published: str | None = Field(None, alias="publishedDate")


class SearxngResponse(ProviderEntry):
    results: tuple[object, ...]
    unresponsive_engines: tuple[object, ...] = ()


class SearxngSource(ApiSource):
    name = "searxng"
    endpoint = ""  # search.searxng_url says where
    own_terms = ProviderTerms(  # the engines behind it are not one's own
        per_minute=60, at_once=2, needs="search.searxng_url"
    )

    @property
    def address(self) -> str:
        return self.settings.searxng_url or super().address

    def is_available(self) -> bool:
        return bool(self.address) and super().is_available()

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        age = (today() - search.since).days if search.since and not search.until else None
        params = {
            "q": add_site_filters(search, characters=1000),
            "format": "json",
            "language": search.language or None,
            "time_range": next((name for days, name in TIME_RANGES if age is not None and age <= days), None),
        }
        return ProviderRequest("/search", params)

    def explain(self, reply: HttpResponse) -> SourceError:
        if reply.status != 403:
            return super().explain(reply)
        return SourceError(
            "searxng does not give its results as JSON",
            help="Add json to search.formats in its settings.yml, and check that its limiter lets you in.",
            provider=self.name,
            status=403,
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        answer = SearxngResponse.read(body)
        if answer.unresponsive_engines and not answer.results:
            raise SourceError(
                "none of the engines behind searxng answered",
                help="Try again later.",
                retryable=True,
                provider=self.name,
            )
        return [result.to_result() for result in parse_entries(SearxngResult, answer.results)]
