"""What stands around an article or is strewn into it: cards, lists of links, "read more", sign-up lines.

Two passes: over the tree, where links can be told from text, before the article is looked for; then over its lines.
Each rule is given with what F1 loses without it on 181 news and blog pages (all rules: .983).
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeGuard

from assay.harvest.html.element import HEADINGS, drop, length, linked, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_EMPTY = ("div", "span", "p", "a", "b", "strong", "em", "i", "u", "section", "output", "ins", "font")
_LARGEST_CARD = 600  # characters; a longer link was left unclosed
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")


def strip(tree: "HtmlElement") -> None:
    """Takes cards and lists of links out, and makes quotes and headings look like the text they are."""
    # trafilatura drops the text after an empty element with it (.0005)
    drop(element for element in list(tree.iter(*_EMPTY)) if not len(element) and not (element.text or "").strip())
    drop(link for link in list(tree.iter("a")) if _is_card(link))
    for quote in list(tree.iter("blockquote")):
        _open_quote(quote)
    for heading in list(tree.iter("h2", "h3", "h4")):
        if heading.find(".//a") is not None and _heads_text(heading):
            _unlink(heading)
    drop(element for element in list(tree.iter("ul", "ol", "p")) if _is_link_list(element))


def _is_card(link: "HtmlElement") -> bool:
    """A link around a heading or a paragraph shows another page (.0007)."""
    if not link.get("href") or length(link) > _LARGEST_CARD:
        return False
    return any(length(block) for block in link.iter(*HEADINGS[1:], "p", "div", "article"))


def _is_link_list(element: "HtmlElement") -> bool:
    """Two links and more with hardly a word beside them, and no sentence (.0003 in lists, .0007 in paragraphs)."""
    links = len(element.findall(".//a"))
    if links < 2 or (element.tag != "p" and element.find("li") is None):
        return False
    text = text_of(element)
    if element.tag != "p":
        return linked(element) > 0.9 * len(text)
    return linked(element) > 0.7 * len(text) and not _SENTENCE_END.search(text)


def _open_quote(quote: "HtmlElement") -> None:
    """An embedded post is quoted text, whatever its box is called and however many links it has (.0013)."""
    _unlink(quote)
    for element in (quote, *quote.iter("p")):
        _unname(element)
    size, box = length(quote), quote.getparent()
    while _is_box(box) and length(box) < 1.3 * size + 20:
        _unname(box)
        box.tag = "div"
        box = box.getparent()


def _is_box(element: "HtmlElement | None") -> "TypeGuard[HtmlElement]":
    return element is not None and element.tag in ("div", "figure", "section") and len(element) <= 4


def _unname(element: "HtmlElement") -> None:
    element.attrib.pop("class", None)
    element.attrib.pop("id", None)


def _unlink(element: "HtmlElement") -> None:
    for link in list(element.iter("a")):
        if link is not element and link.getparent() is not None:
            link.drop_tag()


def _heads_text(heading: "HtmlElement") -> bool:
    """A linked heading above a paragraph belongs to it; above another heading it is a teaser (.0001)."""
    following = next((element for element in islice(heading.itersiblings(), 5) if length(element)), None)
    if following is None or following.tag in HEADINGS:
        return False
    size = length(following)
    return size >= 60 and linked(following) < 0.5 * size


# Lines -----------------------------------------------------------------------------------------------

_RELATED = re.compile(
    r"\W*(?:related\b(?! to)|read more|read also|also read|also on \w|see also|see more|more on\b|more from|more:|"
    r"don.t miss|watch:|watch more|read next|recommended|you m(?:ay|ight) also|most read|click here to|"
    r"leia (?:mais|tamb)|veja (?:mais|tamb)|lee tamb|lire aussi|leggi anche|mehr zum thema|lesen sie)",
    re.IGNORECASE,
)
_INVITATION = re.compile(
    r"\b(?:newsletters?|subscribe|sign up|inbox)\b|\bfollow\b.{,60}\b(?:on|twitter|facebook|instagram)\b|"
    r"^(?:copyright|©|\(c\))|all rights reserved|have a tip|^share\b|^like this|share it with|^\d* ?comments?$|"
    r"^(?:filed under|tags?|topics|posted in|categories|updated)\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{1,2}:\d{2}|\b(?:19|20)\d{2}\b|\d{1,2}[./-]\d{1,2}[./-]\d{2}")


def trim(text: str, titles: Sequence[str]) -> str:
    """The lines of an article without its title, dateline, pointers to other pages and closing invitations."""
    lines = [line for line in text.split("\n") if not _points_elsewhere(line)]
    lines = _without_title(lines, {key for title in titles if len(key := _key(title)) > 8})
    while len(lines) > 1 and _is_dateline(lines[0]):
        lines.pop(0)
    for _ in range(4):
        if len(lines) > 3 and len(lines[-1]) < 250 and _INVITATION.search(lines[-1]):  # (.0006)
            lines.pop()
    return "\n".join(lines)


def _points_elsewhere(line: str) -> bool:
    """(.0014)"""
    if len(line) >= 160 or not _RELATED.match(line):
        return False
    return ":" in line[:25] or _SENTENCE_END.search(line) is None


def _without_title(lines: list[str], titles: set[str]) -> list[str]:
    """The title has a field of its own (.0028)."""
    for number, line in enumerate(lines[:4]):
        if _is_title(_key(line), titles):
            return lines[:number] + lines[number + 1 :]
        if len(line) > 100:
            break
    return lines


def _is_title(line: str, titles: set[str]) -> bool:
    return any(
        line == title or (len(line) > 20 and (line in title or (title in line and len(line) < 1.3 * len(title))))
        for title in titles
    )


def _is_dateline(line: str) -> bool:
    """(.0004)"""
    return len(line) < 80 and (not line or (_DATE.search(line) is not None and not _SENTENCE_END.search(line)))


def _key(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()
