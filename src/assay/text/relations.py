"""How two statements relate: the same fact, a disagreement, or a newer figure for an older one."""

import math
import re
from functools import lru_cache
from typing import Literal, NamedTuple

from assay.text.names import names
from assay.text.overlap import overlap
from assay.text.quantities import Quantity, quantities
from assay.text.sentences import is_row
from assay.text.words import fold, stems

Relation = Literal["same", "disagree", "newer", "older"]

WINDOW, CLOSE = 8, 3  # content words before a figure that say what it measures, and the nearest of them
SAME_MATTER = 0.5  # shared by the smaller window, for figures that state their uncertainty or agree
SAME_WORDING = 0.8  # shared by both windows, for bare figures: "products margin" is not "services margin"


class Measure(NamedTuple):
    """The first figure of a statement that is no date, with the uncertainty stated beside it."""

    value: float
    unit: str
    uncertainty: float | None
    matter: tuple[str, ...]  # stems of what it measures, nearest last


def relate(left: str, right: str) -> Relation | None:
    """How `left` stands to `right`; None when they speak of different things or nothing can be told."""
    a, b = measure(left), measure(right)
    if a is None or b is None:
        return "same" if a is b and overlap(left, right) >= 0.8 and stated(left) == stated(right) else None
    if a.unit != b.unit or _shared(a, b) < SAME_MATTER:
        return None
    if math.isclose(a.value, b.value, rel_tol=1e-9):
        return "same" if _same_period(left, right) and a.uncertainty == b.uncertainty else None
    return _differing(left, right, a, b)


def _differing(left: str, right: str, a: Measure, b: Measure) -> Relation | None:
    """Different values. Repeated measurements carry an uncertainty; without one, other years mean change."""
    years_a, years_b = years(left), years(right)
    if a.uncertainty is not None and b.uncertainty is not None:
        if years_a and years_b and max(years_a) != max(years_b) and _same_author(left, right):
            return "newer" if max(years_a) > max(years_b) else "older"
        apart = abs(a.value - b.value) > 2 * math.hypot(a.uncertainty, b.uncertainty)
        return "disagree" if apart else None
    if a.uncertainty is None and b.uncertainty is None and years_a == years_b:
        x, y = set(a.matter), set(b.matter)
        return "disagree" if len(x & y) >= SAME_WORDING * len(x | y) and _same_author(left, right) else None
    return None


@lru_cache(maxsize=8192)
def measure(text: str) -> Measure | None:
    """None for a table row, which states many figures, and for a statement with none."""
    if is_row(text):
        return None
    found = quantities(text)
    for at, quantity in enumerate(found):
        if _measures(quantity):
            follower = found[at + 1] if at + 1 < len(found) else None
            uncertainty = float(follower.value) if follower and follower.kind == "uncertainty" else None
            matter = tuple(stems(text[: quantity.start])[-WINDOW:])
            return Measure(float(quantity.value), quantity.unit, uncertainty, matter)
    return None


def _measures(quantity: Quantity) -> bool:
    """A figure with a unit; spans of time only say over what something was measured."""
    return quantity.kind in ("number", "percent", "money") and bool(quantity.unit) and quantity.unit not in _TIMES


_TIMES = frozenset("s min h day week month quarter year decade century".split())


def years(text: str) -> frozenset[int]:
    return frozenset(int(year) for year in re.findall(r"\b(?:19|20)\d{2}\b", text))


def _shared(a: Measure, b: Measure) -> float:
    """By the whole window or by the nearest words, whichever agree better: authors stand in the one, not the other."""
    pairs = ((set(a.matter), set(b.matter)), (set(a.matter[-CLOSE:]), set(b.matter[-CLOSE:])))
    return max(len(x & y) / min(len(x), len(y)) if x and y else 0.0 for x, y in pairs)


def stated(text: str) -> frozenset[str]:
    """Every figure, date and name of a statement: what must agree before two wordings can be one fact."""
    figures = {f"{quantity.value} {quantity.unit} {quantity.when} {quantity.label}" for quantity in quantities(text)}
    return frozenset(figures | {fold(word) for name in names(text) for word in name.split()})


def _same_period(left: str, right: str) -> bool:
    a, b = years(left), years(right)
    return not a or not b or bool(a & b)


def _same_author(left: str, right: str) -> bool:
    """Whether both name the same team ahead of their figure, or neither names any."""
    compounds = _compounds(left) & _compounds(right)
    a, b = (_authors(text) - compounds for text in (left, right))
    return bool(a & b) or (not a and not b)


def _authors(text: str) -> set[str]:
    figure = next((quantity.start for quantity in quantities(text) if _measures(quantity)), len(text))
    return {fold(word) for name in names(text[:figure]) for word in name.split()} - _ANYBODY


_ANYBODY = frozenset(
    "team collaboration group telescope space satellite project survey mission experiment cosmology university company "
    "key inc corp ltd the of".split()
)


def _compounds(text: str) -> frozenset[str]:
    """Names that only modify a common noun, as in 'Hubble constant': they say what is measured, not by whom."""
    return frozenset(fold(name) for name in _COMPOUND.findall(text))


_COMPOUND = re.compile(
    r"\b([A-Z]\w+) (?!team|collaboration|group|satellite|mission|project|survey|experiment|telescope|study|company)"
    r"(?=[a-z])"
)
