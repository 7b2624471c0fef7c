"""Dates and times as texts spell them: 29 July 2023, Q3 2023, fiscal 2024, the 1990s, 5 p.m."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from assay.text.spelled import ORDINALS


class When(NamedTuple):
    """A date as far as it is told; `part` is a quarter (Q3), a half (H1) or, for a fiscal year, FY."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    part: str = ""
    fiscal: bool = False


_MONTHS = "January February March April May June July August September October November December".split()
_SHORT = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"Sept": 9}
_MONTH = "(?:" + "|".join([*_MONTHS, *map(str.upper, _MONTHS), *(rf"{s}\b\.?" for s in _SHORT if s != "May")]) + ")"
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?(?![\d.,]\d)(?!\d)"
_YEAR = r"\d{4}(?!\d)"
_TO = r"\s?[-–—]\s?"
_BEFORE = r"(?<![\w.])"

DAY_OF_MONTH = rf"{_DAY}(?:{_TO}{_DAY})?\s(?:of\s)?{_MONTH}"

# Alternatives of the pattern for a figure, in `quantities`.
DATE_FORMS = "|".join(
    (
        rf"(?P<iso>{_BEFORE}(?P<iy>\d{{4}})-(?P<im>[01]\d)-(?P<id>[0-3]\d)(?!\d))",
        rf"(?P<dmy>{_BEFORE}(?P<d1>{_DAY})(?:{_TO}(?P<d2>{_DAY}))?\s(?:of\s)?(?P<m1>{_MONTH})"
        rf"(?:,?\s(?P<y1>{_YEAR}))?)",
        rf"(?P<mdy>\b(?P<m2>{_MONTH})\s(?P<d3>{_DAY})(?:{_TO}(?P<d4>{_DAY}))?(?:,?\s(?P<y2>{_YEAR}))?)",
        rf"(?P<my>\b(?P<m3>{_MONTH}),?\s(?:of\s)?(?P<y3>{_YEAR}))",
        rf"(?P<month>\b(?P<m4>{'|'.join(_MONTHS)})\b)",
        r"(?P<part>\b(?:(?P<p1>[QH][1-4])|(?P<p2>[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth)[ -]"
        r"(?P<f0>fiscal )?(?P<p3>quarter|half)\b(?!-)(?!\sa\s))"
        r"(?:,?\s(?:of\s)?(?:the\s)?(?P<f1>FY\s?|(?:the\s)?fiscal\s(?:year\s)?)?(?P<y4>(?:19|20)\d\d(?!\d))|"
        r"\s?FY(?P<y5>\d\d)\b)?)",
        rf"(?P<yearpart>{_BEFORE}(?P<y6>(?:19|20)\d\d)\s?(?P<p4>[QH][1-4])\b)",
        r"(?P<fiscal>\b(?:[Ff]iscal(?:\s[Yy]ear)?\s|FY\s?['’]?)(?P<y7>\d{4}|\d\d)(?!\d))",
        rf"(?P<decade>{_BEFORE}(?P<y8>\d{{3}}0)['’]?s\b)",
        rf"(?P<years>{_BEFORE}(?P<y9>(?:19|20)\d\d)[-–/](?P<y10>(?:19|20)\d\d|\d\d)(?![\d%.,]\d|\d|%))",
        r"(?P<clock>(?<![\w.:])[0-2]?\d(?:[:.][0-5]\d(?::[0-5]\d)?)?\s?[ap]\.?m\b\.?|(?<![\w.:])\d{1,2}:\d\d(?::\d\d)?(?!\d))",
    )
)


def clock(text: str) -> str:
    """24-hour spelling of a time; anything else as it stands."""
    match = re.fullmatch(r"(\d{1,2})(?:[:.](\d\d))?(:\d\d)?\s?([ap])\.?m\.?", text, re.I)
    if not match:
        return text
    hour = int(match[1]) % 12 + (12 if match[4].lower() == "p" else 0)
    return f"{hour:02}:{match[2] or '00'}{match[3] or ''}"


def dates(match: re.Match[str]) -> Iterator[When]:
    """The dates of one match of DATE_FORMS: two for "3-5 May" and for "2019-20"."""

    def number(name: str) -> int | None:
        return int(re.sub(r"\D", "", match[name])) if match[name] else None

    if match["iso"] is not None:
        yield When(number("iy"), number("im"), number("id"))
    elif match["dmy"] is not None or match["mdy"] is not None:
        year, month = number("y1") or number("y2"), _month(match["m1"] or match["m2"])
        for day in ("d1", "d2", "d3", "d4"):
            if match[day]:
                yield When(year, month, number(day))
    elif match["my"] is not None or match["month"] is not None:
        yield When(number("y3"), _month(match["m3"] or match["m4"]))
    elif match["part"] is not None or match["yearpart"] is not None:
        yield _part(match, number("y4") or number("y5") or number("y6"))
    elif match["fiscal"] is not None:
        yield When(_century(number("y7") or 0), fiscal=True)
    else:
        first = number("y9") or 0
        last = number("y10") or 0
        yield When(first)
        yield When(last if last > 99 else first // 100 * 100 + last)


def _part(match: re.Match[str], year: int | None) -> When:
    name = match["p1"] or match["p4"]
    if not name:
        order = ORDINALS.index(match["p2"].lower()) + 1
        name = f"{'Q' if match['p3'] == 'quarter' else 'H'}{order}"
    fiscal = bool(match["f0"] or match["f1"] or match["y5"])
    return When(_century(year) if year is not None else None, part=name, fiscal=fiscal)


def _century(year: int) -> int:
    return 2000 + year if year < 100 else year


def _month(name: str) -> int:
    return _SHORT[name[:3].capitalize()]
