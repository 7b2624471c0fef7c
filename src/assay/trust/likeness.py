"""What can be told of a statement and a quote without a language model, as numbers for the model of `support`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from assay.text.negation import negated
from assay.text.words import content_words
from assay.trust.alignment import Aligned, align, coverage, in_order
from assay.trust.figures import check
from assay.trust.narrowing import nearest, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from assay.ports import Embedder, Entailment

_KINDS = (("figure", "unit"), ("date",), ("name",), ("negation",), ("direction",), ("hedge",), ("scope",))
WORDS = (
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
READ = ("entailed", "refuted")  # by the cross-encoder
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
_NARROWED = READ  # the cross-encoder has read passages, not sentences picked from an article
_USUAL = 2.0  # log of the words of a statement, about the mean of the claims it was fitted on
_PART = re.compile(r"[,;:()]|\s(?:and|but|while|who|which|where|when|after|before)\s")


def names(*, read: bool) -> tuple[str, ...]:
    """The numbers in their order; `read` where there is a cross-encoder."""
    plain = (*WORDS, *READ) if read else WORDS
    long = tuple(f"{name}_long" for name in _LONG if name in plain)
    return (*plain, *long, *(f"{name}_narrowed" for name in _NARROWED if name in plain))


def features(
    pairs: Sequence[tuple[str, str]], embedder: Embedder, entailment: Entailment | None
) -> NDArray[np.float64]:
    """A row of `names` for each (statement, quote)."""
    import numpy as np

    found = [(statement, nearest(statement, quote)) for statement, quote in pairs]
    plain = [
        [*_words(statement, chosen), *_size(statement, quote, chosen), *_problems(statement, chosen)]
        for (statement, chosen), (_, quote) in zip(found, pairs, strict=True)
    ]
    joined = [(statement, " ".join(chosen)) for statement, chosen in found]
    columns = [np.array(plain, np.float64).reshape(len(pairs), -1), _cosines(joined, embedder)]
    if entailment is not None:
        columns.append(_read(joined, entailment))
    return _crossed(np.hstack(columns), read=entailment is not None)


def _crossed(rows: NDArray[np.float64], *, read: bool) -> NDArray[np.float64]:
    """The rows, and what depends on the statement's length or on the quote having been narrowed."""
    import numpy as np

    plain = (*WORDS, *READ) if read else WORDS

    def columns(wanted: Sequence[str]) -> NDArray[np.float64]:
        return rows[:, [plain.index(name) for name in wanted if name in plain]]

    length, narrowed = columns(["words"]) - _USUAL, columns(["narrowed"])
    return np.hstack([rows, columns(_LONG) * length, columns(_NARROWED) * narrowed])


def _words(statement: str, found: Sequence[str]) -> list[float]:
    aligned = align(statement, found)
    best = max(found, key=lambda sentence: coverage(align(statement, [sentence])))
    return [
        coverage(aligned),
        math.log1p(_unmatched(aligned)),
        math.log1p(_unmatched([item for item in aligned if item.weight > 1])),
        _weakest(statement, found),
        in_order(statement, best),
        float(negated(statement) and not negated(best)),
    ]


def _unmatched(aligned: Sequence[Aligned]) -> float:
    return sum((1 - item.match) * item.weight for item in aligned)


def _weakest(statement: str, found: Sequence[str]) -> float:
    """How far the least covered part of the statement is covered; one part that is not is enough to be wrong."""
    parts = [part for part in _PART.split(statement) if len(content_words(part)) > 1] or [statement]
    return min(coverage(align(part, found)) for part in parts)


def _size(statement: str, quote: str, found: Sequence[str]) -> list[float]:
    content = content_words(statement)
    figures = sum(any(character.isdigit() for character in word) for word in content)
    return [math.log1p(figures), math.log1p(len(content)), float(len(split(quote)) > len(found))]


def _problems(statement: str, found: Sequence[str]) -> list[float]:
    kinds = [str(problem.kind) for problem in check(statement, found).problems]
    return [math.log1p(sum(kind in group for kind in kinds)) for group in _KINDS]


def _cosines(joined: Sequence[tuple[str, str]], embedder: Embedder) -> NDArray[np.float64]:
    import numpy as np

    texts = list(dict.fromkeys(text for pair in joined for text in pair))
    rows = dict(zip(texts, embedder.embed(texts), strict=True))
    return np.array([[float(rows[statement] @ rows[chosen])] for statement, chosen in joined], np.float64)


def _read(joined: Sequence[tuple[str, str]], entailment: Entailment) -> NDArray[np.float64]:
    import numpy as np

    supported, refuted, neither = entailment.scores(joined).astype(np.float64).T
    return np.stack([supported - np.logaddexp(refuted, neither), refuted - neither], axis=1)
