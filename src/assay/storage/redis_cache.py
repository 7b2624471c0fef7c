"""The cache that several machines share: a Redis or Valkey server."""

from typing import TYPE_CHECKING

from assay.storage.layers import Found, lifetime
from assay.storage.redis_link import RedisLink, key_of

if TYPE_CHECKING:
    from redis.asyncio import Redis

LARGEST = 32_000_000  # bytes of a value; a server shared by many should not be filled by one page


class RedisCache:
    """A Layer. The server itself forgets what has expired, and what it has no room for."""

    def __init__(self, link: RedisLink, *, largest: int = LARGEST) -> None:
        self._link = link
        self._largest = largest

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
        """The value and its time in one round; one that expires in between has no time left."""
        name = key_of("value", key)

        async def look(client: "Redis") -> Found | None:
            async with client.pipeline(transaction=False) as pipe:
                pipe.get(name)
                pipe.pttl(name)
                value, left = await pipe.execute()
            return None if value is None else Found(value, max(left, 0) / 1000)

        return await self._link.use("caches", look)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        name, milliseconds = key_of("value", key), int(lifetime(seconds) * 1000)

        async def store(client: "Redis") -> None:
            if milliseconds > 0 and len(value) <= self._largest:
                await client.set(name, value, px=milliseconds)
            else:
                await client.delete(name)

        await self._link.use("caches", store)

    async def count(self, key: str, *, seconds: float) -> int:
        return await self.tally(key, seconds=seconds) or 1

    async def tally(self, key: str, *, seconds: float) -> int | None:
        """One transaction: the counter gets its end when it begins and never another. No script, which a server may
        forbid, and no EXPIRE NX, which those before Redis 7 do not know."""
        name, milliseconds = key_of("count", key), max(1, int(lifetime(seconds) * 1000))

        async def add(client: "Redis") -> int:
            async with client.pipeline(transaction=True) as pipe:
                pipe.set(name, 0, px=milliseconds, nx=True)
                pipe.incr(name)
                _, value = await pipe.execute()
            return int(value)

        return await self._link.use("caches", add)

    async def prune(self) -> int:
        return 0

    async def close(self) -> None:
        """The link is closed by who opened it."""
