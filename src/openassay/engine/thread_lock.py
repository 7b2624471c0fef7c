"""The lock of a thread: what is decided about a thread is read, decided and written while this process holds it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from openassay.errors import StorageError
from openassay.protocols import Lease, RunLocks
from openassay.storage.locks import fence

T = TypeVar("T")


class ThreadLock:
    """The lock of one thread. Locks may be across a network, so they are asked off the event loop."""

    def __init__(self, locks: RunLocks, thread: str) -> None:
        self.thread = thread
        self.lease = Lease(thread)
        self.transferred = False  # to a run, which releases it at its end
        self._locks = locks
        self._held = False

    async def acquire(self, *, forgive: bool = True) -> None:
        await shield_until_done(asyncio.to_thread(self._acquire, forgive))

    def _acquire(self, forgive: bool) -> None:
        self.lease = self._locks.acquire(self.thread, forgive=forgive)
        self._held = True  # set here, where it is known even if the caller was cancelled meanwhile

    def fence(self) -> AbstractContextManager[None]:
        """Refuse what is written for the thread inside, once another process has it."""
        return fence(self.lease)

    async def is_held(self) -> bool:
        """Whether it was not lost to another process because this one was silent for too long."""
        return await asyncio.to_thread(self._locks.holds, self.thread)

    async def reset_crash_count(self) -> None:
        await asyncio.to_thread(self._locks.reset_crash_count, self.thread)

    async def release(self) -> None:
        if self._held:
            self._held = False
            await shield_until_done(asyncio.to_thread(self._locks.release, self.thread))


async def retry_storage(work: Callable[[], Awaitable[T]], pauses: Sequence[float] = (0.2, 1.0)) -> T:
    """Try again after each pause where storage says that this may help, because its server restarts for example."""
    for pause in pauses:
        try:
            return await work()
        except StorageError as error:
            if not error.retryable:
                raise
        await asyncio.sleep(pause)
    return await work()


async def shield_until_done(work: Coroutine[Any, Any, T]) -> T:
    """Finish work that must not be left half done; a cancellation, however often it comes, takes effect afterwards."""
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
        task.exception()  # mark it as retrieved
    raise cancelled
