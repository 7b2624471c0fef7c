"""Full-text index of one folder of files. It holds nothing that cannot be rebuilt from them."""

import json
import sqlite3
import unicodedata
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Self

from assay.errors import EvidenceError
from assay.model.source import Document, Passage
from assay.ports import FileStamp, IndexedPassage
from assay.storage.documents import check_hash, metadata_of, restored, the_only
from assay.storage.migrating import LIBRARY
from assay.storage.sqlite import SqliteDatabase

# Rows that a query may score; each costs BM25 1.5 microseconds. 200 questions of 3-8 words, 100,000 passages:
#   all words                       p95 208 ms
#   rarer words only, 15,000 rows   p95  26 ms, has .90 of the ten best in its first 30
#   as here, 7,000 rows             p95  38 ms, has all of them
_ROWS_SCORED = 7_000

# More words than anyone types; it bounds the time that pasted pages take.
_WORDS_ASKED = 64
_COMMON_WORDS = 8

_MATCH = """
WITH hits AS (
    SELECT rowid AS id, -bm25(passages_fts, 2.0, 1.0) AS score
    FROM passages_fts WHERE passages_fts MATCH ?
    ORDER BY score DESC, rowid LIMIT ?
)
SELECT id, document, "start", "end", text, title, score,
    (SELECT metadata FROM files WHERE document = passages.document ORDER BY path LIMIT 1) AS metadata
FROM hits JOIN passages USING (id)
ORDER BY score DESC, id
"""

_FIND = """
SELECT hash, metadata, CAST(text AS BLOB) FROM documents JOIN files ON files.document = hash
WHERE hash = ? ORDER BY path LIMIT 1
"""

# An external-content index is told the words to forget; they must be those it was given.
_ADD_TO_FTS = "INSERT INTO passages_fts (rowid, title, text) VALUES (?, ?, ?)"
_DROP_FROM_FTS = "INSERT INTO passages_fts (passages_fts, rowid, title, text) VALUES ('delete', ?, ?, ?)"


class LibraryIndex:
    """A ports.PassageIndex over an SQLite file of its own.

    Files with the same text share one document; of their titles and urls those of the first path count. It is closed
    when nobody holds it any more, if not before.
    """

    def __init__(self, path: Path) -> None:
        self._database = SqliteDatabase(path, LIBRARY)
        weakref.finalize(self, self._database.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """All changes made inside, by this thread, happen together or not at all; and much faster."""
        with self._database.transaction():
            yield

    def stamps(self) -> dict[str, FileStamp]:
        with self._database.connection() as connection:
            rows = connection.execute("SELECT path, size, mtime_ns FROM files ORDER BY path").fetchall()
        return {_path(row["path"]): FileStamp(row["size"], row["mtime_ns"]) for row in rows}

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None:
        """Forget what `path` held and index what it holds now; no document if it has no text."""
        check_indexable(path, document, passages)
        with self._database.transaction() as connection:
            if document:
                _store(connection, document, passages)
            before = _unlink(connection, path)
            _link(connection, path, stamp, document)
            for hash in filter(None, {before, document.hash if document else None}):
                _settle(connection, hash)

    def remove(self, paths: Sequence[str]) -> None:
        with self._database.transaction() as connection:
            for hash in filter(None, {_unlink(connection, path) for path in paths}):
                _settle(connection, hash)

    def match(self, words: Sequence[str], *, limit: int) -> list[IndexedPassage]:
        """The passages with any of the words, best first. Words may be any text whatever."""
        with self._database.connection() as connection:
            queries = _queries(connection, _terms(words))
            rows = [row for query in queries for row in connection.execute(_MATCH, (query, max(limit, 0)))]
        # A row that both queries found counts as the second has it: that one scores more of its words.
        found = {row["id"]: _indexed(row) for row in rows}
        return sorted(found.values(), key=lambda match: -match.score)[: max(limit, 0)]

    def document(self, hash: str) -> Document:
        with self._database.connection() as connection:
            rows = connection.execute(_FIND, (hash,)).fetchall()
        return restored(*the_only([tuple(row) for row in rows], hash))


def check_indexable(path: str, document: Document | None, passages: Sequence[Passage]) -> None:
    """Everything that can be wrong with a file is found before any of it is written."""
    if document:
        check_hash(document)
    if strays := {passage.document for passage in passages} - {document.hash if document else None}:
        raise EvidenceError(
            f"{path!r}: passages of another document ({sorted(strays)[0][:12]})",
            help="Cut the passages from the document they are given with.",
        )
    try:
        "".join([document.title if document else "", *(passage.text for passage in passages)]).encode()
    except UnicodeEncodeError as error:
        raise EvidenceError(
            f"{path!r}: its title or a passage holds a lone surrogate",
            help="Decode the file and its name properly, or index it without a document.",
        ) from error


def _key(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def _path(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def _unlink(connection: sqlite3.Connection, path: str) -> str | None:
    """Forget the file; what it held is returned, to be settled."""
    rows = connection.execute("DELETE FROM files WHERE path = ? RETURNING document", (_key(path),)).fetchall()
    return rows[0]["document"] if rows else None


def _link(connection: sqlite3.Connection, path: str, stamp: FileStamp, document: Document | None) -> None:
    held = (document.hash, metadata_of(document)) if document else (None, None)
    connection.execute(
        "INSERT INTO files (path, size, mtime_ns, document, metadata) VALUES (?, ?, ?, ?, ?)",
        (_key(path), *stamp, *held),
    )


def _settle(connection: sqlite3.Connection, hash: str) -> None:
    """Passages bear the title of the first file that holds them, and go with the last."""
    first = connection.execute(
        "SELECT metadata FROM files WHERE document = ? ORDER BY path LIMIT 1", (hash,)
    ).fetchone()
    if first:
        _retitle(connection, hash, json.loads(first["metadata"])["title"])
    else:
        _for_each_passage(connection, _DROP_FROM_FTS, hash)
        connection.execute("DELETE FROM documents WHERE hash = ?", (hash,))


def _store(connection: sqlite3.Connection, document: Document, passages: Sequence[Passage]) -> None:
    connection.execute(
        "INSERT INTO documents (hash, text) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (document.hash, document.text),
    )
    rows = connection.execute(
        'SELECT "start", "end", text FROM passages WHERE document = ? ORDER BY id', (document.hash,)
    )
    wanted = [(passage.start, passage.end, passage.text) for passage in passages]
    if [tuple(row) for row in rows] == wanted:
        return
    _for_each_passage(connection, _DROP_FROM_FTS, document.hash)
    connection.execute("DELETE FROM passages WHERE document = ?", (document.hash,))
    connection.executemany(
        'INSERT INTO passages (document, "start", "end", text, title) VALUES (?, ?, ?, ?, ?)',
        [(document.hash, *passage, document.title) for passage in wanted],
    )
    _for_each_passage(connection, _ADD_TO_FTS, document.hash)


def _retitle(connection: sqlite3.Connection, hash: str, title: str) -> None:
    row = connection.execute("SELECT title FROM passages WHERE document = ? LIMIT 1", (hash,)).fetchone()
    if row is None or row["title"] == title:
        return
    _for_each_passage(connection, _DROP_FROM_FTS, hash)
    connection.execute("UPDATE passages SET title = ? WHERE document = ?", (title, hash))
    _for_each_passage(connection, _ADD_TO_FTS, hash)


def _for_each_passage(connection: sqlite3.Connection, sql: str, hash: str) -> None:
    # Row by row: with INSERT ... SELECT, FTS5 writes a segment each time (100,000 passages: 10.8 s, so 7.3 s).
    rows = connection.execute("SELECT id, title, text FROM passages WHERE document = ?", (hash,)).fetchall()
    connection.executemany(sql, [tuple(row) for row in rows])


def _terms(words: Sequence[str]) -> list[str]:
    """Quoted terms without anything that FTS5 could take for syntax.

    Marks stay with their letters: FTS5 cuts a word of an Indic script at its vowel signs, and quoting keeps
    the pieces together as a phrase.
    """
    text = unicodedata.normalize("NFC", " ".join(words))
    spaced = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in text)
    distinct = {word.lower(): f'"{word}"' for word in spaced.split()}
    return list(distinct.values())[:_WORDS_ASKED]


def _queries(connection: sqlite3.Connection, terms: list[str]) -> list[str]:
    """An OR of all terms, but only over the rows that hold one of the rarer ones.

    BM25 scores every row that matches, and for common words that is most of them. So the rows come from the
    rarer terms: the first query finds them, the second scores those that hold a common term as well.
    """
    frequency = {term: _frequency(connection, term, _ROWS_SCORED + 1) for term in terms}
    found = sorted((term for term in terms if frequency[term]), key=lambda term: frequency[term])
    rows = accumulate(frequency[term] for term in found)
    rarer = [term for term, scored in zip(found, rows, strict=True) if scored <= _ROWS_SCORED]
    common = found[len(rarer) :][:_COMMON_WORDS]
    if not common:
        return [_any(rarer)] if rarer else []
    if not rarer:
        return [_all_common(connection, common)]
    return [_any(rarer), f"{_any(rarer)} AND {_any(common)}"]


def _frequency(connection: sqlite3.Connection, term: str, most: int) -> int:
    # Counting up to a limit: 4 ms a query. Asking fts5vocab, which knows stems only: 15 ms.
    (count,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM passages_fts WHERE passages_fts MATCH ? LIMIT ?)", (term, most)
    ).fetchone()
    return int(count)


def _all_common(connection: sqlite3.Connection, terms: list[str]) -> str:
    """The rarest together with any of the others, so that no more rows are scored than the rarest has."""
    rarest, *others = sorted(terms, key=lambda term: _frequency(connection, term, -1))
    return f"{rarest} AND {_any(others)}" if others else rarest


def _any(terms: list[str]) -> str:
    return f"({' OR '.join(terms)})"


def _indexed(row: sqlite3.Row) -> IndexedPassage:
    passage = Passage(document=row["document"], start=row["start"], end=row["end"], text=row["text"])
    return IndexedPassage(passage, row["title"], json.loads(row["metadata"])["url"], row["score"])
