"""arXiv's Atom feed, as info.arxiv.org/help/api/user-manual.html describes it."""

import re
from collections.abc import Sequence
from datetime import date
from xml.sax.saxutils import escape, quoteattr

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked
from assay.testing.search_formats.papers import Catalogue, number, param
from assay.testing.wire import Request

_DATES = re.compile(r"\((.*)\) AND submittedDate:\[(\d{8})\d{4} TO (\d{8})\d{4}\]")


class Arxiv(Catalogue):
    name = "arxiv"
    builds = "assay.search.arxiv:Arxiv"
    filters = frozenset({"since", "until"})
    most = 2000
    content_type = "application/atom+xml; charset=UTF-8"

    def asked(self, request: Request) -> Asked:
        query, since, until = param(request, "search_query"), None, None
        if dates := _DATES.fullmatch(query):
            query = dates[1]
            since, until = (date.fromisoformat(day) for day in dates.group(2, 3))
        words = re.sub(r'\ball:|"', "", re.sub(r" (?:AND|OR) ", " ", query))
        return Asked(query=words, limit=number(request, "max_results"), since=since, until=until)

    def answer(self, request: Request, found: Sequence[Found]) -> str:
        return feed([_entry(result) for result in found])

    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        return feed(["<entry><updated>2024-01-01T00:00:00Z</updated></entry>", *map(_entry, found)])

    def misshapen(self) -> str:
        return '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>Elsewhere</body></html>'


def feed(entries: Sequence[str]) -> str:
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


def _entry(found: Found) -> str:
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


FORMAT = Arxiv()
