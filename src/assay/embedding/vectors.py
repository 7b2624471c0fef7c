"""Vectors cached by content: the same text under the same model is computed once per data directory."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from assay.ports import Embedder

LIMIT = 500_000  # rows; about 430 MB
LOOKUP = 500  # keys in one query; SQLite's oldest limit on variables is 999
BUSY_SECONDS = 5.0
REST_SECONDS = 60.0  # without the cache after it failed: a locked one would cost every call BUSY_SECONDS twice

CREATE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)"
STORE = "INSERT INTO vectors (key, vector) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector"
# Rows leave from the old end only, so rowids have no gaps and the newest one tells how many there are;
# counting half a million rows at every store would not be free.
PRUNE = "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?"

CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class CachedEmbedder:
    """An embedder that remembers. Whatever happens to the cache, `embed` answers and `on_notice` is told.

    Vectors are kept as float16, and fresh ones are rounded alike, so that a first run and a second one see
    the same numbers. The rounding moves a cosine by 1e-4 at most.
    """

    def __init__(
        self,
        embedder: Embedder,
        path: Path,
        *,
        limit: int = LIMIT,
        on_notice: Callable[[str], None] = lambda notice: None,
    ) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._path = path
        self._limit = limit
        self._on_notice = on_notice
        self._lock = Lock()
        self._computing = Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._resting_until = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        keys = [self._key(text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        empty = self._embedder.embed([])
        found = self._find(list(wanted), size=2 * empty.shape[1])
        if len(found) < len(wanted):
            # One at a time: parallel queries want the same passages, and the second then finds them stored.
            with self._computing:
                found |= self._find([key for key in wanted if key not in found], size=2 * empty.shape[1])
                missing = [key for key in wanted if key not in found]
                computed = self._embedder.embed([wanted[key] for key in missing]).astype(np.float16)
                fresh = {key: row.tobytes() for key, row in zip(missing, computed, strict=True)}
                self._store(fresh)
            found |= fresh
        joined = b"".join(found[key] for key in keys)
        return np.frombuffer(joined, np.float16).reshape(len(keys), -1).astype(np.float32) if keys else empty

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _key(self, text: str) -> bytes:
        return sha256(f"{self.name}\0{text}".encode("utf-8", "surrogatepass")).digest()

    def _find(self, keys: Sequence[bytes], size: int) -> dict[bytes, bytes]:
        """A row of another size was damaged or cut short: it counts as missing and is written again."""
        found: dict[bytes, bytes] = {}

        def look_up(connection: sqlite3.Connection) -> None:
            for chunk in _chunks(keys, LOOKUP):
                marks = ", ".join("?" * len(chunk))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608 - only marks
                rows: Iterable[tuple[bytes, bytes]] = connection.execute(query, chunk)
                found.update((key, vector) for key, vector in rows if len(vector) == size)

        if keys:
            self._use(look_up)
        return found

    def _store(self, fresh: Mapping[bytes, bytes]) -> None:
        if not fresh:
            return

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(STORE, fresh.items())
                connection.execute(PRUNE, (self._limit,))

        self._use(write)

    def _use(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Runs an action on the cache, once more on a new file if this one turns out to be corrupt."""
        with self._lock:
            if monotonic() < self._resting_until:
                return
            try:
                try:
                    action(self._connected())
                except sqlite3.DatabaseError as error:
                    if not _is_corrupt(error):
                        raise
                    self._replace()
                    action(self._connected())
            except (sqlite3.Error, OSError) as error:
                self._disconnect()
                self._resting_until = monotonic() + REST_SECONDS
                self._on_notice(f"The vector cache could not be used ({error}); going on without it.")

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
            self._connection = connection
            self._inode = self._path.stat().st_ino
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last vectors, which are only computed again.
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                connection.execute(CREATE)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None

    def _replace(self) -> None:
        """Moves the corrupt file aside, unless another process has already put a new one in its place."""
        inode = self._inode
        self._disconnect()
        if not self._path.exists() or self._path.stat().st_ino != inode:
            return
        aside = self._path.with_name(f"{self._path.name}.corrupt")
        os.replace(self._path, aside)
        for suffix in ("-wal", "-shm"):
            self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        self._on_notice(f"The vector cache was corrupt: moved to {aside.name}, and a new one started.")


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    # The low byte is the kind of error, the rest its details. Errors of the Python module carry no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in CORRUPT


def _chunks(keys: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
