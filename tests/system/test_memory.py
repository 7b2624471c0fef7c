"""`openassay memory` in processes of its own: what one has been told, the next one knows."""

import pytest

from tests.system.command import Command

pytestmark = pytest.mark.requirement("W-19")
QUESTION = "What is happening with Apple?"


@pytest.mark.slow
def test_what_is_told_once_is_shown_edited_and_forgotten(openassay: Command) -> None:
    empty = openassay("memory").out
    assert "Nothing is remembered about local yet" in empty
    assert 'openassay memory remember "We report in euros"' in empty
    assert openassay("memory", "set", "style", "Executive").out == "style: executive\n"
    assert (
        openassay("memory", "set", "prefer", "https://www.NASA.gov/missions, arxiv").out == "prefer: nasa.gov, arxiv\n"
    )
    assert openassay("memory", "remember", "We report in euros").out == "M1  We report in euros\n"
    assert openassay("memory", "edit", "m1", "We report in Swiss francs").code == 0
    openassay("memory", "forget", "stlye").refused(2, "nothing called 'stlye'", "There are: style, prefer, M1.")
    openassay("memory", "set", "prefr", "x.com").refused(2, "did you mean prefer?", "style, words, prefer")

    shown = openassay("memory").out
    for words in ("style", "executive", "nasa.gov, arxiv", "M1  We report in Swiss francs", "memory.sqlite3"):
        assert words in shown
    assert "\x1b" not in shown
    told = openassay("memory", "--json").json
    assert told["user"] == "local"
    assert told["preferences"]["prefer"] == ["nasa.gov", "arxiv"]
    assert [fact["text"] for fact in told["facts"]] == ["We report in Swiss francs"]

    assert openassay("memory", "forget", "style").code == 0
    assert openassay("memory", "--json").json["preferences"]["style"] is None


@pytest.mark.slow
def test_another_user_sees_nothing_of_it(openassay: Command) -> None:
    openassay("memory", "remember", "We report in euros")
    other = {"OPENASSAY_USER": "bob"}
    assert "Nothing is remembered about bob" in openassay("memory", env=other).out
    openassay("memory", "forget", "M1", env=other).refused(2, "no fact M1", "There are none")


@pytest.mark.slow
def test_all_is_forgotten_only_when_that_is_meant(openassay: Command) -> None:
    openassay("memory", "remember", "We report in euros")
    for answer, left in (("n", 1), ("y", 0)):
        with openassay.typed("memory", "forget", "all") as terminal:
            terminal.expect("Forget everything about local?")
            terminal.type(answer)
            assert terminal.ends() == 0
        assert len(openassay("memory", "--json").json["facts"]) == left


@pytest.mark.slow
def test_research_keeps_to_it_and_the_command_line_comes_first(openassay: Command) -> None:
    openassay("memory", "set", "avoid", "demo")
    avoided = openassay("ask", QUESTION, "--json", "--quiet")
    assert avoided.code == 5
    assert "Not searched, because you avoid it: demo." in avoided.json["notices"]
    assert openassay("ask", QUESTION, "--source", "demo", "--json", "--quiet").code == 0


def test_where_nothing_is_kept_that_is_said(openassay: Command) -> None:
    kept_nowhere = {"OPENASSAY_PERSISTENCE__BACKEND": "memory"}
    openassay("memory", "remember", "We report in euros", env=kept_nowhere).refused(2, "persistence.backend")
