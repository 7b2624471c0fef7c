"""Where sentences begin and end. Offsets are kept, because a sentence is evidence only as a span."""

import re
from typing import NamedTuple

from assay.text.words import STOP_WORDS, fold


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A full stop after one of these goes with what follows, whatever that is.
_LEADING = _words(
    "mr mrs ms messrs mme dr prof gov sen rep gen col lt capt sgt rev hon adm maj cmdr supt mt vs eg ie e.g i.e cf "
    "approx ca viz"
)
# With a number after it each of these is a label, as in "No. 5"; "no" is a word otherwise.
_LABEL = _words("no nos fig figs vol vols pp p ch sec art eq eqs ref refs")
# After these a sentence may end, and does where the next word is one that sentences begin with: "Apple Inc. The
# company" ends, "Apple Inc. reported", "Apple Inc. CEO Tim Cook" and "Jan. 5" do not.
_TRAILING = _words(
    "inc corp ltd co llc plc bros llp al dept est ed eds st ave blvd rd sr jr univ assn mfg intl "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri ft op cit resp trans ph.d"
)
_OPENERS = STOP_WORDS | _words(
    "according although despite later meanwhile moreover nevertheless nonetheless one two three several today now next "
    "last thus therefore yet previously recently since still finally instead first second third unlike"
)
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")  # U.S, D.C, p.m
_NUMBERING = re.compile(r"\d{1,2}|[A-Za-z]")  # of a list item
_CLOCK = _words("a.m p.m")
_ZONES = _words("eastern central mountain pacific est edt cst cdt mst mdt pst pdt et ct mt pt gmt bst utc cet cest ist")
_DAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
_REFERENCES = r"(?:\[(?:\d{1,3}|[a-z]|note \d+|citation needed)\])*"
_END = re.compile(rf"(?<![.!?…。！？؟])[.!?…。！？؟]+[\"'”’)\]]*{_REFERENCES}(?=\s|$)|[。！？]")
_TAIL = re.compile(rf"[\"'”’)\]]*{_REFERENCES}$")
_WORD_BEFORE = re.compile(r"([^\s(\[\"'“‘]+)$")
_NEXT = re.compile(r"[\s\"'“‘(\[]*([^\W_][\w’'-]*(?:\.(?=\w)\w*)*)(\.?)")
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
        if match.group()[0] not in "。！？" and not _ends(text, begin, match, end, first=begin == start):
            continue
        pieces.append(_piece(text, begin, match.end()))
        begin = match.end()
    pieces.append(_piece(text, begin, end))
    return [piece for piece in pieces if 0 < len(piece.text) <= _LONGEST]


def _ends(text: str, begin: int, mark: re.Match[str], end: int, first: bool) -> bool:
    """Whether a mark ends a sentence rather than an abbreviation, an initial, a label or a name like "Yahoo!"."""
    following = _NEXT.match(text, mark.end(), end)
    if following and text[following.start(1)].islower() and not text[mark.end() : following.start(1)].strip():
        return False
    if not mark.group().startswith(".") or mark.group().startswith(".."):
        return True
    before = _WORD_BEFORE.search(text, max(begin, mark.start() - 24), mark.start())
    word = before.group(1) if before else ""
    if not word or following is None:
        return True
    if first and text[begin : mark.start()].strip() == word and _NUMBERING.fullmatch(word):
        return False
    return _parts(word, following.group(1), initial_follows=len(following.group(1)) == 1 and bool(following.group(2)))


def _parts(word: str, following: str, initial_follows: bool) -> bool:
    """Whether a full stop parts two words of which the second does not begin with a small letter."""
    plain, after = word.lower(), fold(following)
    if plain in _LEADING or (plain in _LABEL and any(character.isdigit() for character in following)):
        return False
    if plain in _CLOCK:
        return after not in _ZONES | _DAYS
    initial = len(word) == 1 and word.isupper()
    if initial or plain in _TRAILING or _DOTTED.fullmatch(plain):
        return after in _OPENERS and not initial_follows
    return True


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
    letters, digits = sum(map(str.isalpha, sentence)), sum(map(str.isdigit, sentence))
    # Two sales figures with their years take a plain sentence down to 47% letters; a row of bare numbers has none.
    if not 4 <= len(words) <= 80 or letters < len(sentence) * 0.35 or letters + digits < len(sentence) * 0.6:
        return False
    if any(word[:1].isupper() for word in words) and sum(word[:1].islower() for word in words) < 2:
        return False  # "Date: August 3, 2023 Apple Inc." names things and says nothing of them
    return _TAIL.sub("", sentence).endswith((".", "!", "。", "！")) and not sentence.endswith(("...", "…"))


def is_row(sentence: str) -> bool:
    """A table row written out with its headings, as 'Team: SH0ES; Year: 2022'."""
    cells = sentence.split("; ")
    return len(cells) >= 2 and all(": " in cell for cell in cells) and any(c.isdigit() for c in sentence)
