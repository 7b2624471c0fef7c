"""all-MiniLM-L6-v2 as an int8 ONNX graph. Where the file comes from: data/ORIGIN.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.embedding.session import available_cpus, encodable, loaded, nothing, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
MODEL_FILE = "minilm.int8.onnx"
# Written down, since hashing 23 MB would be paid at every start; a test compares it with the file.
MODEL_SHA256 = "3ccbc02a8b667f967379faf7c97de608e6d9c9fe8bb3774deecd1c5074a4b1a2"

DIMENSIONS = 384
LONGEST = 256  # tokens; upstream's own limit, and all that the exported position table holds
BATCH = 32
MOST_THREADS = 4  # a run shares its machine with the reader of pages; more is the caller's choice


class MiniLM:
    """Unit vectors of 384 dimensions. A text's vector does not depend on the texts it is embedded with."""

    name = f"minilm-l6-int8-{MODEL_SHA256[:8]}"

    def __init__(self, *, data: Path = DATA, threads: int | None = None) -> None:
        self._data = data
        self._threads = threads or min(available_cpus(), MOST_THREADS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text, in their order; what lies beyond 256 tokens of a text is not seen."""
        if not texts:
            return nothing(DIMENSIONS)
        model = loaded(self._data, MODEL_FILE, self._threads, LONGEST)
        # One by one: `encode_batch` starts a thread pool that warns and may hang after a fork, and
        # tokenising takes 0.3 ms of the 11 ms that a passage of 60 words takes.
        return rows(model, [model.tokenizer.encode(encodable(text)) for text in texts], DIMENSIONS, BATCH)
