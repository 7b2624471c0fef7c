"""A run's questions: put to a person at a terminal, left open or answered by default without one."""

import pytest

from tests.system.command import LIBRARY, Command

QUESTION = "How high are the tides in the Bay of Fundy?"
PLANNED = ("research", QUESTION, "--docs", "tiny", "--mode", "plan")


@pytest.mark.slow
@pytest.mark.requirement("L-01")
def test_a_clarification_is_asked_and_answered_at_a_terminal(openassay: Command) -> None:
    with openassay.typed("ask", "Tell me about the company") as terminal:
        terminal.expect("Which company do you mean?")
        terminal.type("")
        terminal.expect("Write your own answer")
        terminal.type("/exit")
        terminal.expect("Commands with a slash belong to openassay chat")
        terminal.type("Apple")
        terminal.expect("Apple shares (AAPL) trade at $195")
        assert terminal.ends() == 0
    (thread,) = openassay.threads()
    assert f"openassay threads passage {thread} C" in terminal.screen
    assert openassay.statuses(thread) == ["done"]


@pytest.mark.slow
@pytest.mark.requirement("L-01", "W-02")
def test_planning_questions_are_answered_by_number_or_in_words(openassay: Command) -> None:
    with openassay.typed(*PLANNED) as terminal:
        terminal.expect("(1 of ")
        terminal.type("99")
        terminal.expect("Choose 1 to ")
        terminal.type("1")
        terminal.expect("(2 of ")
        terminal.expect("Custom")
        terminal.type(f"{terminal.screen.rsplit('. Custom', 1)[0].rsplit(None, 1)[-1]}")
        terminal.expect("Your answer: ")
        terminal.type("Since 2015")
        asked = 2
        while f"({asked} of {asked})" not in terminal.screen:
            asked += 1
            terminal.expect(f"({asked} of ")
            terminal.type("2")
        terminal.expect("16.3 metres")
        assert terminal.ends() == 0
    (thread,) = openassay.threads()
    assert terminal.screen.count("Documents ") == 1 + terminal.screen.count("0 new or changed")
    assert "Since 2015" in openassay("threads", "log", thread).out + terminal.screen


@pytest.mark.slow
def test_control_c_and_control_d_at_a_prompt_leave_the_question_open(openassay: Command) -> None:
    with openassay.typed(*PLANNED) as terminal:
        terminal.expect("> ")
        for letter in "half":
            terminal.press(chr(ord(letter) + 64))
        terminal.expect("half")
        terminal.press("C")  # clears the line
        terminal.press("C")
        terminal.expect("Stopped. Resume it with: openassay resume ")
        assert terminal.ends() == 130
    (thread,) = openassay.threads()
    assert openassay.statuses(thread) == ["waiting"]
    with openassay.typed("resume", thread) as terminal:
        terminal.expect("> ")
        terminal.press("D")
        terminal.expect("a question is open")
        terminal.expect(f"openassay review answer {thread}")
        assert terminal.ends() == 3
    assert openassay.statuses(thread) == ["waiting"]


@pytest.mark.slow
def test_plan_mode_without_a_terminal_exits_3_and_prints_the_question(openassay: Command) -> None:
    opened = openassay(*PLANNED)
    (thread,) = openassay.threads()
    assert opened.code == 3
    assert opened.stdout == b""
    assert "a question is open: " in opened.err
    assert "- All" in opened.err
    assert f"openassay resume {thread}" in opened.err
    assert openassay("resume", thread, "--json").code == 3, "still open, and nothing is done twice"
    with openassay.typed("resume", thread) as terminal:
        for number in range(1, 5):
            terminal.expect(f"({number} of ")
            terminal.type("1")
            if f"({number} of {number})" in terminal.screen:
                break
        terminal.expect("16.3 metres")
        assert terminal.ends() == 0


@pytest.mark.slow
def test_yes_takes_the_defaults_even_in_plan_mode(openassay: Command) -> None:
    done = openassay(*PLANNED, "--yes", "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "complete"


@pytest.mark.slow
@pytest.mark.requirement("L-01")
def test_progress_is_live_at_a_terminal_and_fits_it(openassay: Command) -> None:
    with openassay.typed("research", QUESTION, "--docs", LIBRARY, width=60) as terminal:
        terminal.expect("Searching")
        terminal.expect("Done")
        terminal.ends()
    assert "⠋" in terminal.raw or "⠙" in terminal.raw, "a moving line tells what is at work"
    assert max(map(len, terminal.screen.splitlines())) <= 60


@pytest.mark.slow
@pytest.mark.requirement("W-02", "F-09")
def test_a_plan_is_changed_in_words_and_carried_out_as_changed(openassay: Command) -> None:
    (openassay.folder / "config.yaml").write_text("hitl_after_planning: true\n", encoding="utf-8")
    with openassay.typed("research", "Why are the tides in the Bay of Fundy so high?", "--docs", "tiny") as terminal:
        terminal.expect("Is this plan what you want?")
        terminal.expect("1. Why are the tides")
        terminal.expect("Answer within 30 minutes, else the run ends with what there is.")
        terminal.expect("plan> ")
        terminal.type("remove 99")
        terminal.expect("There is no sub-question 99")
        terminal.expect("plan> ")
        terminal.type("reword 2 Who measured the tides at Saint John?")
        terminal.expect("2. Who measured the tides at Saint John?")
        terminal.expect("plan> ")
        terminal.type("sources nosuch")
        terminal.expect("There is no source nosuch")
        terminal.expect("plan> ")
        terminal.type("sources demo")
        terminal.expect("2 changes of yours")
        terminal.expect("plan> ")
        terminal.press("D")
        terminal.expect("2 changes of yours were not sent.")
        assert terminal.ends() == 3
    (thread,) = openassay.threads()
    with openassay.typed("resume", thread) as terminal:
        terminal.expect("plan> ")
        terminal.type("reword 2 Who measured the tides at Saint John?")
        terminal.expect("plan> ")
        terminal.type("approve")
        terminal.expect("Who measured the tides at Saint John?: ")
        assert terminal.ends() == 0
    plan = openassay("threads", "show", thread, "--json").json["plan"]
    assert plan["questions"][1]["text"] == "Who measured the tides at Saint John?"
    assert plan["edited"]


@pytest.mark.slow
@pytest.mark.requirement("F-09")
@pytest.mark.parametrize(("goes_on", "code"), [(True, 0), (False, 5)])
def test_a_prompt_is_left_when_time_is_up(openassay: Command, goes_on: bool, code: int) -> None:
    terms = f"{{plan_timeout: 2, plan_auto_approve: {str(goes_on).lower()}}}"
    (openassay.folder / "config.yaml").write_text(
        f"hitl_after_planning: true\nbreakpoints: {terms}\n", encoding="utf-8"
    )
    with openassay.typed("research", QUESTION, "--docs", "tiny") as terminal:
        terminal.expect("plan> ")
        terminal.expect("Time is up: the run " + ("continues" if goes_on else "ends with what there is"))
        assert terminal.ends() == code
    (thread,) = openassay.threads()
    assert openassay.statuses(thread) == ["done"]
    assert ("16.3 metres" in terminal.screen) == goes_on


@pytest.mark.slow
@pytest.mark.requirement("F-09")
def test_a_rejected_plan_ends_the_run_and_its_reason_is_kept(openassay: Command) -> None:
    (openassay.folder / "config.yaml").write_text("hitl_after_planning: true\n", encoding="utf-8")
    with openassay.typed("research", QUESTION, "--docs", "tiny") as terminal:
        terminal.expect("plan> ")
        terminal.type("reject too narrow by half")
        terminal.expect("too narrow by half")
        assert terminal.ends() == 5
    assert openassay.statuses(openassay.threads()[0]) == ["done"]
