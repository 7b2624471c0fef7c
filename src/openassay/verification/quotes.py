"""Does the quote stand in the text? Exactly, or after normalisation with the way back to the original kept.

Normalised away: white-space runs, invisible characters, the shapes of quotation marks and dashes, ligatures,
and composed against decomposed letters. Not case, and not NFKC as a whole: it would make 10² equal to 102.
An ellipsis matches only an ellipsis of the text; a quote with words left out is not evidence.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from openassay.models.evidence import QuoteSpan


class QuotePlace(NamedTuple):
    """Where a quote stands: `text[start:end]` is the source's own wording of it."""

    start: int
    end: int


# One character for one: the offsets stay, and str.replace is ten times as fast as a regular expression.
_SHAPES = {
    "'": "‘’‚‛′ʼ＇`´",
    '"': "“”„‟″«»＂",
    "-": "‐‑‒–—―−﹣－",
    " ": "\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B))),
}
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "…": "..."}
_SINGLES = "\u2126\u212a\u212b"  # ohm, kelvin, angstrom signs: canonically the letters
_PLAIN = frozenset(_INVISIBLE + "".join(_LIGATURES) + _SINGLES)
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
_RARE = re.compile(f"[{_INVISIBLE}{''.join(_LIGATURES)}{_SINGLES}{_MARKS}]+(?:(?<=\u00ad) +)?")
_SPACES = re.compile("  +")


class _OffsetMap:
    """The way back through one replacement: where each changed stretch went, and where it had been."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.old_starts: list[int] = []
        self.old_ends: list[int] = []

    def original_start(self, position: int) -> int | None:
        """The earlier offset at which a match begins, or None inside a changed stretch."""
        index = bisect_right(self.starts, position) - 1
        if index < 0:
            return position
        if position < self.ends[index]:
            return self.old_starts[index] if position == self.starts[index] else None
        return self.old_ends[index] + position - self.ends[index]

    def original_end(self, position: int) -> int | None:
        index = bisect_left(self.starts, position) - 1
        if index < 0:
            return position
        if position < self.ends[index]:
            return None
        return self.old_ends[index] + position - self.ends[index]


class _NormalText(NamedTuple):
    text: str
    rare: _OffsetMap
    spaces: _OffsetMap

    def original_place(self, start: int, end: int) -> QuotePlace | None:
        """The original wording of `text[start:end]`; None where it would begin or end inside a ligature."""
        first, last = self.spaces.original_start(start), self.spaces.original_end(end)
        if first is None or last is None:
            return None
        first, last = self.rare.original_start(first), self.rare.original_end(last)
        return QuotePlace(first, last) if first is not None and last is not None else None


def find_quote(quote: str, text: str) -> QuotePlace | None:
    """The first place where the quote stands, exact wording before normalised."""
    if not (wanted := normalise_text(quote).text.strip(" ")):
        return None
    if (start := text.find(quote)) >= 0:
        return QuotePlace(start, start + len(quote))
    normal = normalise_text(text)
    position = normal.text.find(wanted)
    while position >= 0:
        if place := normal.original_place(position, position + len(wanted)):
            return place
        position = normal.text.find(wanted, position + 1)
    return None


def is_verbatim_span(span: QuoteSpan, text: str) -> bool:
    """Whether the span is the very wording of the text at its offsets."""
    return text[span.start : span.end] == span.quote


@lru_cache(maxsize=16)  # a document is asked for many quotes in a row
def normalise_text(text: str) -> _NormalText:
    """The form in which quotes are compared."""
    for shape, variants in _SHAPES.items():
        for variant in variants:
            text = text.replace(variant, shape)
    rare, spaces = _OffsetMap(), _OffsetMap()
    if not text.isascii():
        text = _apply_changes(text, _find_rare(text), rare)
    text = _apply_changes(text, ((match.start(), match.end(), " ") for match in _SPACES.finditer(text)), spaces)
    return _NormalText(text, rare, spaces)


def _find_rare(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _RARE.finditer(text):
        start, run, end = match.start(), match.group().rstrip(" "), match.end()
        if _PLAIN.issuperset(run):
            # Character by character, for a quote may begin between two ligatures.
            for position, char in enumerate(run[:-1], start):
                yield position, position + 1, _plain_form(char)
            start += len(run) - 1
        elif run[0] not in _PLAIN:
            start = max(0, start - 1)  # a combining mark belongs to the letter before it
        # A soft hyphen before a line break joins the halves of one word.
        yield start, end, _plain_form(text[start:end].rstrip(" "))


def _plain_form(stretch: str) -> str:
    return unicodedata.normalize("NFC", "".join(_LIGATURES.get(c, c) for c in stretch if c not in _INVISIBLE))


def _apply_changes(text: str, changes: Iterable[tuple[int, int, str]], shift: _OffsetMap) -> str:
    pieces: list[str] = []
    length = last = 0
    for start, end, new in changes:
        pieces += (text[last:start], new)
        length += start - last
        shift.starts.append(length)
        length += len(new)
        shift.ends.append(length)
        shift.old_starts.append(start)
        shift.old_ends.append(last := end)
    return "".join(pieces) + text[last:]
