"""Which words of a statement stand in the sentences it is held against, and which have nothing to stand on."""

from collections.abc import Sequence
from typing import NamedTuple

from assay.text.words import content_words, stem

HEAVY = 2.0  # a figure or a name carries more of a statement's truth than a plain word
_PREFIX = 5  # letters two forms of one word share at least: Britain and British, govern and governor
_AKIN = 0.7  # what a word that shares only its beginning counts


class Aligned(NamedTuple):
    """A content word of the statement, what it weighs, and how well the best word across the quote matches it."""

    word: str
    weight: float
    match: float


def align(statement: str, found: Sequence[str]) -> list[Aligned]:
    """Each distinct content word of the statement against all words of the sentences."""
    have = {stem(word) for sentence in found for word in content_words(sentence)}
    begun = {word[:_PREFIX] for word in have if len(word) >= _PREFIX}
    aligned: dict[str, Aligned] = {}
    for word in content_words(statement):
        root = stem(word)
        match = 1.0 if root in have else _AKIN if root[:_PREFIX] in begun and len(root) >= _PREFIX else 0.0
        aligned.setdefault(root, Aligned(word, weight(word, statement), match))
    return list(aligned.values())


def weight(word: str, statement: str) -> float:
    return HEAVY if any(c.isdigit() for c in word) or word.capitalize() in statement else 1.0


def coverage(aligned: Sequence[Aligned]) -> float:
    """The weighted share of the statement that is matched."""
    total = sum(item.weight for item in aligned)
    return sum(item.weight * item.match for item in aligned) / total if total else 0.0


def in_order(statement: str, sentence: str) -> float:
    """The longest run of the statement's words that the sentence has in the same order, gaps allowed."""
    wanted = [stem(word) for word in content_words(statement)]
    line = [stem(word) for word in content_words(sentence)]
    row = [0] * (len(line) + 1)
    for word in wanted:
        above, row = row, [0]
        for index, other in enumerate(line):
            row.append(above[index] + 1 if word == other else max(above[index + 1], row[index]))
    return row[-1] / len(wanted) if wanted else 0.0
