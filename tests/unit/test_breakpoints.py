"""Conditions of breakpoints are compared, never evaluated."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.engine.validation import OpenQuestion, validate_answer
from openassay.errors import AnswerError, ConfigurationError
from openassay.nodes.approve import check_breakpoints, is_condition_met, limit_pages, value_at_path
from openassay.nodes.plan import ALL, CUSTOM, cancels_research, leaves_open
from openassay.settings import Condition, load
from openassay.state import PageRequest

SEEN: dict[str, Any] = {
    "critique": {"score": 5.5, "recommendation": "revise"},
    "plan": {"questions": [{"id": "Q1"}, {"id": "Q2"}], "sources": ["demo"]},
    "subject": None,
    "coverage": {"Q1": 0.3, "Q2": 0.9},
    "findings": [],
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
        ("plan.questions.7.id", "==", "Q2", True),  # nothing stands there: rather asked once too often
        ("critique.scroe", "<", 6, True),
        ("critique.scroe", "exists", None, False),
        ("critique.scroe", "missing", None, True),
        ("coverage.Q1", "<", 0.5, True),
        ("coverage.Q2", "<", 0.5, False),
        ("findings.0.relevance", "<", 0.5, False),  # none was made yet
        ("findings", "<", 1, True),
        ("plan.questions", "contains", 2, False),  # two is what they count, not what they hold
        ("plan.questions", "not in", [2], True),
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
    assert is_condition_met(Condition(field=field, operator=operator, value=value), SEEN) is met


@pytest.mark.requirement("F-09")
@pytest.mark.parametrize(
    "field", ["__class__", "plan.__class__", "plan[0]", "1 + 1", "plan.questions()", "", "Plan", "plan..Q1"]
)
def test_a_field_is_a_name_and_never_code(field: str) -> None:
    with pytest.raises(ValueError, match="field"):
        Condition(field=field, operator="exists")


FIELDS = st.from_regex(r"[a-z][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)*", fullmatch=True)
VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)


@pytest.mark.slow
@given(FIELDS, st.sampled_from(["<", "in", "contains", "=="]), VALUES)
def test_no_condition_breaks_a_run(field: str, operator: Any, value: Any) -> None:
    assert is_condition_met(Condition(field=field, operator=operator, value=value), SEEN) in (True, False)


def test_a_path_looks_at_data_alone() -> None:
    assert value_at_path("critique.score", SEEN) == 5.5
    assert value_at_path("critique.items", SEEN) is value_at_path("no.such", SEEN)  # a method of dict is no field


@pytest.mark.parametrize("named", [{"when": {"field": "critic.score", "operator": "exists"}}, {"shows": ["critic"]}])
def test_a_breakpoint_on_what_no_run_has_is_refused_at_the_start(named: dict[str, Any]) -> None:
    settings = load(breakpoints={"custom": [{"name": "mine", "at": "plan", **named}]})

    with pytest.raises(ConfigurationError, match="critic"):
        check_breakpoints(settings)


# Fewer pages


def page(key: str, host: str = "a.example") -> PageRequest:
    return {
        "key": key, "url": f"https://{host}/{key}", "kind": "web", "title": "", "published": None,
        "author": None,
    }  # fmt: skip


def test_so_many_pages_are_those_to_be_fetched_the_best_of_each_sub_question_first() -> None:
    wanted = {"Q1": [page("a"), page("b"), page("c")], "Q2": [page("b"), page("d")]}

    def left(most: int, *read: str) -> list[str]:
        kept = limit_pages(wanted, most, (), set(read))
        return sorted({page["key"] for pages in kept.values() for page in pages})

    assert left(2) == ["a", "b"]
    assert left(3) == ["a", "b", "d"]
    assert left(0) == []
    assert left(1, "a", "b") == ["a", "b", "d"]  # what was read before is chosen from again, and does not count


def test_nothing_is_left_of_a_host_that_was_struck_out() -> None:
    wanted = {"Q1": [page("a", "www.a.example"), page("b", "news.a.example"), page("c", "ba.example")]}
    assert limit_pages(wanted, None, ["a.example"], set()) == {"Q1": [page("c", "ba.example")]}


# Answers


def asked(kind: str, *options: str, **shown: Any) -> OpenQuestion:
    return OpenQuestion(
        id="1", kind=kind, question="Well?", options=options or ("approve", "reject", "modify", "skip"), shown=shown
    )


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("example.com", "example.com"),
        (" Example.COM ", "example.com"),
        ("www.example.com.", "example.com"),
        ("https://www.example.com/a?b=c", "example.com"),
        ("http://news.example.com:8080", "news.example.com"),
        ("müller.example", "xn--mller-kva.example"),
        ("10.0.0.1", "10.0.0.1"),
        ("intranet", "intranet"),  # since pages were found there
    ],
)
def test_a_host_is_taken_however_it_is_written(written: str, host: str) -> None:
    taken = validate_answer(asked("approve_harvest", hosts=["intranet"]), {"decision": "modify", "without": [written]})
    assert taken["without"] == [host]


@pytest.mark.parametrize(
    "written", ["", " ", "com", "co.uk", "no host", "localhost", "a..b", "x,example.com", "https://"]
)
def test_what_is_no_host_is_refused(written: str) -> None:
    with pytest.raises(AnswerError, match="is no host"):
        validate_answer(asked("approve_harvest", hosts=["intranet"]), {"decision": "modify", "without": [written]})


@pytest.mark.parametrize("decision", ["approve", "reject", "skip"])
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("approve_plan", {"edits": [{"op": "remove", "question": "Q2"}]}), ("approve_plan", {"plan": {}}),
        ("approve_harvest", {"pages": 0}), ("approve_harvest", {"without": ["example.com"]}),
        ("approve_claims", {"drop": ["C1"]}), ("approve_review", {"fixes": ["more"]}),
        ("approve_output", {"title": "Lake"}),
    ],
)  # fmt: skip
def test_a_change_that_would_be_ignored_is_refused(kind: str, change: dict[str, Any], decision: str) -> None:
    with pytest.raises(AnswerError, match=f"{decision} would ignore what is said in {next(iter(change))}") as refused:
        validate_answer(asked(kind), {"decision": decision, **change})
    assert '"modify"' in refused.value.help


def test_an_answer_is_text_to_its_depths() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for value in (nested, {"decision": "modify", "edits": nested}):
        with pytest.raises(AnswerError, match="nested too deeply"):
            validate_answer(asked("approve_plan"), value)
    with pytest.raises(AnswerError, match="not readable"):
        validate_answer(
            asked("approve_plan"), {"decision": "modify", "plan": {"questions": [{"text": "\x1b[31mWhat is it?"}]}}
        )


@pytest.mark.parametrize("text", ["all of the above", "ALL OF THE ABOVE.", " All of the above "])
def test_all_of_the_above_is_all_of_them_however_it_is_written(text: str) -> None:
    assert validate_answer(asked("planning", "A", "B", ALL, CUSTOM), text) == {"text": "A; B"}


@pytest.mark.parametrize("text", ["custom", "CUSTOM", "Custom."])
def test_custom_is_no_answer_however_it_is_written(text: str) -> None:
    with pytest.raises(AnswerError, match="answer of your own"):
        validate_answer(asked("planning", "A", "B", CUSTOM), text)
    assert validate_answer(asked("clarification"), text) == {"text": text}


@pytest.mark.requirement("W-02")
@pytest.mark.parametrize(
    "text", ["Never mind.", "nevermind", "cancel", "Cancel that, please", "STOP", "abort", "quit", "Forget it!"]
)
def test_plain_words_call_everything_off(text: str) -> None:
    assert cancels_research(text)


@pytest.mark.requirement("W-02")
@pytest.mark.parametrize(
    "text",
    [
        "It doesn't matter", "it doesn’t matter to me", "I don't care", "None of the above", "not needed",
        "I don't know", "none", "Any", "whatever.", "no preference", "Skip", "skip it", "No thanks",
        "well, any of them", "up to you",
    ],
)  # fmt: skip
def test_who_does_not_mind_goes_on_to_the_next_question(text: str) -> None:
    assert leaves_open(text)
    assert not cancels_research(text)


@pytest.mark.parametrize(
    "text", ["The ferry", "any time", "Skip the ferry", "None after 2015", "I don't care about fish", "All of it", "9"]
)
def test_an_answer_is_neither(text: str) -> None:
    assert not leaves_open(text)
    assert not cancels_research(text)
