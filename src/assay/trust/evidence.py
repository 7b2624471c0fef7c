"""Which sentences bear on a statement: the few that together hold most of what it says.

By benchmarks/bench_evidence.py, of the sentences people found to support a claim the five chosen here hold .88, the
five best by BM25 .83. MiniLM's cosine was tried beside the words and found less (at .2 .003, at .6 .008).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

from assay.text.words import STOP_WORDS, content_words, stem

# Reasons are recall at five on WiCE, .880 as it stands (halves .873 and .887). Constants drawn at random and chosen on
# one half find .870 on the other.
SATURATION, LENGTH = 0.7, 0.3  # BM25's k1 and b: at 1.2 and .75 short headings win, .03 less
BEFORE, AFTER = 0.4, 0.2  # of the neighbours' words: "he" is whom the sentence before names; without them .02 less
TITLED = 0.1  # of the title's words, for every sentence below it; 0 found .003 less among many documents
FIGURE, NAME = 1.6, 1.3  # times a plain word; 1 and 1 found .01 less
FRAGMENT = 0.85  # of a sentence's worth, for a heading or a line of a menu; 1 found .006 less
ADDED = 0.75  # for what no sentence chosen before has; 0 found .01 less, 2 .01 to .02 less
POOL = 30  # sentences that are weighed against each other; 15 found as much

Held = dict[str, float]  # how much of each word of a statement a sentence holds


class Block(NamedTuple):
    """Consecutive sentences of one document."""

    sentences: Sequence[str]
    title: str = ""


class Bearing(NamedTuple):
    block: int
    sentence: int
    share: float  # of the statement's words, by weight, that stand in the sentence itself


class SentenceIndex:
    """Sentences found by their words: those that share none with a statement are never looked at."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._places = [(b, s) for b, block in enumerate(blocks) for s in range(len(block.sentences))]
        self._titles = [frozenset(parts(block.title)) for block in blocks]
        self._lengths: list[int] = []
        self._whole: list[bool] = []
        self._holders: dict[str, dict[int, int]] = defaultdict(dict)
        for number, text in enumerate(text for block in blocks for text in block.sentences):
            words = parts(text)
            self._lengths.append(len(words))
            self._whole.append(_is_whole(text))
            for word, count in Counter(words).items():
                self._holders[word][number] = count
        self._average = max(1.0, sum(self._lengths) / max(1, len(self._lengths)))

    def bearing(self, statement: str, limit: int) -> list[Bearing]:
        """The best sentences, each chosen for what it holds and for what those before it lack."""
        weights = self._weights(statement)
        own = self._own(weights)
        held = {number: self._in_context(number, own, weights) for number in own}
        worth = {
            number: self._standing(number) * sum(weights[word] * much for word, much in words.items())
            for number, words in held.items()
        }
        pool = sorted(worth, key=lambda number: (-worth[number], number))[:POOL]
        left = dict(weights)
        chosen: list[Bearing] = []
        while pool and len(chosen) < limit:
            best = max(pool, key=lambda number: worth[number] + ADDED * self._added(number, held[number], left))
            pool.remove(best)
            left = {word: weight * (1 - min(1.0, own[best].get(word, 0.0))) for word, weight in left.items()}
            chosen.append(Bearing(*self._places[best], share=sum(weights[word] for word in own[best])))
        return chosen

    def _weights(self, statement: str) -> dict[str, float]:
        """Of all words of a statement, rarer ones more, together 1."""
        names = _names(statement)
        total = len(self._places)
        weights = {}
        for word in dict.fromkeys(parts(statement)):
            count = len(self._holders.get(word, ()))
            kind = FIGURE if any(letter.isdigit() for letter in word) else NAME if word in names else 1.0
            weights[word] = kind * log(1 + (total - count + 0.5) / (count + 0.5))
        whole = sum(weights.values())
        return {word: weight / whole for word, weight in weights.items()}

    def _own(self, weights: dict[str, float]) -> dict[int, Held]:
        own: dict[int, Held] = defaultdict(dict)
        for word in weights:
            for number, count in self._holders.get(word, {}).items():
                norm = SATURATION * (1 - LENGTH + LENGTH * self._lengths[number] / self._average)
                own[number][word] = count * (SATURATION + 1) / (count + norm)
        return dict(own)

    def _in_context(self, number: int, own: dict[int, Held], weights: dict[str, float]) -> Held:
        """What a sentence holds, and less of what only its neighbours and the title hold."""
        block = self._places[number][0]
        held = {word: TITLED for word in self._titles[block] if word in weights}
        for near, part in ((number + 1, AFTER), (number - 1, BEFORE)):
            if 0 <= near < len(self._places) and self._places[near][0] == block:
                for word, much in own.get(near, {}).items():
                    held[word] = max(held.get(word, 0.0), part * much)
        return {**held, **own[number]}

    def _added(self, number: int, held: Held, left: dict[str, float]) -> float:
        return self._standing(number) * sum(left[word] * min(1.0, much) for word, much in held.items())

    def _standing(self, number: int) -> float:
        return 1.0 if self._whole[number] else FRAGMENT


def best(statement: str, sentences: Sequence[str], limit: int = 5) -> list[int]:
    """Of one document's sentences, in order, the places of those that bear on a statement most, best first."""
    return [found.sentence for found in SentenceIndex([Block(sentences)]).bearing(statement, limit)]


def parts(text: str) -> list[str]:
    """Stems of the content words, and of the words that a compound is made of: "top-earning" is "earning" too."""
    return list(_parts(text))


def _parts(text: str) -> Iterator[str]:
    for word in content_words(text):
        yield stem(word)
        pieces = _JOINT.split(word)
        if len(pieces) > 1:
            yield from (stem(piece) for piece in pieces if len(piece) > 1 and piece not in STOP_WORDS)


_JOINT = re.compile(r"[-.&'’]")


def _names(statement: str) -> frozenset[str]:
    """Stems of the words with a capital, but for the first, which any sentence has."""
    return frozenset(stem(word) for name in _CAPITALISED.findall(statement) for word in content_words(name))


_CAPITALISED = re.compile(r"(?<!^)\b[A-Z][\w'’.-]*")


def _is_whole(text: str) -> bool:
    """A sentence, not a heading nor a line of a menu."""
    return len(text.split()) >= 5 and text.rstrip().endswith((".", "!", "?", ":", '"', "”", "’", "'", ")", "。"))
