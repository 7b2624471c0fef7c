"""Detects the format of a body, joins hard-wrapped lines and writes table rows, for the readers of all formats."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import groupby
from typing import Literal
from urllib.parse import urlsplit

from openassay.errors import ReadError

PageNeed = Literal["javascript", "access"]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a reader returns: clean text and what the file says about itself; `notes` say what was left out."""

    text: str
    title: str = ""
    author: str | None = None
    published: date | None = None
    origin: str | None = None
    publisher: str | None = None
    notes: tuple[str, ...] = ()
    language: str | None = None  # as in "de"
    wants: PageNeed | None = None  # the page shows its content only to scripts, or only to those let in


def parse_day(text: str) -> date | None:
    """Parse the date that a text begins with, in ISO format; None where there is none."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


class ContentFormat(StrEnum):
    HTML = "html"
    PLAIN = "plain"
    MARKDOWN = "markdown"
    CSV = "csv"
    PDF = "pdf"
    DOCX = "docx"


_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES = {
    "text/html": ContentFormat.HTML,
    "application/xhtml+xml": ContentFormat.HTML,
    "text/plain": ContentFormat.PLAIN,
    "text/markdown": ContentFormat.MARKDOWN,
    "text/x-markdown": ContentFormat.MARKDOWN,
    "text/csv": ContentFormat.CSV,
    "application/pdf": ContentFormat.PDF,
    "application/x-pdf": ContentFormat.PDF,
    _DOCX: ContentFormat.DOCX,
}
# Servers that do not know what they serve say one of these; the first bytes decide.
UNDECIDED = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/x-download", "unknown/unknown"}
)
_MARKUP = frozenset({"application/xml", "text/xml"})  # XHTML, or a feed
# What is fetched at all: a DOCX may arrive as an archive, and XHTML as XML.
ACCEPTED = frozenset({*MEDIA_TYPES, *(UNDECIDED - {""}), *_MARKUP, "application/zip"})

FORMATS_BY_SUFFIX = {
    ".txt": ContentFormat.PLAIN,
    ".md": ContentFormat.MARKDOWN,
    ".markdown": ContentFormat.MARKDOWN,
    ".csv": ContentFormat.CSV,
    ".pdf": ContentFormat.PDF,
    ".docx": ContentFormat.DOCX,
    ".html": ContentFormat.HTML,
    ".htm": ContentFormat.HTML,
}

_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|script)\b",
    re.I | re.S,
)
_BINARY_SIGNATURES = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"ID3",
    b"OggS", b"\x1aE\xdf\xa3", b"\x7fELF", b"MZ\x90", b"\x00\x00\x01\x00", b"wOFF", b"wOF2", b"\xd0\xcf\x11\xe0",
)  # fmt: skip
_START_BYTES = 1024


def detect_format(media_type: str, url: str, body: bytes) -> ContentFormat:
    """Detect the format by what the content shows beyond doubt, else by what the server says.

    Raises ReadError, with the reason, for what is not supported."""
    media_type, start = media_type.lower(), body[:_START_BYTES].removeprefix(b"\xef\xbb\xbf")
    is_html = _HTML_START.match(start) is not None
    if is_html or b"%PDF-" in start:
        return ContentFormat.HTML if is_html else ContentFormat.PDF
    if start.startswith(b"PK\x03\x04") and b"word/document.xml" in body:
        return ContentFormat.DOCX
    if start.startswith((b"PK\x03\x04", *_BINARY_SIGNATURES)) or start[4:8] == b"ftyp":
        raise _format_error(media_type if media_type not in MEDIA_TYPES else "", "a picture, a recording or an archive")
    declared = MEDIA_TYPES.get(media_type)
    if declared in (ContentFormat.PDF, ContentFormat.DOCX):
        raise ReadError(f"served as {declared.upper()}, but it is not one", help="Open it in a browser.")
    if declared is ContentFormat.PLAIN or media_type in UNDECIDED:
        path = urlsplit(url).path.lower()
        found = next((kind for suffix, kind in FORMATS_BY_SUFFIX.items() if path.endswith(suffix)), declared)
        if found in (ContentFormat.PLAIN, ContentFormat.MARKDOWN, ContentFormat.CSV):
            return found
        if declared is None:
            raise ReadError("the server does not say what it is", help="Open it in a browser.")
        return declared
    if declared is None:
        raise _format_error(media_type, "no page")
    return declared


def _format_error(media_type: str, otherwise: str) -> ReadError:
    known = "a feed or data in XML" if media_type in _MARKUP or media_type.endswith("+xml") else ""
    named = known or (media_type if media_type not in UNDECIDED else "") or otherwise
    return ReadError(f"is {named}, which is not supported", help="Pages, PDF, DOCX, CSV and text are.")


# Hard-wrapped lines ------------------------------------------------------------------------------------

_ITEM = re.compile(r"(?:[-*+•‣▪●○◦\u2013—☐☒]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)])\s+\S")
_HEADING = re.compile(
    r"#{1,6}\s|(?:note|item|part|chapter|section)\s+[\dIVX]+[A-Z]?\b[.:\s\u2013—-]*[A-Z]", re.IGNORECASE
)
# A blank belongs to one place alone: a line of many figures that ends in a word took time that doubled with each.
_FIGURE = r"(?:[$€£(]+\s?)?(?:\d(?:[\d,.]*\d)?|[—\u2013])(?:\s?[)%]+)?"
_ROW = re.compile(rf"\|.*\||\S\t+\S|\s{{3,}}{_FIGURE}\s*$|(?:\s{{1,3}}{_FIGURE}){{2,}}\s*$")
_CLOSED = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")
_OPEN = re.compile(
    r"\w,$|\b(?:a|an|and|as|at|by|for|from|in|is|its|of|on|or|our|than|that|the|their|to|was|we|which|with)$"
)
_LOWER = re.compile(r"[^\W\d_A-Z](?![A-Z])")  # not iPhone
_HYPHEN = re.compile(r"\b([A-Za-z]?[a-z]{2,})-$")
_HYPHENATED_NEXT = re.compile(r"[a-z]{2,}(?![a-z]*-)")

# First halves that are words of a compound far more often than a torn word.
_COMPOUND = re.compile(
    "co|cross|ex|first|full|half|high|long|low|multi|non|off|on|one|over|post|pre|second|self|short|stock|third|"
    "three|two|well|year",
    re.IGNORECASE,
)
_ROW_END = 2_000  # characters
_MIN_WIDTH = 40  # below this a column of short lines is an address or a poem, not wrapped prose
_MAX_WIDTH = 200  # above this a line is a whole paragraph already


def reflow(text: str) -> str:
    """Join hard-wrapped lines; list items, headings, table rows and blank lines stay as they are."""
    joined: list[str] = []
    for is_filled, group in groupby(text.split("\n"), key=lambda line: bool(line.strip())):
        block = list(group)
        if not is_filled:
            joined += [""] * len(block)
            continue
        width = max(_MIN_WIDTH, *(len(line.strip()) for line in block))
        paragraphs: list[list[str]] = []  # in pieces: a paragraph of half a million lines is joined once
        previous = ""
        for line in block:
            if not paragraphs or not _continues(previous, line, width):
                paragraphs.append([line.rstrip()])
            else:
                left, right = paragraphs[-1].pop(), line.strip()
                torn = _HYPHEN.search(left) if left.endswith("-") and len(left) <= _MAX_WIDTH else None
                if not left.endswith("-"):
                    paragraphs[-1] += [f"{left} ", right]
                elif torn is None or _COMPOUND.fullmatch(torn[1]) or not _HYPHENATED_NEXT.match(right):
                    paragraphs[-1] += [left, right]
                else:
                    paragraphs[-1].append(left[:-1] + right)
            previous = line
        joined += ["".join(pieces) for pieces in paragraphs]
    return "\n".join(joined)


def _continues(previous: str, line: str, width: int) -> bool:
    """Tell whether a line continues the paragraph of the previous one, in a block of this width."""
    if _is_row(previous) or _is_row(line):
        return False
    previous, line = previous.strip(), line.strip()
    if _ITEM.match(line):
        return False
    if is_incomplete(previous):
        return True
    if _HEADING.match(line) or (_HEADING.match(previous) and len(previous) < 0.7 * width):
        return False
    if _CLOSED.search(previous):
        # A full line that ends a sentence usually goes on; two paragraphs joined by mistake cut no sentence.
        return width <= _MAX_WIDTH and _was_full(previous, line, 0.85 * width) and not previous.endswith(":")
    if _LOWER.match(line) and line[0].islower():
        return True
    return width <= _MAX_WIDTH and _was_full(previous, line, 0.7 * width)


def _is_row(line: str) -> bool:
    """Look at the end of a line only: the pattern would go through the rest once for each of its figures."""
    return bool(_ROW.search(line[-_ROW_END:]))


def is_incomplete(line: str) -> bool:
    """Tell whether the line ends in a comma or in a word that ends no sentence and no heading."""
    return _OPEN.search(line) is not None


def _was_full(previous: str, line: str, width: float) -> bool:
    """Tell whether the next word would not have fitted: then the width broke the line, not the author."""
    return len(previous) + 1 + len(line.split(maxsplit=1)[0]) > width


# Table rows, as lines that stand alone as evidence ---------------------------------------------------------

_NUMBER = re.compile(r"[-+$€£(]*\d[\d.,]*[)%]*")


def rows_to_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write one line per row, `Header: cell; Header: cell`; without a header the cells are joined by ` | `."""
    if not any(header):
        return [" | ".join(row) for row in rows if any(row)]
    if not rows:
        return [" | ".join(header)]
    return [line for row in rows if (line := row_to_line(header, row))]


def row_to_line(header: Sequence[str], row: Sequence[str]) -> str:
    names = [*header, *[""] * (len(row) - len(header))]
    label = row[0] if row and not names[0] else ""  # written as in tables of other files
    cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell]
    return f"{label} — {'; '.join(cells[1:])}" if label and len(cells) > 1 else "; ".join(cells)


def is_header_row(row: Sequence[str]) -> bool:
    """Tell whether a first row names its columns: filled, distinct and not figures."""
    named = [cell for cell in row if cell]
    return (
        len(named) >= max(1, len(row) - 1)
        and len(set(named)) == len(named)
        and not any(_NUMBER.fullmatch(cell) for cell in named)
    )
