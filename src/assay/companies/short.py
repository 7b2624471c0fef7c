"""What a company is called in a sentence: its registered name without the legal form, in ordinary capitals."""

import re

from assay.companies.names import FORMS, plain, turned
from assay.companies.words import is_word

_BEHIND = re.compile(r"\s*/.*$|\s*\((?:the|de|publ)\)$", re.I)
_SPLIT_FORM = re.compile(r"(?<=\w\w) (?:N V|S A|A S|A G|L P|S P A)$")
_SMALL = frozenset("of and the de du la for in on & y".split())


def short_name(name: str) -> str:
    plain_order = _SPLIT_FORM.sub("", _BEHIND.sub("", name))
    words = turned(plain_order).split()
    if words != plain_order.split():
        words[:2] = [f"{initial}." for initial in words[:2]]
    while len(words) > 1 and (_bare(words[-1]) in FORMS or words[-1] in ("&", "-")):
        words.pop()
    if len(words) > 1 and words[0].lower() == "the":
        words.pop(0)
    shouted = all(word.isupper() for word in words if any(map(str.isalpha, word)) and len(_bare(word)) > 3)
    return " ".join(_written(word, shouted, first=not place) for place, word in enumerate(words)).rstrip(",.")


def _bare(word: str) -> str:
    return re.sub(r"\W", "", plain(word))


def _written(word: str, shouted: bool, *, first: bool) -> str:
    """ "MICROSOFT" is shouted, "KLA" is not."""
    if not word.isupper():
        return word
    bare = _bare(word)
    if bare in _SMALL and not first:
        return word.lower()
    if (len(bare) <= 3 and not is_word(bare)) or any(map(str.isdigit, bare)) or "&" in word or not shouted:
        return word
    return "-".join(part.capitalize() for part in word.split("-"))
