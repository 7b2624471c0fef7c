"""The stretch of time a question confines itself to, where it says so: since 2021, in the last two years, as of May."""

import re
from datetime import date, timedelta
from typing import NamedTuple

from assay.text.spelled import WORDS

_DAYS = {"day": 1, "week": 7, "month": 30.44, "year": 365.25}
_AGO = re.compile(
    rf"\b(?:in|over|during|within|from|for)?\s*the (?:last|past|previous) (?:(\d{{1,3}}|{'|'.join(WORDS)}) )?"
    r"(day|week|month|year)s?\b",
    re.I,
)
_SINCE = re.compile(
    r"\b(?:since|after|from) (?:the (?:start|beginning) of )?((?:19|20)\d\d)\b(?!\s?(?:to|until|[-–]))", re.I
)
_UNTIL = re.compile(r"\b(?:as of|until|before|up to|by the end of) ((?:19|20)\d\d)(?:-(\d\d)-(\d\d))?\b", re.I)


_NOW = re.compile(
    r"\b(?:latest|newest|current(?:ly)?|recent(?:ly)?|now|nowadays|today|this (?:year|month|week|quarter)|so far|"
    r"up to date|state of the art|happening|news|emerging|upcoming|trends?|forecast|outlook)\b",
    re.I,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class Period(NamedTuple):
    since: date | None = None
    until: date | None = None


def period(text: str, today: date) -> Period:
    """What is published outside it does not count. "In 2019" confines nothing: much on 2019 was written later."""
    return Period(_since(text, today), _until(text))


def _since(text: str, today: date) -> date | None:
    if ago := _AGO.search(text):
        count, unit = (ago[1] or "1").lower(), ago[2].lower()
        number = int(count) if count.isdecimal() else WORDS[count]
        return today - timedelta(days=round(number * _DAYS[unit]))
    if since := _SINCE.search(text):
        year = int(since[1]) + ("after" in since[0].lower())
        return date(year, 1, 1) if year <= today.year else None
    return None


def _until(text: str) -> date | None:
    until = _UNTIL.search(text)
    if until is None:
        return None
    year = int(until[1])
    if until[2]:
        try:
            return date(year, int(until[2]), int(until[3]))
        except ValueError:
            return None
    return date(year - 1, 12, 31) if until[0].lower().startswith("before") else date(year, 12, 31)


def moves(question: str, today: date) -> bool:
    """Whether what is asked about is still changing, so that newer pages tell more."""
    years = [int(year) for year in _YEAR.findall(question)]
    return bool(_NOW.search(question)) or _AGO.search(question) is not None or max(years, default=0) >= today.year - 2
