"""An ONNX model of the package on the CPU: its file, its session, and the texts a tokenizer takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from assay.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from onnxruntime import InferenceSession


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
