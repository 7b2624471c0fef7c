"""What is special to each catalogue, newspaper index and encyclopaedia: how it is asked, and what its answers hold."""

import contextlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openassay.errors import SourceError
from openassay.models.evidence import SearchRequest
from openassay.protocols import DocumentReader, Embedder
from openassay.search.arxiv import ArxivSource
from openassay.search.base import ApiSource
from openassay.search.crossref import CrossrefSource
from openassay.search.fields import (
    date_from_parts,
    doi_url,
    format_byline,
    join_terms,
    parse_iso_date,
    query_keywords,
    strip_markup,
)
from openassay.search.gdelt import GdeltSource
from openassay.search.github import GithubSource
from openassay.search.http import HttpRequest, HttpResponse, ProviderClient, RetryPolicy
from openassay.search.newsapi import NewsApiSource
from openassay.search.openalex import OpenAlexSource
from openassay.search.registry import SourceContext
from openassay.search.semantic_scholar import SemanticScholarSource
from openassay.search.wikipedia import WikipediaSource
from openassay.settings import Keys, SearchSettings, Settings
from openassay.testing import MemoryCache, MemoryDocuments
from tests.fakes.index import MemoryIndex
from tests.fakes.search_catalogue_formats import invert_abstract
from tests.fakes.search_feed_formats import build_arxiv_feed
from tests.growth import LINEAR, growth

QUESTION = "What is the effect of intermittent fasting on insulin resistance in adults with type 2 diabetes?"
TODAY = datetime.now(UTC).date()
A = TypeVar("A", bound=ApiSource)


class Scripted(ProviderClient):
    """Answers in turn, and remembers what it was sent."""

    def __init__(self, *replies: HttpResponse) -> None:
        super().__init__(RetryPolicy(pause=0.0))
        self.sent: list[HttpRequest] = []
        self._replies = list(replies)

    async def fetch(self, name: str, outgoing: HttpRequest, *, seconds: float) -> HttpResponse:
        self.sent.append(outgoing)
        return self._replies.pop(0)


def source(
    kind: type[A], http: ProviderClient | None = None, *, keys: Mapping[str, str] | None = None, **search: Any
) -> A:
    quick = {"requests_per_minute": {kind.name: 6000.0}} if http else {}
    settings = Settings(search=SearchSettings(**{**quick, **search}), keys=Keys.model_validate(keys or {}))
    return kind.build(
        SourceContext(
            MemoryDocuments(), cast(Embedder, None), cast(DocumentReader, None), lambda path: MemoryIndex(), settings,
            MemoryCache(), http or ProviderClient(),
        )
    )  # fmt: skip


plain_source = cache(source)  # with no settings of its own, for tests that only ask it or read with it


def params(kind: type[ApiSource], query: str = QUESTION, **inquiry: Any) -> Mapping[str, str | int]:
    asked = plain_source(kind).build_request(SearchRequest(query=query, **inquiry)).params
    return {name: value for name, value in asked.items() if value is not None}


# Semantic Scholar

S2 = {
    "total": 1,
    "offset": 0,
    "data": [
        {
            "paperId": "204e3073870fae3d05bcbc2f6a8e263d9b72e776",
            "externalIds": {"MAG": "2963403868", "ArXiv": "1706.03762", "CorpusId": 13756489},
            "url": "https://www.semanticscholar.org/paper/204e3073870fae3d05bcbc2f6a8e263d9b72e776",
            "title": "Attention is All you Need",
            "abstract": "The dominant sequence transduction models are based on complex recurrent networks.",
            "venue": "Neural Information Processing Systems",
            "year": 2017,
            "publicationDate": None,
            "openAccessPdf": {"url": "", "status": None, "license": None, "disclaimer": "Notice: ..."},
            "authors": [{"authorId": str(n), "name": f"A{n} Author"} for n in range(8)],
        }
    ],
}  # fmt: skip


def semantic_scholar(**changed: Any) -> Any:
    body = {**S2, "data": [{**S2["data"][0], **changed}]}  # type: ignore[index]
    return plain_source(SemanticScholarSource).parse_results(json.dumps(body))[0]


@pytest.mark.requirement("F-04")
def test_semantic_scholar_prefers_the_doi_then_arxiv_then_its_own_page() -> None:
    assert semantic_scholar(externalIds={"DOI": "10.1/x", "ArXiv": "1"}).url == "https://doi.org/10.1/x"
    assert semantic_scholar().url == "https://arxiv.org/abs/1706.03762"
    assert semantic_scholar(externalIds=None).url.startswith("https://www.semanticscholar.org/paper/")


def test_semantic_scholar_dates_and_authors_may_be_partial() -> None:
    found = semantic_scholar()
    assert found.published == date(2017, 1, 1)
    assert found.author == "A0 Author, A1 Author et al."
    assert found.fulltext is None
    assert semantic_scholar(publicationDate="2017-06-12").published == date(2017, 6, 12)
    bare = semantic_scholar(year=None, authors=None, abstract=None, openAccessPdf=None)
    assert (bare.published, bare.author, bare.text) == (None, None, "")


@pytest.mark.requirement("F-04")
def test_semantic_scholar_is_asked_for_years() -> None:
    assert "publicationDateOrYear" not in params(SemanticScholarSource)
    assert params(SemanticScholarSource, until=date(2020, 6, 6))["publicationDateOrYear"] == ":2020-06-06"
    asked = source(SemanticScholarSource, academic_years=3).build_request(SearchRequest(query="quay"))
    assert asked.params["publicationDateOrYear"] == f"{TODAY.year - 3}-01-01:"


def test_semantic_scholar_takes_no_hyphens_and_counts_what_it_gives() -> None:
    assert params(SemanticScholarSource, "state-of-the-art in low-rank adaptation")["query"] == (
        "state of the art low rank adaptation"
    )
    assert plain_source(SemanticScholarSource).parse_results('{"total": 0, "offset": 0}') == []
    with pytest.raises(ValueError, match="gives none"):
        plain_source(SemanticScholarSource).parse_results('{"total": 3, "offset": 0}')


# arXiv

ENTRY = """<entry>
    <id>http://arxiv.org/abs/hep-ex/0307015v2</id>
    <updated>2003-07-07T13:46:39-04:00</updated>
    <published>2003-07-07T13:46:39-04:00</published>
    <title>Multi-Electron Production at High Transverse Momenta in ep Collisions at
  HERA</title>
    <summary>  Multi-electron production is studied at high electron transverse momentum
in positron- and electron-proton collisions, at x &lt; 0.1.
    </summary>
    <author><name>H1 Collaboration</name></author>
    <arxiv:doi xmlns:arxiv="http://arxiv.org/schemas/atom">10.1140/epjc/s2003-01326-x</arxiv:doi>
    <link href="http://arxiv.org/abs/hep-ex/0307015v2" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/hep-ex/0307015v2" rel="related" type="application/pdf"/>
    <category term="hep-ex" scheme="http://arxiv.org/schemas/atom"/>
  </entry>"""


def test_arxiv_entries_are_read_on_one_line_and_without_their_version() -> None:
    (found,) = plain_source(ArxivSource).parse_results(build_arxiv_feed([ENTRY]))
    assert found.url == "https://arxiv.org/abs/hep-ex/0307015"
    assert found.title == "Multi-Electron Production at High Transverse Momenta in ep Collisions at HERA"
    assert found.text.endswith("electron-proton collisions, at x < 0.1.")
    assert "\n" not in found.text
    assert found.published == date(2003, 7, 7)
    assert found.author == "H1 Collaboration"
    assert found.fulltext == "https://arxiv.org/pdf/hep-ex/0307015v2"


def test_arxiv_wants_fielded_terms_and_dates() -> None:
    assert params(ArxivSource, "low-rank adaptation")["search_query"] == 'all:"low rank" AND all:adaptation'
    long = str(params(ArxivSource, QUESTION, since=date(2022, 1, 1))["search_query"])
    assert long.startswith("(all:effect OR all:intermittent OR all:fasting")
    assert long.endswith(f") AND submittedDate:[202201010000 TO {TODAY:%Y%m%d}2359]")
    assert "1991" in str(params(ArxivSource, until=date(2000, 1, 1))["search_query"])


def test_arxiv_errors_come_as_entries() -> None:
    entry = (
        "<entry><id>http://arxiv.org/api/errors#incorrect_id_format_for_1234</id><title>Error</title>"
        "<summary>incorrect id format for 1234</summary></entry>"
    )
    with pytest.raises(SourceError) as caught:
        plain_source(ArxivSource).parse_results(build_arxiv_feed([entry]))
    assert not caught.value.retryable


@pytest.mark.requirement("W-17")
@pytest.mark.parametrize(
    "body",
    [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
        '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>&e;</id></entry></feed>',
        '<!doctype x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><feed>&b;</feed>',
        '<feed xmlns="http://www.w3.org/2005/Atom">&undefined;</feed>',
        "<feed/>",
        "<feed",
        "",
        "\x00",
    ],
)
def test_arxiv_reads_nothing_but_a_feed(body: str) -> None:
    with pytest.raises(ValueError, match=r"feed|XML"):
        plain_source(ArxivSource).parse_results(body)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_arxiv_takes_any_text_in_a_feed(text: str) -> None:
    body = build_arxiv_feed([ENTRY, f"<entry><id>http://arxiv.org/abs/1</id><title>{text}</title></entry>"])
    try:
        found = plain_source(ArxivSource).parse_results(body)
    except (ValueError, SourceError):
        return
    assert found[0].author == "H1 Collaboration"


# OpenAlex

WORK: dict[str, Any] = {
    "id": "https://openalex.org/W2741809807",
    "doi": "https://doi.org/10.7717/peerj.4375",
    "display_name": "The state of <i>OA</i>: a large-scale analysis &amp; more",
    "publication_date": "2018-02-13",
    "authorships": [{"author_position": "first", "author": {"id": "https://openalex.org/A1", "display_name": "H. O."}}],
    "abstract_inverted_index": {"Despite": [0], "growing": [1, 4], "interest": [2], "in": [3]},
    "primary_location": {"is_oa": True, "landing_page_url": "https://doi.org/10.7717/peerj.4375", "pdf_url": None},
    "best_oa_location": {"is_oa": True, "landing_page_url": "https://peerj.com/4375", "pdf_url": "https://peerj.com/4375.pdf"},
    "open_access": {"is_oa": True, "oa_status": "gold", "oa_url": "https://peerj.com/articles/4375"},
}  # fmt: skip


def openalex(**changed: Any) -> list[Any]:
    return list(
        plain_source(OpenAlexSource).parse_results(
            json.dumps({"meta": {"count": 1}, "results": [{**WORK, **changed}, WORK]})
        )
    )


def test_openalex_abstracts_are_put_together_again() -> None:
    found = openalex()[0]
    assert found.text == "Despite growing interest in growing"
    assert found.title == "The state of OA: a large-scale analysis & more"
    assert (found.url, found.fulltext) == ("https://doi.org/10.7717/peerj.4375", "https://peerj.com/4375.pdf")
    assert found.published == date(2018, 2, 13)


def test_openalex_falls_back_to_what_there_is() -> None:
    found = openalex(doi=None, best_oa_location=None, abstract_inverted_index=None, authorships=None)[0]
    assert found.fulltext == "https://peerj.com/articles/4375"
    assert (found.text, found.author) == ("", None)
    bare = openalex(doi=None, primary_location=None, best_oa_location=None, open_access=None)[0]
    assert (bare.url, bare.fulltext) == ("https://openalex.org/W2741809807", None)


@pytest.mark.parametrize("index", [{"a": [-1]}, {"a": "0"}, {"a": [0.5]}, [["a", 0]], "a"])
def test_openalex_leaves_out_a_work_whose_abstract_is_no_index(index: object) -> None:
    assert len(openalex(abstract_inverted_index=index)) == 1


def test_openalex_abstracts_are_bounded() -> None:
    found = openalex(abstract_inverted_index={"a": [0, 10**12], "b": list(range(1, 200_000))})[0]
    assert len(found.text) < 20_000


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abcdefg", min_size=1, max_size=4), max_size=50))
def test_openalex_abstracts_survive_the_index(words: list[str]) -> None:
    assert openalex(abstract_inverted_index=invert_abstract(" ".join(words)))[0].text == " ".join(words)


def test_openalex_is_asked_with_filters_contact_and_key() -> None:
    asked = source(OpenAlexSource, keys={"openalex_api_key": "k3y"}, contact="ada@example.org").build_request(
        SearchRequest(query="harbour depth", since=date(2020, 1, 2), until=date(2021, 3, 4), language="de")
    )
    assert asked.params["search"] == "harbour AND depth"
    assert asked.params["mailto"] == "ada@example.org"
    assert asked.params["filter"] == (
        "is_retracted:false,from_publication_date:2020-01-02,to_publication_date:2021-03-04,language:de"
    )
    assert asked.secrets == {"api_key": "k3y"}
    assert "k3y" not in str(asked.params)


def test_openalex_gives_ten_times_as_much_for_a_free_key() -> None:
    assert source(OpenAlexSource).terms.per_day == 100
    assert source(OpenAlexSource, keys={"openalex_api_key": "k"}).terms.per_day == 1000
    told = source(OpenAlexSource, keys={"openalex_api_key": "k"}, requests_per_day={"openalex": 7})
    assert told.terms.per_day == 7


# Crossref

ITEM: dict[str, Any] = {
    "DOI": "10.1037/0003-066x.59.1.29",
    "title": ["How the Mind Hurts and Heals the <i>Body</i>."],
    "author": [{"given": "Oakley", "family": "Ray", "sequence": "first"}, {"name": "The H1 Group"}],
    "issued": {"date-parts": [[2004, 5]]},
    "abstract": "<jats:title>Abstract</jats:title><jats:p>CO<jats:sub>2</jats:sub> rose (p &lt; 0.05).</jats:p>"
    "<jats:p>It fell &amp; rose.</jats:p>",
}


def crossref(*items: object) -> list[Any]:
    message = {"total-results": len(items), "items": items}
    return list(
        plain_source(CrossrefSource).parse_results(
            json.dumps({"status": "ok", "message-type": "work-list", "message": message})
        )
    )


def test_crossref_markup_becomes_text() -> None:
    (found,) = crossref(ITEM)
    assert found.title == "How the Mind Hurts and Heals the Body."
    assert found.text == "CO2 rose (p < 0.05).\nIt fell & rose."
    assert found.author == "Oakley Ray, The H1 Group"
    assert found.published == date(2004, 5, 1)
    assert found.url == "https://doi.org/10.1037/0003-066x.59.1.29"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([[2004]], date(2004, 1, 1)),
        ([[2004, 2, 30]], None),
        ([[None]], None),
        ([[]], None),
        ([], None),
        ([[2004, 5, 3], [2005]], date(2004, 5, 3)),
    ],
)
def test_crossref_dates_may_be_partial(parts: object, expected: date | None) -> None:
    assert crossref({**ITEM, "issued": {"date-parts": parts}})[0].published == expected


def test_crossref_entries_without_a_title_are_left_out() -> None:
    issue = {"DOI": "10.1/issue", "type": "journal-issue"}
    assert [found.url for found in crossref(issue, ITEM)] == [crossref(ITEM)[0].url]
    assert crossref(issue, {**issue, "title": []}) == []
    with pytest.raises(ValueError, match="documented"):
        crossref({"DOI": 7, "title": ["a"]})


def test_crossref_serves_those_better_who_give_a_contact() -> None:
    known = source(CrossrefSource, contact="ada@example.org")
    assert (source(CrossrefSource).terms.per_minute, source(CrossrefSource).terms.at_once) == (60, 1)
    assert (known.terms.per_minute, known.terms.at_once) == (180, 3)
    asked = known.build_request(SearchRequest(query=QUESTION, since=date(2020, 1, 2), until=date(2021, 3, 4))).params
    assert asked["filter"] == "from-pub-date:2020-01-02,until-pub-date:2021-03-04"
    assert (asked["query.bibliographic"], asked["mailto"]) == (QUESTION, "ada@example.org")


# NewsAPI

ARTICLE: dict[str, Any] = {
    "source": {"id": "bbc-news", "name": "BBC News"},
    "author": "https://www.facebook.com/bbcnews",
    "title": "Harbour reopens",
    "description": "Ships are back.",
    "url": "https://www.bbc.co.uk/news/1",
    "urlToImage": None,
    "publishedAt": "2026-10-15T10:48:21Z",
    "content": "Ships are back. They were away… [+2119 chars]",
}


def newsapi(*articles: object) -> list[Any]:
    body = {"status": "ok", "totalResults": len(articles), "articles": articles}
    return list(plain_source(NewsApiSource).parse_results(json.dumps(body)))


@pytest.mark.requirement("F-04")
def test_newsapi_articles_that_were_withdrawn_are_left_out() -> None:
    removed = {**ARTICLE, "title": "[Removed]", "url": "https://removed.com", "description": "[Removed]"}
    (found,) = newsapi(removed, ARTICLE)
    assert (found.url, found.snippet) == ("https://www.bbc.co.uk/news/1", "Ships are back.")
    assert (found.published, found.author, found.text) == (date(2026, 10, 15), None, "")
    assert newsapi(removed) == []


@pytest.mark.requirement("F-04")
def test_newsapi_is_asked_for_the_last_days_unless_an_inquiry_says_since() -> None:
    week = source(NewsApiSource, news_days=7).build_request(SearchRequest(query="quay")).params
    assert week["from"] == str(TODAY - timedelta(days=7))
    assert params(NewsApiSource, since=date(2026, 1, 2))["from"] == "2026-01-02"
    assert params(NewsApiSource)["from"] == str(TODAY - timedelta(days=28))  # a month of any length


def test_newsapi_queries_fit() -> None:
    long = params(NewsApiSource, " ".join(f"extraordinarily{n}long" * 2 for n in range(40)), language="eo")
    assert len(str(long["q"])) <= 500
    assert not str(long["q"]).endswith("OR")
    assert "language" not in long  # it does not know this one
    sites = params(NewsApiSource, "quay", sites=("bbc.co.uk", "nytimes.com"), without=("example.com",), language="de")
    assert (sites["domains"], sites["excludeDomains"], sites["language"]) == (
        "bbc.co.uk,nytimes.com",
        "example.com",
        "de",
    )


@pytest.mark.requirement("C-07")
@pytest.mark.parametrize(
    ("code", "retryable"), [("rateLimited", True), ("apiKeyInvalid", False), ("parameterInvalid", False)]
)
async def test_newsapi_errors_are_errors_whatever_their_status(code: str, retryable: bool) -> None:
    error = HttpResponse(200, {}, json.dumps({"status": "error", "code": code, "message": "…"}))
    http = Scripted(error, error, error)
    with pytest.raises(SourceError) as caught:
        await source(NewsApiSource, http, keys={"news_api_key": "k"}).search("quay", limit=5)
    assert caught.value.retryable is retryable
    assert len(http.sent) == (3 if retryable else 1)


async def test_newsapi_says_when_a_plan_does_not_reach_back() -> None:
    with pytest.raises(SourceError, match="does not cover dates") as caught:
        await source(NewsApiSource, Scripted(HttpResponse(426, {}, "")), keys={"news_api_key": "k"}).search(
            "quay", limit=5
        )
    assert "news_days" in caught.value.help


# GDELT

GDELT = (
    r'{"articles": [ { "url": "https://www.example.com/a", "url_mobile": "", "title": "Port \d of \"Zanzibar\" , '
    r'reopens : 40 % more \\ ships\u00e9", "seendate": "20240115T093000Z", "socialimage": "", '
    r'"domain": "example.com", "language": "English", "sourcecountry": "Tanzania" } ] }'
)


def test_gdelt_json_is_read_though_it_is_none() -> None:
    with pytest.raises(ValueError, match="escape"):
        json.loads(GDELT)
    (found,) = plain_source(GdeltSource).parse_results(GDELT)
    assert found.title == 'Port \\d of "Zanzibar", reopens: 40% more \\ shipsé'
    assert found.published == date(2024, 1, 15)
    assert plain_source(GdeltSource).parse_results(GDELT.replace(" of ", " of\t"))[0].url == "https://www.example.com/a"


def test_gdelt_finds_nothing_by_words_it_refuses() -> None:
    assert plain_source(GdeltSource).parse_results("{}") == []
    assert plain_source(GdeltSource).parse_results("Your query was too short or too long.\n") == []
    assert plain_source(GdeltSource).parse_results("The specified phrase is too short.") == []


@pytest.mark.parametrize(
    "body",
    ["", "<html>The page was too long to load</html>", "Queries containing OR'd terms must be surrounded by ().", "[]"],
)
def test_gdelt_troubles_are_not_empty_results(body: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of json or of pydantic
        plain_source(GdeltSource).parse_results(body)


@pytest.mark.requirement("C-07")
async def test_gdelt_asks_for_patience_with_the_status_of_a_success() -> None:
    slowly = HttpResponse(200, {}, "Please limit requests to one every 5 seconds or contact us for larger queries.\n")
    http = Scripted(slowly, HttpResponse(200, {}, GDELT))
    assert len(await source(GdeltSource, http).search("Zanzibar harbour", limit=5)) == 1
    assert len(http.sent) == 2
    with pytest.raises(SourceError) as caught:
        await source(GdeltSource, Scripted(slowly, slowly, slowly)).search("Zanzibar harbour", limit=5)
    assert caught.value.retryable


def test_gdelt_queries_have_no_short_words_no_signs_and_fit() -> None:
    assert params(GdeltSource, "How is AI-driven R&D going in the EU?")["query"] == "driven going"
    assert params(GdeltSource, "Zanzibar harbour")["query"] == "Zanzibar harbour"
    asked = params(GdeltSource, QUESTION, sites=("a.com", "www.b.com"), without=("c.com",), language="de")
    assert asked["query"] == (
        "(effect OR intermittent OR fasting OR insulin OR resistance OR adults OR type OR diabetes) "
        "(domain:a.com OR domain:b.com) sourcelang:german -domain:c.com"
    )
    hosts = tuple(f"news-of-the-world-{n}.example.com" for n in range(20))
    full = str(
        params(GdeltSource, "incomprehensible " * 9 + "x" * 300, sites=hosts, without=hosts, language="de")["query"]
    )
    assert full.startswith("incomprehensible (domain:news-of-the-world-0.example.com OR ")
    assert len(full) < 250


def test_gdelt_is_asked_for_days() -> None:
    asked = source(GdeltSource, news_days=7).build_request(SearchRequest(query="quay", until=date(2024, 3, 8))).params
    assert (asked["startdatetime"], asked["enddatetime"]) == ("20240301000000", "20240308235959")


@settings(deadline=None)
@given(st.text(min_size=1, max_size=80))
def test_gdelt_queries_hold_no_operators_of_a_stranger(query: str) -> None:
    asked = str(params(GdeltSource, query)["query"])
    assert re.fullmatch(r'(?:[^\W_]+ ?)*|\((?:[^\W_]+ ?)+\)|"[^"]*"', asked)


# Wikipedia

WIKI = {
    "batchcomplete": True,
    "continue": {"gsroffset": 2, "continue": "gsroffset||"},
    "query": {
        "pages": [
            {"pageid": 34489, "ns": 0, "title": "Zanzibar", "index": 2, "extract": "Zanzibar is an archipelago. " * 20,
             "fullurl": "https://en.wikipedia.org/wiki/Zanzibar"},
            {"pageid": 6, "ns": 0, "title": "Harbour (disambiguation)", "index": 3, "extract": "Harbour may refer to:",
             "fullurl": "https://en.wikipedia.org/wiki/Harbour_(disambiguation)", "pageprops": {"disambiguation": ""}},
            {"pageid": 7, "ns": 0, "title": "Port of Malindi", "index": 1, "extract": "A port.",
             "fullurl": "https://en.wikipedia.org/wiki/Port_of_Malindi"},
            {"pageid": 8, "ns": 0, "title": "Quay", "index": 4, "fullurl": "https://en.wikipedia.org/wiki/Quay"},
        ]
    },
}  # fmt: skip


def test_wikipedia_pages_come_in_the_order_of_their_index() -> None:
    found = plain_source(WikipediaSource).parse_results(json.dumps(WIKI))
    assert [page.title for page in found] == ["Port of Malindi", "Zanzibar", "Quay"]
    assert [bool(page.text) for page in found] == [False, True, False]  # what is short says nothing by itself
    assert found[0].snippet == "A port."
    assert 200 < len(found[1].snippet) <= 300


def test_wikipedia_says_nothing_where_it_finds_nothing() -> None:
    assert plain_source(WikipediaSource).parse_results('{"batchcomplete":true}') == []
    for body in ("{}", '{"error":{"code":"badvalue","info":"…"}}'):
        with pytest.raises(ValueError, match="no list of results"):
            plain_source(WikipediaSource).parse_results(body)


@pytest.mark.parametrize(
    ("language", "host"),
    [(None, "en"), ("de", "de"), ("PT-br", "pt"), ("xx", "en"), ("evil.example/", "en"), ("", "en")],
)
async def test_wikipedia_is_asked_in_the_language_of_the_inquiry(language: str | None, host: str) -> None:
    http = Scripted(HttpResponse(200, {}, json.dumps(WIKI)))
    await source(WikipediaSource, http).ask(SearchRequest(query="quay", language=language), Nobody())
    assert http.sent[0].url == f"https://{host}.wikipedia.org/w/api.php"


class Nobody:
    """Pays."""

    async def buy(self, fee: Any, request: Any) -> str:
        answer: str = await request()
        return answer


async def test_wikipedia_is_told_whom_to_write_to() -> None:
    http = Scripted(HttpResponse(200, {}, json.dumps(WIKI)), HttpResponse(200, {}, json.dumps(WIKI)))
    await source(WikipediaSource, http, contact="ada@example.org").search("quay", limit=50)
    await source(WikipediaSource, http).search("quay", limit=5)
    assert http.sent[0].headers["User-Agent"] == "OpenAssayBot/0.1 (ada@example.org)"
    assert http.sent[0].params["gsrlimit"] == 20
    assert http.sent[1].headers["User-Agent"] == "OpenAssayBot/0.1"
    assert source(WikipediaSource).terms.per_minute == 10
    assert source(WikipediaSource, contact="ada@example.org").terms.per_minute == 200


@pytest.mark.requirement("C-07")
async def test_wikipedia_is_tried_again_when_it_is_busy() -> None:
    busy = HttpResponse(200, {}, '{"error":{"code":"ratelimited","info":"You have exceeded your rate limit."}}')
    http = Scripted(busy, HttpResponse(200, {}, json.dumps(WIKI)))
    assert len(await source(WikipediaSource, http).search("quay", limit=5)) == 3


# GitHub

REPOSITORIES = {
    "total_count": 40,
    "incomplete_results": False,
    "items": [
        {"id": 3081286, "full_name": "dtrupenn/Tetris", "owner": {"login": "dtrupenn"}, "private": False,
         "html_url": "https://github.com/dtrupenn/Tetris", "description": None, "pushed_at": "2012-01-01T00:37:02Z"},
    ],
}  # fmt: skip


def test_github_repositories() -> None:
    (found,) = plain_source(GithubSource).parse_results(json.dumps(REPOSITORIES))
    assert (found.url, found.title) == ("https://github.com/dtrupenn/Tetris", "dtrupenn/Tetris")
    assert (found.snippet, found.published, found.author) == ("", date(2012, 1, 1), "dtrupenn")


def test_github_is_asked_with_few_words_and_a_token_where_there_is_one() -> None:
    plainly = source(GithubSource).build_request(SearchRequest(query="tetris in assembly"))
    assert plainly.params["q"] == "tetris assembly in:name,description,topics,readme is:public"
    assert "Authorization" not in plainly.headers
    assert plainly.headers["Accept"] == "application/vnd.github+json"
    known = source(GithubSource, keys={"github_token": "t"})
    assert known.build_request(SearchRequest(query="x1")).headers["Authorization"] == "Bearer t"
    assert (source(GithubSource).terms.per_minute, known.terms.per_minute) == (10, 30)
    long = str(params(GithubSource, QUESTION, since=date(2024, 1, 1))["q"])
    assert long.count(" OR ") == 5
    assert long.endswith("pushed:>=2024-01-01")


@pytest.mark.requirement("C-07")
@pytest.mark.parametrize(
    ("status", "headers", "retryable"),
    [
        (403, {"x-ratelimit-remaining": "0"}, True),
        (403, {"retry-after": "1"}, True),
        (403, {"x-ratelimit-remaining": "7"}, False),
        (429, {}, True),
        (401, {}, False),
        (422, {}, False),
    ],
)
def test_github_says_403_to_those_who_ask_too_often(status: int, headers: dict[str, str], retryable: bool) -> None:
    github, reply = source(GithubSource), HttpResponse(status, headers, "")
    assert github.explain(reply._replace(status=github.read_status(reply))).retryable is retryable


# What they share

ALL = (
    SemanticScholarSource,
    ArxivSource,
    OpenAlexSource,
    CrossrefSource,
    NewsApiSource,
    GdeltSource,
    WikipediaSource,
    GithubSource,
)
FIELDS = (
    "total data results message items articles query pages title url DOI id display_name fullurl index issued author"
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.name))
@settings(deadline=None, max_examples=60)
@given(ANYTHING)
def test_whatever_comes_is_read_or_refused(kind: type[ApiSource], value: object) -> None:
    with contextlib.suppress(ValueError):
        plain_source(kind).parse_results(json.dumps(value))


async def test_half_an_emoji_does_not_spoil_an_answer() -> None:
    cut = {**ARTICLE, "description": "Ships \ud83d"}
    nowhere = {**ARTICLE, "url": "https://example.com/\ud83d"}
    body = json.dumps({"status": "ok", "totalResults": 2, "articles": [cut, nowhere]})
    hits = await source(NewsApiSource, Scripted(HttpResponse(200, {}, body)), keys={"news_api_key": "k"}).search(
        "quay", limit=5
    )
    assert [hit.snippet for hit in hits] == ["Ships ?", "Ships are back."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", date(2024, 1, 1)),
        ("2024-05", date(2024, 5, 1)),
        ("2024-05-03T10:00:00Z", date(2024, 5, 3)),
        ("20240115T093000Z", date(2024, 1, 15)),
        ("2024-13-01", None),
        ("0000-00-00", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_dates_are_the_first_day_of_what_is_told(text: str | None, expected: date | None) -> None:
    assert parse_iso_date(text) == expected


def test_dates_need_a_year() -> None:
    assert date_from_parts() is date_from_parts(None) is date_from_parts(10**20) is None
    assert date_from_parts(2024, None, 5) == date(2024, 1, 5)


def test_bylines_are_short() -> None:
    assert format_byline(["Ada  Obi", None, " ", "Bo Li"]) == "Ada Obi, Bo Li"
    assert format_byline(["A", "B", "C"]) == "A, B, C"
    assert format_byline(["A", "B", "C", "D"]) == "A, B et al."
    assert format_byline([]) is None


def test_dois_become_addresses() -> None:
    old = "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2"
    assert doi_url(old).endswith("/16%3C1661::AID-SIM968%3E3.0.CO;2-2")
    for given_as in ("10.1/A b", "https://doi.org/10.1/A b", "http://dx.doi.org/10.1/A b", "doi: 10.1/A b"):
        assert doi_url(given_as) == "https://doi.org/10.1/A%20b"


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("p < 0.05 and q > 3", "p < 0.05 and q > 3"),
        ("a <b or c> d", "a <b or c> d"),
        ("&lt;i&gt;E. coli&lt;/i&gt; &amp; us", "E. coli & us"),
        ('<jats:p>See <jats:ext-link xlink:href="https://x.example/">here</jats:ext-link>.</jats:p>', "See here."),
        ("<jats:sec><jats:title>Summary</jats:title><jats:p>One.</jats:p></jats:sec>", "One."),
        ("<p>One.</p><p>Two.</p>", "One.\nTwo."),
        ("Abstract thinking in birds", "Abstract thinking in birds"),
    ],
)
def test_markup_becomes_text(marked: str, text: str) -> None:
    assert strip_markup(marked) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile", [" " * 400_000, "<p " * 100_000, "<p" + " a=" * 100_000, "&lt;" * 100_000, "\n" * 400_000]
)
def test_markup_takes_no_time(hostile: str) -> None:
    def read(size: int) -> None:
        strip_markup(hostile[:size])
        query_keywords(hostile[:size], 9)

    assert growth(read, len(hostile) // 4) < LINEAR


def test_keywords_keep_their_spelling() -> None:
    assert query_keywords("What is the US doing about Köln's low-rank LoRA, and why?", 9) == [
        "US", "Köln's", "low-rank", "LoRA",
    ]  # fmt: skip
    assert query_keywords("WHAT IS THE POINT", 9) == ["POINT"]
    assert query_keywords("to be OR not to be", 9) == ["to", "be", "not"]
    assert query_keywords("?!", 9) == ["?!"]
    assert query_keywords("a1 a2 a1 a3", 2) == ["a1", "a2"]


def test_many_terms_are_alternatives() -> None:
    assert join_terms(["a", "b"], all_of=2) == "a AND b"
    assert join_terms(["a", "b", "c"], all_of=2) == "a OR b OR c"
    assert join_terms(["aaaa", "bbbb", "cccc"], all_of=2, longest=14) == "aaaa AND bbbb"
