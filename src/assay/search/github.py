"""GitHub: repositories of code, by what their names, descriptions and introductions say."""

from collections.abc import Sequence

from assay.errors import SourceError
from assay.model.inquiry import Found, Inquiry, Terms
from assay.search.api import ApiSource, Request
from assay.search.courtesy import raised
from assay.search.entries import Entry, combined, day, keywords
from assay.search.http import Reply
from assay.search.results import valid

WORDS = 6  # more than five operators are refused
LONGEST = 256  # characters of a query, its qualifiers aside
QUALIFIERS = "in:name,description,topics,readme is:public"  # a token would find its owner's private ones too


class Owner(Entry):
    login: str | None = None


class Repository(Entry):
    html_url: str
    full_name: str
    description: str | None = None
    pushed_at: str | None = None
    owner: Owner | None = None


class Results(Entry):
    items: tuple[object, ...]


class Github(ApiSource):
    name = "github"
    types = ("code",)
    kind = "code"
    endpoint = "https://api.github.com/search/repositories"
    # Of searches: ten a minute, thirty with a token.
    own_terms = Terms(per_minute=10, at_once=1, key="github_token")

    @property
    def terms(self) -> Terms:
        return raised(super().terms, self.name, self.settings, per_minute=30) if self.key else super().terms

    def request(self, inquiry: Inquiry) -> Request:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        words = combined(keywords(inquiry.query, WORDS), all_of=3, together=" ", longest=LONGEST)
        query = " ".join(part for part in (words, QUALIFIERS, _pushed(inquiry)) if part)
        return Request(params={"q": query, "per_page": inquiry.limit}, headers=headers)

    def explain(self, reply: Reply) -> SourceError:
        """403 is also said to those who ask too often."""
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        return super().explain(reply._replace(status=429) if reply.status == 403 and limited else reply)

    def found(self, body: str) -> Sequence[Found]:
        return [_found(repository) for repository in valid(Repository, Results.read(body).items)]


def _pushed(inquiry: Inquiry) -> str:
    if inquiry.since and inquiry.until:
        return f"pushed:{inquiry.since}..{inquiry.until}"
    if inquiry.since:
        return f"pushed:>={inquiry.since}"
    return f"pushed:<={inquiry.until}" if inquiry.until else ""


def _found(repository: Repository) -> Found:
    return Found(
        url=repository.html_url,
        title=repository.full_name,
        snippet=repository.description or "",
        published=day(repository.pushed_at),
        author=repository.owner.login if repository.owner else None,
    )
