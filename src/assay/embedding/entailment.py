"""A small cross-encoder that reads a statement and its evidence together. Where the file comes from: data/ORIGIN.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.embedding.minilm import DATA, MOST_THREADS
from assay.embedding.session import available_cpus, encodable, loaded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding

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
        import numpy as np

        rows = np.empty((len(pairs), OUTPUTS), np.float32)
        if not pairs:
            return rows
        tokenizer, session = loaded(self._data, MODEL_FILE, self._threads, LONGEST, "only_second")
        encodings = [tokenizer.encode(_opening(statement), encodable(evidence)) for statement, evidence in pairs]
        # Neighbours in length share a batch, so that little of it is padding.
        order = sorted(range(len(pairs)), key=lambda index: len(encodings[index].ids))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            rows[batch] = session.run(None, _padded([encodings[index] for index in batch]))[0]
        return rows


def _opening(statement: str) -> str:
    return " ".join(encodable(statement).split()[:STATEMENT])


def _padded(encodings: Sequence[Encoding]) -> dict[str, NDArray[np.int64]]:
    import numpy as np

    shape = len(encodings), max(len(encoding.ids) for encoding in encodings)
    ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
    for row, encoding in enumerate(encodings):
        length = len(encoding.ids)
        ids[row, :length], mask[row, :length], types[row, :length] = encoding.ids, 1, encoding.type_ids
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
