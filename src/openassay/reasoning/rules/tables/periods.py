"""Periods that heads, labels and questions name: years, quarters and other parts of them, and dates."""

import re
from functools import lru_cache
from typing import NamedTuple

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(rf"{name}|{name[:3]}\b\.?" for name in _MONTHS)
_DATE = re.compile(rf"\b(?P<month>{_MONTH})\s*(?P<day>\d{{1,2}})?(?:st|nd|rd|th)?,?\s*(?P<year>(?:19|20)\d\d)\b", re.I)
_DAY_FIRST = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<month>{_MONTH}),?\s*(?P<year>(?:19|20)\d\d)\b", re.I
)
_YEAR = re.compile(r"(?<![\d,.$€£])(?:FY\s?|['’])?(?P<year>(?:19|20)\d\d)(?!\d|,\d|\.\d|%)", re.I)
_SHORT_YEAR = re.compile(r"\b(?:FY|Q[1-4]\s?|H[12]\s?)['’]?(?P<year>\d\d)\b|(?<=\s)['’](?P<marked>\d\d)\b", re.I)
_RANGE = re.compile(r"\b((?:19|20)\d\d)\s*(?:to|through|until|[-–—/])\s*((?:19|20)\d\d)\b", re.I)
_QUARTER = re.compile(
    r"\b(?:Q(?P<sign>[1-4])|(?P<sign2>[1-4])Q|"
    r"(?P<word>first|second|third|fourth|1st|2nd|3rd|4th)[ -]+(?:fiscal )?quarter)",
    re.I,
)
_LENGTH = re.compile(r"\b(?P<count>three|six|nine|twelve|3|6|9|12)[ -]months?\b", re.I)
_COUNTS = {"three": 3, "six": 6, "nine": 9, "twelve": 12}
_ORDER = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}


class Period(NamedTuple):
    """What is told of a period; 0 for what is not. `months` is its length."""

    year: int
    month: int = 0
    day: int = 0
    quarter: int = 0
    months: int = 0

    def holds(self, asked: "Period") -> bool:
        """Whether it is what was asked for, as far as both tell."""
        pairs = zip(self, asked, strict=True)
        return all(not own or not wanted or own == wanted for own, wanted in pairs)


@lru_cache(maxsize=4096)
def find_periods(text: str) -> tuple[Period, ...]:
    """All periods of a text in the order they are named, each once. Two years with a hyphen are the first and the
    last of a range."""
    quarter, length = _find_quarter(text), _find_length(text)
    found, rest = list[tuple[int, Period]](), text
    for pattern in (_DATE, _DAY_FIRST):
        for match in pattern.finditer(rest):
            month = 1 + [name[:3] for name in _MONTHS].index(match["month"][:3].lower())
            day = int(match["day"] or 0)
            found.append((match.start(), Period(int(match["year"]), month, day, quarter, length)))
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    found += [(match.start(), Period(int(match["year"]), 0, 0, quarter, length)) for match in _YEAR.finditer(rest)]
    for match in _SHORT_YEAR.finditer(rest):
        found.append((match.start(), Period(2000 + int(match["year"] or match["marked"]), 0, 0, quarter, length)))
    if not found and (quarter or length):
        found.append((0, Period(0, 0, 0, quarter, length)))
    return tuple(dict.fromkeys(period for _, period in sorted(found)))


def find_years(text: str) -> list[int]:
    """Years in the order they are named; of a range all of them."""
    years = [period.year for period in find_periods(text) if period.year]
    for first, last in _RANGE.findall(text):
        if 0 < int(last) - int(first) < 20:
            years += range(int(first), int(last) + 1)
    return list(dict.fromkeys(years))


def _find_quarter(text: str) -> int:
    match = _QUARTER.search(text)
    if match is None:
        return 0
    return int(match["sign"] or match["sign2"] or _ORDER[match["word"].lower()])


def _find_length(text: str) -> int:
    match = _LENGTH.search(text)
    if match is None:
        return 0
    count = match["count"].lower()
    return _COUNTS.get(count) or int(count)
