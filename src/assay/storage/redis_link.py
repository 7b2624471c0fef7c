"""A Redis or Valkey server that processes share."""

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import SecretStr

from assay.errors import ConfigurationError
from assay.storage.link import REST_SECONDS, Link

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")

PREFIX = "assay:"
CONNECT_SECONDS, ANSWER_SECONDS = 1.0, 1.5
CONNECTIONS = 32


class RedisLink(Link["Redis"]):
    server = "Redis server"

    def __init__(self, url: SecretStr, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        super().__init__(on_notice, rest=rest)
        self.client = _client(url)

    async def close(self) -> None:
        self._closed = True
        await self.client.aclose()

    def faults(self) -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError

        return RedisError, OSError, TimeoutError

    async def _do(self, action: "Callable[[Redis], Awaitable[T]]") -> T:
        return await action(self.client)

    def _is_gone(self, error: Any) -> bool:
        from redis import exceptions

        return isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError)

    def _reason(self, error: Any) -> str:
        from redis import exceptions

        refusals = exceptions.AuthenticationError | exceptions.AuthorizationError | exceptions.NoPermissionError
        if isinstance(error, refusals):
            return "refuses the password in REDIS_URL, or what its user asks"
        if isinstance(error, exceptions.TimeoutError | TimeoutError):
            return "does not answer in time"
        if isinstance(error, exceptions.ConnectionError | OSError):
            return "cannot be reached"
        return f"answers with an error ({type(error).__name__})"


def key_of(kind: Literal["value", "count", "rate"], name: str) -> str:
    """Names hold queries, addresses and people, which are nobody's business on a shared server."""
    return f"{PREFIX}{kind}:{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


def _client(url: SecretStr) -> "Redis":
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import ConnectionError

    try:
        pool = BlockingConnectionPool.from_url(
            url.get_secret_value(),
            max_connections=CONNECTIONS,
            timeout=RedisLink.seconds,
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
