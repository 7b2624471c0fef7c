"""Executing runs in this process: one task a run, its events written as it goes, its thread locked while it works."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from assay.checkpoints.restoration import refuse_half
from assay.errors import AssayError, ThreadBusyError
from assay.model.event import AT_WORK, Event, RunStatus
from assay.model.thread import Run
from assay.ports import Source
from assay.runs.execution import Ending, Execution
from assay.runs.holding import Hold
from assay.runs.workplace import Workplace
from assay.storage.notes import documents_in

TICK = 0.5  # seconds after which a reader of events looks again by itself
DRAIN = 30.0  # seconds a step is given to end in good order
PATIENCE = 5.0  # seconds a thread is waited for on which nobody is at work, as far as is known
PAUSE = 0.1
MOST_FAULTS = 1000  # runs whose failure is remembered


@dataclass(slots=True, kw_only=True, eq=False)
class Runner(Workplace):
    losses: int = 0  # runs that were lost to another process
    _executions: dict[str, Execution] = field(default_factory=dict)
    _failed: dict[str, Ending] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Workplace.__post_init__(self)  # a dataclass with slots is made anew, which `super()` does not know of
        self.watchers.append(self._wake)

    def _wake(self, event: Event) -> None:
        if work := self._executions.get(event.run):
            work.news.set()

    def at_work(self, run: str) -> bool:
        return run in self._executions

    def running(self) -> list[str]:
        """The runs this process works on."""
        return list(self._executions)

    def fault(self, run: str) -> AssayError | None:
        """Why a run of this process failed, if for a reason that was foreseen."""
        ending = self._ending(run)
        return ending.fault if ending else None

    def _ending(self, run: str) -> Ending | None:
        work = self._executions.get(run)
        return work.ending if work else self._failed.get(run)

    async def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        while True:
            if work := self._executions.get(run):
                work.news.clear()
            if (ending := self._ending(run)) and ending.discarded:
                return
            for event in await self.log.since(run, after):
                after = event.seq
                yield event
            if work is None:
                return
            with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                async with asyncio.timeout(TICK):
                    await work.news.wait()

    @contextlib.asynccontextmanager
    async def holding(self, thread: str, *, patience: float | None = None, forgive: bool = True) -> AsyncIterator[Hold]:
        """Nobody else works on the thread, or decides about it, in here; a run that is spawned takes it over. Whoever
        only puts a run's things away is waited for; else ThreadBusyError. `forgive`: how many have died at it before is
        forgotten."""
        hold = Hold(self.locks, thread)
        try:
            await self._take(hold, PATIENCE if patience is None else patience, forgive)
            with hold.fenced():
                yield hold
        finally:
            if not hold.passed_on:
                await hold.give_back()

    async def _take(self, hold: Hold, patience: float, forgive: bool) -> None:
        clock = asyncio.get_running_loop().time
        ends, at_work = clock() + patience, False
        while True:
            try:
                return await hold.take(forgive=forgive)
            except ThreadBusyError:
                if at_work or clock() >= ends:
                    raise
                at_work = await self._is_at_work(hold.thread)
            await asyncio.sleep(PAUSE)

    async def _is_at_work(self, thread: str) -> bool:
        """As far as is known."""
        try:
            runs = await self.threads.runs(thread)
        except AssayError:  # it is damaged, or not there yet
            return True
        return bool(runs) and runs[-1].status in AT_WORK

    async def is_abandoned(self, thread: str) -> bool:
        """Whether no process works on it."""
        return await asyncio.to_thread(self.locks.is_free, thread)

    async def check(self, thread: str) -> None:
        """Before anything runs on it: IntegrityError unless the thread is what was written."""
        for run in await self.threads.runs(thread):
            refuse_half(run)
        if self.integrity is not None:
            await self.integrity.check(thread, set(documents_in((await self.state(thread)).values)))

    def spawn(
        self,
        run: Run,
        sources: list[Source],
        given: Any,
        hold: Hold,
        notices: dict[str, str] | None = None,
        *,
        new: bool = False,
    ) -> None:
        self._failed.pop(run.id, None)
        work = Execution(place=self, run=run, hold=hold, sources=sources, given=given, notices=notices or {}, new=new)
        self._executions[run.id] = work
        work.begin()
        work.task.add_done_callback(lambda _: self._ended(run.id))

    def _ended(self, run: str) -> None:
        work = self._executions.pop(run)
        self.losses += work.ending.lost
        if work.ending.fault:
            self._failed[run] = work.ending
            for oldest in list(self._failed)[:-MOST_FAULTS]:
                del self._failed[oldest]
        work.news.set()

    async def wait(self, run: str) -> None:
        """Until it no longer moves by itself."""
        if work := self._executions.get(run):
            await asyncio.wait([work.task])
            await asyncio.sleep(0)  # its ending has been seen to
        ending = self._failed.get(run)
        if ending and ending.fault and (ending.discarded or ending.unwritten):
            raise ending.fault

    async def cancel(self, run: str) -> None:
        if work := self._executions.get(run):
            await asyncio.sleep(0)  # one that was spawned just now has begun by then, and can say how it ended
            work.task.cancel()
            await asyncio.wait([work.task])
            await asyncio.sleep(0)

    async def drain(self, run: str, seconds: float = DRAIN) -> None:
        """Stop it after the step it is at, so that nothing under way is given up; at once if that takes too long.
        Whoever starts next may take it up, unless a person has asked for it to stop."""
        if work := self._executions.get(run):
            work.control.request_drain()
            await asyncio.wait([work.task], timeout=seconds)
            await self._cut(run)

    async def drain_all(self, seconds: float = DRAIN) -> None:
        await asyncio.gather(*(self.drain(run, seconds) for run in self.running()))

    async def close(self) -> None:
        await asyncio.gather(*(self._cut(run) for run in self.running()))

    async def _cut(self, run: str) -> None:
        """Nobody wanted it stopped for good: whoever starts next may take it up."""
        work = self._executions.get(run)
        if work and not work.task.cancelling():
            work.if_cancelled = RunStatus.QUEUED
        await self.cancel(run)

    async def end(self, run: Run, status: RunStatus, error: str | None = None) -> None:
        """One that nobody works on; whoever follows it is told."""
        if error is not None:
            error = await self.explain(run.id, error, self.fault(run.id))
        await self.settle(run.id, status, error)
