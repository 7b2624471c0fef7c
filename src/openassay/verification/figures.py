"""Are the figures and dates of a statement those of its evidence?

As they stand there, told by the day the document was published ("on Tuesday"), or computed from two figures of the
evidence (27 years until 1994: since 1967). What is neither contradicts the evidence, and that is certain enough to
overrule a judge. On 2,400 pairs of eight sets objections to figures without the last two hit as many true statements
as false ones (176 and 178 where the wording is free).
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import permutations

from openassay.text.days import AWAY, NEARBY, WEEKDAY, WEEKDAYS
from openassay.text.negation import find_directions
from openassay.text.quantities import PartialDate, Quantity, find_quantities
from openassay.verification.polarity import StatementProblem

MOST_COUNT = 12  # up to here a bare number may count what the evidence lists: "two friends", "all four of them"
MOST_OPERANDS = 14  # figures of the evidence that are computed with; among more, anything comes out
NEAR, ROUGHLY = Decimal("0.006"), Decimal("0.03")  # of a computed figure; the second where the statement rounds
_SPANS = {"decade": 10, "century": 100}  # in years
_NAMED = re.compile(r"[^\W\d_][-–]?$")  # before a digit that belongs to a name: covid-19, CO2
_NAME = re.compile(r"[^\s,;:()]+")
_CAPITALISED = re.compile(r"\b[A-Z][\w.]* $")
_AGES = re.compile(r"(?:mid|early|late|pre|post|since|top|under|over|sub)-$", re.I)


def check_figures(
    statement: str, texts: Sequence[str], published: date | None = None, *, strict: bool = False
) -> Iterator[StatementProblem]:
    """Find the figures, units and dates of a statement that its texts do not bear out. `strict`: all its other words
    are theirs, and then nobody has counted or computed; a figure was exchanged."""
    offered = [quantity for text in texts for quantity in find_quantities(text)]
    passage = "\n".join(texts)
    days = list(_find_days(passage, offered, published)) if published else []
    for quantity in find_quantities(statement):
        shown = statement[quantity.start : quantity.end]
        if quantity.when and (_date_agrees(quantity.when, offered) or _is_told_day(quantity.when, days)):
            continue
        valued = []
        if quantity.kind != "date":
            valued = [other for other in offered if _has_same_value(quantity, other, statement, passage)]
            if any(_has_same_measure(quantity, other, passage) for other in valued):
                continue
            if _is_part_of_name(statement, quantity, passage) or _ends_name(statement, quantity, passage):
                continue
            if not strict and (_is_count(quantity) or _follows_from(quantity, offered, published)):
                continue
        if quantity.kind in ("date", "year", "decade", "time"):
            yield StatementProblem("date", f"the date {shown} is not in the quoted passage")
        elif any(quantity.unit != other.unit for other in valued):
            yield StatementProblem("unit", f"the figure {shown} has another unit in the quoted passage")
        else:
            yield StatementProblem("figure", f"the figure {shown} is not in the quoted passage")


def _is_count(quantity: Quantity) -> bool:
    plain = quantity.kind == "number" and not quantity.unit and not quantity.label
    return plain and 1 < quantity.value <= MOST_COUNT and quantity.value == quantity.value.to_integral_value()


def _is_part_of_name(statement: str, quantity: Quantity, passage: str) -> bool:
    """Whether the digits end a name that the evidence has too, or that no figure can be taken from: covid-19."""
    before = statement[: quantity.start]
    if not _NAMED.search(before) or _AGES.search(before):
        return False
    start = max(before.rfind(" "), before.rfind("\n")) + 1
    match = _NAME.match(statement, start)
    name = match[0].rstrip(".'’\"").casefold() if match else ""
    return name in passage.casefold() or name.rstrip("0123456789-–") in passage.casefold()


def _ends_name(statement: str, quantity: Quantity, passage: str) -> bool:
    """Whether a number stands behind a capitalised word, and in the passage ends a name: "Public Law 480", "PL-480"."""
    number = statement[quantity.start : quantity.end]
    named = number.isdigit() and _CAPITALISED.search(statement[: quantity.start])
    return bool(named) and bool(re.search(rf"[A-Z][-–]{number}(?!\d)", passage))


def _follows_from(quantity: Quantity, offered: Sequence[Quantity], published: date | None) -> bool:
    """Whether the figure is a sum, difference, share, ratio or change of two figures of the evidence."""
    if quantity.label or quantity.kind in ("date", "time", "ordinal"):
        return False
    values = [other.value * _SPANS.get(other.unit, 1) for other in offered if not other.label and other.value]
    values += [Decimal(other.when.year) for other in offered if other.when and other.when.year]
    if published:
        values.append(Decimal(published.year))
    values = list(dict.fromkeys(abs(value) for value in values))[:MOST_OPERANDS]
    wanted = abs(quantity.value) * _SPANS.get(quantity.unit, 1)
    margin = (ROUGHLY if quantity.approximate else NEAR) * wanted
    if quantity.kind in ("year", "decade") or quantity.unit in ("year", "day", "month", "week"):
        margin = Decimal(1) if quantity.approximate else Decimal(0)
    shares = quantity.kind in ("percent", "fraction") or quantity.unit in ("%", "points", "times")
    if any(abs(wanted - value) <= margin for value in values) and not shares:
        return True
    for one, other in permutations(values, 2):
        results = [one + other, one - other]
        if shares:
            share = one / other
            results += [share, 100 * share, 100 * (share - 1), 100 * (1 - share)]
        if any(result > 0 and abs(wanted - result) <= margin for result in results):
            return True
    return False


_PERIOD = re.compile(
    r"\b(last|previous|this|next|coming|current)\s(month|year|spring|summer|autumn|fall|winter)\b", re.I
)


def _find_days(text: str, offered: Sequence[Quantity], published: date) -> Iterator[PartialDate]:
    """Days, months and years that a text tells by the day on which it was published."""
    yield PartialDate(published.year, published.month, published.day)
    for match in WEEKDAY.finditer(text):
        back = (published.weekday() - WEEKDAYS.index(match[1].lower())) % 7
        for away in (-back, 7 - back):
            day = published + timedelta(days=away)
            yield PartialDate(day.year, day.month, day.day)
    for match in NEARBY.finditer(text):
        day = published + timedelta(days=AWAY.get(match[1].lower(), 0))
        yield PartialDate(day.year, day.month, day.day)
    for match in _PERIOD.finditer(text):
        step = {"last": -1, "previous": -1, "next": 1, "coming": 1}.get(match[1].lower(), 0)
        if match[2].lower() == "month":
            month = published.year * 12 + published.month - 1 + step
            yield PartialDate(month // 12, month % 12 + 1)
        else:
            yield PartialDate(published.year + step)
            yield PartialDate(published.year)  # "last winter" may be of this year
    for when in (other.when for other in offered):
        if when and when.month and not when.year:
            for year in (published.year - 1, published.year, published.year + 1):
                yield when._replace(year=year)


def _is_told_day(when: PartialDate, days: Sequence[PartialDate]) -> bool:
    return not when.part and any(
        all(not ours or ours == theirs for ours, theirs in zip(when[:3], day[:3], strict=True)) for day in days
    )


def find_numbers_by_day(statement: str, text: str, published: date) -> set[float]:
    """Return the years and days of a statement that a text tells by the day on which it was published."""
    days = list(_find_days(text, find_quantities(text), published))
    near = bool(WEEKDAY.search(text) or NEARBY.search(text) or _PERIOD.search(text))
    found = {float(published.year), float(published.day)}
    for quantity in find_quantities(statement):
        when = quantity.when or (PartialDate(int(quantity.value)) if quantity.kind == "year" else None)
        if when and _is_told_day(when, days) and (near or when.year in (None, published.year)):
            found |= {float(part) for part in (when.year, when.day) if part}
    return found


_SCALED = re.compile(r"\bin (thousands|millions|billions)\b", re.I)
_SCALES = {"thousands": 10**3, "millions": 10**6, "billions": 10**9}
_BOUND = re.compile(
    r"(?:at least|at most|up to|as much as|as many as|as little as|as low as|as high as|more than|"
    r"less than|from|over|under|minimum of|maximum of|low of|high of|between|and|to|or|[-–—])\s*\S{0,3}$",
    re.I,
)
_FIRST_YEAR = 1000  # what looks like one end of a range from here on may be a year, as in 1616-17
_ERROR = re.compile(r"uncertain|error|margin|plus or minus|±|\+/", re.I)


@lru_cache(maxsize=512)  # each figure of a statement is held against each of a passage, which may have 50,000 words
def _find_scales(passage: str) -> tuple[int, ...]:
    """What "in millions" and the like, anywhere in a passage, make of its figures."""
    return tuple(dict.fromkeys(_SCALES[scaled[1].lower()] for scaled in _SCALED.finditer(passage)))


def _has_same_value(quantity: Quantity, other: Quantity, statement: str, passage: str) -> bool:
    if quantity.label or other.label:
        return quantity.label == other.label
    if (quantity.kind == "uncertainty") != (other.kind == "uncertainty") and not _ERROR.search(statement):
        return False
    unbound = other.ranged and not quantity.ranged and other.value < _FIRST_YEAR
    if unbound and not _BOUND.search(statement[: quantity.start]):
        return False
    # Equal, or within the precision stated where the statement says that it rounds.
    exact = not quantity.approximate or quantity.kind in ("year", "ordinal")
    margin = 0 if exact else min(quantity.step / 2, abs(quantity.value) / 10)
    # The passage's figure as it is, and what it comes to under a table's "in millions" or as "5m".
    values = [other.value]
    if {quantity.kind, other.kind} == {"fraction", "percent"}:
        values.append(other.value / 100 if other.kind == "percent" else other.value * 100)
    if other.unit == "m" or quantity.unit == "m":
        values.append(other.value * 10**6 if other.unit == "m" else other.value / 10**6)
    if other.kind in ("number", "money", "year"):
        values += [other.value * scale for scale in _find_scales(passage)]
    for value in values:
        if abs(abs(quantity.value) - abs(value)) > margin:
            continue
        # A fall of 1% is -1%: the side without the sign must say it in words.
        unsigned = value < 0
        if (quantity.value < 0) == unsigned or any(
            not turn.rises
            and turn.family in ("amount", "result", "width")
            and (not unsigned or abs(turn.start - quantity.start) < 80)
            for turn in find_directions(statement if unsigned else passage)
        ):
            return True
    return False


_ALIKE = {("pound", "GBP"), ("pound", "lb"), ("°", "°C"), ("°", "°F"), ("times", "")}
_UNIT_PATTERNS = {
    "year": r"\bage[ds]?\b|\bold\b",
    "%": r"%|per ?cent",
    "USD": r"\$|dollar|USD",
    "EUR": "€|euro|EUR",
}


def _has_same_measure(quantity: Quantity, other: Quantity, passage: str) -> bool:
    if {quantity.kind, other.kind} == {"fraction", "percent"}:
        return True
    ours, theirs = (
        one.kind if one.kind in ("fraction", "ordinal", "decade") else one.unit for one in (quantity, other)
    )
    if ours == theirs or (ours, theirs) in _ALIKE or (theirs, ours) in _ALIKE or {ours, theirs} == {"m", ""}:
        return True
    # A unit may be left out, but 5% is not 5.
    shares = ("%", "points", "fraction")
    if "ordinal" in (quantity.kind, other.kind) or (ours and theirs) or ours in shares or theirs in shares:
        return False
    # A unit that only the statement has must be named elsewhere: in a table's head, after the last of a list.
    return (
        not ours
        or bool(ours in _UNIT_PATTERNS and re.search(_UNIT_PATTERNS[ours], passage))
        or any(ours == found.unit for found in find_quantities(passage))
        or bool(re.search(rf"(?<!\w){re.escape(ours)}(?!\w)", passage))
    )


def _date_agrees(when: PartialDate, offered: Sequence[Quantity]) -> bool:
    """No part of the date contradicts a date of the passage, and every part of it is told there."""
    dates = [one.when for one in offered if one.when] + [
        PartialDate(int(one.value)) for one in offered if one.kind == "number" and 1000 <= one.value <= 2999
    ]
    fitting, whole = [], False
    for other in dates:
        parts = [(ours, theirs) for ours, theirs in zip(when[:4], other[:4], strict=True) if ours]
        if all(not theirs or ours == theirs for ours, theirs in parts) and any(theirs for _, theirs in parts):
            fitting.append(other)
            whole = whole or all(theirs for _, theirs in parts)
    if when.fiscal and not any(other.fiscal for other in fitting):
        return False
    # "On 29 July" in a passage that names one year only.
    years = {other.year for other in dates if other.year}
    partial = when._replace(year=None)
    return whole or (years == {when.year} and any(other[:4] == partial[:4] for other in fitting))
