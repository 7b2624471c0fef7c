"""Words of a text as PostgreSQL's full-text search takes them. They are cut here and not by the server's parser, so
that they are the same whatever its locale, in any script; its English stemmer has the last word, as SQLite's has."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.storage.database import Connection
from assay.text.words import fold

_LONGEST = 100  # characters of a word; the server takes 2,000 bytes
_MOST_TIMES = 255  # that a word counts in a passage; the server takes no more
_KNOWN = 400_000  # stems kept in memory, some 60 MB
_POSITIONS = [",".join(map(str, range(1, times + 1))) for times in range(_MOST_TIMES + 1)]
# Words that the stemmer drops, as it does "the", stand for themselves: how common they are says enough.
_STEM = """
SELECT word, coalesce((ts_lexize('english_stem', word))[1], word) AS stem FROM unnest(CAST(? AS TEXT[])) AS word
"""


class _Letters(dict[int, int]):
    """Letters, digits and the marks that belong to them stay; all else is a space."""

    def __missing__(self, character: int) -> int:
        kept = unicodedata.category(chr(character))[0] in "LNM"
        self[character] = character if kept else ord(" ")
        return self[character]


_letters = _Letters()


def words(text: str) -> list[str]:
    return [word[:_LONGEST] for word in fold(text).translate(_letters).split()]


class Vector(NamedTuple):
    """How often a passage has which stem, those of its title counted twice; `size` is how many words it has."""

    times: Mapping[str, int]
    size: int

    def text(self, prefix: str) -> str:
        """As a tsvector. Every stem has the prefix before it, and a position for each time."""
        return " ".join(
            [f"'{prefix}{stem}':{_POSITIONS[min(count, _MOST_TIMES)]}" for stem, count in self.times.items()]
        )


class Stems:
    """Stems by word, asked of the server once: in Python a word takes 80 µs, there 1 µs."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, connection: Connection, asked: Iterable[str]) -> Mapping[str, str]:
        """For these words, and others."""
        if len(self._known) > _KNOWN:
            self._known = {}  # and not cleared: another thread may be at it
        known = self._known
        if new := set(asked) - known.keys():
            known.update((row["word"], row["stem"]) for row in connection.execute(_STEM, (list(new),)))
        return known


def vectors(connection: Connection, stems: Stems, texts: Sequence[tuple[str, str]]) -> list[Vector]:
    """Of titles and passages."""
    cut = [(words(title), words(text)) for title, text in texts]
    known = stems.of(connection, (word for title, text in cut for word in (*title, *text)))
    return [_vector([known[word] for word in title], [known[word] for word in text]) for title, text in cut]


def _vector(title: Sequence[str], text: Sequence[str]) -> Vector:
    times = Counter(text)
    for stem in title:
        times[stem] += 2
    return Vector(times, len(title) + len(text))
