"""The cache: a layer in the process over one on disk or in Redis."""

import asyncio
import sqlite3
import time
import zlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from openassay.settings import CacheSettings
from openassay.storage.database import run_in_thread
from openassay.storage.shared_servers import Outage, RedisLink, ServerLinks, redis_key

if TYPE_CHECKING:
    from redis.asyncio import Redis


T = TypeVar("T")

FILE = "cache-1.sqlite3"  # the number is that of its layout
MB = 1_000_000
MAX_VALUE_SHARE = 8  # a value larger than this part of a layer would push out all else, and is not stored
TOUCH_SECONDS = 60.0  # a use is recorded no finer than this, or every read would write
ENTRY_OVERHEAD = 200  # bytes of a row besides its value, with its part of the indexes
MAX_LIFETIME = 10 * 365 * 86_400.0  # seconds; more would overflow a server's clock


class CacheHit(NamedTuple):
    value: bytes
    seconds: float  # it has left


class CacheLayer(ABC):
    """A Cache that also says how long a value has left, and when it cannot count."""

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    @abstractmethod
    async def find(self, key: str) -> CacheHit | None: ...

    @abstractmethod
    async def put(self, key: str, value: bytes, *, seconds: float) -> None: ...

    async def count(self, key: str, *, seconds: float) -> int:
        return await self.try_count(key, seconds=seconds) or 1

    @abstractmethod
    async def try_count(self, key: str, *, seconds: float) -> int | None:
        """Count a use of the key; None where trouble prevents it."""

    async def prune(self) -> int:
        """Remove some of what has expired, or has no room; return how many. It removes so few at a time that nobody
        waits long for it: call it again while anything is removed."""
        return 0

    async def close(self) -> None:  # noqa: B027  # most layers have nothing to close: a link is closed by its owner
        """Close what this layer has opened."""


def open_cache(
    caching: CacheSettings, folder: Path, links: ServerLinks, on_notice: Callable[[str], None]
) -> CacheLayer:
    """Open the cache of the settings; nothing is connected to or created before its first use."""
    near = LruCache(int(caching.memory_mb * MB))
    if caching.backend == "memory":
        return near
    if caching.backend == "sqlite":
        return TwoLevelCache(near, SqliteCache(folder / FILE, int(caching.disk_mb * MB), on_notice))
    return TwoLevelCache(near, RedisCache(links.redis("cache.backend")))


class TwoLevelCache(CacheLayer):
    """A near layer that answers first and forgets no later than the far one.

    What another process has stored since is seen when the near copy ends, which is never after the copy's own time."""

    def __init__(self, near: CacheLayer, far: CacheLayer) -> None:
        self._near = near
        self._far = far

    async def find(self, key: str) -> CacheHit | None:
        if found := await self._near.find(key):
            return found
        found = await self._far.find(key)
        if found:
            await self._near.put(key, found.value, seconds=found.seconds)
        return found

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        await self._near.put(key, value, seconds=seconds)
        await self._far.put(key, value, seconds=seconds)

    async def count(self, key: str, *, seconds: float) -> int:
        """Count in the far layer, which alone sees every process; in its trouble this process counts for itself."""
        counted = await self.try_count(key, seconds=seconds)
        return await self._near.count(key, seconds=seconds) if counted is None else counted

    async def try_count(self, key: str, *, seconds: float) -> int | None:
        return await self._far.try_count(key, seconds=seconds)

    async def prune(self) -> int:
        return await self._far.prune()

    async def close(self) -> None:
        await self._near.close()
        await self._far.close()


def _hash_key(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).digest()


def _clamp_lifetime(seconds: float) -> float:
    """Limit a lifetime to what can be stored; not a number is no time at all."""
    return min(seconds, MAX_LIFETIME) if seconds > 0 else 0.0


class _CacheEntry(NamedTuple):
    content: bytes
    ends: float
    size: int


class LruCache(CacheLayer):
    """A layer in the memory of one process and one event loop; the least recently used goes first."""

    ENTRY = 300  # bytes that Python takes for an entry besides its key and its value

    def __init__(self, limit: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._entries: OrderedDict[str, _CacheEntry] = OrderedDict()  # by key, behind "v" for values and "c" for counts
        self.size = 0

    async def find(self, key: str) -> CacheHit | None:
        entry = self._use(f"v{key}")
        return CacheHit(entry.content, entry.ends - self._clock()) if entry else None

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        self._drop(f"v{key}")
        if seconds > 0 and len(value) <= self._limit // MAX_VALUE_SHARE:
            self._insert(f"v{key}", value, self._clock() + _clamp_lifetime(seconds))

    async def try_count(self, key: str, *, seconds: float) -> int:
        entry = self._use(f"c{key}")
        now, ends = (int(entry.content) + 1, entry.ends) if entry else (1, self._clock() + _clamp_lifetime(seconds))
        self._drop(f"c{key}")
        self._insert(f"c{key}", b"%d" % now, ends)
        return now

    async def close(self) -> None:
        self._entries.clear()
        self.size = 0

    def _use(self, name: str) -> _CacheEntry | None:
        entry = self._entries.get(name)
        if entry is not None and entry.ends <= self._clock():
            self._drop(name)
            return None
        if entry is not None:
            self._entries.move_to_end(name)
        return entry

    def _insert(self, name: str, content: bytes, ends: float) -> None:
        size = self.ENTRY + len(name) + len(content)
        self._entries[name] = _CacheEntry(content, ends, size)
        self.size += size
        while self.size > self._limit:
            self._drop(next(iter(self._entries)))

    def _drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        self.size -= entry.size if entry else 0


# Compression, measured on 150 pages (median 3.6 KB): 2.25 times smaller, 0.11 ms to pack and 0.03 ms to unpack a value.
# zlib at its quickest: 2.14 times, 0.27 ms and 0.15 ms.
MAX_UNPACKED_BYTES = 64_000_000  # what claims more was not packed here
THREAD_BYTES = 200_000  # from which on packing would hold up the event loop


def _compress(value: bytes) -> bytes:
    from zstandard import ZstdCompressor

    return ZstdCompressor().compress(value)


def _decompress(value: bytes) -> bytes | None:
    from zstandard import ZstdDecompressor, ZstdError, frame_content_size

    try:
        is_ours = 0 <= frame_content_size(value) <= MAX_UNPACKED_BYTES
        return ZstdDecompressor().decompress(value) if is_ours else None
    except ZstdError:
        return None


MAX_REDIS_BYTES = 32_000_000  # bytes of a value; a server shared by many should not be filled by one page


class RedisCache(CacheLayer):
    """A layer on a Redis or Valkey server, which itself removes what has expired, and what it has no room for. Values
    are compressed; what was not packed here is a miss."""

    def __init__(self, link: RedisLink, *, largest: int = MAX_REDIS_BYTES) -> None:
        self._link = link
        self._largest = largest

    async def find(self, key: str) -> CacheHit | None:
        """Read the value and its time in one round trip; one that expires in between has no time left."""
        name = redis_key("value", key)

        async def look(client: "Redis") -> CacheHit | None:
            async with client.pipeline(transaction=False) as pipe:
                pipe.get(name)
                pipe.pttl(name)
                value, left = await pipe.execute()
            return None if value is None else CacheHit(value, max(left, 0) / 1000)

        found = await self._link.use("caches", look)
        if found is None:
            return None
        is_large = len(found.value) > THREAD_BYTES
        value = await asyncio.to_thread(_decompress, found.value) if is_large else _decompress(found.value)
        return None if value is None else found._replace(value=value)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        name, milliseconds = redis_key("value", key), int(_clamp_lifetime(seconds) * 1000)
        packed = await asyncio.to_thread(_compress, value) if len(value) > THREAD_BYTES else _compress(value)

        async def store(client: "Redis") -> None:
            if milliseconds > 0 and len(packed) <= self._largest:
                await client.set(name, packed, px=milliseconds)
            else:
                await client.delete(name)

        await self._link.use("caches", store)

    async def try_count(self, key: str, *, seconds: float) -> int | None:
        """Count in one transaction, in which a new counter gets its end and an old one keeps its own. No script, which
        a server may forbid, and no EXPIRE NX, which Redis before 7 does not know."""
        name, milliseconds = redis_key("count", key), max(1, int(_clamp_lifetime(seconds) * 1000))

        async def add(client: "Redis") -> int:
            async with client.pipeline(transaction=True) as pipe:
                pipe.set(name, 0, px=milliseconds, nx=True)
                pipe.incr(name)
                _, value = await pipe.execute()
            return int(value)

        return await self._link.use("caches", add)


BUSY_SECONDS = 5.0
PRUNE_BATCH = 2_000  # rows removed at a time
REST_SECONDS = 30.0  # without the file after it failed: a locked one would cost every call BUSY_SECONDS
WRITE_PRUNE_BATCH = 20  # expired rows removed with each write; `prune` removes PRUNE_BATCH
EVICT_BATCH = 20  # rows looked at together when room is made

# Another layout gets another file name. Values are apart, so that recording a use does not write a value again.
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
_CORRUPTION_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_MISSING_TABLE_CODE = sqlite3.SQLITE_ERROR  # no such table: another process has truncated the file


class SqliteCache(CacheLayer):
    """A layer on disk: one SQLite file of bounded size, shared by the processes of a machine.

    Every call runs in a thread, so that the event loop never waits for a disk or for another process. There is no
    write-ahead log: a value of megabytes is written once and not twice, and the size of the file is the size on disk.
    Nothing is synchronised: a power cut may cost the file, which is only a cache and starts empty."""

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

    async def find(self, key: str) -> CacheHit | None:
        def look(connection: sqlite3.Connection) -> CacheHit | None:
            now = self._clock()
            rows = connection.execute(_FIND, (_hash_key(key), now)).fetchall()  # an open cursor blocks writers
            if not rows:
                return None
            [(id, expires, used, checksum, value)] = rows
            if zlib.crc32(value) != checksum:
                return None
            if now - used >= TOUCH_SECONDS:
                connection.execute("UPDATE entries SET used = ? WHERE id = ?", (now, id))
            return CacheHit(value, expires - now)

        return await self._use(look)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        name, lifetime, content = _hash_key(key), _clamp_lifetime(seconds), bytes(value)

        def store(connection: sqlite3.Connection) -> None:
            now = self._clock()
            with _transaction(connection):
                _delete(connection, connection.execute("SELECT id FROM entries WHERE key = ?", (name,)).fetchall())
                _prune(connection, now, WRITE_PRUNE_BATCH)
                fits = lifetime > 0 and len(content) <= self._limit // MAX_VALUE_SHARE
                if fits and self._make_room(connection, len(content) + ENTRY_OVERHEAD):
                    row = (name, now + lifetime, now, zlib.crc32(content))
                    sql = "INSERT INTO entries (key, expires, used, sum) VALUES (?, ?, ?, ?)"
                    id = connection.execute(sql, row).lastrowid
                    connection.execute("INSERT INTO contents (id, value) VALUES (?, ?)", (id, content))
            self._shrink(connection)

        await self._use(store)

    async def try_count(self, key: str, *, seconds: float) -> int | None:
        name, lifetime = _hash_key(key), _clamp_lifetime(seconds)

        def add(connection: sqlite3.Connection) -> int:
            now = self._clock()
            with _transaction(connection):
                _prune(connection, now, WRITE_PRUNE_BATCH)
                values = {"key": name, "now": now, "ends": now + lifetime}
                [(value,)] = connection.execute(_COUNT, values).fetchall()
            return int(value)

        return await self._use(add)

    async def prune(self) -> int:
        def remove(connection: sqlite3.Connection) -> int:
            with _transaction(connection):
                removed = _prune(connection, self._clock(), PRUNE_BATCH)
            self._shrink(connection)
            return removed

        return await self._use(remove) or 0

    @run_in_thread
    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    def _make_room(self, connection: sqlite3.Connection, size: int) -> bool:
        """Evict the least recently used until there is room; return whether there is. Pages are counted, as on disk."""
        page = _pragma(connection, "page_size")
        wanted = size + 2 * page
        while (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * page + wanted > self._limit:
            oldest = connection.execute("SELECT id FROM entries ORDER BY used, id LIMIT ?", (EVICT_BATCH,)).fetchall()
            if not oldest:
                return False
            _delete(connection, oldest[: max(1, len(oldest) // 4)])
        return True

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Give free pages back to the disk where the limit is lower than it was; else they are used again."""
        page = _pragma(connection, "page_size")
        if (over := _pragma(connection, "page_count") - self._limit // page) > 0:
            connection.executescript(f"PRAGMA incremental_vacuum({over})")  # `execute` would take one step of many

    async def _use(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._outage.in_backoff:
            return None
        try:
            done, notice = await asyncio.to_thread(self._attempt, action)
        except (sqlite3.Error, OSError) as error:
            reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
            self._outage.begin(f"The cache on disk could not be used ({reason}); continuing without it.")
            return None
        if notice:
            self._on_notice(notice)
        self._outage.end()
        return done

    def _attempt(self, action: Callable[[sqlite3.Connection], T]) -> tuple[T | None, str]:
        """Run an action, once more on a new file if this one is damaged; return its result and a notice."""
        with self._lock:
            if self._closed:
                return None, ""
            try:
                try:
                    return action(self._ensure_connection()), ""
                except sqlite3.DatabaseError as error:
                    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                    if code not in _CORRUPTION_CODES and code != _MISSING_TABLE_CODE:
                        raise
                    self._disconnect()
                    notice = ""
                    if code in _CORRUPTION_CODES:
                        notice = "The cache on disk was damaged and starts empty."
                        # Truncated rather than deleted: processes that have the file open go on using the same one.
                        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
                        with self._path.open("r+b") as file:
                            file.truncate(0)
                    return action(self._ensure_connection()), notice
            except (sqlite3.Error, OSError):
                self._disconnect()
                raise

    def _ensure_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            for pragma in ("auto_vacuum = INCREMENTAL", "journal_mode = DELETE", "synchronous = OFF"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            with _transaction(self._connection):
                for statement in _CREATE:
                    self._connection.execute(statement)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _prune(connection: sqlite3.Connection, now: float, most: int) -> int:
    """Remove at most so many expired values and counters; return how many."""
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
