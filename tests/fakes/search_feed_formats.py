"""arXiv's Atom feed, as info.arxiv.org/help/api/user-manual.html describes it."""

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from openassay.models.evidence import ProviderResult
from tests.fakes.http_server import ServerRequest
from tests.fakes.search_api import (
    CatalogueFormat,
    QueryParameters,
    SearchFormat,
    check_length,
    get_int_param,
    get_param,
)

_ARXIV_DATES = re.compile(r"\((.*)\) AND submittedDate:\[(\d{8})\d{4} TO (\d{8})\d{4}\]")


class ArxivFormat(CatalogueFormat):
    name = "arxiv"
    builds = "openassay.search.arxiv:ArxivSource"
    filters = frozenset({"since", "until"})
    most = 2000
    content_type = "application/atom+xml; charset=UTF-8"

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        query, since, until = get_param(request, "search_query"), None, None
        if dates := _ARXIV_DATES.fullmatch(query):
            query = dates[1]
            since, until = (date.fromisoformat(day) for day in dates.group(2, 3))
        words = re.sub(r'\ball:|"', "", re.sub(r" (?:AND|OR) ", " ", query))
        return QueryParameters(query=words, limit=get_int_param(request, "max_results"), since=since, until=until)

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return build_arxiv_feed([_build_arxiv_entry(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return build_arxiv_feed(
            ["<entry><updated>2024-01-01T00:00:00Z</updated></entry>", *map(_build_arxiv_entry, found)]
        )

    def build_invalid_answer(self) -> str:
        return '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>Elsewhere</body></html>'


def build_arxiv_feed(entries: Sequence[str]) -> str:
    total = len(entries)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <link href="http://arxiv.org/api/query?search_query%3Dall:quay" rel="self" type="application/atom+xml"/>
  <title type="html">ArXiv Query: search_query=all:quay&amp;id_list=&amp;start=0&amp;max_results=10</title>
  <id>http://arxiv.org/api/cHxbiOdZaP56ODnBPIenZhzg5f8</id>
  <updated>2024-10-08T00:00:00-04:00</updated>
  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{total}</opensearch:totalResults>
  <opensearch:startIndex xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">0</opensearch:startIndex>
  <opensearch:itemsPerPage xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{total}</opensearch:itemsPerPage>
  {"".join(entries)}
</feed>"""


def _build_arxiv_entry(found: ProviderResult) -> str:
    published = f"<published>{found.published}T17:59:59Z</published>" if found.published else ""
    author = f"<author><name>{escape(found.author)}</name></author>" if found.author else ""
    pdf = ""
    if found.fulltext:
        pdf = f'<link title="pdf" href={quoteattr(found.fulltext)} rel="related" type="application/pdf"/>'
    return f"""<entry>
    <id>{escape(found.url)}</id>
    <updated>2024-10-08T00:00:00Z</updated>
    {published}
    <title>{escape(found.title)}</title>
    <summary>  {escape(found.text)}
    </summary>
    {author}
    <arxiv:comment xmlns:arxiv="http://arxiv.org/schemas/atom">12 pages</arxiv:comment>
    <link href={quoteattr(found.url)} rel="alternate" type="text/html"/>
    {pdf}
    <category term="cs.DL" scheme="http://arxiv.org/schemas/atom"/>
  </entry>"""


ARXIV = ArxivFormat()


# GDELT's list of articles, as blog.gdeltproject.org/gdelt-doc-2-0-api-debuts describes it.

_GDELT_LANGUAGES = {"german": "de", "english": "en", "french": "fr", "spanish": "es", "japanese": "ja"}
_GDELT_FILTER = re.compile(r"(-?)(domain|domainis|sourcelang):(\S+?)(?=[\s)]|\Z)")


class GdeltFormat(SearchFormat):
    name = "gdelt"
    builds = "openassay.search.gdelt:GdeltSource"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"published"})
    most = 250

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        query, since, until = (get_param(request, name) for name in ("query", "startdatetime", "enddatetime"))
        said = _GDELT_FILTER.findall(check_length(250, query))
        if any(len(word) < 3 for word in re.findall(r"(?<!\S)[A-Za-z]+(?!\S)", query) if word != "OR"):
            raise ValueError("a query with a short word is refused")
        languages = [_GDELT_LANGUAGES[value] for _, name, value in said if name == "sourcelang"]
        return QueryParameters(
            query=" ".join(re.sub(r"[()]|\bOR\b", " ", _GDELT_FILTER.sub(" ", query)).split()),
            limit=get_int_param(request, "maxrecords"),
            since=date.fromisoformat(since[:8]) if since else None,
            until=date.fromisoformat(until[:8]) if until else None,
            sites=tuple(value for sign, name, value in said if not sign and name != "sourcelang"),
            without=tuple(value for sign, _, value in said if sign),
            language=next(iter(languages), None),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_gdelt_page([_build_gdelt_article(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_gdelt_page([{"url": 7, "title": None}, *map(_build_gdelt_article, found)])


def _build_gdelt_page(articles: list[dict[str, Any]]) -> str:
    return json.dumps({"articles": articles} if articles else {})


def _build_gdelt_article(found: ProviderResult) -> dict[str, Any]:
    return {
        "url": found.url,
        "url_mobile": "",
        "title": found.title,
        **({"seendate": f"{found.published:%Y%m%d}T093000Z"} if found.published else {}),
        "socialimage": "",
        "domain": "example.org",
        "language": "English",
        "sourcecountry": "United States",
    }


GDELT = GdeltFormat()


# GitHub's search of repositories, as docs.github.com/rest/search describes it.

_DAY = r"\d{4}-\d\d-\d\d"
_PUSHED = re.compile(rf"pushed:(?:(?P<first>{_DAY})\.\.(?P<last>{_DAY})|>=(?P<after>{_DAY})|<=(?P<before>{_DAY}))")


class GithubFormat(SearchFormat):
    name = "github"
    builds = "openassay.search.github:GithubSource"
    filters = frozenset({"since", "until"})
    fields = frozenset({"snippet", "published", "author"})
    most = 100
    key_setting = "github_token"

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        query = get_param(request, "q")
        pushed = _PUSHED.search(query)
        first, last = (pushed["after"] or pushed["first"], pushed["before"] or pushed["last"]) if pushed else ("", "")
        words = check_length(256, re.sub(r"\b(?:in|is|pushed):\S+", " ", query).strip())
        if len(re.findall(r"\b(?:AND|OR|NOT)\b", words)) > 5:
            raise ValueError("a query with more than five operators is refused")
        return QueryParameters(
            query=" ".join(re.sub(r"\bOR\b", " ", words).split()),
            limit=get_int_param(request, "per_page"),
            since=date.fromisoformat(first) if first else None,
            until=date.fromisoformat(last) if last else None,
            key=request.headers.get("authorization", "").removeprefix("Bearer "),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_github_page([_build_github_repository(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_github_page([{"id": 1, "full_name": None, "html_url": 7}, *map(_build_github_repository, found)])


def _build_github_page(items: list[dict[str, Any]]) -> str:
    return json.dumps({"total_count": len(items), "incomplete_results": False, "items": items})


def _build_github_repository(found: ProviderResult) -> dict[str, Any]:
    return {
        "id": 3081286,
        "name": found.title.rpartition("/")[2],
        "full_name": found.title,
        "private": False,
        "owner": {"login": found.author, "id": 872147, "type": "User"} if found.author else None,
        "html_url": found.url,
        "description": found.snippet or None,
        "fork": False,
        "url": "https://api.github.com/repos/example/example",
        "created_at": "2012-01-01T00:31:50Z",
        "updated_at": "2013-01-05T17:58:47Z",
        "pushed_at": f"{found.published}T00:37:02Z" if found.published else None,
        "stargazers_count": 1,
        "language": "Assembly",
        "archived": False,
        "score": 1.0,
    }


GITHUB = GithubFormat()


# NewsAPI's "everything", as newsapi.org/docs/endpoints/everything describes it.


class NewsApiFormat(SearchFormat):
    name = "newsapi"
    builds = "openassay.search.newsapi:NewsApiSource"
    filters = frozenset({"since", "until", "sites", "without", "language"})
    fields = frozenset({"snippet", "published", "author"})
    most = 100
    key_setting = "news_api_key"
    key_required = True

    def parse_query(self, request: ServerRequest) -> QueryParameters:
        since, until = get_param(request, "from"), get_param(request, "to")
        return QueryParameters(
            query=re.sub(r" (?:AND|OR) ", " ", check_length(500, get_param(request, "q"))),
            limit=get_int_param(request, "pageSize"),
            since=date.fromisoformat(since) if since else None,
            until=date.fromisoformat(until) if until else None,
            sites=tuple(filter(None, get_param(request, "domains").split(","))),
            without=tuple(filter(None, get_param(request, "excludeDomains").split(","))),
            language=get_param(request, "language") or None,
            key=request.headers.get("x-api-key", ""),
        )

    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_newsapi_page([_build_newsapi_article(result) for result in found])

    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        return _build_newsapi_page([{"source": None, "title": 7, "url": None}, *map(_build_newsapi_article, found)])


def _build_newsapi_page(articles: list[dict[str, Any]]) -> str:
    return json.dumps({"status": "ok", "totalResults": len(articles), "articles": articles})


def _build_newsapi_article(found: ProviderResult) -> dict[str, Any]:
    return {
        "source": {"id": None, "name": "Example News"},
        "author": found.author,
        "title": found.title,
        "description": found.snippet,
        "url": found.url,
        "urlToImage": None,
        "publishedAt": f"{found.published}T21:16:00Z" if found.published else None,
        "content": f"{found.snippet}… [+4321 chars]",
    }


NEWSAPI = NewsApiFormat()
