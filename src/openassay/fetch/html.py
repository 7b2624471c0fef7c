"""Extracts the article of an HTML page, what the page says about itself, and what it needs when it shows nothing."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from openassay.errors import ReadError
from openassay.fetch.formats import Extraction, PageNeed, parse_day
from openassay.fetch.html_tables import rewrite_tables, strip_pipes
from openassay.fetch.html_tree import (
    HEADINGS,
    INERT,
    body_text,
    class_and_id,
    drop_elements,
    drop_invisible,
    link_length,
    text_length,
    text_of,
)
from openassay.fetch.table_notes import add_company, find_company, find_filer
from openassay.text.words import clean_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement


_MAX_DATA = 1_000_000  # characters of structured data that are read
_MAX_OBJECTS = 2_000
_ARTICLE_TYPE = re.compile(r"Article|Posting|Report|Review$")
_TAG = re.compile(r"<[^<>]*>")
_SEPARATOR = re.compile(r"\s+[|\u2013—·»:•-]+\s+|\s*\|\s*")
_FIRST_YEAR = 1990
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_BESIDE = re.compile(
    r"(?:^|\s)(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|June|July|August|"
    r"September|October|November|December)$"
)
_NOBODY = re.compile(r"admin|administrator|editor|staff|webmaster|root|user", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """What a page says about itself: all its `titles`, and the article as its structured data give it (`body`)."""

    title: str = ""
    titles: tuple[str, ...] = ()
    author: str | None = None
    published: date | None = None
    publisher: str | None = None
    language: str | None = None
    body: str = ""


def read_metadata(tree: "HtmlElement", url: str) -> PageMetadata:
    from lxml import etree
    from trafilatura import extract_metadata
    from trafilatura.settings import Document

    web_url = url if url.startswith("http") else None
    dates = {"extensive_search": False, "original_date": True}
    try:
        found = extract_metadata(tree, default_url=web_url, date_config=dates)
    except (etree.LxmlError, *_TRAFILATURA_ERRORS):
        found = Document()
    articles = [item for item in iter_json_ld(tree) if _ARTICLE_TYPE.search(str(item.get("@type")))]
    site = _to_line(found.sitename) or None
    headings = [text_of(heading) for heading in islice(tree.iter("h1"), 5)]
    only = headings[0] if len(headings) == 1 else ""
    in_head = [_meta_content(tree, "og:title"), only, _to_line(tree.findtext(".//title")), _to_line(found.title)]
    candidates = [*in_head, *headings]
    title = next(filter(None, candidates), "")
    titles = [name for full in candidates for name in (full, _strip_site_name(full, site, url)) if name]
    bodies = [text for item in articles if isinstance(text := item.get("articleBody"), str)]
    # Bylines run into the date beside them, and content managers sign for nobody.
    authors = [_BESIDE.sub("", name.strip()) for name in _to_line(found.author).split(";")]
    days = {day for item in articles if (day := _parse_day(item.get("datePublished")))}
    day = days.pop() if len(days) == 1 else _parse_day(_meta_content(tree, "article:published_time"))
    root = tree if tree.tag == "html" else tree.find(".//html")
    declared = (root.get("lang") or root.get(_XML_LANG)) if root is not None else None
    locales = (declared, _meta_content(tree, "content-language"), _meta_content(tree, "og:locale"))
    languages = (re.match(r"[a-z]{2,3}(?![a-z])", (text or "").strip().lower()) for text in locales)
    return PageMetadata(
        title=_strip_site_name(title, site, url),
        titles=tuple(dict.fromkeys(titles)),
        author="; ".join(name for name in authors if name and not _NOBODY.fullmatch(name)) or None,
        published=day or _parse_day(found.date),
        publisher=site,
        language=next((match[0] for match in languages if match), None),
        # Structured data hold markup, escaped or not.
        body=max((_to_line(_TAG.sub(" ", html.unescape(text))) for text in bodies), key=len, default=""),
    )


def iter_json_ld(tree: "HtmlElement") -> Iterator[dict[str, Any]]:
    """Yield every object of the page's JSON-LD, outer ones first; what cannot be read is skipped."""
    waiting: list[Any] = []
    size = 0
    for script in tree.iter("script"):
        text = script.text or ""
        if script.get("type") != "application/ld+json" or (size := size + len(text)) > _MAX_DATA:
            continue
        try:
            waiting.append(json.loads(text, strict=False))
        except (ValueError, RecursionError):
            continue
    for _ in range(_MAX_OBJECTS):
        if not waiting:
            return
        item = waiting.pop(0)
        if isinstance(item, dict):
            yield item
        inner = item.values() if isinstance(item, dict) else item
        waiting += [value for value in inner if isinstance(value, dict | list)]


def _meta_content(tree: "HtmlElement", name: str) -> str:
    for element in tree.iter("meta"):
        if name in (element.get("property"), element.get("name"), element.get("http-equiv")):
            return _to_line(element.get("content"))
    return ""


def _to_line(text: str | None) -> str:
    return " ".join(clean_text(text or "").split())


def _strip_site_name(title: str, site: str | None, url: str) -> str:
    """Remove the name of the site at the end or beginning of a title."""
    parts = list(_SEPARATOR.finditer(title))
    host = urlsplit(url).hostname or ""
    bare_host = re.sub(r"^(?:www|m|mobile|amp)\.", "", host)
    names = {_site_key(name) for name in (site or "", *host.split("."), bare_host)}
    if parts and _site_key(title[parts[-1].end() :]) in names:
        return title[: parts[-1].start()]
    if parts and _site_key(title[: parts[0].start()]) in names:
        return title[parts[0].end() :]
    return title


def _site_key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _parse_day(text: Any) -> date | None:
    """Parse a date; one that is too old for a page, or in the future, is None."""
    day = parse_day(str(text))
    if day is None or day.year < _FIRST_YEAR or day > (datetime.now(UTC) + timedelta(days=1)).date():
        return None
    return day


# What stands around an article or inside it: cards, lists of links, "read more", sign-up lines.
# Two passes: over the tree, where links can be told from text, before the article is searched for; then over its lines.
# Each rule is given with what F1 loses without it on 181 news and blog pages (all rules: .983).

_EMPTY_TAGS = ("div", "span", "p", "a", "b", "strong", "em", "i", "u", "section", "output", "ins", "font")
_QUOTE_BOXES = ("div", "figure", "section")
_MAX_CARD = 600  # characters; a longer link was left unclosed
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")


def strip_surroundings(tree: "HtmlElement") -> None:
    """Drop cards and lists of links, and make quotations and headings look like the text they are."""
    # trafilatura drops the text after an empty element with it (.0005)
    drop_elements(
        element for element in list(tree.iter(*_EMPTY_TAGS)) if not len(element) and not (element.text or "").strip()
    )
    # A link around a heading or a paragraph shows another page (.0007)
    drop_elements(
        link
        for link in list(tree.iter("a"))
        if link.get("href")
        and text_length(link) <= _MAX_CARD
        and any(text_length(block) for block in link.iter(*HEADINGS[1:], "p", "div", "article"))
    )
    # An embedded post stays as text, whatever its box is called and however many links it has (.0013)
    for quote in list(tree.iter("blockquote")):
        _unwrap_links(quote)
        for element in (quote, *quote.iter("p")):
            _drop_class_and_id(element)
        most, box = 1.3 * text_length(quote) + 20, quote.getparent()
        while box is not None and box.tag in _QUOTE_BOXES and len(box) <= 4 and text_length(box) < most:
            _drop_class_and_id(box)
            box.tag = "div"
            box = box.getparent()
    # A linked heading belongs to the text below it; above another heading it is a teaser (.0001)
    for heading in list(tree.iter("h2", "h3", "h4")):
        if heading.find(".//a") is None:
            continue
        following = next((element for element in islice(heading.itersiblings(), 5) if text_length(element)), None)
        if following is not None and following.tag not in HEADINGS:
            size = text_length(following)
            if size >= 60 and link_length(following) < 0.5 * size:
                _unwrap_links(heading)
    drop_elements(element for element in list(tree.iter("ul", "ol", "p")) if _is_link_list(element))


def _is_link_list(element: "HtmlElement") -> bool:
    """Tell whether there are two links or more, hardly a word beside them, and no sentence.

    (.0003 in lists, .0007 in paragraphs)"""
    links = len(element.findall(".//a"))
    if links < 2 or (element.tag != "p" and element.find("li") is None):
        return False
    text = text_of(element)
    if element.tag != "p":
        return link_length(element) > 0.9 * len(text)
    return link_length(element) > 0.7 * len(text) and not _SENTENCE_END.search(text)


def _drop_class_and_id(element: "HtmlElement") -> None:
    element.attrib.pop("class", None)
    element.attrib.pop("id", None)


def _unwrap_links(element: "HtmlElement") -> None:
    for link in list(element.iter("a")):
        if link is not element and link.getparent() is not None:
            link.drop_tag()


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


def trim_lines(text: str, titles: Sequence[str]) -> str:
    """Drop the title, dateline, pointers to other pages and closing invitations from the lines of an article."""
    lines = [
        line  # all but pointers to other pages (.0014)
        for line in text.split("\n")
        if len(line) >= 160 or not _RELATED.match(line) or (":" not in line[:25] and _SENTENCE_END.search(line))
    ]
    # The title has a field of its own (.0028)
    known = {key for title in titles if len(key := _title_key(title)) > 8}
    for number, line in enumerate(lines[:4]):
        key = _title_key(line)
        if any(
            key == title or (len(key) > 20 and (key in title or (title in key and len(key) < 1.3 * len(title))))
            for title in known
        ):
            del lines[number]
            break
        if len(line) > 100:
            break
    # Empty lines and dates at the beginning (.0004)
    while (
        len(lines) > 1
        and len(lines[0]) < 80
        and (not lines[0] or (_DATE.search(lines[0]) and not _SENTENCE_END.search(lines[0])))
    ):
        lines.pop(0)
    for _ in range(4):
        if len(lines) > 3 and len(lines[-1]) < 250 and _INVITATION.search(lines[-1]):  # (.0006)
            lines.pop()
    return "\n".join(lines)


def _title_key(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


# The article of a page: trafilatura's quick pass, checked against where the page keeps its paragraphs.
#
# The quick pass takes half the time of the whole chain and, with what stands around an article dropped first, differs
# from it on few pages. It loses most where it takes one of several containers for the whole (8 of 16 paragraphs of a
# magazine's story) or a notice for the article. Both show when its text is compared with the one element that holds
# most of the page's paragraphs: .983 with this check, .975 without.

# Trafilatura fails on odd trees in many ways; the page still has a text.
_TRAFILATURA_ERRORS = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    AssertionError,
)
_SHORT_ARTICLE = 250  # characters; below this the quick pass has usually missed the content, not found a short page
_NOTICE = 400  # a text as short as this may stand outside the article altogether
_CONFIRMING = 1_000  # characters of structured data that make it the article and not its summary
_REGION_SHARE = 0.7  # of the page's paragraphs, by characters

_AROUND = {"nav", "header", "footer", "aside", "form", "button", "select", "script", "style", "noscript", "figcaption"}
_ASIDE = re.compile(
    r"comment|disqus|repl(?:y|ies)\b|related|sidebar|footer|promo|newsletter|cookie|consent|modal", re.IGNORECASE
)


def extract_article(tree: "HtmlElement", url: str, structured: str = "") -> str:
    """Extract the text of the article; `structured` is its body in the page's structured data."""
    text = _main_text(tree, url, fast=True)
    if len(structured) >= _CONFIRMING:
        theirs, ours = _shingles(structured), _shingles(text)
        if len(theirs & ours) > 0.8 * len(theirs):
            return text
    region = _find_region(tree)
    if region is not None and region.is_missing_from(text):
        nested = {*_AROUND, "p", "li", "blockquote"}
        found = (
            text_of(element)
            for element in region.element.iter("p", "li", "blockquote", "pre", "h2", "h3", "h4")
            if not any(around.tag in nested for around in element.iterancestors())
            and link_length(element) < 0.5 * text_length(element)
        )
        text = clean_text("\n".join(line for line in found if line))
    if len(text) < _SHORT_ARTICLE:
        text = max(text, _main_text(tree, url, fast=False), key=len)
    return text


def _main_text(tree: "HtmlElement", url: str, *, fast: bool) -> str:
    from lxml import etree
    from trafilatura import bare_extraction
    from trafilatura.settings import Document

    try:
        found = bare_extraction(
            tree,
            url=url if url.startswith("http") else None,
            fast=fast,
            favor_precision=True,
            include_comments=False,
            include_tables=True,
        )
    except (etree.LxmlError, *_TRAFILATURA_ERRORS):
        return ""
    return clean_text(strip_pipes(found.text or "")) if isinstance(found, Document) else ""


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return set(zip(words, words[1:], words[2:], words[3:], strict=False))


class ArticleRegion(NamedTuple):
    """The smallest element with most of the page's paragraphs."""

    element: "HtmlElement"
    paragraphs: list[str]

    def is_missing_from(self, text: str) -> bool:
        """Tell whether this region is one article, of which the text lacks much."""
        size = sum(map(len, self.paragraphs))
        is_one = all(len(list(self.element.iter(tag))) < 2 for tag in ("h1", "article"))
        if size <= 1.3 * len(text) or self.element.tag in ("body", "html") or not is_one:
            return False
        key = _text_key(text)
        covered = sum(len(paragraph) for paragraph in self.paragraphs if _text_key(paragraph[:80]) in key)
        return len(text) < _NOTICE or covered > 0.6 * len(text)


def _find_region(tree: "HtmlElement") -> ArticleRegion | None:
    paragraphs = []
    known: dict[HtmlElement, bool] = {}  # whether an element, or one around it, is no content by its name
    for element in tree.iter("p"):
        text = text_of(element)
        if len(text) < 80 or link_length(element) >= 0.5 * len(text):
            continue
        passed, is_aside = [], False
        for around in (element, *element.iterancestors()):
            if around in known:
                is_aside = known[around]
                break
            passed.append(around)
            if around.tag in _AROUND or (around.tag not in ("body", "html") and _ASIDE.search(class_and_id(around))):
                is_aside = True
                break
        known.update(dict.fromkeys(passed, is_aside))
        if not is_aside:
            paragraphs.append((element, text))
    weights: Counter[HtmlElement] = Counter()
    for element, text in paragraphs:
        for ancestor in element.iterancestors():
            weights[ancestor] += len(text)
    enough = _REGION_SHARE * sum(len(text) for _, text in paragraphs)
    heavy = [element for element, weight in weights.items() if weight >= enough]
    if not heavy:
        return None
    deepest = max(heavy, key=lambda element: sum(1 for _ in element.iterancestors()))
    return ArticleRegion(deepest, [text for element, text in paragraphs if deepest in element.iterancestors()])


def _text_key(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


# What a page without content needs ---------------------------------------------------------------------------

ENOUGH = 1_500  # characters, some 250 words; a page that gives more needs nothing
_HARDLY_ANY = 400

_ROOTS = {"root", "app", "__next", "__nuxt", "___gatsby", "react-root", "app-root", "main-app", "svelte"}
_SCRIPT = re.compile(
    r"(?:enable|activate|turn on|allow|requires?|needs?|without|supports?)\s+java\s?script|"
    r"java\s?script\s+(?:is|to be|must be|aktivieren|einschalten)|"
    r"(?:activer|habilit\w+|activ\w+|abilitare?)\s+(?:le\s+|o\s+|el\s+)?java\s?script",
    re.IGNORECASE,
)
_GATE = re.compile(
    r"(?:subscribe|sign in|log ?in|register|create (?:a|your) (?:free )?account|sign up)[^.\n]{,30}"
    r" to (?:continue|read|view|access|keep)|to (?:continue|keep) reading|already (?:a |an )?(?:subscriber|member)|"
    r"(?:subscriber|member)s?[- ](?:only|exclusive)|exclusive (?:to|for) subscribers|"
    r"(?:reached|used) your (?:\w+ )?(?:limit|number) of|reached your (?:\w+ )?(?:article )?limit|"
    r"jetzt abonnieren|réservé aux abonnés|solo para suscriptores",
    re.IGNORECASE,
)
_CHECK = re.compile(
    r"just a moment\W*$|checking (?:your browser|if the site connection)|attention required|are you a (?:human|robot)|"
    r"verify(?:ing)? (?:that )?you are (?:a |not a )?(?:human|robot)|access (?:to this page has been )?denied|"
    r"pardon our interruption|unusual traffic|complete the (?:security check|captcha)|"
    r"enable (?:javascript and )?cookies to continue|(?:accept|agree to) (?:all |the use of |our )?cookies to|"
    r"(?:before you continue|we (?:and our \w+ )?(?:use|value)) .{,60}(?:cookies|privacy)",
    re.IGNORECASE,
)


def needs_javascript(tree: "HtmlElement", text: str) -> bool:
    scripts = list(tree.iter("script"))
    if len(text) >= _HARDLY_ANY or not scripts:
        return False
    if any(
        element.get("id") in _ROOTS and text_length(element) < 50 for element in tree.iter("div", "main", "app-root")
    ):
        return True
    if any(_SCRIPT.search(text_of(notice)) for notice in tree.iter("noscript")):
        return True
    code = sum(len(script.text or "") for script in scripts)
    return len(text) < _HARDLY_ANY // 2 and code > 50_000 and code > 100 * len(text)


def is_behind_wall(tree: "HtmlElement", text: str) -> bool:
    if any(str(item.get("isAccessibleForFree")).lower() == "false" for item in iter_json_ld(tree)):
        return True
    if len(text) < _HARDLY_ANY and any((field.get("type") or "").lower() == "password" for field in tree.iter("input")):
        return True
    if _GATE.search(body_text(tree, without=INERT)):
        return True
    title = " ".join((tree.findtext(".//title") or "").split())
    return len(text) < 2 * _HARDLY_ANY and _CHECK.search(f"{text}\n{title}") is not None


_MAX_SIZE = 20_000_000
_SHORT_TEXT = 200  # characters; below this the article has usually been missed, and the whole body is taken
_STRUCTURED = 1_000  # characters of structured data that stand in for an article the page shows only to scripts
_MAX_ELEMENTS = 40_000  # the search for the article takes 0.1 ms an element; larger pages are read as they stand


def extract(html: bytes | str, url: str) -> Extraction:
    """Extract text and metadata of a page; fetches nothing. Raises ReadError when there is no page in it.

    Hidden elements are dropped first: instructions to a model are hidden there."""
    if len(html) > _MAX_SIZE:
        raise ReadError("the page is too large", help=f"Pages up to {_MAX_SIZE // 10**6} MB are read.", url=url)
    tree = _parse(html, url)
    drop_invisible(tree)
    size = sum(1 for _ in tree.iter())
    rewrite_tables(tree)
    if size > _MAX_ELEMENTS:
        title = " ".join(clean_text(tree.findtext(".//title") or "").split())
        text = body_text(tree)
        notes: tuple[str, ...] = ("too long to tell its content from what stands around it",)
        rows = add_company(text, find_company(title, text))
        return Extraction(rows, title=title, publisher=find_filer(text) or None, notes=notes)
    page = read_metadata(tree, url)
    strip_surroundings(tree)
    text = trim_lines(extract_article(tree, url, page.body), page.titles)
    notes = ()
    if len(text) < _SHORT_TEXT:
        whole = _parse(html, url)  # as it was before anything but hidden text was dropped
        drop_invisible(whole)
        rewrite_tables(whole)
        text = max(text, body_text(whole), key=len)
    if len(text) < _SHORT_TEXT and len(page.body) >= _STRUCTURED:
        text, notes = page.body, ("the text is from the page's structured data; the page itself shows it by script",)
    wants: PageNeed | None = None
    if len(text) < ENOUGH:
        whole = _parse(html, url)
        wants = "access" if is_behind_wall(whole, text) else "javascript" if needs_javascript(whole, text) else None
    return Extraction(
        text=add_company(text, find_company(page.title, text)),
        title=page.title,
        author=page.author,
        published=page.published,
        publisher=page.publisher or find_filer(text) or None,
        notes=notes,
        language=page.language,
        wants=wants,
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
