"""Words at a prompt that answer a question, change a plan or decide at a breakpoint. No terminal is needed for that."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from openassay.cli.dialogs import (
    Approval,
    ChoiceDialogue,
    PlanEditor,
    create_dialogue,
    format_deadline,
    order_questions,
    show_plan,
)
from openassay.engine.validation import OpenQuestion
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion, apply_edits, parse_edits
from openassay.nodes.plan import ALL, CUSTOM

TEXTS = ("How high are the tides?", "Why are they so high?", "Who measures them?", "What harm do they do?")
PLACES = ("Height", "Height", "Measuring", "Harm")


def plan() -> Plan:
    return Plan(
        goal="The tides of the Bay of Fundy",
        depth=Depth.STANDARD,
        questions=tuple(
            SubQuestion(id=f"Q{number}", text=text, section=section)
            for number, (text, section) in enumerate(zip(TEXTS, PLACES, strict=True), 1)
        ),
        queries=tuple(
            SearchQuery(id=f"K{number}", text=f"query {number}", question=f"Q{1 + number % 4}") for number in range(6)
        ),
        sections=("Height", "Measuring", "Harm"),
        methodology="Asking documents.",
        confidence=0.8,
    )


def asking(kind: str, *options: str, **shown: Any) -> OpenQuestion:
    return OpenQuestion(id="1", kind=kind, question="Well?", options=options, shown=shown)


def editor() -> PlanEditor:
    return PlanEditor(asking("approve_plan", "approve", "reject", "modify", "skip", plan=plan().plain()))


def reviewing(kind: str, **shown: Any) -> Approval:
    return Approval(asking(kind, "approve", "reject", "modify", "skip", **shown))


def seen(dialogue: ChoiceDialogue | Approval, width: int = 100) -> str:
    screen = io.StringIO()
    dialogue.show(Console(file=screen, width=width))
    return screen.getvalue()


def outcome(dialogue: ChoiceDialogue | Approval, *lines: str) -> Any:
    """The answer that the last line gives; those before must give none."""
    for line in lines[:-1]:
        assert dialogue.handle_line(line).answer is None, line
    return dialogue.handle_line(lines[-1]).answer


def changed(*lines: str) -> Plan:
    """The plan the engine makes of the answer."""
    answer = outcome(editor(), *lines, "approve")
    assert answer["decision"] == "modify"
    return apply_edits(plan(), parse_edits(answer["edits"]))


# Questions ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("W-02")
@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["2"], "B"),
        (["1,3"], "A; C"),
        (["3 and 1"], "C; A"),
        (["1 1"], "A"),
        (["5"], "A; B; C; D"),
        (["6", "12"], "12"),
        (["since 2015, 3 of them"], "since 2015, 3 of them"),
        (["", "0", "7", "1,9", "4"], "D"),
        ([" All of it "], "All of it"),
    ],
)
def test_an_option_goes_by_its_number_and_own_words_by_themselves(lines: list[str], answer: str) -> None:
    assert outcome(ChoiceDialogue(asking("planning", "A", "B", "C", "D", ALL, CUSTOM)), *lines) == answer


@pytest.mark.requirement("W-02")
def test_several_numbers_are_one_too_many_where_one_option_holds() -> None:
    choice = ChoiceDialogue(asking("planning", "A", "B", "C", "D", CUSTOM))
    assert "Only one" in str(choice.handle_line("1,3").message)
    assert str(choice.handle_line("99").message).startswith("Choose 1 to 5, or write")
    assert choice.handle_line("3").answer == "C"


@pytest.mark.requirement("W-02")
def test_how_to_answer_is_explained_where_it_is_asked_for() -> None:
    several, one = asking("planning", "A", "B", "C", "D", ALL, CUSTOM), asking("planning", "A", "B", "C", "D", CUSTOM)
    assert "1,3" in seen(ChoiceDialogue(several))
    assert "1,3" not in seen(ChoiceDialogue(one))
    for line in ("help", " ? ", ""):
        said = create_dialogue(several).handle_line(line)
        assert (said.answer, str(said.message)) == (
            None, "Choose 1 to 6, several as 1,3, or write your own answer. Ctrl-D leaves the question open.",
        )  # fmt: skip
    assert "Ctrl-D" not in str(ChoiceDialogue(several).handle_line("help").message), "there is none without a terminal"


def test_without_options_a_number_is_an_answer() -> None:
    choice = ChoiceDialogue(asking("clarification"))
    assert str(choice.handle_line(" ").message).startswith("Write your own answer")
    assert choice.handle_line("3").answer == "3"


# Plans -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F-09")
def test_a_plan_is_shown_with_its_sections_numbers_and_terms() -> None:
    shown = seen(editor())
    assert "4 sub-questions, 6 queries, 3 sections" in shown
    assert [line.split() for line in shown.splitlines() if "Height" in line] == [["A", "Height"]]
    assert "1. How high are the tides?" in shown
    assert "4. What harm do they do?" in shown
    assert "approve, reject or skip" in shown
    assert max(map(len, seen(editor(), 40).splitlines())) <= 40


def test_sub_questions_go_by_the_names_that_edits_in_json_use() -> None:
    screen = io.StringIO()
    show_plan(Console(file=screen, width=80), changed("remove 1"), by_id=True)
    assert [line.split()[0] for line in screen.getvalue().splitlines() if "?" in line] == ["Q2", "Q3", "Q4"]


def test_a_section_that_is_its_question_is_shown_once() -> None:
    single = plan().model_copy(
        update={"questions": tuple(q.model_copy(update={"section": q.text}) for q in plan().questions),
                "sections": TEXTS}
    )  # fmt: skip
    screen = io.StringIO()
    show_plan(Console(file=screen, width=80), single)
    assert screen.getvalue().count(TEXTS[2]) == 1
    assert "C  3. Who measures them?" in screen.getvalue()


@pytest.mark.requirement("F-09")
def test_edits_in_words_are_edits_of_the_plan() -> None:
    assert [q.text for q in changed("remove 2").questions] == [TEXTS[0], *TEXTS[2:]]
    assert changed("remove Q2") == changed("remove 2")
    assert order_questions(changed("move 4 1"))[0].text == TEXTS[3]
    assert order_questions(changed("move 3 to 1"))[0].text == TEXTS[2]
    assert changed("reword 3 Who measures the tides today?").questions[2].text == "Who measures the tides today?"
    assert "What do fishermen say?" in {q.text for q in changed("add What do fishermen say?").questions}
    assert changed("section 2 C").questions[1].section == "Harm"
    assert changed("section 2 Reasons").questions[1].section == "Reasons"
    assert "Damage" in changed("rename c Damage").sections
    assert changed("move C A").sections[0] == "Harm"
    assert "Measuring" not in changed("remove B").sections
    assert changed("sources documents, arxiv").sources == ("documents", "arxiv")
    assert changed("budget $0.50").usd == 0.5
    assert changed("words 1,500 words").words == 1500


def test_a_source_that_only_the_settings_name_is_known_where_the_plan_has_it() -> None:
    mine = plan().model_copy(update={"sources": ("arxiv", "our-wiki")})
    asked = asking("approve_plan", "approve", "reject", "modify", "skip", plan=mine.plain())
    answer = outcome(PlanEditor(asked), "sources our-wiki", "approve")
    assert apply_edits(mine, parse_edits(answer["edits"])).sources == ("our-wiki",)


def test_numbers_are_those_on_the_screen_after_every_change() -> None:
    edited = changed("remove 1", "add What do fishermen say of it?", "reword 1 Why are the tides so high?", "move 4 1")
    assert [q.text for q in order_questions(edited)] == [
        "What do fishermen say of it?", "Why are the tides so high?", "Who measures them?", "What harm do they do?",
    ]  # fmt: skip


def test_a_change_can_be_taken_back() -> None:
    dialogue = editor()
    assert [(dialogue.handle_line(line), dialogue.unsent)[1] for line in ("remove 1", "words 500", "undo", "undo")] == [
        1,
        2,
        1,
        0,
    ]
    assert outcome(dialogue, "remove 1", "remove 1", "undo", "undo", "approve") == {"decision": "approve"}
    assert "nothing to take back" in str(dialogue.handle_line("undo").message)
    assert dialogue.plan == plan()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("remove 9", "There is no sub-question 9. They go from 1 to 4."),
        ("remove q0", "There is no sub-question 0"),
        ("remove Z", "There is no section Z. They go from A to C."),
        ("remove it", "Write it like this: remove 2"),
        ("move 1 99", "There is no sub-question 99"),
        ("move 1", "Write it like this: move 3 1"),
        ("reword 1", "Write it like this: reword 2 TEXT"),
        ("add Why?", "at least 4 letters"),
        ("budget much", "Write it like this: budget 0.50"),
        ("budget nan", "A budget is from $0 to $10,000"),
        ("budget -1", "A budget is from $0 to $10,000"),
        ("words 3", "A report has 50 to 20,000 words"),
        ("sources arxiv, nosuch", "There is no source nosuch. There are arxiv, "),
        ("sources arxvi", "did you mean arxiv?"),
        ("aprove", "I do not know “aprove”; did you mean approve?"),
        ("what?", "I do not know “what?”. approve, reject or skip"),
        ("", "help explains"),
    ],
)
def test_what_cannot_be_done_is_explained_and_changes_nothing(line: str, told: str) -> None:
    dialogue = editor()
    said = dialogue.handle_line(line)
    assert told in str(said.message)
    assert said.answer is None
    assert dialogue.handle_line("approve").answer == {"decision": "approve"}


def test_help_lists_every_word() -> None:
    screen = io.StringIO()
    Console(file=screen, width=60).print(editor().handle_line("?").message)
    assert all(word in screen.getvalue() for word in ("approve", "reject [WHY]", "reword 2 TEXT", "undo"))
    assert max(map(len, screen.getvalue().splitlines())) <= 60


def test_the_last_sub_question_stays() -> None:
    dialogue = editor()
    said = [dialogue.handle_line("remove 1") for _ in range(4)]
    assert [bool(one.message) for one in said] == [False, False, False, True]
    assert len(dialogue.plan.questions) == 1


LINES = [
    "remove 1", "move 1 2", "move A B", "remove A", "add What else is there?", "undo", "section 1 New", "section 2 A",
    "rename A B", "reword 1 What is it then?", "words 99999999", "budget -1", "sources", "show",
]  # fmt: skip


@given(st.lists(st.one_of(st.text(max_size=20), st.sampled_from(LINES))))
def test_whatever_is_typed_the_answer_is_one_the_plan_can_take(lines: list[str]) -> None:
    dialogue = editor()
    for line in lines:
        if (said := dialogue.handle_line(line)).answer is not None:
            assert said.answer["decision"] in ("approve", "reject", "skip", "modify")
    answer = dialogue.handle_line("yes").answer
    if answer["decision"] == "modify":
        assert apply_edits(plan(), parse_edits(answer["edits"])) == dialogue.plan


# Other breakpoints -------------------------------------------------------------------------------------

DRAFT = {
    "title": "Tides", "version": 1, "notes": [],
    "sections": [
        {"title": "Height", "role": "body", "sentences": [{"text": "They are 16.3 metres high.", "claims": ["C1"]}]},
        {"title": "Harm", "role": "body", "sentences": []},
    ],
}  # fmt: skip


@pytest.mark.requirement("F-09")
def test_a_decision_carries_its_reason() -> None:
    assert outcome(editor(), "reject too narrow") == {"decision": "reject", "comment": "too narrow"}
    assert outcome(editor(), "skip") == {"decision": "skip"}
    assert outcome(editor(), "Y") == {"decision": "approve"}


@pytest.mark.requirement("F-09", "W-06")
def test_fewer_pages_can_be_fetched() -> None:
    dialogue = reviewing("approve_harvest", pages=120, passages=3, usd=1.25, hosts=["a.org", "b.org"])
    shown = seen(dialogue)
    assert all(words in shown for words in ("120 web pages", "3 passages", "$1.25", "a.org, b.org"))
    answer = outcome(dialogue, "pages many", "pages 20", "without a.org, b.org", "without c.org", "approve")
    assert answer == {"decision": "modify", "pages": 20, "without": ["a.org", "b.org", "c.org"]}


@pytest.mark.requirement("F-09")
def test_claims_can_be_left_out() -> None:
    claims = [{"id": f"C{n}", "text": f"Statement {n}.", "verdict": "not_found", "mark": None} for n in range(1, 31)]
    dialogue = reviewing("approve_claims", claims=claims, disagreements=[], sources=[{}])
    shown = seen(dialogue)
    assert "Statement 20." in shown
    assert "… and 10 more" in shown
    assert "There is no statement C99. They go from C1 to C30." in str(dialogue.handle_line("drop C2 C99").message)
    assert outcome(dialogue, "drop", "drop C99", "drop c2, C25", "approve") == {
        "decision": "modify", "drop": ["C2", "C25"],
    }  # fmt: skip


@pytest.mark.requirement("F-09")
@pytest.mark.parametrize("kind", ["approve_review", "approve_output"])
def test_a_draft_is_sent_back_with_wishes(kind: str) -> None:
    issue = {"severity": "critical", "description": "No year is given.", "fix": "Give it.", "category": "accuracy"}
    dialogue = reviewing(kind, draft=DRAFT, issues=[issue], critique={"score": 6.25, "recommendation": "revise"})
    shown = seen(dialogue)
    assert all(words in shown for words in ("Tides", "16.3 metres", "critical: No year", "6.2 of 10", "B Harm"))
    answer = outcome(dialogue, "fix give the year", "fix be brief", "drop x", "drop B", "title Tides of Fundy", "undo",
                     "title Fundy", "approve")  # fmt: skip
    assert answer == {
        "decision": "modify", "fixes": ["give the year", "be brief"], "drop": ["Harm"], "title": "Fundy",
    }  # fmt: skip


def test_what_a_breakpoint_does_not_offer_cannot_be_said() -> None:
    dialogue = Approval(asking("approve_output", "approve", "reject", "skip", draft=DRAFT))
    assert dialogue.handle_line("fix it all").answer is None
    assert "fix" not in dialogue.hint()
    assert dialogue.handle_line("approve").answer == {"decision": "approve"}


def test_a_breakpoint_of_ones_own_shows_its_fields_and_no_escape_codes() -> None:
    dialogue = create_dialogue(asking("approve_plan", "approve", "modify", confidence=0.4, gate={"reason": "\x1b[31m"}))
    shown = seen(dialogue)
    assert "confidence: 0.4" in shown
    assert "\x1b" not in shown


def test_the_time_left_is_told_in_words() -> None:
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    assert format_deadline(now + timedelta(seconds=30)) == "within 30 seconds"
    assert format_deadline(now + timedelta(minutes=30, seconds=1)) == "within 30 minutes"
    assert format_deadline(now + timedelta(hours=20)).startswith("by ")
    assert format_deadline(now - timedelta(hours=20)) == "within 0 seconds"
