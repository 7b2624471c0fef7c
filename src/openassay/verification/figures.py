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
from functools import lru_cache

from openassay.text.negation import find_directions
from openassay.text.quantities import PartialDate, Quantity, find_quantities
from openassay.verification.names import check_names
from openassay.verification.polarity import check_polarity
from openassay.verification.problems import StatementProblem
from openassay.verification.wording import check_word_order, check_wording, is_close_wording


@dataclass(frozen=True, slots=True)
class StatementCheck:
    problems: tuple[StatementProblem, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.problems


def check_statement(statement: str, quotes: Sequence[str], known: Collection[str] = ()) -> StatementCheck:
    """What in the statement its quotes do not bear out. `known` are names that need no quote: the document's
    title and host, the subjects of the question."""
    if statement in quotes:
        return StatementCheck()
    statement = _CITATION.sub(" ", statement)
    composed, passages = _compose_unicode(statement), [_compose_unicode(quote) for quote in quotes]
    # Where all else is the passage's own wording, the least thing that is not tells; free words have to be let pass.
    strict = is_close_wording(composed, passages)
    problems = [
        *_check_figures(statement, quotes),
        *check_names(composed, passages, known, strict=strict),
        *check_polarity(composed, passages),
        *check_word_order(composed, passages, strict=strict),
        *check_wording(composed, [*passages, " ".join(known)]),
    ]
    return StatementCheck(tuple(dict.fromkeys(problems)))


_CITATION = re.compile(r"\[S\d+\]")


def _compose_unicode(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _check_figures(statement: str, quotes: Sequence[str]) -> Iterator[StatementProblem]:
    offered = [quantity for quote in quotes for quantity in find_quantities(quote)]
    passage = "\n".join(quotes)
    doubted = False
    for quantity in find_quantities(statement):
        problem = _check_figure(quantity, statement, offered, passage)
        if problem:
            doubted = True
            yield problem
    if not doubted and (strange := extract_numbers(statement, worded=False) - extract_numbers(passage, worded=True)):
        numbers = ", ".join(f"{number:.15g}" for number in sorted(strange))
        yield StatementProblem("spelling", f"{numbers} is not spelled so in the quoted passage")


def _check_figure(quantity: Quantity, statement: str, offered: list[Quantity], passage: str) -> StatementProblem | None:
    shown = statement[quantity.start : quantity.end]
    if quantity.when and _date_agrees(quantity.when, offered):
        return None
    if quantity.kind == "date":
        return StatementProblem("date", f"the date {shown} is not in the quoted passage")
    valued = [other for other in offered if _has_same_value(quantity, other, statement, passage)]
    if any(_has_same_measure(quantity, other, passage) for other in valued):
        return None
    if quantity.kind in ("year", "decade", "time"):
        return StatementProblem("date", f"the date {shown} is not in the quoted passage")
    if valued and any(quantity.unit != other.unit for other in valued):
        return StatementProblem("unit", f"the figure {shown} has another unit in the quoted passage")
    return StatementProblem("figure", f"the figure {shown} is not in the quoted passage")


_SCALED = re.compile(r"\bin (thousands|millions|billions)\b", re.I)
_SCALES = {"thousands": 10**3, "millions": 10**6, "billions": 10**9}
_BOUND = re.compile(
    r"(?:at least|at most|up to|as much as|as many as|as little as|as low as|as high as|more than|"
    r"less than|from|over|under|minimum of|maximum of|low of|high of|between|and|to|or|[-–—])\s*\S{0,3}$",
    re.I,
)
_FIRST_YEAR = 1000  # what looks like one end of a range from here on may be a year, as in 1616-17
_ERROR = re.compile(r"uncertain|error|margin|plus or minus|±|\+/", re.I)


def _has_same_value(quantity: Quantity, other: Quantity, statement: str, passage: str) -> bool:
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
        _is_close_value(quantity, value) and _has_same_sign(quantity, value, other, statement, passage)
        for value in _possible_values(quantity, other, passage)
    )


def _possible_values(quantity: Quantity, other: Quantity, passage: str) -> Iterator[Decimal]:
    """The value of the passage's figure, and what it comes to under a table's "in millions" or as "5m"."""
    yield other.value
    if {quantity.kind, other.kind} == {"fraction", "percent"}:
        yield other.value / 100 if other.kind == "percent" else other.value * 100
    if other.unit == "m" or quantity.unit == "m":
        yield other.value * 10**6 if other.unit == "m" else other.value / 10**6
    if other.kind in ("number", "money", "year"):
        for scaled in _SCALED.finditer(passage):
            yield other.value * _SCALES[scaled[1].lower()]


def _is_close_value(quantity: Quantity, value: Decimal) -> bool:
    """Equal, or within the precision stated where the statement says that it rounds."""
    apart = abs(abs(quantity.value) - abs(value))
    if not quantity.approximate or quantity.kind in ("year", "ordinal"):
        return apart == 0
    return apart <= min(quantity.step / 2, abs(quantity.value) / 10)


def _has_same_sign(quantity: Quantity, value: Decimal, other: Quantity, statement: str, passage: str) -> bool:
    """A fall of 1% is -1%: the side without the sign must say it in words."""
    if (quantity.value < 0) == (value < 0):
        return True
    text, start = (statement, quantity.start) if value < 0 else (passage, None)
    said = [turn for turn in find_directions(text) if turn.family in ("amount", "result", "width")]
    if start is not None:
        said = [turn for turn in said if abs(turn.start - start) < 80]
    return any(not turn.rises for turn in said)


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
    ours, theirs = _measure_name(quantity), _measure_name(other)
    if ours == theirs or (ours, theirs) in _ALIKE or (theirs, ours) in _ALIKE or {ours, theirs} == {"m", ""}:
        return True
    if quantity.kind == "ordinal" or other.kind == "ordinal":
        return False
    if not ours:
        # A unit may be left out, but 5% is not 5.
        return theirs not in ("%", "points", "fraction")
    return not theirs and ours not in ("%", "points", "fraction") and _names_unit(ours, passage)


def _measure_name(quantity: Quantity) -> str:
    if quantity.kind in ("fraction", "ordinal", "decade"):
        return quantity.kind
    return quantity.unit


def _names_unit(unit: str, passage: str) -> bool:
    """Whether the passage names the unit elsewhere: in a table's head, after the last of a list."""
    pattern = _UNIT_PATTERNS.get(unit)
    if pattern and re.search(pattern, passage):
        return True
    return any(unit == quantity.unit for quantity in find_quantities(passage)) or bool(
        re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", passage)
    )


def _date_agrees(when: PartialDate, offered: Sequence[Quantity]) -> bool:
    """No part of the date contradicts a date of the passage, and every part of it is told there."""
    dates = [other.when for other in offered if other.when] + [
        PartialDate(int(other.value)) for other in offered if other.kind == "number" and 1000 <= other.value <= 2999
    ]
    fitting = [date for date in dates if _fits_date(when, date)]
    if when.fiscal and not any(date.fiscal for date in fitting):
        return False
    whole = any(all(theirs == ours for ours, theirs in _date_parts(when, date)) for date in fitting)
    # "On 29 July" in a passage that names one year only.
    years = {date.year for date in dates if date.year}
    partial = when._replace(year=None)
    return whole or (years == {when.year} and any(date[:4] == partial[:4] for date in fitting))


def _date_parts(when: PartialDate, date: PartialDate) -> Iterator[tuple[object, object]]:
    return ((ours, theirs) for ours, theirs in zip(when[:4], date[:4], strict=True) if ours)


def _fits_date(when: PartialDate, date: PartialDate) -> bool:
    parts = list(_date_parts(when, date))
    return all(not theirs or ours == theirs for ours, theirs in parts) and any(theirs for _, theirs in parts)


_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SMALL_WORD = re.compile(rf"\b(?:{'|'.join(_SMALL)})\b", re.I)
_COUNTS = {word: float(value) for value, word in enumerate(_SMALL) if value > 1}
_MARKS = str.maketrans("", "", ",\u00a0\u202f+−-")


@lru_cache(maxsize=512)
def extract_numbers(text: str, *, worded: bool) -> frozenset[float]:
    """The numbers of a text as a checker outside reads them: unsigned digits, and small number words."""
    text = _CITATION.sub(" ", text if worded else _SMALL_WORD.sub(" ", text))
    digits = (float(match.translate(_MARKS)) for match in _NUMBER.findall(text))
    small = {word.casefold() for word in _SMALL_WORD.findall(text)}
    return frozenset((*digits, *(_COUNTS[word] for word in small & _COUNTS.keys())))
