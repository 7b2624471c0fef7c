"""Implements `ports.Companies` over a list of companies and a small table of how people call them."""

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Self

from assay.companies.described import Descriptions
from assay.companies.index import Index
from assay.companies.known import Known, brands, known, strangers
from assay.companies.listed import Row, listed, rank
from assay.companies.mentions import mentions
from assay.companies.names import Name, loose, parse, turned
from assay.companies.nicknames import Nicknames
from assay.companies.short import short_name
from assay.companies.tickers import named, symbol
from assay.companies.words import is_common, is_word
from assay.model.company import Company, Mention
from assay.text.words import STOP_WORDS

LONGEST = 150  # characters of a name
FEW = 6  # candidates
WELL_KNOWN = 1_500  # of the list
KNOWN_RANK = 300  # at least, of a company in the table of known ones
LARGE = 700  # of the list: those whose tickers and first words people use
MUCH_BETTER = 4  # times as far up the list
_POSSESSIVE = re.compile(r"['’]s$")
_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[.,])(?=\w{2})")


class Register:
    """Loads and answers fast: the tables that are seldom needed are made when they are first asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)
        self._tickers: dict[str, int] = {}
        for place, row in enumerate(self._rows):
            for ticker in row.tickers:
                self._tickers.setdefault(symbol(ticker), place)
        besides = {place: parse(said) for place, row in enumerate(self._rows) if (said := turned(row.name)) != row.name}
        self._index = Index([parse(row.name) for row in self._rows], besides)

    @classmethod
    def of(cls, rows: Iterable[tuple[int, str, Iterable[str]]]) -> Self:
        """A register of one's own: number, name and tickers of each company."""
        return cls(Row(cik, name, tuple(tickers)) for cik, name, tickers in rows)

    # What the port asks ----------------------------------------------------------------------------------

    def resolve(self, name: str) -> Company | None:
        place = self.place(name)
        return None if place is None else self.company(place)

    def candidates(self, name: str) -> list[Company]:
        written = _tidy(name)
        if not written:
            return []
        words = parse(written).core

        def order(place: int) -> tuple[bool, int, int]:
            """Who is called so comes before who is registered so."""
            called = parse(self._known[place].short).core if place in self._known else ()
            return called[: len(words)] != words, self.rank(place), place

        best = self.place(written)
        ranked = sorted(self._possible(written) - {best}, key=order)
        return [self.company(place) for place in ([] if best is None else [best]) + ranked][:FEW]

    def mentions(self, text: str) -> list[Mention]:
        return mentions(self, text)

    # What the parts of it ask ----------------------------------------------------------------------------

    def place(self, name: str) -> int | None:
        """Which company a whole text stands for."""
        written = _tidy(name)
        for form in dict.fromkeys((written, _POSSESSIVE.sub("", written), _GLUED.sub(" ", written))):
            if form and (found := self._place(form)) is not None:
                return found
        return None

    def _place(self, written: str) -> int | None:
        ticker, is_marked = named(written) or ("", False)
        if is_marked:
            return self._tickers.get(ticker)
        if (described := self.descriptions.whole(written)) is not None:
            return described
        parsed = parse(written)
        if len(registered := self._index.registered(parsed)) == 1:
            return registered[0]
        nicknamed = self.nicknames.places.get(parsed.key)
        if nicknamed is not None and self._allowed(written, parsed, nicknamed):
            return nicknamed
        traded = self._tickers.get(ticker)
        if traded is not None and written.isupper():
            return traded
        found = self._by_name(written, parsed)
        if found is None and traded is not None and self.is_well_known(traded):
            return traded
        return found

    def ticker(self, text: str) -> int | None:
        return self._tickers.get(symbol(text))

    def called(self, name: Name) -> int | None:
        """Who goes by a name as it is written."""
        if (place := self.nicknames.places.get(name.key)) is not None:
            return place
        found = self._index.written(name)
        if not found and name.key not in strangers() and not name.forms and not all(map(is_word, name.core)):
            return self._by_beginning(name)
        return self._foremost(found)

    def begins(self, name: Name) -> bool:
        """Whether its words are a name or the first of one, as it is written."""
        return name.key in self.nicknames.beginnings or self._index.begins(name)

    def is_well_known(self, place: int) -> bool:
        return self.rank(place) < WELL_KNOWN

    def is_large(self, place: int) -> bool:
        return self.rank(place) < LARGE

    def rank(self, place: int) -> int:
        listed_as = rank(self._rows[place].cik)
        return min(listed_as, KNOWN_RANK) if place in self._known else listed_as

    def company(self, place: int) -> Company:
        row = self._rows[place]
        short = self._known[place].short if place in self._known else short_name(row.name)
        return Company(cik=row.cik, name=row.name, short=short, tickers=row.tickers)

    @cached_property
    def _known(self) -> dict[int, Known]:
        places = {row.cik: place for place, row in enumerate(self._rows)}
        numbers = {ticker: row.cik for row in listed() for ticker in row.tickers}
        return {places[cik]: entry for t, entry in known().items() if (cik := numbers.get(t)) in places}

    @cached_property
    def nicknames(self) -> Nicknames:
        return Nicknames(self._known)

    @cached_property
    def descriptions(self) -> Descriptions:
        return Descriptions(self._known)

    # By name ---------------------------------------------------------------------------------------------

    def _by_name(self, written: str, name: Name) -> int | None:
        if found := self._index.same(name):
            place = self._foremost(found)
            return place if place is not None and self._allowed(written, name, place) else None
        if name.key in strangers():
            return None
        if not name.forms and (place := self._by_beginning(name)) is not None:
            return place
        return self._misspelt(name)

    def _allowed(self, written: str, name: Name, place: int) -> bool:
        """Whether a word alone is meant as a name: a common one is none, save a known company's, in capitals."""
        if name.forms:
            return name.key not in self.nicknames.ordinary or place in self._index.same(name)
        if name.key in self.nicknames.ordinary:
            return any(map(str.isupper, written))
        if len(name.core) > 1 or self.nicknames.places.get(name.key) == place or name.key in brands():
            return True
        return not any(map(is_common, (*name.core, *loose(name.core))))

    def _by_beginning(self, name: Name) -> int | None:
        """ "Lululemon" for Lululemon Athletica: where the words are nobody else's, and the company is known well."""
        words = loose(name.core)
        place = self._foremost(self._index.beginnings.get(" ".join(words), ()))
        if place is None or words[-1] in STOP_WORDS:
            return None
        if all(map(is_word, words)):
            return place if len(words) > 1 and self.is_large(place) else None
        return place if self.is_well_known(place) else None

    def _misspelt(self, name: Name) -> int | None:
        if len(name.core) == 1 and is_word(name.core[0]):
            return None
        near = self._index.alike(name, self.nicknames.misspelt(name))
        return self._foremost(tuple({*near, *self._index.misspelt(name)}))

    def _foremost(self, places: tuple[int, ...]) -> int | None:
        """The only one, or the one much better known than all others."""
        if len(places) < 2:
            return places[0] if places else None
        first, second = sorted(places, key=self.rank)[:2]
        clear = self.is_well_known(first) and self.rank(first) * MUCH_BETTER < self.rank(second)
        return first if clear else None

    def _possible(self, written: str) -> set[int]:
        name = parse(written)
        words = loose(name.core)
        found = {*self._index.same(name), *self._index.beginnings.get(" ".join(words), ())}
        holding = [set(self._index.words.get(word, ())) for word in words]
        found |= set.intersection(*holding) if holding else set()
        if not found and not all(map(is_word, name.core)):
            found |= set(self._index.misspelt(name))
        if (ticker := named(written)) and ticker[0] in self._tickers:
            found.add(self._tickers[ticker[0]])
        return found


def _tidy(name: str) -> str:
    return "" if len(name) > LONGEST else " ".join(name.split()).strip('"“”.,;:!? ')


@lru_cache(maxsize=1)
def open_companies() -> Register:
    return Register(listed())


class Later:
    """A ports.Companies that reads the list when somebody is looked up: 0.3 s that most commands can do without."""

    def resolve(self, name: str) -> Company | None:
        return open_companies().resolve(name)

    def candidates(self, name: str) -> list[Company]:
        return open_companies().candidates(name)

    def mentions(self, text: str) -> list[Mention]:
        return open_companies().mentions(text)
