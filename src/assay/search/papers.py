"""What catalogues of papers share: how far they look back, and what their entries become."""

from collections.abc import Iterable
from datetime import date

from assay.model.inquiry import Found, Inquiry
from assay.search.api import ApiSource, shortened
from assay.search.entries import byline, today

SNIPPET = 300  # characters of an abstract


class PaperSource(ApiSource):
    types = ("academic",)
    kind = "academic"

    def since(self, inquiry: Inquiry) -> date | None:
        """In whole years, since of many papers no more is known."""
        years = self.settings.academic_years
        return inquiry.since or (date(today().year - years, 1, 1) if years else None)


def paper(
    *,
    url: str,
    title: str,
    abstract: str = "",
    published: date | None = None,
    authors: Iterable[str | None] = (),
    free: str | None = None,
) -> Found:
    """The abstract can be read by itself; `free` is where the whole paper can."""
    return Found(
        url=url,
        title=title,
        snippet=shortened(abstract, SNIPPET),
        published=published,
        author=byline(authors),
        text=abstract,
        fulltext=free if free and free != url else None,
    )
