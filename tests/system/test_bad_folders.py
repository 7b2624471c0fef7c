"""Folders and files that cannot be read: one line, or a note about what was left out."""

import os
import threading
from pathlib import Path

import pytest

from tests.system.command import Command, without_privileges
from tests.system.conftest import write_docs

QUESTION = "How high are the tides in the Bay of Fundy?"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "does not exist"),
        ("no\nwhere \x1b[31m", "no\\nwhere \\x1b[31m does not exist"),
        (b"no\xffwhere", "does not exist"),
        ("/dev/null", "not a kind of file"),
    ],
)
def test_a_path_that_cannot_be_read_is_one_line(openassay: Command, path: str | bytes, words: str) -> None:
    openassay("ask", QUESTION, "--docs", path).refused(2, words)
    assert openassay.threads() == []


def test_a_folder_without_documents_is_one_line(openassay: Command) -> None:
    (openassay.folder / "empty").mkdir()
    openassay("ask", QUESTION, "--docs", "empty").refused(2, "The folder is empty", ".pdf")
    (openassay.folder / "empty" / "program.exe").write_bytes(b"MZ")
    openassay("ask", QUESTION, "--docs", "empty").refused(2, "program.exe", "not a kind of file")
    assert openassay.threads() == []


@pytest.mark.slow
def test_a_folder_that_may_not_be_read_is_one_line(openassay: Command) -> None:
    locked = write_docs(openassay.folder / "locked")
    locked.chmod(0)
    refused = openassay("ask", QUESTION, "--docs", "locked", prefix=without_privileges())
    locked.chmod(0o755)
    refused.refused(2, "locked cannot be read", "permission")
    assert openassay.threads() == []


@pytest.mark.slow
def test_what_cannot_be_read_is_left_out_and_said_to_be(openassay: Command) -> None:
    folder = write_docs(openassay.folder / "mixed docs – ünïcode\nand more")
    with (folder / "huge.txt").open("wb") as huge:
        huge.truncate(200_000_000)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\n" + os.urandom(2000))
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "around").symlink_to(".")
    (folder / "gone.md").symlink_to("nowhere.md")
    (folder / "locked.md").write_text("Secret tides.", encoding="utf-8")
    (folder / "locked.md").chmod(0)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "escape\x1b[2J.txt").write_bytes(b"")
    asked = openassay("ask", QUESTION, "--docs", folder, "--json", prefix=without_privileges())
    assert asked.code == 0, asked.err
    assert "16.3" in asked.out
    log = openassay("threads", "log", asked.json["provenance"]["thread"]).out
    reasons = {
        "huge.txt": "too large (200 MB; the limit is 50 MB)", "broken.pdf": "", "loop.md": "", "gone.md": "",
        "locked.md": "no permission", "picture.png": "not a kind of file", "empty.txt": "holds no text",
    }  # fmt: skip
    for name, reason in reasons.items():
        for place in (log, asked.err):
            assert any(name in line and reason in line for line in place.splitlines() if "skip" in line), name
    assert b"\x1b" not in asked.stderr, "a file's name is shown, never obeyed"


@pytest.mark.slow
def test_a_file_may_vanish_while_its_folder_is_read(openassay: Command) -> None:
    folder = write_docs(openassay.folder / "many")
    for number in range(400):
        (folder / f"z{number:03}.txt").write_text(f"Harbour {number} has a pier of {number} metres.", encoding="utf-8")
    stop = threading.Event()

    def take_away() -> None:
        for number in range(399, -1, -1):
            if stop.wait(0.005):
                return
            (folder / f"z{number:03}.txt").unlink()

    thief = threading.Thread(target=take_away)
    thief.start()
    try:
        asked = openassay("ask", QUESTION, "--docs", "many", "--json")
    finally:
        stop.set()
        thief.join()
    assert asked.code == 0, asked.err
    assert "16.3" in asked.out


def test_only_unreadable_documents_end_in_one_line(openassay: Command) -> None:
    (openassay.folder / "bad").mkdir()
    (openassay.folder / "bad" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing of the kind")
    asked = openassay("ask", QUESTION, "--docs", "bad", "--quiet")
    asked.refused(asked.code, "broken.pdf")
    assert asked.code == 2


@pytest.mark.slow
def test_a_changed_folder_is_read_again_and_an_unchanged_one_is_not(openassay: Command) -> None:
    assert "2 files, 2 new or changed" in openassay("ask", QUESTION, "--docs", "tiny").err
    assert "2 files, 0 new or changed" in openassay("ask", QUESTION, "--docs", "tiny").err
    (openassay.folder / "tiny" / "tides.md").unlink()
    gone = openassay("ask", QUESTION, "--docs", "tiny", "--json")
    assert gone.code == 5
    assert "1 file, 0 new or changed" in gone.err


@pytest.mark.slow
@pytest.mark.requirement("L-01")
def test_docs_may_be_repeated_and_name_files(openassay: Command) -> None:
    asked = openassay("ask", QUESTION, "--docs", "tiny/tides.md", "--docs", Path("tiny") / "moon.txt", "--json")
    assert asked.code == 0
    assert "Documents  2 files" in asked.err
