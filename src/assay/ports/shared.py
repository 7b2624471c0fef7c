"""What processes, on one machine or several, have in common."""

import asyncio
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Cache(Protocol):
    """Forgetful storage: a value may be gone at any time, and is gone after `seconds`.

    It never fails: trouble below it is reported once where it was opened, and is a miss to those who ask."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, *, seconds: float) -> None: ...

    async def count(self, key: str, *, seconds: float) -> int:
        """Adds one to a counter that begins at 0 and is forgotten `seconds` after it began; returns its new value."""
        ...


class Signals(Protocol):
    """News between processes: that something happened to a topic (`run:ID`, without spaces), never what. Used from one
    event loop. One may be lost: whoever listens also looks by itself, only more rarely."""

    @property
    def live(self) -> bool:
        """Whether what other processes ring is heard at present, as far as is known."""
        ...

    def ring(self, topic: str) -> None:
        """Never waits and never fails; rung often, it is told a few times a second."""
        ...

    def listening(self, topic: str) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever somebody rings; who has looked clears it before looking again."""
        ...


class Bucket(NamedTuple):
    """So many tokens at the most, which come back evenly; full at first. A size below 1 would let nobody through."""

    size: float
    per_second: float


class Taken(NamedTuple):
    """What became of asking for a token."""

    left: float
    wait: float = 0.0  # seconds until there is one; 0: it was taken


class Rates(Protocol):
    """How often something may be done, by name. It never fails: who cannot ask the others counts for itself."""

    async def take(self, name: str, bucket: Bucket) -> Taken: ...

    async def turn(self, name: str, bucket: Bucket) -> None:
        """Waits until a token was taken; how long is up to whoever waits."""
        ...
