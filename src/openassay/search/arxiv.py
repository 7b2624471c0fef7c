"""arXiv: preprints, as an Atom feed."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    PaperSource,
    ProviderEntry,
    ProviderRequest,
    join_terms,
    make_paper,
    parse_entries,
    parse_iso_date,
    query_keywords,
    today,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

ATOM = {"atom": "http://www.w3.org/2005/Atom"}
FIRST_DAY = date(1991, 1, 1)
_VERSION = re.compile(r"(?<=\d)v\d+\Z")


class ArxivPreprint(ProviderEntry):
    id: str
    title: str
    summary: str = ""
    published: str | None = None
    authors: tuple[str, ...] = ()
    pdf: str | None = None


class ArxivSource(PaperSource):
    name = "arxiv"
    endpoint = "https://export.arxiv.org/api/query"
    # Its terms of use: one request every three seconds, one connection at a time.
    own_terms = ProviderTerms(per_minute=20, at_once=1)

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        query = join_terms([_search_term(word) for word in query_keywords(inquiry.query, 10)], all_of=4)
        since = self.since(inquiry)
        if since or inquiry.until:
            first, last = since or FIRST_DAY, inquiry.until or today()
            query = f"({query}) AND submittedDate:[{first:%Y%m%d}0000 TO {last:%Y%m%d}2359]"
        params: dict[str, str | int] = {
            "search_query": query,
            "max_results": inquiry.limit,
            "sortBy": "relevance",
            "sortOrder": "descending",
        }
        return ProviderRequest(params=params)

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return [_to_result(entry) for entry in parse_entries(ArxivPreprint, list(_read_entries(_parse_feed(body))))]


def _search_term(word: str) -> str:
    """In any field; a compound is a phrase of its parts."""
    parts = re.findall(r"[^\W_]+", word)
    return f'all:"{" ".join(parts)}"' if len(parts) > 1 else f"all:{word}"


def _parse_feed(body: str) -> "_Element":
    """The feed, read without anything that XML can be made to do."""
    from lxml import etree

    if "<!DOCTYPE" in body.upper():
        raise ValueError("a feed has no document type")
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        root = etree.fromstring(body.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise ValueError("it is no XML") from error
    if root.tag != f"{{{ATOM['atom']}}}feed":
        raise ValueError("it is no feed")
    return root


def _read_entries(feed: "_Element") -> Iterator[dict[str, object]]:
    for entry in feed.findall("atom:entry", ATOM):
        told = {name: _entry_text(entry, name) for name in ("id", "title", "summary", "published")}
        if "/api/errors" in told["id"]:
            raise SourceError("arxiv did not understand the question", help="Word it differently.", provider="arxiv")
        authors = [name.text or "" for name in entry.findall("atom:author/atom:name", ATOM)]
        links = [link.get("href") for link in entry.findall("atom:link", ATOM) if link.get("title") == "pdf"]
        yield {name: text for name, text in told.items() if text} | {"authors": authors, "pdf": next(iter(links), None)}


def _entry_text(entry: "_Element", name: str) -> str:
    """Of an element, on one line: titles and summaries are broken where the submitter's editor did."""
    return " ".join((entry.findtext(f"atom:{name}", namespaces=ATOM) or "").split())


def _to_result(entry: ArxivPreprint) -> ProviderResult:
    """Addresses are those of the newest version, which other catalogues give too."""
    return make_paper(
        url=_VERSION.sub("", _to_https(entry.id)),
        title=entry.title,
        abstract=entry.summary,
        published=parse_iso_date(entry.published),
        authors=entry.authors,
        free=entry.pdf and _to_https(entry.pdf),
    )


def _to_https(url: str) -> str:
    return f"https://{url.removeprefix('http://')}" if url.startswith("http://arxiv.org/") else url
