"""Names of companies by the ways they are written, from as registered to misspelt."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from assay.companies.names import Name, loose, telling
from assay.companies.spelling import Spellings
from assay.companies.words import is_word

LONG = 8  # letters of a name of one word that may have a slip in the first
LONGER_THAN_WORDS = 6  # letters: fewer may be two small words, as "so no" is
_NUMERAL = re.compile(r"^[ivx]+$|\d+")
Key = dict[str, tuple[int, ...]]


class Index:
    """Places of names in a list. Each way of writing has a table of its own, so that a loose match never hides a
    strict one."""

    def __init__(self, names: Sequence[Name], besides: Mapping[int, Name]) -> None:
        """`besides`: how some are said otherwise, by their places."""
        self._names = names
        self._said = [*enumerate(names), *besides.items()]
        self._exact = _table((name.key, place) for place, name in self._said)

    @cached_property
    def _loosened(self) -> list[tuple[int, tuple[str, ...]]]:
        return [(place, loose(name.core)) for place, name in self._said]

    @cached_property
    def _loose(self) -> Key:
        return _table((" ".join(words), place) for place, words in self._loosened)

    @cached_property
    def _telling(self) -> Key:
        """In any order, without words like "Group" where a name has others."""
        return _table((" ".join(sorted(telling(words))), place) for place, words in self._loosened)

    @cached_property
    def _squashed(self) -> Key:
        return _table((name.squashed, place) for place, name in enumerate(self._names))

    @cached_property
    def beginnings(self) -> Key:
        """The first words of longer names."""
        return _table(
            (" ".join(words[:count]), place) for place, words in self._loosened for count in range(1, len(words))
        )

    @cached_property
    def words(self) -> Key:
        return _table((word, place) for place, words in self._loosened for word in words)

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._squashed)

    def begins(self, name: Name) -> bool:
        """Whether its words are a name or the first of one, written so."""
        key = " ".join(loose(name.core))
        return key in self.beginnings or key in self._loose

    def registered(self, name: Name) -> tuple[int, ...]:
        """Those that have the name with this very legal form."""
        if not name.forms:
            return ()
        return tuple(place for place in self._exact.get(name.key, ()) if self._names[place].forms == name.forms)

    def same(self, name: Name) -> tuple[int, ...]:
        """Those that are written so, as strictly as there are any."""
        words = loose(name.core)
        return (
            self.written(name)
            or self.alike(name, self._telling.get(" ".join(sorted(telling(words))), ()))
            or (self._squashed.get(name.squashed, ()) if len(name.squashed) >= LONGER_THAN_WORDS else ())
        )

    def written(self, name: Name) -> tuple[int, ...]:
        return self._by_form(name) or self.alike(name, self._loose.get(" ".join(loose(name.core)), ()))

    def _by_form(self, name: Name) -> tuple[int, ...]:
        """Of two that differ in the legal form alone, the one that has it."""
        found = self._exact.get(name.key, ())
        return tuple(place for place in found if self._names[place].forms == name.forms) or found

    def alike(self, name: Name, found: Iterable[int]) -> tuple[int, ...]:
        """What matches loosely and has another legal form is another company: "Sonos Inc" is not "Sono NV"."""
        return tuple(place for place in found if _agree(set(name.forms), set(self._names[place].forms)))

    def misspelt(self, name: Name) -> tuple[int, ...]:
        """Those one slip away."""
        near = (place for squashed in self._spellings.near(name.squashed) for place in self._squashed[squashed])
        return tuple(place for place in self.alike(name, near) if self._is_slip(name, self._names[place]))

    def _is_slip(self, name: Name, other: Name) -> bool:
        """Whether it is no name of its own. A word of another name was meant as it stands, and so was a figure; in a
        name of one word any word was, and another first letter: such pairs of names are common, such slips are not."""
        words = len(telling(loose(other.core)))
        changed = [word for word in name.core if word not in other.core]
        if _figures(name) != _figures(other) or any(word in self._vocabulary for word in changed):
            return False
        if words == 1 and any(map(is_word, changed)):
            return False
        if len(name.core) != len(other.core):
            return len(name.squashed) >= LONG and name.squashed[0] == other.squashed[0]
        pairs = [pair for pair in zip(name.core, other.core, strict=True) if pair[0] != pair[1]]
        return all(sorted(word) == sorted(meant) or _is_close(word, meant, words) for word, meant in pairs)

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset(word for name in self._names for word in name.core)


def _is_close(word: str, meant: str, words: int) -> bool:
    """Abbreviations differ by a letter; "Tantech" and "Santech" are two companies."""
    if words == 1:
        return word[0] == meant[0] or len(meant) >= LONG
    return len(word) + len(meant) >= 7 or (words > 2 and len(meant) > 2)


def _figures(name: Name) -> list[str]:
    return [figure for word in name.core for figure in _NUMERAL.findall(word)]


def _agree(forms: set[str], others: set[str]) -> bool:
    return forms <= others or others <= forms


def _table(entries: Iterable[tuple[str, int]]) -> Key:
    table: Key = {}
    for key, place in entries:
        held = table.get(key, ())
        if held[-1:] != (place,):
            table[key] = (*held, place)
    return table
