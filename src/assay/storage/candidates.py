"""Which passages a question is worth scoring on, for any full-text index.

To score a passage costs a read of it, and words that most passages have lead to most of them. So passages come from the
rarer words, and then from the common ones that stand together, as long as they are few.

Of the ten best of 600,000 passages (words by Zipf's law, 200 questions of 3 to 8 words), these are among the first 30:
    rarer words alone, 7,000 rows                .993
    as here, 1,500 rows                          .990
    as here, 3,000 rows                          .995
    as here, 7,000 rows                         1.000
"""

from collections.abc import Iterable, Mapping
from itertools import combinations
from math import prod
from typing import NamedTuple

ROWS = 3_000
WORDS_ASKED = 64  # more words than anyone types; it bounds the time that pasted pages take
STAND_TOGETHER = 4  # times as often as chance would have it, and no row beyond that is scored
_COMMON_WORDS = 8


class Star(NamedTuple):
    """Passages with all of some words and at least one of some others."""

    all_of: tuple[str, ...]
    any_of: tuple[str, ...]


def stars(frequency: Mapping[str, int], passages: int, rows: int) -> list[Star]:
    """Together about as many passages as `rows`, or a few of those that hold the words together where there are more.

    `frequency` tells in how many passages a word stands, as far as it stands in any."""
    chance = {word: min(frequency[word] / max(passages, 1), 1.0) for word in frequency}
    words = sorted(frequency, key=lambda word: frequency[word])
    budget = _Budget(passages, rows)
    rarer = budget.afforded((word, chance[word]) for word in words)
    chosen = [Star((), tuple(rarer))] if rarer else []
    common = words[len(rarer) :][:_COMMON_WORDS]
    for size in range(1, len(common)):
        for all_of in combinations(common, size):
            together = prod(chance[word] for word in all_of)
            later = common[common.index(all_of[-1]) + 1 :]
            if any_of := budget.afforded((word, together * chance[word]) for word in later):
                chosen.append(Star(all_of, tuple(any_of)))
        if chosen:
            break
    return chosen or ([Star(tuple(common[:-1]), (common[-1],))] if common else [])


class _Budget:
    """How many passages may still be scored; words are taken to be spread at random."""

    def __init__(self, passages: int, rows: int) -> None:
        self._passages = passages
        self._rows = rows
        self._left_out = 1.0  # the share of passages that nothing so far leads to

    def afforded(self, words: Iterable[tuple[str, float]]) -> list[str]:
        """Those of the words that come first and lead to few enough, by the chance that a passage is led to."""
        taken = []
        for word, chance in words:
            left_out = self._left_out * (1 - chance)
            if self._passages * (1 - left_out) > self._rows + 0.5:
                break
            self._left_out = left_out
            taken.append(word)
        return taken
