"""Is a statement made of its passages' words? One that brings many of its own says something else, whoever vouches."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from assay.text.sentences import sentences
from assay.text.words import content_words, stem, words
from assay.trust.problem import Problem

MOST_STRANGE = 0.4  # of the content words; light rewording stays below .3, another matter lies above .6

JOINED = 2
CLOSE = 0.75  # of all words; of true statements that people wrote of a passage three quarters lie below

LEAST = 0.34  # the share of a sentence that a reader would look for in its passage at the very least
_ADDRESS = re.compile(
    r"\b(?:https?://|www\.)\S+|\b[\w-]+\.(?:com|org|net|io|info|biz|example|test|co\.\w\w)\b\S*", re.I
)


def share(statement: str, passages: Sequence[str]) -> float:
    """How much of the statement's content stands in the passages, each word counted once."""
    said = _stems(statement)
    return 1 - len(_strange(said, passages)) / len(said) if said else 1.0


def close(statement: str, passages: Sequence[str]) -> bool:
    """Whether the statement keeps to the words of one passage, or of two that it joins, words of grammar included."""
    said = {stem(word) for word in words(statement)}
    left = said
    for _ in range(JOINED):
        left = min((left - _all_stems(passage) for passage in passages), key=len, default=left)
    return len(left) <= (1 - CLOSE) * len(said)


@lru_cache(maxsize=512)
def _all_stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text))


def grounded(statement: str, passages: Sequence[str]) -> bool:
    """Names alone do not make it so: what is said of them must be the passages' too, but for a word."""
    plain = _stems(" ".join(word for word in statement.split() if not word[0].isupper() and not word[0].isdigit()))
    few = max(1.0 if len(plain) > 2 else 0.0, MOST_STRANGE * len(plain))
    return share(statement, passages) >= 1 - MOST_STRANGE and len(_strange(plain, passages)) <= few


def wording_problems(statement: str, passages: Sequence[str]) -> Iterator[Problem]:
    """A sentence hardly a word of which is the passages', beside others or alone, and an address that is none of
    theirs."""
    text = " ".join(passages)
    for address in _ADDRESS.findall(statement):
        if address.rstrip(".,;)") not in text:
            yield Problem("name", f"the address {address} is not in the quoted passage")
    for piece in sentences(statement) or ():
        if share(piece.text, passages) < LEAST:
            yield Problem("scope", "the quoted passage has hardly a word of it")


def _strange(said: frozenset[str], passages: Sequence[str]) -> frozenset[str]:
    return said.difference(*map(_stems, passages))


@lru_cache(maxsize=512)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(part) for word in content_words(text) for part in (word, *word.split("-")) if part)
