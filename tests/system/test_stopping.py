"""Runs that are stopped or killed: said how to go on, and gone on with."""

import contextlib
import fcntl
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from tests.system.command import LIBRARY, PATIENCE, Command

RESEARCH = ("research", "How fast is the universe expanding, and why do the measurements disagree?", "--docs", "sky")


@pytest.fixture(autouse=True)
def _sky(openassay: Command) -> None:
    """Documents enough for a run of some seconds."""
    (openassay.folder / "sky").mkdir()
    for file in sorted(LIBRARY.glob("*.md"))[:5]:
        shutil.copy(file, openassay.folder / "sky")


def finished(openassay: Command, thread: str) -> None:
    """The thread can be taken up, ends in a checked report, and is free for the next question."""
    resumed = openassay("resume", thread, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["status"] == "complete"
    assert resumed.json["coverage"]["checked"] > 0
    assert openassay.statuses(thread) == ["done"]
    stages = [row[0] for row in openassay.rows("SELECT stage FROM events WHERE kind = 'leave' ORDER BY seq")]
    assert stages.count("plan") == 1, "what was finished is not done again"
    assert openassay("resume", thread).code == 2


@pytest.mark.slow
@pytest.mark.requirement("L-01", "W-16")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, "cancelled"), (signal.SIGTERM, "queued")])
def test_a_stopped_run_says_how_to_go_on(openassay: Command, number: signal.Signals, status: str) -> None:
    """Ctrl-C stops it at once; who ends the process lets it end the step it is at."""
    with openassay.started(*RESEARCH) as process:
        thread = openassay.wait_for_event("search", "fuse")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == b""
    assert f"openassay resume {thread}" in err.decode()
    assert b"Traceback" not in err
    assert openassay.statuses(thread) == [status]
    finished(openassay, thread)


@pytest.mark.slow
def test_two_interrupts_stop_at_once(openassay: Command) -> None:
    with openassay.started(*RESEARCH) as process:
        thread = openassay.wait_for_event("search", "fuse")
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode in (130, -signal.SIGINT), "the second may come when Python itself is already leaving"
    assert b"Traceback" not in err
    resumed = openassay("resume", thread, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["status"] == "complete"


@pytest.mark.slow
def test_a_killed_run_is_taken_up_where_it_was(openassay: Command) -> None:
    with openassay.started(*RESEARCH) as process:
        thread = openassay.wait_for_event("finding", "read")
        process.kill()
        process.communicate()
    assert openassay.statuses(thread) == ["running"], "nobody could say that it ended"
    finished(openassay, thread)


def test_an_interrupt_before_anything_is_researched_is_quiet(openassay: Command) -> None:
    """It waits for the memory, which another process has locked, when Ctrl-C comes."""
    openassay.data.mkdir()
    locked = openassay.data / "memory.lock"
    with locked.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with openassay.started(*RESEARCH) as process:
            while not has_open(process, locked):
                assert process.poll() is None, "it ended before it came to the lock"
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert openassay.threads() == []
    assert (out, err) == (b"", b"")


def has_open(process: "subprocess.Popen[bytes]", file: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # closed meanwhile
        return any(one.readlink() == file for one in Path(f"/proc/{process.pid}/fd").iterdir())
    return False


def frozen(openassay: Command, process: "subprocess.Popen[bytes]") -> None:
    """Held where it is, but never in the middle of writing."""
    while True:
        process.send_signal(signal.SIGSTOP)
        with contextlib.closing(sqlite3.connect(openassay.data / "openassay.sqlite3", timeout=0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
                time.sleep(0.01)


@pytest.mark.slow
def test_a_run_is_stopped_from_another_terminal(openassay: Command) -> None:
    with openassay.started(*RESEARCH) as process:
        thread = openassay.wait_for_event("search", "fuse")
        frozen(openassay, process)
        with openassay.started("threads", "stop", thread, "--drain") as stop:
            while not openassay.rows("SELECT 1 FROM runs WHERE stop <> ''"):
                time.sleep(0.05)
            process.send_signal(signal.SIGCONT)
            _, said = stop.communicate(timeout=30)
        _, err = process.communicate(timeout=30)
    assert stop.returncode == 0, said
    assert f"Stopped after the step it was at. Resume it with: openassay resume {thread}" in said.decode()
    assert process.returncode == 130
    assert openassay.statuses(thread) == ["cancelled"]
    assert f"openassay resume {thread}" in err.decode()
    assert f"Stopped by a person, and not resumed: {thread}" in openassay("resume", "--all").err


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_everything_that_was_left_is_taken_up(openassay: Command) -> None:
    with openassay.started(*RESEARCH) as process:
        thread = openassay.wait_for_event("search", "fuse")
        process.kill()
        process.communicate()
    assert "stopped" in openassay("threads", "--active").out
    taken = openassay("resume", "--all")
    assert taken.code == 0, taken.err
    assert f"{thread}  done: complete report" in taken.out
    assert "1 run resumed" in taken.err
    assert openassay.statuses(thread) == ["done"]
    assert "There was nothing to resume" in openassay("resume", "--all").err


def test_an_unknown_thread_cannot_be_resumed(openassay: Command) -> None:
    openassay("resume", "nosuch").refused(2, "no thread nosuch")
