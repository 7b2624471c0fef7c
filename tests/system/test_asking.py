"""A run's questions: put to a person at a terminal, left open or answered by default without one."""

import time

import pytest

from tests.system.command import LIBRARY, Command

QUESTION = "How high are the tides in the Bay of Fundy?"
PLANNED = ("research", QUESTION, "--docs", "tiny", "--mode", "plan")


@pytest.mark.requirement("L-01")
def test_a_clarification_is_asked_and_answered_at_a_terminal(assay: Command) -> None:
    with assay.typed("ask", "Tell me about the company") as terminal:
        terminal.expect("Which company do you mean?")
        terminal.type("")
        terminal.expect("Write your own answer")
        terminal.type("Apple")
        terminal.expect("Apple shares (AAPL) trade at $195")
        assert terminal.ends() == 0
    (thread,) = assay.threads()
    assert f"assay passage {thread} C" in terminal.screen
    assert assay.statuses(thread) == ["done"]


@pytest.mark.requirement("L-01")
def test_planning_questions_are_answered_by_number_or_in_words(assay: Command) -> None:
    with assay.typed(*PLANNED) as terminal:
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
    (thread,) = assay.threads()
    assert terminal.screen.count("Documents ") == 1 + terminal.screen.count("0 new or changed")
    assert "Since 2015" in assay("threads", "log", thread).out + terminal.screen


def test_control_c_and_control_d_at_a_prompt_leave_the_question_open(assay: Command) -> None:
    with assay.typed(*PLANNED) as terminal:
        terminal.expect("> ")
        time.sleep(0.5)  # as a person would: a signal between the prompt and the first read is seen only by the next
        terminal.press("C")
        terminal.expect("Stopped. Go on with: assay resume ")
        assert terminal.ends() == 130
    (thread,) = assay.threads()
    assert assay.statuses(thread) == ["waiting"]
    with assay.typed("resume", thread) as terminal:
        terminal.expect("> ")
        terminal.press("D")
        terminal.expect("a question is open")
        assert terminal.ends() == 3
    assert assay.statuses(thread) == ["waiting"]


def test_plan_mode_without_a_terminal_exits_3_and_prints_the_question(assay: Command) -> None:
    opened = assay(*PLANNED)
    (thread,) = assay.threads()
    assert opened.code == 3
    assert opened.stdout == b""
    assert "a question is open: " in opened.err
    assert "- All" in opened.err
    assert f"assay resume {thread}" in opened.err
    assert assay("resume", thread, "--json").code == 3, "still open, and nothing is done twice"
    with assay.typed("resume", thread) as terminal:
        for number in range(1, 5):
            terminal.expect(f"({number} of ")
            terminal.type("1")
            if f"({number} of {number})" in terminal.screen:
                break
        terminal.expect("16.3 metres")
        assert terminal.ends() == 0


def test_yes_takes_the_defaults_even_in_plan_mode(assay: Command) -> None:
    done = assay(*PLANNED, "--yes", "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "complete"


@pytest.mark.requirement("L-01")
def test_progress_is_live_at_a_terminal_and_fits_it(assay: Command) -> None:
    with assay.typed("research", QUESTION, "--docs", LIBRARY, width=60) as terminal:
        terminal.expect("Searching")
        terminal.expect("Done")
        terminal.ends()
    assert "⠋" in terminal.raw or "⠙" in terminal.raw, "a moving line tells what is at work"
    assert max(map(len, terminal.screen.splitlines())) <= 60


@pytest.mark.requirement("C-03", "L-01")
def test_a_conversation_at_a_terminal(assay: Command) -> None:
    with assay.typed("chat") as terminal:
        terminal.expect("you> ")
        terminal.type("What's happening with Apple?")
        terminal.expect("trade at $195")
        terminal.expect("you> ")
        terminal.type("What about their stock?")
        terminal.expect("trade at $195")
        terminal.expect("you> ")
        time.sleep(0.5)
        terminal.press("C")
        terminal.expect("This conversation is thread ")
        assert terminal.ends() == 0
    (thread,) = assay.threads()
    assert assay.statuses(thread) == ["done", "done"]
