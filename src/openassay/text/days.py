"""The days that a text tells: by themselves, or by the day on which it was published ("on Thursday", "yesterday")."""

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple

from openassay.text.quantities import PartialDate, find_quantities

WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAYS)})\b", re.I)
NEARBY = re.compile(r"\b(today|tonight|yesterday|tomorrow|this (?:morning|afternoon|evening|week)|overnight)\b", re.I)
MONTHS_AHEAD = 2  # that a text may mean by the name of a month alone
AWAY = {"yesterday": -1, "overnight": -1, "tomorrow": 1}


class DayRange(NamedTuple):
    """When something was, as exactly as it is told: both days are included."""

    first: date
    last: date

    @property
    def is_one_day(self) -> bool:
        return self.first == self.last


def tells_day(text: str) -> bool:
    """Whether a text tells when something was by the day on which it was published."""
    return bool(WEEKDAY.search(text) or NEARBY.search(text))


def find_days(text: str, published: date | None) -> DayRange | None:
    """When something was, by the few words that tell it; None where they tell no day, month or year, or several. A
    weekday is the last one before a text was published, and so is a day without a year, unless it is soon to come."""
    told = {one.when or PartialDate(int(one.value)) for one in find_quantities(text) if one.kind in ("year", "date")}
    found = {_spell_out(when, published) for when in told}
    if not told and published:
        back = {(published.weekday() - WEEKDAYS.index(name.lower())) % 7 for name in WEEKDAY.findall(text)}
        back |= {-AWAY.get(name.lower(), 0) for name in NEARBY.findall(text) if not name.lower().endswith("week")}
        found |= {DayRange(day, day) for day in (published - timedelta(days=days) for days in back)}
    return found.pop() if len(found) == 1 else None


def _spell_out(when: PartialDate, published: date | None) -> DayRange | None:
    if when.part or when.fiscal:
        return None
    year = when.year or (_guess_year(when, published) if published and when.month else None)
    if not year:
        return None
    try:
        first = date(year, when.month or 1, when.day or 1)
    except ValueError:
        return None
    if when.day:
        return DayRange(first, first)
    month = when.month or 12
    return DayRange(first, date(year, month, monthrange(year, month)[1]))


def _guess_year(when: PartialDate, published: date) -> int:
    """The last such month before the day of publication, unless it is one of the next: of what lies farther ahead a
    text tells the year."""
    ahead = ((when.month or 1) - published.month) % 12
    months = published.year * 12 + published.month - 1 + (ahead if ahead <= MONTHS_AHEAD else ahead - 12)
    return months // 12
