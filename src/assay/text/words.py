"""Words for matching: folded, without stop words, lightly stemmed."""

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*", re.UNICODE)

STOP_WORDS = frozenset(
    "a about above after again against all also am an and any are as at be became because been before being below "
    "between both but by came can could did do does doing down during each either else ever every few for from "
    "further get give go had has have having he her here hers him his how however i if in into is it its itself just "
    "like made make many may me might more most much must my no nor not of off on once only or other our ours out "
    "over own per please s same shall she should since so some such t tell than that the their theirs them then "
    "there these they this those though through to too under until up upon us very was we were what whatever when "
    "where which while who whom whose why will with within without would you your yours".split()
)


def fold(text: str) -> str:
    """Case and diacritics removed."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def content_words(text: str) -> list[str]:
    """Words that carry meaning, in order. Figures count; single letters do not."""
    return [word for word in words(text) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


def stems(text: str) -> list[str]:
    return [stem(word) for word in content_words(text)]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A light suffix stripper: enough to match plural, tense and derivation, never to display."""
    word = word.removesuffix("'s").removesuffix("’s")
    if len(word) <= 4 or not word.isalpha():
        return word.removesuffix("s") if len(word) > 3 and word.isalpha() and not word.endswith("ss") else word
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) + len(replacement) >= 4:
            return _undouble(word[: len(word) - len(suffix)] + replacement).removesuffix("e")
    return word


_SUFFIXES = (
    ("ational", "ate"), ("ization", "ize"), ("isation", "ize"), ("fulness", "ful"), ("ements", "e"), ("ement", "e"),
    ("ations", "ate"), ("ation", "ate"), ("ments", ""), ("ment", ""), ("ities", "ity"), ("ings", ""), ("ing", ""),
    ("ions", ""), ("ion", ""), ("ies", "y"), ("ied", "y"), ("edly", ""), ("ers", ""), ("er", ""), ("ed", ""),
    ("es", ""), ("ly", ""), ("s", ""), ("e", ""),
)  # fmt: skip


def _undouble(word: str) -> str:
    doubled = len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if doubled else word
