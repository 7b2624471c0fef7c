"""Floors for finding, on questions nobody here wrote. Lower one only on purpose, and say why."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.embedding.vectors import CachedEmbedder
from assay.model.source import Document, Passage
from assay.ports import FileStamp
from assay.search.matches import Ranked
from assay.search.ranking import first, rank
from assay.storage.library import LibraryIndex

QUESTIONS = 20  # of 100, for which 470 passages are encoded; benchmarks/bench_retrieval.py asks all
TASKS = 4  # of 20, for which 250 abstracts are encoded
Rank = Callable[[str, list[LibraryIndex], CachedEmbedder, int], list[Ranked]]


@pytest.fixture(scope="module")
def passages(eval_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibraryIndex]:
    corpus = json.loads((eval_data / "hotpotqa/corpus.json").read_text(encoding="utf-8"))
    with LibraryIndex(tmp_path_factory.mktemp("hotpotqa") / "index.sqlite3") as index:
        put(index, ((title, "".join(parts)) for title, parts in corpus.items()))
        yield index


def put(index: LibraryIndex, texts: Iterable[tuple[str, str]]) -> None:
    with index.batch():
        for title, text in texts:
            name = hashlib.sha256(text.encode()).hexdigest()
            made = Document(hash=name, text=text, url=f"x:{title}", title=title, fetched=datetime.now(UTC))
            index.replace(title, FileStamp(1, 1), made, [Passage(document=name, start=0, end=len(text), text=text)])


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("ranking", "floor"), [(first, 0.70), (rank, 0.90)])
def test_two_hop_questions_find_both_passages(
    ranking: Rank, floor: float, passages: LibraryIndex, eval_data: Path, embedder: CachedEmbedder
) -> None:
    """All gold passages among the first five: BM25 .60, one search .75, with the hop .95 when the floors were set.

    Of all hundred questions they were .62, .71 and .95.
    """
    questions = json.loads((eval_data / "hotpotqa/questions.json").read_text(encoding="utf-8"))[:QUESTIONS]
    found = 0
    for question in questions:
        titles = {ranked.match.title for ranked in ranking(question["question"], [passages], embedder, 5)}
        found += {title for title, _ in question["supporting_facts"]} <= titles
    assert found >= floor * len(questions), found


@pytest.mark.timeout(240)
def test_related_work_finds_what_the_paper_cites(tmp_path: Path, eval_data: Path, embedder: CachedEmbedder) -> None:
    """Of the first twenty: BM25 .48 are cited (.43 of all that are), one search .61 (.59), asked again .64 (.62) when
    the floor was set. Of all twenty tasks .50 (.42), .64 (.56) and .66 (.58).
    """
    lines = (eval_data / "deepscholar/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    papers = {paper["title"]: paper for paper in map(json.loads, lines)}
    lines = (eval_data / "deepscholar/tasks.jsonl").read_text(encoding="utf-8").splitlines()
    tasks = [json.loads(line) for line in lines[:TASKS]]
    precision = recall = 0.0
    with LibraryIndex(tmp_path / "index.sqlite3") as index:
        put(index, ((title, paper["abstract"] or title) for title, paper in papers.items()))
        for task in tasks:
            found = rank(f"{task['title']} {task['abstract']}", [index], embedder, 20)
            cited = {papers[ranked.match.title]["id"] for ranked in found} & set(task["gold_citations"])
            precision += len(cited) / 20 / TASKS
            recall += len(cited) / len(task["gold_citations"]) / TASKS
    assert precision >= 0.61, precision
    assert recall >= 0.58, recall
