"""What processes share quickly and can do without: caches, news, and how often something may be done."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from openassay.protocols import RateLimiter, Signals
from openassay.settings import Settings
from openassay.storage.cache import ClosableCache, open_cache
from openassay.storage.connections import ServerLinks
from openassay.storage.locks import UserLock
from openassay.storage.rates import PostgresRates, ProcessRates, RedisRates
from openassay.storage.signals import PostgresSignals, ProcessSignals, RedisSignals


class SharedServices(NamedTuple):
    cache: ClosableCache
    signals: Signals
    rates: RateLimiter
    between: RateLimiter | None  # the same, where several processes take from them
    turnstile: UserLock


@asynccontextmanager
async def open_shared_services(
    settings: Settings, folder: Path, address: str | None, on_notice: Callable[[str], None]
) -> AsyncIterator[SharedServices]:
    """Those of the settings; nothing is connected to before its first use. `address` is that of the database, where it
    is PostgreSQL."""
    async with AsyncExitStack() as stack:
        links = ServerLinks(settings.keys.redis_url, address, on_notice)
        stack.push_async_callback(links.close)
        cache = open_cache(settings.cache, folder, links, on_notice)
        stack.push_async_callback(cache.close)
        signals, rates, between = _open_signals(_choose_backend(settings, links), links)
        stack.push_async_callback(signals.close)
        turnstile = UserLock(links.postgres("persistence.backend") if links.has_postgres else None)
        yield SharedServices(cache, signals, rates, between, turnstile)


def _choose_backend(settings: Settings, links: ServerLinks) -> Literal["process", "postgres", "redis"]:
    if settings.fleet.signals != "auto":
        return settings.fleet.signals
    return "redis" if links.has_redis else "postgres" if links.has_postgres else "process"


def _open_signals(
    carrier: Literal["process", "postgres", "redis"], links: ServerLinks
) -> tuple[ProcessSignals, RateLimiter, RateLimiter | None]:
    if carrier == "process":
        return ProcessSignals(), ProcessRates(), None
    rates: RateLimiter
    if carrier == "redis":
        redis = links.redis("fleet.signals")
        rates = RedisRates(redis)
        return RedisSignals(redis), rates, rates
    postgres = links.postgres("fleet.signals")
    rates = PostgresRates(postgres)
    return PostgresSignals(postgres), rates, rates
