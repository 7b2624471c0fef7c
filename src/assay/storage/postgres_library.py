"""Search over one folder of files, in a PostgreSQL database: what one machine has indexed, every machine finds."""

import json
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from assay.model.source import Document, Passage
from assay.model.upload import SCHEME
from assay.ports import BarePassage, FileStamp, Holdings, IndexedFile, IndexedPassage
from assay.storage import candidates, postgres_vectors
from assay.storage.candidates import WORDS_ASKED, stars
from assay.storage.database import timestamp, utc_now
from assay.storage.dialect import Translated
from assay.storage.documents import metadata_of, restored, the_only
from assay.storage.lexemes import Stems, Vector, vectors, words
from assay.storage.library import check_indexable
from assay.storage.postgres import PostgresDatabase
from assay.storage.turns import postgres_turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Each passage is counted in library_words up to so many, then one in eight, for eight: counting all of them took half
# of the server's work. A word that no counted passage has is rare, and counts as one of this many.
_COUNTED = 20_000
_ONE_IN = 8
_UNSEEN = _ONE_IN // 2
_AT_ONCE = 1_000  # paths in one statement
_LENGTH = 0.75  # how much a long passage must have more, as in BM25

_OPEN = """
INSERT INTO libraries (root, machine, updated) VALUES (?, ?, ?)
ON CONFLICT (root) DO UPDATE SET machine = excluded.machine, updated = excluded.updated RETURNING id, passages
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


class Names(NamedTuple):
    """What paths are called in the database. Uploads stand elsewhere on each machine, and are called the same."""

    uploads: Path

    def key(self, path: str) -> bytes:
        if path.startswith(f"{self.uploads}/"):
            path = f"{SCHEME}{path.removeprefix(f'{self.uploads}/')}"
        return path.encode("utf-8", "surrogatepass")

    def path(self, key: bytes) -> str:
        path = key.decode("utf-8", "surrogatepass")
        return f"{self.uploads}/{path.removeprefix(SCHEME)}" if path.startswith(SCHEME) else path


class _Library(NamedTuple):
    id: int
    passages: int

    @property
    def prefix(self) -> str:
        return f"{self.id}."


class _Text(NamedTuple):
    """A document as it is to stand in the library; its vectors are made of its title and passages."""

    hash: str
    title: str
    text: str
    passages: Sequence[tuple[int, int, str]]
    vectors: Sequence[Vector] = ()

    def titled(self, title: str) -> "_Text":
        return self if title == self.title else self._replace(title=title, vectors=())


class PostgresLibrary:
    """A ports.PassageIndex in tables of a database. Files with the same text share one document; of their titles and
    urls those of the first path count."""

    def __init__(self, database: PostgresDatabase, root: Path, names: Names, stems: Stems) -> None:
        self._database = database
        self._root = names.key(str(root))
        self._names = names
        self._stems = stems

    @contextmanager
    def batch(self) -> Iterator[None]:
        """All changes made inside, by this thread, happen together or not at all."""
        with self._database.transaction():
            yield

    def stamps(self) -> dict[str, FileStamp]:
        sql = """
        SELECT path, f.size, mtime_ns FROM library_files AS f JOIN libraries ON libraries.id = library
        WHERE root = ? ORDER BY path
        """
        with self._database.connection() as connection:
            rows = connection.execute(sql, (self._root,)).fetchall()
        return {self._names.path(row["path"]): FileStamp(row["size"], row["mtime_ns"]) for row in rows}

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None:
        self.replace_all([IndexedFile(path, stamp, document, passages)])

    def replace_all(self, files: Sequence[IndexedFile]) -> None:
        for file in files:
            check_indexable(file.path, file.document, file.passages)
        by_path = {file.path: file for file in files}
        if not by_path:
            return
        given = self._cut([_given(file, file.document) for file in by_path.values() if file.document])
        with self._writing() as (connection, library):
            changed = self._unlink(connection, library, list(by_path)) | given.keys()
            columns = "library_files (library, path, size, mtime_ns, hash, metadata)"
            connection.copy(columns, [self._row(library, file) for file in by_path.values()])
            self._settle_documents(connection, library, changed, given)

    def remove(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        with self._writing() as (connection, library):
            for start in range(0, len(paths), _AT_ONCE):
                changed = self._unlink(connection, library, paths[start : start + _AT_ONCE])
                self._settle_documents(connection, library, changed, {})

    def match(self, words: Sequence[str], *, limit: int) -> list[IndexedPassage]:
        """The passages with any of the words, best first. Words may be any text whatever."""
        with self._database.connection() as connection:
            about = self._found(connection)
            frequency = self._frequency(connection, about, words) if about else {}
            rows = _matches(connection, about, frequency, limit) if frequency else []
        return [_indexed(row) for row in rows]

    def document(self, hash: str) -> Document:
        with self._database.connection() as connection:
            about = self._found(connection)
            rows = connection.execute(_FIND, (about["id"], hash)).fetchall() if about else []
        row = the_only(rows, hash)
        return restored(hash, row["metadata"], row["text"].encode())

    def holdings(self) -> Holdings:
        with self._database.connection() as connection:
            about = self._found(connection)
            if about is None:
                return Holdings(0, 0, 0)
            sql = "SELECT count(*) AS n FROM library_files WHERE library = ?"
            files = connection.execute(sql, (about["id"],)).fetchone()["n"]
            return Holdings(files, about["passages"], postgres_vectors.count(connection, about["id"]))

    def turn(self, *, wait: float) -> AbstractContextManager[bool]:
        return postgres_turn(self._database, self._root, wait)

    def settle(self) -> None:
        """New passages are put in their places, and many vectors get an index."""
        with self._database.connection() as connection:
            connection.execute(_CLEAN)
            about = self._found(connection)
        if about and about["model"]:
            postgres_vectors.settle(self._database, about["id"])

    # Vectors -----------------------------------------------------------------------------------------

    def without_vectors(self) -> str:
        return postgres_vectors.refusal(self._database)

    def bare(self, model: str, *, after: int, limit: int) -> list[BarePassage]:
        with self._writing() as (connection, library):
            postgres_vectors.of_model(connection, library.id, model)
            return postgres_vectors.bare(connection, library.id, after, limit)

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        with self._writing() as (connection, library):
            postgres_vectors.of_model(connection, library.id, model)
            postgres_vectors.add(connection, library.id, vectors)

    def nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[IndexedPassage]:
        with self._database.transaction() as connection:
            about = self._found(connection)
            if about is None or about["model"] != model:
                return []
            rows = postgres_vectors.nearest(connection, about["id"], vector, limit, _METADATA)
        return [_indexed(row) for row in rows]

    # -- inside -------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[tuple[Translated, _Library]]:
        """Whoever changes a library has its row to themselves."""
        with self._database.transaction() as connection:
            row = connection.execute(_OPEN, (self._root, socket.gethostname(), timestamp(utc_now()))).fetchone()
            yield cast(Translated, connection), _Library(row["id"], row["passages"])

    def _found(self, connection: Any) -> Any:
        sql = "SELECT id, passages, words, model FROM libraries WHERE root = ?"
        return connection.execute(sql, (self._root,)).fetchone()

    def _unlink(self, connection: Translated, library: _Library, paths: Sequence[str]) -> set[str]:
        """Forget the files; what they held is returned, to be settled."""
        sql = "DELETE FROM library_files WHERE library = ? AND path = ANY(?) RETURNING hash"
        rows = connection.execute(sql, (library.id, [self._names.key(path) for path in paths])).fetchall()
        return {row["hash"] for row in rows if row["hash"]}

    def _row(self, library: _Library, file: IndexedFile) -> tuple[object, ...]:
        held = (file.document.hash, metadata_of(file.document)) if file.document else (None, None)
        return library.id, self._names.key(file.path), *file.stamp, *held

    def _settle_documents(
        self, connection: Translated, library: _Library, hashes: Iterable[str], given: Mapping[str, _Text]
    ) -> None:
        """Documents bear the title of the first file that holds them, and go with the last. Only what differs from what
        stands there is written."""
        asked = (library.id, list(hashes))
        titles = {row["hash"]: _said(row, "title") for row in connection.execute(_FIRST_FILES, asked)}
        sql = "SELECT id, hash, title, text FROM library_documents WHERE library = ? AND hash = ANY(?)"
        there = {row["hash"]: row for row in connection.execute(sql, asked)}
        cut = _cut(connection, [row["id"] for row in there.values()])
        stale, fresh = [], []
        for hash, row in there.items():
            passages = given[hash].passages if hash in given else cut[row["id"]]
            if hash not in titles:
                stale.append(row["id"])
            elif row["title"] != titles[hash] or cut[row["id"]] != list(passages):
                stale.append(row["id"])
                fresh.append(_Text(hash, titles[hash], row["text"], passages))
        fresh += [text.titled(titles[hash]) for hash, text in given.items() if hash not in there]
        passages_less, words_less = _dropped(connection, stale) if stale else (0, 0)
        words_more = self._add(connection, library, fresh) if fresh else 0
        passages_more = sum(len(text.passages) for text in fresh)
        sql = "UPDATE libraries SET passages = passages + ?, words = words + ? WHERE id = ?"
        connection.execute(sql, (passages_more - passages_less, words_more - words_less, library.id))

    def _add(self, connection: Translated, library: _Library, texts: Sequence[_Text]) -> int:
        """The words of all of them."""
        columns = "library_documents (library, hash, title, text)"
        connection.copy(columns, [(library.id, text.hash, text.title, text.text) for text in texts])
        sql = "SELECT id, hash FROM library_documents WHERE library = ? AND hash = ANY(?)"
        asked = (library.id, [text.hash for text in texts])
        ids = {row["hash"]: row["id"] for row in connection.execute(sql, asked)}
        missing = self._cut([text for text in texts if not text.vectors])
        passages = [
            (ids[text.hash], *passage, vector)
            for text in texts
            for passage, vector in zip(text.passages, (missing.get(text.hash) or text).vectors, strict=True)
        ]
        standing = Counter[str]()
        for number, (*_, vector) in enumerate(passages, library.passages):
            if counted := _counted(number):
                standing.update(dict.fromkeys((f"{library.prefix}{stem}" for stem in vector.times), counted))
        rows = (
            (document, start, end, vector.size, _counted(number), said, vector.text(library.prefix))
            for number, (document, start, end, said, vector) in enumerate(passages, library.passages)
        )
        connection.copy('library_passages (document, "start", "end", size, counted, text, words)', rows)
        connection.execute(_COUNT_WORDS, (json.dumps(standing),))
        return sum(vector.size for *_, vector in passages)

    def _cut(self, texts: Sequence[_Text]) -> dict[str, _Text]:
        """With their vectors, by hash. It takes a second or two: while nobody waits for the library, where possible."""
        said = [(text.title, passage) for text in texts for _, _, passage in text.passages]
        with self._database.connection() as connection:
            made = iter(vectors(connection, self._stems, said))
        return {text.hash: text._replace(vectors=list(islice(made, len(text.passages)))) for text in texts}

    def _frequency(self, connection: Any, about: Mapping[str, Any], asked: Sequence[str]) -> dict[str, int]:
        """In how many passages a word stands, about, for those that stand in any."""
        distinct = list(dict.fromkeys(words(" ".join(asked))))[:WORDS_ASKED]
        known = self._stems.of(connection, distinct)
        wanted = list(dict.fromkeys(f"{about['id']}.{known[word]}" for word in distinct))
        sql = "SELECT word, passages FROM library_words WHERE word = ANY(?) AND passages > 0"
        counts = {row["word"]: row["passages"] for row in connection.execute(sql, (wanted,))}
        least = _UNSEEN if about["passages"] > _COUNTED else 0
        return {word: count for word in wanted if (count := max(counts.get(word, 0), least))}


def _given(file: IndexedFile, document: Document) -> _Text:
    cut = [(passage.start, passage.end, passage.text) for passage in file.passages]
    return _Text(document.hash, document.title, document.text, cut)


def _counted(number: int) -> int:
    return 1 if number < _COUNTED else _ONE_IN if number % _ONE_IN == 0 else 0


def _cut(connection: Translated, documents: Sequence[int]) -> dict[int, list[tuple[int, int, str]]]:
    sql = 'SELECT document, "start", "end", text FROM library_passages WHERE document = ANY(?) ORDER BY id'
    cut: dict[int, list[tuple[int, int, str]]] = {document: [] for document in documents}
    for row in connection.execute(sql, (list(documents),)) if documents else ():
        cut[row["document"]].append((row["start"], row["end"], row["text"]))
    return cut


def _dropped(connection: Translated, documents: Sequence[int]) -> tuple[int, int]:
    """How many passages are gone, and their words."""
    row = connection.execute(_DROP_PASSAGES, (list(documents),)).fetchone()
    connection.execute("DELETE FROM library_documents WHERE id = ANY(?)", (list(documents),))
    return int(row["passages"]), int(row["words"])


def _matches(connection: Any, about: Mapping[str, Any], frequency: Mapping[str, int], limit: int) -> list[Any]:
    """Of the passages that the stars lead to, or where there are none, of some that have any of the words."""
    weights = {word: _rarity(count, about["passages"]) for word, count in frequency.items()}
    score = " + ".join("? * ts_rank(words, CAST(? AS tsquery))" for _ in weights)
    sql = _MATCH.format(score=score, length=_LENGTH, metadata=_METADATA)
    ranked = [part for word, weight in weights.items() for part in (weight, _quoted(word))]
    average = max(about["words"] / max(about["passages"], 1), 1.0)
    chosen = [_all_and_any(*star) for star in stars(frequency, about["passages"], candidates.ROWS)]
    for query in (" | ".join(chosen), _any(frequency)):
        values = (*ranked, average, query, candidates.STAND_TOGETHER * candidates.ROWS, max(limit, 0))
        if rows := connection.execute(sql, values).fetchall():
            return list(rows)
    return []


def _rarity(count: int, passages: int) -> float:
    return log(1 + (max(passages - count, 0) + 0.5) / (count + 0.5))


def _all_and_any(all_of: Sequence[str], any_of: Sequence[str]) -> str:
    return f"({' & '.join([*map(_quoted, all_of), _any(any_of)])})"


def _any(words: Iterable[str]) -> str:
    return f"({' | '.join(map(_quoted, words))})"


def _quoted(word: str) -> str:
    return f"'{word}'"  # which has no quote in it


def _said(row: Mapping[str, Any], name: str) -> str:
    return str(json.loads(row["metadata"])[name])


def _indexed(row: Mapping[str, Any]) -> IndexedPassage:
    passage = Passage(document=row["hash"], start=row["start"], end=row["end"], text=row["text"])
    return IndexedPassage(passage, row["title"], _said(row, "url"), row["score"])
