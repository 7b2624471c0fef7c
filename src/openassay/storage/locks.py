"""Locks: one process at a time on a thread, on an index, or in a decision about a user.

A thread is locked by a file on one machine, and by a lease in PostgreSQL for many machines.
"""

import asyncio
import hashlib
import logging
import math
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openassay.errors import NotFoundError, StorageError, ThreadBusyError
from openassay.models.thread import is_id
from openassay.protocols import Lease
from openassay.storage.connections import PostgresLink

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

    from openassay.storage.postgres import PostgresDatabase


try:
    import fcntl
except ImportError:  # Windows: there it is up to the user to run one process per data directory
    fcntl = None  # type: ignore[assignment]


def lock_handle(handle: int) -> None:
    """Lock an open file at once; BlockingIOError where another process has it."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be locked ({error.strerror})",
        help="Make its folder writable, on a disk that has room, or choose another data directory.",
        path=path,
    )


_MAX_DIGITS = 20  # of the number in a file


class FileLocks:
    """RunLocks with files in a folder. Each file says how often it was locked since it was released.

    The operating system releases a lock when its holder dies, so that a killed run can be resumed while a living one
    cannot. A process that is only stopped keeps its locks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handles: dict[str, int] = {}

    def acquire(self, thread: str, *, forgive: bool = True) -> Lease:
        path = self._path(thread)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise lock_error(path, error) from error
        try:
            lock_handle(handle)
        except BlockingIOError as error:
            os.close(handle)
            raise busy_thread_error(thread) from error
        except OSError as error:
            os.close(handle)
            raise lock_error(path, error) from error
        self._handles[thread] = handle
        falls = 0 if forgive else _read_number(handle)
        with suppress(OSError):  # a full disk must not prevent deleting something
            _write(handle, str(falls + 1))
        return Lease(thread, falls=falls)

    def release(self, thread: str) -> None:
        handle = self._handles.pop(thread, None)
        if handle is not None:
            with suppress(OSError):
                _write(handle, "")
            os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name

    def holds(self, thread: str) -> bool:
        return thread in self._handles

    def is_free(self, thread: str) -> bool:
        path = self._path(thread)
        try:
            handle = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise lock_error(path, error) from error
        try:
            return _try_lock(handle)
        except OSError as error:
            raise lock_error(path, error) from error
        finally:
            os.close(handle)

    def crash_count(self, thread: str) -> int:
        try:
            handle = os.open(self._path(thread), os.O_RDONLY)
        except OSError:  # it was never locked, or cannot be: `acquire` says so
            return 0
        try:
            return _read_number(handle)
        finally:
            os.close(handle)

    def reset_crash_count(self, thread: str) -> None:
        if (handle := self._handles.get(thread)) is not None:
            with suppress(OSError):
                _write(handle, "1")

    def _path(self, thread: str) -> Path:
        if not is_id(thread):  # it would be the name of a file anywhere
            raise NotFoundError(f"no thread {thread}", help="Look at the list of threads for its id.")
        return self._folder / f"{thread}.lock"


def _read_number(handle: int) -> int:
    content = os.pread(handle, _MAX_DIGITS, 0)
    return int(content) if content.isdigit() else 0


def _write(handle: int, content: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, content.encode(), 0)


def busy_thread_error(thread: str, help: str = "") -> ThreadBusyError:
    return ThreadBusyError(
        f"thread {thread} is in use by another process",
        help=f"Wait for it to end, or stop it: openassay threads stop {thread}{help}",
        retryable=True,
    )


_log = logging.getLogger("openassay")
LEASE_SECONDS = 15.0
RENEWALS = 3  # in the time of a lease: two may be missed
MAX_RETRY_SECONDS = 1.0  # after which a server that was away is asked again
MAX_SILENT_LEASES = 4  # after which a process that never asks about its threads counts as hung, and loses them

# SKIP LOCKED: a write that is under way is not waited for; the thread is busy until it is done.
_TAKE = """
WITH free AS (
    SELECT thread FROM leases WHERE thread = :thread AND until < clock_timestamp() FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE leases SET token = nextval('leases_token'), holder = :holder,
        until = clock_timestamp() + make_interval(secs => :seconds),
        falls = CASE WHEN :forgive = 1 THEN 0 ELSE falls + 1 END
    FROM free WHERE leases.thread = free.thread RETURNING token, falls
), made AS (
    INSERT INTO leases (thread, token, holder, until, falls)
    VALUES (:thread, nextval('leases_token'), :holder, clock_timestamp() + make_interval(secs => :seconds), 0)
    ON CONFLICT (thread) DO NOTHING RETURNING token, falls
)
SELECT token, falls FROM taken UNION ALL SELECT token, falls FROM made
"""
_LEFT = "SELECT extract(epoch FROM until - clock_timestamp()) AS seconds FROM leases WHERE thread = ?"
_RENEW = b"""
UPDATE leases SET until = clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::text[], %s::bigint[]) AS held (thread, token)
WHERE leases.thread = held.thread AND leases.token = held.token
"""
_TOKEN = "SELECT token FROM leases WHERE thread = ?"  # noqa: S105
_FREE = "SELECT count(*) AS taken FROM leases WHERE thread = ? AND until >= clock_timestamp()"
_FALLS = "SELECT falls + 1 AS falls FROM leases WHERE thread = ?"
_RESET_FALLS = "UPDATE leases SET falls = 0 WHERE thread = ? AND token = ?"
_RELEASE = "DELETE FROM leases WHERE thread = ? AND token = ?"


class Leases:
    """RunLocks for all processes that share a PostgreSQL database. Safe for several threads; `close` releases all.

    A thread is held for a while, and its holder renews its lease again and again. One that was killed, stopped or cut
    off is succeeded when its lease is over, and what it still writes is refused (fences.py). Only the server's clock
    counts. docs/decisions/0024 says why these are not the server's own locks."""

    def __init__(self, database: "PostgresDatabase", *, seconds: float = LEASE_SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"  # for people who look into the table
        self._held: dict[str, int] = {}  # token by thread
        self._asked = time.monotonic()  # when this process last asked about its threads
        self._change = threading.Condition()
        self._renewing: threading.Thread | None = None
        self._closed = False

    def acquire(self, thread: str, *, forgive: bool = True) -> Lease:
        self._asked = time.monotonic()
        values = {"thread": thread, "holder": self._holder, "seconds": self._seconds, "forgive": int(forgive)}
        with self._database.connection() as connection:
            # A lost lease that its holder here has not noticed yet must not be released in its name.
            row = None if thread in self._held else connection.execute(_TAKE, values).fetchone()
            if row is None:
                left = connection.execute(_LEFT, (thread,)).fetchone()
                seconds = max(math.ceil(left["seconds"]), 1) if left else 1
                raise busy_thread_error(
                    thread, f". If that process is gone, the thread is free in at most {seconds} s."
                )
        with self._change:
            self._held[thread] = row["token"]
            if self._renewing is None:
                self._renewing = threading.Thread(target=self._renew_loop, name="leases", daemon=True)
                self._renewing.start()
        return Lease(thread, row["token"], row["falls"])

    def release(self, thread: str) -> None:
        with self._change:
            token = self._held.pop(thread, None)
        if token is None:
            return
        try:
            with self._database.connection() as connection:
                connection.execute(_RELEASE, (thread, token))
        except StorageError as error:
            _log.warning("thread %s is free in at most %g s: %s", thread, self._seconds, error.message)

    def holds(self, thread: str) -> bool:
        self._asked = time.monotonic()
        if thread not in self._held:
            return False
        with self._database.connection() as connection:
            row = connection.execute(_TOKEN, (thread,)).fetchone()
        return row is not None and row["token"] == self._held.get(thread)

    def is_free(self, thread: str) -> bool:
        with self._database.connection() as connection:
            return thread not in self._held and connection.execute(_FREE, (thread,)).fetchone()["taken"] == 0

    def crash_count(self, thread: str) -> int:
        with self._database.connection() as connection:
            row = connection.execute(_FALLS, (thread,)).fetchone()
        return int(row["falls"]) if row else 0

    def reset_crash_count(self, thread: str) -> None:
        if token := self._held.get(thread):
            with self._database.connection() as connection:
                connection.execute(_RESET_FALLS, (thread, token))

    def close(self) -> None:
        for thread in list(self._held):
            self.release(thread)
        with self._change:
            self._closed, renewing = True, self._renewing
            self._change.notify()
        if renewing:
            renewing.join(MAX_RETRY_SECONDS)  # a server that does not answer is not waited for

    def _renew_loop(self) -> None:
        """Renew leases as long as any is held. While the server is away nothing is lost: leases that no other process
        has taken when it is back are renewed."""
        session: PsycopgConnection[Any] | None = None
        pause, is_reported = self._seconds / RENEWALS, False
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed, pause)
                if self._closed or not self._held:
                    self._renewing = None
                    break
                held = dict(self._held)
            try:
                session = session or self._database.session()
                if time.monotonic() - self._asked < MAX_SILENT_LEASES * self._seconds:
                    with self._database.translate_errors():
                        session.execute(_RENEW, (self._seconds, list(held), list(held.values())))
                pause, is_reported = self._seconds / RENEWALS, False
            except StorageError as error:
                if not is_reported and not self._closed:
                    _log.warning("the leases of %d threads could not be renewed: %s", len(held), error.message)
                pause, is_reported = min(MAX_RETRY_SECONDS, pause), True
                if session is not None:
                    session.close()
                    session = None
        if session is not None:
            session.close()


_POLL_SECONDS = 0.2


@contextmanager
def try_file_lock(path: Path, wait: float) -> Iterator[bool]:
    """Try to lock a file for at most `wait` seconds; yields whether it is locked. It is free again when the process
    dies."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise lock_error(path, error) from error
    try:
        yield _wait_for_lock(lambda: _try_lock(handle), wait)
    finally:
        os.close(handle)


@contextmanager
def try_postgres_lock(database: "PostgresDatabase", name: bytes, wait: float) -> Iterator[bool]:
    """Try to take an advisory lock, for every machine. It ends with its session, at the latest when the server ends
    that: then two processes may write, each of them whole updates."""
    key = int.from_bytes(hashlib.sha256(b"openassay library " + name).digest()[:8], signed=True)

    def take() -> bool:
        with database.translate_errors():
            row = session.execute(b"SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
        return bool(row and row[0])

    with closing(database.session()) as session:
        yield _wait_for_lock(take, wait)


def _try_lock(handle: int) -> bool:
    try:
        lock_handle(handle)
    except BlockingIOError:
        return False
    return True


def _wait_for_lock(take: Callable[[], bool], wait: float) -> bool:
    ends = time.monotonic() + wait
    while not take():
        if time.monotonic() >= ends:
            return False
        time.sleep(_POLL_SECONDS)
    return True


@dataclass(slots=True)
class _LockEntry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class UserLock:
    """Lets one task at a time read, decide and write about a user: in all processes on that database with a link, else
    in this one. Not reentrant. The lock is the database's: it is free when its holder's process dies."""

    def __init__(self, link: PostgresLink | None = None) -> None:
        self._link = link
        self._entries: dict[str, _LockEntry] = {}

    @asynccontextmanager
    async def acquire(self, user: str) -> AsyncIterator[None]:
        """Hold the lock of a user; StorageError where the database fails, or another process takes too long."""
        entry = self._entries.setdefault(user, _LockEntry())
        entry.wanted += 1
        try:
            async with entry.lock:  # one connection per user is enough
                if self._link is None:
                    yield
                else:
                    async with self._link.lock(f"openassay person {user}"):
                        yield
        finally:
            entry.wanted -= 1
            if not entry.wanted:
                del self._entries[user]
