"""Companies that are compared. Beside each other their names need no capitals: "compare ford and gm"."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.companies.described import Stretch
from assay.companies.names import parse
from assay.companies.tokens import Token, bare, tokens
from assay.text.words import STOP_WORDS

if TYPE_CHECKING:
    from assay.companies.register import Register

BUSINESS = frozenset(
    "stock stocks shares share price market ticker trading revenue revenues earnings sales profit profits results "
    "dividend valuation financials quarter ceo cfo reported reports announced announces said says stores invest "
    "investment investors portfolio shareholders competitors buy sell".split()
)
_ANYTHING = "between"  # "the gap between target and visa": not without a name that can be nothing else
_CUES = frozenset((_ANYTHING, *"compare comparing contrast".split()))
_BETWEEN = frozenset("vs versus compared".split())
_JOINS = _BETWEEN | frozenset("and or with to against than".split())
_MOST_WORDS = 4  # of a name


def compared(register: "Register", text: str) -> Iterator[Stretch]:
    words = tokens(text)
    read = 0
    for at in range(len(words)):
        if at >= read and (start := _beginning(register, text, words, at)) is not None:
            found, read = _sides(register, text, words, max(start, read))
            if words[at].word != _ANYTHING or any(_is_plain(register, text, side) for side in found):
                yield from found


def _beginning(register: "Register", text: str, words: list[Token], at: int) -> int | None:
    """Where the first of those that are compared begins, if a word compares any."""
    if words[at].word in _CUES:
        return at + 1
    starts = range(max(0, at - _MOST_WORDS), at) if words[at].word in _BETWEEN else ()
    return next((start for start in starts if _name(register, text, words[start:at]) is not None), None)


def _sides(register: "Register", text: str, words: list[Token], at: int) -> tuple[list[Stretch], int]:
    """All that are named one after the other, or nothing where one of them is no well-known company; and where they
    end."""
    found: list[Stretch] = []
    while side := _longest(register, text, words, at):
        end, stretch = side
        found.append(stretch)
        at = end
        while at < len(words) and words[at].word in _JOINS:
            at += 1
        if at == end and not _is_listed(text, words, end):
            return found if len(found) > 1 and _may_end(text, words, end) else [], end
    return [], at


def _longest(register: "Register", text: str, words: list[Token], at: int) -> tuple[int, Stretch] | None:
    for end in range(min(len(words), at + _MOST_WORDS), at, -1):
        if (place := _name(register, text, words[at:end])) is not None:
            start = words[at].start
            return end, Stretch(start, start + len(bare(text[start : words[end - 1].end])), place)
    return None


def _name(register: "Register", text: str, words: list[Token]) -> int | None:
    """Which well-known company people call so."""
    if words[-1].word in _JOINS:  # "ford and": no part of a name counts at its end
        return None
    return register.nicknames.places.get(parse(bare(text[words[0].start : words[-1].end])).key)


def _is_plain(register: "Register", text: str, side: Stretch) -> bool:
    return register.nicknames.is_unmistakable(parse(text[side.start : side.end]))


def _is_listed(text: str, words: list[Token], end: int) -> bool:
    return end < len(words) and text[words[end - 1].end : words[end].start].strip() == ","


def _may_end(text: str, words: list[Token], end: int) -> bool:
    """ "Compare target and block sizes" speaks of sizes."""
    if end == len(words) or words[end - 1].text != bare(words[end - 1].text):
        return True
    between = text[words[end - 1].end : words[end].start]
    return not between.isspace() or words[end].word in STOP_WORDS or words[end].word in BUSINESS
