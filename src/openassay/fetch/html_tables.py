"""Tables of a page that hold data, each row rewritten as one cell that says what it is of; layout stays as it is."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from openassay.fetch.html_tree import HEADINGS, text_of
from openassay.fetch.tables import GridCell, write_grid

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MAX_CELLS = 20_000  # of one table
_MAX_CELL = 300  # characters; a longer cell holds prose
_MAX_LINE = 600  # characters before a table that may be one line of what introduces it
_MAX_ABOVE = 3  # lines before a table that are looked at, and elements that are passed for them
_MAX_PASSED = 12
_MARK = re.compile(r"[\[(]?(?:\d{1,2}|[a-z*†‡§])(?:, ?(?:\d{1,2}|[a-z]))*[\])]?", re.IGNORECASE)
_POWER = re.compile(r"(?:\b10|\b[kcdm]?m|ft|in)$")


def rewrite_tables(tree: "HtmlElement") -> None:
    """Write each table of data row by row, in place."""
    from lxml.html import Element

    heading = ""
    for table in list(tree.iter(*HEADINGS[1:], "table")):
        if table.tag != "table":
            heading = text_of(table) or heading
            continue
        rows = _read_rows(table)
        lines = write_grid(rows, _look_above(table), heading, caption=_read_caption(table)) if rows else None
        if lines is None:
            continue
        tail = table.tail
        table.clear()
        table.tail = tail
        for line in lines:
            row, cell = Element("tr"), Element("td")
            cell.text = line
            row.append(cell)
            table.append(row)


def strip_pipes(text: str) -> str:
    """Take the bars off the lines that a table of one column has become."""
    lines = (line.rstrip() for line in text.split("\n"))
    return "\n".join(
        line[2:-2] if line.startswith("| ") and line.endswith(" |") and " | " not in line[2:-2] else line
        for line in lines
        if line != "|---|"
    )


def _read_rows(table: "HtmlElement") -> list[list[GridCell]]:
    """The cells of a table of data; nothing for one that only arranges a page, or is too large."""
    if next(islice(table.iter("table"), 1, None), None) is not None:
        return []
    rows = list(table.iter("tr"))
    if len(rows) < 2:
        return []
    found, size = list[list[GridCell]](), 0
    for row in rows:
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        size += len(cells)
        read = [
            GridCell(_read_cell(cell), _span(cell, "colspan"), _span(cell, "rowspan"), cell.tag == "th")
            for cell in cells
        ]
        if size > _MAX_CELLS or any(len(cell.text) > _MAX_CELL for cell in read):
            return []
        found.append(read)
    return found


def _read_cell(cell: "HtmlElement") -> str:
    """The text of a cell, without marks of footnotes: after a figure they would read as part of it."""
    if next(cell.iter("sup"), None) is None:
        return text_of(cell).strip("\u200b")
    parts = list[str]()
    for element, text in _walk(cell):
        before = "".join(parts).rstrip()
        if element == "sup" and _MARK.fullmatch(text.strip()) and before and not _POWER.search(before):
            continue
        parts.append(text)
    return " ".join("".join(parts).split())


def _walk(cell: "HtmlElement") -> Iterator[tuple[str, str]]:
    """The stretches of a cell with the element each stands in; all of a raised one is one stretch."""
    pending: list[tuple[str, HtmlElement | str]] = [("", cell)]
    while pending:
        tag, node = pending.pop()
        if isinstance(node, str):
            yield tag, node
        elif node.tag == "sup":
            yield "sup", text_of(node)
        else:
            parts: list[tuple[str, HtmlElement | str]] = [("", node.text or "")]
            for child in node:
                parts += (
                    [("", child), ("", child.tail or "")] if isinstance(child.tag, str) else [("", child.tail or "")]
                )
            pending += reversed(parts)


def _span(cell: "HtmlElement", name: str) -> int:
    text = (cell.get(name) or "").strip()
    return int(text) if text.isdecimal() and len(text) < 5 else 1


def _read_caption(table: "HtmlElement") -> str:
    caption = table.find("caption")
    return text_of(caption) if caption is not None else ""


def _look_above(table: "HtmlElement") -> Sequence[str]:
    """The lines before a table, up to a heading."""
    lines = list[str]()
    for element in islice(_iter_before(table), _MAX_PASSED):
        if len(lines) == _MAX_ABOVE or element.tag == "table":
            break
        if text := text_of(element):
            lines.append(text)
        if element.tag in HEADINGS:
            break
    return lines[::-1]


def _iter_before(element: "HtmlElement") -> Iterator["HtmlElement"]:
    """Blocks of text before an element, nearest first."""
    for around in (element, *islice(element.iterancestors(), 6)):
        if around.tag in ("body", "html"):
            return
        for before in around.itersiblings(preceding=True):
            if not isinstance(before.tag, str):
                continue
            yield from _last_blocks(before)


def _last_blocks(element: "HtmlElement") -> Iterator["HtmlElement"]:
    """The element itself when it is short, else what it ends with."""
    if element.tag in (*HEADINGS, "p", "table") or len(element) == 0 or len(text_of(element)) <= _MAX_LINE:
        inner = next(element.iter(*HEADINGS, "table"), None)
        if inner is None or inner is element:
            yield element
            return
    for child in reversed(element):
        if isinstance(child.tag, str):
            yield from _last_blocks(child)
