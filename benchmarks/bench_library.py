"""How documents are searched as they grow: python benchmarks/bench_library.py [--passages N ...] [--on NAME] [--json]

Passages of 80 words, eight to a document, from a seeded vocabulary of 200,000 made-up words that follows Zipf's law. A
question is 3 to 8 words of some passage without the hundred commonest words, which the ranking leaves out as it does
"the" and "of". On SQLite and on a PostgreSQL of its own, as it is installed: 10,000 passages, 100,000 and a million,
which take half an hour on two processors and 8 GB of disk. Vectors: at 10,000 passages,
without the time that the encoder takes for them, which is told apart.

Below each size stands how much more it cost than the one before: ten times as many passages should take ten times as
long to index, and not ten times as long to ask.
"""

import argparse
import hashlib
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_index import PASSAGES_A_DOCUMENT, WORDS_A_PASSAGE, Language
from benchmarks.figures import keep, keep_curve
from benchmarks.postgres import server
from openassay.models.evidence import Document, Passage
from openassay.protocols import FileStamp, IndexEntry, PassageIndex
from openassay.search.index_builder import add_vectors
from openassay.storage.index_catalog import PostgresIndexCatalog
from openassay.storage.index_postgres import PathKeys, PostgresIndex, Stems
from openassay.storage.index_sqlite import SqliteIndex
from openassay.storage.postgres import PostgresDatabase
from openassay.text.embeddings import MINILM_DIMENSIONS, MiniLM

SIZES, VECTORS = (10_000, 100_000, 1_000_000), 10_000
ENCODED = 400  # passages, to see how long the encoder takes
VOCABULARY, COMMONEST, QUESTIONS, HITS, BATCH = 200_000, 100, 200, 150, 4_000
PLACES = ("SQLite", "PostgreSQL")
CURVES = (
    ("build", "Building an index of documents", "seconds", "build, s",
     "Ten times as many passages should take ten times as long."),
    ("size", "Size of an index of documents", "MB", "MB", "The text is a part of it."),
    ("ask", "A question to documents, 95th percentile", "milliseconds", "p95, ms",
     "At most 3,000 passages are scored, chosen by the rarer words of the question."),
)  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Figures = dict[str, float]
Opened = tuple[PassageIndex, Callable[[], int]]  # an index, and what tells its size in bytes


class Corpus:
    """Documents as they are wanted, never all of them in memory; and questions to what has been made so far."""

    def __init__(self, seed: int = 7, vocabulary: int = VOCABULARY) -> None:
        self._language = Language(seed, vocabulary)
        self._random = random.Random(seed)
        self._asked_of: list[list[str]] = []
        self._made = 0

    def batches(self, passages: int) -> Iterator[list[IndexEntry]]:
        """New ones each time."""
        while passages > 0:
            some = [self._file() for _ in range(min(passages, BATCH) // PASSAGES_A_DOCUMENT)]
            passages -= len(some) * PASSAGES_A_DOCUMENT
            yield some

    def questions(self, count: int = QUESTIONS) -> list[list[str]]:
        commonest = set(self._language.commonest(COMMONEST))
        asked: list[list[str]] = []
        while len(asked) < count:
            telling = [word for word in self._random.choice(self._asked_of) if word not in commonest]
            asked.append(self._random.sample(telling, min(len(telling), self._random.randint(3, 8))))
        return asked

    def _file(self) -> IndexEntry:
        self._made += 1
        words = self._language.words(PASSAGES_A_DOCUMENT * WORDS_A_PASSAGE)
        if self._made % 20 == 0 or self._made < 100:
            self._asked_of.append(words[:WORDS_A_PASSAGE])
        said = [" ".join(words[start : start + WORDS_A_PASSAGE]) for start in range(0, len(words), WORDS_A_PASSAGE)]
        text, name = " ".join(said), f"{self._made}.txt"
        hash = hashlib.sha256(text.encode()).hexdigest()
        document = Document(
            hash=hash, text=text, url=f"file:///{name}", title=" ".join(self._language.words(5)), fetched=NOW
        )
        passages, start = [], 0
        for one in said:
            passages.append(Passage(document=hash, start=start, end=start + len(one), text=one))
            start += len(one) + 1
        return IndexEntry(name, FileStamp(len(text), self._made), document, passages)


class Built(NamedTuple):
    seconds: float
    cpu: float  # of this process


def build(index: PassageIndex, corpus: Corpus, passages: int) -> Built:
    """Making the texts up does not count."""
    taken = cpu = 0.0
    for batch in corpus.batches(passages):
        began, used = time.perf_counter(), time.process_time()
        index.replace_all(batch)
        taken, cpu = taken + time.perf_counter() - began, cpu + time.process_time() - used
    began, used = time.perf_counter(), time.process_time()
    index.optimize()
    return Built(taken + time.perf_counter() - began, cpu + time.process_time() - used)


def asked(index: PassageIndex, questions: list[list[str]]) -> list[float]:
    """Milliseconds each."""
    for words in questions[:20]:  # so that what is in memory is what it would be on any day
        index.match(words, limit=HITS)
    return [1_000 * _seconds(partial(index.match, words, limit=HITS)) for words in questions]


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def shown(times: list[float]) -> Figures:
    return {"p50, ms": median(times), "p95, ms": quantiles(times, n=20)[-1]}


@contextmanager
def on_sqlite(folder: Path, name: str) -> Iterator[Opened]:
    path = folder / f"{name}.sqlite3"
    with SqliteIndex(path) as index:
        yield index, partial(_size_of_files, path)
    for part in folder.glob(f"{path.name}*"):
        part.unlink()


def _size_of_files(path: Path) -> int:
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))


@contextmanager
def on_postgres(database: PostgresDatabase, name: str) -> Iterator[Opened]:
    """In a database that holds no other library."""
    shelf = PostgresIndexCatalog(database, Path("/uploads"))
    yield PostgresIndex(database, Path(f"/{name}"), PathKeys(Path("/uploads")), Stems()), partial(_size_of_rows, shelf)
    shelf.forget({Path(f"/{name}")})
    with database.connection() as connection:
        connection.execute("TRUNCATE libraries, library_words CASCADE")


def _size_of_rows(shelf: PostgresIndexCatalog) -> int:
    return sum(library.bytes for library in shelf.all())


def measure(opened: Opened, passages: int) -> Figures:
    index, size = opened
    corpus = Corpus()
    built = build(index, corpus, passages)
    times = asked(index, corpus.questions())
    return {
        "build, s": built.seconds, "a second": passages / built.seconds, "MB": size() / 1e6, **shown(times),
        "memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


class Drawn:
    """Unit vectors drawn at random: all of them are looked through for a question, whatever they say."""

    name = MiniLM.name

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        drawn = self._random.standard_normal((len(texts), MINILM_DIMENSIONS), np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def encoded_a_second() -> Figures:
    """Made-up words fall into many pieces, so English takes less."""
    texts = [passage.text for file in next(Corpus().batches(ENCODED)) for passage in file.passages]
    encoder = MiniLM()
    encoder.embed(texts[:32])
    return {"a second": len(texts) / _seconds(partial(encoder.embed, texts))}


def with_vectors(opened: Opened, passages: int) -> Figures:
    index, size = opened
    corpus = Corpus()
    build(index, corpus, passages)
    before, encoder = size(), Drawn()
    began = time.perf_counter()
    if index.vector_problem():
        return {}
    add_vectors(index, encoder)
    index.optimize()
    taken = time.perf_counter() - began
    vectors = encoder.embed([" ".join(words) for words in corpus.questions()])
    times = [1_000 * _seconds(partial(index.find_nearest, encoder.name, vector, limit=HITS)) for vector in vectors]
    return {"build, s": taken, "a second": passages / taken, "MB": (size() - before) / 1e6, **shown(times)}


def run(sizes: tuple[int, ...], vectors: int, on: str | None = None) -> dict[str, Figures]:
    """The encoder last: the memory it takes would be everybody's."""
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, server() as address, PostgresDatabase(address) as database:
        all_opens = {"SQLite": partial(on_sqlite, Path(folder)), "PostgreSQL": partial(on_postgres, database)}
        opens = {name: opened for name, opened in all_opens.items() if on in (None, name)}
        for name, opened in opens.items():
            for passages in sizes:
                with opened(f"passages{passages}") as index:
                    found[f"{name}, {passages:,} passages"] = measure(index, passages)
                _tell(found)
        for name, opened in opens.items() if vectors else ():
            with opened("vectors") as index:
                found[f"{name}, {vectors:,} vectors"] = with_vectors(index, vectors)
            _tell(found)
    if vectors:
        found["passages encoded"] = encoded_a_second()
        _tell(found)
    return found


def _tell(found: dict[str, Figures]) -> None:
    """The last line, with what it is of the one before of its kind."""
    (*_, before, last) = (None, *found.items())
    print(f"{last[0]:30}", "  ".join(f"{name} {value:,.1f}" for name, value in last[1].items()), flush=True)
    if before and before[0].split(",")[0] == last[0].split(",")[0] and "passages" in last[0]:
        times = {name: value / before[1][name] for name, value in last[1].items() if before[1].get(name)}
        print(f"{'':30}", "  ".join(f"{name} x{value:.1f}" for name, value in times.items()), flush=True)


def put_down(found: dict[str, Figures], sizes: Sequence[int], vectors: int) -> None:
    """For the page of figures."""
    there = [where for where in PLACES if any(name.startswith(where) for name in found)]
    of = {(where, size): found[f"{where}, {size:,} passages"] for where in there for size in sizes}
    keep(
        "documents",
        ("kept in", "passages", "built in", "takes", "question, median", "95th percentile", "memory of the process"),
        [(*place, *_cells(one), f"{one['memory, MB']:.0f} MB") for place, one in of.items()],
    )
    if vectors:
        keep(
            "vectors", ("kept in", "passages", "stored in", "takes", "the nearest 150, median", "95th percentile"),
            [(where, vectors, *_cells(found[f"{where}, {vectors:,} vectors"])) for where in there],
            f"The encoder made {found['passages encoded']['a second']:.0f} vectors a second.",
        )  # fmt: skip
    for name, title, unit, figure, note in CURVES:
        lines = {where: [(float(size), of[where, size][figure]) for size in sizes] for where in there}
        keep_curve(f"documents-{name}", (title, "passages", unit), lines, note=note)


def _cells(one: Figures) -> tuple[str, ...]:
    takes = f"{one['MB'] / 1000:.1f} GB" if one["MB"] >= 1000 else f"{one['MB']:.1f} MB"
    return f"{one['build, s']:,.1f} s", takes, f"{one['p50, ms']:.0f} ms", f"{one['p95, ms']:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON at the end")
    parser.add_argument("--on", choices=PLACES, help="only there")
    parser.add_argument("--vectors", type=int, default=VECTORS, help="passages that get one; 0: none")
    parser.add_argument("--passages", type=int, nargs="*", help="other sizes than these")
    wanted = parser.parse_args()
    sizes = SIZES if wanted.passages is None else tuple(wanted.passages)
    found = run(sizes, wanted.vectors, wanted.on)
    put_down(found, sizes, wanted.vectors)
    if wanted.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
