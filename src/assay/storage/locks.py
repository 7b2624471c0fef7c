"""One process at a time on a run. The operating system, or the database, gives a lock back when its holder dies, so a
killed run can be taken up by `resume` while a living one cannot."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import NotFoundError, StorageError, ThreadBusyError
from assay.model.thread import is_id

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

    from assay.storage.postgres import PostgresDatabase

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
        if not is_id(thread):  # it would be the name of a file, who knows where
            raise NotFoundError(f"no thread {thread}", help="Look at the list of threads for its id.")
        path = self._folder / f"{thread}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unlockable(path, error) from error
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise _busy(thread) from error
        except OSError as error:
            os.close(handle)
            raise _unlockable(path, error) from error
        self._held[thread] = handle

    def release(self, thread: str) -> None:
        handle = self._held.pop(thread, None)
        if handle is not None:
            os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name

    def holds(self, thread: str) -> bool:
        return thread in self._held


# The server learns within a minute that a machine is gone; a process that dies on a living one, at once.
_KEEPALIVE = b"SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
_TAKE = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_RELEASE = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"


class PostgresLocks:
    """Implements ports.RunLocks with advisory locks of one connection, which the server frees when it ends."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._database = database
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._session: PsycopgConnection[Any] | None = None

    def take(self, thread: str) -> None:
        with self._lock, self._database.translating():
            session = self._connected()
            # The session itself would be given a lock that it has once more.
            if thread in self._held or not _asked(session, _TAKE, thread):
                raise _busy(thread)
            self._held.add(thread)

    def release(self, thread: str) -> None:
        with self._lock, suppress(StorageError), self._database.translating():  # a lost connection holds nothing
            if thread in self._held:
                self._held.remove(thread)
                _asked(self._connected(), _RELEASE, thread)

    def holds(self, thread: str) -> bool:
        with self._lock, self._database.translating():
            self._connected()
            return thread in self._held

    def _connected(self) -> "PsycopgConnection[Any]":
        """The session, a new one where it was lost; what was held is taken again, unless another was faster."""
        import psycopg

        if self._session is not None:
            try:
                self._session.execute(b"")
                return self._session
            except psycopg.OperationalError:
                self._session.close()
        session = self._database.session()
        session.execute(_KEEPALIVE)
        self._held = {thread for thread in self._held if _asked(session, _TAKE, thread)}
        self._session = session
        return session


def _asked(session: "PsycopgConnection[Any]", sql: str, thread: str) -> bool:
    row = session.execute(sql.encode(), (f"assay thread {thread}",)).fetchone()
    return bool(row and row[0])


def _busy(thread: str) -> ThreadBusyError:
    return ThreadBusyError(
        f"thread {thread} is being worked on by another process",
        help=f"Wait for it to end, or stop it: assay stop {thread}",
        retryable=True,
    )


def _unlockable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be locked ({error.strerror})",
        help="Its folder must be writable, on a disk that has room: see to it, or choose another data directory.",
        path=path,
    )
