"""The content of an HTML page. Hidden elements go first: instructions to a model are hidden there."""

from typing import TYPE_CHECKING

from assay.errors import ReadError
from assay.harvest.extracted import Extracted
from assay.harvest.html.about import about
from assay.harvest.html.around import strip, trim
from assay.harvest.html.article import article
from assay.harvest.html.body import body_text
from assay.harvest.html.hidden import drop_hidden
from assay.harvest.html.wants import ENOUGH, wants
from assay.text.clean import clean

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MAX_SIZE = 20_000_000
_TOO_SHORT = 200  # characters; below this the article has usually been missed, and the whole body is taken
_STRUCTURED = 1_000  # characters of structured data that stand in for an article the page shows only to scripts
_MAX_ELEMENTS = 40_000  # the search for the article takes 0.1 ms an element; larger pages are read as they stand


def extract(html: bytes | str, url: str) -> Extracted:
    """Text and metadata of a page; fetches nothing. Raises ReadError when there is no page in it."""
    if len(html) > _MAX_SIZE:
        raise ReadError("the page is too large", help=f"Pages up to {_MAX_SIZE // 10**6} MB are read.", url=url)
    tree = _parse(html, url)
    drop_hidden(tree)
    if sum(1 for _ in tree.iter()) > _MAX_ELEMENTS:
        return _huge(tree)
    page = about(tree, url)
    strip(tree)
    text = trim(article(tree, url, page.body), page.titles)
    notes: tuple[str, ...] = ()
    if len(text) < _TOO_SHORT:
        text = max(text, _whole(html, url), key=len)
    if len(text) < _TOO_SHORT and len(page.body) >= _STRUCTURED:
        text, notes = page.body, ("the text is from the page's structured data; the page itself shows it by script",)
    return Extracted(
        text=text,
        title=page.title,
        author=page.author,
        published=page.published,
        notes=notes,
        language=page.language,
        wants=wants(_parse(html, url), text) if len(text) < ENOUGH else None,
    )


def _parse(html: bytes | str, url: str) -> "HtmlElement":
    from lxml import etree
    from trafilatura import load_html

    try:
        tree = load_html(html)
    except (etree.LxmlError, ValueError, RecursionError, AssertionError) as error:
        raise ReadError("not a readable HTML page", help="Check that it is HTML.", url=url) from error
    if tree is None:
        raise ReadError("not an HTML page", help="Check that it is HTML and not empty.", url=url)
    return tree


def _huge(tree: "HtmlElement") -> Extracted:
    title = " ".join(clean(tree.findtext(".//title") or "").split())
    return Extracted(body_text(tree), title=title, notes=("too long to tell its content from what stands around it",))


def _whole(html: bytes | str, url: str) -> str:
    """The body of the page as it was before anything but hidden text was taken out."""
    tree = _parse(html, url)
    drop_hidden(tree)
    return body_text(tree)
