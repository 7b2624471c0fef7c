"""Follow-up questions made to stand alone: floors on what people wrote in their place."""

from pathlib import Path

import pytest

from benchmarks.evaluation.followups import MEASURES, copy_messages, load_canard, precision, recall, rewrite_messages
from tests.fakes.reasoner import FakeCompanies

MEASURE = MEASURES["followups"]


@pytest.mark.slow
@pytest.mark.requirement("C-11")
def test_questions_about_articles_and_of_people_in_four_fields(eval_data: Path) -> None:
    values = MEASURE.run(eval_data, True)
    assert MEASURE.list_failures(values, True) == []
    found = values["CANARD, recall"]
    assert found.value >= found.beside["copied"] + 0.2


@pytest.mark.slow
@pytest.mark.requirement("C-11")
def test_what_the_thread_is_about_is_found_out_from_its_turns_alone(eval_data: Path) -> None:
    """With no register of companies either."""
    pairs = rewrite_messages(load_canard(eval_data)[4::18], FakeCompanies({}), subject=False)
    assert recall(pairs) >= 0.71
    assert precision(pairs) >= 0.86


@pytest.mark.slow
def test_the_measure_gives_what_is_known_of_copying(eval_data: Path) -> None:
    same = copy_messages(load_canard(eval_data))
    assert round(recall(same), 2) == 0.49
    assert round(precision(same), 2) == 0.96
