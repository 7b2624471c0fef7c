"""Search over one folder of files, in an SQLite file. It holds nothing that cannot be rebuilt from them."""

import heapq
import json
import sqlite3
import unicodedata
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from assay.errors import EvidenceError
from assay.model.source import Document, Passage
from assay.ports import BarePassage, FileStamp, Holdings, IndexedFile, IndexedPassage
from assay.storage import candidates
from assay.storage.candidates import WORDS_ASKED, stars
from assay.storage.documents import check_hash, metadata_of, restored, the_only
from assay.storage.library_vectors import BARE, STORE, of_model, packed, scan
from assay.storage.migrating import LIBRARY
from assay.storage.sqlite import SqliteDatabase
from assay.storage.turns import file_turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COMMON_WORDS = 16  # that score what rarer ones have found
_MERGED = 1_000  # pages of the full-text index that one step of putting it in order may write

# 200 questions of 3-8 words, without the hundred commonest, over 1,000,000 passages: p50 20 ms, p95 51 ms of CPU.
_MATCH = """
SELECT id, score FROM (
    SELECT rowid AS id, -bm25(passages_fts, 2.0, 1.0) AS score
    FROM passages_fts WHERE passages_fts MATCH ? LIMIT ?
) ORDER BY score DESC, id LIMIT ?
"""

_SHOW = """
SELECT id, document, "start", "end", text, title,
    (SELECT metadata FROM files WHERE document = passages.document ORDER BY path LIMIT 1) AS metadata
FROM passages WHERE id IN (SELECT value FROM json_each(?))
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
        self._path = path
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

    def replace_all(self, files: Sequence[IndexedFile]) -> None:
        with self.batch():
            for file in files:
                self.replace(*file)

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None:
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
        scores: dict[int, float] = {}
        with self._database.connection() as connection:
            bounds = (candidates.STAND_TOGETHER * candidates.ROWS, max(limit, 0))
            for query in _queries(connection, _terms(words)):
                if query.is_last and scores:
                    break
                for row in connection.execute(_MATCH, (query.text, *bounds)):
                    # One that several queries found counts as the one has it that scores most of its words.
                    scores[row["id"]] = max(row["score"], scores.get(row["id"], 0.0))
            return _shown(connection, scores, limit)

    def document(self, hash: str) -> Document:
        with self._database.connection() as connection:
            rows = connection.execute(_FIND, (hash,)).fetchall()
        return restored(*the_only([tuple(row) for row in rows], hash))

    def holdings(self) -> Holdings:
        with self._database.connection() as connection:
            counts = [_count(connection, table) for table in ("files", "passages", "vectors")]
        return Holdings(*counts)

    def turn(self, *, wait: float) -> AbstractContextManager[bool]:
        return file_turn(self._path.with_name(f"{self._path.name}.lock"), wait)

    def settle(self) -> None:
        """One part of the full-text index in place of several, a step at a time so that others may write in between:
        10 s of CPU for 1,000,000 passages, after which questions take a fifth less."""
        with self._database.connection() as connection:
            pages = -_MERGED  # the first step takes all parts together
            while pages:
                before = connection.total_changes
                connection.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('merge', ?)", (pages,))
                pages = _MERGED if connection.total_changes - before > 1 else 0

    # Vectors -----------------------------------------------------------------------------------------

    def without_vectors(self) -> str:
        return ""

    def bare(self, model: str, *, after: int, limit: int) -> list[BarePassage]:
        with self._database.transaction() as connection:
            of_model(connection, model)
            rows = connection.execute(BARE, (after, limit)).fetchall()
        return [BarePassage(row["id"], f"{row['title']}. {row['text']}") for row in rows]

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        with self._database.transaction() as connection:
            of_model(connection, model)
            connection.executemany(STORE, [(packed(vector), id) for id, vector in vectors.items()])

    def nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[IndexedPassage]:
        with self._database.connection() as connection:
            return _shown(connection, scan(connection, model, vector, limit), limit)

    # What it is of -----------------------------------------------------------------------------------

    def about(self) -> dict[str, str]:
        with self._database.connection() as connection:
            rows = connection.execute("SELECT name, value FROM about").fetchall()
        return {row["name"]: _path(row["value"]) for row in rows}

    def note(self, name: str, value: str) -> None:
        if self.about().get(name) == value:
            return
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO about (name, value) VALUES (?, ?)", (name, _key(value)))


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
    connection.execute("DELETE FROM vectors WHERE passage IN (SELECT id FROM passages WHERE document = ?)", (hash,))
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
    return list(distinct.values())[:WORDS_ASKED]


class _Query(NamedTuple):
    text: str
    is_last: bool = False  # to be asked only where the others have found nothing


def _queries(connection: sqlite3.Connection, terms: list[str]) -> Iterator[_Query]:
    """Rows come from the stars; those of the rarer words are scored again by the common words they hold as well.

    BM25 counts how many rows have each word it is given, and gives nothing to one that more than half have: such are
    left out where there are others."""
    passages = connection.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()[0]
    frequency = {term: count for term in terms if (count := _frequency(connection, term, passages))}
    telling = {
        term: count for term, count in frequency.items() if count <= max(passages / 2, candidates.ROWS)
    } or frequency
    for all_of, any_of in stars(telling, passages, candidates.ROWS):
        if all_of:
            yield _Query(f"{' AND '.join(all_of)} AND {_any(any_of)}")
            continue
        yield _Query(_any(any_of))
        if common := sorted(set(telling) - set(any_of), key=lambda term: (telling[term], term))[:_COMMON_WORDS]:
            yield _Query(f"{_any(any_of)} AND {_any(common)}")
    if max(telling.values(), default=0) > candidates.ROWS:
        yield _Query(_any(list(frequency)), is_last=True)


def _frequency(connection: sqlite3.Connection, term: str, passages: int) -> int:
    """In how many passages a term stands; where that is more than a question may score, by how soon so many are found.

    Counting up to a limit: 4 ms a question. Asking fts5vocab, which knows stems only: 15 ms."""
    row = connection.execute(
        "SELECT count(*) AS n, max(id) AS last FROM"
        " (SELECT rowid AS id FROM passages_fts WHERE passages_fts MATCH ? LIMIT ?)",
        (term, candidates.ROWS + 1),
    ).fetchone()
    return int(row["n"]) if row["n"] <= candidates.ROWS else round(row["n"] * passages / row["last"])


def _any(terms: Sequence[str]) -> str:
    return f"({' OR '.join(terms)})"


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608  # a table of ours


def _shown(connection: sqlite3.Connection, scores: Mapping[int, float], limit: int) -> list[IndexedPassage]:
    """The best of them, best first."""
    best = heapq.nsmallest(max(limit, 0), scores, key=lambda id: (-scores[id], id))
    rows = {row["id"]: row for row in connection.execute(_SHOW, (json.dumps(best),))}
    return [_indexed(rows[id], scores[id]) for id in best if id in rows]


def _indexed(row: sqlite3.Row, score: float) -> IndexedPassage:
    passage = Passage(document=row["document"], start=row["start"], end=row["end"], text=row["text"])
    return IndexedPassage(passage, row["title"], json.loads(row["metadata"])["url"], score)
