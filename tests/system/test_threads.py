"""Looking at what was done: threads, their logs, the graph, the doctor."""

from pathlib import Path

import pytest

from tests.system.command import Command, Ran


@pytest.mark.slow
def test_threads_are_listed(office: Command, tides: Ran) -> None:
    listed = office("threads")
    thread = tides.json["provenance"]["thread"]
    assert listed.code == 0
    assert any(line.startswith(f"{thread}  done") for line in listed.out.splitlines())
    assert len(office("threads", "--limit", "1").out.splitlines()) == 2


@pytest.mark.slow
def test_a_thread_shows_its_runs_and_its_report(office: Command, tides: Ran) -> None:
    thread = tides.json["provenance"]["thread"]
    shown = office("threads", "show", thread)
    assert "done" in shown.out.splitlines()[0]
    assert "16.3 metres" in shown.out
    assert "\x1b" not in shown.out
    assert office("threads", "show", thread, "--json").json == tides.json


@pytest.mark.requirement("F-01")
def test_the_log_has_every_stage(office: Command, tides: Ran) -> None:
    log = office("threads", "log", tides.json["provenance"]["thread"]).out
    for stage in ("understand", "gate", "plan", "dispatch", "search", "fuse", "read", "verify", "write", "publish"):
        assert f"enter     {stage}" in log
        assert f"leave     {stage}" in log


@pytest.mark.slow
def test_a_deleted_thread_is_gone(openassay: Command) -> None:
    made = openassay("ask", "What's happening with Apple?", "--json", "--quiet")
    thread = made.json["provenance"]["thread"]
    with openassay.typed("threads", "delete", thread) as terminal:
        terminal.expect("for good?")
        terminal.type("n")
        assert terminal.ends() == 1
    assert openassay.threads() == [thread]
    openassay("threads", "delete", thread).refused(2, "nobody is there to be asked")
    assert openassay("threads", "delete", thread, "--yes").code == 0
    assert openassay.threads() == []
    openassay("threads", "show", thread).refused(2, thread)
    assert "No threads yet" in openassay("threads").err


@pytest.mark.slow
@pytest.mark.parametrize("words", [("show",), ("log",), ("delete",)])
def test_an_unknown_thread_is_one_line(office: Command, words: tuple[str, ...]) -> None:
    office("threads", *words, "nosuch").refused(2, "no thread nosuch")


@pytest.mark.slow
def test_markup_in_a_title_is_only_text(openassay: Command) -> None:
    question = "What is [/] happening [bold]with[/bold] Apple :apple: ?"
    asked = openassay("ask", question)
    assert asked.code == 0
    assert question in asked.err
    assert openassay("threads").out.endswith(f"  {question}\n")


@pytest.mark.slow
def test_a_new_question_goes_on_with_a_thread(office: Command, apple: Ran) -> None:
    thread = apple.json["provenance"]["thread"]
    again = office("ask", "What about their stock?", "--thread", thread, "--json", "--quiet")
    assert again.code == 0
    assert again.json["provenance"]["thread"] == thread
    assert "Apple" in again.json["title"]
    office("ask", "What about their stock?", "--thread", "nosuch").refused(2, "nosuch")


@pytest.mark.slow
@pytest.mark.requirement("F-15")
def test_the_graph_is_drawn_from_the_graph(office: Command) -> None:
    drawn = office("admin", "graph")
    assert drawn.out.startswith("---")
    assert all(node in drawn.out for node in ("understand", "clarify", "question", "verify", "fallback"))


@pytest.mark.slow
def test_the_doctor_finds_this_machine_well(office: Command) -> None:
    found = office("doctor", "--json")
    assert found.code == 0, found.out
    assert all(finding["good"] for finding in found.json)
    assert "BAD" not in office("doctor").out


def test_the_doctor_names_what_is_wrong(openassay: Command) -> None:
    (openassay.folder / "config.yaml").write_text("depth: qick\n", encoding="utf-8")
    found = openassay("doctor")
    assert found.code == 1
    assert "BAD  settings" in found.out
    assert "qick" in found.out


@pytest.mark.slow
@pytest.mark.requirement("C-03", "L-01")
def test_a_conversation_through_a_pipe_keeps_its_subject(openassay: Command) -> None:
    told = openassay(
        "chat", stdin=b"What's happening with Apple?\n\nWhat about their stock?\n\xff\xfe\nnevermind\n/exit\n"
    )
    (thread,) = openassay.threads()
    assert told.code == 0
    assert " ".join(told.out.split()).count("Apple shares (AAPL) trade at $195") == 2
    assert "not readable text" in told.err
    assert "nothing was spent" in told.out
    assert f"openassay chat --thread {thread}" in told.err
    assert openassay.statuses(thread) == ["done"] * 3


def test_nothing_is_left_in_the_working_folder(office: Command, tides: Ran, apple: Ran) -> None:
    assert {path.name for path in Path(office.folder).iterdir()} <= {"tiny", "data"}
