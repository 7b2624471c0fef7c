"""How much a text reads like content rather than a menu, a cookie wall or a dump: 0 to 1."""

import re
from statistics import fmean

_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"[^\W\d_][^.!?\u3002\uff01\uff1f\n]{25,}[.!?\u3002\uff01\uff1f]")
_SPACE = re.compile(r"\s")

_LONG_ENOUGH = 600  # characters; a news brief is about this long
_USUAL_LETTERS = 0.75  # share of letters in running prose; tables and code lie near 0.5


def score(text: str) -> float:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return 0.0
    factors = (_length(text), _letters(text), _sentences(text), _variety(lines), _substance(lines))
    # The weakest trait decides more than the average: a long menu must not pass for its length.
    return round(0.4 * fmean(factors) + 0.6 * min(factors[1:]) * min(1.0, 0.4 + factors[0]), 3)


def _length(text: str) -> float:
    return min(1.0, len(text) / _LONG_ENOUGH)


def _letters(text: str) -> float:
    visible = _SPACE.sub("", text)
    return min(1.0, sum(map(str.isalpha, visible)) / len(visible) / _USUAL_LETTERS)


def _sentences(text: str) -> float:
    """Share of the text inside sentences."""
    return min(1.0, sum(len(match[0]) for match in _SENTENCE.finditer(text)) / (0.7 * len(text)))


def _variety(lines: list[str]) -> float:
    """Repeated lines and repeated words both mark boilerplate and generated filler."""
    words = _WORD.findall(" ".join(lines).lower())[:400]
    distinct = len(set(words)) / len(words) if words else 0.0
    return min(len(set(lines)) / len(lines), min(1.0, distinct / 0.3))


def _substance(lines: list[str]) -> float:
    """Share of the characters that stand in lines longer than a menu entry."""
    total = sum(map(len, lines))
    return min(1.0, sum(len(line) for line in lines if len(line) > 60) / total / 0.6)
