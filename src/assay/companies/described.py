"""Companies by what they are known for: "the electric car company", "the maker of the iPhone", "Tim Cook's company"."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from assay.companies.known import Known
from assay.companies.names import plain, singular

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")
_THE = frozenset("the that this".split())
_WHO = frozenset(
    "company maker manufacturer giant firm business corporation producer builder brand owner creator developer "
    "inventor parent platform provider seller chain group startup".split()
)
_LINKS = (
    "of", "behind", "making", "selling", "owning", "run by", "led by", "founded by", "headed by", "started by",
    *(
        f"{which} {does}"
        for which in ("that", "which", "who")
        for does in "makes made make sells sold owns owned created creates builds built runs develops developed "
        "produces produced invented operates launched".split()
    ),
    "that is behind", "that came up with", "that brought us", "who brought us",
)  # fmt: skip
_LINK_WORDS = sorted((tuple(link.split()) for link in _LINKS), key=len, reverse=True)
_ARTICLES = frozenset("the a an its their".split())
_MOST_WORDS = 5


class Word(NamedTuple):
    said: str
    one: str  # as a singular, without a possessive
    start: int
    end: int


class Stretch(NamedTuple):
    start: int
    end: int
    place: int


Table = dict[tuple[str, ...], int]


class Descriptions:
    def __init__(self, known: Mapping[int, Known]) -> None:
        entries = known.items()
        self._makes = {_key(thing): place for place, entry in entries for thing in entry.makes}
        self._phrases = {_key(phrase): place for place, entry in entries for phrase in entry.phrases}
        self._people = {_key(person): place for place, entry in entries for person in entry.people}
        self._firsts = {key[0] for table in (self._makes, self._phrases, self._people) for key in table}

    def whole(self, text: str) -> int | None:
        """The company that a whole text describes; its article may be missing."""
        for said in (text, f"the {text}"):
            words = _words(said)
            for found in self._from(words, 0) if words else ():
                if found.end == words[-1].end:
                    return found.place
        return None

    def find(self, text: str) -> Iterator[Stretch]:
        words = _words(text)
        for at in range(len(words)):
            yield from sorted(self._from(words, at), key=lambda found: -found.end)[:1]

    def _from(self, words: list[Word], at: int) -> Iterator[Stretch]:
        """Descriptions that begin with a certain word."""
        start = words[at].start
        for end, place in self._longest(self._people, words, at):
            if end < len(words) and words[end].said in _WHO:
                yield Stretch(start, words[end].end, place)
        if words[at].said not in _THE or at + 1 == len(words):
            return
        for end, place in self._longest(self._makes, words, at + 1):
            if end < len(words) and words[end].said in _WHO:
                yield Stretch(start, words[end].end, place)
        for end, place in self._longest(self._phrases, words, at + 1):
            yield Stretch(start, words[end - 1].end, place)
        if words[at + 1].said in _WHO:
            for end, place in self._linked(words, at + 2):
                yield Stretch(start, words[end - 1].end, place)

    def _linked(self, words: list[Word], at: int) -> Iterator[tuple[int, int]]:
        for link in _LINK_WORDS:
            if tuple(word.said for word in words[at : at + len(link)]) == link:
                begin = at + len(link)
                begin += begin < len(words) and words[begin].said in _ARTICLES
                yield from self._longest(self._makes, words, begin)
                yield from self._longest(self._people, words, begin)
                return

    def _longest(self, table: Table, words: list[Word], at: int) -> Iterator[tuple[int, int]]:
        if at >= len(words) or words[at].one not in self._firsts:
            return
        for end in range(min(len(words), at + _MOST_WORDS), at, -1):
            place = table.get(tuple(word.one for word in words[at:end]))
            if place is not None:
                yield end, place
                return


def _words(text: str) -> list[Word]:
    found = ((match.group(), *match.span()) for match in _WORD.finditer(text))
    return [Word(said := plain(word), _one(said), start, end) for word, start, end in found]


def _one(word: str) -> str:
    return singular(word.removesuffix("'s").removesuffix("’s"), least=4)


def _key(text: str) -> tuple[str, ...]:
    return tuple(word.one for word in _words(text))
