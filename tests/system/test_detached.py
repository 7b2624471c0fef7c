"""Runs in a process of their own: started, followed, stopped, killed, and gone on with."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.system.command import LIBRARY, Command

TIDES = ("research", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--detach")


def process_of(thread: str) -> int:
    """The process that works on a thread."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has just ended
                continue
            if thread.encode() in words and b"resume" in words:
                return int(folder.name)
        time.sleep(0.05)
    pytest.fail(f"no process works on {thread}")


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
def test_a_detached_run_goes_on_by_itself_and_can_be_followed(openassay: Command) -> None:
    started = openassay(*TIDES, "--out", "report.md")
    thread = started.out.strip()
    assert started.code == 0, started.err
    assert openassay.threads() == [thread]
    for command in ("follow", "stop", "threads show"):
        assert f"openassay {command} {thread}" in started.err

    followed = openassay("threads", "follow", thread, "--json")

    assert followed.code == 0, followed.err
    assert followed.json["status"] == "complete"
    assert "Plan" in followed.err
    assert openassay.statuses(thread) == ["done"]
    assert "16.3 metres" in (openassay.folder / "report.md").read_text()
    assert "Report written to" in (openassay.data / "logs" / f"{thread}.log").read_text()
    assert openassay("threads", "delete", thread, "--yes").code == 0
    assert list((openassay.data / "logs").iterdir()) == []


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_a_detached_run_that_is_killed_is_gone_on_with(openassay: Command) -> None:
    shutil.copytree(
        LIBRARY, openassay.folder / "sky"
    )  # enough for some seconds, so that it is at work when it is killed
    thread = openassay("research", "How fast is the universe expanding?", "--docs", "sky", "--detach").out.strip()
    process = process_of(thread)
    openassay.wait_for_event("enter", "dispatch")  # so the plan is kept
    os.kill(process, signal.SIGKILL)
    status = openassay.statuses(thread)

    again = openassay("resume", thread, "--detach")
    followed = openassay("threads", "follow", thread, "--new", "--json")

    assert status == ["running"]
    assert again.code == 0, again.err
    assert followed.code == 0, followed.err
    stages = [row[0] for row in openassay.rows("SELECT stage FROM events WHERE kind = 'leave'")]
    assert stages.count("plan") == 1
    openassay("resume", thread, "--detach").refused(2, "already answered")


@pytest.mark.slow
def test_a_detached_run_is_stopped(openassay: Command) -> None:
    """Whether its process has begun by then or not; one that was faster than `stop` is told to be done."""
    thread = openassay(*TIDES).out.strip()

    stopped = openassay("threads", "stop", thread, "--drain")

    assert stopped.code == 0 or "its last run is done" in stopped.err, stopped.err
    ends = time.monotonic() + 30
    while time.monotonic() < ends and openassay.statuses(thread) == ["running"]:
        time.sleep(0.1)
    assert openassay.statuses(thread)[0] in ("cancelled", "queued", "done")
    assert openassay("threads", "show", thread).code == 0


@pytest.mark.slow
def test_what_is_wrong_is_told_before_a_process_is_started(openassay: Command) -> None:
    openassay("research", "How high are the tides?", "--docs", "nowhere", "--detach").refused(2, "nowhere")
    env = {"OPENASSAY_PERSISTENCE__BACKEND": "memory"}
    openassay(*TIDES, env=env).refused(2, "memory")
    assert openassay.threads() == []
    assert not (openassay.data / "logs").exists()
