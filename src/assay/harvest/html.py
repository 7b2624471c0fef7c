"""The content of an HTML page. Hidden elements go first: instructions to a model are hidden there."""

import re
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from assay.errors import ReadError
from assay.harvest.extracted import Extracted
from assay.harvest.sanitise import clean

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MAX_SIZE = 20_000_000
_TOO_SHORT = 200  # characters; below this trafilatura has usually missed the content, not found a short page

_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])",
    re.IGNORECASE,
)
_INERT = {"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas"}
_AROUND = _INERT | {"nav", "header", "footer", "aside", "form", "button", "select", "head"}
_BLOCKS = {
    "p", "div", "section", "article", "main", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4",
    "h5", "h6", "blockquote", "pre", "br", "hr", "dt", "dd", "figure", "figcaption", "td", "th",
}  # fmt: skip


def extract(html: bytes | str, url: str) -> Extracted:
    """Text and metadata of a page; fetches nothing. Raises ReadError when there is no page in it."""
    if len(html) > _MAX_SIZE:
        raise ReadError("the page is too large", help=f"Pages up to {_MAX_SIZE // 10**6} MB are read.", url=url)
    tree = _parse(html, url)
    _drop(_hidden(tree))
    article = _article(tree, url)
    text = article.text if len(article.text) >= _TOO_SHORT else max(article.text, _body_text(tree), key=len)
    return Extracted(
        text=text,
        title=article.title or _title(tree),
        author=article.author,
        published=article.published,
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


def _hidden(tree: "HtmlElement") -> list["HtmlElement"]:
    return [element for element in tree.iter("*") if element is not tree and _is_hidden(element)]


def _is_hidden(element: "HtmlElement") -> bool:
    # Sites hide the whole body until a script has run; that is not hidden text.
    if element.tag in ("body", "html", "head"):
        return False
    if element.tag in ("script", "style", "template"):
        return bool(element.get("type") != "application/ld+json")  # that one holds the date and the author
    return (
        element.get("hidden") is not None
        or (element.get("aria-hidden") or "").lower() == "true"
        or _HIDDEN_STYLE.search(element.get("style") or "") is not None
    )


def _drop(elements: Iterable["HtmlElement"]) -> None:
    for element in elements:
        if element.getparent() is not None:
            element.drop_tree()


def _article(tree: "HtmlElement", url: str) -> Extracted:
    from lxml import etree
    from trafilatura import bare_extraction
    from trafilatura.settings import Document

    try:
        found = bare_extraction(
            tree,
            url=url if url.startswith("http") else None,
            favor_precision=True,
            include_comments=False,
            include_tables=True,
            with_metadata=True,
            date_extraction_params={"extensive_search": False, "original_date": True},
        )
    except (etree.LxmlError, ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        # trafilatura trips over odd trees in many ways; the plain body text still stands.
        return Extracted("")
    if not isinstance(found, Document):
        return Extracted("")
    return Extracted(
        text=clean(found.text or ""),
        title=_line(found.title),
        author=_line(found.author) or None,
        published=_day(found.date),
    )


def _line(text: str | None) -> str:
    return " ".join(clean(text or "").split())


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat((text or "")[:10])
    except ValueError:
        return None


def _title(tree: "HtmlElement") -> str:
    return _line(tree.findtext(".//title"))


def _body_text(tree: "HtmlElement") -> str:
    """All visible text outside navigation, in reading order; walks without recursion."""
    from lxml import etree

    parts: list[str] = []
    silent = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else "script"
        if tag in _BLOCKS:
            parts.append("\n")
        if tag in _AROUND or not isinstance(element.tag, str):
            silent += 1 if event == "start" else -1
        if not silent:
            parts.append((element.text if event == "start" else element.tail) or "")
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return clean("\n".join(line for line in lines if line))
