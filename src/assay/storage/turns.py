"""One process at a time brings an index up to date. A lock of the system, or of a database session, is free again when
whoever held it dies."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.storage.flock import lock, unlockable

if TYPE_CHECKING:
    from assay.storage.postgres import PostgresDatabase

_LOOK = 0.2  # seconds


@contextmanager
def file_turn(path: Path, wait: float) -> Iterator[bool]:
    """Whether the lock of the file is ours, after so long a wait at most."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unlockable(path, error) from error
    try:
        yield _got(lambda: _locked(handle), wait)
    finally:
        os.close(handle)


@contextmanager
def postgres_turn(database: "PostgresDatabase", name: bytes, wait: float) -> Iterator[bool]:
    """The same by an advisory lock, for every machine. It is given up with its session, at the latest when the server
    ends that: what is written is whole all the same, only perhaps by two."""
    key = int.from_bytes(hashlib.sha256(b"assay library " + name).digest()[:8], signed=True)

    def taken() -> bool:
        with database.translating():
            row = session.execute(b"SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
        return bool(row and row[0])

    with closing(database.session()) as session:
        yield _got(taken, wait)


def _locked(handle: int) -> bool:
    try:
        lock(handle)
    except BlockingIOError:
        return False
    return True


def _got(take: Callable[[], bool], wait: float) -> bool:
    ends = time.monotonic() + wait
    while not take():
        if time.monotonic() >= ends:
            return False
        time.sleep(_LOOK)
    return True
