"""Numbers in words: twenty-five, three hundred and six thousand, two thirds."""

import re
from decimal import Decimal

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS = (
    {word: value for value, word in enumerate(_SMALL)}
    | {word: 10 * value for value, word in enumerate(_TENS, 2)}
    | {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
)
_WORD = "|".join(sorted(WORDS, key=len, reverse=True))
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
FRACTIONS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}

# One alternative of the pattern for a figure, in `quantities`.
WORD_FORM = (
    rf"(?P<word>\b(?:(?:{_WORD}|half)\b|"
    rf"(?:{'|'.join(ORDINALS[2:])})s?\b|(?:[Aa]\s(?:third|quarter|fifth|tenth)\sof|(?<=by\s)a\s(?:third|quarter|fifth|tenth))\b))"
)
_NEXT_WORD = re.compile(rf"(?:[ -]|\sand\s)({_WORD})\b", re.I)
AND_A_HALF = re.compile(r"\sand\sa\shalf\b")
_OF_PARTS = re.compile(r"[ -](halves|half|third|quarter|fifth|tenth)s?\b")
_MOST_WORDS = 12  # longer runs of number words are lists or noise


def number_words(text: str, match: re.Match[str]) -> tuple[list[str], int]:
    """The run of words that make one number, and where it ends."""
    words, end = [match.group().lower()], match.end()
    while len(words) < _MOST_WORDS and (more := _NEXT_WORD.match(text, end)) and _goes_on(words, more):
        words.append(more[1].lower())
        end = more.end()
    return words, end


def _goes_on(words: list[str], more: re.Match[str]) -> bool:
    """Whether a further number word belongs to the same number: "two hundred" but not "two, three"."""
    if more[1].lower() not in WORDS:  # re.I also matches "ſix"
        return False
    before, word = WORDS[words[-1]], WORDS[more[1].lower()]
    if more.group().startswith(" and"):
        return before in (100, 1000, 10**6) and word < 100
    if word >= 100 or more[1].lower() == "dozen":
        return True
    return before >= 100 or (before in range(20, 100, 10) and 0 < word < 10)


def count(words: list[str]) -> Decimal:
    """What a run of number words comes to."""
    total, current = Decimal(0), Decimal(0)
    for word in words:
        value = WORDS[word]
        if word == "dozen" or value == 100:
            current = max(current, Decimal(1)) * value
        elif value >= 1000:
            total, current = total + max(current, Decimal(1)) * value, Decimal(0)
        else:
            current += value
    return total + current


def parts_of(text: str, words: list[str], end: int) -> tuple[Decimal, int] | None:
    """The fraction that "thirds" makes of "two", and where it ends; "two quarters" not "of" something are of a year."""
    if words[0] in ("one", "two", "three", "four") and len(words) == 1 and (part := _OF_PARTS.match(text, end)):
        parts = part[1]
        calendar = parts == "quarter" and not text.startswith(" of ", part.end())
        if parts in FRACTIONS and not calendar:
            return Decimal(WORDS[words[0]]) / FRACTIONS[parts], part.end()
    return None
