"""Figures that may be what a question wants, with their units."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.pointed.dates import MONTH
from assay.reasoning.embedded.pointed.view import Read, Stretch
from assay.reasoning.embedded.pointed.wanted import Wanted
from assay.text.words import stem

UNIT = 0.7  # a figure with the unit that is asked for

_ABOUT = r"(?:(?:about|approximately|around|over|nearly|some|estimated) )?"
NUMBER = re.compile(
    rf"(?<![\w.,/$€£−-]){_ABOUT}[$€£]?\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\d%])|"
    rf"(?<![\w.,/−-]){_ABOUT}[$€£]?\d+(?:\.\d+)?(?: (?:million|billion|thousand))?(?![\d,.%]\d|[\d%]| %)"
)
_UNIT = re.compile(
    r" ?(?:people|inhabitants|residents|persons|years?|cc|km|kilometres|kilometers|miles|metres|meters|feet|ft|m|"
    r"libraries|members|students|households|acres|hectares|mg|kg|tonnes|"
    r"square miles|square kilometres|employees|seats)\b"
)
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
# What follows or precedes a figure that counts something else, or nothing.
_OF_OTHERS = re.compile(
    r" ?(?:%|per cent|percent|/|households|families|housing|square|sq|km|per\b|"
    rf"(?:people |persons |inhabitants )?per |±)|\s?{MONTH}"
)
_NO_FIGURE = re.compile(
    rf"(?:{MONTH} |density (?:was|of) |\[ ?|[Nn]o\. |± ?|[$€£] |\b(?:ages? of(?: \d+ and)?|under|over the age of) )$"
)
_PER = re.compile(r" ?per\b")
_MONEY = frozenset(map(stem, "income cost price budget revenue salary dividend turnover profit loss debt".split()))
_CURRENCY = re.compile(
    r"[$€£¥₹]|(?: million| billion| thousand)? ?(?:[A-Z]{3}|US|euros?|dollars?|pounds?|rupees?|yen|yuan|francs?)\b"
)
_MANY = re.compile(r"\bhow many (\w+)")
_IS = re.compile(r"(?:\b(?:was|is|were|had|has|about|approximately|over)|:) $")


def numbers(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    text, of_age = read.text, bool(wanted.near & {"age", "old", "long"})
    of_money = bool(wanted.near & _MONEY)
    many = [stem(noun) for noun in _MANY.findall(wanted.question)]
    for found in NUMBER.finditer(text):
        start, end = found.span()
        ahead = text[max(0, start - 20) : start]
        others = _OF_OTHERS.match(text, end) and not ("per" in wanted.question.split() and _PER.match(text, end))
        if _YEAR.fullmatch(found.group()) or others or _NO_FIGURE.search(ahead):
            continue
        if read.of_another_matter(start, end):
            continue
        if of_money and not (_CURRENCY.search(found.group()) or _CURRENCY.match(text, end)):
            continue
        if many and not read.says(many[0], start):
            continue
        unit = _UNIT.match(text, end)
        counted = stem(unit.group().strip()) if unit else ""
        if counted == "year" and not of_age:
            continue
        score = max(0.8 * read.cued(start, end), UNIT if counted and counted in wanted.near else 0.0)
        score += _counts(many, read, end)
        score += 0.12 if _IS.search(ahead) or read.follows(start) else 0.0
        score += 0.1 * read.named(start, end) + 2 * read.early(start)
        yield Stretch(start, unit.end() if unit else end, min(1.0, score))


def _counts(many: list[str], read: Read, end: int) -> float:
    """Whether what follows a figure is what "how many" asks for; a house number ahead of a street is not."""
    if not many:
        return 0.0
    at = read.index(end)
    return 0.1 if many[0] in {word.stem for word in read.words[at : at + 3]} else -0.4
