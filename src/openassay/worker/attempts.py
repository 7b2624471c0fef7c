"""Attempts at runs that are in line, each until it stands still; the same for whoever takes runs up."""

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
UNFORESEEN = 60.0  # seconds after which one is tried again that has met a fault of ours
TRIES = 3  # at such a one, by this process
SUSPECT = 3  # processes in a row that a run has outlived: it may be the run that ends them
LOOK = 1.0  # seconds between looks whether such a run has got somewhere


class Attempts:
    """`elsewhere`: seconds after which a run that another process works on is tried for again.

    A run that has outlived several processes goes on alone until it has got somewhere: should it end this one as well,
    it takes no other run along."""

    def __init__(self, engine: Engine, *, elsewhere: float) -> None:
        self._engine = engine
        self._elsewhere = elsewhere
        self._faults = Counter[str]()
        self._at_work = 0
        self._alone: str | None = None
        self._left = asyncio.Event()

    async def attempt(self, run: Run) -> float | None:
        """Seconds after which to try again; infinity: not by itself. None: it has ended, or waits for a person. One
        that is said to be running is tried for, too: its process may be gone."""
        try:
            is_suspect = await self._engine.crash_count(run.thread) >= SUSPECT
            if self._alone is not None:
                return self._elsewhere
            async with self._isolate_if_suspect(run, is_suspect):
                return await self._wait_for_run(run) if await self._engine.claim(run) else None
        except ThreadBusyError:
            return self._elsewhere
        except OpenAssayError as error:
            return await self._handle_error(run, error)
        except Exception:  # noqa: BLE001  # the last line of defence: one run must not stand in the way of the others
            _log.exception("thread %s was not taken up", run.thread)
            return await self._handle_crash(run)

    @asynccontextmanager
    async def _isolate_if_suspect(self, run: Run, is_suspect: bool) -> AsyncIterator[None]:
        watching = None
        try:
            if is_suspect:
                self._alone = run.id
                await self._wait_until_alone()
                watching = asyncio.create_task(self._watch_progress(run))
            self._at_work += 1
            try:
                yield
            finally:
                self._at_work -= 1
                self._left.set()
        finally:
            if watching is not None:
                watching.cancel()
            self._end_isolation(run)

    async def _wait_until_alone(self) -> None:
        while self._at_work:
            self._left.clear()
            await self._left.wait()

    async def _watch_progress(self, run: Run) -> None:
        """What it has done since is kept, so the others need not wait for the rest."""
        falls = math.inf
        while falls >= SUSPECT:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(OpenAssayError):
                falls = await self._engine.crash_count(run.thread)
        self._end_isolation(run)

    def _end_isolation(self, run: Run) -> None:
        """It need not be alone any more; another may want to be by now."""
        if self._alone == run.id:
            self._alone = None

    async def _wait_for_run(self, run: Run) -> float | None:
        with contextlib.suppress(OpenAssayError):  # how it ended could not be written down
            await self._engine.wait(run.id)
        # Or its thread was lost to another process, or this one stops.
        return self._elsewhere if (await self._engine.threads.run(run.id)).status in AT_WORK else None

    async def _handle_error(self, run: Run, error: OpenAssayError) -> float | None:
        """Its documents are gone, say: whoever waits for it is told. What may pass is tried again."""
        try:
            if (await self._engine.threads.run(run.id)).status not in AT_WORK:
                return None  # somebody was faster
        except NotFoundError:  # its thread was deleted
            return None
        except StorageError as problem:
            error = problem
        _log.warning("thread %s cannot be taken up: %s", run.thread, error.message)
        if error.retryable:
            return self._elsewhere
        return math.inf if isinstance(error, IntegrityError) else await self._fail_run(run, error)

    async def _handle_crash(self, run: Run) -> float | None:
        """Another process, of another version perhaps, may do better."""
        self._faults[run.id] += 1
        if self._faults[run.id] < TRIES:
            return UNFORESEEN
        del self._faults[run.id]
        return await self._fail_run(
            run, OpenAssayError(f"it could not be gone on with in {TRIES} attempts: a fault of ours")
        )

    async def _fail_run(self, run: Run, error: OpenAssayError) -> float | None:
        try:
            await self._engine.fail(run, error)
        except NotFoundError:
            return None
        except OpenAssayError as problem:
            _log.warning("thread %s could not be given up: %s", run.thread, problem.message)
            return self._elsewhere if problem.retryable else math.inf
        return None
