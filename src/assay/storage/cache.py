"""What was asked or read before: a layer in the process over one on disk or on a server."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from assay.ports import Cache
from assay.settings import Caching
from assay.storage.layers import Found, Layer, LruCache
from assay.storage.links import Links
from assay.storage.packing import Packed
from assay.storage.postgres_cache import PostgresCache
from assay.storage.redis_cache import RedisCache
from assay.storage.sqlite_cache import SqliteCache

FILE = "cache-1.sqlite3"  # the number is that of its layout
MB = 1_000_000


class Forgetful:
    """A ports.Cache that keeps nothing: for whoever wants to see what has changed."""

    async def get(self, key: str) -> bytes | None:
        return None

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        return None

    async def count(self, key: str, *, seconds: float) -> int:
        return 1


class OpenCache(Cache, Protocol):
    async def prune(self) -> int: ...

    async def close(self) -> None: ...


class Layered:
    """The near layer answers first and forgets no later than the far one.

    What another process has put since is seen when the near copy ends, which is never after the copy's own time."""

    def __init__(self, near: Layer, far: Layer) -> None:
        self._near = near
        self._far = far

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
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
        """The far layer alone sees every process; in its trouble this one counts for itself."""
        counted = await self.tally(key, seconds=seconds)
        return await self._near.count(key, seconds=seconds) if counted is None else counted

    async def tally(self, key: str, *, seconds: float) -> int | None:
        return await self._far.tally(key, seconds=seconds)

    async def prune(self) -> int:
        return await self._far.prune()

    async def close(self) -> None:
        await self._near.close()
        await self._far.close()


def open_cache(caching: Caching, folder: Path, links: Links, on_notice: Callable[[str], None]) -> OpenCache:
    """The cache of the settings; nothing is connected to or created before its first use."""
    near, limit = LruCache(int(caching.memory_mb * MB)), int(caching.disk_mb * MB)
    if caching.backend == "memory":
        return near
    if caching.backend == "sqlite":
        return Layered(near, SqliteCache(folder / FILE, limit, on_notice))
    if caching.backend == "postgres":
        return Layered(near, Packed(PostgresCache(links.postgres("cache.backend"), limit)))
    return Layered(near, Packed(RedisCache(links.redis("cache.backend"))))
