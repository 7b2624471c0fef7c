"""`openassay chat` as a person meets it: questions, commands, interruptions."""

import json
import shutil
import stat
from pathlib import Path

import pytest

from tests.system.command import LIBRARY, Command, Terminal

SKY = "How fast is the universe expanding, and why do the measurements disagree?"


def say(terminal: Terminal, line: str, *expected: str) -> None:
    """At the prompt; what is expected comes before the next one."""
    terminal.expect("you> ")
    terminal.type(line)
    for words in expected:
        terminal.expect(words)


def leave(terminal: Terminal) -> int:
    terminal.expect("you> ")
    terminal.press("D")
    return terminal.ends()


@pytest.mark.slow
@pytest.mark.requirement("C-03", "C-11", "L-01")
def test_a_conversation_keeps_its_thread_and_opens_what_is_behind_an_answer(openassay: Command) -> None:
    with openassay.typed("chat") as terminal:
        terminal.expect("Ask a question")
        say(terminal, "What's happening with Apple?", "trade at $195", "/claim C1 or /source 1")
        say(terminal, "What about their stock?", "trade at $195")
        say(terminal, "/source 1", "S1 Apple Inc.", "supports ", "C1 ")
        say(terminal, "/claim c1", "supported, confidence")
        say(terminal, "/sources", "S1 Apple Inc.", "S3 Apple Inc.")
        say(terminal, "/plan", "1 sub-question")
        say(terminal, "/source 99", "there is no source S99", "S1, S2, S3")
        say(terminal, "/sorces", "Did you mean /sources?")
        say(terminal, "/resume", "already answered", "Ask a new one.")
        say(terminal, "Hello there!", "Hello! Ask a question")
        terminal.expect("you> ")
        terminal.press("C")
        terminal.expect("Ctrl-C again, or Ctrl-D")
        terminal.expect("you> ")
        terminal.press("C")
        terminal.expect("This conversation is thread ")
        assert terminal.ends() == 0
    (thread,) = openassay.threads()
    assert openassay.statuses(thread) == ["done"] * 3, "what begins with a slash is never researched"
    assert terminal.screen.count("No documents were given") == 1, "what holds for all questions is noted once"
    assert "cancelled" not in terminal.screen
    assert "Reading your documents" not in terminal.screen
    assert "\x1b[7m" in terminal.raw, "the passage is highlighted in its context"


@pytest.mark.slow
@pytest.mark.requirement("C-11", "W-19")
def test_threads_are_left_and_opened_and_never_mix(openassay: Command) -> None:
    with openassay.typed("chat") as terminal:
        say(terminal, "/plan", "nothing has been asked yet")
        say(terminal, "What's happening with Tesla?", "Tesla shares (TSLA)")
        first = openassay.threads()[0]
        say(terminal, "/new please", "/new takes no words after it, such as “please”")
        say(terminal, "/new", "A new conversation")
        say(terminal, "What about their stock?", "?", "> ")
        terminal.type("Apple")
        terminal.expect("Apple shares (AAPL)")
        say(terminal, "/threads", first)
        say(terminal, "/open nosuch", "no thread nosuch")
        say(terminal, f"/open {first[:8]}", f"thread {first}, 1 question so far")
        say(terminal, "//What about their stock?", "Tesla shares (TSLA)")
        say(terminal, "/remember We report in euros", "Remembered as ")
        say(terminal, "/memory", "We report in euros")
        say(terminal, "/memory set style executive", "style: executive")
        say(terminal, "/memory forget nothing", "nothing called 'nothing' is remembered", "There are: style, M1.")
        say(terminal, "/memory forget m1", "M1 is forgotten.")
        say(terminal, "/memory improve", "is not understood", "/memory forget M1")
        terminal.expect("you> ")
        terminal.type("quit")
        assert terminal.ends() == 0
    assert [openassay.statuses(thread) for thread in openassay.threads()] == [["done", "done"], ["done"]]


@pytest.mark.slow
def test_what_is_said_of_depth_mode_documents_and_money_holds_from_then_on(openassay: Command) -> None:
    with openassay.typed("chat", width=60) as terminal:
        say(terminal, "/docs nowhere", "nowhere does not exist")
        say(terminal, "/docs tiny", "asked of tiny")
        say(terminal, "/depth deep", "quick|standard|comprehensive")
        say(terminal, "/depth standard", "depth standard")
        say(terminal, "/budget much", "much is not an amount")
        say(terminal, "/budget 0.25", "$0.25 at most")
        say(terminal, "/mode plan", "asked first")
        say(terminal, "How high are the tides in the Bay of Fundy?", "(1 of ", "Custom", "> ")
        terminal.type("/source 1")
        terminal.expect("Answer first, or Ctrl-D leaves it open.")
        terminal.type("/help")
        terminal.expect("An answer may begin with //.")
        terminal.expect("> ")
        terminal.press("D")
        terminal.expect("/resume asks it again")
        say(terminal, "/resume", "(1 of ", "> ")
        terminal.type("/mode auto")
        terminal.expect("16.3 metres")
        say(terminal, "/budget", "$0.00 spent in this conversation")
        say(terminal, "/plan", "standard: ", "$0.25 at most")
        assert leave(terminal) == 0
    (run,) = openassay.rows("SELECT options FROM runs")
    chosen = json.loads(run[0])
    assert (chosen["depth"], chosen["usd"]) == ("standard", 0.25)
    assert [Path(path).name for path in chosen["docs"]] == ["tiny"]
    told = [line for line in terminal.screen.splitlines() if "> " not in line[:5]]  # prompts are drawn twice
    assert max(map(len, told)) <= 60


@pytest.mark.slow
def test_an_answer_is_written_to_a_file_and_a_file_is_not_lost(openassay: Command) -> None:
    kept = openassay.folder / "kept.md"
    kept.write_text("mine", encoding="utf-8")
    with openassay.typed("chat") as terminal:
        say(terminal, "/export new.md", "nothing has been asked yet")
        say(terminal, "What's happening with Apple?", "trade at $195")
        say(terminal, "/export new.html", "Report written to new.html")
        say(terminal, "/export new.xls", "OpenAssay writes .md, ")
        say(terminal, "/export tiny", "tiny is a folder")
        say(terminal, "/export plain", "Report written to plain.md")
        say(terminal, "/export kept.md", "kept.md exists. Replace it?")
        terminal.type("")
        terminal.expect("Nothing was written.")
        assert kept.read_text(encoding="utf-8") == "mine"
        say(terminal, "/export kept.md", "Replace it?")
        terminal.type("y")
        terminal.expect("Report written to kept.md")
        assert leave(terminal) == 0
    assert kept.read_text(encoding="utf-8").startswith("# ")
    assert (openassay.folder / "new.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.slow
@pytest.mark.requirement("C-11", "F-09", "W-02")
def test_an_open_question_comes_first_and_lines_are_remembered(openassay: Command) -> None:
    with openassay.typed("chat") as terminal:
        say(terminal, "Tell me about the company", "Which company do you mean?", "> ")
        terminal.press("D")
        terminal.expect("stays open")
        say(terminal, "/resume", "Which company do you mean?", "> ")
        terminal.type("/exit")
        terminal.expect("openassay resume ")
        assert terminal.ends() == 3
    (thread,) = openassay.threads()
    with openassay.typed("chat", "--thread", thread) as terminal:
        terminal.expect(f"thread {thread}, 1 question so far")
        terminal.expect("Which company do you mean?")
        terminal.expect("> ")
        terminal.type("Apple")
        terminal.expect("trade at $195")
        terminal.expect("you> ")
        terminal.press("P")  # the line before, which was typed in another session
        terminal.expect("/resume")
        terminal.press("C")
        terminal.press("D")
        assert terminal.ends() == 0
    assert openassay.statuses(thread) == ["done"]
    assert stat.S_IMODE((openassay.data / "chat_history").stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.requirement("L-01")
def test_control_c_stops_a_question_and_not_the_conversation(openassay: Command) -> None:
    (openassay.folder / "sky").mkdir()
    for file in sorted(LIBRARY.glob("*.md"))[:5]:
        shutil.copy(file, openassay.folder / "sky")
    with openassay.typed("chat", "--docs", Path("sky")) as terminal:
        say(terminal, "/depth standard", "depth standard")
        say(terminal, SKY, "Search ")
        terminal.press("C")
        terminal.expect("Stopped. /resume resumes it.")
        say(terminal, "/resume", "statements checked", "/help")
        assert leave(terminal) == 0
    (thread,) = openassay.threads()
    assert openassay.statuses(thread) == ["done"]


@pytest.mark.slow
def test_commands_come_through_a_pipe_too(openassay: Command) -> None:
    lines = (
        "/help\n/sorces\n//What's happening with Apple?\n/source S1\n/export kept.md\n/export kept.md\nexit\nnever\n"
    )
    told = openassay("chat", stdin=lines.encode())
    assert told.code == 0, told.err
    assert "/export FILE" in told.out
    assert "Did you mean /sources?" in told.err
    assert "trade at $195" in " ".join(told.out.split())
    assert "the file exists" in told.err
    assert (openassay.folder / "kept.md").read_text(encoding="utf-8").startswith("# ")
    assert [openassay.statuses(thread) for thread in openassay.threads()] == [["done"]]
    assert b"\x1b" not in told.stdout + told.stderr
