"""GitHub: repositories of code, by what their names, descriptions and introductions say."""

from collections.abc import Sequence

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    ApiSource,
    ProviderEntry,
    ProviderRequest,
    join_terms,
    parse_entries,
    parse_iso_date,
    query_keywords,
    raise_limits,
)
from openassay.search.http import HttpResponse

WORDS = 6  # more than five operators are refused
LONGEST = 256  # characters of a query, its qualifiers aside
QUALIFIERS = "in:name,description,topics,readme is:public"  # a token would find its owner's private ones too


class GithubOwner(ProviderEntry):
    login: str | None = None


class GithubRepository(ProviderEntry):
    html_url: str
    full_name: str
    description: str | None = None
    pushed_at: str | None = None
    owner: GithubOwner | None = None


class GithubResponse(ProviderEntry):
    items: tuple[object, ...]


class GithubSource(ApiSource):
    name = "github"
    types = ("code",)
    kind = "code"
    endpoint = "https://api.github.com/search/repositories"
    # Of searches: ten a minute, thirty with a token.
    own_terms = ProviderTerms(per_minute=10, at_once=1, key="github_token")

    @property
    def terms(self) -> ProviderTerms:
        return raise_limits(super().terms, self.name, self.settings, per_minute=30) if self.key else super().terms

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        words = join_terms(query_keywords(inquiry.query, WORDS), all_of=3, together=" ", longest=LONGEST)
        query = " ".join(part for part in (words, QUALIFIERS, _date_filter(inquiry)) if part)
        return ProviderRequest(params={"q": query, "per_page": inquiry.limit}, headers=headers)

    def explain(self, reply: HttpResponse) -> SourceError:
        """403 is also said to those who ask too often."""
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        return super().explain(reply._replace(status=429) if reply.status == 403 and limited else reply)

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [
            _to_result(repository) for repository in parse_entries(GithubRepository, GithubResponse.read(body).items)
        ]


def _date_filter(inquiry: SearchRequest) -> str:
    if inquiry.since and inquiry.until:
        return f"pushed:{inquiry.since}..{inquiry.until}"
    if inquiry.since:
        return f"pushed:>={inquiry.since}"
    return f"pushed:<={inquiry.until}" if inquiry.until else ""


def _to_result(repository: GithubRepository) -> ProviderResult:
    return ProviderResult(
        url=repository.html_url,
        title=repository.full_name,
        snippet=repository.description or "",
        published=parse_iso_date(repository.pushed_at),
        author=repository.owner.login if repository.owner else None,
    )
