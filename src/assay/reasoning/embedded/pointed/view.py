"""A text as an answer is looked for in it: its words, the ends of its sentences, where it has the question's words."""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from assay.reasoning.embedded.pointed.wanted import Wanted
from assay.text.words import fold, stem, stems

LONGEST = 12  # words of an answer
SYNONYM = 0.88  # of the weight of the question's own word
EARLY = 0.15  # what opens a text is what it is about


class Stretch(NamedTuple):
    """A part of a text, and how well it fits, 0 to 1."""

    start: int
    end: int
    score: float

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class Word(NamedTuple):
    start: int
    end: int
    stem: str


_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_STOP = re.compile(r"(?<![A-Z])(?<!\b(?:St|Dr|Mr|No|Lt|Jr|Sr))(?<=[\w)\]\"'”’])\s?[.!?](?=\s+[A-Z\"“(\[]|\s*$)")


@lru_cache(maxsize=65_536)
def _stemmed(word: str) -> str:
    return stem(fold(word))


class Read:
    """A text with its words, the ends of its sentences, and where it has the cues and the subject."""

    def __init__(self, wanted: Wanted, text: str) -> None:
        self.text = text
        self.words = [Word(m.start(), m.end(), _stemmed(m.group())) for m in _WORD.finditer(text)]
        self.stops = [m.end() for m in _STOP.finditer(text)]
        self.cues = [(self._where(frozenset({own})), self._where(alike)) for own, alike in wanted.cues]
        self.marks = [at for own, alike in self.cues for at in (*own, *alike)]  # of all cues
        self.loose = self._where(wanted.loose)
        self.against = self._where(wanted.against)
        self.needed = self._where(wanted.needs) if wanted.needs else None
        self.subject = self._where(frozenset(stems(wanted.subject)))

    def _where(self, among: frozenset[str]) -> list[int]:
        return [at for at, word in enumerate(self.words) if word.stem in among]

    def index(self, place: int) -> int:
        """Of the first word that ends after a place."""
        return bisect_right(self.words, place, key=lambda word: word.end)

    def apart(self, first: int, second: int) -> int:
        """Sentence ends between two places."""
        low, high = min(first, second), max(first, second)
        return sum(low < stop <= high for stop in self.stops)

    def near(self, start: int, end: int, marks: list[int]) -> float:
        """How close the nearest of some words stands; one ahead counts more than one behind."""
        left, right = self.index(start), self.index(end - 1) + 1
        best = 0.0
        for at in marks:
            if left <= at < right:
                continue
            gap = left - at - 1 if at < left else at - right + 2
            gap += 12 * self.apart(self.words[at].start, start)
            best = max(best, 1 / (1 + gap / 5))
        return best

    def named(self, start: int, end: int) -> float:
        """How close the subject's name stands; a text without it may well speak of it all the same."""
        return self.near(start, end, self.subject) if self.subject else 0.5

    def cued(self, start: int, end: int) -> float:
        """How close the question's words stand: the nearest of them first of all, then the others."""
        each = [
            max(self.near(start, end, own), SYNONYM * self.near(start, end, alike))
            for own, alike in self.cues
            if own or alike
        ]
        return 0.5 * max(each) + 0.5 * sum(each) / len(each) if each else 0.0

    def cue_just_ahead(self, start: int, most: int = 4) -> bool:
        at = self.index(start)
        return any(at - most <= cue < at for cue in self.marks)

    def says(self, word: str, place: int) -> bool:
        """Whether the sentence at a place has a word, by its stem."""
        return any(not self.apart(self.words[at].start, place) for at in self._where(frozenset({word})))

    def of_another_matter(self, start: int, end: int) -> bool:
        """Whether a word of something else than what is asked stands nearer, in the sentence, than the question's, or
        what must be said there is not."""
        own = self._steps(start, end, self.marks if self.needed is None else self.needed)
        return self._steps(start, end, self.against) < own or (self.needed is not None and own == float("inf"))

    def _steps(self, start: int, end: int, marks: list[int]) -> float:
        left, right = self.index(start), self.index(end - 1)
        here = [at for at in marks if not left <= at <= right and not self.apart(self.words[at].start, start)]
        return min((left - at if at < left else at - right for at in here), default=float("inf"))

    def follows(self, start: int) -> bool:
        """Whether a cue and a small word stand just ahead: "population of 837"."""
        at = self.index(start)
        return "of" in {word.stem for word in self.words[max(0, at - 3) : at]} and self.cue_just_ahead(start, 3)

    def early(self, start: int) -> float:
        return EARLY * (1 - start / max(1, len(self.text)))
