"""What a page says about itself: title, author, date, language, address, and its structured data."""

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
from openassay.fetch.formats import Extraction, PageNeed
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
from openassay.text.words import clean_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement
    from trafilatura.settings import Document


_MOST_DATA = 1_000_000  # characters of structured data that are read
_MOST_OBJECTS = 2_000
_ARTICLE_TYPE = re.compile(r"Article|Posting|Report|Review$")
_TAG = re.compile(r"<[^<>]*>")
_SEPARATOR = re.compile(r"\s+[|\u2013—·»:•-]+\s+|\s*\|\s*")
_FIRST_YEAR = 1990
_BESIDE = re.compile(
    r"(?:^|\s)(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|June|July|August|"
    r"September|October|November|December)$"
)
_NOBODY = re.compile(r"admin|administrator|editor|staff|webmaster|root|user", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """`titles` are all names the page goes by; `body` is the article as its structured data give it."""

    title: str = ""
    titles: tuple[str, ...] = ()
    author: str | None = None
    published: date | None = None
    language: str | None = None
    body: str = ""


def read_metadata(tree: "HtmlElement", url: str) -> PageMetadata:
    found = _trafilatura_metadata(tree, url)
    articles = [item for item in iter_json_ld(tree) if _ARTICLE_TYPE.search(str(item.get("@type")))]
    site = _to_line(found.sitename) or None
    headings = [text_of(heading) for heading in islice(tree.iter("h1"), 5)]
    only = headings[0] if len(headings) == 1 else ""
    named = [
        _meta_content(tree, "og:title"),
        only,
        _to_line(tree.findtext(".//title")),
        _to_line(found.title),
        *headings,
    ]
    title = next(filter(None, named), "")
    titles = tuple(dict.fromkeys(name for full in named for name in (full, _strip_site_name(full, site, url)) if name))
    return PageMetadata(
        title=_strip_site_name(title, site, url),
        titles=titles,
        author=_clean_author(found.author),
        published=_find_date(tree, articles) or _parse_day(found.date),
        language=_find_language(tree),
        body=max((_strip_markup(item.get("articleBody")) for item in articles), key=len, default=""),
    )


def iter_json_ld(tree: "HtmlElement") -> Iterator[dict[str, Any]]:
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


def _trafilatura_metadata(tree: "HtmlElement", url: str) -> "Document":
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


def _meta_content(tree: "HtmlElement", name: str) -> str:
    for element in tree.iter("meta"):
        if name in (element.get("property"), element.get("name"), element.get("http-equiv")):
            return _to_line(element.get("content"))
    return ""


def _to_line(text: str | None) -> str:
    return " ".join(clean_text(text or "").split())


def _clean_author(names: str | None) -> str | None:
    """Bylines run into the date beside them, and content managers sign for nobody."""
    found = (_BESIDE.sub("", name.strip()) for name in _to_line(names).split(";"))
    return "; ".join(name for name in found if name and not _NOBODY.fullmatch(name)) or None


def _strip_markup(body: Any) -> str:
    """Structured data hold markup, escaped or not."""
    return _to_line(_TAG.sub(" ", html.unescape(body))) if isinstance(body, str) else ""


def _strip_site_name(title: str, site: str | None, url: str) -> str:
    """A title without the name of the site at its end or beginning."""
    parts = list(_SEPARATOR.finditer(title))
    names = {
        _site_key(site or ""),
        *(_site_key(label) for label in (urlsplit(url).hostname or "").split(".")),
        _site_key(_host(url)),
    }
    if parts and _site_key(title[parts[-1].end() :]) in names:
        return title[: parts[-1].start()]
    if parts and _site_key(title[: parts[0].start()]) in names:
        return title[parts[0].end() :]
    return title


def _site_key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _find_date(tree: "HtmlElement", articles: list[dict[str, Any]]) -> date | None:
    """The date of the only article in the structured data, else of the header."""
    days = {day for item in articles if (day := _parse_day(item.get("datePublished")))}
    return days.pop() if len(days) == 1 else _parse_day(_meta_content(tree, "article:published_time"))


def _parse_day(text: Any) -> date | None:
    try:
        day = date.fromisoformat(str(text)[:10])
    except ValueError:
        return None
    return day if day.year >= _FIRST_YEAR and day <= (datetime.now(UTC) + timedelta(days=1)).date() else None


def _find_language(tree: "HtmlElement") -> str | None:
    root = tree if tree.tag == "html" else tree.find(".//html")
    said = (root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")) if root is not None else None
    for text in (said, _meta_content(tree, "content-language"), _meta_content(tree, "og:locale")):
        if match := re.match(r"[a-z]{2,3}(?![a-z])", (text or "").strip().lower()):
            return match[0]
    return None


def _host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return re.sub(r"^(?:www|m|mobile|amp)\.", "", host)


# What stands around an article or is strewn into it: cards, lists of links, "read more", sign-up lines.
#
# Two passes: over the tree, where links can be told from text, before the article is looked for; then over its lines.
# Each rule is given with what F1 loses without it on 181 news and blog pages (all rules: .983).

_EMPTY = ("div", "span", "p", "a", "b", "strong", "em", "i", "u", "section", "output", "ins", "font")
_LARGEST_CARD = 600  # characters; a longer link was left unclosed
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")


def strip_surroundings(tree: "HtmlElement") -> None:
    """Takes cards and lists of links out, and makes quotes and headings look like the text they are."""
    # trafilatura drops the text after an empty element with it (.0005)
    drop_elements(
        element for element in list(tree.iter(*_EMPTY)) if not len(element) and not (element.text or "").strip()
    )
    drop_elements(link for link in list(tree.iter("a")) if _is_card(link))
    for quote in list(tree.iter("blockquote")):
        _unwrap_quote(quote)
    for heading in list(tree.iter("h2", "h3", "h4")):
        if heading.find(".//a") is not None and _heads_text(heading):
            _unwrap_links(heading)
    drop_elements(element for element in list(tree.iter("ul", "ol", "p")) if _is_link_list(element))


def _is_card(link: "HtmlElement") -> bool:
    """A link around a heading or a paragraph shows another page (.0007)."""
    if not link.get("href") or text_length(link) > _LARGEST_CARD:
        return False
    return any(text_length(block) for block in link.iter(*HEADINGS[1:], "p", "div", "article"))


def _is_link_list(element: "HtmlElement") -> bool:
    """Two links and more with hardly a word beside them, and no sentence (.0003 in lists, .0007 in paragraphs)."""
    links = len(element.findall(".//a"))
    if links < 2 or (element.tag != "p" and element.find("li") is None):
        return False
    text = text_of(element)
    if element.tag != "p":
        return link_length(element) > 0.9 * len(text)
    return link_length(element) > 0.7 * len(text) and not _SENTENCE_END.search(text)


def _unwrap_quote(quote: "HtmlElement") -> None:
    """An embedded post is quoted text, whatever its box is called and however many links it has (.0013)."""
    _unwrap_links(quote)
    for element in (quote, *quote.iter("p")):
        _drop_class_and_id(element)
    size, box = text_length(quote), quote.getparent()
    while (
        box is not None
        and box.tag in ("div", "figure", "section")
        and len(box) <= 4
        and text_length(box) < 1.3 * size + 20
    ):
        _drop_class_and_id(box)
        box.tag = "div"
        box = box.getparent()


def _drop_class_and_id(element: "HtmlElement") -> None:
    element.attrib.pop("class", None)
    element.attrib.pop("id", None)


def _unwrap_links(element: "HtmlElement") -> None:
    for link in list(element.iter("a")):
        if link is not element and link.getparent() is not None:
            link.drop_tag()


def _heads_text(heading: "HtmlElement") -> bool:
    """A linked heading above a paragraph belongs to it; above another heading it is a teaser (.0001)."""
    following = next((element for element in islice(heading.itersiblings(), 5) if text_length(element)), None)
    if following is None or following.tag in HEADINGS:
        return False
    size = text_length(following)
    return size >= 60 and link_length(following) < 0.5 * size


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


def trim_lines(text: str, titles: Sequence[str]) -> str:
    """The lines of an article without its title, dateline, pointers to other pages and closing invitations."""
    lines = [line for line in text.split("\n") if not _points_elsewhere(line)]
    lines = _drop_title(lines, {key for title in titles if len(key := _title_key(title)) > 8})
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


def _drop_title(lines: list[str], titles: set[str]) -> list[str]:
    """The title has a field of its own (.0028)."""
    for number, line in enumerate(lines[:4]):
        if _is_title(_title_key(line), titles):
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


def _title_key(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


# The article of a page: trafilatura's quick pass, checked against where the page keeps its paragraphs.
#
# The quick pass takes half the time of the whole chain and, with what stands around an article taken out first, differs
# from it on few pages. It loses most where it takes one of several containers for the whole (8 of 16 paragraphs of a
# magazine's story) or a notice for the article. Both show when its text is held against the one element that holds most
# of the page's paragraphs: .983 with this check, .975 without.

_SHORT_ARTICLE = 250  # characters; below this the quick pass has usually missed the content, not found a short page
_NOTICE = 400  # a text as short as this may stand outside the article altogether
_CONFIRMING = 1_000  # characters of structured data that make it the article and not its summary
_MOST = 0.7  # of the page's paragraphs, by characters

_AROUND = {"nav", "header", "footer", "aside", "form", "button", "select", "script", "style", "noscript", "figcaption"}
_ASIDE = re.compile(
    r"comment|disqus|repl(?:y|ies)\b|related|sidebar|footer|promo|newsletter|cookie|consent|modal", re.IGNORECASE
)


def extract_article(tree: "HtmlElement", url: str, structured: str = "") -> str:
    """The text of the article; `structured` is what the page's structured data give as its body."""
    text = _main_text(tree, url, fast=True)
    if _confirms(structured, text):
        return text
    region = _find_region(tree)
    if region is not None and region.is_missing_from(text):
        text = _render_region(region.element)
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
    except (etree.LxmlError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError,
            AssertionError):  # fmt: skip
        return ""  # trafilatura trips over odd trees in many ways; the plain body text still stands
    return clean_text(found.text or "") if isinstance(found, Document) else ""


def _confirms(structured: str, text: str) -> bool:
    if len(structured) < _CONFIRMING:
        return False
    theirs, ours = _shingles(structured), _shingles(text)
    return len(theirs & ours) > 0.8 * len(theirs)


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return set(zip(words, words[1:], words[2:], words[3:], strict=False))


# Where the paragraphs are ----------------------------------------------------------------------------


class ArticleRegion(NamedTuple):
    """The smallest element with most of the page's paragraphs."""

    element: "HtmlElement"
    paragraphs: list[str]

    def is_missing_from(self, text: str) -> bool:
        size = sum(map(len, self.paragraphs))
        if size <= 1.3 * len(text) or not self._is_one_article():
            return False
        key = _text_key(text)
        covered = sum(len(paragraph) for paragraph in self.paragraphs if _text_key(paragraph[:80]) in key)
        return len(text) < _NOTICE or covered > 0.6 * len(text)

    def _is_one_article(self) -> bool:
        if self.element.tag in ("body", "html"):
            return False
        return all(len(list(self.element.iter(tag))) < 2 for tag in ("h1", "article"))


def _find_region(tree: "HtmlElement") -> ArticleRegion | None:
    paragraphs = _find_paragraphs(tree)
    weights: Counter[HtmlElement] = Counter()
    for element, text in paragraphs:
        for ancestor in element.iterancestors():
            weights[ancestor] += len(text)
    enough = _MOST * sum(len(text) for _, text in paragraphs)
    heavy = [element for element, weight in weights.items() if weight >= enough]
    if not heavy:
        return None
    deepest = max(heavy, key=lambda element: sum(1 for _ in element.iterancestors()))
    return ArticleRegion(deepest, [text for element, text in paragraphs if deepest in element.iterancestors()])


def _find_paragraphs(tree: "HtmlElement") -> list[tuple["HtmlElement", str]]:
    found = []
    known: dict[HtmlElement, bool] = {}
    for element in tree.iter("p"):
        text = text_of(element)
        if len(text) >= 80 and link_length(element) < 0.5 * len(text) and not _is_aside(element, known):
            found.append((element, text))
    return found


def _is_aside(element: "HtmlElement", known: "dict[HtmlElement, bool]") -> bool:
    """Whether the element or one around it is no content by its name; `known` keeps the answers for those around."""
    passed = []
    answer = False
    for around in (element, *element.iterancestors()):
        if around in known:
            answer = known[around]
            break
        passed.append(around)
        if around.tag in _AROUND or (around.tag not in ("body", "html") and _ASIDE.search(class_and_id(around))):
            answer = True
            break
    known.update(dict.fromkeys(passed, answer))
    return answer


def _render_region(region: "HtmlElement") -> str:
    blocks = ("p", "li", "blockquote", "pre", "h2", "h3", "h4")
    nested = {*_AROUND, "p", "li", "blockquote"}
    lines = (
        text_of(element)
        for element in region.iter(*blocks)
        if not any(around.tag in nested for around in element.iterancestors())
        and link_length(element) < 0.5 * text_length(element)
    )
    return clean_text("\n".join(line for line in lines if line))


def _text_key(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


# What a page without content asks for: that scripts run, or that its reader is let in.

ENOUGH = 1_500  # characters, some 250 words; a page that gives more wants nothing
_HARDLY = 400

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


def detect_need(tree: "HtmlElement", text: str) -> PageNeed | None:
    """Judges a freshly parsed page, nothing dropped, by it and the text that was read from it."""
    if len(text) >= ENOUGH:
        return None
    if is_behind_wall(tree, text):
        return "access"
    return "javascript" if needs_javascript(tree, text) else None


def needs_javascript(tree: "HtmlElement", text: str) -> bool:
    scripts = list(tree.iter("script"))
    if len(text) >= _HARDLY or not scripts:
        return False
    if any(
        element.get("id") in _ROOTS and text_length(element) < 50 for element in tree.iter("div", "main", "app-root")
    ):
        return True
    if any(_SCRIPT.search(text_of(notice)) for notice in tree.iter("noscript")):
        return True
    code = sum(len(script.text or "") for script in scripts)
    return len(text) < _HARDLY // 2 and code > 50_000 and code > 100 * len(text)


def is_behind_wall(tree: "HtmlElement", text: str) -> bool:
    if len(text) >= ENOUGH:
        return False
    if any(str(item.get("isAccessibleForFree")).lower() == "false" for item in iter_json_ld(tree)):
        return True
    if len(text) < _HARDLY and any((field.get("type") or "").lower() == "password" for field in tree.iter("input")):
        return True
    if _GATE.search(body_text(tree, without=INERT)):
        return True
    title = " ".join((tree.findtext(".//title") or "").split())
    return len(text) < 2 * _HARDLY and _CHECK.search(f"{text}\n{title}") is not None


# The content of an HTML page. Hidden elements go first: instructions to a model are hidden there.

_MAX_SIZE = 20_000_000
_SHORT_TEXT = 200  # characters; below this the article has usually been missed, and the whole body is taken
_STRUCTURED = 1_000  # characters of structured data that stand in for an article the page shows only to scripts
_MAX_ELEMENTS = 40_000  # the search for the article takes 0.1 ms an element; larger pages are read as they stand


def extract(html: bytes | str, url: str) -> Extraction:
    """Text and metadata of a page; fetches nothing. Raises ReadError when there is no page in it."""
    if len(html) > _MAX_SIZE:
        raise ReadError("the page is too large", help=f"Pages up to {_MAX_SIZE // 10**6} MB are read.", url=url)
    tree = _parse(html, url)
    drop_invisible(tree)
    if sum(1 for _ in tree.iter()) > _MAX_ELEMENTS:
        title = " ".join(clean_text(tree.findtext(".//title") or "").split())
        return Extraction(
            body_text(tree), title=title, notes=("too long to tell its content from what stands around it",)
        )
    page = read_metadata(tree, url)
    strip_surroundings(tree)
    text = trim_lines(extract_article(tree, url, page.body), page.titles)
    notes: tuple[str, ...] = ()
    if len(text) < _SHORT_TEXT:
        text = max(text, _extract_body(html, url), key=len)
    if len(text) < _SHORT_TEXT and len(page.body) >= _STRUCTURED:
        text, notes = page.body, ("the text is from the page's structured data; the page itself shows it by script",)
    return Extraction(
        text=text,
        title=page.title,
        author=page.author,
        published=page.published,
        notes=notes,
        language=page.language,
        wants=detect_need(_parse(html, url), text) if len(text) < ENOUGH else None,
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


def _extract_body(html: bytes | str, url: str) -> str:
    """The body of the page as it was before anything but hidden text was taken out."""
    tree = _parse(html, url)
    drop_invisible(tree)
    return body_text(tree)
