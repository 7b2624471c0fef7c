"""Locks: one process at a time on a thread, on an index, or in a decision about a user; and the fences of threads.

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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from openassay.errors import NotFoundError, StaleLeaseError, StorageError, ThreadBusyError
from openassay.models.thread import is_id
from openassay.protocols import Lease
from openassay.storage.database import Connection
from openassay.storage.shared_servers import PostgresLink

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


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path} cannot be locked ({error.strerror})",
            help="Make its folder writable, on a disk that has room, or choose another data directory.",
            path=path,
        ) from error


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
        with _translate_errors(path), ExitStack() as undo:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            undo.callback(os.close, handle)
            if not _try_lock(handle):
                raise busy_thread_error(thread)
            undo.pop_all()
        self._handles[thread] = handle
        falls = 0 if forgive else _parse_number(os.pread(handle, _MAX_DIGITS, 0))
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
        with _translate_errors(path):
            if not path.exists():
                return True
        with try_file_lock(path, 0) as is_locked:
            return is_locked

    def crash_count(self, thread: str) -> int:
        try:
            return _parse_number(self._path(thread).read_bytes())
        except OSError:  # it was never locked, or cannot be: `acquire` says so
            return 0

    def reset_crash_count(self, thread: str) -> None:
        if (handle := self._handles.get(thread)) is not None:
            with suppress(OSError):
                _write(handle, "1")

    def _path(self, thread: str) -> Path:
        if not is_id(thread):  # it would be the name of a file anywhere
            raise NotFoundError(f"no thread {thread}", help="Look at the list of threads for its id.")
        return self._folder / f"{thread}.lock"


def _parse_number(content: bytes) -> int:
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
    off is succeeded when its lease is over, and what it still writes is refused by a fence. Only the server's clock
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
        # A lost lease that its holder here has not noticed yet must not be released in its name.
        row = None if thread in self._held else self._database.query_one(_TAKE, values)
        if row is None:
            left = self._database.query_one(_LEFT, (thread,))
            seconds = max(math.ceil(left["seconds"]), 1) if left else 1
            raise busy_thread_error(thread, f". If that process is gone, the thread is free in at most {seconds} s.")
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
        row = self._database.query_one(_TOKEN, (thread,))
        return row is not None and row["token"] == self._held.get(thread)

    def is_free(self, thread: str) -> bool:
        return thread not in self._held and self._database.query_one(_FREE, (thread,))["taken"] == 0

    def crash_count(self, thread: str) -> int:
        row = self._database.query_one(_FALLS, (thread,))
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
        pause, is_reported = self._seconds / RENEWALS, False
        with ExitStack() as opened:
            session: PsycopgConnection[Any] | None = None
            while True:
                with self._change:
                    self._change.wait_for(lambda: self._closed, pause)
                    if self._closed or not self._held:
                        self._renewing = None
                        return
                    held = dict(self._held)
                try:
                    session = session or opened.enter_context(closing(self._database.session()))
                    if time.monotonic() - self._asked < MAX_SILENT_LEASES * self._seconds:
                        with self._database.translate_errors():
                            session.execute(_RENEW, (self._seconds, list(held), list(held.values())))
                    pause, is_reported = self._seconds / RENEWALS, False
                except StorageError as error:
                    if not is_reported and not self._closed:
                        _log.warning("the leases of %d threads could not be renewed: %s", len(held), error.message)
                    pause, is_reported, session = min(MAX_RETRY_SECONDS, pause), True, None
                    opened.close()


_POLL_SECONDS = 0.2


@contextmanager
def try_file_lock(path: Path, wait: float) -> Iterator[bool]:
    """Try to lock a file for at most `wait` seconds; yields whether it is locked. It is free again when the process
    dies."""
    with ExitStack() as stack:
        with _translate_errors(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, handle)
            is_locked = _wait_for_lock(lambda: _try_lock(handle), wait)
        yield is_locked


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


class UserLock:
    """Lets one task at a time read, decide and write about a user: in all processes on that database with a link, else
    in this one. Not reentrant. The lock is the database's: it is free when its holder's process dies."""

    def __init__(self, link: PostgresLink | None = None) -> None:
        self._link = link
        self._entries: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # while a task wants one

    @asynccontextmanager
    async def acquire(self, user: str) -> AsyncIterator[None]:
        """Hold the lock of a user; StorageError where the database fails, or another process takes too long."""
        async with self._entries.setdefault(user, asyncio.Lock()):  # one connection per user is enough
            if self._link is None:
                yield
            else:
                async with self._link.lock(f"openassay person {user}"):
                    yield


# Fences refuse what a process still writes for a thread whose lease it has lost. The holder of a lease has a token,
# which travels with the context: tasks and `asyncio.to_thread` take it along. A transaction that writes for the thread
# checks that it is still the current token, and nobody can take the thread over until the transaction is done. Without
# a token nothing is refused: what people say, and ask of a run, is written by processes that do not hold its thread.

_tokens: ContextVar[Mapping[str, int]] = ContextVar("tokens", default=MappingProxyType({}))  # by thread

# A transaction waits for a lock no longer than it may stand still itself. Otherwise the transactions of a stopped
# process, waiting for one another, would be ended one after the other and keep the thread from its next holder. As
# it is, the first is ended after that time and those that waited for it after twice that: by then the lease is over.
_PATIENCE = "set_config('lock_timeout', current_setting('idle_in_transaction_session_timeout'), true)"
# KEY SHARE conflicts with taking a thread (FOR UPDATE) and releasing it (DELETE), but not with renewing its lease.
_FENCE_TOKEN = "SELECT token FROM leases WHERE leases.thread = {thread} FOR KEY SHARE"  # noqa: S105
_RUN_LEASE = f"""
SELECT thread, ({_FENCE_TOKEN.format(thread="runs.thread")}) AS token, {_PATIENCE} FROM runs WHERE id = ?
"""  # noqa: S608
_LEASES_BY_SCOPE = {  # by the scope of what is written; documents are the same whoever writes them
    "thread": f"""
SELECT id AS thread, ({_FENCE_TOKEN.format(thread="id")}) AS token, {_PATIENCE} FROM (VALUES (?)) AS given (id)
""",  # noqa: S608
    "run": _RUN_LEASE,
    "ledger": _RUN_LEASE,
}


@contextmanager
def fence(lease: Lease) -> Iterator[None]:
    """Refuse what is written in here for the thread of a lease once another process has taken it over."""
    outer = _tokens.get()
    if lease.token:
        _tokens.set({**outer, lease.thread: lease.token})
    try:
        yield
    finally:
        _tokens.set(outer)


def check_fence(connection: Connection, scope: str) -> None:
    """Raise StaleLeaseError where a transaction may not change rows of a scope, such as "thread:ID". This makes a write
    a tenth slower."""
    tokens = _tokens.get()
    kind, _, owner = scope.partition(":")
    if not tokens or kind not in _LEASES_BY_SCOPE or (kind == "thread" and owner not in tokens):
        return
    row = connection.execute(_LEASES_BY_SCOPE[kind], (owner,)).fetchone()
    if row and row["thread"] in tokens and row["token"] != tokens[row["thread"]]:
        raise lease_error(row["thread"])


def lease_error(thread: str) -> StaleLeaseError:
    return StaleLeaseError(
        f"another process has taken over thread {thread}; nothing more is written for it here",
        help=f"Follow it there: openassay threads follow {thread}",
        thread=thread,
    )
