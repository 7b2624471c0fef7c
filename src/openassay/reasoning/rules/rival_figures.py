"""Claims that give one quantity different figures, in whatever words: "Workers earn at least €21.50 an hour" and "The
minimum wage rose to €13.90 an hour in January 2026".

Words alone do not tell that both speak of the same. What does is an exchange: the first claim with the figure of the
second is borne out by the second, and as it stands it is not.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from openassay.models.evidence import Claim
from openassay.protocols import SupportScore
from openassay.text.relations import MainFigure, find_main_figure, find_years
from openassay.text.sentences import split_sentences
from openassay.text.words import find_names, fold, stems

MOST_PAIRS = 24  # that are held against each other; one takes a tenth of a second on two cores
SHARED = 2  # words besides the figure
# Probabilities. Of 78 pairs of statements on one quantity .81 are found, of 106 pairs of one document each, which does
# not contradict itself, chosen for being most alike, .17: numbered listings, ports and versions, for the most part.
BORNE_OUT, REFUTED = 0.62, 0.3

Score = Callable[[Sequence[tuple[str, str]]], Sequence[SupportScore]]


class _Figured(NamedTuple):
    """The sentence of a claim that has its main figure."""

    claim: str
    documents: frozenset[str]
    text: str
    figure: MainFigure
    years: frozenset[int]
    words: frozenset[str]  # stems
    names: frozenset[str]

    def say_with(self, value: str, other: "_Figured") -> str:
        """Say it with a value, and "a year" as the year of the other: what was so much in 2025 was so much a year. Left
        as it is, the verifier finds such a pair at .29 to .66, so at .69 to .86."""
        text = self.text[: self.figure.start] + value + self.text[self.figure.end :]
        return _YEARLY.sub(f"in {max(other.years)}", text) if other.years else text

    @property
    def value(self) -> str:
        return self.text[self.figure.start : self.figure.end]


_YEARLY = re.compile(r"\b(?:a|per|each|every) year\b|\b(?:annually|yearly)\b(?=\s*[.,;]|$)", re.I)


def find_rivals(claims: Sequence[Claim], score: Score) -> set[frozenset[str]]:
    """Find the pairs of claims, by id, of different documents. What is said of one year is no rival of what is said of
    another."""
    pairs = sorted(_list_pairs(claims), key=lambda pair: -len(pair[0].words & pair[1].words))[:MOST_PAIRS]
    found = score([(one.say_with(other.value, other), other.text) for one, other in pairs])
    likely = [pair for pair, chance in zip(pairs, found, strict=True) if chance.supported >= BORNE_OUT]
    as_said = score([(one.say_with(one.value, other), other.text) for one, other in likely])
    return {
        frozenset((one.claim, other.claim))
        for (one, other), chance in zip(likely, as_said, strict=True)
        if chance.refuted >= REFUTED
    }


def _list_pairs(claims: Sequence[Claim]) -> Iterator[tuple[_Figured, _Figured]]:
    """Pairs that may be rivals; the first does not say of when it is, or both are of the same years."""
    for one, other in combinations(filter(None, map(_read_claim, claims)), 2):
        first, second = (other, one) if one.years and not other.years else (one, other)
        if (
            (not first.years or first.years == second.years)
            and not first.documents & second.documents
            and _is_comparable(first.figure, second.figure)
            and len(first.words & second.words) >= SHARED
            and (first.names & second.names or not (first.names or second.names))
        ):
            yield first, second


def _read_claim(claim: Claim) -> _Figured | None:
    for piece in split_sentences(claim.text):
        if figure := find_main_figure(piece.text):
            rest = f"{piece.text[: figure.start]} {piece.text[figure.end :]}"
            names = frozenset(fold(word) for name in find_names(rest) for word in name.split())
            documents = frozenset(span.document for span in claim.spans)
            years = find_years(piece.text)
            return _Figured(claim.id, documents, piece.text, figure, years, frozenset(stems(rest)), names)
    return None


def _is_comparable(one: MainFigure, other: MainFigure) -> bool:
    """Counts of whatever, or figures with one unit, of different size. Measurements with their uncertainty are compared
    elsewhere."""
    if one.counts != other.counts or (one.unit != other.unit and not one.counts):
        return False
    return one.uncertainty is other.uncertainty is None and not math.isclose(one.value, other.value, rel_tol=1e-9)
