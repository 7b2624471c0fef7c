"""One process at a time on a run of this machine. The operating system gives a lock back when its holder dies, so a
killed run can be taken up by `resume` while a living one cannot. One that was stopped keeps what it has.

`leases.py` does the same for many machines.
"""

import os
from contextlib import suppress
from pathlib import Path

from assay.errors import NotFoundError, ThreadBusyError
from assay.model.thread import is_id
from assay.ports import Lease
from assay.storage.flock import lock, unlockable

_DIGITS = 20  # of the number in a file


class FileLocks:
    """Implements ports.RunLocks with files in a folder. Each says how often it was taken since it was given back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, thread: str, *, forgive: bool = True) -> Lease:
        path = self._path(thread)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise unlockable(path, error) from error
        try:
            lock(handle)
        except BlockingIOError as error:
            os.close(handle)
            raise in_other_hands(thread) from error
        except OSError as error:
            os.close(handle)
            raise unlockable(path, error) from error
        self._held[thread] = handle
        falls = 0 if forgive else _number(handle)
        with suppress(OSError):  # a disk that is full must not stand in the way of deleting something
            _write(handle, str(falls + 1))
        return Lease(thread, falls=falls)

    def release(self, thread: str) -> None:
        handle = self._held.pop(thread, None)
        if handle is not None:
            with suppress(OSError):
                _write(handle, "")
            os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name

    def holds(self, thread: str) -> bool:
        return thread in self._held

    def is_free(self, thread: str) -> bool:
        path = self._path(thread)
        try:
            handle = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise unlockable(path, error) from error
        try:
            lock(handle)
        except BlockingIOError:
            return False
        except OSError as error:
            raise unlockable(path, error) from error
        finally:
            os.close(handle)
        return True

    def falls(self, thread: str) -> int:
        try:
            handle = os.open(self._path(thread), os.O_RDONLY)
        except OSError:  # none was ever taken, or this one cannot be: whoever tries is told
            return 0
        try:
            return _number(handle)
        finally:
            os.close(handle)

    def progressed(self, thread: str) -> None:
        if (handle := self._held.get(thread)) is not None:
            with suppress(OSError):
                _write(handle, "1")

    def _path(self, thread: str) -> Path:
        if not is_id(thread):  # it would be the name of a file, who knows where
            raise NotFoundError(f"no thread {thread}", help="Look at the list of threads for its id.")
        return self._folder / f"{thread}.lock"


def _number(handle: int) -> int:
    content = os.pread(handle, _DIGITS, 0)
    return int(content) if content.isdigit() else 0


def _write(handle: int, content: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, content.encode(), 0)


def in_other_hands(thread: str, help: str = "") -> ThreadBusyError:
    return ThreadBusyError(
        f"thread {thread} is being worked on by another process",
        help=f"Wait for it to end, or stop it: assay stop {thread}{help}",
        retryable=True,
    )
