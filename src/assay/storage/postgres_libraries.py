"""Indexes of folders in a PostgreSQL database, for every machine that uses it."""

from datetime import datetime
from pathlib import Path
from typing import Any

from assay.model.upload import SCHEME
from assay.ports import Holdings
from assay.storage import postgres_vectors
from assay.storage.database import Connection
from assay.storage.lexemes import Stems
from assay.storage.libraries import Library
from assay.storage.postgres import PostgresDatabase
from assay.storage.postgres_library import Names, PostgresLibrary

_ALL = "SELECT id, root, machine, updated, kept, passages FROM libraries"
_FILES = "SELECT count(*) AS n FROM library_files WHERE library = ?"
_SHARING = """
SELECT id FROM libraries WHERE root >= ? AND root < ?
AND EXISTS (SELECT 1 FROM library_files WHERE library = id AND path >= ? AND path < ?)
"""
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(relation)), 0) AS size, (SELECT sum(passages) FROM libraries) AS passages
FROM unnest(ARRAY[
    to_regclass('library_passages'), to_regclass('library_documents'), to_regclass('library_files'),
    to_regclass('library_words'), to_regclass('library_vectors')
]) AS relation WHERE relation IS NOT NULL
"""


class PostgresLibraries:
    """A storage Libraries."""

    def __init__(self, database: PostgresDatabase, uploads: Path) -> None:
        self._database = database
        self._names = Names(uploads)
        self._stems = Stems()

    def open(self, root: Path) -> PostgresLibrary:
        return PostgresLibrary(self._database, root, self._names, self._stems)

    def elsewhere(self, root: Path) -> Library | None:
        with self._database.connection() as connection:
            rows = connection.execute(f"{_ALL} WHERE root = ?", (self._names.key(str(root)),)).fetchall()
            found = [self._described(connection, row) for row in rows]
        return found[0] if found and found[0].holdings.files else None

    def keep(self, root: Path) -> None:
        with self._database.transaction() as connection:
            connection.execute("UPDATE libraries SET kept = 1 WHERE root = ?", (self._names.key(str(root)),))

    def forget(self, roots: set[Path], *, kept: bool = False) -> None:
        for root in roots:
            for library in self._concerned(self._names.key(str(root)), kept):
                self._delete(library)

    def all(self) -> list[Library]:
        with self._database.connection() as connection:
            rows = connection.execute(f"{_ALL} ORDER BY root").fetchall()
            return [self._described(connection, row) for row in rows if not row["root"].startswith(SCHEME.encode())]

    def close(self) -> None:
        """The database is closed by whoever has opened it."""

    def _described(self, connection: Connection, row: Any) -> Library:
        """The size is its share of what all libraries take."""
        files = connection.execute(_FILES, (row["id"],)).fetchone()["n"]
        taken = connection.execute(_SIZE).fetchone()
        share = row["passages"] / max(int(taken["passages"] or 0), 1)
        vectors = postgres_vectors.count(connection, row["id"])
        return Library(
            self._names.path(row["root"]), Holdings(files, row["passages"], vectors), round(int(taken["size"]) * share),
            datetime.fromisoformat(row["updated"]), row["machine"], bool(row["kept"]),
        )  # fmt: skip

    def _concerned(self, root: bytes, kept: bool) -> list[int]:
        """Its own library and, of an upload, those of its owner that it is in."""
        with self._database.connection() as connection:
            found = connection.execute("SELECT id FROM libraries WHERE root = ? AND kept <= ?", (root, kept)).fetchall()
            if root.startswith(SCHEME.encode()):
                owner = root.rpartition(b"/")[0]
                found += connection.execute(_SHARING, (*_below(owner), *_below(root))).fetchall()
        return list(dict.fromkeys(row["id"] for row in found))

    def _delete(self, library: int) -> None:
        postgres_vectors.forget(self._database, library)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM libraries WHERE id = ?", (library,))
            bounds = (f"{library}.", f"{library}/")  # what follows the full stop
            connection.execute("DELETE FROM library_words WHERE word >= ? AND word < ?", bounds)


def _below(path: bytes) -> tuple[bytes, bytes]:
    """Paths that begin with it lie between these: 0 follows the slash."""
    return path + b"/", path + b"0"
