"""How often something may be done: buckets of tokens that fill evenly, and each doing takes one."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from assay.ports import Bucket, Taken

MOST_BUCKETS = 20_000  # names that are remembered; one that is forgotten has a full bucket again
SHORTEST = 0.01  # seconds between two tries at a token


@dataclass(slots=True)
class _Level:
    tokens: float
    at: float


class ProcessRates:
    """A ports.Rates of one process and one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[str, _Level] = OrderedDict()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def take(self, name: str, bucket: Bucket) -> Taken:
        return self._take(name, bucket)

    async def turn(self, name: str, bucket: Bucket) -> None:
        async with self._turns[name]:  # first come, first served, and one of a process asks at a time
            while wait := (await self.take(name, bucket)).wait:  # noqa: ASYNC110  # nobody tells when there is one
                await asyncio.sleep(max(wait, SHORTEST))

    def _take(self, name: str, bucket: Bucket) -> Taken:
        now = self._clock()
        level = self._levels.setdefault(name, _Level(bucket.size, now))
        self._levels.move_to_end(name)
        if len(self._levels) > MOST_BUCKETS:
            self._levels.popitem(last=False)
        level.tokens = min(level.tokens + max(now - level.at, 0.0) * bucket.per_second, bucket.size)
        level.at = now
        taken = level.tokens >= 1
        level.tokens -= taken
        return outcome(taken, level.tokens, bucket)


class SharedRates(ProcessRates, ABC):
    """Buckets on a server, one for all processes. Where it cannot be asked, each process goes by what it has taken
    itself: nobody has a full bucket because a server was lost."""

    async def take(self, name: str, bucket: Bucket) -> Taken:
        taken = await self._shared(name, bucket)
        if taken is not None and taken.wait:
            return taken
        here = self._take(name, bucket)
        return here if taken is None else taken

    @abstractmethod
    async def _shared(self, name: str, bucket: Bucket) -> Taken | None:
        """None where trouble stands in the way."""


def outcome(taken: bool, left: float, bucket: Bucket) -> Taken:
    return Taken(left, 0.0 if taken else (1 - left) / bucket.per_second)
