"""Which sentences of a long quote a statement must be held against: few, and together covering most of it."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from assay.text.sentences import sentences
from assay.text.words import stems

MOST = 5  # sentences; a quote of so many or fewer is taken whole
_AGAIN = 0.35  # what a word is still worth in a second sentence: the one that has it in context may come later


@lru_cache(maxsize=2048)
def split(quote: str) -> tuple[str, ...]:
    return tuple(piece.text for piece in sentences(quote)) or (quote,)


def nearest(statement: str, quote: str) -> tuple[str, ...]:
    """Sentences in the order of the quote, chosen one by one for the rare words of the statement they add."""
    found = split(quote)
    if len(found) <= MOST:
        return found
    wanted = set(stems(statement))
    shared = [wanted & set(stems(sentence)) for sentence in found]
    weights = _rarity(shared)
    worth = dict(weights)
    chosen: list[int] = []
    while len(chosen) < MOST:
        rest = [index for index in range(len(found)) if index not in chosen]
        best = max(rest, key=lambda index: _gain(shared, index, worth))
        if not shared[best]:
            break
        chosen.append(best)
        for word in shared[best]:
            worth[word] = _AGAIN * weights[word]
    return tuple(found[index] for index in sorted(chosen)) or found[:MOST]


def _gain(shared: Sequence[set[str]], index: int, worth: dict[str, float]) -> float:
    own = sum(worth[word] for word in shared[index])
    beside = [shared[near] for near in (index - 1, index + 1) if 0 <= near < len(shared)]
    around = sum(worth[word] for words in beside for word in words - shared[index])
    return own + 0.1 * around


def _rarity(shared: Sequence[set[str]]) -> dict[str, float]:
    counts = Counter(word for words in shared for word in words)
    return {word: math.log(1 + len(shared) / count) for word, count in counts.items()}
