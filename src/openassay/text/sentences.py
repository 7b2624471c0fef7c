"""Where sentences begin and end. Offsets are kept, because a sentence is evidence only as a span."""

import re
import unicodedata
from typing import NamedTuple
from zlib import crc32

from openassay.models.evidence import Passage
from openassay.text.words import STOP_WORDS, UNSPACED, fold


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A full stop after one of these goes with what follows, whatever that is.
_LEADING = _word_set(
    "mr mrs ms messrs mme dr prof gov govs sen sens rep reps gen col lt capt sgt rev hon adm maj cmdr supt mt v vs eg "
    "ie e.g i.e cf approx ca viz bzw evtl ggf inkl sog vgl mio mrd geb sra srta ee"
)
# German abbreviations in two parts, "z. B. Autos", and what follows a day or a century: "19. Jahrhundert".
_PARTED = frozenset({("z", "b"), ("d", "h"), ("u", "a"), ("v", "chr"), ("n", "chr")})
_ORDERED = _word_set(
    "januar februar marz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts "
    "jahrhunderte jahrestag lebensjahr lebensjahres jahrtausend jahrtausends"
)
# With a number after it each of these is a label, as in "No. 5"; "no" is a word otherwise.
_LABEL = _word_set("no nos fig figs vol vols pp p ch sec art eq eqs ref refs c")
# After these a sentence may end, and does where the next word is one that sentences begin with: "Apple Inc. The
# company" ends, "Apple Inc. reported", "Apple Inc. CEO Tim Cook" and "Jan. 5" do not.
_TRAILING = _word_set(
    "inc corp ltd co llc plc bros llp al dept est ed eds st ave blvd rd sr jr univ assn mfg intl "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri ft op cit resp trans ph.d assoc"
)
# States as news agencies write them. Several are words in small letters: "the ore. It".
_STATES = _word_set(
    "Ala Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky La Md Mass Mich Minn Miss Mo Mont Neb Nev Okla Ore Pa Tenn "
    "Tex Va Vt Wash Wis Wyo"
)
_OPENERS = STOP_WORDS | _word_set(
    "according although despite later meanwhile moreover nevertheless nonetheless one two three several today now next "
    "last thus therefore yet previously recently since still finally instead first second third unlike"
)
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_]{1,3})+")  # U.S, D.C, p.m, W.Va
_NUMBERING = re.compile(r"\d{1,2}|[A-Za-z]")  # of a list item
_BARE_NUMBERING = re.compile(r"\d{1,2}[.)]")
_CLOCK = _word_set("a.m p.m")
_ZONES = _word_set(
    "eastern central mountain pacific est edt cst cdt mst mdt pst pdt et ct mt pt gmt bst utc cet cest ist"
)
_DAYS = _word_set("monday tuesday wednesday thursday friday saturday sunday")
_REFERENCES = r"(?: ?\[(?:\d{1,3}|[a-z]|note \d+|citation needed)\])*"
_END = re.compile(
    rf"(?<![.!?…。！？؟])[.!?…。！？؟]+(?:[ \u00a0\u202f]»)?[\"'”’“»)\]]*{_REFERENCES}(?=\s|$)|[。！？][”’」』）》]*"
)
_TAIL = re.compile(rf"[\"'”’“»」』）》)\]]*{_REFERENCES}$")
_WORD_BEFORE = re.compile(r"([^\s(\[\"'“‘]+)$")
_NEXT = re.compile(r"[\s\"'“‘(\[]*([^\W_][\w’'-]*(?:\.(?=\w)\w*)*)(\.?)")
_LINE = re.compile(r"[^\n]+")
_LONGEST = 1200  # code points; a longer run is a table or a list without stops and is no sentence


class TextSpan(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int
    text: str


def split_sentences(text: str, start: int = 0, end: int | None = None) -> list[TextSpan]:
    """Sentences of `text[start:end]` with offsets into `text`. A line break always ends a sentence:
    snapshots are reflowed, so a line is a paragraph, a heading, a list item or a table row."""
    found = []
    for line in _LINE.finditer(text, start, len(text) if end is None else end):
        pieces, begin = [], line.start()
        for match in _END.finditer(text, line.start(), line.end()):
            if match.group()[0] in "。！？" or _ends_sentence(text, begin, match, line.end()):
                pieces.append(_make_span(text, begin, match.end()))
                begin = match.end()
        pieces.append(_make_span(text, begin, line.end()))
        found += [p for p in pieces if 0 < len(p.text) <= _LONGEST and not _BARE_NUMBERING.fullmatch(p.text)]
    return found


def _ends_sentence(text: str, begin: int, mark: re.Match[str], end: int) -> bool:
    """Whether a mark ends a sentence rather than an abbreviation, an initial, a label, the number of an item or a name
    like "Yahoo!"."""
    following = _NEXT.match(text, mark.end(), end)
    if following and text[following.start(1)].islower() and not text[mark.end() : following.start(1)].strip():
        return False
    if not mark.group().startswith(".") or mark.group().startswith(".."):
        return True
    before = _WORD_BEFORE.search(text, max(begin, mark.start() - 24), mark.start())
    word = before.group(1) if before else ""
    if not word or following is None:
        return True
    if text[begin : mark.start()].strip() == word and _NUMBERING.fullmatch(word):
        return False
    plain, after = word.lower(), fold(following.group(1))
    if plain in _LEADING or (plain in _LABEL and any(character.isdigit() for character in following.group(1))):
        return False
    if (plain, after) in _PARTED or (plain.isdigit() and len(plain) < 3 and after in _ORDERED):
        return False
    if plain in _CLOCK:
        return after not in _ZONES | _DAYS
    initial = len(word) == 1 and word.isupper()
    if initial or plain in _TRAILING or word in _STATES or _DOTTED.fullmatch(plain):
        initial_follows = len(following.group(1)) == 1 and bool(following.group(2))
        return after in _OPENERS and not initial_follows
    return True


_BULLET = re.compile(r"(?:[-*•▪◦]|\d{1,2}[.)])\s+(?=\S)")


def _make_span(text: str, start: int, end: int) -> TextSpan:
    raw = text[start:end]
    lead = len(raw) - len(raw.lstrip())
    trimmed = raw.strip()
    bullet = _BULLET.match(trimmed)
    if bullet:
        lead += bullet.end()
        trimmed = trimmed[bullet.end() :]
    return TextSpan(start + lead, start + lead + len(trimmed), trimmed)


# All that stands in "By Jane Roe of The Herald staff." and "Reporting by Jane Roe; editing by John Doe." besides names.
_BYLINE = frozenset("by of and for in the with staff additional reporting editing written compiled".split())


def is_statement(sentence: str) -> bool:
    """Whether a sentence says something on its own: no heading, byline, menu, question or fragment."""
    if is_table_row(sentence):
        return True
    words = sentence.split()
    unspaced = 0 if sentence.isascii() else sum(map(len, UNSPACED.findall(sentence)))
    letters, digits = sum(map(str.isalpha, sentence)), sum(map(str.isdigit, sentence))
    # Two sales figures with their years take a plain sentence down to 47% letters; a row of bare numbers has none.
    if (
        len(words) + unspaced * 2 // 3 < 4
        or len(words) + unspaced // 3 > 80
        or letters < len(sentence) * 0.35
        or letters + digits < len(sentence) * 0.6
    ):
        return False
    if not unspaced and any(word[:1].isupper() for word in words) and sum(word[:1].islower() for word in words) < 2:
        return False  # "Date: August 3, 2023 Apple Inc." names things and says nothing of them
    small = [word.lower().strip(".,;") for word in words]
    if "by" in small[:3] and all(word[:1].isupper() or one in _BYLINE for word, one in zip(words, small, strict=True)):
        return False
    return _TAIL.sub("", sentence).endswith((".", "!", "。", "！")) and not sentence.endswith(("...", "…"))


def is_table_row(sentence: str) -> bool:
    """A table row written out with its headings, as 'Team: SH0ES; Year: 2022'."""
    cells = sentence.split("; ")
    return len(cells) >= 2 and all(": " in cell for cell in cells) and any(c.isdigit() for c in sentence)


# Cutting a document into passages that can be found and read on their own.

# About 80 words: long enough to hold a statement with its context, short enough for a 256-token encoder
# and for BM25 to tell one paragraph from the next.
TARGET_PASSAGE = 500
LONGEST_PASSAGE = 1000


def split_passages(document: str, text: str) -> list[Passage]:
    """Consecutive passages of whole sentences. They cover every sentence and never overlap."""
    pieces: list[TextSpan] = []
    covered = 0
    for piece in split_sentences(text):
        # A line without a sentence (a long table row) is cut so that nothing is lost.
        pieces += (*_cut_long_text(text, covered, piece.start), piece)
        covered = piece.end
    pieces += _cut_long_text(text, covered, len(text))
    groups: list[list[TextSpan]] = []
    for piece in pieces:
        # A sentence joins while the passage is short; a blank line ends one that is long enough.
        fits = False
        if groups and piece.end - groups[-1][0].start <= LONGEST_PASSAGE:
            start, end = groups[-1][0].start, groups[-1][-1].end
            is_blank = "\n\n" in text[end : piece.start]
            fits = end - start < (TARGET_PASSAGE // 2 if is_blank else TARGET_PASSAGE)
        if fits:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [
        Passage(document=document, start=group[0].start, end=group[-1].end, text=text[group[0].start : group[-1].end])
        for group in groups
    ]


def _cut_long_text(text: str, start: int, end: int) -> list[TextSpan]:
    if end - start < LONGEST_PASSAGE:
        return []
    cuts = []
    while start < end:
        stop = min(end, start + LONGEST_PASSAGE)
        space = text.rfind(" ", start, stop)
        stop = space if stop < end and space > start else stop
        if text[start:stop].strip():
            cuts.append(TextSpan(start, stop, text[start:stop]))
        start = stop
    return cuts


# Shingles: every four words in a row of a text, as numbers, to tell how much of one text stands in another.

SHINGLE_SIZE = 4  # words
MOST_WORDS = 20_000  # words looked at; more would only slow the comparison

# Letters and figures alone make words: extractors disagree on everything between them, and "end.Next" must be the two
# words it is elsewhere. In scripts without spaces every character counts as one.
_SIGN = re.compile("[\u00a1-\u00bf\u2000-\u2bff\u3000-\u303f]")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_ASCII_SIGNS = bytes(code if code >= 128 or chr(code).isalnum() else 32 for code in range(256))


def shingles(text: str) -> frozenset[int]:
    """A text of fewer words than a shingle has is one by itself; none at all have none.

    The same in every process: figures are hashed, not words, whose hash Python changes at each start."""
    # Split as bytes, which takes a fifth of the time that a pattern over characters does.
    folded = text.casefold()
    if not folded.isascii():
        folded = _UNSPACED.sub(r" \g<0> ", _SIGN.sub(" ", unicodedata.normalize("NFKD", folded)))
    words = folded.encode(errors="replace").translate(_ASCII_SIGNS).split()[:MOST_WORDS]
    codes = list(map(crc32, words))
    if len(codes) < SHINGLE_SIZE:
        return frozenset({hash(tuple(codes))} if codes else ())
    return frozenset(map(hash, zip(codes, codes[1:], codes[2:], codes[3:], strict=False)))


def containment(left: frozenset[int], right: frozenset[int]) -> float:
    """The share of the smaller that stands in the other, 0 to 1. Not Jaccard: a copy inside other boilerplate has a low
    Jaccard but is still a copy."""
    return len(left & right) / min(len(left), len(right)) if left and right else 0.0
