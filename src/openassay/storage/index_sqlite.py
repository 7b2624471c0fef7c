"""Full-text and vector search over one folder of files, in an SQLite file that can be rebuilt from them."""

import heapq
import json
import sqlite3
import unicodedata
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import combinations
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from openassay.errors import EvidenceError
from openassay.models.evidence import Document, Passage
from openassay.protocols import FileStamp, IndexCounts, IndexEntry, PassageMatch, PendingPassage
from openassay.storage.database import INDEX_SCHEMA, Closable
from openassay.storage.documents import check_hash, dump_metadata, get_only, load_document
from openassay.storage.locks import try_file_lock
from openassay.storage.sqlite import SqliteDatabase
from openassay.text.words import UNSPACED, fold, split_unspaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Which passages are worth scoring, for any full-text index. To score a passage costs a read of it; common words lead
# to most passages. So passages come from the rarer words, and then from common ones that stand together, while they are
# few. Of the ten best of 600,000 passages (words by Zipf's law, 200 questions of 3 to 8 words), these are among the
# first 30:
#     rarer words alone, 7,000 rows                .993
#     as here, 1,500 rows                          .990
#     as here, 3,000 rows                          .995
#     as here, 7,000 rows                         1.000

MAX_ROWS = 3_000
MAX_WORDS = 64  # more than anyone types; it bounds the time that pasted pages take
ROW_SLACK = 4  # times as often as chance would have it, and no row beyond that is scored
_MAX_COMMON_WORDS = 8


class WordCombination(NamedTuple):
    """Passages with all of some words and at least one of some others."""

    all_of: tuple[str, ...]
    any_of: tuple[str, ...]


def choose_combinations(frequency: Mapping[str, int], passages: int, rows: int) -> list[WordCombination]:
    """Choose words that together lead to about `rows` passages, or to a few that hold them together where there are
    more.

    `frequency` says in how many passages a word stands, for those that stand in any."""
    chance = {word: min(frequency[word] / max(passages, 1), 1.0) for word in frequency}
    words = sorted(frequency, key=lambda word: frequency[word])
    budget = _RowBudget(passages, rows)
    rarer = budget.take_words((word, chance[word]) for word in words)
    chosen = [WordCombination((), tuple(rarer))] if rarer else []
    common = words[len(rarer) :][:_MAX_COMMON_WORDS]
    for size in range(1, len(common)):
        for all_of in combinations(common, size):
            together = prod(chance[word] for word in all_of)
            later = common[common.index(all_of[-1]) + 1 :]
            if any_of := budget.take_words((word, together * chance[word]) for word in later):
                chosen.append(WordCombination(all_of, tuple(any_of)))
        if chosen:
            break
    return chosen or ([WordCombination(tuple(common[:-1]), (common[-1],))] if common else [])


class _RowBudget:
    """How many passages may still be scored, if words are spread at random."""

    def __init__(self, passages: int, rows: int) -> None:
        self._passages = passages
        self._rows = rows
        self._left_out = 1.0  # the share of passages that nothing so far leads to

    def take_words(self, words: Iterable[tuple[str, float]]) -> list[str]:
        """Take the first words that lead to few enough passages, by the chance that a passage has them."""
        taken = []
        for word, chance in words:
            left_out = self._left_out * (1 - chance)
            if self._passages * (1 - left_out) > self._rows + 0.5:
                break
            self._left_out = left_out
            taken.append(word)
        return taken


# Vectors are 16-bit floats, all of them compared with each question: 1.4 µs a passage, 14 ms for 10,000. Beyond some
# 100,000 an index on PostgreSQL answers sooner.

_CHUNK = 4_096  # vectors in memory at a time, which is 3 MB
_MODEL = "model"  # the property that names it
_MISSING_VECTORS = """
SELECT id, title, text FROM passages
WHERE id > ? AND NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id) ORDER BY id LIMIT ?
"""
_STORE_VECTOR = "INSERT OR REPLACE INTO vectors (passage, vector) SELECT id, ? FROM passages WHERE id = ?"


_MAX_SCORE_WORDS = 16  # common words that score what rarer ones have found
_MERGE_PAGES = 1_000  # of the full-text index that one step of merging it may write

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

# An external-content index is given the words to delete, which must be those it was given before.
_ADD_TO_FTS = "INSERT INTO passages_fts (rowid, title, text) VALUES (?, ?, ?)"
_DROP_FROM_FTS = "INSERT INTO passages_fts (passages_fts, rowid, title, text) VALUES ('delete', ?, ?, ?)"


class SqliteIndex(Closable):
    """A PassageIndex over an SQLite file of its own.

    Files with the same text share one document, with the title and URL of the first path. It is closed when nothing
    refers to it any more, if not before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = SqliteDatabase(path, INDEX_SCHEMA)
        weakref.finalize(self, self._database.close)

    def close(self) -> None:
        self._database.close()

    def batch(self) -> AbstractContextManager[object]:
        """Make all changes of this thread together or not at all, and much faster."""
        return self._database.transaction()

    def stamps(self) -> dict[str, FileStamp]:
        rows = self._database.query("SELECT path, size, mtime_ns FROM files ORDER BY path")
        return {_decode_path(row["path"]): FileStamp(row["size"], row["mtime_ns"]) for row in rows}

    def replace_all(self, files: Sequence[IndexEntry]) -> None:
        with self.batch():
            for file in files:
                self.replace(*file)

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None:
        check_indexable(path, document, passages)
        with self._database.transaction() as connection:
            if document:
                _store(connection, document, passages)
            before = _unlink(connection, path)
            stored = (document.hash, dump_metadata(document)) if document else (None, None)
            connection.execute(
                "INSERT INTO files (path, size, mtime_ns, document, metadata) VALUES (?, ?, ?, ?, ?)",
                (_encode_path(path), *stamp, *stored),
            )
            for hash in filter(None, {before, document.hash if document else None}):
                _sync_document(connection, hash)

    def remove(self, paths: Sequence[str]) -> None:
        with self._database.transaction() as connection:
            for hash in filter(None, {_unlink(connection, path) for path in paths}):
                _sync_document(connection, hash)

    def match(self, words: Sequence[str], *, limit: int) -> list[PassageMatch]:
        """Find the passages with any of the words, best first. Words may be any text.

        Quoted terms have nothing that FTS5 could take for syntax. Marks stay with their letters: FTS5 cuts a word of an
        Indic script at its vowel signs, and quoting keeps the pieces together as a phrase."""
        text = _split_words(unicodedata.normalize("NFC", " ".join(words)))
        spaced = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in text)
        # A single character of Chinese is the first of a pair.
        starts = {word: "*" for word in spaced.split() if len(word) == 1 and UNSPACED.match(word)}
        terms = list({word.lower(): f'"{word}"{starts.get(word, "")}' for word in spaced.split()}.values())[:MAX_WORDS]
        scores: dict[int, float] = {}
        with self._database.connection() as connection:
            queries, fallback = _build_queries(connection, terms)
            for query in (*queries, *fallback):
                if query in fallback and scores:
                    break
                for row in connection.execute(_MATCH, (query, ROW_SLACK * MAX_ROWS, max(limit, 0))):
                    # Of several queries that found it, the one counts that scores most of its words.
                    scores[row["id"]] = max(row["score"], scores.get(row["id"], 0.0))
            return _load_best(connection, scores, limit)

    def document(self, hash: str) -> Document:
        rows = self._database.query(_FIND, (hash,))
        return load_document(*get_only([tuple(row) for row in rows], hash))

    def count_contents(self) -> IndexCounts:
        counts = [
            int(self._database.query_one(f"SELECT count(*) FROM {table}")[0])  # noqa: S608  # a table of ours
            for table in ("files", "passages", "vectors")
        ]
        return IndexCounts(*counts)

    def lock_updates(self, *, wait: float) -> AbstractContextManager[bool]:
        return try_file_lock(self._path.with_name(f"{self._path.name}.lock"), wait)

    def optimize(self) -> None:
        """Merge the parts of the full-text index, a step at a time so that others may write in between: 10 s of CPU for
        1,000,000 passages, after which questions take a fifth less."""
        with self._database.connection() as connection:
            pages = -_MERGE_PAGES  # the first step takes all parts together
            while pages:
                before = connection.total_changes
                connection.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('merge', ?)", (pages,))
                pages = _MERGE_PAGES if connection.total_changes - before > 1 else 0

    def vector_problem(self) -> str:
        return ""

    def list_pending(self, model: str, *, after: int, limit: int) -> list[PendingPassage]:
        with self._open_vectors(model) as connection:
            rows = connection.execute(_MISSING_VECTORS, (after, limit)).fetchall()
        return [PendingPassage(row["id"], f"{row['title']}. {row['text']}") for row in rows]

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        import numpy as np

        rows = [(vector.astype(np.float16).tobytes(), id) for id, vector in vectors.items()]
        with self._open_vectors(model) as connection:
            connection.executemany(_STORE_VECTOR, rows)

    def find_nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[PassageMatch]:
        import numpy as np

        best: list[tuple[float, int]] = []
        if self.properties().get(_MODEL) != model:
            return []
        with self._database.connection() as connection:
            cursor = connection.execute("SELECT passage, vector FROM vectors")
            while rows := cursor.fetchmany(_CHUNK):
                joined = np.frombuffer(b"".join(row["vector"] for row in rows), np.float16)
                cosines = joined.reshape(len(rows), -1).astype(np.float32) @ vector
                nearest = np.argsort(-cosines, kind="stable")[: max(limit, 0)]
                found = [(float(cosines[at]), -rows[at]["passage"]) for at in nearest]
                best = heapq.nlargest(max(limit, 0), best + found)
            return _load_best(connection, {-id: cosine for cosine, id in best}, limit)

    @contextmanager
    def _open_vectors(self, model: str) -> Iterator[sqlite3.Connection]:
        """Open a transaction on the vectors of a model; those of another are deleted."""
        with self._database.transaction() as connection:
            if self.properties().get(_MODEL) != model:
                connection.execute("DELETE FROM vectors")
                self.set_property(_MODEL, model)
            yield connection

    def properties(self) -> dict[str, str]:
        rows = self._database.query("SELECT name, value FROM about")
        return {row["name"]: _decode_path(row["value"]) for row in rows}

    def set_property(self, name: str, value: str) -> None:
        if self.properties().get(name) == value:
            return
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO about (name, value) VALUES (?, ?)", (name, _encode_path(value)))


def check_indexable(path: str, document: Document | None, passages: Sequence[Passage]) -> None:
    """Raise EvidenceError for a file that cannot be indexed, before any of it is written."""
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


def _encode_path(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def _decode_path(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def _unlink(connection: sqlite3.Connection, path: str) -> str | None:
    """Remove a file; return the hash of its document, to be synchronised."""
    rows = connection.execute("DELETE FROM files WHERE path = ? RETURNING document", (_encode_path(path),)).fetchall()
    return rows[0]["document"] if rows else None


def _sync_document(connection: sqlite3.Connection, hash: str) -> None:
    """Give passages the title of the first file that holds them, and delete them with the last."""
    sql = "SELECT metadata FROM files WHERE document = ? ORDER BY path LIMIT 1"
    first = connection.execute(sql, (hash,)).fetchone()
    if not first:
        _run_per_passage(connection, _DROP_FROM_FTS, hash)
        connection.execute("DELETE FROM documents WHERE hash = ?", (hash,))
        return
    title = json.loads(first["metadata"])["title"]
    row = connection.execute("SELECT title FROM passages WHERE document = ? LIMIT 1", (hash,)).fetchone()
    if row is not None and row["title"] != title:
        _run_per_passage(connection, _DROP_FROM_FTS, hash)
        connection.execute("UPDATE passages SET title = ? WHERE document = ?", (title, hash))
        connection.execute("DELETE FROM vectors WHERE passage IN (SELECT id FROM passages WHERE document = ?)", (hash,))
        _run_per_passage(connection, _ADD_TO_FTS, hash)


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
    _run_per_passage(connection, _DROP_FROM_FTS, document.hash)
    connection.execute("DELETE FROM passages WHERE document = ?", (document.hash,))
    connection.executemany(
        'INSERT INTO passages (document, "start", "end", text, title) VALUES (?, ?, ?, ?, ?)',
        [(document.hash, *passage, document.title) for passage in wanted],
    )
    _run_per_passage(connection, _ADD_TO_FTS, document.hash)


def _run_per_passage(connection: sqlite3.Connection, sql: str, hash: str) -> None:
    # Row by row: with INSERT ... SELECT, FTS5 writes a segment each time (100,000 passages: 10.8 s, so 7.3 s).
    rows = connection.execute("SELECT id, title, text FROM passages WHERE document = ?", (hash,)).fetchall()
    connection.executemany(sql, [(row["id"], _split_words(row["title"]), _split_words(row["text"])) for row in rows])


def _split_words(text: str) -> str:
    """Cut what FTS5 would take for one word, since it has no spaces: Chinese and Japanese."""
    return split_unspaced(fold(text)) if not text.isascii() and UNSPACED.search(text) else text


def _build_queries(connection: sqlite3.Connection, terms: list[str]) -> tuple[list[str], list[str]]:
    """Return the queries of the chosen combinations, and what to ask where they find nothing. Rows of the rarer words
    are scored again by their common words.

    BM25 counts how many rows have each word it is given, and gives nothing to one that more than half have: such words
    are dropped where there are others."""
    passages = connection.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()[0]
    frequency = {term: count for term in terms if (count := _count_term(connection, term, passages))}
    telling = {term: count for term, count in frequency.items() if count <= max(passages / 2, MAX_ROWS)} or frequency
    queries = []
    for all_of, any_of in choose_combinations(telling, passages, MAX_ROWS):
        queries.append(" AND ".join([*all_of, _any_of(any_of)]))
        common = sorted(set(telling) - set(any_of), key=lambda term: (telling[term], term))[:_MAX_SCORE_WORDS]
        if common and not all_of:
            queries.append(f"{_any_of(any_of)} AND {_any_of(common)}")
    return queries, [_any_of(list(frequency))] if max(telling.values(), default=0) > MAX_ROWS else []


def _count_term(connection: sqlite3.Connection, term: str, passages: int) -> int:
    """Count the passages with a term; where they are more than a question may score, estimate by how soon so many are
    found. Counting up to a limit: 4 ms a question. Asking fts5vocab, which knows stems only: 15 ms."""
    row = connection.execute(
        "SELECT count(*) AS n, max(id) AS last FROM"
        " (SELECT rowid AS id FROM passages_fts WHERE passages_fts MATCH ? LIMIT ?)",
        (term, MAX_ROWS + 1),
    ).fetchone()
    return int(row["n"]) if row["n"] <= MAX_ROWS else round(row["n"] * passages / row["last"])


def _any_of(terms: Sequence[str]) -> str:
    return f"({' OR '.join(terms)})"


def _load_best(connection: sqlite3.Connection, scores: Mapping[int, float], limit: int) -> list[PassageMatch]:
    best = heapq.nsmallest(max(limit, 0), scores, key=lambda id: (-scores[id], id))
    rows = {row["id"]: row for row in connection.execute(_SHOW, (json.dumps(best),))}
    matches = []
    for id in best:
        if row := rows.get(id):
            passage = Passage(document=row["document"], start=row["start"], end=row["end"], text=row["text"])
            url = json.loads(row["metadata"])["url"]
            matches.append(PassageMatch(passage, row["title"], url, scores[id]))
    return matches
