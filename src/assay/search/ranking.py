"""Ranking passages for a query: by words and meaning, so that together they cover it, then a second look.

A question is followed to what its first hits name; a request that fills a paragraph is asked again in their words.
Where passages have vectors, those nearest in meaning are found besides, whatever their words.
By benchmarks/bench_retrieval.py, the share of two-hop questions with all gold passages in the top five is .62 for
BM25, .71 for `first` and .95 for `rank`; precision@20 on related work is .50, .635 and .657.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, NamedTuple

from assay.ports import Embedder, PassageIndex
from assay.search.feedback import ask_again
from assay.search.hops import follow, has_title
from assay.search.matches import Ranked, best_first, match
from assay.text.words import content_words, stem, stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MATCHED = 150  # by words, which is quick: a document that is wanted later must be among them
ENCODED = 30  # by meaning, which is slow; 20 cost related work .02, 60 found no more
ENCODED_AGAIN = 60  # of those a long request finds the second time; 30 cost related work .01, 100 found no more
LONG = 40  # distinct words from which a query is a request with its own background, not a question
NEAR = 150  # by the vectors of an index, where it has any
MEANING = 0.5  # and the rest for words; .3 found .01 less with the hop, .7 found .04 less without it
TITLED = 0.2  # for a passage whose title the query has; without it .01 to .04 less, most of it comparisons
COVERING = 0.4  # for a passage with all words of the query; .2 found .03 less without the hop, .8 .01 more
COVERED = 60  # passages that are ordered by what they add, the others follow; 30 found as much, long requests .002 less
PER_DOCUMENT = 8  # passages of one document among the results, so that one long file cannot fill them


def first(query: str, indexes: Sequence[PassageIndex], embedder: Embedder, limit: int) -> list[Ranked]:
    """One search, without the hop."""
    return _spread(_covering(query, _found(query, indexes, embedder)), limit)


def rank(query: str, indexes: Sequence[PassageIndex], embedder: Embedder, limit: int) -> list[Ranked]:
    if len(set(content_words(query))) >= LONG:
        return _spread(_covering(query, _asked_again(query, indexes, embedder)), limit)
    found = _found(query, indexes, embedder)
    followed = follow(content_words(query), found, _covering(query, found), indexes)
    return _spread(_covering(query, best_first(followed)), limit)


def _found(query: str, indexes: Sequence[PassageIndex], embedder: Embedder) -> list[Ranked]:
    matched = match(content_words(query), indexes, MATCHED)
    meant = _meant(query, indexes, embedder)
    return _titled(query, by_meaning(meant, matched, embedder))


def _asked_again(query: str, indexes: Sequence[PassageIndex], embedder: Embedder) -> list[Ranked]:
    matched = match(content_words(query), indexes, MATCHED)
    meant = _meant(query, indexes, embedder)
    again = ask_again(by_meaning(meant, matched, embedder), matched, indexes, MATCHED) if matched else []
    return _titled(query, by_meaning(meant, again, embedder, ENCODED_AGAIN))


class Meant(NamedTuple):
    """A query by its meaning, with the passages nearest to it."""

    vector: "NDArray[np.float32]"
    near: Sequence[Ranked]


def _meant(query: str, indexes: Sequence[PassageIndex], embedder: Embedder) -> Meant:
    vector = embedder.embed([query])[0]
    near = [Ranked(index, hit) for index in indexes for hit in index.nearest(embedder.name, vector, limit=NEAR)]
    return Meant(vector, near)


def _titled(query: str, found: Sequence[Ranked]) -> list[Ranked]:
    return best_first(
        [ranked.scored(ranked.score + TITLED) if has_title(query, ranked.match.title) else ranked for ranked in found]
    )


def by_meaning(meant: Meant, found: Sequence[Ranked], embedder: Embedder, most: int = ENCODED) -> list[Ranked]:
    """By words and meaning, for the first by words and for those near; the others count as far as the farthest of them.

    A passage that is only near has nothing for its words. Two-hop questions, with vectors: .96; by the places in both
    lists (reciprocal rank fusion) .91, since how near a passage is says more than how many are nearer."""
    near = meant.near
    cosines = {ranked.key: max(0.0, ranked.score) for ranked in near}
    neighbours = Counter(id(ranked.origin) for ranked in near)  # of an index that has many, what is not near is far
    encoded = [ranked for ranked in found[:most] if ranked.key not in cosines and neighbours[id(ranked.origin)] < NEAR]
    if encoded:
        made = (embedder.embed([ranked.text for ranked in encoded]) @ meant.vector).tolist()
        cosines |= {ranked.key: max(0.0, cosine) for ranked, cosine in zip(encoded, made, strict=True)}
    farthest = min(cosines.values(), default=0.0)
    matched = {ranked.key for ranked in found}
    by_words = [*found, *(ranked.scored(0.0) for ranked in near if ranked.key not in matched)]
    return best_first(
        [
            ranked.scored((1 - MEANING) * ranked.score + MEANING * cosines.get(ranked.key, farthest))
            for ranked in by_words
        ]
    )


def _covering(query: str, found: Sequence[Ranked]) -> list[Ranked]:
    """Best first, where a passage is worth more for words of the query that none before it has.

    Five passages about the same half of a question are worth less than two that have both.
    """
    left, chosen = list(found[:COVERED]), []
    has = {ranked.key: _stems(ranked.text) for ranked in left}
    missing = _rarity({stem(word) for word in content_words(query)}, list(has.values()))
    whole = sum(missing.values())
    while left and missing:
        added = [sum(missing[word] for word in missing if word in has[ranked.key]) / whole for ranked in left]
        best = max(range(len(left)), key=lambda place: left[place].score + COVERING * added[place])
        chosen.append(left[best].scored(left[best].score + COVERING * added[best]))
        missing = {word: rarity for word, rarity in missing.items() if word not in has[left[best].key]}
        del left[best]
    return [*chosen, *left, *found[COVERED:]]


@lru_cache(maxsize=1024)  # every query orders its passages twice
def _stems(text: str) -> frozenset[str]:
    return frozenset(stems(text))


def _rarity(asked: set[str], texts: Sequence[frozenset[str]]) -> dict[str, float]:
    """Of the words that any text has: those that few have tell more."""
    counts = {word: sum(word in text for text in texts) for word in sorted(asked)}
    return {word: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in counts.items() if count}


def _spread(ranked: Sequence[Ranked], limit: int) -> list[Ranked]:
    seen: dict[str, int] = {}
    kept = []
    for item in ranked:
        document = item.match.passage.document
        seen[document] = seen.get(document, 0) + 1
        if seen[document] <= PER_DOCUMENT:
            kept.append(item)
    return kept[:limit]
