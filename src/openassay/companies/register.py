"""A register of companies: finds the one that a name, a ticker, a misspelling or a description stands for."""

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple, Self

from openassay.companies.mentions import Descriptions, find_mentions
from openassay.companies.names import (
    CompanyName,
    CompanyProfile,
    Nicknames,
    SpellingIndex,
    brand_keys,
    distinctive_words,
    is_common,
    is_word,
    load_profiles,
    move_initials_first,
    names_outside_register,
    normalize_symbol,
    normalize_words,
    parse_name,
    parse_symbol,
    short_name,
)
from openassay.models.evidence import Company, Mention
from openassay.text.words import STOP_WORDS

# Names of companies by the ways they are written, from as registered to misspelt.

LONG = 8  # letters of a name of one word that may have a slip in the first
LONGER_THAN_WORDS = 6  # letters: fewer may be two small words, as "so no" is
_NUMERAL = re.compile(r"^[ivx]+$|\d+")
PlaceTable = dict[str, tuple[int, ...]]


class NameIndex:
    """Places of names in a list. Each way of writing has a table of its own, so that a loose match never hides a
    strict one."""

    def __init__(self, names: Sequence[CompanyName], besides: Mapping[int, CompanyName]) -> None:
        """`besides`: how some are said otherwise, by their places."""
        self._names = names
        self._said = [*enumerate(names), *besides.items()]
        self._exact = _build_table((name.key, place) for place, name in self._said)

    @cached_property
    def _loose_words(self) -> list[tuple[int, tuple[str, ...]]]:
        return [(place, normalize_words(name.core)) for place, name in self._said]

    @cached_property
    def _loose_table(self) -> PlaceTable:
        return _build_table((" ".join(words), place) for place, words in self._loose_words)

    @cached_property
    def _distinctive_table(self) -> PlaceTable:
        """In any order, without words like "Group" where a name has others."""
        return _build_table((" ".join(sorted(distinctive_words(words))), place) for place, words in self._loose_words)

    @cached_property
    def _compact_table(self) -> PlaceTable:
        return _build_table((name.squashed, place) for place, name in enumerate(self._names))

    @cached_property
    def beginnings(self) -> PlaceTable:
        """The first words of longer names."""
        return _build_table(
            (" ".join(words[:count]), place) for place, words in self._loose_words for count in range(1, len(words))
        )

    @cached_property
    def words(self) -> PlaceTable:
        return _build_table((word, place) for place, words in self._loose_words for word in words)

    @cached_property
    def _spellings(self) -> SpellingIndex:
        return SpellingIndex(self._compact_table)

    def is_prefix(self, name: CompanyName) -> bool:
        """Whether its words are a name or the first of one, written so."""
        key = " ".join(normalize_words(name.core))
        return key in self.beginnings or key in self._loose_table

    def match_legal_name(self, name: CompanyName) -> tuple[int, ...]:
        """Those that have the name with this very legal form."""
        if not name.forms:
            return ()
        return tuple(place for place in self._exact.get(name.key, ()) if self._names[place].forms == name.forms)

    def match(self, name: CompanyName) -> tuple[int, ...]:
        """Those that are written so, as strictly as there are any."""
        words = normalize_words(name.core)
        return (
            self.match_spelling(name)
            or self.filter_by_form(name, self._distinctive_table.get(" ".join(sorted(distinctive_words(words))), ()))
            or (self._compact_table.get(name.squashed, ()) if len(name.squashed) >= LONGER_THAN_WORDS else ())
        )

    def match_spelling(self, name: CompanyName) -> tuple[int, ...]:
        found = self._exact.get(name.key, ())
        # Of two that differ in the legal form alone, the one that has it.
        exact = tuple(place for place in found if self._names[place].forms == name.forms) or found
        loose = self._loose_table.get(" ".join(normalize_words(name.core)), ()) if not exact else ()
        return exact or self.filter_by_form(name, loose)

    def filter_by_form(self, name: CompanyName, found: Iterable[int]) -> tuple[int, ...]:
        """What matches loosely and has another legal form is another company: "Sonos Inc" is not "Sono NV"."""
        own = set(name.forms)
        others = [(place, set(self._names[place].forms)) for place in found]
        return tuple(place for place, forms in others if own <= forms or forms <= own)

    def match_typo(self, name: CompanyName) -> tuple[int, ...]:
        """Those one slip away, unless it is a name of its own. A word of another name was meant as it stands, and so
        was a figure; in a name of one word any word was, and another first letter: such pairs of names are common,
        such slips are not."""
        spellings = self._spellings.find_near(name.squashed)
        near = (place for squashed in spellings for place in self._compact_table[squashed])
        found = []
        for place in self.filter_by_form(name, near):
            other = self._names[place]
            words = len(distinctive_words(normalize_words(other.core)))
            changed = [word for word in name.core if word not in other.core]
            if _find_figures(name) != _find_figures(other) or any(word in self._vocabulary for word in changed):
                continue
            if words == 1 and any(map(is_word, changed)):
                continue
            if len(name.core) != len(other.core):
                if len(name.squashed) >= LONG and name.squashed[0] == other.squashed[0]:
                    found.append(place)
                continue
            for word, meant in zip(name.core, other.core, strict=True):
                # Abbreviations differ by a letter; "Tantech" and "Santech" are two companies.
                close = len(word) + len(meant) >= 7 or (words > 2 and len(meant) > 2)
                if words == 1:
                    close = word[0] == meant[0] or len(meant) >= LONG
                if not close and sorted(word) != sorted(meant):
                    break
            else:
                found.append(place)
        return tuple(found)

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset(word for name in self._names for word in name.core)


def _find_figures(name: CompanyName) -> list[str]:
    return [figure for word in name.core for figure in _NUMERAL.findall(word)]


def _build_table(entries: Iterable[tuple[str, int]]) -> PlaceTable:
    table: PlaceTable = {}
    for key, place in entries:
        held = table.get(key, ())
        if held[-1:] != (place,):
            table[key] = (*held, place)
    return table


# The companies of the SEC's public list, in its order, which is nearly by market value.

UNRANKED = 1_000_000


class CompanyRow(NamedTuple):
    cik: int
    name: str
    tickers: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_company_rows() -> tuple[CompanyRow, ...]:
    text = gzip.decompress(files("openassay.companies").joinpath("data/companies.tsv.gz").read_bytes()).decode()
    lines = (line.split("\t") for line in text.splitlines())
    return tuple(CompanyRow(int(cik), name, tuple(tickers.split())) for cik, tickers, name in lines)


@lru_cache(maxsize=1)
def market_ranks() -> dict[int, int]:
    """How well known companies are by their numbers, as their places in the list; 0 is the largest."""
    return {row.cik: place for place, row in enumerate(load_company_rows())}


LONGEST = 150  # characters of a name
FEW = 6  # candidates
WELL_KNOWN = 1_500  # of the list
KNOWN_RANK = 300  # at least, of a company in the table of known ones
LARGE = 700  # of the list: those whose tickers and first words people use
MUCH_BETTER = 4  # times as far up the list
_POSSESSIVE = re.compile(r"['’]s$")
_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[.,])(?=\w{2})")


class CompanyRegister:
    """Loads and answers fast: the tables that are seldom needed are made when they are first asked for."""

    def __init__(self, rows: Iterable[CompanyRow]) -> None:
        self._rows = tuple(rows)
        self._tickers: dict[str, int] = {}
        for place, row in enumerate(self._rows):
            for ticker in row.tickers:
                self._tickers.setdefault(normalize_symbol(ticker), place)
        besides = {
            place: parse_name(said)
            for place, row in enumerate(self._rows)
            if (said := move_initials_first(row.name)) != row.name
        }
        self._index = NameIndex([parse_name(row.name) for row in self._rows], besides)

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[int, str, Iterable[str]]]) -> Self:
        """A register of one's own: number, name and tickers of each company."""
        return cls(CompanyRow(cik, name, tuple(tickers)) for cik, name, tickers in rows)

    # What the port asks ----------------------------------------------------------------------------------

    def resolve(self, name: str) -> Company | None:
        place = self.find_place(name)
        return None if place is None else self.company_at(place)

    def candidates(self, name: str) -> list[Company]:
        written = _clean_name(name)
        if not written:
            return []
        parsed = parse_name(written)
        words = normalize_words(parsed.core)
        found = {*self._index.match(parsed), *self._index.beginnings.get(" ".join(words), ())}
        holding = [set(self._index.words.get(word, ())) for word in words]
        found |= set.intersection(*holding) if holding else set()
        if not found and not all(map(is_word, parsed.core)):
            found |= set(self._index.match_typo(parsed))
        if (ticker := parse_symbol(written)) and ticker[0] in self._tickers:
            found.add(self._tickers[ticker[0]])

        def order(place: int) -> tuple[bool, int, int]:
            """Who is called so comes before who is registered so."""
            called = parse_name(self._profiles[place].short).core if place in self._profiles else ()
            return called[: len(parsed.core)] != parsed.core, self.rank(place), place

        best = self.find_place(written)
        ranked = sorted(found - {best}, key=order)
        return [self.company_at(place) for place in ([] if best is None else [best]) + ranked][:FEW]

    def mentions(self, text: str) -> list[Mention]:
        return find_mentions(self, text)

    # What the parts of it ask ----------------------------------------------------------------------------

    def find_place(self, name: str) -> int | None:
        """Which company a whole text stands for."""
        written = _clean_name(name)
        for form in dict.fromkeys((written, _POSSESSIVE.sub("", written), _GLUED.sub(" ", written))):
            if not form:
                continue
            ticker, is_marked = parse_symbol(form) or ("", False)
            traded = self._tickers.get(ticker)
            if is_marked:
                if traded is not None:
                    return traded
                continue
            if (described := self.descriptions.match_text(form)) is not None:
                return described
            parsed = parse_name(form)
            if len(registered := self._index.match_legal_name(parsed)) == 1:
                return registered[0]
            nicknamed = self.nicknames.places.get(parsed.key)
            if nicknamed is not None and self._can_be_name(form, parsed, nicknamed):
                return nicknamed
            if traded is not None and form.isupper():
                return traded
            if (found := self._find_by_name(form, parsed)) is not None:
                return found
            if traded is not None and self.is_well_known(traded):
                return traded
        return None

    def find_ticker(self, text: str) -> int | None:
        return self._tickers.get(normalize_symbol(text))

    def find_exact(self, name: CompanyName) -> int | None:
        """Who goes by a name as it is written."""
        if (place := self.nicknames.places.get(name.key)) is not None:
            return place
        found = self._index.match_spelling(name)
        if (
            not found
            and name.key not in names_outside_register()
            and not name.forms
            and not all(map(is_word, name.core))
        ):
            return self._find_by_prefix(name)
        return self._pick_prominent(found)

    def is_prefix(self, name: CompanyName) -> bool:
        """Whether its words are a name or the first of one, as it is written."""
        return name.key in self.nicknames.beginnings or self._index.is_prefix(name)

    def is_well_known(self, place: int) -> bool:
        return self.rank(place) < WELL_KNOWN

    def is_large(self, place: int) -> bool:
        return self.rank(place) < LARGE

    def rank(self, place: int) -> int:
        listed_as = market_ranks().get(self._rows[place].cik, UNRANKED)
        return min(listed_as, KNOWN_RANK) if place in self._profiles else listed_as

    def company_at(self, place: int) -> Company:
        row = self._rows[place]
        short = self._profiles[place].short if place in self._profiles else short_name(row.name)
        return Company(cik=row.cik, name=row.name, short=short, tickers=row.tickers)

    @cached_property
    def _profiles(self) -> dict[int, CompanyProfile]:
        places = {row.cik: place for place, row in enumerate(self._rows)}
        numbers = {ticker: row.cik for row in load_company_rows() for ticker in row.tickers}
        return {places[cik]: entry for t, entry in load_profiles().items() if (cik := numbers.get(t)) in places}

    @cached_property
    def nicknames(self) -> Nicknames:
        return Nicknames(self._profiles)

    @cached_property
    def descriptions(self) -> Descriptions:
        return Descriptions(self._profiles)

    # By name ---------------------------------------------------------------------------------------------

    def _find_by_name(self, written: str, name: CompanyName) -> int | None:
        if found := self._index.match(name):
            place = self._pick_prominent(found)
            return place if place is not None and self._can_be_name(written, name, place) else None
        if name.key in names_outside_register():
            return None
        if not name.forms and (place := self._find_by_prefix(name)) is not None:
            return place
        if len(name.core) == 1 and is_word(name.core[0]):
            return None
        near = self._index.filter_by_form(name, self.nicknames.match_typo(name))
        return self._pick_prominent(tuple({*near, *self._index.match_typo(name)}))

    def _can_be_name(self, written: str, name: CompanyName, place: int) -> bool:
        """Whether a word alone is meant as a name: a common one is none, save a known company's, in capitals."""
        if name.forms:
            return name.key not in self.nicknames.ordinary or place in self._index.match(name)
        if name.key in self.nicknames.ordinary:
            return any(map(str.isupper, written))
        if len(name.core) > 1 or self.nicknames.places.get(name.key) == place or name.key in brand_keys():
            return True
        return not any(map(is_common, (*name.core, *normalize_words(name.core))))

    def _find_by_prefix(self, name: CompanyName) -> int | None:
        """ "Lululemon" for Lululemon Athletica: where the words are nobody else's, and the company is known well."""
        words = normalize_words(name.core)
        place = self._pick_prominent(self._index.beginnings.get(" ".join(words), ()))
        if place is None or words[-1] in STOP_WORDS:
            return None
        if all(map(is_word, words)):
            return place if len(words) > 1 and self.is_large(place) else None
        return place if self.is_well_known(place) else None

    def _pick_prominent(self, places: tuple[int, ...]) -> int | None:
        """The only one, or the one much better known than all others."""
        if len(places) < 2:
            return places[0] if places else None
        first, second = sorted(places, key=self.rank)[:2]
        clear = self.is_well_known(first) and self.rank(first) * MUCH_BETTER < self.rank(second)
        return first if clear else None


def _clean_name(name: str) -> str:
    return "" if len(name) > LONGEST else " ".join(name.split()).strip('"“”.,;:!? ')


@lru_cache(maxsize=1)
def open_companies() -> CompanyRegister:
    return CompanyRegister(load_company_rows())


class LazyCompanyRegister:
    """A CompanyResolver that reads the list when somebody is looked up: 0.3 s that most commands can do without."""

    def resolve(self, name: str) -> Company | None:
        return open_companies().resolve(name)

    def candidates(self, name: str) -> list[Company]:
        return open_companies().candidates(name)

    def mentions(self, text: str) -> list[Mention]:
        return open_companies().mentions(text)
