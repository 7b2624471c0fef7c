"""Full-text and vector search over one folder of files, in PostgreSQL: what one machine has indexed, every one
finds."""

import json
import socket
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from openassay.errors import StorageError
from openassay.models.base import utc_now
from openassay.models.evidence import Document, Passage
from openassay.models.user import SCHEME
from openassay.protocols import FileStamp, IndexCounts, IndexEntry, PassageMatch, PendingPassage
from openassay.storage import index_sqlite
from openassay.storage.database import Connection, timestamp
from openassay.storage.documents import dump_metadata, get_only, load_document
from openassay.storage.index_sqlite import MAX_WORDS, check_indexable, choose_combinations
from openassay.storage.locks import try_postgres_lock
from openassay.storage.postgres import PostgresConnection, PostgresDatabase
from openassay.text.words import fold, split_unspaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Words are cut here and not by the server's parser, so that they are the same whatever its locale, in any script; its
# English stemmer has the last word, as SQLite's has.

_MAX_WORD_LENGTH = 100  # characters; the server takes 2,000 bytes
_MAX_TIMES = 255  # that a word counts in a passage; the server takes no more
_MAX_STEMS = 400_000  # in memory, some 60 MB
_POSITIONS = [",".join(map(str, range(1, times + 1))) for times in range(_MAX_TIMES + 1)]
# Words that the stemmer drops, as it does "the", stand for themselves: how common they are says enough.
_STEM = """
SELECT word, coalesce((ts_lexize('english_stem', word))[1], word) AS stem FROM unnest(CAST(? AS TEXT[])) AS word
"""


class _Letters(dict[int, int]):
    """A translation that keeps letters, digits and their marks, and makes all else a space."""

    def __missing__(self, character: int) -> int:
        is_word = unicodedata.category(chr(character))[0] in "LNM"
        self[character] = character if is_word else ord(" ")
        return self[character]


_letters = _Letters()


def split_words(text: str) -> list[str]:
    return [word[:_MAX_WORD_LENGTH] for word in split_unspaced(fold(text)).translate(_letters).split()]


class TermVector(NamedTuple):
    """How often a passage has which stem, those of its title counted twice; `size` is how many words it has."""

    times: Mapping[str, int]
    size: int

    def to_tsvector(self, prefix: str) -> str:
        """Format a tsvector. Every stem has the prefix before it, and a position for each time."""
        return " ".join(
            [f"'{prefix}{stem}':{_POSITIONS[min(count, _MAX_TIMES)]}" for stem, count in self.times.items()]
        )


class Stems:
    """Stems by word, looked up on the server once: in Python a word takes 80 µs, there 1 µs."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def lookup(self, connection: Connection, asked: Iterable[str]) -> Mapping[str, str]:
        """Return a mapping that has the stems of these words, among others."""
        if len(self._known) > _MAX_STEMS:
            self._known = {}  # and not cleared: another thread may be using it
        known = self._known
        if new := set(asked) - known.keys():
            known.update((row["word"], row["stem"]) for row in connection.execute(_STEM, (list(new),)))
        return known


def build_vectors(connection: Connection, stems: Stems, texts: Sequence[tuple[str, str]]) -> list[TermVector]:
    split = [(split_words(title), split_words(text)) for title, text in texts]
    known = stems.lookup(connection, (word for title, text in split for word in (*title, *text)))
    vectors = []
    for title, text in split:
        times = Counter(known[word] for word in text)
        for word in title:
            times[known[word]] += 2
        vectors.append(TermVector(times, len(title) + len(text)))
    return vectors


# Vectors are 16-bit floats of pgvector. Their table is made on first use, since a server need not have the extension.
EXACT_LIMIT = 50_000  # vectors of an index that are all compared with a question; more get an HNSW index, not exact
_SEARCH_DEPTH = 200  # entries of the HNSW index that are visited; at least as many as are wanted
_TABLE_LOCK = 7_301_229  # the advisory lock of the process that makes the table
_CREATE_TABLE = (
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


def count_vectors(connection: Connection, library: int) -> int:
    if not connection.execute(_IS_THERE).fetchone()["there"]:
        return 0
    sql = "SELECT count(*) AS n FROM library_vectors WHERE library = ?"
    return int(connection.execute(sql, (library,)).fetchone()["n"])


def _format_vector(vector: "NDArray[np.float32]") -> str:
    return f"[{','.join(f'{value:.6g}' for value in vector.tolist())}]"


# Each passage is counted in library_words up to so many, then one in eight, for eight: counting all took half of the
# server's work. A word that no counted passage has is rare, and counts as one of this many.
_COUNT_ALL_BELOW = 20_000
_ONE_IN = 8
_UNSEEN = _ONE_IN // 2
_MAX_PATHS = 1_000  # in one statement
_LENGTH = 0.75  # how much a long passage is discounted, as in BM25

_OPEN = """
INSERT INTO libraries (root, machine, updated) VALUES (?, ?, ?)
ON CONFLICT (root) DO UPDATE SET machine = excluded.machine, updated = excluded.updated RETURNING id, passages, model
"""
_FIRST_FILES = """
SELECT DISTINCT ON (hash) hash, metadata FROM library_files
WHERE library = ? AND hash = ANY(?) ORDER BY hash, path
"""
_COUNT_WORDS = """
INSERT INTO library_words (word, passages) SELECT key, CAST(value AS BIGINT) FROM json_each_text(?) ORDER BY key
ON CONFLICT (word) DO UPDATE SET passages = library_words.passages + excluded.passages
"""
_DROP_PASSAGES = """
WITH gone AS (DELETE FROM library_passages WHERE document = ANY(?) RETURNING size, counted, words),
lost AS (SELECT lexeme, sum(counted) AS n FROM gone, unnest(gone.words) WHERE counted > 0 GROUP BY lexeme),
less AS (UPDATE library_words SET passages = library_words.passages - lost.n FROM lost WHERE word = lexeme)
SELECT count(*) AS passages, coalesce(sum(size), 0) AS words FROM gone
"""
_METADATA = """
(SELECT metadata FROM library_files AS f WHERE f.library = d.library AND f.hash = d.hash ORDER BY path LIMIT 1)
"""
# ts_rank counts a word the less the oftener it comes, as BM25 does; rarity and length are ours. Of the questions of
# benchmarks/bench_retrieval.py .63 have all they need among the first five, .62 by SQLite's BM25; of related work among
# the first twenty .50 is cited, and .50.
_MATCH = """
SELECT d.hash, p."start", p."end", p.text, d.title, score, {metadata} AS metadata FROM (
    SELECT id, document, "start", "end", text, ({score}) / (1 - {length} + {length} * size / ?) AS score
    FROM (SELECT * FROM library_passages WHERE words @@ CAST(? AS tsquery) LIMIT ?) AS candidates
    ORDER BY score DESC, id LIMIT ?
) AS p JOIN library_documents AS d ON d.id = p.document ORDER BY score DESC, p.id
"""
_FIND = f"""
SELECT hash, text, {_METADATA} AS metadata FROM library_documents AS d WHERE library = ? AND hash = ?
"""  # noqa: S608  # a part of ours
_CLEAN = """
SELECT gin_clean_pending_list(oid) FROM pg_class
WHERE oid = to_regclass('library_passages_by_words') AND pg_has_role(relowner, 'USAGE')
"""


class PathKeys(NamedTuple):
    """Names of paths in the database. Uploads are elsewhere on each machine, and have the same name."""

    uploads: Path

    def key(self, path: str) -> bytes:
        if path.startswith(f"{self.uploads}/"):
            path = f"{SCHEME}{path.removeprefix(f'{self.uploads}/')}"
        return path.encode("utf-8", "surrogatepass")

    def path(self, key: bytes) -> str:
        path = key.decode("utf-8", "surrogatepass")
        return f"{self.uploads}/{path.removeprefix(SCHEME)}" if path.startswith(SCHEME) else path


class _IndexRow(NamedTuple):
    id: int
    passages: int

    @property
    def prefix(self) -> str:
        return f"{self.id}."


class _IndexText(NamedTuple):
    hash: str
    title: str
    text: str
    passages: Sequence[tuple[int, int, str]]


class PostgresIndex:
    """A PassageIndex in tables of a database. Files with the same text share one document, with the title and URL of
    the first path."""

    def __init__(self, database: PostgresDatabase, root: Path, names: PathKeys, stems: Stems) -> None:
        self._database = database
        self._root = names.key(str(root))
        self._names = names
        self._stems = stems

    def batch(self) -> AbstractContextManager[object]:
        """Make all changes of this thread together or not at all."""
        return self._database.transaction()

    def stamps(self) -> dict[str, FileStamp]:
        sql = """
        SELECT path, f.size, mtime_ns FROM library_files AS f JOIN libraries ON libraries.id = library
        WHERE root = ? ORDER BY path
        """
        rows = self._database.query(sql, (self._root,))
        return {self._names.path(row["path"]): FileStamp(row["size"], row["mtime_ns"]) for row in rows}

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None:
        self.replace_all([IndexEntry(path, stamp, document, passages)])

    def replace_all(self, files: Sequence[IndexEntry]) -> None:
        for file in files:
            check_indexable(file.path, file.document, file.passages)
        by_path = {file.path: file for file in files}
        if not by_path:
            return
        given = {}
        for file in by_path.values():
            if document := file.document:
                passages = [(passage.start, passage.end, passage.text) for passage in file.passages]
                given[document.hash] = _IndexText(document.hash, document.title, document.text, passages)
        with self._open_writer() as (connection, library):
            changed = self._unlink(connection, library, list(by_path)) | given.keys()
            columns = "library_files (library, path, size, mtime_ns, hash, metadata)"
            rows = []
            for path, file in by_path.items():
                stored = (file.document.hash, dump_metadata(file.document)) if file.document else (None, None)
                rows.append((library.id, self._names.key(path), *file.stamp, *stored))
            connection.copy(columns, rows)
            self._sync_documents(connection, library, changed, given)

    def remove(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        with self._open_writer() as (connection, library):
            for start in range(0, len(paths), _MAX_PATHS):
                changed = self._unlink(connection, library, paths[start : start + _MAX_PATHS])
                self._sync_documents(connection, library, changed, {})

    def match(self, words: Sequence[str], *, limit: int) -> list[PassageMatch]:
        """Find the passages with any of the words, best first. Words may be any text."""
        with self._database.connection() as connection:
            about = self._find_row(connection)
            frequency = self._count_words(connection, about, words) if about else {}
            if not frequency:
                return []
            passages = about["passages"]
            ranked: list[object] = []  # words and their weights, by rarity as in BM25
            for word, count in frequency.items():
                ranked += [log(1 + (max(passages - count, 0) + 0.5) / (count + 0.5)), _as_lexeme(word)]
            score = " + ".join("? * ts_rank(words, CAST(? AS tsquery))" for _ in frequency)
            sql = _MATCH.format(score=score, length=_LENGTH, metadata=_METADATA)
            average = max(about["words"] / max(passages, 1), 1.0)
            chosen = [
                f"({' & '.join([*map(_as_lexeme, all_of), _any_of(any_of)])})"
                for all_of, any_of in choose_combinations(frequency, passages, index_sqlite.MAX_ROWS)
            ]
            for query in (" | ".join(chosen), _any_of(frequency)):  # some with any of the words where there are none
                values = (*ranked, average, query, index_sqlite.ROW_SLACK * index_sqlite.MAX_ROWS, max(limit, 0))
                if rows := connection.execute(sql, values).fetchall():
                    return [_to_passage(row) for row in rows]
        return []

    def document(self, hash: str) -> Document:
        with self._database.connection() as connection:
            about = self._find_row(connection)
            rows = connection.execute(_FIND, (about["id"], hash)).fetchall() if about else []
        row = get_only(rows, hash)
        return load_document(hash, row["metadata"], row["text"].encode())

    def count_contents(self) -> IndexCounts:
        with self._database.connection() as connection:
            about = self._find_row(connection)
            if about is None:
                return IndexCounts(0, 0, 0)
            sql = "SELECT count(*) AS n FROM library_files WHERE library = ?"
            files = connection.execute(sql, (about["id"],)).fetchone()["n"]
            return IndexCounts(files, about["passages"], count_vectors(connection, about["id"]))

    def lock_updates(self, *, wait: float) -> AbstractContextManager[bool]:
        return try_postgres_lock(self._database, self._root, wait)

    def optimize(self) -> None:
        """Sort new passages into the full-text index. Many vectors get an HNSW index of their own: one for all would
        have to skip those of others. Built when they are there, it takes a third of the time."""
        with self._database.connection() as connection:
            connection.execute(_CLEAN)
            about = self._find_row(connection)
            if not about or not about["model"] or count_vectors(connection, about["id"]) <= EXACT_LIMIT:
                return
            id, sql = about["id"], "SELECT vector_dims(vector) AS length FROM library_vectors WHERE library = ? LIMIT 1"
            length = connection.execute(sql, (id,)).fetchone()["length"]
        with self._database.transaction() as connection:
            connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
            connection.execute(
                f"CREATE INDEX IF NOT EXISTS library_vectors_{id} ON library_vectors"
                f" USING hnsw ((vector::halfvec({length})) halfvec_ip_ops) WHERE library = {id}"
            )

    def vector_problem(self) -> str:
        """Make the table of vectors; return why there can be none, or nothing."""
        if self._database.query_one(_IS_THERE)["there"]:
            return ""
        try:
            with self._database.transaction() as connection:
                connection.execute("SELECT pg_advisory_xact_lock(?)", (_TABLE_LOCK,))
                for statement in _CREATE_TABLE:
                    connection.execute(statement)
        except StorageError as error:
            if error.retryable:  # the server is gone, which says nothing about what it has
                raise
            return error.message
        return ""

    def list_pending(self, model: str, *, after: int, limit: int) -> list[PendingPassage]:
        with self._open_writer(model) as (connection, library):
            rows = connection.execute(_BARE, (library.id, after, limit))
            return [PendingPassage(row["id"], f"{row['title']}. {row['text']}") for row in rows]

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        with self._open_writer(model) as (connection, library):
            formatted = [_format_vector(vector) for vector in vectors.values()]
            connection.execute(_ADD, (library.id, list(vectors), formatted))

    def find_nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[PassageMatch]:
        with self._database.transaction() as connection:
            about = self._find_row(connection)
            if limit < 1 or not about or about["model"] != model:
                return []
            connection.execute(f"SET LOCAL hnsw.ef_search = {min(max(_SEARCH_DEPTH, limit), 1000)}")
            sql = _NEAREST.format(library=about["id"], length=len(vector), metadata=_METADATA)
            rows = connection.execute(sql, (_format_vector(vector), _format_vector(vector), limit)).fetchall()
        return [_to_passage(row) for row in rows]

    @contextmanager
    def _open_writer(self, model: str = "") -> Iterator[tuple[PostgresConnection, _IndexRow]]:
        """Open a transaction that changes the index alone: its row is locked. Vectors of another model than the one
        given are deleted."""
        with self._database.transaction() as connection:
            row = connection.execute(_OPEN, (self._root, socket.gethostname(), timestamp(utc_now()))).fetchone()
            if model and row["model"] != model:
                connection.execute("UPDATE libraries SET model = ? WHERE id = ?", (model, row["id"]))
                connection.execute("DELETE FROM library_vectors WHERE library = ?", (row["id"],))
            yield cast(PostgresConnection, connection), _IndexRow(row["id"], row["passages"])

    def _find_row(self, connection: Any) -> Any:
        sql = "SELECT id, passages, words, model FROM libraries WHERE root = ?"
        return connection.execute(sql, (self._root,)).fetchone()

    def _unlink(self, connection: PostgresConnection, library: _IndexRow, paths: Sequence[str]) -> set[str]:
        """Remove files; return the hashes of their documents, to be synchronised."""
        sql = "DELETE FROM library_files WHERE library = ? AND path = ANY(?) RETURNING hash"
        rows = connection.execute(sql, (library.id, [self._names.key(path) for path in paths])).fetchall()
        return {row["hash"] for row in rows if row["hash"]}

    def _sync_documents(
        self, connection: PostgresConnection, library: _IndexRow, hashes: Iterable[str], given: Mapping[str, _IndexText]
    ) -> None:
        """Give documents the title of the first file that holds them, and delete them with the last. Only what differs
        from what is stored is written."""
        asked = (library.id, list(hashes))
        titles = {row["hash"]: _read_metadata(row, "title") for row in connection.execute(_FIRST_FILES, asked)}
        sql = "SELECT id, hash, title, text FROM library_documents WHERE library = ? AND hash = ANY(?)"
        stored = {row["hash"]: row for row in connection.execute(sql, asked)}
        cut: dict[int, list[tuple[int, int, str]]] = {row["id"]: [] for row in stored.values()}
        sql = 'SELECT document, "start", "end", text FROM library_passages WHERE document = ANY(?) ORDER BY id'
        for row in connection.execute(sql, (list(cut),)) if cut else ():
            cut[row["document"]].append((row["start"], row["end"], row["text"]))
        stale, fresh = [], []
        for hash, row in stored.items():
            passages = given[hash].passages if hash in given else cut[row["id"]]
            if hash not in titles:
                stale.append(row["id"])
            elif row["title"] != titles[hash] or cut[row["id"]] != list(passages):
                stale.append(row["id"])
                fresh.append(_IndexText(hash, titles[hash], row["text"], passages))
        fresh += [text._replace(title=titles[hash]) for hash, text in given.items() if hash not in stored]
        passages_less = words_less = 0
        if stale:
            dropped = connection.execute(_DROP_PASSAGES, (stale,)).fetchone()
            connection.execute("DELETE FROM library_documents WHERE id = ANY(?)", (stale,))
            passages_less, words_less = int(dropped["passages"]), int(dropped["words"])
        words_more = self._add(connection, library, fresh) if fresh else 0
        passages_more = sum(len(text.passages) for text in fresh)
        sql = "UPDATE libraries SET passages = passages + ?, words = words + ? WHERE id = ?"
        connection.execute(sql, (passages_more - passages_less, words_more - words_less, library.id))

    def _add(self, connection: PostgresConnection, library: _IndexRow, texts: Sequence[_IndexText]) -> int:
        """Write documents and their passages; return how many words they have."""
        columns = "library_documents (library, hash, title, text)"
        connection.copy(columns, [(library.id, text.hash, text.title, text.text) for text in texts])
        sql = "SELECT id, hash FROM library_documents WHERE library = ? AND hash = ANY(?)"
        asked = (library.id, [text.hash for text in texts])
        ids = {row["hash"]: row["id"] for row in connection.execute(sql, asked)}
        passages = [(text, passage) for text in texts for passage in text.passages]
        vectors = build_vectors(connection, self._stems, [(text.title, said) for text, (_, _, said) in passages])
        standing, rows = Counter[str](), list[tuple[object, ...]]()
        both = zip(passages, vectors, strict=True)
        for number, ((text, (start, end, said)), vector) in enumerate(both, library.passages):
            counted = 1 if number < _COUNT_ALL_BELOW else _ONE_IN if number % _ONE_IN == 0 else 0
            if counted:
                standing.update(dict.fromkeys((f"{library.prefix}{stem}" for stem in vector.times), counted))
            words = vector.to_tsvector(library.prefix)
            rows.append((ids[text.hash], start, end, vector.size, counted, said, words))
        connection.copy('library_passages (document, "start", "end", size, counted, text, words)', rows)
        connection.execute(_COUNT_WORDS, (json.dumps(standing),))
        return sum(vector.size for vector in vectors)

    def _count_words(self, connection: Any, about: Mapping[str, Any], asked: Sequence[str]) -> dict[str, int]:
        """Estimate in how many passages each word stands, for those that stand in any."""
        distinct = list(dict.fromkeys(split_words(" ".join(asked))))[:MAX_WORDS]
        known = self._stems.lookup(connection, distinct)
        wanted = list(dict.fromkeys(f"{about['id']}.{known[word]}" for word in distinct))
        sql = "SELECT word, passages FROM library_words WHERE word = ANY(?) AND passages > 0"
        counts = {row["word"]: row["passages"] for row in connection.execute(sql, (wanted,))}
        least = _UNSEEN if about["passages"] > _COUNT_ALL_BELOW else 0
        return {word: count for word in wanted if (count := max(counts.get(word, 0), least))}


def _any_of(words: Iterable[str]) -> str:
    return f"({' | '.join(map(_as_lexeme, words))})"


def _as_lexeme(word: str) -> str:
    return f"'{word}'"  # which has no quote in it


def _read_metadata(row: Mapping[str, Any], name: str) -> str:
    return str(json.loads(row["metadata"])[name])


def _to_passage(row: Mapping[str, Any]) -> PassageMatch:
    passage = Passage(document=row["hash"], start=row["start"], end=row["end"], text=row["text"])
    return PassageMatch(passage, row["title"], _read_metadata(row, "url"), row["score"])
