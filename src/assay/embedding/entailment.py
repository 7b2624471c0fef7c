"""A small cross-encoder that reads a statement and its evidence together. Where the file comes from: data/ORIGIN.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.embedding.minilm import DATA, MOST_THREADS
from assay.embedding.session import available_cpus, encodable, loaded, nothing, rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

MODEL_FILE = "entailment.int8.onnx"
# Written down as for the encoder; a test compares it with the file.
MODEL_SHA256 = "6940a8c24d34ef2806a23febf420ca52bb11c19b3c5fb123b5cdfab3f2a84f0e"

LONGEST = 256  # tokens of both texts together
STATEMENT = 90  # words of the statement that are read, so that evidence always has room
BATCH = 16
OUTPUTS = 3


class CrossEncoder:
    """Scores of a statement against its evidence. A pair's scores do not depend on the pairs beside it."""

    name = f"entailment-l6-int8-{MODEL_SHA256[:8]}"

    def __init__(self, *, data: Path = DATA, threads: int | None = None) -> None:
        self._data = data
        self._threads = threads or min(available_cpus(), MOST_THREADS)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """A row for each (statement, evidence), in order: logits of supported, refuted and neither."""
        if not pairs:
            return nothing(OUTPUTS)
        model = loaded(self._data, MODEL_FILE, self._threads, LONGEST, "only_second")
        encodings = [model.tokenizer.encode(_opening(statement), encodable(evidence)) for statement, evidence in pairs]
        return rows(model, encodings, OUTPUTS, BATCH)


def _opening(statement: str) -> str:
    return " ".join(encodable(statement).split()[:STATEMENT])
