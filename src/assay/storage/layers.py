"""What the caches have in common: a value with the time it has left, and the layer in the process."""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from time import monotonic
from typing import Literal, NamedTuple, Protocol

SHARE = 8  # a value larger than this part of a layer would push out all else, and passes it by
GRAIN = 60.0  # seconds; a use is noted no finer than this, or every reading would write
ENTRY = 200  # bytes of a row besides its value, with its part of the indexes
LONGEST = 10 * 365 * 86_400.0  # seconds; more would overflow a server's clock

Kind = Literal["value", "count"]


def digest(key: str) -> bytes:
    """What a key is called where names are short."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).digest()


class Found(NamedTuple):
    value: bytes
    seconds: float  # it has left


class Layer(Protocol):
    """A ports.Cache that also says how long a value has left, and when it cannot count."""

    async def get(self, key: str) -> bytes | None: ...

    async def find(self, key: str) -> Found | None: ...

    async def put(self, key: str, value: bytes, *, seconds: float) -> None: ...

    async def count(self, key: str, *, seconds: float) -> int: ...

    async def tally(self, key: str, *, seconds: float) -> int | None:
        """`count`, but None where trouble stands in the way."""
        ...

    async def prune(self) -> int:
        """What has expired leaves, and what there is no room for; how many. So much at a time that nobody waits long
        for it: whoever has time calls it again while something leaves."""
        ...

    async def close(self) -> None: ...


def lifetime(seconds: float) -> float:
    """Seconds that can be kept; not a number is no time at all."""
    return min(seconds, LONGEST) if seconds > 0 else 0.0


class _Kept(NamedTuple):
    content: bytes | int
    ends: float
    size: int


class LruCache:
    """A Layer in the memory of one process and one event loop; what was used longest ago goes first."""

    ENTRY = 300  # bytes that Python takes for an entry besides its key and its value

    def __init__(self, limit: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._entries: OrderedDict[tuple[Kind, str], _Kept] = OrderedDict()
        self.size = 0

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
        kept = self._use("value", key)
        if kept is None or isinstance(kept.content, int):
            return None
        return Found(kept.content, kept.ends - self._clock())

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        self._drop("value", key)
        if seconds > 0 and len(value) <= self._limit // SHARE:
            self._keep("value", key, value, self._clock() + lifetime(seconds))

    async def count(self, key: str, *, seconds: float) -> int:
        kept = self._use("count", key)
        before, ends = (kept.content, kept.ends) if kept else (0, self._clock() + lifetime(seconds))
        self._drop("count", key)
        now = 1 + (before if isinstance(before, int) else 0)
        self._keep("count", key, now, ends)
        return now

    async def tally(self, key: str, *, seconds: float) -> int | None:
        return await self.count(key, seconds=seconds)

    async def prune(self) -> int:
        """Room is made with each writing."""
        return 0

    async def close(self) -> None:
        self._entries.clear()
        self.size = 0

    def _use(self, kind: Kind, key: str) -> _Kept | None:
        kept = self._entries.get((kind, key))
        if kept is None:
            return None
        if kept.ends <= self._clock():
            self._drop(kind, key)
            return None
        self._entries.move_to_end((kind, key))
        return kept

    def _keep(self, kind: Kind, key: str, content: bytes | int, ends: float) -> None:
        size = self.ENTRY + len(key) + (len(content) if isinstance(content, bytes) else 0)
        self._entries[kind, key] = _Kept(content, ends, size)
        self.size += size
        while self.size > self._limit:
            self._drop(*next(iter(self._entries)))

    def _drop(self, kind: Kind, key: str) -> None:
        kept = self._entries.pop((kind, key), None)
        self.size -= kept.size if kept else 0
