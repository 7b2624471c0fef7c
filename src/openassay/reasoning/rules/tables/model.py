"""What was learned of questions over tables: how much a word tells, which operation a question asks for, and which of
many compositions it means. The weights are of benchmarks/train_table_answers.py."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openassay.reasoning.rules.tables.composing import OPERATIONS, Composition, Operation
from openassay.reasoning.rules.tables.features import Floats, describe, read_ngrams
from openassay.reasoning.rules.tables.grid import Table
from openassay.reasoning.rules.tables.matching import Fit, Question, tokenize
from openassay.text.words import STOP_WORDS, stem

_WORD = re.compile(r"[a-z]+")
FILE = Path(__file__).parent / "weights.npz"
_COMMON = 0.4  # words that tell less may ask for an operation
_LEAST_CHANCE, _FEWEST = 0.02, 4  # of operations that are tried

_CALCULATIONS: tuple[Operation, ...] = ("difference", "change", "ratio", "share", "sum", "average", "count")


@dataclass(frozen=True)
class TableModel:
    """Arrays by name, as the file has them."""

    arrays: Mapping[str, npt.NDArray[np.generic]]

    @cached_property
    def words(self) -> dict[str, float]:
        values = self._read("word_weights").tolist()
        return dict(zip(self.arrays["words"].tolist(), values, strict=True))

    @cached_property
    def ngrams(self) -> dict[str, int]:
        return {ngram: number for number, ngram in enumerate(self.arrays["ngrams"].tolist())}

    def weigh(self, stem: str) -> float:
        """How much a word tells: nearly nothing where most questions have it."""
        return self.words.get(stem, 1.0)

    def list_label_words(self, table: Table) -> frozenset[str]:
        """Words of labels, heads and caption that say nothing of the operation: the common ones may."""
        texts = [table.caption, *table.heads, *(row.name for row in table.rows)]
        found = {word for text in texts for word in _WORD.findall(text.lower()) if word not in STOP_WORDS}
        return frozenset(word for word in found if self.weigh(stem(word)) > _COMMON)

    def guess_operations(self, question: Question, labels: frozenset[str]) -> dict[str, float]:
        """How likely each operation is, by the wording of the question alone."""
        known = [self.ngrams[ngram] for ngram in read_ngrams(question, labels) if ngram in self.ngrams]
        raw = self._read("operation_weights")[known].sum(axis=0) + self._read("operation_bias")
        powers = np.exp(raw - raw.max())
        return dict(zip(OPERATIONS, (powers / powers.sum()).tolist(), strict=True))

    def asks_to_calculate(self, question: Question) -> bool:
        """Whether a question is likelier to ask for something to be worked out than for what stands somewhere: of 360
        questions over tables .91 of those that do, and .04 of the others."""
        chances = self.guess_operations(question, frozenset())
        return sum(chances[name] for name in _CALCULATIONS) > 0.5

    def choose_operations(self, chances: Mapping[str, float]) -> list[Operation]:
        best = sorted(OPERATIONS, key=lambda name: -chances[name])[:_FEWEST]
        return [name for name in OPERATIONS if name in best or chances[name] >= _LEAST_CHANCE or name == "none"]

    def rate(self, fit: Fit, compositions: Sequence[Composition], chances: dict[str, float]) -> list[float]:
        """How likely each composition is the one that is meant, among these."""
        return self.rate_features(describe(fit, compositions, chances, self.weigh)).tolist()  # type: ignore[no-any-return]

    def rate_features(self, features: Floats) -> Floats:
        scaled = (features - self._read("mean")) / self._read("deviation")
        hidden = np.maximum(scaled @ self._read("hidden_weights") + self._read("hidden_bias"), 0)
        raw = hidden @ self._read("out_weights") + scaled @ self._read("skip_weights")
        powers = np.exp(raw - raw.max())
        chances: Floats = powers / powers.sum()
        return chances

    def calibrate(self, chance: float, known: float) -> float:
        """The share of answers of such a chance, whose table knows so much of the question, that were right."""
        first, second, bias = self._read("calibration").tolist()
        chance = min(max(chance, 1e-6), 1 - 1e-6)
        return 1 / (1 + math.exp(-(first * math.log(chance / (1 - chance)) + second * known + bias)))

    def _read(self, name: str) -> Floats:
        found: Floats = self.arrays[name].astype(np.float32, copy=False)
        return found


@lru_cache(maxsize=1)
def load_model() -> TableModel:
    """The model that comes with the program; read once."""
    with np.load(FILE, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    floats = {name: one.astype(np.float32) for name, one in arrays.items() if one.dtype.kind == "f"}
    return TableModel(arrays | floats)


def count_known(fit: Fit, model: TableModel) -> float:
    """The share of the question's words that the table has anywhere."""
    told = frozenset().union(
        *(match.stems for match in fit.rows),
        *(match.line.stems for match in fit.columns),
        fit.question.stems & {token.stem for token in tokenize(fit.table.caption)},
    )
    total = sum(map(model.weigh, fit.question.stems))
    return sum(map(model.weigh, told)) / total if total else 0.0
