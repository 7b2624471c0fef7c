"""How far a text has the words that were asked for, rare ones counting most."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from assay.text.words import stems


def rarity(texts: Iterable[str]) -> dict[str, float]:
    """Inverse document frequency of every stem, so that common words of a corpus weigh little."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        counts.update(set(stems(text)))
        total += 1
    return {word: math.log(1 + total / (1 + count)) for word, count in counts.items()}


def recall(wanted: Mapping[str, float], text: str, weights: Mapping[str, float]) -> float:
    """The weighted share of the wanted stems that a text has; a stem the corpus lacks is not held against it."""
    have = set(stems(text))
    weighed = {word: share * weights[word] for word, share in wanted.items() if word in weights}
    total = sum(weighed.values())
    return sum(weight for word, weight in weighed.items() if word in have) / total if total else 0.0
