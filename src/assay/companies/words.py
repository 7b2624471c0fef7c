"""Ordinary English words and common names of people and places, so that they are not taken for companies."""

import gzip
from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def _lists() -> tuple[frozenset[str], frozenset[str]]:
    text = gzip.decompress(files("assay.companies").joinpath("data/words.txt.gz").read_bytes()).decode()
    common, rarer = (frozenset(part.split("\n")) for part in text.split("\n\n"))
    return common, rarer


def is_common(word: str) -> bool:
    """One of the words most used."""
    return word in _lists()[0]


def is_word(word: str) -> bool:
    common, rarer = _lists()
    return word in common or word in rarer
