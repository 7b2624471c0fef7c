"""Where it is kept: in a file on one machine, in the database where there are several."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from assay.memory.file import BUSY_SECONDS, alone, open_store
from assay.memory.remembered import StoreMemory
from assay.storage.memories import SqlMemories
from assay.storage.postgres import PostgresDatabase
from assay.storage.rows import Rows


def shared_memory(
    rows: Rows, database: PostgresDatabase, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> StoreMemory:
    """In the database of the rows, for every machine that uses it."""
    store = SqlMemories(rows, lambda: database.alone("assay memory", BUSY_SECONDS))
    return StoreMemory(store, now, store.alone)


@asynccontextmanager
async def open_memory(
    path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[StoreMemory]:
    """On a file for the owner's eyes only, made if there is none. What is forgotten is overwritten in it."""
    async with open_store(path) as store:
        yield StoreMemory(store, now, lambda: alone(path))
