"""One process at a time on a run. The operating system gives a lock back when its holder dies, so a killed run can be
taken up by `resume` while a living one cannot."""

import os
from pathlib import Path

from assay.errors import ThreadBusyError

try:
    import fcntl
except ImportError:  # Windows: one process per data directory is up to the person there
    fcntl = None  # type: ignore[assignment]


class FileLocks:
    """Implements ports.RunLocks with files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, thread: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._folder / f"{thread}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise ThreadBusyError(
                f"thread {thread} is being worked on by another process",
                help="Wait for it to end, or stop it with Ctrl-C where it runs.",
                retryable=True,
            ) from error
        self._held[thread] = handle

    def release(self, thread: str) -> None:
        handle = self._held.pop(thread, None)
        if handle is not None:
            os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name
