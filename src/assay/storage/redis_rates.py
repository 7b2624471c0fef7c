"""Rates on a Redis or Valkey server, by the server's clock."""

from typing import TYPE_CHECKING, Any, cast

from assay.ports import Bucket, Taken
from assay.storage.rates import SharedRates, outcome
from assay.storage.redis_link import RedisLink, key_of

if TYPE_CHECKING:
    from redis.asyncio import Redis

# A script, though the caches do without: a level must be read, filled and written in one step. WATCH does that too, in
# four rounds instead of one, and gives up where many come at once; a counter with an end (SET NX, INCR) lets twice as
# many through around that end. A server that forbids scripts says so, and processes count for themselves.
_TAKE = """
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


class RedisRates(SharedRates):
    """A ports.Rates. A bucket that would be full is forgotten, which is the same."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__()
        self._link = link
        self._script = link.client.register_script(_TAKE)

    async def _shared(self, name: str, bucket: Bucket) -> Taken | None:
        async def ask(_: "Redis") -> Taken:
            given = [float(bucket.size), float(bucket.per_second)]
            taken, left = cast("list[Any]", await self._script(keys=[key_of("rate", name)], args=given))
            return outcome(bool(taken), float(left), bucket)

        return await self._link.use("rates", ask)
