"""How well documents are found: two-hop questions and related work, against plain BM25."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from assay.embedding.minilm import MiniLM
from assay.embedding.vectors import CachedEmbedder
from assay.evaluation.data import rows
from assay.evaluation.measure import Figure, Measure, Measured, Values
from assay.model.source import Document, Passage
from assay.ports import FileStamp
from assay.search.ranking import first, rank
from assay.storage.library import LibraryIndex
from assay.text.words import content_words

QUESTIONS, TASKS = 20, 4  # of a quick run, for which 470 passages and 250 abstracts are encoded
Find = Callable[[str, int], list[str]]


class Gold(NamedTuple):
    """What was asked, and the titles that should be found."""

    query: str
    titles: frozenset[str]


class Set(NamedTuple):
    texts: dict[str, str]  # by title
    asked: list[Gold]


def hotpotqa(data: Path) -> Set:
    corpus = json.loads((data / "hotpotqa/corpus.json").read_text(encoding="utf-8"))
    questions = json.loads((data / "hotpotqa/questions.json").read_text(encoding="utf-8"))
    asked = [Gold(one["question"], frozenset(title for title, _ in one["supporting_facts"])) for one in questions]
    return Set({title: "".join(parts) for title, parts in corpus.items()}, asked)


def deepscholar(data: Path) -> Set:
    """Who is cited is known by ids; of papers with one title the last counts."""
    papers = rows(data / "deepscholar/corpus.jsonl")
    titles = {paper["id"]: paper["title"] for paper in papers}
    asked = [
        Gold(f"{task['title']} {task['abstract']}", frozenset(titles.get(id, id) for id in task["gold_citations"]))
        for task in rows(data / "deepscholar/tasks.jsonl")
    ]
    return Set({paper["title"]: paper["abstract"] or paper["title"] for paper in papers}, asked)


@contextmanager
def finders(texts: dict[str, str]) -> Iterator[dict[str, Find]]:
    """Ways to find titles in an index of the texts."""
    with tempfile.TemporaryDirectory() as folder, LibraryIndex(Path(folder) / "index.sqlite3") as index:
        put(index, texts.items())
        embedder = CachedEmbedder(MiniLM(), Path(folder) / "vectors.sqlite3")
        yield {
            "BM25": lambda query, limit: [hit.title for hit in index.match(content_words(query), limit=limit)],
            # This one encodes; the next finds the same vectors stored.
            "one search": lambda query, limit: [one.match.title for one in first(query, [index], embedder, limit)],
            "ours": lambda query, limit: [one.match.title for one in rank(query, [index], embedder, limit)],
        }
        embedder.close()


def put(index: LibraryIndex, texts: Iterable[tuple[str, str]]) -> None:
    """Each text as a document of one passage."""
    with index.batch():
        for title, text in texts:
            name = hashlib.sha256(text.encode()).hexdigest()
            made = Document(hash=name, text=text, url=f"x:{title}", title=title, fetched=datetime.now(UTC))
            index.replace(title, FileStamp(1, 1), made, [Passage(document=name, start=0, end=len(text), text=text)])


def all_found(asked: Sequence[Gold], find: Find, limit: int = 5) -> list[bool]:
    return [one.titles <= set(find(one.query, limit)) for one in asked]


def precision_and_recall(asked: Sequence[Gold], find: Find, limit: int = 20) -> list[tuple[float, float]]:
    found = [len(one.titles & set(find(one.query, limit))) for one in asked]
    return [(right / limit, right / len(one.titles)) for right, one in zip(found, asked, strict=True)]


def measured_hotpotqa(data: Path, quick: bool) -> Values:
    texts, asked = hotpotqa(data)
    asked = asked[:QUESTIONS] if quick else asked
    with finders(texts) as ways:
        shares = {name: fmean(all_found(asked, find)) for name, find in ways.items()}
    ours = shares.pop("ours")
    return {"all gold passages in the first five": Measured(ours, shares)}


def measured_deepscholar(data: Path, quick: bool) -> Values:
    texts, asked = deepscholar(data)
    asked = asked[:TASKS] if quick else asked
    with finders(texts) as ways:
        found = {name: precision_and_recall(asked, find) for name, find in ways.items()}
    ours = found.pop("ours")
    return {
        what: Measured(
            fmean(one[place] for one in ours), {name: fmean(one[place] for one in all) for name, all in found.items()}
        )
        for place, what in enumerate(("precision@20", "recall@20"))
    }


MEASURES = {
    "hotpotqa": Measure(
        name="hotpotqa",
        about="Questions that need two passages: the share for which the search finds both.",
        needs=("hotpotqa",),
        licence="MIT, CC BY-SA",
        whole="100 questions over 994 passages",
        quick="20 questions",
        figures=(
            Figure(
                "all gold passages in the first five",
                floor=0.92,
                quick=0.90,
                published={"BM25": 0.60, "BM25 + MiniLM": 0.65, "a prototype with a second hop, at most": 0.91},
            ),
        ),
        run=measured_hotpotqa,
        notes="The second hop, by the entities and titles of the first hits, was tuned on these questions.",
        command="benchmarks/bench_retrieval.py",
    ),
    "deepscholar": Measure(
        name="deepscholar",
        about="Related work for a paper's title and abstract: which of the twenty papers found first it cites.",
        needs=("deepscholar",),
        licence="MIT",
        whole="20 tasks over 1,546 abstracts",
        quick="4 tasks",
        figures=(
            Figure(
                "precision@20",
                floor=0.64,
                quick=0.61,
                published={"BM25": 0.557, "MiniLM": 0.60, "BM25 with feedback + MiniLM": 0.655},
            ),
            Figure(
                "recall@20",
                floor=0.56,
                quick=0.58,
                published={"BM25": 0.512, "MiniLM": 0.53, "BM25 with feedback + MiniLM": 0.583},
            ),
        ),
        run=measured_deepscholar,
        notes="No more than .88 and .79 can be reached. Published figures are of other implementations on these tasks.",
        command="benchmarks/bench_retrieval.py",
    ),
}
