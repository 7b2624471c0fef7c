"""The time a question confines itself to."""

from datetime import date

import pytest

from openassay.text.questions import Period, needs_recent_sources, parse_period

TODAY = date(2026, 11, 15)


@pytest.mark.requirement("W-07")
@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("How did rents change since 2021?", date(2021, 1, 1), None),
        ("What was found after 2019?", date(2020, 1, 1), None),
        ("What happened in the last two years?", date(2024, 11, 15), None),
        ("Trends over the past 6 months", date(2026, 5, 16), None),
        ("What is new in the last year?", date(2025, 11, 15), None),
        ("What was known as of 2020?", None, date(2020, 12, 31)),
        ("What was known before 2020?", None, date(2019, 12, 31)),
        ("State of the art as of 2023-04-01", None, date(2023, 4, 1)),
        ("What happened as of 2023-13-41", None, None),
        ("How large was the lake in 2019?", None, None),
        ("The war from 1914 to 1918", None, None),
        ("Since 2090?", None, None),
        ("", None, None),
    ],
)
def test_only_what_confines_the_question_is_a_filter(text: str, since: date | None, until: date | None) -> None:
    assert parse_period(text, TODAY) == Period(since, until)


@pytest.mark.requirement("F-04")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the latest on fusion power?", True),
        ("What is happening with Tesla?", True),
        ("How did sales change in 2025?", True),
        ("What did the last two years bring?", True),
        ("Why did Rome fall?", False),
        ("How large was the lake in 2009?", False),
    ],
)
def test_a_field_that_moves_is_told_from_one_that_does_not(question: str, expected: bool) -> None:
    assert needs_recent_sources(question, TODAY) is expected
