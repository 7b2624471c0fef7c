"""Whether a sentence can deny a statement at all: it speaks of the same time and the same things, and denies something.

A cheap sieve. What passes it is read by the embedded verifier, which alone takes much for a denial that only speaks of
something else: of the sentences of 25 small folders two in seven pass, and without it the verifier errs at .78.
"""

import re

from openassay.text.negation import are_opposite, has_negation
from openassay.text.relations import find_years
from openassay.text.words import find_names, fold, stems
from openassay.verification.statement_check import extract_numbers

SHARED = 2  # words
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
    if len(set(stems(statement)) & set(stems(sentence))) < SHARED:
        return False
    for find in (find_years, _find_months, _find_numbers):
        ours, theirs = find(statement), find(added)
        if ours and theirs and not ours & theirs:
            return False
    return _has_same_names(statement, sentence, title) and _has_denial(statement, added)


def is_attributed(statement: str) -> bool:
    """Whether a statement says what somebody says: that another denies it does not make it wrong."""
    return bool(_SAID.search(statement))


def _find_months(text: str) -> frozenset[str]:
    return frozenset(_MONTH.findall(text))


def _find_numbers(text: str) -> frozenset[float]:
    return frozenset(extract_numbers(text, worded=True))


def _has_same_names(statement: str, sentence: str, title: str) -> bool:
    """Where names are told, one is the same; what a sentence is about may be named in its document's title only."""
    ours, theirs = _find_name_words(statement), _find_name_words(sentence)
    return not ours or not theirs or bool(ours & (theirs | _find_name_words(title)))


def _find_name_words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for name in find_names(text) for word in name.split())


def _has_denial(statement: str, added: str) -> bool:
    return (
        bool(_DENIES.search(added)) or has_negation(statement) != has_negation(added) or are_opposite(statement, added)
    )
