"""Rate limits: buckets of tokens that fill evenly, and each action takes one token."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from openassay.protocols import RateDecision, TokenBucket
from openassay.storage.connections import PostgresLink, RedisLink, redis_key

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from redis.asyncio import Redis


MAX_BUCKETS = 20_000  # names that are remembered; one that is forgotten has a full bucket again
MIN_WAIT = 0.01  # seconds between two attempts at a token


@dataclass(slots=True)
class _Level:
    tokens: float
    at: float


class ProcessRates:
    """A RateLimiter of one process and one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[str, _Level] = OrderedDict()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def try_acquire(self, name: str, bucket: TokenBucket) -> RateDecision:
        return self._take_locally(name, bucket)

    async def acquire(self, name: str, bucket: TokenBucket) -> None:
        async with self._locks[name]:  # first come, first served, and one task of a process asks at a time
            while wait := (await self.try_acquire(name, bucket)).wait:  # noqa: ASYNC110  # no event to wait for
                await asyncio.sleep(max(wait, MIN_WAIT))

    def _take_locally(self, name: str, bucket: TokenBucket) -> RateDecision:
        now = self._clock()
        level = self._levels.setdefault(name, _Level(bucket.size, now))
        self._levels.move_to_end(name)
        if len(self._levels) > MAX_BUCKETS:
            self._levels.popitem(last=False)
        level.tokens = min(level.tokens + max(now - level.at, 0.0) * bucket.per_second, bucket.size)
        level.at = now
        is_taken = level.tokens >= 1
        level.tokens -= is_taken
        return _make_decision(is_taken, level.tokens, bucket)


class ServerRates(ProcessRates, ABC):
    """Buckets on a server, one for all processes. Where it cannot be asked, each process goes by what it has taken
    itself: losing a server gives nobody a full bucket."""

    async def try_acquire(self, name: str, bucket: TokenBucket) -> RateDecision:
        shared = await self._take_from_server(name, bucket)
        if shared is not None and shared.wait:
            return shared
        local = self._take_locally(name, bucket)
        return local if shared is None else shared

    @abstractmethod
    async def _take_from_server(self, name: str, bucket: TokenBucket) -> RateDecision | None:
        """Take a token there; None where trouble prevents it."""


def _make_decision(is_taken: bool, left: float, bucket: TokenBucket) -> RateDecision:
    return RateDecision(left, 0.0 if is_taken else (1 - left) / bucket.per_second)


# The row is locked before its level is read, and the clock is read after that: a process that waited for it sees what
# was taken meanwhile. A clock that is set back fills nothing, and counts from there.
_TAKE_SQL = """
INSERT INTO rates AS kept (name, level, at, taken) VALUES (%(name)s, %(size)s - 1, clock_timestamp(), TRUE)
ON CONFLICT (name) DO UPDATE SET (level, taken, at) = (
    SELECT CASE WHEN filled >= 1 THEN filled - 1 ELSE filled END, filled >= 1, clock_timestamp()
    FROM (SELECT least(
        %(size)s,
        kept.level + %(per_second)s * greatest(0, extract(epoch FROM clock_timestamp() - kept.at)::float8)
    ) AS filled) AS now
)
RETURNING taken, level
"""


class PostgresRates(ServerRates):
    """A RateLimiter in the database: one row per bucket, by the database's clock."""

    def __init__(self, link: PostgresLink) -> None:
        super().__init__()
        self._link = link

    async def _take_from_server(self, name: str, bucket: TokenBucket) -> RateDecision | None:
        values = {"name": name, "size": float(bucket.size), "per_second": float(bucket.per_second)}

        async def ask(connection: "AsyncConnection[Any]") -> RateDecision:
            [(is_taken, left)] = await (await connection.execute(_TAKE_SQL, values)).fetchall()
            return _make_decision(is_taken, left, bucket)

        return await self._link.use("rates", ask)


# A script, though the caches do without: a level must be read, filled and written in one step. WATCH does that too, in
# four rounds instead of one, and gives up where many come at once; a counter with an end (SET NX, INCR) lets twice as
# many through around that end. A server that forbids scripts says so, and processes count for themselves.
_TAKE_SCRIPT = """
local size, per_second = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = size
if kept[1] then
    level = math.min(size, tonumber(kept[1]) + per_second * math.max(0, now - tonumber(kept[2])))
end
local taken = 0
if level >= 1 then
    level = level - 1
    taken = 1
end
redis.call('HSET', KEYS[1], 'level', string.format('%.9f', level), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((size - level) / per_second * 1000) + 1000)
return {taken, string.format('%.9f', level)}
"""


class RedisRates(ServerRates):
    """A RateLimiter on a Redis or Valkey server, by its clock. A bucket that would be full expires, which is the
    same."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__()
        self._link = link
        self._script = link.client.register_script(_TAKE_SCRIPT)

    async def _take_from_server(self, name: str, bucket: TokenBucket) -> RateDecision | None:
        async def ask(_: "Redis") -> RateDecision:
            args = [float(bucket.size), float(bucket.per_second)]
            is_taken, left = cast("list[Any]", await self._script(keys=[redis_key("rate", name)], args=args))
            return _make_decision(bool(is_taken), float(left), bucket)

        return await self._link.use("rates", ask)
