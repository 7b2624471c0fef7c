"""A thread that this process alone works on: what is decided about it is read, decided and written while it is held."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from assay.ports import RunLocks

T = TypeVar("T")


class Hold:
    """Of one thread. Locks may be across a network, so they are asked off the event loop."""

    def __init__(self, locks: RunLocks, thread: str) -> None:
        self.thread = thread
        self.passed_on = False  # to a run, which gives it back at its end
        self._locks = locks
        self._taken = False

    async def take(self) -> None:
        await to_its_end(asyncio.to_thread(self._take))

    def _take(self) -> None:
        self._locks.take(self.thread)
        self._taken = True  # here, where it is known even if whoever wanted it was cancelled meanwhile

    async def is_kept(self) -> bool:
        """Whether it was not lost, with the connection that held it, to another process."""
        return await asyncio.to_thread(self._locks.holds, self.thread)

    async def give_back(self) -> None:
        if self._taken:
            self._taken = False
            await to_its_end(asyncio.to_thread(self._locks.release, self.thread))


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """What must not be left half done: a cancel is heeded when it is done, however often it comes."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # which nobody is told of now
    raise cancelled
