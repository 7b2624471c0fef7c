"""Where sentences begin and end. Offsets are kept, because a sentence is evidence only as a span."""

import re
from typing import NamedTuple

# Abbreviations after which a full stop does not end a sentence.
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr inc corp ltd co llc plc vs etc eg ie cf al fig figs no nos vol pp ed eds approx "
    "dept est gov sen rep gen col lt capt sgt u.s u.k e.g i.e a.m p.m ph.d jan feb mar apr jun jul aug sep sept "
    "oct nov dec mt ft ca op cit resp".split()
)
_END = re.compile(r"[.!?…。！？؟]+[\"'”’)\]]*(?=\s|$)|[。！？]")
_WORD_BEFORE = re.compile(r"([^\s(\[\"'“‘]+)$")
_LINE = re.compile(r"[^\n]+")
_LONGEST = 1200  # code points; a longer run is a table or a list without stops and is no sentence


class Piece(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int
    text: str


def sentences(text: str, start: int = 0, end: int | None = None) -> list[Piece]:
    """Sentences of `text[start:end]` with offsets into `text`. A line break always ends a sentence:
    snapshots are reflowed, so a line is a paragraph, a heading, a list item or a table row."""
    found = []
    for line in _LINE.finditer(text, start, len(text) if end is None else end):
        found.extend(_of_line(text, line.start(), line.end()))
    return found


def _of_line(text: str, start: int, end: int) -> list[Piece]:
    pieces, begin = [], start
    for match in _END.finditer(text, start, end):
        if match.group().startswith(".") and not _ends(text, begin, match.start(), match.end(), end):
            continue
        pieces.append(_piece(text, begin, match.end()))
        begin = match.end()
    pieces.append(_piece(text, begin, end))
    return [piece for piece in pieces if 0 < len(piece.text) <= _LONGEST]


def _ends(text: str, begin: int, stop: int, after: int, end: int) -> bool:
    """Whether a full stop at `stop` ends a sentence rather than an abbreviation or an initial."""
    match = _WORD_BEFORE.search(text, max(begin, stop - 24), stop)
    word = match.group(1) if match else ""
    following = text[after : min(end, after + 8)].lstrip()
    if word.lower() in _ABBREVIATIONS:
        # "Apple Inc. The company" ends; "Apple Inc. reported" and "No. 5" do not.
        return word.lower() in {"inc", "corp", "ltd", "co", "u.s", "u.k", "etc", "a.m", "p.m"} and (
            following[:1].isupper() and not _is_initial(following)
        )
    if len(word) == 1 and word.isupper():
        return False  # an initial, as in "A. G. Riess"
    return not following or not following[0].islower()


def _is_initial(following: str) -> bool:
    return len(following) > 1 and following[1] == "."


def _piece(text: str, start: int, end: int) -> Piece:
    raw = text[start:end]
    lead = len(raw) - len(raw.lstrip())
    trimmed = raw.strip()
    bullet = re.match(r"(?:[-*•▪◦]|\d{1,2}[.)])\s+(?=\S)", trimmed)
    if bullet:
        lead += bullet.end()
        trimmed = trimmed[bullet.end() :]
    return Piece(start + lead, start + lead + len(trimmed), trimmed)


def is_statement(sentence: str) -> bool:
    """Whether a sentence says something on its own: no heading, menu, question or fragment."""
    if is_row(sentence):
        return True
    words = sentence.split()
    letters = sum(character.isalpha() for character in sentence)
    digits = sum(character.isdigit() for character in sentence)
    # Two sales figures with their years take a plain sentence down to 47% letters; a row of bare numbers has none.
    if not 4 <= len(words) <= 80 or letters < len(sentence) * 0.35 or letters + digits < len(sentence) * 0.6:
        return False
    if any(word[:1].isupper() for word in words) and sum(word[:1].islower() for word in words) < 2:
        return False  # "Date: August 3, 2023 Apple Inc." names things and says nothing of them
    return sentence.rstrip("\"'”’)]").endswith((".", "!", "。", "！")) and not sentence.endswith(("...", "…"))


def is_row(sentence: str) -> bool:
    """A table row written out with its headings, as 'Team: SH0ES; Year: 2022'."""
    cells = sentence.split("; ")
    return len(cells) >= 2 and all(": " in cell for cell in cells) and any(c.isdigit() for c in sentence)
