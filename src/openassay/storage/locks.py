"""One process at a time on a run of this machine. The operating system gives a lock back when its holder dies, so a
killed run can be taken up by `resume` while a living one cannot. One that was stopped keeps what it has.

`leases.py` does the same for many machines.
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
from openassay.storage.database import Connection

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

    from openassay.storage.postgres import PostgresDatabase


# The lock of a file, which goes with the process that has it.

try:
    import fcntl
except ImportError:  # Windows: one process per data directory is up to the person there
    fcntl = None  # type: ignore[assignment]


def lock_handle(handle: int) -> None:
    """At once, or BlockingIOError where another has it."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be locked ({error.strerror})",
        help="Its folder must be writable, on a disk that has room: see to it, or choose another data directory.",
        path=path,
    )


_DIGITS = 20  # of the number in a file


class FileLocks:
    """Implements ports.RunLocks with files in a folder. Each says how often it was taken since it was given back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

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
        self._held[thread] = handle
        falls = 0 if forgive else _read_number(handle)
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
            raise lock_error(path, error) from error
        try:
            lock_handle(handle)
        except BlockingIOError:
            return False
        except OSError as error:
            raise lock_error(path, error) from error
        finally:
            os.close(handle)
        return True

    def crash_count(self, thread: str) -> int:
        try:
            handle = os.open(self._path(thread), os.O_RDONLY)
        except OSError:  # none was ever taken, or this one cannot be: whoever tries is told
            return 0
        try:
            return _read_number(handle)
        finally:
            os.close(handle)

    def reset_crash_count(self, thread: str) -> None:
        if (handle := self._held.get(thread)) is not None:
            with suppress(OSError):
                _write(handle, "1")

    def _path(self, thread: str) -> Path:
        if not is_id(thread):  # it would be the name of a file, who knows where
            raise NotFoundError(f"no thread {thread}", help="Look at the list of threads for its id.")
        return self._folder / f"{thread}.lock"


def _read_number(handle: int) -> int:
    content = os.pread(handle, _DIGITS, 0)
    return int(content) if content.isdigit() else 0


def _write(handle: int, content: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, content.encode(), 0)


def busy_thread_error(thread: str, help: str = "") -> ThreadBusyError:
    return ThreadBusyError(
        f"thread {thread} is being worked on by another process",
        help=f"Wait for it to end, or stop it: openassay threads stop {thread}{help}",
        retryable=True,
    )


# One process at a time on a thread, of all that share a PostgreSQL database. A thread is held for a while, and while
# it is, its holder says again and again that it is still there. One that was killed, stopped or cut off is succeeded
# when
# its time is over, and what it still wants to write is refused (fences.py).
#
# No clock but the server's counts. docs/decisions/0024 says why these are not the server's own locks.

_log = logging.getLogger("openassay")
SECONDS = 15.0
RENEWALS = 3  # in the time of a lease: two may be missed
RETRY = 1.0  # seconds after which a server that was not there is asked again, at the most
SILENCE = 4  # leases after which a process that never asks for what it holds is taken to hang, and holds it no longer

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
    """Implements ports.RunLocks. Safe to be used from several threads; `close` gives back what is still held."""

    def __init__(self, database: "PostgresDatabase", *, seconds: float = SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"  # for whoever looks into the table
        self._held: dict[str, int] = {}  # token by thread
        self._asked = time.monotonic()  # when anybody in this process was concerned with them last
        self._change = threading.Condition()
        self._renewing: threading.Thread | None = None
        self._closed = False

    def acquire(self, thread: str, *, forgive: bool = True) -> Lease:
        self._asked = time.monotonic()
        values = {"thread": thread, "holder": self._holder, "seconds": self._seconds, "forgive": int(forgive)}
        with self._database.connection() as connection:
            # One that was lost, and whose holder here has not seen that yet, must not be given back in its name.
            row = None if thread in self._held else connection.execute(_TAKE, values).fetchone()
            if row is None:
                raise self._busy_error(connection, thread)
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
            renewing.join(RETRY)  # a server that does not answer is not waited for

    def _busy_error(self, connection: Connection, thread: str) -> ThreadBusyError:
        row = connection.execute(_LEFT, (thread,)).fetchone()
        seconds = max(math.ceil(row["seconds"]), 1) if row else 1
        return busy_thread_error(thread, f". If that process is gone, the thread is free in at most {seconds} s.")

    # -- staying ------------------------------------------------------------------------------------------

    def _renew_loop(self) -> None:
        """As long as anything is held. A server that is away loses nothing by itself: what nobody else has taken when
        it is back is held on to."""
        session: PsycopgConnection[Any] | None = None
        pause, is_told = self._seconds / RENEWALS, False
        while held := self._wait_for_renewal(pause):
            try:
                session = session or self._database.session()
                if time.monotonic() - self._asked < SILENCE * self._seconds:
                    self._renew(session, held)
                pause, is_told = self._seconds / RENEWALS, False
            except StorageError as error:
                if not is_told and not self._closed:
                    _log.warning("the server does not hear of the %d threads held here: %s", len(held), error.message)
                pause, is_told = min(RETRY, pause), True
                if session is not None:
                    session.close()
                    session = None
        if session is not None:
            session.close()

    def _wait_for_renewal(self, seconds: float) -> dict[str, int]:
        with self._change:
            self._change.wait_for(lambda: self._closed, seconds)
            if self._closed or not self._held:
                self._renewing = None
                return {}
            return dict(self._held)

    def _renew(self, session: "PsycopgConnection[Any]", held: dict[str, int]) -> None:
        with self._database.translate_errors():
            session.execute(_RENEW, (self._seconds, list(held), list(held.values())))


# One process at a time brings an index up to date. A lock of the system, or of a database session, is free again when
# whoever held it dies.

_POLL_SECONDS = 0.2  # seconds


@contextmanager
def try_file_lock(path: Path, wait: float) -> Iterator[bool]:
    """Whether the lock of the file is ours, after so long a wait at most."""
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
    """The same by an advisory lock, for every machine. It is given up with its session, at the latest when the server
    ends that: what is written is whole all the same, only perhaps by two."""
    key = int.from_bytes(hashlib.sha256(b"openassay library " + name).digest()[:8], signed=True)

    def taken() -> bool:
        with database.translate_errors():
            row = session.execute(b"SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
        return bool(row and row[0])

    with closing(database.session()) as session:
        yield _wait_for_lock(taken, wait)


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


# One decision about a person at a time: what is read, decided and written in there, nobody else decides about.


@dataclass(slots=True)
class _LockEntry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class UserLock:
    """With a link it holds for all processes on that database, else for this one. Not to be entered twice by the same
    task. The lock is the database's: it is free when its holder's process dies."""

    def __init__(self, link: PostgresLink | None = None) -> None:
        self._link = link
        self._turns: dict[str, _LockEntry] = {}

    @asynccontextmanager
    async def acquire(self, person: str) -> AsyncIterator[None]:
        """StorageError where the database cannot be asked, or somebody else takes too long."""
        turn = self._turns.setdefault(person, _LockEntry())
        turn.wanted += 1
        try:
            async with turn.lock:  # one connection a person is enough
                if self._link is None:
                    yield
                else:
                    async with self._link.lock(f"openassay person {person}"):
                        yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[person]
