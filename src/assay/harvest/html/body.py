"""The text of a whole page, for where no article is found in it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from assay.text.clean import clean

if TYPE_CHECKING:
    from lxml.html import HtmlElement

INERT = {"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "head"}
AROUND = INERT | {"nav", "header", "footer", "aside", "form", "button", "select"}
_BLOCKS = {
    "p", "div", "section", "article", "main", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4",
    "h5", "h6", "blockquote", "pre", "br", "hr", "dt", "dd", "figure", "figcaption", "td", "th",
}  # fmt: skip


def body_text(tree: "HtmlElement", *, without: Collection[str] = AROUND) -> str:
    """All text outside the elements named, in reading order; walks without recursion."""
    from lxml import etree

    parts: list[str] = []
    silent = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else "script"
        if tag in _BLOCKS:
            parts.append("\n")
        if tag in without:
            silent += 1 if event == "start" else -1
        if not silent:
            parts.append((element.text if event == "start" else element.tail) or "")
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return clean("\n".join(line for line in lines if line))
