"""Paragraphs without line breaks in the middle of sentences."""

import re
from collections.abc import Iterable, Iterator

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

_END_OF_ROW = 2_000  # characters
_NARROWEST = 40  # below this a column of short lines is an address or a poem, not wrapped prose
_WIDEST = 200  # above this a line is a whole paragraph already


def reflow(text: str) -> str:
    """Join hard-wrapped lines; list items, headings, table rows and blank lines stay as they are."""
    return "\n".join(line for block in _blocks(text.split("\n")) for line in _joined(block))


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in lines:
        if line.strip():
            block.append(line)
            continue
        if block:
            yield block
        yield [""]
        block = []
    if block:
        yield block


def _joined(block: list[str]) -> list[str]:
    width = max(_NARROWEST, *(len(line.strip()) for line in block))
    joined: list[list[str]] = []  # in pieces: a paragraph of half a million lines is put together once
    previous = ""
    for line in block:
        if joined and _continues(previous, line, width):
            joined[-1][-1:] = _join(joined[-1][-1], line.strip())
        else:
            joined.append([line.rstrip()])
        previous = line
    return ["".join(pieces) for pieces in joined]


def _continues(previous: str, line: str, width: int) -> bool:
    if _is_row(previous) or _is_row(line):
        return False
    previous, line = previous.strip(), line.strip()
    if _ITEM.match(line):
        return False
    if is_open(previous):
        return True
    if _HEADING.match(line) or (_HEADING.match(previous) and len(previous) < 0.7 * width):
        return False
    if _CLOSED.search(previous):
        # A full line that ends a sentence usually goes on; two paragraphs joined by mistake cut no sentence.
        return width <= _WIDEST and _was_full(previous, line, 0.85 * width) and not previous.endswith(":")
    if _LOWER.match(line) and line[0].islower():
        return True
    return width <= _WIDEST and _was_full(previous, line, 0.7 * width)


def _is_row(line: str) -> bool:
    """By its end: what stands before that need not be gone through once for each of its figures."""
    return bool(_ROW.search(line[-_END_OF_ROW:]))


def is_open(line: str) -> bool:
    """Whether the line ends in a comma or in a word that ends no sentence and no heading."""
    return _OPEN.search(line) is not None


def _was_full(previous: str, line: str, width: float) -> bool:
    """Whether the next word would not have fitted: then the width broke the line, not the author."""
    return len(previous) + 1 + len(line.split(maxsplit=1)[0]) > width


# First halves that are words of a compound far more often than a torn word.
_COMPOUND = re.compile(
    "co|cross|ex|first|full|half|high|long|low|multi|non|off|on|one|over|post|pre|second|self|short|stock|third|"
    "three|two|well|year",
    re.IGNORECASE,
)


def _join(left: str, right: str) -> list[str]:
    """In pieces, of which the last one is what comes next is joined to."""
    if not left.endswith("-"):
        return [f"{left} ", right]
    torn = _HYPHEN.search(left) if len(left) <= _WIDEST else None
    if torn is None or _COMPOUND.fullmatch(torn[1]) or not _HYPHENATED_NEXT.match(right):
        return [left, right]
    return [left[:-1] + right]
