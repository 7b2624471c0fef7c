"""Vectors of passages in the SQLite file of an index: 16-bit floats, all of them looked through for each question.

A question costs 1.4 µs a passage: 14 ms for 10,000. Beyond some 100,000 an index on PostgreSQL answers sooner.
"""

import heapq
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHUNK = 4_096  # vectors in memory at a time, which is 3 MB
BARE = """
SELECT id, title, text FROM passages
WHERE id > ? AND NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id) ORDER BY id LIMIT ?
"""
STORE = "INSERT OR REPLACE INTO vectors (passage, vector) SELECT id, ? FROM passages WHERE id = ?"
_MODEL = "SELECT value FROM about WHERE name = 'model'"


def of_model(connection: sqlite3.Connection, model: str) -> None:
    """From here on the vectors are this model's; those of another say nothing beside them."""
    if _model(connection) != model:
        connection.execute("DELETE FROM vectors")
        connection.execute("INSERT OR REPLACE INTO about (name, value) VALUES ('model', ?)", (model.encode(),))


def packed(vector: "NDArray[np.float32]") -> bytes:
    import numpy as np

    return bytes(vector.astype(np.float16).tobytes())


def scan(connection: sqlite3.Connection, model: str, vector: "NDArray[np.float32]", limit: int) -> dict[int, float]:
    """The cosines of the nearest, by the number of their passages."""
    import numpy as np

    best: list[tuple[float, int]] = []
    if _model(connection) != model:
        return {}
    cursor = connection.execute("SELECT passage, vector FROM vectors")
    while rows := cursor.fetchmany(_CHUNK):
        joined = np.frombuffer(b"".join(row["vector"] for row in rows), np.float16)
        cosines = joined.reshape(len(rows), -1).astype(np.float32) @ vector
        nearest = np.argsort(-cosines, kind="stable")[: max(limit, 0)]
        best = heapq.nlargest(max(limit, 0), best + [(float(cosines[at]), -rows[at]["passage"]) for at in nearest])
    return {-id: cosine for cosine, id in best}


def _model(connection: sqlite3.Connection) -> str:
    row = connection.execute(_MODEL).fetchone()
    return row["value"].decode() if row else ""
