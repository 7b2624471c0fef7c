"""Edits of a plan: what each changes, what is refused and how, and that a plan stays a plan."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import settings as trying
from hypothesis import strategies as st

from openassay.errors import AnswerError
from openassay.models.plan import (
    LONGEST_TEXT,
    MOST_EDITS,
    MOST_QUERIES,
    MOST_QUESTIONS,
    OPERATIONS,
    Depth,
    MoveQuestion,
    MoveSection,
    Plan,
    apply_edits,
    parse_edits,
    replace_plan,
)

SECTIONS = ("Size", "Causes", "Outlook")


def plan_of(depth: Depth = Depth.STANDARD, questions: int = 4, sections: tuple[str, ...] = SECTIONS) -> Plan:
    """Sub-question n stands in section n, the last section takes the rest; three queries each while there is room."""
    made = [
        {"id": f"Q{n}", "text": f"What is side {n} of Lake Marrow?", "section": sections[min(n, len(sections)) - 1]}
        for n in range(1, questions + 1)
    ]
    queries = [
        {"id": f"K{m * questions + n}", "text": f"marrow {n} {m}", "question": f"Q{n}", "priority": m + 1}
        for m in range(3)
        for n in range(1, questions + 1)
    ]
    return Plan.model_validate(
        {"goal": "How large is Lake Marrow since 2019?", "topic": "Lake Marrow, since 2019", "depth": depth,
         "questions": made, "queries": queries[:MOST_QUERIES], "sections": sections, "methodology": "by hand",
         "confidence": 0.8}
    )  # fmt: skip


def edited(*edits: dict[str, Any], plan: Plan | None = None) -> Plan:
    return apply_edits(plan or plan_of(), parse_edits(list(edits)))


def texts(plan: Plan) -> list[str]:
    return [question.text for question in plan.questions]


def asked(plan: Plan, question: str) -> list[str]:
    return [query.text for query in plan.queries if query.question == question]


# What each does ---------------------------------------------------------------------------------------


def test_a_sub_question_is_added_with_queries_of_its_own_words() -> None:
    made = edited({"op": "add", "text": "Who pays for  the dredging?", "section": "causes", "at": 2})
    new = made.questions[1]
    assert (new.id, new.text, new.section) == ("Q5", "Who pays for the dredging?", "Causes")
    assert new.topic == "Lake Marrow, since 2019", "it does not name what the plan is about"
    assert asked(made, "Q5") == ["pays dredging lake marrow since 2019"] * 2
    assert {query.type for query in made.queries if query.question == "Q5"} == {"web", "academic"}
    assert made.sections == SECTIONS
    assert made.edited
    assert made.reasoning == ("You added: Who pays for the dredging?",)


def test_what_names_the_topic_needs_no_reminder_of_it() -> None:
    made = edited({"op": "add", "text": "Which fish live in Lake Marrow?"})
    assert made.questions[-1].topic == "since 2019"
    assert made.questions[-1].section == "Which fish live in Lake Marrow?" == made.sections[-1]


def test_a_quick_answer_keeps_its_sections() -> None:
    made = edited({"op": "add", "text": "Which fish live there?"}, plan=plan_of(Depth.QUICK, 1, ("Answer",)))
    assert made.sections == ("Answer",)
    assert [query.type for query in made.queries if query.question == "Q2"] == ["web"]


def test_queries_make_room_for_those_of_a_new_sub_question() -> None:
    made = edited({"op": "add", "text": "Which fish live there?"}, plan=plan_of(questions=6))
    assert len(made.queries) == MOST_QUERIES
    assert len(asked(made, "Q7")) == 2
    assert {query.question for query in made.queries} == {question.id for question in made.questions}
    assert [query.priority for query in made.queries if query.question != "Q7"].count(1) == 6


def test_a_removed_sub_question_takes_its_queries_and_its_section_along() -> None:
    made = edited({"op": "remove", "question": "q2"})
    assert [question.id for question in made.questions] == ["Q1", "Q3", "Q4"]
    assert made.sections == ("Size", "Outlook")
    assert not asked(made, "Q2")
    assert made.reasoning == ("You removed: What is side 2 of Lake Marrow?",)


def test_the_number_of_a_new_sub_question_is_one_that_none_has() -> None:
    made = edited({"op": "remove", "question": "Q2"}, {"op": "add", "text": "Which fish live there?"})
    assert [question.id for question in made.questions] == ["Q1", "Q3", "Q4", "Q5"]


def test_a_moved_sub_question_takes_its_section_along() -> None:
    made = edited({"op": "move", "question": "Q1", "to": 4})
    assert [question.id for question in made.questions] == ["Q2", "Q3", "Q4", "Q1"]
    assert made.sections == ("Causes", "Outlook", "Size")


def test_new_words_have_new_queries_and_the_old_ones_are_asked_no_more() -> None:
    made = edited({"op": "reword", "question": "Q1", "text": "How deep is Lake Marrow today?"})
    assert made.questions[0].text == "How deep is Lake Marrow today?"
    assert (made.questions[0].id, made.questions[0].section) == ("Q1", "Size")
    assert asked(made, "Q1") == ["deep lake marrow today since 2019"] * 2
    assert asked(made, "Q2") == asked(plan_of(), "Q2")


def test_a_section_named_after_its_sub_question_is_reworded_with_it() -> None:
    before = texts(plan_of())
    plan = plan_of(questions=3, sections=tuple(before[:3]))
    made = edited({"op": "reword", "question": "Q2", "text": "How deep is Lake Marrow?"}, plan=plan)
    assert made.sections == (before[0], "How deep is Lake Marrow?", before[2])


def test_a_sub_question_is_put_under_another_section_or_a_new_one() -> None:
    made = edited(
        {"op": "assign", "question": "Q4", "section": "size"}, {"op": "assign", "question": "Q1", "section": "Depth"}
    )
    assert [question.section for question in made.questions] == ["Depth", "Causes", "Outlook", "Size"]
    assert made.sections == ("Depth", "Causes", "Outlook", "Size")


def test_a_section_is_added_with_something_to_answer() -> None:
    made = edited(
        {"op": "add_section", "title": "Law", "at": 1},
        {"op": "add_section", "title": "Trade", "text": "Who fishes there?"},
    )
    assert made.sections == ("Law", *SECTIONS, "Trade")
    assert (texts(made)[0], texts(made)[-1]) == ("What is known about Law?", "Who fishes there?")
    assert made.questions[0].topic == "Lake Marrow, since 2019"
    assert len(made.reasoning) == 2


def test_a_section_is_removed_moved_and_renamed_with_its_sub_questions() -> None:
    assert texts(edited({"op": "remove_section", "title": "outlook"})) == texts(plan_of())[:2]
    moved = edited({"op": "move_section", "title": "Outlook", "to": 1})
    assert moved.sections == ("Outlook", "Size", "Causes")
    assert [question.id for question in moved.questions] == ["Q3", "Q4", "Q1", "Q2"]
    renamed = edited({"op": "rename_section", "title": "Outlook", "name": "What comes next"})
    assert renamed.sections == ("Size", "Causes", "What comes next")
    assert [question.section for question in renamed.questions[2:]] == ["What comes next"] * 2


def test_a_section_that_never_had_a_sub_question_stays() -> None:
    plan = plan_of(Depth.QUICK, 1, ("Overview", "Recent news"))
    assert (
        edited({"op": "reword", "question": "Q1", "text": "How deep is Lake Marrow?"}, plan=plan).sections
        == plan.sections
    )
    assert edited({"op": "remove_section", "title": "Recent news"}, plan=plan).sections == ("Overview",)


def test_sources_money_and_length_are_chosen() -> None:
    made = edited(
        {"op": "sources", "names": ["arxiv", "arxiv", "brave"]},
        {"op": "budget", "usd": 1},
        {"op": "words", "words": 600},
    )
    assert (made.sources, made.usd, made.words) == (("arxiv", "brave"), 1.0, 600)
    assert made.reasoning == (
        "You chose the sources: arxiv, brave", "You set the most it may cost: $1.00", "You set the length: 600 words",
    )  # fmt: skip


# What is refused --------------------------------------------------------------------------------------

IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"op": "remove", "question": "Q9"}, "there is no sub-question Q9"),
    ({"op": "move", "question": "Q1", "to": 5}, "there is no place 5"),
    ({"op": "add", "text": "WHAT is side 2 of Lake Marrow?"}, "Q2 asks that already"),
    ({"op": "reword", "question": "Q1", "text": "What is side 2 of Lake Marrow?"}, "Q2 asks that already"),
    ({"op": "add", "text": "Which fish live there?", "at": 9}, "there is no place 9"),
    ({"op": "remove_section", "title": "Nowhere"}, "there is no section Nowhere"),
    ({"op": "add_section", "title": "SIZE"}, "there is a section SIZE already"),
    ({"op": "rename_section", "title": "Size", "name": "causes"}, "there is a section causes already"),
    ({"op": "move_section", "title": "Size", "to": 4}, "there is no place 4"),
]


@pytest.mark.parametrize(("edit", "why"), IMPOSSIBLE)
def test_what_cannot_be_done_is_refused_by_the_number_of_the_edit_and_with_a_way_out(
    edit: dict[str, Any], why: str
) -> None:
    with pytest.raises(AnswerError) as caught:
        edited({"op": "words", "words": 500}, edit)
    assert caught.value.message.startswith(f"Edit 2 ({edit['op']}): {why}")
    assert caught.value.help


@pytest.mark.parametrize("edit", [{"op": "remove", "question": "Q1"}, {"op": "remove_section", "title": "Answer"}])
def test_the_last_sub_question_stays(edit: dict[str, Any]) -> None:
    with pytest.raises(AnswerError, match=r"no sub-question|needs a section"):
        edited(edit, plan=plan_of(Depth.QUICK, 1, ("Answer",)))


def test_an_eighth_sub_question_is_refused() -> None:
    with pytest.raises(AnswerError, match="at most 7"):
        edited({"op": "add", "text": "Which fish live there?"}, plan=plan_of(questions=7))


MALFORMED: list[tuple[object, str]] = [
    (None, "must be a list"),
    ([], "at least one"),
    ({"op": "remove"}, "must be a list"),
    ("remove Q1", "must be a list"),
    (["remove Q1"], "Edit 1 is not an object"),
    ([{"op": "remove", "question": "Q1"}] * (MOST_EDITS + 1), "too many"),
    ([{}], "Edit 1: op is missing"),
    ([{"op": "explode"}], "Edit 1: there is no operation 'explode'"),
    ([{"op": ["add"]}], "Edit 1: there is no operation"),
    ([{"op": "words", "words": 500}, {"op": "remove"}], "Edit 2 (remove): question is missing"),
    ([{"op": "add", "text": "Why?"}], "Edit 1 (add): a sub-question needs at least 4 letters"),
    ([{"op": "add", "text": "1234567890?!"}], "Edit 1 (add): a sub-question needs at least 4 letters"),
    ([{"op": "add", "text": "x" * (LONGEST_TEXT + 1)}], "text has more than 500 characters"),
    ([{"op": "add", "text": 12345678901}], "text must be a text"),
    ([{"op": "move", "question": "Q1", "to": 0}], "to must be at least 1"),
    ([{"op": "move", "question": "Q1", "to": True}], "to must be a whole number"),
    ([{"op": "move", "question": "Q1", "to": "2"}], "to must be a whole number"),
    ([{"op": "budget", "usd": float("inf")}], "usd must be"),
    ([{"op": "budget", "usd": float("nan")}], "usd must be"),
    ([{"op": "budget", "usd": -1}], "usd must be at least 0"),
    ([{"op": "words", "words": 1}], "words must be at least 50"),
    ([{"op": "sources", "names": []}], "names needs at least 1 entry"),
    ([{"op": "sources", "names": "brave"}], "names must be a list"),
    ([{"op": "remove", "question": "Q1", "really": True}], "really is not known here"),
]


@pytest.mark.parametrize(("edits", "why"), MALFORMED)
def test_what_is_no_edit_is_refused_in_plain_words(edits: object, why: str) -> None:
    with pytest.raises(AnswerError) as caught:
        parse_edits(edits)
    assert why in caught.value.message
    assert caught.value.help
    assert "pydantic" not in str(caught.value).lower()
    assert "Input should" not in caught.value.message


def test_edits_travel_as_json() -> None:
    edits = parse_edits([{"op": "add", "text": "Which fish live there?"}, {"op": "move", "question": "Q1", "to": 2}])
    assert parse_edits(json.loads(json.dumps([edit.plain() for edit in edits]))) == edits
    assert parse_edits(edits) == edits


# A plan written anew ----------------------------------------------------------------------------------


def test_a_whole_plan_takes_the_place_of_the_one_that_was_shown() -> None:
    shown: dict[str, Any] = plan_of().plain()
    shown["questions"] = [{"id": "Q1", "text": "How deep is it?", "section": "Size"}]
    shown["questions"].append({"id": "Q2", "text": "How old is it?", "section": "Causes"})
    shown["queries"] = [{"id": "K1", "text": "depth", "question": "Q1"}]
    made = replace_plan(plan_of(), {**shown, "goal": "Something else", "depth": "quick"})
    assert (made.goal, made.depth, made.edited) == (plan_of().goal, Depth.STANDARD, True)
    assert asked(made, "Q1") == ["depth"]
    assert asked(made, "Q2") == ["old lake marrow since 2019"] * 2, "what is to be asked has a query"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"questions": []}, "questions needs at least 1 entry"),
        ({"questions": "none"}, "questions must be a list"),
        ({"confidence": 7}, "confidence must be at most 1"),
        ({"queries": [{"id": "K1", "text": "x" * 501, "question": "Q1"}]}, "text has more than 500"),
        ({"queries": [{"id": "K1", "text": "x", "question": "Q1"}] * 2}, "the same id"),
        ({"spell": 1}, "spell is not known here"),
        ({"words": 1}, "words must be at least 50"),
        ({"usd": "0.5"}, "usd must be a number"),
        ({"constraints": ["x" * 100_000]}, "constraints.0 has more than 2500"),
        ({"sources": ["x" * 41]}, "sources.0 has more than 40"),
        ({"sections": ["", *SECTIONS]}, "sections.0 needs at least 1"),
        ({"questions": [{"id": "", "text": "How deep is it?", "section": "Size"}]}, "id must be .* like Q3"),
        ({"questions": [{"id": "b c", "text": "How deep is it?", "section": "Size"}]}, "id must be .* like Q3"),
        ({"questions": [{"id": "Q1", "text": "\x1b[1m?", "section": "Size"}]}, "at least 4 letters"),
        (
            {
                "questions": [{"id": f"Q{n}", "text": "How deep?", "section": "Size"} for n in (1, 2)],
                "queries": [{"id": "K1", "text": "x", "question": "Q1"}],
            },
            "ask the same",
        ),
    ],
)
def test_a_whole_plan_that_is_none_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(AnswerError, match=why):
        replace_plan(plan_of(), {**plan_of().plain(), **change})
    with pytest.raises(AnswerError):
        replace_plan(plan_of(), [change])


def test_what_is_written_in_a_whole_plan_is_one_line_each() -> None:
    shown: dict[str, Any] = plan_of().plain()
    shown["queries"][0]["text"] = "depth\x1b of\n\tthe lake"
    assert asked(replace_plan(plan_of(), shown), "Q1")[0] == "depth of the lake"


@pytest.mark.parametrize("text", ["价格是多少？", "क्या है?", "Cost?"])
def test_a_short_question_in_any_script_is_one(text: str) -> None:
    assert texts(edited({"op": "add", "text": text}))[-1] == text


# Whatever is done -------------------------------------------------------------------------------------

ids = st.sampled_from([f"Q{n}" for n in range(1, 10)])
titles = st.sampled_from([*SECTIONS, "Law", "Trade", "size"]) | st.text(max_size=8)
wordings = st.sampled_from([f"Which part {n} matters here?" for n in range(9)]) | st.text(max_size=30)
places = st.integers(min_value=0, max_value=9)
operations = st.one_of(
    st.fixed_dictionaries({"op": st.just("add"), "text": wordings}, optional={"section": titles, "at": places}),
    st.fixed_dictionaries({"op": st.just("remove"), "question": ids}),
    st.fixed_dictionaries({"op": st.just("move"), "question": ids, "to": places}),
    st.fixed_dictionaries({"op": st.just("reword"), "question": ids, "text": wordings}),
    st.fixed_dictionaries({"op": st.just("assign"), "question": ids, "section": titles}),
    st.fixed_dictionaries({"op": st.just("add_section"), "title": titles}, optional={"text": wordings, "at": places}),
    st.fixed_dictionaries({"op": st.sampled_from(["remove_section"]), "title": titles}),
    st.fixed_dictionaries({"op": st.just("move_section"), "title": titles, "to": places}),
    st.fixed_dictionaries({"op": st.just("rename_section"), "title": titles, "name": titles}),
    st.fixed_dictionaries({"op": st.sampled_from(OPERATIONS)}, optional={"usd": st.floats(), "words": st.integers()}),
)
plans = st.builds(
    plan_of,
    st.sampled_from(Depth),
    st.integers(min_value=3, max_value=7),
    st.sampled_from([SECTIONS, ("Answer", "More")]),
)


@pytest.mark.slow
@trying(max_examples=300, deadline=None)
@given(plan=plans, edits=st.lists(operations, min_size=1, max_size=12))
def test_any_edits_leave_a_valid_plan_or_are_refused_and_never_change_what_was_given(
    plan: Plan, edits: list[dict[str, Any]]
) -> None:
    before = plan.plain()
    for edit in edits:  # each on its own, so that what one may not do does not hide the others
        try:
            plan_after = edited(edit, plan=plan)
        except AnswerError:
            continue
        assert plan.plain() == before
        assert Plan.model_validate(plan_after.plain()) == plan_after
        assert 1 <= len(plan_after.questions) <= MOST_QUESTIONS
        assert {query.question for query in plan_after.queries} == {item.id for item in plan_after.questions}
        kept = {item.id: item.text for item in plan.questions}
        for item in plan_after.questions:
            assert edit["op"] == "reword" or kept.get(item.id, item.text) == item.text, "an id names one sub-question"
        order = list(dict.fromkeys(item.section for item in plan_after.questions))
        assert order == [title for title in plan_after.sections if title in order]
        plan, before = plan_after, plan_after.plain()


def same(plan: Plan) -> Plan:
    return plan.model_copy(update={"reasoning": (), "edited": False})


@given(plan=plans, at=st.integers(min_value=1, max_value=7), to=st.integers(min_value=1, max_value=7))
def test_moving_there_and_back_changes_nothing(plan: Plan, at: int, to: int) -> None:
    assume(max(at, to) <= len(plan.questions))
    name = plan.questions[at - 1].id
    assert same(apply_edits(plan, [MoveQuestion(question=name, to=to), MoveQuestion(question=name, to=at)])) == plan


@given(plan=plans, at=st.integers(min_value=1, max_value=3), to=st.integers(min_value=1, max_value=3))
def test_moving_a_section_there_and_back_changes_nothing(plan: Plan, at: int, to: int) -> None:
    assume(max(at, to) <= len(plan.sections))
    title = plan.sections[at - 1]
    assert same(apply_edits(plan, [MoveSection(title=title, to=to), MoveSection(title=title, to=at)])) == plan
