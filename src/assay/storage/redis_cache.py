"""The cache that several machines share: a Redis or Valkey server."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

from pydantic import SecretStr

from assay.errors import ConfigurationError
from assay.storage.layers import Found, Kind, Outage, lifetime

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")

PREFIX = "assay:"
CONNECT_SECONDS, ANSWER_SECONDS, CALL_SECONDS = 1.0, 1.5, 3.0
REST_SECONDS = 10.0
CONNECTIONS = 32
LARGEST = 32_000_000  # bytes of a value; a server shared by many should not be filled by one page


class RedisCache:
    """A Layer. The server's address may hold a password: what goes wrong is told in words of our own."""

    def __init__(
        self, url: SecretStr, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS, largest: int = LARGEST
    ) -> None:
        self._client = _client(url)
        self._largest = largest
        self._outage = Outage(on_notice, rest=rest)

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
        """The value and its time in one round; one that expires in between has no time left."""
        name = _name("value", key)

        async def look() -> Found | None:
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.get(name)
                pipe.pttl(name)
                value, left = await pipe.execute()
            return None if value is None else Found(value, max(left, 0) / 1000)

        return await self._use(look)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        name, milliseconds = _name("value", key), int(lifetime(seconds) * 1000)

        async def store() -> None:
            if milliseconds > 0 and len(value) <= self._largest:
                await self._client.set(name, value, px=milliseconds)
            else:
                await self._client.delete(name)

        await self._use(store)

    async def count(self, key: str, *, seconds: float) -> int:
        return await self.tally(key, seconds=seconds) or 1

    async def tally(self, key: str, *, seconds: float) -> int | None:
        """One transaction: the counter gets its end when it begins and never another. No script, which a server may
        forbid, and no EXPIRE NX, which those before Redis 7 do not know."""
        name, milliseconds = _name("count", key), max(1, int(lifetime(seconds) * 1000))

        async def add() -> int:
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(name, 0, px=milliseconds, nx=True)
                pipe.incr(name)
                _, value = await pipe.execute()
            return int(value)

        return await self._use(add)

    async def close(self) -> None:
        await self._client.aclose()

    async def _use(self, action: Callable[[], Awaitable[T]]) -> T | None:
        from redis.exceptions import RedisError

        if self._outage.resting:
            return None
        try:
            async with asyncio.timeout(CALL_SECONDS):
                done = await action()
        except (RedisError, OSError, TimeoutError) as error:
            self._outage.begins(f"The Redis server of the cache {_reason(error)}; going on without it.")
            return None
        self._outage.is_over()
        return done


def _client(url: SecretStr) -> "Redis":
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError

    try:
        pool = BlockingConnectionPool.from_url(
            url.get_secret_value(),
            max_connections=CONNECTIONS,
            timeout=CALL_SECONDS,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=ANSWER_SECONDS,
            # Once: a connection that lay idle may have been closed by the server.
            retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
        )
    except ValueError:
        raise ConfigurationError(
            "REDIS_URL is not the address of a Redis server",
            help="Write it as redis://user:password@host:6379/0, or rediss:// for an encrypted connection.",
        ) from None
    return Redis.from_pool(pool)


def _name(kind: Kind, key: str) -> str:
    """Keys hold queries and addresses, which are nobody's business on a shared server."""
    return f"{PREFIX}{kind}:{blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


def _reason(error: Exception) -> str:
    from redis import exceptions

    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError | exceptions.NoPermissionError):
        return "refuses the password in REDIS_URL"
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return "does not answer in time"
    if isinstance(error, exceptions.ConnectionError | OSError):
        return "cannot be reached"
    return f"answers with an error ({type(error).__name__})"
