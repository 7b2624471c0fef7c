"""arXiv: preprints, as an Atom feed. https://info.arxiv.org/help/api/user-manual.html"""

import re
from collections.abc import Sequence
from datetime import date

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import PaperSource, ProviderRequest, make_paper
from openassay.search.fields import join_terms, parse_iso_date, query_keywords, today

ATOM = {"atom": "http://www.w3.org/2005/Atom"}
FIRST_DAY = date(1991, 1, 1)
_VERSION = re.compile(r"(?<=\d)v\d+\Z")


class ArxivSource(PaperSource):
    name = "arxiv"
    endpoint = "https://export.arxiv.org/api/query"
    # Its terms of use: one request every three seconds, one connection at a time.
    own_terms = ProviderTerms(per_minute=20, at_once=1)

    def build_request(self, search: SearchRequest) -> ProviderRequest:
        terms = []
        for word in query_keywords(search.query, 10):
            parts = re.findall(r"[^\W_]+", word)  # a compound is a phrase of its parts
            terms.append(f'all:"{" ".join(parts)}"' if len(parts) > 1 else f"all:{word}")
        query = join_terms(terms, all_of=4)
        since = self.since(search)
        if since or search.until:
            first, last = since or FIRST_DAY, search.until or today()
            query = f"({query}) AND submittedDate:[{first:%Y%m%d}0000 TO {last:%Y%m%d}2359]"
        return ProviderRequest(
            params={
                "search_query": query,
                "max_results": search.limit,
                "sortBy": "relevance",
                "sortOrder": "descending",
            }
        )

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        from lxml import etree

        if "<!DOCTYPE" in body.upper():
            raise ValueError("a feed has no document type")
        # Without entities, document types or network access.
        parser = etree.XMLParser(
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
        )
        try:
            root = etree.fromstring(body.encode(), parser)
        except etree.XMLSyntaxError as error:
            raise ValueError("it is no XML") from error
        if root.tag != f"{{{ATOM['atom']}}}feed":
            raise ValueError("it is no feed")
        entries, papers = root.findall("atom:entry", ATOM), []
        for entry in entries:
            # On one line: titles and summaries are broken where the submitter's editor did.
            id, title, summary, published = (
                " ".join((entry.findtext(f"atom:{name}", namespaces=ATOM) or "").split())
                for name in ("id", "title", "summary", "published")
            )
            if "/api/errors" in id:
                raise SourceError("arxiv rejected the query", help="Word it differently.", provider="arxiv")
            links = [link.get("href") for link in entry.findall("atom:link", ATOM) if link.get("title") == "pdf"]
            if id and title:
                paper = make_paper(
                    url=_VERSION.sub("", _to_https(id)),  # the newest version, which other catalogues give too
                    title=title,
                    abstract=summary,
                    published=parse_iso_date(published),
                    authors=[author.text for author in entry.findall("atom:author/atom:name", ATOM)],
                    free=_to_https(links[0]) if links and links[0] else None,
                )
                papers.append(paper)
        if entries and not papers:
            raise ValueError("no entry is as documented")
        return papers


def _to_https(url: str) -> str:
    return f"https://{url.removeprefix('http://')}" if url.startswith("http://arxiv.org/") else url
