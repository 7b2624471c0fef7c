"""Do the figures agree? Every number, unit, date, name, negation, direction and hedge of a statement against
the passages quoted for it, before and whatever any model says (X-03).

The checks doubt and never vouch: a statement that passes may still say something else than its passage, a
statement that fails is not published in those words. A figure must also be spelled as it is in the passage
("6.4" and not "6,400 million"), because a reader, and any program, looks for it there.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from assay.text.negation import Cue, Turn, Word, hedged, hedges, negations, turns, words
from assay.text.quantities import Quantity, When, quantities
from assay.text.sentences import sentences
from assay.text.words import STOP_WORDS, fold

Kind = Literal["figure", "unit", "date", "name", "negation", "direction", "hedge", "spelling"]


@dataclass(frozen=True, slots=True)
class Problem:
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class FiguresResult:
    problems: tuple[Problem, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.problems


def check(statement: str, quotes: Sequence[str], known: Collection[str] = ()) -> FiguresResult:
    """What in the statement its quotes do not bear out. `known` are names that need no quote: the document's
    title and host, the subjects of the question."""
    if statement in quotes:
        return FiguresResult()
    statement = _CITATION.sub(" ", statement)
    composed, passages = _composed(statement), [_composed(quote) for quote in quotes]
    problems = [
        *_figure_problems(statement, quotes),
        *_name_problems(composed, passages, known),
        *_polarity_problems(composed, passages),
    ]
    return FiguresResult(tuple(dict.fromkeys(problems)))


_CITATION = re.compile(r"\[S\d+\]")


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


# Figures


def _figure_problems(statement: str, quotes: Sequence[str]) -> Iterator[Problem]:
    offered = [quantity for quote in quotes for quantity in quantities(quote)]
    passage = "\n".join(quotes)
    doubted = False
    for quantity in quantities(statement):
        problem = _doubt(quantity, statement, offered, passage)
        if problem:
            doubted = True
            yield problem
    if not doubted and (strange := _printed(statement, worded=False) - _printed(passage, worded=True)):
        numbers = ", ".join(f"{number:.15g}" for number in sorted(strange))
        yield Problem("spelling", f"{numbers} is not spelled so in the quoted passage")


def _doubt(quantity: Quantity, statement: str, offered: list[Quantity], passage: str) -> Problem | None:
    shown = statement[quantity.start : quantity.end]
    if quantity.when and _date_agrees(quantity.when, offered):
        return None
    if quantity.kind == "date":
        return Problem("date", f"the date {shown} is not in the quoted passage")
    valued = [other for other in offered if _same_value(quantity, other, statement, passage)]
    if any(_same_measure(quantity, other, passage) for other in valued):
        return None
    if quantity.kind in ("year", "decade", "time"):
        return Problem("date", f"the date {shown} is not in the quoted passage")
    if valued and any(quantity.unit != other.unit for other in valued):
        return Problem("unit", f"the figure {shown} has another unit in the quoted passage")
    return Problem("figure", f"the figure {shown} is not in the quoted passage")


_SCALED = re.compile(r"\bin (thousands|millions|billions)\b", re.I)
_SCALES = {"thousands": 10**3, "millions": 10**6, "billions": 10**9}
_BOUND = re.compile(
    r"(?:at least|at most|up to|as much as|as many as|as little as|as low as|as high as|more than|"
    r"less than|from|over|under|minimum of|maximum of|low of|high of|between|and|to|or|[-–—])\s*\S{0,3}$",
    re.I,
)
_FIRST_YEAR = 1000  # what looks like one end of a range from here on may be a year, as in 1616-17
_ERROR = re.compile(r"uncertain|error|margin|plus or minus|±|\+/", re.I)


def _same_value(quantity: Quantity, other: Quantity, statement: str, passage: str) -> bool:
    if quantity.label or other.label:
        return quantity.label == other.label
    if (quantity.kind == "uncertainty") != (other.kind == "uncertainty") and not _ERROR.search(statement):
        return False
    if (
        other.ranged
        and not quantity.ranged
        and other.value < _FIRST_YEAR
        and not _BOUND.search(statement[: quantity.start])
    ):
        return False
    return any(
        _close(quantity, value) and _same_sign(quantity, value, other, statement, passage)
        for value in _readings(quantity, other, passage)
    )


def _readings(quantity: Quantity, other: Quantity, passage: str) -> Iterator[Decimal]:
    """The value of the passage's figure, and what it comes to under a table's "in millions" or as "5m"."""
    yield other.value
    if {quantity.kind, other.kind} == {"fraction", "percent"}:
        yield other.value / 100 if other.kind == "percent" else other.value * 100
    if other.unit == "m" or quantity.unit == "m":
        yield other.value * 10**6 if other.unit == "m" else other.value / 10**6
    if other.kind in ("number", "money", "year"):
        for scaled in _SCALED.finditer(passage):
            yield other.value * _SCALES[scaled[1].lower()]


def _close(quantity: Quantity, value: Decimal) -> bool:
    """Equal, or within the precision stated where the statement says that it rounds."""
    apart = abs(abs(quantity.value) - abs(value))
    if not quantity.approximate or quantity.kind in ("year", "ordinal"):
        return apart == 0
    return apart <= min(quantity.step / 2, abs(quantity.value) / 10)


def _same_sign(quantity: Quantity, value: Decimal, other: Quantity, statement: str, passage: str) -> bool:
    """A fall of 1% is -1%: the side without the sign must say it in words."""
    if (quantity.value < 0) == (value < 0):
        return True
    text, start = (statement, quantity.start) if value < 0 else (passage, None)
    said = [turn for turn in turns(text) if turn.family in ("amount", "result", "width")]
    if start is not None:
        said = [turn for turn in said if abs(turn.start - start) < 80]
    return any(not turn.rises for turn in said)


_ALIKE = {("pound", "GBP"), ("pound", "lb"), ("°", "°C"), ("°", "°F"), ("times", "")}
_UNIT_TOLD = {
    "year": r"\bage[ds]?\b|\bold\b",
    "%": r"%|per ?cent",
    "USD": r"\$|dollar|USD",
    "EUR": "€|euro|EUR",
}


def _same_measure(quantity: Quantity, other: Quantity, passage: str) -> bool:
    if {quantity.kind, other.kind} == {"fraction", "percent"}:
        return True
    ours, theirs = _measure(quantity), _measure(other)
    if ours == theirs or (ours, theirs) in _ALIKE or (theirs, ours) in _ALIKE or "m" in (ours, theirs):
        return True
    if quantity.kind == "ordinal" or other.kind == "ordinal":
        return False
    if not ours:
        # A unit may be left out, but 5% is not 5.
        return theirs not in ("%", "points", "fraction")
    return not theirs and ours not in ("%", "points", "fraction") and _told(ours, passage)


def _measure(quantity: Quantity) -> str:
    if quantity.kind in ("fraction", "ordinal", "decade"):
        return quantity.kind
    return quantity.unit


def _told(unit: str, passage: str) -> bool:
    """Whether the passage names the unit elsewhere: in a table's head, after the last of a list."""
    pattern = _UNIT_TOLD.get(unit)
    if pattern and re.search(pattern, passage):
        return True
    return any(unit == quantity.unit for quantity in quantities(passage)) or bool(
        re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", passage)
    )


def _date_agrees(when: When, offered: Sequence[Quantity]) -> bool:
    """No part of the date contradicts a date of the passage, and every part of it is told there."""
    dates = [other.when for other in offered if other.when] + [
        When(int(other.value)) for other in offered if other.kind == "number" and 1000 <= other.value <= 2999
    ]
    fitting = [date for date in dates if _fits(when, date)]
    if when.fiscal and not any(date.fiscal for date in fitting):
        return False
    whole = any(all(theirs == ours for ours, theirs in _parts(when, date)) for date in fitting)
    # "On 29 July" in a passage that names one year only.
    years = {date.year for date in dates if date.year}
    partial = when._replace(year=None)
    return whole or (years == {when.year} and any(date[:4] == partial[:4] for date in fitting))


def _parts(when: When, date: When) -> Iterator[tuple[object, object]]:
    return ((ours, theirs) for ours, theirs in zip(when[:4], date[:4], strict=True) if ours)


def _fits(when: When, date: When) -> bool:
    parts = list(_parts(when, date))
    return all(not theirs or ours == theirs for ours, theirs in parts) and any(theirs for _, theirs in parts)


_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SMALL_WORD = re.compile(rf"\b(?:{'|'.join(_SMALL)})\b", re.I)
_COUNTS = [(float(value), re.compile(rf"\b{word}\b", re.I)) for value, word in enumerate(_SMALL) if value > 1]


def _printed(text: str, *, worded: bool) -> set[float]:
    """The numbers of a text as a checker outside reads them: unsigned digits, and small number words."""
    text = _CITATION.sub(" ", text if worded else _SMALL_WORD.sub(" ", text))
    digits = {float(re.sub(r"[,\u00a0\u202f+−-]", "", match)) for match in _NUMBER.findall(text)}
    return digits | {value for value, word in _COUNTS if word.search(text)}


# Names

_TOKEN = re.compile(r"[^\W_](?:\w|[’'&.-](?=\w))*")
_OPENS = re.compile(r"(?:^|[:.!?…]\s|[“\"‘(\[]|[-–—•*]\s)\s*$")
_ORDINARY_END = re.compile(r"(?:tion|sion|ment|ness|ity|ing|ism|ance|ence|ship|ers|ors|ists|ies|[^su]s|ed|ly)$")
_ORDINARY = frozenset(
    "revenue profit income growth demand supply trade output price inflation unemployment research "
    "work study data evidence people everyone someone anyone life water energy power oil gas food "
    "music art history science health cancer treatment support use access safety security education "
    "society culture industry business capital debt cash total overall net gross average cost wage "
    "labour labor land air weather climate warming today yesterday tomorrow early late recent new old "
    "most many several some few half both each every all another other such one two three four five "
    "six seven eight nine ten researcher scientist critic police government parliament congress "
    "management staff production construction travel tourism traffic crime war peace hydrogen oxygen "
    "carbon steel gold silver copper lithium nuclear solar wind coal according despite although though "
    "since because unlike like given based compared only even still then thus hence therefore moreover "
    "furthermore nevertheless instead meanwhile later earlier further first second third last next "
    "together here there yet nearly almost about roughly around approximately additionally finally "
    "also neither either nothing none nobody yes".split()
)
_VERB = re.compile(r"\s+(?:is|was|are|were|has|had|have|will|would|did|does|can|could|says|said|won|led|made|\w+ed)\b")
_SAME_NAME = tuple(
    frozenset(group.split())
    for group in (
        "us usa united states america american americans",
        "uk united kingdom britain british",
        "eu european union europe",
        "un united nations",
        "france french",
        "netherlands dutch holland",
        "spain spanish",
        "greece greek greeks",
        "switzerland swiss",
        "poland polish",
        "turkey turkish türkiye turkiye",
        "fed federal reserve",
        "ceo chief executive officer",
    )
)


def _name_problems(statement: str, quotes: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    vocabulary = _Vocabulary([*quotes, *known])
    figures = [(quantity.start, quantity.end) for quantity in quantities(statement)]
    tokens = [match for match in _TOKEN.finditer(statement) if not _within(match, figures)]
    for index, match in enumerate(tokens):
        if not _is_name(statement, tokens, index) or vocabulary.has(match.group()):
            continue
        if not vocabulary.has_short(_run(statement, tokens, index)):
            yield Problem("name", f"the name {_bare(match.group())} is not in the quoted passage")


def _within(match: re.Match[str], figures: Sequence[tuple[int, int]]) -> bool:
    return any(start <= match.start() < end for start, end in figures)


def _is_name(statement: str, tokens: Sequence[re.Match[str]], index: int) -> bool:
    token = tokens[index].group()
    if not token[0].isupper() or token in ("I", "A"):
        return False
    if not _OPENS.search(statement[max(0, tokens[index].start() - 8) : tokens[index].start()]):
        return True
    plain = fold(_bare(token))
    if plain in STOP_WORDS | _ORDINARY:
        return False
    if any(letter.isupper() or letter.isdigit() for letter in token[1:]) or token != _bare(token):
        return True
    following = statement[tokens[index].end() :]
    if re.match(r"\s[^\W\d_]", following) and following[1].isupper():
        return True
    return bool(_VERB.match(following)) and not _ORDINARY_END.search(plain)


def _bare(token: str) -> str:
    return re.sub(r"(?:['’]s|['’])$", "", token)


def _run(statement: str, tokens: Sequence[re.Match[str]], index: int) -> list[str]:
    """The capitalised words around one, which together may be what an acronym stands for."""
    first = last = index
    while first and tokens[first - 1].group()[0].isupper() and _touch(statement, tokens, first - 1):
        first -= 1
    while last + 1 < len(tokens) and tokens[last + 1].group()[0].isupper() and _touch(statement, tokens, last):
        last += 1
    return [match.group() for match in tokens[first : last + 1]]


def _touch(statement: str, tokens: Sequence[re.Match[str]], index: int) -> bool:
    between = statement[tokens[index].end() : tokens[index + 1].start()]
    return between in (" ", ". ", " of ", " of the ", " for ", " and ")


class _Vocabulary:
    """The words of the passages, as far as a name may be told by them."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = [_bare(match.group()) for text in texts for match in _TOKEN.finditer(text)]
        self.initials = "".join(fold(word)[:1] for word in found)
        self.main_initials = "".join(fold(word)[:1] for word in found if fold(word) not in STOP_WORDS)
        self.words = {form for word in found for form in _forms(word)}

    def has(self, token: str) -> bool:
        token = _bare(token)
        if self._has(fold(token).replace(".", "")):
            return True
        parts = [part for part in re.split(r"[-’'&./]", token) if part]
        if len(parts) > 1 and all(part[0].islower() or part.isdigit() or self._has(fold(part)) for part in parts):
            return True
        short = fold(token).replace(".", "")
        return token.isupper() and 2 <= len(short) <= 6 and (short in self.initials or short in self.main_initials)

    def _has(self, word: str) -> bool:
        if word in self.words or (len(word) == 1 and any(other.startswith(word) for other in self.words)):
            return True
        if any(word in group and group & self.words for group in _SAME_NAME):
            return True
        return any(_demonym(word, other) for other in self.words if other[:4] == word[:4])

    def has_short(self, run: Sequence[str]) -> bool:
        letters = "".join(fold(word)[:1] for word in run)
        return len(letters) > 1 and letters in self.words


def _forms(word: str) -> Iterator[str]:
    plain = fold(word)
    yield plain
    yield plain.replace(".", "")
    yield from re.split(r"[-’'&.]", plain)


_DEMONYM = ("ians", "ian", "ans", "an", "ese", "ish", "i", "n", "s")


def _demonym(left: str, right: str) -> bool:
    """German and Germany, Italy and Italian, Republican and Republicans; not Niger and Nigeria."""
    for word, place in ((left, right), (right, left)):
        if place == f"{word}y":
            return True
        for suffix in _DEMONYM:
            base = word.removesuffix(suffix)
            if base != word and len(base) >= 4 and place.startswith(base) and place[len(base) :] in _PLACE_ENDS:
                return suffix != "s" or place == base
    return False


_PLACE_ENDS = ("", "a", "e", "y", "o", "en", "ia")


# Negation, direction, hedge


@dataclass(frozen=True, slots=True)
class _Reading:
    """One sentence with everything that can turn it round."""

    text: str
    content: frozenset[str]
    negations: tuple[Cue, ...]
    hedges: tuple[Cue, ...]
    turns: tuple[Turn, ...]

    def denies(self, word: str) -> bool:
        return any(word in cue.scope for cue in self.negations)

    def shared(self, other: "_Reading") -> int:
        return len(self.content & other.content)


def _read(text: str) -> list[_Reading]:
    pieces = [piece.text for piece in sentences(text)] or [text]
    return [_Reading(piece, _content(words(piece)), negations(piece), hedges(piece), turns(piece)) for piece in pieces]


def _content(found: Sequence[Word]) -> frozenset[str]:
    return frozenset(word.stem for word in found if word.text not in STOP_WORDS)


def _polarity_problems(statement: str, quotes: Sequence[str]) -> Iterator[Problem]:
    readings = [reading for quote in quotes for reading in _read(quote)]
    for ours in _read(statement):
        if not readings or any(ours.text == reading.text for reading in readings):
            continue
        nearest = _nearest(ours, readings)
        yield from _negation_problems(ours, readings, nearest)
        yield from _direction_problems(ours, readings)
        yield from _hedge_problems(ours, nearest)


def _nearest(ours: _Reading, readings: Sequence[_Reading]) -> list[_Reading]:
    most = max((ours.shared(reading) for reading in readings), default=0)
    return [reading for reading in readings if most and ours.shared(reading) == most]


# Words that deny without a negation of their own; a statement may turn them into one.
_DENYING = re.compile(
    r"\b(?:un\w{3,}(?:ed|able|ful|ing|nown|ear)|im?possible|absen\w+|lack\w*|few|only|fail\w*|against|exclu\w+|"
    r"reject\w*|oppos\w+|ban|bans|banned|prevent\w*|stop\w*|ceas\w+|refus\w+|avoid\w*|false|wrong|untrue|"
    r"former|formerly|different\w*|missing|insufficient\w*|inconclusive|zero|unlike|"
    r"withdr[ae]w\w*|cancel\w*|halt\w*|suspend\w*|block\w*|declin\w+|in(?:valid|effective|accurate|complete))\b",
    re.I,
)


def _negation_problems(ours: _Reading, readings: Sequence[_Reading], nearest: Sequence[_Reading]) -> Iterator[Problem]:
    for cue in ours.negations:
        holders = [reading for reading in readings if cue.word in reading.content]
        if any(reading.denies(cue.word) for reading in holders):
            continue
        if holders:
            yield Problem("negation", f'the statement says "{cue.cue}" of what the quoted passage asserts')
        elif not any(reading.negations or _denying(reading) for reading in nearest):
            yield Problem("negation", f'the statement says "{cue.cue}" and the quoted passage denies nothing')
    if ours.negations or _denying(ours):
        return
    dropped = [_dropped(ours, reading.negations) for reading in nearest]
    if dropped and all(dropped):
        yield Problem("negation", f'the quoted passage says "{dropped[0]}" and the statement does not')


def _denying(reading: _Reading) -> bool:
    return bool(_DENYING.search(reading.text))


def _dropped(ours: _Reading, cues: Sequence[Cue]) -> str:
    return next((cue.cue for cue in cues if cue.word and cue.word in ours.content), "")


def _direction_problems(ours: _Reading, readings: Sequence[_Reading]) -> Iterator[Problem]:
    for turn in ours.turns:
        rivals = [
            (len(turn.clause & other.clause), ours.shared(reading), other)
            for reading in readings
            for other in reading.turns
            if other.family == turn.family
        ]
        best = max((rival[:2] for rival in rivals), default=(0, 0))
        # Without a word in common the two clauses are about the same only if the sentences plainly are.
        if not best[0] and 2 * best[1] < len(ours.content):
            continue
        nearest = [rival[2] for rival in rivals if rival[:2] == best]
        if nearest and all(other.rises != turn.rises for other in nearest):
            said = f'the statement says "{turn.cue}" where the quoted passage says "{nearest[0].cue}"'
            yield Problem("direction", said)


def _hedge_problems(ours: _Reading, nearest: Sequence[_Reading]) -> Iterator[Problem]:
    if hedged(ours.text):
        return
    dropped = [next((cue.cue for cue in reading.hedges if _covered(cue, ours)), "") for reading in nearest]
    if dropped and all(dropped):
        yield Problem("hedge", f'the quoted passage says "{dropped[0]}" and the statement asserts it flatly')


def _covered(cue: Cue, ours: _Reading) -> bool:
    """Whether the statement is about what the hedge qualifies."""
    shared = sum(word in ours.content for word in cue.scope)
    return bool(cue.scope) and ((bool(cue.word) and cue.word in ours.content) or 2 * shared > len(cue.scope))
