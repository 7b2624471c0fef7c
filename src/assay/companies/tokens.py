"""The words of a text, as names of companies are looked for among them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from assay.companies.names import plain

MOST_LETTERS = 3  # alone, one after the other: "A O Smith", and no alphabet
_TOKEN = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+(?:[&'’.+](?:[^\W_]|[\u0300-\u036f])+)*")
_ENDS = re.compile(r"[.!?\n]")
_NEXT = re.compile(r"[\s.&]*")
_POSSESSIVE = re.compile(r"['’]s$")


class Token(NamedTuple):
    text: str
    word: str  # plain, without a possessive
    start: int
    end: int
    first: bool  # of a sentence, where a capital says nothing
    spelt: bool = False  # a letter of an alphabet

    @property
    def capital(self) -> bool:
        return self.text[0].isupper() or self.text[0].isdigit()


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        first = not found or bool(_ENDS.search(text, found[-1].end, match.start()))
        found.append(Token(match.group(), plain(bare(match.group())), *match.span(), first))
    for at, end in _runs(text, found):
        if end - at > MOST_LETTERS:
            found[at:end] = [token._replace(spelt=True) for token in found[at:end]]
    long = [token for token in found if len(token.text) > 3]
    if len(long) > 6 and sum(token.capital for token in long) > 0.8 * len(long):  # a headline: no capital says anything
        found = [token._replace(first=True) for token in found]
    return found


def bare(text: str) -> str:
    return _POSSESSIVE.sub("", text)


def _runs(text: str, found: list[Token]) -> Iterator[tuple[int, int]]:
    """Letters that stand alone, one after the other."""
    at = 0
    for end in range(1, len(found) + 1):
        goes_on = (
            end < len(found)
            and len(found[end - 1].text) == len(found[end].text) == 1
            and _NEXT.fullmatch(text, found[end - 1].end, found[end].start)
        )
        if not goes_on:
            yield at, end
            at = end
