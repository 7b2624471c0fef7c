"""Floors for finding, on questions nobody here wrote. Lower one only on purpose, and say why."""

import hashlib
import json
from collections.abc import Callable, Iterator
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
Rank = Callable[[str, list[LibraryIndex], CachedEmbedder, int], list[Ranked]]


@pytest.fixture(scope="module")
def passages(eval_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibraryIndex]:
    corpus = json.loads((eval_data / "hotpotqa/corpus.json").read_text(encoding="utf-8"))
    with LibraryIndex(tmp_path_factory.mktemp("hotpotqa") / "index.sqlite3") as index:
        with index.batch():
            for title, parts in corpus.items():
                text = "".join(parts)
                name = hashlib.sha256(text.encode()).hexdigest()
                made = Document(hash=name, text=text, url=f"x:{title}", title=title, fetched=datetime.now(UTC))
                passage = Passage(document=name, start=0, end=len(text), text=text)
                index.replace(title, FileStamp(1, 1), made, [passage])
        yield index


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
