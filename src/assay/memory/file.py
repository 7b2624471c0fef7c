"""The file in which one machine remembers: LangGraph's Store on SQLite, for the owner's eyes only."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from json import JSONDecodeError, dumps
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from assay.errors import StorageError
from assay.storage.flock import lock

if TYPE_CHECKING:
    from langgraph.store.sqlite.aio import AsyncSqliteStore

FILE = "memory.sqlite3"  # in the data directory
MOST_ITEMS = 1_000_000  # of everybody
BUSY_SECONDS = 10


async def all_memories(path: Path) -> list[tuple[str, str, str, str]]:
    """What is remembered of anybody in a file: whose, where, under which key, and what."""
    if not await asyncio.to_thread(path.exists):
        return []
    async with open_store(path) as store:
        items = await store.asearch(("memory",), limit=MOST_ITEMS)
        return [(item.namespace[1], ".".join(item.namespace[2:]), item.key, dumps(item.value)) for item in items]


@asynccontextmanager
async def open_store(path: Path) -> "AsyncIterator[AsyncSqliteStore]":
    import aiosqlite
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    os.close(_opened(path))
    async with aiosqlite.connect(path, isolation_level=None, timeout=BUSY_SECONDS) as connection:
        store = AsyncSqliteStore(connection)
        async with alone(path):  # two at once would both add the same columns
            with stored(path):
                await connection.execute("PRAGMA journal_mode = WAL")
                await connection.execute("PRAGMA secure_delete = ON")
                await store.setup()
        try:
            yield store
        finally:
            await _ended(store._task)


async def _ended(task: "asyncio.Task[None] | None") -> None:
    """A Store's task is only cancelled when the Store is collected, and then nobody waits for its end."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def alone(path: Path) -> AsyncIterator[None]:
    """One writer at a time, among all processes. Who dies gives the lock back."""
    beside = path.with_suffix(".lock")
    handle = _opened(beside)
    try:
        await _locked(handle, beside)
        yield
    finally:
        os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StorageError(
            f"cannot use {path}: {error.strerror}", help="Set ASSAY_DATA_DIR to a folder you can write to.", path=path
        ) from error


async def _locked(handle: int, path: Path) -> None:
    until = monotonic() + BUSY_SECONDS
    while True:
        try:
            return lock(handle)
        except BlockingIOError as error:
            if monotonic() > until:
                raise StorageError(
                    "another process is writing to the memory", help="Try again later.", retryable=True, path=path
                ) from error
        await asyncio.sleep(0.01)


@contextmanager
def stored(path: Path | None = None) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, JSONDecodeError) as error:
        where = f"{path}: " if path else "the memory cannot be used: "
        raise StorageError(
            f"{where}{error}", help=f"Move {FILE} away and start afresh, or restore a copy.", path=path
        ) from error
