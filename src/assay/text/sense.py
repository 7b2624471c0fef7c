"""When two search queries ask the same: by their words, whatever the order, the case or the ending.

What search engines act on is kept apart: quoted phrases, filters (`site:`), and words left out (`-word`). So are small
words that turn a question round.
"""

import re

from assay.text.words import STOP_WORDS, fold, stem

Sense = frozenset[str]

_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_AROUND = ".,;:!?()[]{}'’‘"
_TELLING = frozenset("no not nor without before after since until above below over under against between".split())


def sense(query: str) -> Sense:
    """Queries with the same sense are one query; empty only for a query without any word."""
    phrases = {f'"{" ".join(fold(phrase).split())}"' for phrase in _QUOTED.findall(query)}
    tokens = [token for part in _QUOTED.sub(" ", query).split() if (token := part.strip(_AROUND))]
    kept = {_kept(token, first=not at) for at, token in enumerate(tokens)} - {""}
    return frozenset(phrases | kept or {fold(token) for token in tokens})


def _kept(token: str, *, first: bool) -> str:
    plain = fold(token)
    if ":" in token or token.startswith("-"):
        return plain
    # "Vitamin A" is no article; a capital at the start may be.
    letter = len(token) == 1 and token.isupper() and not first
    return stem(plain) if letter or plain in _TELLING or plain not in STOP_WORDS else ""
