"""The lock of a file, which goes with the process that has it."""

from pathlib import Path

from assay.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows: one process per data directory is up to the person there
    fcntl = None  # type: ignore[assignment]


def lock(handle: int) -> None:
    """At once, or BlockingIOError where another has it."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlockable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be locked ({error.strerror})",
        help="Its folder must be writable, on a disk that has room: see to it, or choose another data directory.",
        path=path,
    )
