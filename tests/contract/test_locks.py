"""One worker a thread, whoever holds the lock."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.errors import ThreadBusyError
from assay.ports import RunLocks
from assay.storage.locks import FileLocks
from assay.testing import MemoryLocks


@pytest.fixture(params=["files", "memory"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> RunLocks:
    made: dict[str, Callable[[], RunLocks]] = {"files": lambda: FileLocks(tmp_path / "locks"), "memory": MemoryLocks}
    return made[request.param]()


def test_a_taken_lock_is_refused_until_it_is_released(locks: RunLocks) -> None:
    locks.take("t")
    with pytest.raises(ThreadBusyError):
        locks.take("t")
    locks.take("another")
    locks.release("t")
    locks.take("t")


def test_releasing_what_is_not_held_is_nothing(locks: RunLocks) -> None:
    locks.release("t")


HOLDER = """
import sys, time
from pathlib import Path
from assay.storage.locks import FileLocks
FileLocks(Path(sys.argv[1])).take("t")
print("held", flush=True)
time.sleep(60)
"""


def test_another_process_is_kept_out_until_the_holder_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ThreadBusyError):
            FileLocks(tmp_path).take("t")
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    FileLocks(tmp_path).take("t")
