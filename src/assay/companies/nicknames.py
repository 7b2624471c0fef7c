"""Names that people use for well-known companies of a register."""

from collections.abc import Mapping
from functools import cached_property

from assay.companies.known import Known
from assay.companies.names import Name
from assay.companies.spelling import Spellings

LONG = 9  # letters


class Nicknames:
    def __init__(self, known: Mapping[int, Known]) -> None:
        called = [(name, place) for place, entry in known.items() for name in entry.names if name.stands_alone]
        self.places = {name.key: place for name, place in called}
        self.ordinary = frozenset(name.key for name, _ in called if name.ordinary)  # words besides
        self.articled = frozenset(name.key for name, _ in called if name.text.startswith("The "))
        words = [key.split(" ") for key in self.places]
        self.beginnings = frozenset(" ".join(key[:count]) for key in words for count in range(1, len(key) + 1))
        self.first_words = frozenset(key[0] for key in words)
        self.later_words = frozenset(word for key in words for word in key[1:])

    def is_unmistakable(self, name: Name) -> bool:
        """Whether it can be nothing but a company's name."""
        return name.key in self.places and name.key not in self.ordinary

    def misspelt(self, name: Name) -> set[int]:
        """Whose unmistakable name is one slip away. Spaces may be missing too, but not in "read it"."""
        near = {self._squashed[string] for string in self._spellings.near(name.squashed)}
        return {self.places[key] for key in near if len(name.squashed) >= LONG or len(key.split()) == len(name.core)}

    def is_near(self, squashed: str) -> bool:
        return bool(self._spellings.near(squashed))

    @cached_property
    def _squashed(self) -> dict[str, str]:
        return {key.replace(" ", ""): key for key in self.places if key not in self.ordinary}

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._squashed)
