"""One decision about a person at a time: what is read, decided and written in there, nobody else decides about."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from assay.storage.postgres_link import PostgresLink


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class Turnstile:
    """With a link it holds for all processes on that database, else for this one. Not to be entered twice by the same
    task. The lock is the database's: it is free when its holder's process dies."""

    def __init__(self, link: PostgresLink | None = None) -> None:
        self._link = link
        self._turns: dict[str, _Turn] = {}

    @asynccontextmanager
    async def through(self, person: str) -> AsyncIterator[None]:
        """StorageError where the database cannot be asked, or somebody else takes too long."""
        turn = self._turns.setdefault(person, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:  # one connection a person is enough
                if self._link is None:
                    yield
                else:
                    async with self._link.alone(f"assay person {person}"):
                        yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[person]
