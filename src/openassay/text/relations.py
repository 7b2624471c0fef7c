"""How two statements relate: the same fact, a disagreement, or a newer figure for an older one."""

import math
import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, NamedTuple

from openassay.text.negation import are_contradictory, are_opposite
from openassay.text.quantities import Quantity, find_quantities
from openassay.text.sentences import is_table_row
from openassay.text.words import STOP_WORDS, content_words, find_names, fold, jaccard, stem, stems

# Statements of which only one can be true of a thing: who directed it, where somebody was born, when it was founded.
#
# Few relations, each with one value only, so that two true statements are not taken for opposites: a thing has one
# founding date, but many reviewers.

LONGEST_SUBJECT = 12  # words; a longer one has clauses of its own


class UniqueFact(NamedTuple):
    relation: str
    subject: frozenset[str]  # stems
    value: frozenset[str]  # stems of names, or the parts of a date
    dated: bool


_BEGUN = "founded|established|formed|incorporated"
_BUILT = "built|constructed|completed|erected"
_ISSUED = "released|published|issued"
_EVENT_DATE = re.compile(
    rf"^(?P<subject>.{{2,120}}?) (?:was|were) (?P<relation>born|{_BEGUN}|{_BUILT}|{_ISSUED}|opened|launched|abolished)"
    r"(?: as [^,]{2,40}?)?,? (?:in|on) (?P<value>(?:[A-Z][a-z]+ )?(?:\d{1,2}(?:,| [A-Z][a-z]+) )?\d{4}|"
    r"\d{1,2} [A-Z][a-z]+ \d{4})\b"
)
_DIED = re.compile(
    r"^(?P<subject>.{2,120}?) (?P<relation>died) (?:in|on) "
    r"(?P<value>(?:[A-Z][a-z]+ )?(?:\d{1,2}(?:,| [A-Z][a-z]+) )?\d{4}|\d{1,2} [A-Z][a-z]+ \d{4})\b"
)
_WHERE = re.compile(r"^(?P<subject>.{2,120}?) was (?P<relation>born) (?:in|at) (?P<value>[A-Z].*)")
_BY = re.compile(
    r"^(?P<subject>.{2,120}?) (?:is|was|were) (?P<relation>directed|composed|painted|discovered|invented) "
    r"(?:in \d{4} )?by (?P<value>(?:the )?[A-Z].*)"
)
_OFFICE = re.compile(
    r"^(?:The )?(?P<relation>capital|director|author|composer|architect|chief executive|CEO|president|mayor|owner) of "
    r"(?P<subject>.{2,80}?) (?:is|was) (?P<value>[A-Z].*)"
)
_KINDS = {word: kind.split("|")[0] for kind in (_BEGUN, _BUILT, _ISSUED) for word in kind.split("|")}
_DATE_PARTS = re.compile(r"\d{3,4}|\d{1,2}|[A-Z][a-z]{2}")


@lru_cache(maxsize=8192)
def parse_unique_fact(text: str) -> UniqueFact | None:
    """What a statement says of which there is only one; None for any other."""
    for pattern in (_EVENT_DATE, _DIED, _BY, _OFFICE, _WHERE):
        found = pattern.match(text)
        if found and len(found["subject"].split()) <= LONGEST_SUBJECT:
            dated = pattern in (_EVENT_DATE, _DIED)
            relation = _KINDS.get(found["relation"], found["relation"].lower())
            if dated:
                value = frozenset(part.lower() for part in _DATE_PARTS.findall(found["value"]))
            else:
                names = find_names(re.split(r"[,;.(]| and | in \d", found["value"], maxsplit=1)[0])
                value = frozenset(stem(fold(word)) for word in (names[0].split() if names else ()))
            subject = frozenset(stems(found["subject"]))
            kind = f"{relation} {'when' if dated else 'who'}"
            return UniqueFact(kind, subject, value, dated) if subject and value else None
    return None


def has_value_conflict(left: str, right: str) -> bool:
    """Whether two statements give one thing two values that cannot both be its own."""
    a, b = parse_unique_fact(left), parse_unique_fact(right)
    if a is None or b is None or a.relation != b.relation or a.subject != b.subject:
        return False
    return not (a.value <= b.value or b.value <= a.value) if a.dated else not a.value & b.value


Relation = Literal["same", "disagree", "newer", "older"]

WINDOW, CLOSE = 8, 3  # content words before a figure that say what it measures, and the nearest of them
SAME_MATTER = 0.5  # shared by the smaller window, for figures that state their uncertainty or agree
SAME_WORDING = 0.8  # shared by both windows, for bare figures: "products margin" is not "services margin"
ONE_WORDING = 0.75  # shared over all stems: one statement is a copy or a light rewording of the other
ONE_SPELLING = 0.75  # of the letters of a word
A_MATTER = 2  # words that say what a figure measures
OBJECT = 3  # content words after a figure that say what it was for


class MainFigure(NamedTuple):
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
    a, b = find_main_figure(left), find_main_figure(right)
    if (
        not is_table_row(left)
        and not is_table_row(right)
        and find_years(left) == find_years(right)
        and are_contradictory(left, right)
    ) or has_value_conflict(left, right):
        return "disagree"
    if a is None or b is None:
        return "same" if a is b and _is_rewording(left, right) else None
    if a.unit != b.unit or (a.object and b.object and not a.object & b.object):
        return None
    if math.isclose(a.value, b.value, rel_tol=1e-9):
        if _is_rewording(left, right):
            return "same"
        # Counts are common (12 people), so they need the wording of bare figures; so does a figure with a single word
        # ahead of it ("metfenil 50 mg"), which does not say what it measures.
        bare = a.counts or min(len(set(a.matter)), len(set(b.matter))) < A_MATTER
        alike = _has_same_wording(a, b) if bare else _matter_overlap(a, b) >= SAME_MATTER
        years_a, years_b = find_years(left), find_years(right)
        same_time = not years_a or not years_b or bool(years_a & years_b)
        if not (alike and same_time and a.uncertainty == b.uncertainty):
            return None
        # Only what stands ahead of the figure can turn it round: what follows compares it with others.
        return None if are_opposite(left[: a.end], right[: b.end]) else "same"
    return _compare_values(left, right, a, b) if _matter_overlap(a, b) >= SAME_MATTER else None


def _is_rewording(left: str, right: str) -> bool:
    """Tell whether no word stands in the place of another: "a drama film", "a comedy film". Forms and spellings of
    one word (chuch and church, says and said), and words that are left out, change nothing."""
    if jaccard(left, right) < ONE_WORDING or statement_facts(left) != statement_facts(right):
        return False
    if are_opposite(left, right):
        return False
    a, b = (content_words(text) for text in (left, right))
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        one, other = " ".join(a[i:j]), " ".join(b[k:m])
        is_same = tag != "replace" or bool(set(stems(one)) & set(stems(other)))
        if not is_same and SequenceMatcher(None, one, other).ratio() < ONE_SPELLING:
            return False
    return True


def _compare_values(left: str, right: str, a: MainFigure, b: MainFigure) -> Relation | None:
    """Different values. Repeated measurements carry an uncertainty; without one, other years mean change."""
    years_a, years_b = find_years(left), find_years(right)
    if a.uncertainty is not None and b.uncertainty is not None:
        if years_a and years_b and max(years_a) != max(years_b) and _has_same_author(left, right):
            return "newer" if max(years_a) > max(years_b) else "older"
        apart = abs(a.value - b.value) > 2 * math.hypot(a.uncertainty, b.uncertainty)
        return "disagree" if apart else None
    if a.uncertainty is None and b.uncertainty is None and years_a == years_b:
        return "disagree" if _is_one_matter(left, right, a, b) else None
    return None


def _is_one_matter(left: str, right: str, a: MainFigure, b: MainFigure) -> bool:
    """12 stores in Lund and 19 in Oslo are both true."""
    places = (_PLACE.findall(text) for text in (left[a.end :], right[b.end :]))
    here, there = ({fold(place) for place in found} - _TIME_WORDS for found in places)
    same_place = not here or not there or bool(here & there)
    return _has_same_wording(a, b) and _has_same_author(left, right) and same_place


def gives_other_value(left: str, right: str) -> bool:
    """Tell whether two statements give the same matter different values, and one of them does not say when: unless
    time has passed between them, only one can hold."""
    a, b = find_main_figure(left), find_main_figure(right)
    if a is None or b is None or bool(find_years(left)) == bool(find_years(right)) or a.unit != b.unit:
        return False
    if (a.object and b.object and not a.object & b.object) or math.isclose(a.value, b.value, rel_tol=1e-9):
        return False
    return a.uncertainty is None and b.uncertainty is None and _is_one_matter(left, right, a, b)


def _has_same_wording(a: MainFigure, b: MainFigure) -> bool:
    """A count needs two words to say what is counted: "the hotel has 12 rooms" may be of any hotel."""
    x, y = set(a.matter), set(b.matter)
    return len(x & y) >= max(2 if a.counts else 1, SAME_WORDING * len(x | y))


_PLACE = re.compile(r"\b(?:in|at|near) (?:the )?([A-Z][\w-]+)")


@lru_cache(maxsize=8192)
def find_main_figure(text: str) -> MainFigure | None:
    """None for a table row, which states many figures, and for a statement with none."""
    if is_table_row(text):
        return None
    found = find_quantities(text)
    at = next((at for at, quantity in enumerate(found) if _is_measurement(quantity)), None)
    for index, count in enumerate(found if at is None else ()):
        # A bare number that is no year and no part of a name or label: not 1877, Android 12, page 6.
        if count.kind != "number" or count.unit or _YEAR.fullmatch(text[count.start : count.end]):
            continue
        word = "".join(text[: count.start].split()[-1:])
        titled = any(map(str.isupper, word))  # "iPhone" too
        # A comma parts a number from the name before it: "by the Parks Department, 90 trees".
        named = titled and not word.endswith(",") and fold(word) not in STOP_WORDS and not count.approximate
        if not named and fold(word) not in _LABELS:
            at = index
            break
    if at is None:
        return None
    quantity, follower = found[at], found[at + 1] if at + 1 < len(found) else None
    error = follower if follower and follower.kind == "uncertainty" else None
    counts, unit = not _is_measurement(quantity), quantity.unit
    if counts:  # the word after it; none where the clause ends or goes on with a small word
        following = _NEXT.match(text, quantity.end)
        word = fold(following[1]) if following else ""
        unit = stem(word) if word and word not in STOP_WORDS else ""
    end = error.end if error else quantity.end
    # What it went to. From, with, by, using, in and at tell how and where it was found, not what it is.
    went_to = _WENT_TO.match(_IN_YEAR.sub("", text[end : end + 160]))
    aims: list[str] = []
    for word in went_to[1].split() if went_to else []:
        if fold(word) in _PREPOSITIONS or word[0].isdigit() or len(aims) == OBJECT:
            break
        aims.extend(stem(part) for part in content_words(word) if part not in _TIME_WORDS)
        if word.endswith((",", ";", ".", ":", ")")):
            break
    matter = tuple(stems(text[: quantity.start])[-WINDOW:])
    uncertainty = float(error.value) if error else None
    return MainFigure(float(quantity.value), unit, uncertainty, matter, frozenset(aims), counts, quantity.start, end)


def _is_measurement(quantity: Quantity) -> bool:
    """A figure with a unit; spans of time only say over what something was measured."""
    return quantity.kind in ("number", "percent", "money") and bool(quantity.unit) and quantity.unit not in _TIME_UNITS


_YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
_LABELS = frozenset(
    "page pages chapter section item note figure table part article rule version level grade type phase stage step "
    "number no no. nr # volume issue route line room question appendix".split()
)


_NEXT = re.compile(r"\s([^\W\d_][\w'’-]*)")


_PREPOSITIONS = frozenset(
    "on for of to from with by using in at during since until after before over under and or as than".split()
)
# Up to three words may part a figure from its object, as in "12 people died of flu".
_WENT_TO = re.compile(
    rf"(?:\s(?!(?:{'|'.join(sorted(_PREPOSITIONS))})\b)[^\W\d_][\w'’/-]*){{0,3}}\s(?:on|for|of|to)\s+(.+)", re.S
)
_IN_YEAR = re.compile(r"\sin (?:19|20)\d{2}\b")
_TIME_WORDS = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday year years quarter quarters month months week weeks day days decade fiscal first "
    "second third fourth last next ended ending time".split()
)
_TIME_UNITS = frozenset("s min h day week month quarter year decade century".split())


@lru_cache(maxsize=4096)
def find_years(text: str) -> frozenset[int]:
    return frozenset(map(int, _YEARS.findall(text)))


_YEARS = re.compile(r"\b(?:19|20)\d{2}\b")


def _matter_overlap(a: MainFigure, b: MainFigure) -> float:
    """By the whole window or by the nearest words, whichever agree better: authors stand in the one, not the other."""
    pairs = ((set(a.matter), set(b.matter)), (set(a.matter[-CLOSE:]), set(b.matter[-CLOSE:])))
    return max(len(x & y) / min(len(x), len(y)) if x and y else 0.0 for x, y in pairs)


def statement_facts(text: str) -> frozenset[str]:
    """Every figure, date and name of a statement: what must agree before two wordings can be one fact."""
    figures = {
        f"{quantity.value} {quantity.unit} {quantity.when} {quantity.label}" for quantity in find_quantities(text)
    }
    return frozenset(figures | {fold(word) for name in find_names(text) for word in name.split()})


def _has_same_author(left: str, right: str) -> bool:
    """Whether both name the same team ahead of their figure, or neither names any."""
    compounds = _find_compounds(left) & _find_compounds(right)
    authors = []
    for text in (left, right):
        figure = find_main_figure(text)
        ahead = text[: figure.start] if figure else text
        authors.append({fold(word) for name in find_names(ahead) for word in name.split()} - _ANYBODY - compounds)
    a, b = authors
    return bool(a & b) or (not a and not b)


_ANYBODY = frozenset(
    "team collaboration group telescope space satellite project survey mission experiment cosmology university company "
    "key inc corp ltd the of".split()
)


def _find_compounds(text: str) -> frozenset[str]:
    """Names that only modify a common noun, as in 'Hubble constant': they say what is measured, not by whom."""
    return frozenset(fold(name) for name in _COMPOUND.findall(text))


_COMPOUND = re.compile(
    r"\b([A-Z]\w+) (?!team|collaboration|group|satellite|mission|project|survey|experiment|telescope|study|company)"
    r"(?=[a-z])"
)


def is_same_fact(left: str, right: str) -> bool:
    """One fact in two wordings; opposites never are, however alike their words."""
    return left == right or relate(left, right) == "same"
