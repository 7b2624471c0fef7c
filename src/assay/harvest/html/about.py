"""What a page says about itself: title, author, date, language, address, and its structured data."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from assay.harvest.html.element import text_of
from assay.text.clean import clean

if TYPE_CHECKING:
    from lxml.html import HtmlElement
    from trafilatura.settings import Document

_MOST_DATA = 1_000_000  # characters of structured data that are read
_MOST_OBJECTS = 2_000
_ARTICLE = re.compile(r"Article|Posting|Report|Review$")
_TAG = re.compile(r"<[^<>]*>")
_SEPARATOR = re.compile(r"\s+[|\u2013—·»:•-]+\s+|\s*\|\s*")
_FIRST_YEAR = 1990
_BESIDE = re.compile(
    r"(?:^|\s)(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|June|July|August|"
    r"September|October|November|December)$"
)
_NOBODY = re.compile(r"admin|administrator|editor|staff|webmaster|root|user", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class About:
    """`titles` are all names the page goes by; `body` is the article as its structured data give it."""

    title: str = ""
    titles: tuple[str, ...] = ()
    author: str | None = None
    published: date | None = None
    language: str | None = None
    body: str = ""


def about(tree: "HtmlElement", url: str) -> About:
    found = _metadata(tree, url)
    articles = [item for item in structured(tree) if _ARTICLE.search(str(item.get("@type")))]
    site = _line(found.sitename) or None
    headings = [text_of(heading) for heading in islice(tree.iter("h1"), 5)]
    only = headings[0] if len(headings) == 1 else ""
    named = [_meta(tree, "og:title"), only, _line(tree.findtext(".//title")), _line(found.title), *headings]
    title = next(filter(None, named), "")
    titles = tuple(dict.fromkeys(name for full in named for name in (full, _bare(full, site, url)) if name))
    return About(
        title=_bare(title, site, url),
        titles=titles,
        author=_author(found.author),
        published=_published(tree, articles) or _day(found.date),
        language=_language(tree),
        body=max((_plain(item.get("articleBody")) for item in articles), key=len, default=""),
    )


def structured(tree: "HtmlElement") -> Iterator[dict[str, Any]]:
    """Every object of the page's JSON-LD, outer ones first; what cannot be read is passed over."""
    waiting: list[Any] = []
    size = 0
    for script in tree.iter("script"):
        text = script.text or ""
        if script.get("type") != "application/ld+json" or (size := size + len(text)) > _MOST_DATA:
            continue
        try:
            waiting.append(json.loads(text, strict=False))
        except (ValueError, RecursionError):
            continue
    for _ in range(_MOST_OBJECTS):
        if not waiting:
            return
        item = waiting.pop(0)
        if isinstance(item, dict):
            yield item
        inner = item.values() if isinstance(item, dict) else item
        waiting += [value for value in inner if isinstance(value, dict | list)]


def _metadata(tree: "HtmlElement", url: str) -> "Document":
    from lxml import etree
    from trafilatura import extract_metadata
    from trafilatura.settings import Document

    try:
        return extract_metadata(
            tree,
            default_url=url if url.startswith("http") else None,
            date_config={"extensive_search": False, "original_date": True},
        )
    except (etree.LxmlError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError,
            AssertionError):  # fmt: skip
        return Document()  # it trips over odd trees in many ways; the page still has a text


def _meta(tree: "HtmlElement", name: str) -> str:
    for element in tree.iter("meta"):
        if name in (element.get("property"), element.get("name"), element.get("http-equiv")):
            return _line(element.get("content"))
    return ""


def _line(text: str | None) -> str:
    return " ".join(clean(text or "").split())


def _author(names: str | None) -> str | None:
    """Bylines run into the date beside them, and content managers sign for nobody."""
    found = (_BESIDE.sub("", name.strip()) for name in _line(names).split(";"))
    return "; ".join(name for name in found if name and not _NOBODY.fullmatch(name)) or None


def _plain(body: Any) -> str:
    """Structured data hold markup, escaped or not."""
    return _line(_TAG.sub(" ", html.unescape(body))) if isinstance(body, str) else ""


def _bare(title: str, site: str | None, url: str) -> str:
    """A title without the name of the site at its end or beginning."""
    parts = list(_SEPARATOR.finditer(title))
    names = {_key(site or ""), *(_key(label) for label in (urlsplit(url).hostname or "").split(".")), _key(_host(url))}
    if parts and _key(title[parts[-1].end() :]) in names:
        return title[: parts[-1].start()]
    if parts and _key(title[: parts[0].start()]) in names:
        return title[parts[0].end() :]
    return title


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _published(tree: "HtmlElement", articles: list[dict[str, Any]]) -> date | None:
    """The date of the only article in the structured data, else of the header."""
    days = {day for item in articles if (day := _day(item.get("datePublished")))}
    return days.pop() if len(days) == 1 else _day(_meta(tree, "article:published_time"))


def _day(text: Any) -> date | None:
    try:
        day = date.fromisoformat(str(text)[:10])
    except ValueError:
        return None
    return day if day.year >= _FIRST_YEAR and day <= (datetime.now(UTC) + timedelta(days=1)).date() else None


def _language(tree: "HtmlElement") -> str | None:
    root = tree if tree.tag == "html" else tree.find(".//html")
    said = (root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")) if root is not None else None
    for text in (said, _meta(tree, "content-language"), _meta(tree, "og:locale")):
        if match := re.match(r"[a-z]{2,3}(?![a-z])", (text or "").strip().lower()):
            return match[0]
    return None


def _host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return re.sub(r"^(?:www|m|mobile|amp)\.", "", host)
