"""Floors for finding, on questions nobody here wrote. Lower one only on purpose, and say why."""

from pathlib import Path

import pytest

from benchmarks.evaluation.retrieval import RETRIEVAL_MEASURES


@pytest.mark.slow
def test_two_hop_questions_find_both_passages(eval_data: Path) -> None:
    measure = RETRIEVAL_MEASURES["hotpotqa"]
    values = measure.run(eval_data, True)
    assert measure.list_failures(values, True) == []
    (found,) = values.values()
    assert found.beside["one search"] >= 0.70
    assert found.beside["one search"] > found.beside["BM25"]


@pytest.mark.slow
def test_related_work_finds_what_the_paper_cites(eval_data: Path) -> None:
    measure = RETRIEVAL_MEASURES["deepscholar"]
    assert measure.list_failures(measure.run(eval_data, True), True) == []
