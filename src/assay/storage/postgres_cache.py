"""The cache in the database: for several machines that have PostgreSQL and nothing else."""

from typing import TYPE_CHECKING, Any

from assay.storage.layers import ENTRY, GRAIN, SHARE, Found, digest, lifetime
from assay.storage.postgres_link import PostgresLink

if TYPE_CHECKING:
    from psycopg import AsyncConnection

BATCH = 2_000  # rows that leave at a time
CHECKED = 50  # room is made each time this part of the limit was written here: the sum of 25,000 sizes takes 5 ms

_FIND = """
SELECT value, extract(epoch FROM expires - now())::float8, extract(epoch FROM now() - used)::float8
FROM cache_entries WHERE key = %s AND expires > now()
"""
_USED = "UPDATE cache_entries SET used = now() WHERE key = %s"
_PUT = """
INSERT INTO cache_entries (key, expires, used, size, value)
VALUES (%(key)s, now() + make_interval(secs => %(seconds)s), now(), %(size)s, %(value)s)
ON CONFLICT (key) DO UPDATE SET
    expires = excluded.expires, used = excluded.used, size = excluded.size, value = excluded.value
"""
_DELETE = "DELETE FROM cache_entries WHERE key = %s"
_COUNT = """
INSERT INTO cache_counters AS kept (key, value, expires)
VALUES (%(key)s, 1, now() + make_interval(secs => %(seconds)s))
ON CONFLICT (key) DO UPDATE SET
    value = CASE WHEN kept.expires <= now() THEN 1 ELSE kept.value + 1 END,
    expires = CASE WHEN kept.expires <= now() THEN excluded.expires ELSE kept.expires END
RETURNING value
"""
# Whoever comes while another is at it leaves it to them: together they would make too much room.
_PRUNING = "SELECT pg_try_advisory_xact_lock(hashtextextended('assay cache', 0))"
_EXPIRED = (
    """
DELETE FROM cache_entries WHERE key IN
    (SELECT key FROM cache_entries WHERE expires <= now() ORDER BY expires LIMIT %s FOR UPDATE SKIP LOCKED)
""",
    """
DELETE FROM cache_counters WHERE key IN
    (SELECT key FROM cache_counters WHERE expires <= now() ORDER BY expires LIMIT %s FOR UPDATE SKIP LOCKED)
""",
)
_SIZE = "SELECT coalesce(sum(size), 0)::int8 FROM cache_entries"
# Of those used longest ago, as many as make room for what is over.
_EVICT = """
WITH oldest AS
    (SELECT key, used, size FROM cache_entries ORDER BY used, key LIMIT %s FOR UPDATE SKIP LOCKED),
leaving AS (SELECT key, sum(size) OVER (ORDER BY used, key) - size AS before FROM oldest)
DELETE FROM cache_entries WHERE key IN (SELECT key FROM leaving WHERE before < %s)
"""


class PostgresCache:
    """A Layer. Times are those of the database, so that no machine's clock counts."""

    def __init__(self, link: PostgresLink, limit: int) -> None:
        self._link = link
        self._limit = limit
        self._written = limit  # bytes since room was made; the first writing looks

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
        name = digest(key)

        async def look(connection: "AsyncConnection[Any]") -> Found | None:
            row = await (await connection.execute(_FIND, (name,), binary=True)).fetchone()
            if row is None:
                return None
            value, seconds, since = row
            if since >= GRAIN:
                await connection.execute(_USED, (name,))
            return Found(value, max(seconds, 0.0))

        return await self._link.use("caches", look)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        name, kept, size = digest(key), lifetime(seconds), len(value) + ENTRY

        async def store(connection: "AsyncConnection[Any]") -> None:
            if kept > 0 and len(value) <= self._limit // SHARE:
                await connection.execute(_PUT, {"key": name, "seconds": kept, "size": size, "value": bytes(value)})
            else:
                await connection.execute(_DELETE, (name,))

        await self._link.use("caches", store)
        self._written += size
        if self._written > self._limit // CHECKED:
            self._written = 0
            await self.prune()

    async def count(self, key: str, *, seconds: float) -> int:
        return await self.tally(key, seconds=seconds) or 1

    async def tally(self, key: str, *, seconds: float) -> int | None:
        values = {"key": digest(key), "seconds": lifetime(seconds)}

        async def add(connection: "AsyncConnection[Any]") -> int:
            row = await (await connection.execute(_COUNT, values)).fetchone()
            return int(row[0]) if row else 1

        return await self._link.use("caches", add)

    async def prune(self) -> int:
        return await self._link.use("caches", self._prune) or 0

    async def _prune(self, connection: "AsyncConnection[Any]") -> int:
        async with connection.transaction():
            row = await (await connection.execute(_PRUNING)).fetchone()
            if row is None or not row[0]:
                return 0
            expired = sum([(await connection.execute(leave, (BATCH,))).rowcount for leave in _EXPIRED])
            return expired + await self._make_room(connection)

    async def _make_room(self, connection: "AsyncConnection[Any]") -> int:
        [(size,)] = await (await connection.execute(_SIZE)).fetchall()
        if size <= self._limit:
            return 0
        return (await connection.execute(_EVICT, (BATCH, size - self._limit))).rowcount

    async def close(self) -> None:
        """The link is closed by who opened it."""
