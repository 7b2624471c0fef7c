"""How two statements relate: the same fact, a disagreement, or a newer figure for an older one."""

import math
import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, NamedTuple

from assay.text.names import names
from assay.text.negation import contradict, opposed
from assay.text.overlap import jaccard
from assay.text.quantities import Quantity, quantities
from assay.text.sentences import is_row
from assay.text.sole import opposite
from assay.text.words import STOP_WORDS, content_words, fold, stem, stems

Relation = Literal["same", "disagree", "newer", "older"]

WINDOW, CLOSE = 8, 3  # content words before a figure that say what it measures, and the nearest of them
SAME_MATTER = 0.5  # shared by the smaller window, for figures that state their uncertainty or agree
SAME_WORDING = 0.8  # shared by both windows, for bare figures: "products margin" is not "services margin"
ONE_WORDING = 0.75  # shared over all stems: one statement is a copy or a light rewording of the other
ONE_SPELLING = 0.75  # of the letters of a word
A_MATTER = 2  # words that say what a figure measures
OBJECT = 3  # content words after a figure that say what it was for


class Measure(NamedTuple):
    """The first figure of a statement that is no date, with the uncertainty stated beside it. One with a unit of
    measure goes before a count, whose unit is what is counted."""

    value: float
    unit: str
    uncertainty: float | None
    matter: tuple[str, ...]  # stems of what it measures, nearest last
    object: frozenset[str]  # stems of what it went to: "roads" in "12 million euros on roads"
    counts: bool  # without a unit of measure
    start: int
    end: int


def relate(left: str, right: str) -> Relation | None:
    """How `left` stands to `right`; None when they speak of different things or nothing can be told."""
    a, b = measure(left), measure(right)
    if _contradict(left, right) or opposite(left, right):
        return "disagree"
    if a is None or b is None:
        return "same" if a is b and _reworded(left, right) else None
    if a.unit != b.unit or (a.object and b.object and not a.object & b.object):
        return None
    if math.isclose(a.value, b.value, rel_tol=1e-9):
        return "same" if _reworded(left, right) or _same_figure(left, right, a, b) else None
    return _differing(left, right, a, b) if _shared(a, b) >= SAME_MATTER else None


def _contradict(left: str, right: str) -> bool:
    return not is_row(left) and not is_row(right) and years(left) == years(right) and contradict(left, right)


def _reworded(left: str, right: str) -> bool:
    alike = jaccard(left, right) >= ONE_WORDING and stated(left) == stated(right) and not opposed(left, right)
    return alike and not _exchanged(left, right)


def _exchanged(left: str, right: str) -> bool:
    """Whether one statement has another word in a place of the other: "a drama film", "a comedy film". Spellings of
    one word, and words that are left out, change nothing."""
    a, b = (content_words(text) for text in (left, right))
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    pairs = ((a[i:j], b[k:m]) for tag, i, j, k, m in blocks if tag == "replace")
    return any(not _one_word(" ".join(one), " ".join(other)) for one, other in pairs)


def _one_word(left: str, right: str) -> bool:
    """Forms and spellings of one word: chuch and church, says and said."""
    shared = set(stems(left)) & set(stems(right))
    return bool(shared) or SequenceMatcher(None, left, right).ratio() >= ONE_SPELLING


def _same_figure(left: str, right: str, a: Measure, b: Measure) -> bool:
    """Counts are common (12 people), so they need the wording of bare figures; so does a figure with a single word
    ahead of it ("metfenil 50 mg"), which does not say what it measures. Only what stands ahead of the figure can turn
    it round: what follows compares it with others ("higher than ...")."""
    bare = a.counts or min(len(set(a.matter)), len(set(b.matter))) < A_MATTER
    alike = _one_wording(a, b) if bare else _shared(a, b) >= SAME_MATTER
    return (
        alike
        and _same_period(left, right)
        and a.uncertainty == b.uncertainty
        and not opposed(left[: a.end], right[: b.end])
    )


def _differing(left: str, right: str, a: Measure, b: Measure) -> Relation | None:
    """Different values. Repeated measurements carry an uncertainty; without one, other years mean change."""
    years_a, years_b = years(left), years(right)
    if a.uncertainty is not None and b.uncertainty is not None:
        if years_a and years_b and max(years_a) != max(years_b) and _same_author(left, right):
            return "newer" if max(years_a) > max(years_b) else "older"
        apart = abs(a.value - b.value) > 2 * math.hypot(a.uncertainty, b.uncertainty)
        return "disagree" if apart else None
    if a.uncertainty is None and b.uncertainty is None and years_a == years_b:
        one_matter = _one_wording(a, b) and _same_author(left, right) and _same_place(left[a.end :], right[b.end :])
        return "disagree" if one_matter else None
    return None


def _one_wording(a: Measure, b: Measure) -> bool:
    """A count needs two words to say what is counted: "the hotel has 12 rooms" may be of any hotel."""
    x, y = set(a.matter), set(b.matter)
    return len(x & y) >= max(2 if a.counts else 1, SAME_WORDING * len(x | y))


def _same_place(left: str, right: str) -> bool:
    """Whether what follows two figures places them alike; 12 stores in Lund and 19 in Oslo are both true."""
    a, b = ({fold(place) for place in _PLACE.findall(text)} - _WHEN for text in (left, right))
    return not a or not b or bool(a & b)


_PLACE = re.compile(r"\b(?:in|at|near) (?:the )?([A-Z][\w-]+)")


@lru_cache(maxsize=8192)
def measure(text: str) -> Measure | None:
    """None for a table row, which states many figures, and for a statement with none."""
    if is_row(text):
        return None
    found = quantities(text)
    at = next((at for at, quantity in enumerate(found) if _measures(quantity)), None)
    if at is None:
        at = next((at for at, quantity in enumerate(found) if _counts(text, quantity)), None)
    if at is None:
        return None
    quantity, follower = found[at], found[at + 1] if at + 1 < len(found) else None
    error = follower if follower and follower.kind == "uncertainty" else None
    counts = not _measures(quantity)
    return Measure(
        float(quantity.value),
        _counted(text, quantity.end) if counts else quantity.unit,
        float(error.value) if error else None,
        tuple(stems(text[: quantity.start])[-WINDOW:]),
        _object(text, error.end if error else quantity.end),
        counts,
        quantity.start,
        error.end if error else quantity.end,
    )


def _measures(quantity: Quantity) -> bool:
    """A figure with a unit; spans of time only say over what something was measured."""
    return quantity.kind in ("number", "percent", "money") and bool(quantity.unit) and quantity.unit not in _TIMES


def _counts(text: str, quantity: Quantity) -> bool:
    """A bare number that is no year and no part of a name or label: not 1877, Android 12, page 6."""
    if quantity.kind != "number" or quantity.unit or _YEAR.fullmatch(text[quantity.start : quantity.end]):
        return False
    before = text[: quantity.start].split()[-1:]
    word = before[0] if before else ""
    titled = word[:1].isupper() or any(letter.isupper() for letter in word[1:])  # "iPhone" too
    named = titled and fold(word) not in STOP_WORDS and not quantity.approximate
    return not named and fold(word) not in _LABELS


_YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
_LABELS = frozenset(
    "page pages chapter section item note figure table part article rule version level grade type phase stage step "
    "number no no. nr # volume issue route line room question appendix".split()
)


def _counted(text: str, end: int) -> str:
    """The stem of the word after a number; none where the clause ends or goes on with a small word."""
    following = _NEXT.match(text, end)
    word = fold(following[1]) if following else ""
    return stem(word) if word and word not in STOP_WORDS else ""


_NEXT = re.compile(r"\s([^\W\d_][\w'’-]*)")


def _object(text: str, end: int) -> frozenset[str]:
    """What a figure went to. From, with, by, using, in and at tell how and where it was found, not what it is."""
    found = _WENT_TO.match(_IN_YEAR.sub("", text[end : end + 160]))
    said: list[str] = []
    for word in found[1].split() if found else []:
        if fold(word) in _PREPOSITIONS or word[0].isdigit() or len(said) == OBJECT:
            break
        said.extend(stem(part) for part in content_words(word) if part not in _WHEN)
        if word.endswith((",", ";", ".", ":", ")")):
            break
    return frozenset(said)


_PREPOSITIONS = frozenset(
    "on for of to from with by using in at during since until after before over under and or as than".split()
)
# Up to three words may part a figure from its object, as in "12 people died of flu".
_WENT_TO = re.compile(
    rf"(?:\s(?!(?:{'|'.join(sorted(_PREPOSITIONS))})\b)[^\W\d_][\w'’/-]*){{0,3}}\s(?:on|for|of|to)\s+(.+)", re.S
)
_IN_YEAR = re.compile(r"\sin (?:19|20)\d{2}\b")
_WHEN = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday year years quarter quarters month months week weeks day days decade fiscal first "
    "second third fourth last next ended ending time".split()
)
_TIMES = frozenset("s min h day week month quarter year decade century".split())


@lru_cache(maxsize=4096)
def years(text: str) -> frozenset[int]:
    return frozenset(map(int, _YEARS.findall(text)))


_YEARS = re.compile(r"\b(?:19|20)\d{2}\b")


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
    figure = measure(text)
    ahead = text[: figure.start] if figure else text
    return {fold(word) for name in names(ahead) for word in name.split()} - _ANYBODY


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


def same(left: str, right: str) -> bool:
    """One fact in two wordings; opposites never are, however alike their words."""
    return left == right or relate(left, right) == "same"
