"""Conditions of breakpoints are compared, never evaluated."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigurationError
from assay.settings import Condition, load
from assay.stages.breakpoints import at, check, holds

SEEN = {
    "critique": {"score": 5.5, "recommendation": "revise"},
    "plan": {"questions": [{"id": "Q1"}, {"id": "Q2"}], "sources": ["demo"]},
    "subject": None,
    "original_query": "How large is Lake Marrow?",
}


@pytest.mark.requirement("F-09")
@pytest.mark.parametrize(
    ("field", "operator", "value", "met"),
    [
        ("critique.score", "<", 6, True),
        ("critique.score", ">=", 6, False),
        ("critique.recommendation", "==", "revise", True),
        ("critique.recommendation", "!=", "revise", False),
        ("critique.recommendation", "in", ["revise", "reject"], True),
        ("critique.recommendation", "not in", ["revise"], False),
        ("plan.questions", ">", 1, True),
        ("plan.questions", "<", 2, False),
        ("plan.questions.1.id", "==", "Q2", True),
        ("plan.questions.7.id", "==", "Q2", False),
        ("plan.sources", "contains", "demo", True),
        ("original_query", "contains", "Lake", True),
        ("subject", "missing", None, True),
        ("subject", "exists", None, False),
        ("draft", "missing", None, True),
        ("critique", "exists", None, True),
        ("draft.title", "==", "x", False),  # nothing has come of it yet
        ("critique.score", "<", "many", True),  # cannot be compared: rather asked once too often
    ],
)
def test_a_condition_is_a_field_an_operator_and_a_value(field: str, operator: Any, value: Any, met: bool) -> None:
    assert holds(Condition(field=field, operator=operator, value=value), SEEN) is met


@pytest.mark.requirement("F-09")
@pytest.mark.parametrize("field", ["__class__", "plan.__class__", "plan[0]", "1 + 1", "plan.questions()", "", "Plan"])
def test_a_field_is_a_name_and_never_code(field: str) -> None:
    with pytest.raises(ValueError, match="field"):
        Condition(field=field, operator="exists")


FIELDS = st.from_regex(r"[a-z][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)*", fullmatch=True)
VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)


@given(FIELDS, st.sampled_from(["<", "in", "contains", "=="]), VALUES)
def test_no_condition_breaks_a_run(field: str, operator: Any, value: Any) -> None:
    assert holds(Condition(field=field, operator=operator, value=value), SEEN) in (True, False)


def test_a_path_looks_at_data_alone() -> None:
    assert at("critique.score", SEEN) == 5.5
    assert at("critique.items", SEEN) is at("no.such", SEEN)  # a method of dict is no field


@pytest.mark.parametrize("named", [{"when": {"field": "critic.score", "operator": "exists"}}, {"shows": ["critic"]}])
def test_a_breakpoint_on_what_no_run_has_is_refused_at_the_start(named: dict[str, Any]) -> None:
    settings = load(breakpoints={"custom": [{"name": "mine", "at": "plan", **named}]})

    with pytest.raises(ConfigurationError, match="critic"):
        check(settings)
