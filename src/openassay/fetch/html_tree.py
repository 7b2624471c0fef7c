"""The text of elements, and elements that a reader cannot see: instructions to a model are hidden there.

No engine for style sheets: inline styles, and rules of the page's own sheets for one class or one id. What sites hide
until a script has run stays: the body, what another rule shows again, and whole articles.
"""

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from openassay.text.words import clean_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement


INERT = {"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "head"}
AROUND = INERT | {"nav", "header", "footer", "aside", "form", "button", "select"}
_BLOCKS = {
    "p", "div", "section", "article", "main", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4",
    "h5", "h6", "blockquote", "pre", "br", "hr", "dt", "dd", "figure", "figcaption", "td", "th",
}  # fmt: skip


def body_text(tree: "HtmlElement", *, without: Collection[str] = AROUND) -> str:
    """Return all text outside the elements named, in reading order; walks without recursion."""
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
    return clean_text("\n".join(line for line in lines if line))


HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def text_of(element: "HtmlElement") -> str:
    return " ".join("".join(element.itertext()).split())


def text_length(element: "HtmlElement") -> int:
    return len(text_of(element))


def link_length(element: "HtmlElement") -> int:
    """Count characters in links; old pages put unclosed anchors without an address around their text."""
    return sum(text_length(link) for link in element.iter("a") if link.get("href"))


def class_and_id(element: "HtmlElement") -> str:
    """Return what the page's author calls the element."""
    return f"{element.get('class') or ''} {element.get('id') or ''}"


def drop_elements(elements: Iterable["HtmlElement"]) -> None:
    """Drop elements; the text that follows them stays."""
    for element in elements:
        if element.getparent() is not None:
            element.drop_tree()


_UNSEEN_TAGS = ("script", "style", "template", "noscript", "dialog")
_PAGE_TAGS = ("html", "head", "body")  # sites hide the whole body until a script has run; that is not hidden text
_MAX_SHEETS = 500_000  # characters of style sheets that are read
_MAX_RULES = 5_000
_ARTICLE_LENGTH = 1_000  # characters; a rule that hides more than this and a third of the page waits for a script

_GONE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|(?<![a-z-])opacity:(?:0*\.)?0+(?![.\d])"
    r"|transform:[^;]{,200}(?:scale\(0[,)]|translate[xy]?\(-9{3,})"
    r"|clip:rect\((?:[01](?:px)?[,)]){3}|clip-path:(?:inset\((?:50|100)%|circle\(0|polygon\((?:0(?:px)?,?){4,}\))"
)
_TINY = re.compile(r"font-size:(\d{,4}\.?\d{1,6})(px|pt|em|rem|%|)(?![a-z\d])")
_LEAST = {"px": 1.0, "pt": 1.0, "em": 0.1, "rem": 0.1, "%": 10.0, "": 0.0}  # sizes up to these nobody reads
_AWAY = re.compile(r"text-indent:-(?:\d{4,}|999)|margin-(?:left|top):-(?:\d{5,}|9{3,})")  # sliders move by a thousand
_MOVED = re.compile(r"(?<![a-z-])(?:left|top|right|bottom):-(?:\d{4,}|999)")
_NOTHING = re.compile(r"(?<![a-z-])(?:max-)?(?:width|height):[01](?:px)?(?![.\d%a-z])")
_COLOUR = re.compile(r"(?<![a-z-])(color|background(?:-color)?):([^;!]+)")
_NAMED = {"white": "#ffffff", "black": "#000000"}
_RGB = re.compile(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,1)?\)")


def find_invisible(tree: "HtmlElement") -> list["HtmlElement"]:
    found = []
    for element in tree.iter(*_UNSEEN_TAGS):
        has_data = element.get("type") == "application/ld+json"  # it holds the date and the author
        if element.get("open") is None if element.tag == "dialog" else not has_data:
            found.append(element)
    found += [
        element
        for element in tree.xpath("//*[@hidden or @aria-hidden or @style]")
        if element.tag not in _PAGE_TAGS
        and (
            element.get("hidden") is not None
            or (element.get("aria-hidden") or "").lower() == "true"
            or is_invisible_style(element.get("style") or "")
        )
    ]
    # Then what rules of the page's own sheets hide.
    names = _invisible_selectors("\n".join(sheet.text or "" for sheet in tree.iter("style"))[:_MAX_SHEETS])
    max_length = max(_ARTICLE_LENGTH, text_length(tree) // 3) if names else 0
    for element in tree.xpath("//*[@class or @id]") if names else ():
        own = {f".{name}" for name in (element.get("class") or "").split()} | {f"#{element.get('id')}"}
        if element.tag in _PAGE_TAGS or not names & (own | {f"{element.tag}{name}" for name in own}):
            continue
        if element.find(".//h1") is None and text_length(element) <= max_length:
            found.append(element)
    return found


def drop_invisible(tree: "HtmlElement") -> None:
    """Drop them, and styles: trafilatura takes a border or a cut overflow for a sign of no content."""
    drop_elements(find_invisible(tree))
    for element in tree.xpath("//*[@style]"):
        del element.attrib["style"]


def is_invisible_style(style: str) -> bool:
    """Tell whether declarations take an element out of sight."""
    style = "".join(style.lower().split()).replace("!important", "")
    if not style:
        return False
    colours: dict[str, str] = {}  # as six digits
    for name, value in _COLOUR.findall(style):
        colours[name[:5]] = _NAMED.get(value, value)
        if match := _RGB.fullmatch(value):
            colours[name[:5]] = "#" + "".join(f"{int(part):02x}" for part in match.groups())
        elif re.fullmatch("#[0-9a-f]{3}", value):
            colours[name[:5]] = "#" + "".join(digit * 2 for digit in value[1:])
    return (
        _GONE.search(style) is not None
        or any(float(size) <= _LEAST[unit] for size, unit in _TINY.findall(style))
        or _AWAY.search(style) is not None
        or ("position:" in style and _MOVED.search(style) is not None)
        or ("overflow:hidden" in style and "padding-" not in style and _NOTHING.search(style) is not None)
        or ("color" in colours and colours["color"] in (colours.get("backg"), "transparent"))
    )


_ALWAYS = re.compile(r"@media\s+(?:all|(?:only\s+)?screen)", re.IGNORECASE)
_SUSPECT = re.compile(
    r"none|hidden|opacity|indent|:\s*-|clip|size\s*:\s*[01.]|scale|#fff|white|transparent", re.IGNORECASE
)
_SHOWS = re.compile(
    r"display\s*:\s*(?!none)\w|visibility\s*:\s*visible|opacity\s*:\s*(?:1|0?\.\d*[1-9])", re.IGNORECASE
)
_SIMPLE = re.compile(r"([a-z][a-z0-9]*)?([.#]-?[_a-zA-Z][\w-]*)")
_NAMES = re.compile(r"[.#]-?[_a-zA-Z][\w-]*")


def _invisible_selectors(sheet: str) -> set[str]:
    """Return selectors of one class or id that are hidden on every screen and never shown again by any other rule.

    Knows braces and no other grammar."""
    first, *others = sheet.split("/*")
    sheet = first + "".join(other.partition("*/")[2] for other in others)
    rules: list[tuple[str, str]] = []  # selectors and declarations
    hiding: dict[str, str] = {}
    always = [True]  # whether it holds on every screen, for each block that is open
    for chunk in sheet.split("}"):
        *heads, body = chunk.split("{")
        heads = [head.rpartition(";")[2].strip() for head in heads]
        for head in heads:
            always.append(always[-1] and (not head.startswith("@") or _ALWAYS.fullmatch(head) is not None))
        if heads:
            rules.append((heads[-1], body))
            if always[-1] and _SUSPECT.search(body) and is_invisible_style(body):
                simple = (_SIMPLE.fullmatch(selector.strip()) for selector in heads[-1].split(","))
                hiding |= {match[0]: match[2] for match in simple if match}
            if len(rules) == _MAX_RULES:
                break
        if len(always) > 1:
            always.pop()
    if not hiding:
        return set()
    shown = {name for selectors, body in rules if _SHOWS.search(body) for name in _NAMES.findall(selectors)}
    return {selector for selector, name in hiding.items() if name not in shown}
