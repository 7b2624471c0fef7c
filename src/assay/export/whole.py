"""A file for people: complete and with their usual rights, or not there at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes) -> None:
    """A device or a pipe is written to, never replaced."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with whole(path) as file:
        file.write(content)


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file beside it, which takes its place at the end, unless something was wrong with it. A link stays a link."""
    path = path.resolve()
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=".assay-", suffix=".part")
    os.close(handle)
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(part).chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
