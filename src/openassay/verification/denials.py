"""Whether a sentence can deny a statement at all: it speaks of the same time and the same things, and denies something.

A cheap sieve: one pair passes for four to twenty statements. What passes is read by the embedded verifier, which takes
for a denial what only speaks of something else: that two ships stay in port, at .78, for that a third one sank.
"""

import re

from openassay.text.negation import are_opposite, find_directions, has_negation
from openassay.text.relations import find_years
from openassay.text.words import find_names, fold, stems, words
from openassay.verification.statement_check import extract_numbers

SHARED = 2  # words
# Of a statement's words, for a sentence of its own document, or for one without a denial of its own. What denies a
# statement repeats it: of ten sentences of articles that the verifier wrongly took for denials of another of the same
# article, nine repeat less than this.
REPEATED = 0.5
OPENING = "\"'“‘(["
_MONTH = re.compile(r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b")
_DENIES = re.compile(
    r"\b(?:false|falsely|untrue|wrong|wrongly|incorrect|incorrectly|inaccurate|mistaken|mistakenly|myths?|hoax(?:es)?|"
    r"nonsense|unfounded|fabricated|invented|bogus|debunked|disproved|disproven|refuted|rumou?rs?|misleading|"
    r"in (?:fact|reality|truth)|actually|contrary to)\b",
    re.I,
)
_SAID = re.compile(
    r"\b(?:according to|sa(?:ys?|id)|states?|stated|claim(?:s|ed)?|alleg(?:es?|ed)|argu(?:es?|ed)|den(?:y|ies|ied)|"
    r"accus(?:es?|ed|ing)|report(?:s|ed|edly)?|believ(?:es?|ed)|told|suggest(?:s|ed))\b",
    re.I,
)


def can_deny(statement: str, sentence: str, added: str, title: str = "") -> bool:
    """Tell whether a sentence can deny a statement. `added` is what it says besides the statement itself, `title` that
    of its document."""
    said = set(stems(statement))
    # What denies nothing itself has to affirm what the statement denies, and not to speak of the same only: "without a
    # model of the early universe" is said of one measurement, and not of another.
    denies = _DENIES.search(added) or has_negation(added)
    if len(said & set(stems(sentence))) < max(SHARED, 0 if denies else REPEATED * len(said)):
        return False
    for find in (find_years, _find_months, _find_numbers):
        ours, theirs = find(statement), find(added)
        if ours and theirs and not ours & theirs:
            return False
    return _has_same_names(statement, sentence, title) and _has_denial(statement, added)


def can_retract(statement: str, sentence: str, added: str) -> bool:
    """Tell whether a sentence of a statement's own document can take it back. That somebody says so and somebody else
    does not is told by many a document, which stands by its words."""
    ours = set(stems(statement))
    return len(ours & set(stems(sentence))) >= REPEATED * len(ours) and not _SAID.search(f"{statement} {added}")


def _find_months(text: str) -> frozenset[str]:
    return frozenset(_MONTH.findall(text))


def _find_numbers(text: str) -> frozenset[float]:
    return frozenset(extract_numbers(text, worded=True))


def _has_same_names(statement: str, sentence: str, title: str) -> bool:
    """Where names are told, one is the same; what a sentence is about may be named in its document's title only."""
    subject, other = _find_subject(statement), _find_subject(sentence)
    known = subject & set(words(f"{sentence} {title}")) | other & set(words(statement))
    if subject and other and not known:
        return False
    ours, theirs = _find_name_words(statement), _find_name_words(sentence)
    return not ours or not theirs or bool(ours & (theirs | _find_name_words(title)))


def _find_subject(text: str) -> frozenset[str]:
    """The words of the name that a text begins with."""
    name = next(iter(find_names(text)), "")
    start = text.lstrip(OPENING).removeprefix("The ")
    return _find_name_words(name) if name and start.startswith(name) else frozenset()


def _find_name_words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for name in find_names(text) for word in name.split())


def _has_denial(statement: str, added: str) -> bool:
    return bool(_DENIES.search(added)) or (are_opposite(statement, added) and not _points_same_way(statement, added))


def _points_same_way(left: str, right: str) -> bool:
    """Whether one denies the opposite of what the other says: what is lower has not been raised."""
    return any(
        one.family == other.family and one.rises == other.rises and _rises(one.cue) != _rises(other.cue)
        for one in find_directions(left)
        for other in find_directions(right)
    )


def _rises(cue: str) -> bool | None:
    """Which way a word points by itself, without its negation."""
    return next((found.rises for found in find_directions(cue)), None)
