"""GitHub: repositories, by name, description, topics and readme. https://docs.github.com/en/rest/search"""

from collections.abc import Mapping, Sequence

from pydantic import Field

from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import ApiSource, ProviderRequest, WebEntry, nested_field, read_entries
from openassay.search.fields import join_terms, query_keywords
from openassay.search.http import HttpResponse

MAX_WORDS = 6  # more than five operators are refused
MAX_QUERY = 256  # characters, the qualifiers aside
QUALIFIERS = "in:name,description,topics,readme is:public"  # a token would find its owner's private ones too


class GithubRepository(WebEntry):
    url: str = Field(alias="html_url")
    title: str = Field(alias="full_name")
    snippet: str | None = Field(None, alias="description")
    published: str | None = Field(None, alias="pushed_at")
    author: str | None = nested_field("owner", "login")


class GithubSource(ApiSource):
    name = "github"
    types = ("code",)
    kind = "code"
    endpoint = "https://api.github.com/search/repositories"
    # Of searches: ten a minute, thirty with a token.
    own_terms = ProviderTerms(per_minute=10, at_once=1, key="github_token")

    def better_limits(self) -> Mapping[str, float]:
        return {"per_minute": 30} if self.key else {}

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        query = join_terms(query_keywords(search.query, MAX_WORDS), all_of=3, together=" ", longest=MAX_QUERY)
        query = f"{query} {QUALIFIERS}".lstrip()
        if search.since and search.until:
            query += f" pushed:{search.since}..{search.until}"
        elif search.since:
            query += f" pushed:>={search.since}"
        elif search.until:
            query += f" pushed:<={search.until}"
        return ProviderRequest(params={"q": query, "per_page": search.limit}, headers=headers)

    def read_status(self, reply: HttpResponse) -> int:
        """Tell a 403 for too many requests from one for a bad key."""
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        return 429 if reply.status == 403 and limited else reply.status

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        found = read_entries(GithubRepository, body, "items")
        return [repository.to_result(author=repository.author) for repository in found]
