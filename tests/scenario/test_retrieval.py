"""Finding, on a few questions nobody here wrote; `python -m benchmarks.evaluation` has floors on all of them."""

from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.evaluation.retrieval import (
    check_all_gold,
    load_deepscholar,
    load_hotpotqa,
    open_finders,
    precision_and_recall,
)

QUESTIONS, TASKS = 6, 1  # for which 140 passages and 60 abstracts are encoded


@pytest.mark.slow
def test_two_hop_questions_find_both_passages(eval_data: Path) -> None:
    texts, asked = load_hotpotqa(eval_data)
    with open_finders(texts) as ways:
        shares = {name: fmean(check_all_gold(asked[:QUESTIONS], find)) for name, find in ways.items()}
    assert shares["BM25"] < shares["one search"] < shares["ours"] == 1


@pytest.mark.slow
def test_related_work_finds_what_the_paper_cites(eval_data: Path) -> None:
    texts, asked = load_deepscholar(eval_data)
    with open_finders(texts) as ways:
        [(precision, recall)] = precision_and_recall(asked[:TASKS], ways["ours"])
        [(plain, _)] = precision_and_recall(asked[:TASKS], ways["BM25"])
    assert precision >= 0.55 > plain
    assert recall >= 0.64
