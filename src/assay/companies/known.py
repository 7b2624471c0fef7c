"""What people call well-known companies, and what these are known for: a table written by hand."""

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from assay.companies.names import parse
from assay.companies.words import is_word


class Nickname(NamedTuple):
    """A name people use. `ordinary`: also a word or somebody's name, so that only capitals make it a company's."""

    text: str
    ordinary: bool

    @property
    def key(self) -> str:
        return parse(self.text).key

    @property
    def stands_alone(self) -> bool:
        """ "News Corp" does not without its legal form."""
        name = parse(self.text)
        return self.ordinary or not name.forms or len(name.core) > 1 or not is_word(name.core[0])


class Known(NamedTuple):
    ticker: str
    names: tuple[Nickname, ...]  # the first is the short name
    makes: tuple[str, ...]  # "the ... company", "the maker of ..."
    phrases: tuple[str, ...]  # whole, behind "the"
    people: tuple[str, ...]

    @property
    def short(self) -> str:
        return self.names[0].text


@lru_cache(maxsize=1)
def known() -> dict[str, Known]:
    """By ticker."""
    return {entry.ticker: entry for entry in _entries() if entry.ticker != "-"}


@lru_cache(maxsize=1)
def strangers() -> frozenset[str]:
    """Keys of names that are well known and in no register: nobody else is meant by them."""
    return frozenset(name.key for entry in _entries() if entry.ticker == "-" for name in entry.names)


@lru_cache(maxsize=1)
def brands() -> frozenset[str]:
    """Keys of names that nobody takes for a word, though lists of words have them: "nokia"."""
    return frozenset(name.key for entry in _entries() for name in entry.names if not name.ordinary)


@lru_cache(maxsize=1)
def _entries() -> tuple[Known, ...]:
    text = files("assay.companies").joinpath("data/known.txt").read_text("utf-8")
    return tuple(_entry(line) for line in text.splitlines() if not line.startswith("#"))


def _entry(line: str) -> Known:
    ticker, short, names, makes, phrases, people = (part.strip() for part in line.split(";"))
    called = tuple(_nickname(name) for name in (short, *_parts(names)) if name)
    return Known(ticker, called, _parts(makes), _parts(phrases), _parts(people))


def _nickname(name: str) -> Nickname:
    return Nickname(name.removeprefix("="), name.startswith("="))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
