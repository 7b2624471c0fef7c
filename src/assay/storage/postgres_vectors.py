"""Vectors of passages on PostgreSQL, by pgvector, as 16-bit floats. Their table is made when somebody first wants them,
since a server need not have the extension."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.errors import StorageError
from assay.ports import BarePassage
from assay.storage.database import Connection
from assay.storage.postgres import PostgresDatabase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT = 50_000  # vectors of a library that are all looked through for a question; more get an index, which is not exact
_SEARCHED = 200  # entries of the index that are looked into; at least as many as are wanted
_MAKING = 7_301_229  # the advisory lock of whoever makes the table
_MAKE = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """
    CREATE TABLE IF NOT EXISTS library_vectors (
        passage BIGINT PRIMARY KEY REFERENCES library_passages (id) ON DELETE CASCADE,
        library BIGINT NOT NULL,
        vector halfvec NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS library_vectors_by_library ON library_vectors (library)",
)
_IS_THERE = "SELECT to_regclass('library_vectors') IS NOT NULL AS there"
_BARE = """
SELECT p.id, d.title, p.text FROM library_passages AS p JOIN library_documents AS d ON d.id = p.document
WHERE d.library = ? AND p.id > ? AND NOT EXISTS (SELECT 1 FROM library_vectors WHERE passage = p.id)
ORDER BY p.id LIMIT ?
"""
_ADD = """
INSERT INTO library_vectors (passage, library, vector)
SELECT p.id, ?, CAST(given.vector AS halfvec)
FROM unnest(CAST(? AS BIGINT[]), CAST(? AS TEXT[])) AS given (id, vector) JOIN library_passages AS p USING (id)
ON CONFLICT (passage) DO UPDATE SET vector = excluded.vector
"""
# The library's number and the vector's length are written out: an index of one library is used for no other.
_NEAREST = """
SELECT d.hash, p."start", p."end", p.text, d.title, score, {metadata} AS metadata FROM (
    SELECT passage, -(vector::halfvec({length}) <#> CAST(? AS halfvec({length}))) AS score FROM library_vectors
    WHERE library = {library} ORDER BY vector::halfvec({length}) <#> CAST(? AS halfvec({length})) LIMIT ?
) AS near JOIN library_passages AS p ON p.id = passage JOIN library_documents AS d ON d.id = p.document
ORDER BY score DESC, p.id
"""


def refusal(database: PostgresDatabase) -> str:
    """Why there can be no vectors; nothing where there can, and then their table is there."""
    with database.connection() as connection:
        if connection.execute(_IS_THERE).fetchone()["there"]:
            return ""
    try:
        with database.transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
            for statement in _MAKE:
                connection.execute(statement)
    except StorageError as error:
        if error.retryable:  # the server is gone, which says nothing about what it has
            raise
        return error.message
    return ""


def count(connection: Connection, library: int) -> int:
    if not connection.execute(_IS_THERE).fetchone()["there"]:
        return 0
    sql = "SELECT count(*) AS n FROM library_vectors WHERE library = ?"
    return int(connection.execute(sql, (library,)).fetchone()["n"])


def of_model(connection: Connection, library: int, model: str) -> None:
    """From here on the vectors are this model's; those of another say nothing beside them."""
    sql = "UPDATE libraries SET model = ? WHERE id = ? AND model IS DISTINCT FROM ?"
    if connection.execute(sql, (model, library, model)).rowcount:
        connection.execute("DELETE FROM library_vectors WHERE library = ?", (library,))


def bare(connection: Connection, library: int, after: int, limit: int) -> list[BarePassage]:
    rows = connection.execute(_BARE, (library, after, limit))
    return [BarePassage(row["id"], f"{row['title']}. {row['text']}") for row in rows]


def add(connection: Connection, library: int, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
    connection.execute(_ADD, (library, list(vectors), [_written(vector) for vector in vectors.values()]))


def nearest(
    connection: Connection, library: int, vector: "NDArray[np.float32]", limit: int, metadata: str
) -> list[Any]:
    """Inside a transaction."""
    if limit < 1 or not connection.execute(_IS_THERE).fetchone()["there"]:
        return []
    connection.execute(f"SET LOCAL hnsw.ef_search = {min(max(_SEARCHED, limit), 1000)}")
    sql = _NEAREST.format(library=library, length=len(vector), metadata=metadata)
    return connection.execute(sql, (_written(vector), _written(vector), limit)).fetchall()


def settle(database: PostgresDatabase, library: int) -> None:
    """An index for the vectors of one library, where it has many: one for all would have to look past those of others.
    Made when they are there, it takes a third of the time."""
    with database.connection() as connection:
        if count(connection, library) <= EXACT:
            return
        sql = "SELECT vector_dims(vector) AS length FROM library_vectors WHERE library = ? LIMIT 1"
        length = connection.execute(sql, (library,)).fetchone()["length"]
    with database.transaction() as connection:
        connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
        connection.execute(
            f"CREATE INDEX IF NOT EXISTS library_vectors_{library} ON library_vectors"
            f" USING hnsw ((vector::halfvec({length})) halfvec_ip_ops) WHERE library = {library}"
        )


def forget(database: PostgresDatabase, library: int) -> None:
    """The index; the vectors go with their passages."""
    with database.transaction() as connection:
        connection.execute(f"DROP INDEX IF EXISTS library_vectors_{library}")


def _written(vector: "NDArray[np.float32]") -> str:
    return f"[{','.join(f'{value:.6g}' for value in vector.tolist())}]"
