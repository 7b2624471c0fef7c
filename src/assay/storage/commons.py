"""What processes share quickly and can do without: caches, news, and how often something may be done."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from assay.ports import Rates, Signals
from assay.settings import Settings
from assay.storage.cache import OpenCache, open_cache
from assay.storage.links import Links
from assay.storage.postgres_rates import PostgresRates
from assay.storage.postgres_signals import PostgresSignals
from assay.storage.rates import ProcessRates
from assay.storage.redis_rates import RedisRates
from assay.storage.redis_signals import RedisSignals
from assay.storage.signals import ProcessSignals
from assay.storage.turnstile import Turnstile


class Commons(NamedTuple):
    cache: OpenCache
    signals: Signals
    rates: Rates
    between: Rates | None  # the same, where several processes take from them
    turnstile: Turnstile


@asynccontextmanager
async def open_commons(
    settings: Settings, folder: Path, address: str | None, on_notice: Callable[[str], None]
) -> AsyncIterator[Commons]:
    """Those of the settings; nothing is connected to before its first use. `address` is that of the database, where it
    is PostgreSQL."""
    async with AsyncExitStack() as stack:
        links = Links(settings.keys.redis_url, address, on_notice)
        stack.push_async_callback(links.close)
        cache = open_cache(settings.cache, folder, links, on_notice)
        stack.push_async_callback(cache.close)
        signals, rates, between = _carried(_carrier(settings, links), links)
        stack.push_async_callback(signals.close)
        turnstile = Turnstile(links.postgres("persistence.backend") if links.has_postgres else None)
        yield Commons(cache, signals, rates, between, turnstile)


def _carrier(settings: Settings, links: Links) -> Literal["process", "postgres", "redis"]:
    if settings.fleet.signals != "auto":
        return settings.fleet.signals
    return "redis" if links.has_redis else "postgres" if links.has_postgres else "process"


def _carried(
    carrier: Literal["process", "postgres", "redis"], links: Links
) -> tuple[ProcessSignals, Rates, Rates | None]:
    if carrier == "process":
        return ProcessSignals(), ProcessRates(), None
    rates: Rates
    if carrier == "redis":
        redis = links.redis("fleet.signals")
        rates = RedisRates(redis)
        return RedisSignals(redis), rates, rates
    postgres = links.postgres("fleet.signals")
    rates = PostgresRates(postgres)
    return PostgresSignals(postgres), rates, rates
