"""Figures of a text: numbers with unit and magnitude, money, percentages, dates, ranges, uncertainties.

Every pattern, here and in `dates`, `spelled` and `units`, is anchored on a character it must consume and has no
nested repetition, so a hostile text costs no more than an ordinary one of the same length (1 MB of digits, months
or number words: see the tests).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from assay.text.dates import DATE_FORMS, DAY_OF_MONTH, When, clock, dates
from assay.text.spelled import AND_A_HALF, FRACTIONS, ORDINALS, WORD_FORM, WORDS, count, number_words, parts_of
from assay.text.units import BASIS, CURRENCY, MAGNITUDE_WORD, MARK, PERCENT, POINTS, scale_at, unit_at

Kind = Literal[
    "number",
    "percent",
    "points",  # percentage points; basis points are brought to them
    "money",
    "fraction",  # half, two thirds
    "ordinal",
    "year",
    "decade",
    "date",
    "time",
    "label",  # versions, scores, numbers too long to be figures: compared as they are printed
    "uncertainty",
]


@dataclass(frozen=True, slots=True)
class Quantity:
    value: Decimal
    unit: str
    kind: Kind
    start: int
    end: int
    approximate: bool = False
    ranged: bool = False  # one end of "2-3%", so not a figure on its own
    step: Decimal = Decimal(1)  # what the last digit counts: 0.1 in 67.4, 100 million in $6.4 billion
    when: When | None = None
    label: str = ""


_DASHES = r"\-−–"
_CITATION = re.compile(r"\[S?\d{1,4}(?:\s?[,–-]\s?S?\d{1,4}){0,20}\]")
_LIST_MARK = re.compile(r"^[ \t]*\(?(?:\d{1,2}[.)]|[-*•])[ \t]", re.M)
_SPACE = "[ \u00a0\u202f\u2009]"

_FIGURE = re.compile(
    "|".join(
        (
            DATE_FORMS,
            r"(?P<slash>(?<![\w./])\d{1,4}/\d{1,4}(?:/\d{2,4})?(?![\d/]))",
            rf"(?P<number>(?<![\w./])(?:(?P<sign>[+{_DASHES}])|(?P<minus>minus\s))?(?:(?P<mark>{MARK})\s?)?"
            rf"(?P<inner>\((?!{DAY_OF_MONTH})|[−-])?(?P<digits>\d{{1,3}}(?:{_SPACE}\d{{3}}(?!\d))+(?:[.,]\d+)?|\d+(?:[.,]\d+)*|\.\d+))",
            WORD_FORM,
        )
    ),
)
_WORD_CAPITALS = re.compile(rf"\b(?:{'|'.join(WORDS)}|half)\b", re.I)
_ORDINAL_END = re.compile(r"(?:st|nd|rd|th)\b")
_APPROXIMATE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|circa|ca\.|c\.|some|close to|"
    r"just over|just under|an estimated|estimated|or so)\s(?:the\s|an?\s)?|[~≈∼]\s?)$",
    re.I,
)
_RANGE = re.compile(r"\s?[-–—]\s?|\s(?:to|or)\s")
_ERROR = re.compile(r"\s?(?:±|\+/[-−]|\+-|plus or minus)\s?")
_FARTHEST = 100  # times what may be a year; a range is not so wide
_REMEMBERED = 4096  # characters; longer texts are not asked about again and again
_LONGEST = 24  # characters; what is longer is an identifier, and Decimal would round it


def quantities(text: str) -> tuple[Quantity, ...]:
    """All figures of the text in order; citation marks and list numbering are not figures."""
    return _known(text) if len(text) <= _REMEMBERED else _found(text)


# A sentence is looked at as a finding, a claim, a witness and a part of the report: five times and more in a run.
@lru_cache(maxsize=4096)
def _known(text: str) -> tuple[Quantity, ...]:
    return _found(text)


def _found(text: str) -> tuple[Quantity, ...]:
    clean = _LIST_MARK.sub(_blank, _CITATION.sub(_blank, text))
    return tuple(_related(clean, list(_scan(clean))))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


class _Found(NamedTuple):
    quantity: Quantity
    scale: Decimal  # the magnitude word's factor, which the other end of a range may share


def _scan(text: str) -> Iterator[_Found]:
    position = 0
    lowered = _WORD_CAPITALS.sub(lambda match: match.group().lower(), text)
    while match := _FIGURE.search(lowered, position):
        found = list(_read(text, match))
        yield from found
        position = max([match.end(), *(item.quantity.end for item in found)])


def _read(text: str, match: re.Match[str]) -> Iterator[_Found]:
    if match["number"] is not None:
        yield from _number(text, match)
    elif match["word"] is not None:
        yield from _worded(text, match)
    elif match["clock"] is not None or match["slash"] is not None:
        kind: Kind = "time" if match["clock"] is not None else "label"
        yield _plain(match, Decimal(0), kind, label=clock(match.group()))
    elif match["decade"] is not None:
        yield _plain(match, Decimal(match["y8"]), "decade")
    else:
        for when in dates(match):
            value = Decimal(when.year or 0)
            kind = "year" if when == When(year=when.year) else "date"
            yield _plain(match, value, kind, when=when)


def _plain(match: re.Match[str], value: Decimal, kind: Kind, when: When | None = None, label: str = "") -> _Found:
    return _Found(Quantity(value, "", kind, match.start(), match.end(), when=when, label=label), Decimal(1))


def _number(text: str, match: re.Match[str]) -> Iterator[_Found]:
    digits, start, end = match["digits"], match.start(), match.end()
    if _in_a_name(text, match.start("digits")):
        return
    if len(digits) > _LONGEST or (value := _decimal(digits, text, end)) is None:
        yield from _as_printed(digits, match.start("digits"))
        return
    if _is_sign(text, match):
        value = -value
    if match["inner"] == "(":
        closed = text[end : end + 1] == ")"
        accounting = closed and (match["mark"] or PERCENT.match(text, end + 1))
        start = start if match["mark"] or accounting else match.start("digits")
        end, value = (end + 1, -value) if accounting else (end, value)
    elif match["sign"] and not _is_sign(text, match) and match["sign"] != "+":
        start = match.start("mark") if match["mark"] else match.start("digits")
    yield _suffixed(text, value, start, end, CURRENCY.get(match["mark"] or "", ""))


def _shortest(value: Decimal) -> Decimal:
    """Equal values print alike: $6.4 billion and $6,400 million are both 6400000000."""
    return Decimal(format(value.normalize(), "f"))


def _last_digit(value: Decimal) -> Decimal:
    """What the last digit that counts stands for: 100 in 4,300 and 0.1 in 5.0."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < 0:
        return Decimal(1).scaleb(exponent)
    digits = str(abs(value))
    return Decimal(1).scaleb(len(digits) - len(digits.rstrip("0"))) if value else Decimal(1)


def _in_a_name(text: str, start: int) -> bool:
    """The 19 of COVID-19 belongs to a name; the 2021 of mid-2021 does not."""
    if start < 2 or text[start - 1] != "-" or not text[start - 2].isalpha():
        return False
    word = re.search(r"\w{1,20}-$", text[max(0, start - 21) : start])
    return bool(word and any(letter.isupper() for letter in word.group()))


def _is_sign(text: str, match: re.Match[str]) -> bool:
    if match["minus"] or match["inner"] in ("-", "−"):
        return True
    sign = match["sign"]
    if not sign or sign == "+":
        return False
    # "5 -7", "5 –7" and "5%-7%" are ranges
    before = text[max(0, match.start("sign") - 2) : match.start("sign")].rstrip()[-1:]
    return not before.isdigit() and before != "%"


def _as_printed(digits: str, start: int) -> Iterator[_Found]:
    """A list like 1,5 is two numbers; a version like 1.2.3 is one label."""
    if "," in digits and "." not in digits and len(digits) <= _LONGEST:
        for piece in re.finditer(r"\d+", digits):
            yield _bare(piece.group(), start + piece.start())
        return
    quantity = Quantity(Decimal(0), "", "label", start, start + len(digits), label=digits)
    yield _Found(quantity, Decimal(1))


def _bare(digits: str, start: int) -> _Found:
    return _Found(Quantity(Decimal(digits), "", "number", start, start + len(digits)), Decimal(1))


def _decimal(digits: str, text: str, end: int) -> Decimal | None:
    digits = re.sub(_SPACE, "", digits)
    if re.fullmatch(r"\d*\.?\d+", digits) or re.fullmatch(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", digits):
        return Decimal(digits.replace(",", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,}", digits):
        return Decimal(digits.replace(".", "").replace(",", "."))
    # A decimal comma is one only before something that makes a list impossible: 1,5 million, 3,2 %.
    if re.fullmatch(r"\d+,\d{1,2}", digits) and (MAGNITUDE_WORD.match(text, end) or PERCENT.match(text, end)):
        return Decimal(digits.replace(",", "."))
    return None


def _suffixed(text: str, value: Decimal, start: int, end: int, currency: str) -> _Found:
    scale, end = scale_at(text, end, currency)
    kind: Kind = "money" if currency else "number"
    unit = currency
    if match := BASIS.match(text, end):
        kind, end, unit, scale = "points", match.end(), "points", scale / 100
    elif match := POINTS.match(text, end):
        kind, end, unit = "points", match.end(), "points"
    elif match := PERCENT.match(text, end):
        kind, end, unit = "percent", match.end(), "%"
    elif not currency and (match := _ORDINAL_END.match(text, end)):
        kind, end = "ordinal", match.end()
    elif not currency:
        unit, end = unit_at(text, end)
        kind = "money" if unit in CURRENCY.values() or unit == "cent" else "number"
    step, value = _last_digit(value) * scale, _shortest(value * scale)
    if kind == "number" and not unit and scale == 1 and re.fullmatch(r"\d{4}", text[start:end]):
        kind = "year" if 1900 <= value <= 2100 else "number"
    when = When(int(value)) if kind == "year" else None
    return _Found(Quantity(value, unit, kind, start, end, _approximate(text, start), step=step, when=when), scale)


def _worded(text: str, match: re.Match[str]) -> Iterator[_Found]:
    word = match.group().lower()
    if word.startswith("a "):
        part = Decimal(1) / FRACTIONS[word.split()[1]]
        yield _fraction(text, part, match.start(), match.start() + len(word.removesuffix(" of")))
    elif word == "half":
        yield from _half(text, match)
    elif word in WORDS:
        yield from _spelled(text, match)
    elif not word.endswith("s"):
        value = Decimal(ORDINALS.index(word) + 1)
        yield _Found(Quantity(value, "", "ordinal", match.start(), match.end()), Decimal(1))


def _fraction(text: str, part: Decimal, start: int, end: int) -> _Found:
    return _Found(Quantity(part, "", "fraction", start, end, _approximate(text, start)), Decimal(1))


def _half(text: str, match: re.Match[str]) -> Iterator[_Found]:
    if more := re.compile(r"\sa\s(dozen|million|billion|trillion)\b").match(text, match.end()):
        value = Decimal(WORDS[more[1]]) / 2
        yield _suffixed(text, value, match.start(), more.end(), "")
    elif re.compile(r"\s(?:of|the|its|their|his|her|as)\b").match(text, match.end()):
        yield _fraction(text, Decimal("0.5"), match.start(), match.end())


def _spelled(text: str, match: re.Match[str]) -> Iterator[_Found]:
    """two, twenty-five, three hundred and six thousand, two and a half million, two thirds."""
    words, end = number_words(text, match)
    if part := parts_of(text, words, end):
        yield _fraction(text, part[0], match.start(), part[1])
        return
    value = count(words)
    if half := AND_A_HALF.match(text, end):
        value, end = value + Decimal("0.5"), half.end()
    found = _suffixed(text, value, match.start(), end, "")
    # "one" is a pronoun more often than a figure.
    if words != ["one"] or found.quantity.end > end or half:
        yield found


def _approximate(text: str, start: int) -> bool:
    return bool(_APPROXIMATE.search(text[max(0, start - 24) : start]))


def _related(text: str, found: list[_Found]) -> Iterator[Quantity]:
    """Ends of ranges share unit and magnitude; what follows ± is an uncertainty."""
    items = [item.quantity for item in found]
    for index in range(len(found) - 1):
        first, second = items[index], items[index + 1]
        gap = text[first.end : second.start]
        if len(gap) > 16 or "date" in (first.kind, second.kind):
            continue
        if _ERROR.fullmatch(gap):
            items[index] = _alike(first, second, found[index + 1].scale)
            items[index + 1] = replace(second, kind="uncertainty")
        elif _akin(first, second) and (_RANGE.fullmatch(gap) or _between(text, first, gap)):
            ranged = not _opens(text, first, "from") and first.kind != "year"
            items[index] = replace(_alike(first, second, found[index + 1].scale), ranged=ranged)
            items[index + 1] = replace(_priced(first, second), ranged=ranged, approximate=first.approximate)
    yield from items


def _akin(first: Quantity, second: Quantity) -> bool:
    """ "14% to $31.9 billion" is a change and a level, "in 2019 to 7 million" a date and a level, not a range."""
    if first.kind == "year" and abs(second.value) > _FARTHEST * first.value:
        return False
    return first.kind == second.kind or (first.kind in ("number", "year", "money") and not first.label)


def _between(text: str, first: Quantity, gap: str) -> bool:
    return gap == " and " and _opens(text, first, "between")


def _opens(text: str, quantity: Quantity, word: str) -> bool:
    before = text[max(0, quantity.start - 30) : quantity.start].lower().split()
    return word in before[-2:]


def _alike(first: Quantity, second: Quantity, scale: Decimal) -> Quantity:
    """The first end of "5-7 million" or "2 to 3%", completed from the second."""
    bare_money = first.kind == "money" and second.kind == "number" and abs(first.value) < 1000
    if first.kind not in ("number", "year") and not bare_money:
        return first
    if first.unit and not bare_money:
        return first
    if second.kind not in ("number", "money", "percent", "points"):
        return first
    factor = scale if abs(first.value) < abs(second.value) else Decimal(1)
    kind, unit = (first.kind, first.unit) if bare_money else (second.kind, second.unit)
    return replace(
        first,
        value=_shortest(first.value * factor),
        step=first.step * factor,
        kind=kind,
        unit=unit,
        when=None,
    )


def _priced(first: Quantity, second: Quantity) -> Quantity:
    if first.kind == "money" and second.kind == "number" and not second.unit:
        return replace(second, kind="money", unit=first.unit)
    return second
