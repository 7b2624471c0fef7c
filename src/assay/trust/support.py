"""How far a quote supports a statement, without a language model: shared words, order and meaning."""

from itertools import pairwise

from assay.ports import Embedder
from assay.text.words import content_words, fold, stem

# A word that holds a digit or opens with a capital carries more of a statement's truth than a plain one.
HEAVY = 2.0


class WordsAndMeaning:
    """Coverage of the statement's words by the quote, its word pairs, and the encoders' cosine."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def score(self, statement: str, quote: str) -> float:
        if _contains(quote, statement):
            return 1.0
        covered = coverage(statement, quote)
        vectors = self._embedder.embed([statement, quote])
        cosine = max(0.0, float(vectors[0] @ vectors[1]))
        return 0.5 * covered + 0.15 * pairs(statement, quote) + 0.35 * cosine


def _contains(quote: str, statement: str) -> bool:
    wanted = " ".join(fold(statement).split()).rstrip(".")
    return bool(wanted) and wanted in " ".join(fold(quote).split())


def coverage(statement: str, quote: str) -> float:
    """The weighted share of the statement's content words that stand in the quote."""
    have = {stem(word) for word in content_words(quote)}
    weights = {stem(word): _weight(word, statement) for word in content_words(statement)}
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in have) / total if total else 0.0


def _weight(word: str, statement: str) -> float:
    return HEAVY if any(c.isdigit() for c in word) or word.capitalize() in statement else 1.0


def pairs(statement: str, quote: str) -> float:
    """The share of neighbouring content words that are neighbours in the quote too."""
    wanted, have = _neighbours(statement), _neighbours(quote)
    return len(wanted & have) / len(wanted) if wanted else 0.0


def _neighbours(text: str) -> set[tuple[str, str]]:
    line = [stem(word) for word in content_words(text)]
    return set(pairwise(line))
