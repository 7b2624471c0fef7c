"""What a model said that nobody has checked, made harmless to repeat: its plain words stay, and nothing in it that is
not known from the question, the plan or what was published can be a code, an abbreviation or an address."""

import re
from collections.abc import Collection

from assay.text.words import words

LEFT_OUT = "…"

_TOKEN = re.compile(r"\S+")
_EDGE = ".,;:!?()[]\"'“”‘’«»"
_NUMBER = re.compile(r"[$€£]?\d[\d.,]*%?")


def tamed(text: str, known: Collection[str]) -> str:
    """`known` are the words that may stand whatever they look like, in small letters."""
    return _TOKEN.sub(lambda token: token[0] if _is_plain(token[0], known) else LEFT_OUT, text)


def vocabulary(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in words(text))


def _is_plain(token: str, known: Collection[str]) -> bool:
    bare = token.strip(_EDGE)
    if not bare or _NUMBER.fullmatch(bare) or all(word in known for word in words(bare)):
        return True
    if not bare.replace("-", "").replace("’", "").replace("'", "").isalpha():
        return False
    return bare.islower() or bare[1:].islower()
