"""Settings, options and data that are wrong: said in a line, with the right exit code."""

import os
import shutil
from pathlib import Path

import pytest

from tests.system.command import Command, Ran, without_privileges

ASK_APPLE = ("ask", "What's happening with Apple?")


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("depth: [", "cannot read"),
        ("dept: quick", "did you mean depth"),
        ("- a list", "keys with values"),
        ("style_guide: poem", "poem"),
    ],
)
def test_a_wrong_configuration_file(openassay: Command, text: str, words: str) -> None:
    (openassay.folder / "config.yaml").write_text(text, encoding="utf-8")
    openassay(*ASK_APPLE).refused(2, words)
    assert not openassay.data.exists()


@pytest.mark.requirement("L-10")
def test_a_binary_configuration_file(openassay: Command) -> None:
    (openassay.folder / "config.yaml").write_bytes(b"\xff\xfe\x00\x01")
    openassay(*ASK_APPLE).refused(2, "cannot read the configuration")


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OPENASSAY_DETPH", "quick", "OPENASSAY_DEPTH"),
        ("OPENASSAY_TARGET_LENGTH", "many", "many"),
        ("OPENASSAY_CONFIG", "none.yaml", "none"),
    ],
)
def test_a_wrong_variable(openassay: Command, name: str, value: str, words: str) -> None:
    openassay(*ASK_APPLE, env={name: value}).refused(2, words)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--depth", "deep", "comprehensive"), ("--words", "5", "50"), ("--words", "many", "integer"),
     ("--mode", "x", "plan"), ("--style", "poem", "executive"), ("--nonsense", "1", "--nonsense")],
)  # fmt: skip
def test_a_wrong_option_names_itself(openassay: Command, option: str, value: str, words: str) -> None:
    refused = openassay("research", "What's happening with Apple?", option, value)
    assert refused.code == 2
    assert refused.stdout == b""
    assert option in refused.err
    assert words in refused.err
    assert not openassay.data.exists()


@pytest.mark.slow
def test_an_unknown_source_is_named_with_those_there_are(openassay: Command) -> None:
    openassay(*ASK_APPLE, "--source", "nosuch").refused(2, "nosuch", "documents", "demo")
    openassay(*ASK_APPLE, "--source", "documents").refused(2, "--docs")
    assert openassay.threads() == []


def test_a_data_directory_that_is_a_file(openassay: Command) -> None:
    openassay.data.write_text("not a folder", encoding="utf-8")
    openassay(*ASK_APPLE).refused(1, "data directory", "OPENASSAY_DATA_DIR")


@pytest.mark.slow
def test_a_data_directory_that_may_not_be_written(openassay: Command) -> None:
    openassay.data.mkdir()
    openassay.data.chmod(0o555)
    refused = openassay(*ASK_APPLE, prefix=without_privileges())
    openassay.data.chmod(0o755)
    refused.refused(1, str(openassay.data))
    assert list(openassay.data.iterdir()) == []


@pytest.fixture
def damaged(office: Command, tides: Ran, tmp_path: Path) -> Command:
    """A copy of the shared data, for a test to damage."""
    shutil.copytree(office.data, tmp_path / "damaged")
    for leftover in (tmp_path / "damaged").rglob("*.sqlite3-*"):
        leftover.unlink()
    return Command(office.folder, tmp_path / "damaged")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openassay.sqlite3", "memory.sqlite3"])
def test_a_database_of_garbage_is_one_line(damaged: Command, name: str) -> None:
    garbage = os.urandom(5000)
    (damaged.data / name).write_bytes(garbage)
    damaged(*ASK_APPLE).refused(1, name, "not a database", "Move ", " away")
    assert (damaged.data / name).read_bytes() == garbage, "what may be rescued is left alone"


@pytest.mark.slow
def test_an_index_of_garbage_is_one_line_that_says_what_to_do(damaged: Command) -> None:
    (index,) = (damaged.data / "libraries").glob("*.sqlite3")
    index.write_bytes(os.urandom(5000))
    damaged("ask", "How high are the tides?", "--docs", "tiny").refused(1, index.name, "Delete it")
    index.unlink()
    assert damaged("ask", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json").code == 0


@pytest.mark.slow
def test_vectors_of_garbage_are_put_aside_with_a_notice(damaged: Command) -> None:
    (damaged.data / "vectors.sqlite3").write_bytes(os.urandom(5000))
    asked = damaged("ask", "Tell me about the tides in the Bay of Fundy", "--docs", "tiny", "--json")
    assert asked.code == 0
    assert "vector cache was corrupt" in asked.err
    assert asked.json["status"] == "complete"
