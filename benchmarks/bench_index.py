"""How long the library index takes to build and to ask: python benchmarks/bench_index.py [--json]

Text is drawn from a vocabulary that follows Zipf's law; a question is 3 to 8 words of some passage, so that
common words are in it as often as in what people ask. Wanted: 1,000 documents of 5 KB far below 30 s, and a
p95 below 50 ms over 100,000 passages. Beside it: what the documents source adds, from the files on disk to
passages reranked by meaning, with vectors made when first needed and then cached.
"""

import argparse
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles

from openassay.fetch.documents import LocalFileReader, walk_folder
from openassay.models.evidence import Document, Passage
from openassay.protocols import DocumentFolder, FileStamp
from openassay.search.index_builder import synchronise
from openassay.search.ranking import rank
from openassay.storage import index_sqlite as index_module
from openassay.storage.index_sqlite import SqliteIndex
from openassay.text.embeddings import EmbeddingCache, MiniLM

WORDS_A_PASSAGE = 80
PASSAGES_A_DOCUMENT = 8  # which makes 5 KB
DOCUMENTS, MANY_DOCUMENTS = 1_000, 12_500
QUESTIONS, HITS, RERANKED = 200, 30, 20

Figures = dict[str, float]


class Language:
    """Made-up words; the n-th is used 1/n as often as the first."""

    def __init__(self, seed: int, words: int = 50_000) -> None:
        self._random = random.Random(seed)
        syllables = [consonant + vowel for consonant in "bcdfghklmnprstv" for vowel in "aeiou"]
        found: set[str] = set()
        while len(found) < words:
            stem = "".join(self._random.choices(syllables, k=self._random.choice((1, 2, 2, 3, 3, 4))))
            found.add(stem + self._random.choice(("", "", "s", "ing", "ed", "r")))
        self._words = sorted(found)
        self._random.shuffle(self._words)
        self._weights = list(accumulate(1 / rank for rank in range(1, words + 1)))

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def commonest(self, count: int) -> list[str]:
        return self._words[:count]

    def question(self, text: str) -> list[str]:
        return self._random.sample(text.split(), self._random.randint(3, 8))


def cut(document: Document) -> list[Passage]:
    """Passages of some 80 words."""
    passages, start = [], 0
    words = document.text.split(" ")
    for first in range(0, len(words), WORDS_A_PASSAGE):
        text = " ".join(words[first : first + WORDS_A_PASSAGE])
        passages.append(Passage(document=document.hash, start=start, end=start + len(text), text=text))
        start += len(text) + 1
    return passages


def documents(language: Language, count: int) -> list[tuple[Document, list[Passage]]]:
    made = []
    for number in range(count):
        text = " ".join(language.words(PASSAGES_A_DOCUMENT * WORDS_A_PASSAGE))
        document = Document(
            hash=hashlib.sha256(text.encode()).hexdigest(),
            text=text,
            url=f"file:///{number}.txt",
            title=" ".join(language.words(5)),
            fetched=datetime.now(UTC),
        )
        made.append((document, cut(document)))
    return made


def fill(index: SqliteIndex, made: list[tuple[Document, list[Passage]]]) -> None:
    for number, (document, passages) in enumerate(made):
        index.replace(f"{number}.txt", FileStamp(len(document.text), number), document, passages)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def building(folder: Path, language: Language) -> Figures:
    made = documents(language, DOCUMENTS)
    with SqliteIndex(folder / "batch.db") as index, SqliteIndex(folder / "single.db") as single:

        def in_one_batch() -> None:
            with index.batch():
                fill(index, made)

        return {
            "KB a document": sum(len(document.text) for document, _ in made) / DOCUMENTS / 1_000,
            "one batch, s": seconds(in_one_batch),
            "file by file, s": seconds(lambda: fill(single, made)),
        }


def asking(folder: Path, language: Language) -> dict[str, Figures]:
    made = documents(language, MANY_DOCUMENTS)
    texts = [passage.text for _, passages in made for passage in passages]
    questions = [language.question(random.Random(n).choice(texts)) for n in range(QUESTIONS)]
    with SqliteIndex(folder / "large.db") as index:
        with index.batch():
            fill(index, made)
        limited = times(index, questions)
        bound, index_module.MAX_ROWS = index_module.MAX_ROWS, len(texts) * len(questions)
        every = times(index, questions)
        index_module.MAX_ROWS = bound
        name = f"ask {len(texts):,} passages"
        return {f"{name}, rarest words": limited, f"{name}, all words": every}


def times(index: SqliteIndex, questions: list[list[str]]) -> Figures:
    taken = [1_000 * seconds(partial(index.match, words, limit=HITS)) for words in questions]
    return {"p50, ms": median(taken), "p95, ms": quantiles(taken, n=20)[-1], "max, ms": max(taken)}


def whole_source(folder: Path, language: Language) -> dict[str, Figures]:
    """Files on disk through the reader, the passage cutter and the index; then questions with reranking."""
    root = folder / "files"
    root.mkdir()
    texts = [sentences(language) for _ in range(DOCUMENTS)]
    for number, text in enumerate(texts):
        (root / f"{number}.txt").write_text(text, encoding="utf-8")
    questions = [" ".join(language.question(texts[number])) for number in range(RERANKED)]
    found = walk_folder(root)
    with SqliteIndex(folder / "source.db") as index:
        files = DocumentFolder(root, found.files, found.skipped)
        first = seconds(lambda: synchronise(files, index, LocalFileReader()))
        again = seconds(lambda: synchronise(files, index, LocalFileReader()))
        embedder = EmbeddingCache(MiniLM(), folder / "vectors.db")
        embedder.embed(["the model is loaded once"])
        fresh, cached = (
            [1_000 * seconds(partial(rank, text, [index], embedder, 10)) for text in questions] for _ in "ab"
        )
        figures = {
            f"index {DOCUMENTS:,} files of 5 KB": {"first, s": first, "nothing changed, s": again},
            "ask with reranking": {"new vectors p50, ms": median(fresh), "cached p50, ms": median(cached)},
        }
        embedder.close()
    return figures


def sentences(language: Language) -> str:
    lines = (
        " ".join(language.words(16)).capitalize() + "." for _ in range(PASSAGES_A_DOCUMENT * WORDS_A_PASSAGE // 16)
    )
    return " ".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    language = Language(seed=7)
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            f"build {DOCUMENTS:,} documents": building(Path(folder), language),
            **asking(Path(folder), language),
            **whole_source(Path(folder), language),
        }
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, row in figures.items():
        print(f"{name:45}", "  ".join(f"{key} {value:,.1f}" for key, value in row.items()))


if __name__ == "__main__":
    main()
