"""A thread that this process alone works on: what is decided about it is read, decided and written while it is held."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from openassay.errors import StorageError
from openassay.protocols import Lease, RunLocks
from openassay.storage.fences import fence

T = TypeVar("T")


class ThreadLock:
    """Of one thread. Locks may be across a network, so they are asked off the event loop. `lease` is what was taken."""

    def __init__(self, locks: RunLocks, thread: str) -> None:
        self.thread = thread
        self.lease = Lease(thread)
        self.passed_on = False  # to a run, which gives it back at its end
        self._locks = locks
        self._taken = False

    async def acquire(self, *, forgive: bool = True) -> None:
        await shield_until_done(asyncio.to_thread(self._acquire, forgive))

    def _acquire(self, forgive: bool) -> None:
        self.lease = self._locks.acquire(self.thread, forgive=forgive)
        self._taken = True  # here, where it is known even if whoever wanted it was cancelled meanwhile

    def fence(self) -> AbstractContextManager[None]:
        """What is written for the thread in here is refused once another process has it."""
        return fence(self.lease)

    async def is_held(self) -> bool:
        """Whether it was not lost to another process, which had not heard of this one for too long."""
        return await asyncio.to_thread(self._locks.holds, self.thread)

    async def reset_crash_count(self) -> None:
        await asyncio.to_thread(self._locks.reset_crash_count, self.thread)

    async def release(self) -> None:
        if self._taken:
            self._taken = False
            await shield_until_done(asyncio.to_thread(self._locks.release, self.thread))


async def retry_storage(work: Callable[[], Awaitable[T]], pauses: Sequence[float] = (0.2, 1.0)) -> T:
    """Once more, after each pause, where storage says that this may help: of a server that is restarted only what was
    under way is lost, whoever comes later waits for it."""
    for pause in pauses:
        try:
            return await work()
        except StorageError as error:
            if not error.retryable:
                raise
        await asyncio.sleep(pause)
    return await work()


async def shield_until_done(work: Coroutine[Any, Any, T]) -> T:
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
