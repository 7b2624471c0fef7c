"""The cache on disk: one SQLite file of bounded size, shared by the processes of a machine.

No write-ahead log: a value of megabytes is then written once and not twice, and the size of the file is the size on
disk. Nothing is synchronised either: a power cut may cost the file, which is only a cache and begins anew.
"""

import asyncio
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from assay.storage.layers import ENTRY, GRAIN, SHARE, Found, digest, lifetime
from assay.storage.outage import Outage

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

BUSY_SECONDS = 5.0
REST_SECONDS = 30.0  # without the file after it failed: a locked one would cost every call BUSY_SECONDS
PRUNED, MOST_PRUNED = 20, 2_000  # expired rows that leave with each writing, and when somebody has time for it
EVICTED = 20  # rows looked at together when room is made

# Another layout gets another file name. Values stand apart, so that noting a use does not write a value again.
_CREATE = (
    "CREATE TABLE IF NOT EXISTS entries"
    " (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, expires REAL NOT NULL, used REAL NOT NULL, sum INTEGER)",
    "CREATE INDEX IF NOT EXISTS entries_by_expiry ON entries (expires)",
    "CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used)",
    "CREATE TABLE IF NOT EXISTS contents (id INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS counters"
    " (key BLOB PRIMARY KEY, value INTEGER NOT NULL, expires REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS counters_by_expiry ON counters (expires)",
)
_FIND = "SELECT id, expires, used, sum, value FROM entries JOIN contents USING (id) WHERE key = ? AND expires > ?"
_COUNT = """
INSERT INTO counters (key, value, expires) VALUES (:key, 1, :ends)
ON CONFLICT (key) DO UPDATE SET
    value = CASE WHEN expires <= :now THEN 1 ELSE value + 1 END,
    expires = CASE WHEN expires <= :now THEN excluded.expires ELSE expires END
RETURNING value
"""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_EMPTIED = sqlite3.SQLITE_ERROR  # no such table: another process has begun the file anew


class SqliteCache:
    """A Layer. Every call runs in a thread, so that the event loop never waits for a disk or for another process."""

    def __init__(
        self,
        path: Path,
        limit: int,
        on_notice: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.time,
        rest: float = REST_SECONDS,
    ) -> None:
        self._path = path
        self._limit = limit
        self._clock = clock
        self._on_notice = on_notice
        self._outage = Outage(on_notice, rest=rest)
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
        return await self._use(lambda connection: self._find(connection, digest(key)))

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        await self._use(lambda connection: self._put(connection, digest(key), bytes(value), lifetime(seconds)))

    async def count(self, key: str, *, seconds: float) -> int:
        return await self.tally(key, seconds=seconds) or 1

    async def tally(self, key: str, *, seconds: float) -> int | None:
        return await self._use(lambda connection: self._count(connection, digest(key), lifetime(seconds)))

    async def prune(self) -> int:
        return await self._use(self._pruned) or 0

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    # In a thread ------------------------------------------------------------------------------------------

    def _find(self, connection: sqlite3.Connection, key: bytes) -> Found | None:
        now = self._clock()
        rows = connection.execute(_FIND, (key, now)).fetchall()  # all: an open cursor would keep writers out
        if not rows:
            return None
        [(id, expires, used, total, value)] = rows
        if zlib.crc32(value) != total:
            return None
        if now - used >= GRAIN:
            connection.execute("UPDATE entries SET used = ? WHERE id = ?", (now, id))
        return Found(value, expires - now)

    def _put(self, connection: sqlite3.Connection, key: bytes, value: bytes, seconds: float) -> None:
        now = self._clock()
        with _writing(connection):
            _delete(connection, connection.execute("SELECT id FROM entries WHERE key = ?", (key,)).fetchall())
            _prune(connection, now, PRUNED)
            if seconds > 0 and len(value) <= self._limit // SHARE and self._make_room(connection, len(value) + ENTRY):
                row = (key, now + seconds, now, zlib.crc32(value))
                added = connection.execute("INSERT INTO entries (key, expires, used, sum) VALUES (?, ?, ?, ?)", row)
                connection.execute("INSERT INTO contents (id, value) VALUES (?, ?)", (added.lastrowid, value))
        self._shrink(connection)

    def _count(self, connection: sqlite3.Connection, key: bytes, seconds: float) -> int:
        now = self._clock()
        with _writing(connection):
            _prune(connection, now, PRUNED)
            [(value,)] = connection.execute(_COUNT, {"key": key, "now": now, "ends": now + seconds}).fetchall()
        return int(value)

    def _pruned(self, connection: sqlite3.Connection) -> int:
        with _writing(connection):
            gone = _prune(connection, self._clock(), MOST_PRUNED)
        self._shrink(connection)
        return gone

    def _make_room(self, connection: sqlite3.Connection, size: int) -> bool:
        """Whether there is room once those used longest ago have left. Pages are counted, as the disk does."""
        page = _pragma(connection, "page_size")
        wanted = size + 2 * page
        while (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * page + wanted > self._limit:
            oldest = connection.execute("SELECT id FROM entries ORDER BY used, id LIMIT ?", (EVICTED,)).fetchall()
            if not oldest:
                return False
            _delete(connection, oldest[: max(1, len(oldest) // 4)])
        return True

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Free pages are used again; they go back to the disk only where the limit is lower than it was."""
        page = _pragma(connection, "page_size")
        if (over := _pragma(connection, "page_count") - self._limit // page) > 0:
            connection.executescript(f"PRAGMA incremental_vacuum({over})")  # `execute` would take one step of many

    # Trouble ----------------------------------------------------------------------------------------------

    async def _use(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._outage.resting:
            return None
        try:
            done, notice = await asyncio.to_thread(self._attempt, action)
        except (sqlite3.Error, OSError) as error:
            self._outage.begins(f"The cache on disk could not be used ({_reason(error)}); going on without it.")
            return None
        if notice:
            self._on_notice(notice)
        self._outage.is_over()
        return done

    def _attempt(self, action: Callable[[sqlite3.Connection], T]) -> tuple[T | None, str]:
        """Once more on a new file if this one turns out to be damaged; with what there is to tell."""
        with self._lock:
            if self._closed:
                return None, ""
            try:
                try:
                    return action(self._connected()), ""
                except sqlite3.DatabaseError as error:
                    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                    if code not in _DAMAGED and code != _EMPTIED:
                        raise
                    self._disconnect()
                    if code in _DAMAGED:
                        self._empty()
                    notice = "The cache on disk was damaged and begins anew." if code in _DAMAGED else ""
                    return action(self._connected()), notice
            except (sqlite3.Error, OSError):
                self._disconnect()
                raise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            for pragma in ("auto_vacuum = INCREMENTAL", "journal_mode = DELETE", "synchronous = OFF"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            with _writing(self._connection):
                for statement in _CREATE:
                    self._connection.execute(statement)
        return self._connection

    def _empty(self) -> None:
        """Cut to nothing rather than deleted: those who have the file open go on with the same one."""
        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        with self._path.open("r+b") as file:
            file.truncate(0)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None


@contextmanager
def _writing(connection: sqlite3.Connection) -> "Iterator[None]":
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _prune(connection: sqlite3.Connection, now: float, most: int) -> int:
    """So many of what has expired leave, of values and of counters; how many did."""
    expired = "SELECT {} FROM {} WHERE expires <= ? ORDER BY expires LIMIT ?"
    entries = connection.execute(expired.format("id", "entries"), (now, most)).fetchall()
    counters = connection.execute(expired.format("key", "counters"), (now, most)).fetchall()
    _delete(connection, entries)
    connection.executemany("DELETE FROM counters WHERE key = ?", counters)
    return len(entries) + len(counters)


def _delete(connection: sqlite3.Connection, ids: list[tuple[int]]) -> None:
    connection.executemany("DELETE FROM contents WHERE id = ?", ids)
    connection.executemany("DELETE FROM entries WHERE id = ?", ids)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    [(value,)] = connection.execute(f"PRAGMA {name}").fetchall()
    return int(value)


def _reason(error: sqlite3.Error | OSError) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)
