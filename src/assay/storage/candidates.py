"""Which passages a question is worth scoring on, for any full-text index.

To score a passage costs a read of it, and words that most passages have lead to most of them. So passages come from the
rarer words, and then from the common ones that stand together, as long as they are few.

Of the ten best of 600,000 passages (words by Zipf's law, 200 questions of 3 to 8 words), these are among the first 30:
    rarer words alone, 7,000 rows                .993
    as here, 1,500 rows                          .990
    as here, 3,000 rows                          .995
    as here, 7,000 rows                         1.000
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

ROWS = 3_000
WORDS_ASKED = 64  # more words than anyone types; it bounds the time that pasted pages take
_COMMON_WORDS = 8


class Star(NamedTuple):
    """Passages with all of some words and at least one of some others."""

    all_of: tuple[str, ...]
    any_of: tuple[str, ...]


def stars(frequency: Mapping[str, int], passages: int, rows: int) -> list[Star]:
    """Together about as many passages as `rows`, or a few of those that hold the words together where there are more.

    `frequency` tells in how many passages a word stands, as far as it stands in any."""
    words = sorted(frequency, key=lambda word: frequency[word])
    rarer = list(_while_few(((word, frequency[word]) for word in words), rows))
    used = sum(frequency[word] for word in rarer)
    chosen = [Star((), tuple(rarer))] if rarer else []
    common = words[len(rarer) :][:_COMMON_WORDS]
    for size in range(1, len(common)):
        for all_of in combinations(common, size):
            later = common[common.index(all_of[-1]) + 1 :]
            expected = {word: _together(frequency, passages, (*all_of, word)) for word in later}
            any_of = list(_while_few(expected.items(), rows - used))
            used += sum(expected[word] for word in any_of)
            if any_of:
                chosen.append(Star(all_of, tuple(any_of)))
        if chosen:
            break
    return chosen or ([Star(tuple(common[:-1]), (common[-1],))] if common else [])


def _together(frequency: Mapping[str, int], passages: int, words: Sequence[str]) -> int:
    """How many passages have all the words, were these spread at random."""
    return round(passages * prod(frequency[word] / max(passages, 1) for word in words))


def _while_few(words: Iterable[tuple[str, int]], rows: int) -> Iterator[str]:
    for word, count in words:
        rows -= count
        if rows < 0:
            return
        yield word
