"""Do the figures agree? Every number, unit, date, name, negation, direction and hedge of a statement against
the passages quoted for it, before and whatever any model says (X-03).

The checks doubt and never vouch: a statement that passes may still say something else than its passage, a
statement that fails is not published in those words. A figure must also be spelled as it is in the passage
("6.4" and not "6,400 million"), because a reader, and any program, looks for it there.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from openassay.text.negation import find_directions
from openassay.text.quantities import PartialDate, Quantity, find_quantities
from openassay.verification.names import check_names
from openassay.verification.polarity import StatementProblem, check_polarity
from openassay.verification.wording import check_word_order, check_wording, is_close_wording

_CITATION = re.compile(r"\[S\d+\]")


@dataclass(frozen=True, slots=True)
class StatementCheck:
    problems: tuple[StatementProblem, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.problems


def check_statement(statement: str, quotes: Sequence[str], known: Collection[str] = ()) -> StatementCheck:
    """Find what in the statement its quotes do not bear out. `known` are names that need no quote: the document's
    title and host, the subjects of the question."""
    if statement in quotes:
        return StatementCheck()
    statement = _CITATION.sub(" ", statement)
    composed, *passages = (unicodedata.normalize("NFC", text) for text in (statement, *quotes))
    # Where all else is the passage's own wording, the least thing that is not tells; free words have to be let pass.
    strict = is_close_wording(composed, passages)
    problems: list[StatementProblem] = []
    offered = [quantity for quote in quotes for quantity in find_quantities(quote)]
    passage = "\n".join(quotes)
    for quantity in find_quantities(statement):
        if quantity.when and _date_agrees(quantity.when, offered):
            continue
        valued = []
        if quantity.kind != "date":
            valued = [other for other in offered if _has_same_value(quantity, other, statement, passage)]
            if any(_has_same_measure(quantity, other, passage) for other in valued):
                continue
        shown = statement[quantity.start : quantity.end]
        if quantity.kind in ("date", "year", "decade", "time"):
            problems.append(StatementProblem("date", f"the date {shown} is not in the quoted passage"))
        elif any(quantity.unit != other.unit for other in valued):
            problems.append(StatementProblem("unit", f"the figure {shown} has another unit in the quoted passage"))
        else:
            problems.append(StatementProblem("figure", f"the figure {shown} is not in the quoted passage"))
    if not problems and (strange := extract_numbers(statement, worded=False) - extract_numbers(passage, worded=True)):
        numbers = ", ".join(f"{number:.15g}" for number in sorted(strange))
        problems.append(StatementProblem("spelling", f"{numbers} is not spelled so in the quoted passage"))
    problems += [
        *check_names(composed, passages, known, strict=strict),
        *check_polarity(composed, passages),
        *check_word_order(composed, passages, strict=strict),
        *check_wording(composed, [*passages, " ".join(known)]),
    ]
    return StatementCheck(tuple(dict.fromkeys(problems)))


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
        values += [other.value * _SCALES[scaled[1].lower()] for scaled in _SCALED.finditer(passage)]
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
    dates = [other.when for other in offered if other.when] + [
        PartialDate(int(other.value)) for other in offered if other.kind == "number" and 1000 <= other.value <= 2999
    ]
    fitting, whole = [], False
    for date in dates:
        parts = [(ours, theirs) for ours, theirs in zip(when[:4], date[:4], strict=True) if ours]
        if all(not theirs or ours == theirs for ours, theirs in parts) and any(theirs for _, theirs in parts):
            fitting.append(date)
            whole = whole or all(theirs for _, theirs in parts)
    if when.fiscal and not any(date.fiscal for date in fitting):
        return False
    # "On 29 July" in a passage that names one year only.
    years = {date.year for date in dates if date.year}
    partial = when._replace(year=None)
    return whole or (years == {when.year} and any(date[:4] == partial[:4] for date in fitting))


_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SMALL_WORD = re.compile(rf"\b(?:{'|'.join(_SMALL)})\b", re.I)
_COUNTS = {word: float(value) for value, word in enumerate(_SMALL) if value > 1}
_MARKS = str.maketrans("", "", ",\u00a0\u202f+−-")


@lru_cache(maxsize=512)
def extract_numbers(text: str, *, worded: bool) -> frozenset[float]:
    """Return the numbers of a text as an outside checker reads them: unsigned digits, and small number words."""
    text = _CITATION.sub(" ", text if worded else _SMALL_WORD.sub(" ", text))
    digits = (float(match.translate(_MARKS)) for match in _NUMBER.findall(text))
    small = {word.casefold() for word in _SMALL_WORD.findall(text)}
    return frozenset((*digits, *(_COUNTS[word] for word in small & _COUNTS.keys())))
