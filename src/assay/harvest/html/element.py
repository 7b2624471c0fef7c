"""The text of an element of a page, and how much of it is links."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def text_of(element: "HtmlElement") -> str:
    return " ".join("".join(element.itertext()).split())


def length(element: "HtmlElement") -> int:
    return len(text_of(element))


def linked(element: "HtmlElement") -> int:
    """Characters that are the text of links; old pages put unclosed anchors without an address around their text."""
    return sum(length(link) for link in element.iter("a") if link.get("href"))


def mark(element: "HtmlElement") -> str:
    """What the page's author calls the element."""
    return f"{element.get('class') or ''} {element.get('id') or ''}"


def drop(elements: Iterable["HtmlElement"]) -> None:
    """Takes elements out; the text that follows them stays."""
    for element in elements:
        if element.getparent() is not None:
            element.drop_tree()
