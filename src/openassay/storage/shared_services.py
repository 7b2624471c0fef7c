"""What processes share quickly and can do without: caches, signals and rate limits."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from openassay.protocols import RateLimiter, Signals
from openassay.settings import Settings
from openassay.storage.cache import CacheLayer, open_cache
from openassay.storage.connections import ServerLinks
from openassay.storage.locks import UserLock
from openassay.storage.rate_limits import PostgresRates, ProcessRates, RedisRates
from openassay.storage.signals import PostgresSignals, ProcessSignals, RedisSignals


class SharedServices(NamedTuple):
    cache: CacheLayer
    signals: Signals
    rates: RateLimiter
    shared_rates: RateLimiter | None  # the same, where several processes take from them
    user_lock: UserLock


@asynccontextmanager
async def open_shared_services(
    settings: Settings, folder: Path, address: str | None, on_notice: Callable[[str], None]
) -> AsyncIterator[SharedServices]:
    """Open those of the settings; nothing is connected to before its first use. `address` is that of the database,
    where it is PostgreSQL."""
    async with AsyncExitStack() as stack:
        links = ServerLinks(settings.keys.redis_url, address, on_notice)
        stack.push_async_callback(links.close)
        cache = open_cache(settings.cache, folder, links, on_notice)
        stack.push_async_callback(cache.close)
        backend = settings.fleet.signals
        if backend == "auto":
            backend = "redis" if links.has_redis else "postgres" if links.has_postgres else "process"
        signals, rates = ProcessSignals(), ProcessRates()
        if backend == "redis":
            redis = links.redis("fleet.signals")
            signals, rates = RedisSignals(redis), RedisRates(redis)
        elif backend == "postgres":
            postgres = links.postgres("fleet.signals")
            signals, rates = PostgresSignals(postgres), PostgresRates(postgres)
        stack.push_async_callback(signals.close)
        user_lock = UserLock(links.postgres("persistence.backend") if links.has_postgres else None)
        yield SharedServices(cache, signals, rates, None if backend == "process" else rates, user_lock)
