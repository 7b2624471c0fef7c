"""Going back and going on differently, from the command line."""

from pathlib import Path

import pytest

from tests.system.command import Command, Ran

pytestmark = pytest.mark.requirement("W-18")


@pytest.fixture(scope="session")
def thread(office: Command, tides: Ran) -> str:
    return str(tides.json["provenance"]["thread"])


def test_a_thread_tells_its_moments(office: Command, thread: str) -> None:
    told = office("threads", "history", thread)
    lines = told.out.splitlines()
    assert told.code == 0
    assert lines[0].startswith("run ")
    assert "asked: How high are the tides in the Bay of Fundy?" in lines[1]
    assert any(" plan " in line and "planned" in line for line in lines)
    assert "report complete" in lines[-1]


def test_a_state_of_before_is_shown(office: Command, thread: str) -> None:
    planned = next(m for m in office("threads", "history", thread, "--json").json if m["after"] == ["plan"])
    shown = office("threads", "state", thread, "--at", planned["short"])
    assert "next: dispatch" in shown.out
    assert "draft" not in shown.out


@pytest.mark.slow
@pytest.mark.requirement("X-07")
def test_a_fork_is_drawn_and_compared(openassay: Command) -> None:
    made = openassay("research", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json", "--quiet")
    parent = made.json["provenance"]["thread"]
    forked = openassay("threads", "fork", parent, "--words", "50", "--deliverable", "a briefing", "--yes", "--json")
    branch = forked.json["provenance"]["thread"]
    assert forked.code == 0
    assert f"Branch {branch}; to compare them: openassay threads diff {parent} {branch}" in forked.err
    assert f"a branch of thread {parent} from moment" in forked.err
    assert openassay("threads", "show", parent, "--json").json == made.json
    edits = openassay.folder / "edits.json"
    edits.write_text('[{"op": "add", "text": "What raises tides on the Earth?"}]', encoding="utf-8")
    asked_more = openassay("threads", "fork", branch, "--plan", edits, "--json", "--quiet")
    assert any("raises tides" in question["text"] for question in asked_more.json["plan"]["questions"])

    drawn = openassay("threads", "branches", branch).out.splitlines()
    assert [line.count("─") for line in drawn] == [0, 1, 1]
    assert parent in drawn[0]
    assert f"{branch} *  done" in drawn[1]
    assert "another plan, as a briefing, executive style, 50 words, from moment" in drawn[2]

    told = openassay("threads", "diff", parent, asked_more.json["provenance"]["thread"])
    assert told.code == 0
    assert told.out.startswith(f"--- {parent}")
    assert "+ section: What raises tides on the Earth?" in told.out


@pytest.mark.slow
def test_a_replay_ends_as_the_first_time(openassay: Command) -> None:
    first = openassay("ask", "What's happening with Apple?", "--json", "--quiet").json
    parent = first["provenance"]["thread"]
    again = openassay("threads", "replay", parent, "--at", "5", "--json", "--quiet")
    assert again.code == 0
    assert again.json["sections"] == first["sections"]
    assert "They state the same" in openassay("threads", "diff", parent, again.json["provenance"]["thread"]).out


@pytest.mark.slow
def test_wrong_input_is_one_line(office: Command, thread: str, apple: Ran, tmp_path: Path) -> None:
    other = apple.json["provenance"]["thread"]
    [(foreign,)] = office.rows("SELECT max(id) FROM checkpoints WHERE thread = ?", other)
    before = office.threads()
    office("threads", "history", "nosuch").refused(2, "no thread nosuch")
    office("threads", "replay", thread, "--at", foreign).refused(2, f"is of thread {other}, not of {thread}")
    edits = tmp_path / "edits.json"
    edits.write_text('[{"op": "remove", "question": "Q9"}]', encoding="utf-8")
    office("threads", "fork", thread, "--at", "1", "--plan", edits).refused(2, "there was no plan yet")
    office("threads", "fork", thread, "--docs", str(tmp_path / "nowhere")).refused(2, "nowhere")
    assert office.threads() == before
