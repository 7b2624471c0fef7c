"""How far a quote supports a statement, without a language model: words, figures, meaning, and a calibrated sum.

The numbers of `likeness` are weighed by a logistic model whose weights ship in `support.json`; what comes out is the
probability that the quote bears the statement out. How it was fitted, and on what: docs/decisions/0016.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from assay.text.words import fold
from assay.trust.likeness import features, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from assay.ports import Embedder, Entailment

WEIGHTS = Path(__file__).with_name("support.json")
KEPT = 20_000  # pairs whose scores are remembered: a claim is judged and then weighed with the same quotes


class Model(NamedTuple):
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
def shipped(*, read: bool) -> Model:
    """The weights for all numbers, or those for words and meaning alone."""
    import numpy as np

    stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))["read" if read else "words"]
    table = np.array([stored["numbers"][name] for name in names(read=read)], np.float64)
    return Model(table[:, 0], table[:, 1], table[:, 2], float(stored["bias"]))


class WordsAndMeaning:
    """The probability that a quote bears a statement out; 1 for a statement that stands in it word for word.

    Without a cross-encoder it is told from words and the encoder's cosine alone, by weights of their own.
    """

    def __init__(self, embedder: Embedder, entailment: Entailment | None = None) -> None:
        self._embedder = embedder
        self._entailment = entailment
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], float] = OrderedDict()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        with self._lock:
            missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
            self._known.update(zip(missing, self._computed(missing), strict=True))
            found = [self._known[pair] for pair in pairs]
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            return found

    def _computed(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        scores = [float(_contains(quote, statement)) for statement, quote in pairs]
        open_ = [index for index, score in enumerate(scores) if not score and all(map(str.strip, pairs[index]))]
        if open_:
            rows = features([pairs[index] for index in open_], self._embedder, self._entailment)
            model = shipped(read=self._entailment is not None)
            for index, score in zip(open_, model.probabilities(rows), strict=True):
                scores[index] = float(score)
        return scores


def _contains(quote: str, statement: str) -> bool:
    wanted = " ".join(fold(statement).split()).rstrip(".")
    return bool(wanted) and wanted in " ".join(fold(quote).split())
