"""What a text says a thing is, where it names it: "The Grey Ferry is a 1979 Danish film". Things of one name differ in
it: in the year, the country or the kind."""

import re
from functools import lru_cache
from typing import NamedTuple

from assay.reasoning.embedded.pointed.kinds import COUNTRIES, MEDIA, OCCUPATIONS, SPORTS, STATES, TONGUES, said
from assay.text.words import fold, stems

LONGEST = 140  # characters of what defines; after that a text tells other things


class Definition(NamedTuple):
    years: frozenset[str]
    places: frozenset[str]
    kinds: frozenset[str]


_IS = re.compile(r"(?: ?\([^()]{0,120}\))?,? (?:is|was|are|were) (?:an?|the|one of)\b")
_STOP = re.compile(r"(?<=[a-z\d)]{2}) ?\.(?: |$)")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_PLACES = tuple(dict.fromkeys((*TONGUES, *STATES, *COUNTRIES)))
_KINDS = tuple(dict.fromkeys((*MEDIA, *OCCUPATIONS, *SPORTS)))


@lru_cache(maxsize=512)
def definition(subject: str, text: str, answer: str) -> Definition | None:
    """Of the subject, less the answer, which may be part of it; None where a text does not define it."""
    own = stems(subject)
    for found in _IS.finditer(text) if own else ():
        if own[-1] in stems(text[max(0, found.start() - 60) : found.start()])[-1:]:
            stop = _STOP.search(text, found.end())
            end = min(stop.start() if stop else len(text), found.end() + LONGEST)
            phrase = text[found.end() : end].replace(answer, " ")
            return Definition(frozenset(_YEAR.findall(phrase)), _hits(_PLACES, phrase), _hits(_KINDS, phrase))
    return None


def _hits(known: tuple[str, ...], phrase: str) -> frozenset[str]:
    return frozenset(stem for hit in said(known).findall(phrase) for stem in stems(fold(hit)))


def differ(left: Definition | None, right: Definition | None) -> bool:
    """Whether both tell a year, a place or a kind and have none in common."""
    return bool(left and right) and any(a and b and not a & b for a, b in zip(left or (), right or (), strict=True))
