"""How far a quote supports a statement, without a language model: words, figures, meaning, and a calibrated sum.

A logistic model, whose weights ship in `support.json`, weighs what `compute_features` gives; the result is the
probability that the quote supports the statement. How it was fitted, and on what: docs/decisions/0016.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from openassay.text.negation import has_negation
from openassay.text.sentences import split_sentences
from openassay.text.words import content_words, fold, stem, stems
from openassay.verification.statement_check import check_statement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from openassay.protocols import Embedder, Entailment


# Which words of a statement stand in the sentences it is held against, and which have nothing to stand on.

HEAVY = 2.0  # a figure or a name carries more of a statement's truth than a plain word
_PREFIX = 5  # letters two forms of one word share at least: Britain and British, govern and governor
_AKIN = 0.7  # what a word that shares only its beginning counts


class WordMatch(NamedTuple):
    """A content word of the statement, what it weighs, and how well the best word across the quote matches it."""

    word: str
    weight: float
    match: float


def align_words(statement: str, found: Sequence[str]) -> list[WordMatch]:
    """Each distinct content word of the statement against all words of the sentences."""
    have = {stem(word) for sentence in found for word in content_words(sentence)}
    begun = {word[:_PREFIX] for word in have if len(word) >= _PREFIX}
    aligned: dict[str, WordMatch] = {}
    for word in content_words(statement):
        root = stem(word)
        match = 1.0 if root in have else _AKIN if root[:_PREFIX] in begun and len(root) >= _PREFIX else 0.0
        weight = HEAVY if any(c.isdigit() for c in word) or word.capitalize() in statement else 1.0
        aligned.setdefault(root, WordMatch(word, weight, match))
    return list(aligned.values())


def coverage_share(aligned: Sequence[WordMatch]) -> float:
    """The weighted share of the statement that is matched."""
    total = sum(item.weight for item in aligned)
    return sum(item.weight * item.match for item in aligned) / total if total else 0.0


def subsequence_ratio(statement: str, sentence: str) -> float:
    """The longest run of the statement's words that the sentence has in the same order, gaps allowed."""
    wanted = [stem(word) for word in content_words(statement)]
    line = [stem(word) for word in content_words(sentence)]
    row = [0] * (len(line) + 1)
    for word in wanted:
        above, row = row, [0]
        for index, other in enumerate(line):
            row.append(above[index] + 1 if word == other else max(above[index + 1], row[index]))
    return row[-1] / len(wanted) if wanted else 0.0


# Which sentences of a long quote a statement must be held against: few, and together covering most of it.

MOST_SENTENCES = 5  # sentences; a quote of so many or fewer is taken whole
_AGAIN = 0.35  # what a word is still worth in a second sentence: the one that has it in context may come later


@lru_cache(maxsize=2048)
def split_quote(quote: str) -> tuple[str, ...]:
    return tuple(piece.text for piece in split_sentences(quote)) or (quote,)


def select_sentences(statement: str, quote: str) -> tuple[str, ...]:
    """Sentences in the order of the quote, chosen one by one for the rare words of the statement they add."""
    found = split_quote(quote)
    if len(found) <= MOST_SENTENCES:
        return found
    wanted = set(stems(statement))
    shared = [wanted & set(stems(sentence)) for sentence in found]
    counts = Counter(word for words in shared for word in words)
    weights = {word: math.log(1 + len(shared) / count) for word, count in counts.items()}
    worth = dict(weights)
    chosen: list[int] = []
    while len(chosen) < MOST_SENTENCES:
        gains = {}
        for index in range(len(found)):
            if index not in chosen:
                beside = [shared[near] for near in (index - 1, index + 1) if 0 <= near < len(shared)]
                around = sum(worth[word] for words in beside for word in words - shared[index])
                gains[index] = sum(worth[word] for word in shared[index]) + 0.1 * around
        best = max(gains, key=gains.__getitem__)
        if not shared[best]:
            break
        chosen.append(best)
        for word in shared[best]:
            worth[word] = _AGAIN * weights[word]
    return tuple(found[index] for index in sorted(chosen)) or found[:MOST_SENTENCES]


# What can be told of a statement and a quote without a language model, as numbers for the model of `support`.

_KINDS = (("figure", "unit"), ("date",), ("name",), ("negation",), ("direction",), ("hedge",), ("scope",))
WORD_FEATURES = (
    "coverage",
    "unmatched",
    "heavy_unmatched",
    "weakest_part",
    "order",
    "denied",
    "figures",
    "words",
    "narrowed",
    *(f"problem_{kinds[0]}" for kinds in _KINDS),
    "cosine",
)
ENTAILMENT_FEATURES = ("entailed", "refuted")  # by the cross-encoder
# What weighs otherwise in a long statement than in a short one: there a word without a match is no surprise. These
# take the AUC on long claims against whole articles from .77 to .79, and that on short ones is no worse.
_LONG = (
    "coverage",
    "unmatched",
    "problem_figure",
    "problem_date",
    "problem_name",
    "problem_negation",
    "problem_direction",
    "entailed",
)
_NARROWED = ENTAILMENT_FEATURES  # the cross-encoder has read passages, not sentences picked from an article
_USUAL = 2.0  # log of the words of a statement, about the mean of the claims it was fitted on
_PART = re.compile(r"[,;:()]|\s(?:and|but|while|who|which|where|when|after|before)\s")


def feature_names(*, read: bool) -> tuple[str, ...]:
    """The numbers in their order; `read` where there is a cross-encoder."""
    plain = (*WORD_FEATURES, *ENTAILMENT_FEATURES) if read else WORD_FEATURES
    long = tuple(f"{name}_long" for name in _LONG if name in plain)
    return (*plain, *long, *(f"{name}_narrowed" for name in _NARROWED if name in plain))


def compute_features(
    pairs: Sequence[tuple[str, str]], embedder: Embedder, entailment: Entailment | None
) -> NDArray[np.float64]:
    """A row of `names` for each (statement, quote)."""
    import numpy as np

    found = [(statement, select_sentences(statement, quote)) for statement, quote in pairs]
    plain = []
    for (statement, chosen), (_, quote) in zip(found, pairs, strict=True):
        kinds = [str(problem.kind) for problem in check_statement(statement, chosen).problems]
        aligned = align_words(statement, chosen)
        best = max(chosen, key=lambda sentence: coverage_share(align_words(statement, [sentence])))
        # How far the least covered part of the statement is covered; one part that is not is enough to be wrong.
        parts = [part for part in _PART.split(statement) if len(content_words(part)) > 1] or [statement]
        content = content_words(statement)
        plain.append(
            [
                coverage_share(aligned),
                math.log1p(_missing_weight(aligned)),
                math.log1p(_missing_weight([item for item in aligned if item.weight > 1])),
                min(coverage_share(align_words(part, chosen)) for part in parts),
                subsequence_ratio(statement, best),
                float(has_negation(statement) and not has_negation(best)),
                math.log1p(sum(any(character.isdigit() for character in word) for word in content)),
                math.log1p(len(content)),
                float(len(split_quote(quote)) > len(chosen)),
                *(math.log1p(sum(kind in group for kind in kinds)) for group in _KINDS),
            ]
        )
    joined = [(statement, " ".join(chosen)) for statement, chosen in found]
    texts = list(dict.fromkeys(text for pair in joined for text in pair))
    vectors = dict(zip(texts, embedder.embed(texts), strict=True))
    cosines = [[float(vectors[statement] @ vectors[chosen])] for statement, chosen in joined]
    columns = [np.array(plain, np.float64).reshape(len(pairs), -1), np.array(cosines, np.float64).reshape(-1, 1)]
    names = WORD_FEATURES
    if entailment is not None:
        supported, refuted, neither = entailment.scores(joined).astype(np.float64).T
        columns.append(np.stack([supported - np.logaddexp(refuted, neither), refuted - neither], axis=1))
        names = (*WORD_FEATURES, *ENTAILMENT_FEATURES)
    rows = np.hstack(columns)

    def select(wanted: Sequence[str]) -> NDArray[np.float64]:
        return rows[:, [names.index(name) for name in wanted if name in names]]

    # What depends on the statement's length or on the quote having been narrowed.
    length = select(["words"]) - _USUAL
    return np.hstack([rows, select(_LONG) * length, select(_NARROWED) * select(["narrowed"])])


def _missing_weight(aligned: Sequence[WordMatch]) -> float:
    return sum((1 - item.match) * item.weight for item in aligned)


WEIGHTS = Path(__file__).with_name("support.json")
DOUBTED = 0.55  # at most, where a check objects: words and meaning do not tell a figure, a name or a "not" apart
MOST_SCORES = 20_000  # pairs whose scores are remembered: a claim is judged and then weighed with the same quotes


class LogisticModel(NamedTuple):
    """A logistic model: each number is centred, brought to its spread, weighed and added up."""

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    weights: NDArray[np.float64]
    bias: float

    def probabilities(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        import numpy as np

        total = ((rows - self.centre) / self.spread) @ self.weights + self.bias
        return 1 / (1 + np.exp(-total))


@lru_cache(maxsize=2)
def load_logistic_model(*, read: bool) -> LogisticModel:
    """The weights for all numbers, or those for words and meaning alone."""
    import numpy as np

    stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))["read" if read else "words"]
    table = np.array([stored["numbers"][name] for name in feature_names(read=read)], np.float64)
    return LogisticModel(table[:, 0], table[:, 1], table[:, 2], float(stored["bias"]))


class FeatureSupportScorer:
    """The probability that a quote bears a statement out; 1 for a statement that stands in it word for word.

    Without a cross-encoder it is told from words and the encoder's cosine alone, by weights of their own.
    """

    def __init__(self, embedder: Embedder, entailment: Entailment | None = None) -> None:
        self._embedder = embedder
        self._entailment = entailment
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], float] = OrderedDict()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one for each (statement, evidence), in order. Evidence may be a quote in its context."""
        with self._lock:
            missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
            scores: dict[tuple[str, str], float] = {}
            unscored = []
            for statement, quote in missing:
                wanted = " ".join(fold(statement).split()).rstrip(".")
                verbatim = bool(wanted) and wanted in " ".join(fold(quote).split())
                scores[statement, quote] = float(verbatim)
                if not verbatim and statement.strip() and quote.strip():
                    unscored.append((statement, quote))
            if unscored:
                rows = compute_features(unscored, self._embedder, self._entailment)
                model = load_logistic_model(read=self._entailment is not None)
                names = feature_names(read=self._entailment is not None)
                problems = [at for at, name in enumerate(names) if name.startswith("problem_") and "_long" not in name]
                doubted = [bool(row.any()) for row in rows[:, problems] > 0]
                for pair, chance, doubt in zip(unscored, model.probabilities(rows), doubted, strict=True):
                    scores[pair] = min(float(chance), DOUBTED) if doubt else float(chance)
            self._known.update(scores)
            found = [self._known[pair] for pair in pairs]
            while len(self._known) > MOST_SCORES:
                self._known.popitem(last=False)
            return found
