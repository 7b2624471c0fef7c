"""An ONNX model of the package on the CPU: its files, its session, and the texts a tokenizer takes."""

from __future__ import annotations

import os
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from assay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

TOKENIZER_FILE = "tokenizer.json"
_loading = Lock()


class Model(NamedTuple):
    tokenizer: Tokenizer
    session: InferenceSession


def rows(model: Model, encodings: Sequence[Encoding], width: int, batch: int) -> NDArray[np.float32]:
    """What the model says of each text, in their order."""
    import numpy as np

    found = np.empty((len(encodings), width), np.float32)
    # Neighbours in length share a batch, so that little of it is padding.
    order = sorted(range(len(encodings)), key=lambda index: len(encodings[index].ids))
    inputs = {one.name for one in model.session.get_inputs()}
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        padded = _padded([encodings[index] for index in some])
        found[some] = model.session.run(None, {name: padded[name] for name in inputs})[0]
    return found


def nothing(width: int) -> NDArray[np.float32]:
    """What is said of no text, for which no model need be loaded."""
    import numpy as np

    return np.empty((0, width), np.float32)


def _padded(encodings: Sequence[Encoding]) -> dict[str, NDArray[np.int64]]:
    import numpy as np

    shape = len(encodings), max(len(encoding.ids) for encoding in encodings)
    ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
    for row, encoding in enumerate(encodings):
        length = len(encoding.ids)
        ids[row, :length], mask[row, :length], types[row, :length] = encoding.ids, 1, encoding.type_ids
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def loaded(data: Path, name: str, threads: int, longest: int, cut: str = "longest_first") -> Model:
    """Once a process, however many ask: a model takes about 50 MB and 0.3 s of CPU, and nobody changes it. A text of
    more than `longest` tokens is cut off, of two the one that `cut` says."""
    with _loading:
        return _load(data, name, threads, longest, cut)


@lru_cache(maxsize=4)
def _load(data: Path, name: str, threads: int, longest: int, cut: str) -> Model:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_file(data, TOKENIZER_FILE)))
    # The file is upstream's to the byte, and asks for 128 tokens, always padded.
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest, strategy=cut)
    return Model(tokenizer, open_session(model_file(data, name), threads))


def open_session(path: Path, threads: int) -> InferenceSession:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    # Idle threads sleep instead of spinning: no slower here (95 against 97 passages a second, within the
    # noise), and the cores are free for whoever else runs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def model_file(data: Path, name: str) -> Path:
    path = data / name
    if not path.is_file():
        raise ConfigurationError(
            f"The embedding model is incomplete: {name} is missing.",
            help="Install Assay again; the file is part of the package.",
            path=str(path),
        )
    return path


def available_cpus() -> int:
    """The CPUs this process may use; only Linux tells them from those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def encodable(text: str) -> str:
    """Badly decoded pages hold lone surrogates, which the tokenizer refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")
