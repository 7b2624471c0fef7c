"""Files that a crash leaves whole: replaced at once, or grown by whole lines."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

TEMPORARY = ".tmp"
AT_ONCE = 8  # files that are synced together: a disk needs hardly longer for eight than for one, measured on ext4

_syncing = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="journal")


class Growing:
    """A file that only grows. Nothing is held back: what was added outlives the process at once, and a power cut from
    the next `replace` on that it is given to."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._dirty = True

    def add(self, content: bytes) -> None:
        self._dirty = True
        while content:
            content = content[os.write(self._descriptor, content) :]

    def unsynced(self) -> list[int]:
        """Its descriptor, if something was added since this was asked last."""
        dirty, self._dirty = self._dirty, False
        return [self._descriptor] if dirty else []

    def close(self) -> None:
        """Whoever adds to it afterwards gets an OSError, and not into a file that has its number by then."""
        os.close(self._descriptor)
        self._descriptor = -1


def replace(files: Mapping[Path, bytes], grown: Sequence[Growing] = ()) -> None:
    """Under each name there is what was before, or all of this, and what has `grown` is on the disk before either.
    `sync_folder` makes the names themselves outlast a power cut."""
    with ExitStack() as stack:
        opened = []
        for path, content in files.items():
            file = stack.enter_context(_temporary(path).open("wb"))
            file.write(content)
            file.flush()
            opened.append(file.fileno())
        sync([*(descriptor for file in grown for descriptor in file.unsynced()), *opened])
    for path in files:
        os.replace(_temporary(path), path)


def sync(descriptors: Sequence[int]) -> None:
    list(_syncing.map(os.fsync, descriptors))


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def renew(lengths: Mapping[Path, int]) -> None:
    """Take off what a crash has left half-written. Each becomes a file of its own: a process that was stopped, and has
    the old one open, adds nothing to it when it wakes up."""
    replace({path: path.read_bytes()[:length] for path, length in lengths.items() if path.exists()})


def leftovers(folder: Path) -> Iterator[Path]:
    """Temporary files of whoever was stopped in the middle."""
    return folder.rglob(f"*{TEMPORARY}")


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + TEMPORARY)
