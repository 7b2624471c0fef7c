"""What the two models in the package have answered before, for every test of a session.

A research of the example library takes 13 s of CPU, 9 of them for vectors that hundreds of tests want again. Each
answer depends on its own text alone, which tests/unit proves on the models themselves.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from openassay.text import embeddings
from openassay.text.embeddings import CrossEncoder, MiniLM


class RememberedAnswers:
    """In a file, exactly as they were given; each process has a connection of its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def wrap_models(self, replace: Callable[[object, str, object], None]) -> None:
        replace(MiniLM, "embed", self._wrap(MiniLM.embed))
        replace(CrossEncoder, "scores", self._wrap(CrossEncoder.scores))

    def _wrap(self, ask: Callable[[Any, Any], Any]) -> Callable[[Any, Sequence[Any]], Any]:
        def call(model: Any, given: Sequence[Any]) -> Any:
            if not given or model._data != embeddings.DATA:
                return ask(model, given)
            keys = [sha256(f"{model.name} {one!r}".encode()).digest() for one in given]
            found = self._find(keys)
            missing = {key: one for key, one in zip(keys, given, strict=True) if key not in found}
            if missing:
                fresh = {key: row.tobytes() for key, row in zip(missing, ask(model, [*missing.values()]), strict=True)}
                self._store(fresh)
                found |= fresh
            return np.frombuffer(b"".join(found[key] for key in keys), np.float32).reshape(len(keys), -1).copy()

        return call

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            rows = [
                self._connect().execute("SELECT answer FROM answers WHERE key = ?", [key]).fetchone() for key in keys
            ]
        return {key: row[0] for key, row in zip(keys, rows, strict=True) if row}

    def _store(self, answers: dict[bytes, bytes]) -> None:
        # Whoever holds it may be a process that a test has stopped; then it is asked again another time.
        with self._lock, suppress(sqlite3.OperationalError), self._connect() as connection:
            connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", answers.items())

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():
            self._connection = sqlite3.connect(self._file, timeout=60, check_same_thread=False)
            self._process = os.getpid()
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = OFF")
            with self._connection:
                self._connection.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB)")
            self._connection.execute("PRAGMA busy_timeout = 5000")
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
