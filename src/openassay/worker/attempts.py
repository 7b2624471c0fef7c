"""Attempts at queued runs, each until the run stops; used by the server's own dispatcher and by workers."""

import asyncio
import contextlib
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openassay.engine.engine import Engine
from openassay.errors import IntegrityError, NotFoundError, OpenAssayError, StorageError, ThreadBusyError
from openassay.models.event import AT_WORK
from openassay.models.thread import Run

_log = logging.getLogger("openassay")
CRASH_RETRY_SECONDS = 60.0  # before a run that has met a fault of ours is tried again
MAX_CRASHES = 3  # of such a run, in this process
SUSPECT_CRASHES = 3  # processes in a row that ended during a run: it may be the run that ends them
POLL_SECONDS = 1.0  # between looks at whether such a run has made progress


class Attempts:
    """Tries runs. `retry_seconds`: before a run that another process works on is tried again.

    A run during which several processes have ended is resumed alone until it has made progress: should it end this
    process as well, it takes no other run with it."""

    def __init__(self, engine: Engine, *, retry_seconds: float) -> None:
        self._engine = engine
        self._retry_seconds = retry_seconds
        self._crashes = Counter[str]()
        self._active = 0
        self._isolated: str | None = None
        self._run_ended = asyncio.Event()

    async def attempt(self, run: Run) -> float | None:
        """Return the seconds until the next attempt (infinity: not by itself), or None if the run has ended or waits
        for a person. A run that is said to be running is tried as well: its process may be gone."""
        try:
            is_suspect = await self._engine.crash_count(run.thread) >= SUSPECT_CRASHES
            if self._isolated is not None:
                return self._retry_seconds
            async with self._isolate_if_suspect(run, is_suspect):
                if not await self._engine.claim(run):
                    return None
                with contextlib.suppress(OpenAssayError):  # how it ended could not be stored
                    await self._engine.wait(run.id)
                # It is still active if its thread was lost to another process, or if this one stops.
                is_active = (await self._engine.threads.run(run.id)).status in AT_WORK
                return self._retry_seconds if is_active else None
        except ThreadBusyError:
            return self._retry_seconds
        except OpenAssayError as error:
            problem = error
            try:
                if (await self._engine.threads.run(run.id)).status not in AT_WORK:
                    return None  # another process was faster
            except NotFoundError:  # its thread was deleted
                return None
            except StorageError as unreadable:
                problem = unreadable
            _log.warning("thread %s cannot be resumed: %s", run.thread, problem.message)
            if problem.retryable:
                return self._retry_seconds
            if isinstance(problem, IntegrityError):
                return math.inf
        except Exception:  # noqa: BLE001  # the last line of defence: one run must not stand in the way of the others
            _log.exception("thread %s could not be resumed", run.thread)
            self._crashes[run.id] += 1
            if self._crashes[run.id] < MAX_CRASHES:  # another process, of another version perhaps, may do better
                return CRASH_RETRY_SECONDS
            del self._crashes[run.id]
            reason = f"it could not be resumed in {MAX_CRASHES} attempts, because of a bug in OpenAssay"
            problem = OpenAssayError(reason)
        try:
            await self._engine.fail(run, problem)
        except NotFoundError:
            return None
        except OpenAssayError as failure:
            _log.warning("thread %s could not be marked as failed: %s", run.thread, failure.message)
            return self._retry_seconds if failure.retryable else math.inf
        return None

    @asynccontextmanager
    async def _isolate_if_suspect(self, run: Run, is_suspect: bool) -> AsyncIterator[None]:
        watching = None
        try:
            if is_suspect:
                self._isolated = run.id
                while self._active:
                    self._run_ended.clear()
                    await self._run_ended.wait()
                watching = asyncio.create_task(self._watch_progress(run))
            self._active += 1
            try:
                yield
            finally:
                self._active -= 1
                self._run_ended.set()
        finally:
            if watching is not None:
                watching.cancel()
            self._end_isolation(run)

    async def _watch_progress(self, run: Run) -> None:
        """End the isolation once the run has stored some progress: the others need not wait for the rest."""
        crashes = math.inf
        while crashes >= SUSPECT_CRASHES:
            await asyncio.sleep(POLL_SECONDS)
            with contextlib.suppress(OpenAssayError):
                crashes = await self._engine.crash_count(run.thread)
        self._end_isolation(run)

    def _end_isolation(self, run: Run) -> None:
        if self._isolated == run.id:  # another run may be isolated by now
            self._isolated = None
