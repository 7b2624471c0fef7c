"""Follow-up questions made to stand alone: floors on what people wrote in their place."""

from pathlib import Path

import pytest

from assay.evaluation.followups import MEASURES, answered, canard, copied, precision, recall
from assay.testing.companies import FewCompanies

MEASURE = MEASURES["followups"]


@pytest.mark.requirement("C-11")
def test_questions_about_articles_and_of_people_in_four_fields(eval_data: Path) -> None:
    values = MEASURE.run(eval_data, True)
    assert MEASURE.missed(values, True) == []
    found = values["CANARD, recall"]
    assert found.value >= found.beside["copied"] + 0.2


@pytest.mark.requirement("C-11")
def test_what_the_thread_is_about_is_found_out_from_its_turns_alone(eval_data: Path) -> None:
    """With no register of companies either."""
    pairs = answered(canard(eval_data)[4::18], FewCompanies({}), subject=False)
    assert recall(pairs) >= 0.71
    assert precision(pairs) >= 0.86


def test_the_measure_gives_what_is_known_of_copying(eval_data: Path) -> None:
    same = copied(canard(eval_data))
    assert round(recall(same), 2) == 0.49
    assert round(precision(same), 2) == 0.96
