"""The life of one run in this process: begun, driven, heeding what others ask of it, and ended whatever happens."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from assay.checkpoints.saver import Checkpoints
from assay.deps import step, working
from assay.errors import AssayError, FencedError, StorageError, UsageError
from assay.model.event import RunStatus
from assay.model.thread import Run, Stop
from assay.ports import Source
from assay.runs.drive import AWAY, SETBACKS, Drive
from assay.runs.holding import Hold, patiently, to_its_end
from assay.runs.workplace import Workplace, config
from assay.stages.failures import is_passing
from assay.storage.fences import lost

_log = logging.getLogger("assay")
LOOK = 1.0  # seconds after which a run looks whether another process wants it stopped, or has its thread
DRAINED = "Stopped after the step it was at; nothing that was under way is lost, and it can be gone on with."
CUT = "Stopped in the middle of a step, which is done again when it is gone on with."


@dataclass(slots=True, kw_only=True, eq=False)
class Ending:
    """What became of a run, besides what its thread tells."""

    fault: AssayError | None = None  # why it failed, if for a reason that was foreseen
    discarded: bool = False  # its new thread was taken back: its input could not be used
    unwritten: bool = False  # its end could not be written down: storage has failed
    lost: bool = False  # to another process


@dataclass(slots=True, kw_only=True, eq=False)
class Execution:
    """`given` is what the graph is given: a question, an answer, or None to go on from the last checkpoint. `new`: its
    thread is as new as the run."""

    place: Workplace
    run: Run
    hold: Hold
    sources: list[Source]
    given: Any
    notices: dict[str, str]
    new: bool
    control: RunControl = field(default_factory=RunControl)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    if_cancelled: RunStatus = RunStatus.CANCELLED
    ending: Ending = field(default_factory=Ending)
    task: "asyncio.Task[None]" = field(init=False)

    def begin(self) -> None:
        """The run takes the thread over, and gives it back."""
        with self.hold.fenced():  # the task takes that along, and all it begins
            self.task = asyncio.create_task(self._live(), name=f"run-{self.run.id}")
        self.hold.passed_on = True

    async def _live(self) -> None:
        status, error, notice = RunStatus.FAILED, None, None
        working.set(self.run)
        heeding = asyncio.create_task(self._heed())
        try:
            status = await self._work()
        except asyncio.CancelledError:
            status, notice = self.if_cancelled, CUT if self.if_cancelled is RunStatus.QUEUED else None
            raise
        except GraphDrained:
            status, notice = RunStatus.QUEUED, DRAINED
        except FencedError:  # the thread is another's: `_end` finds the same
            pass
        except AssayError as problem:
            self.ending.fault = problem
            if is_passing(problem):
                status, notice = RunStatus.QUEUED, f"{AWAY} It waits to be taken up again: {problem.message}"
            else:
                error = problem.message
            self.ending.discarded = self.new and isinstance(problem, UsageError)
        except Exception as problem:  # noqa: BLE001  # the last line of defence: a run never takes its caller down
            error = f"{type(problem).__name__}: {problem}"
        finally:
            heeding.cancel()
            # A cancelled run must still be marked as such, or its thread would stay busy.
            await to_its_end(self._end(status, error, notice))

    async def _work(self) -> RunStatus:
        place, run = self.place, self.run
        # A thread that still writes this when the run is cancelled would write over how it ended.
        await to_its_end(patiently(lambda: place.threads.update(run.id, status=RunStatus.RUNNING)))
        told = await place.journal.open(run) if place.journal else []
        request = str(run.options.get("request") or "")
        falls = {"falls": self.hold.lease.falls} if self.hold.lease.falls else {}
        began = await place.append(run.id, "run", "", {"status": RunStatus.RUNNING, "request": request, **falls})
        step.set(began.seq)
        for text in (*self.notices.values(), *told):
            await place.tell(run.id, text)
        drive = Drive(place=place, run=run, sources=self.sources, control=self.control)
        await drive.prepare()
        self.new = False  # the input can be used: from here on there is something to lose
        return await drive.through(self.given)

    async def _end(self, status: RunStatus, error: str | None, notice: str | None) -> None:
        """Where storage itself has failed, nothing can be written of that; whoever waits is told. What another process
        has taken up by now is left to it."""
        try:
            if not await self.hold.is_kept():
                raise lost(self.run.thread)
            if status is RunStatus.QUEUED and await self.place.threads.stopping(self.run.id):  # not for the next one
                status = RunStatus.CANCELLED
            await patiently(lambda: self._settle(status, error, notice), SETBACKS)
        except FencedError:
            status = RunStatus.RUNNING  # there
            self.ending.lost = True
            thread = self.run.thread
            _log.warning("thread %s was lost: this process was not heard of for too long; another has it", thread)
            self._leave_journal()
        except StorageError as problem:
            self.ending.fault = self.ending.fault or problem
            self.ending.unwritten = True
            self._leave_journal()  # whether the thread was kept is not known
        finally:
            await self._put_away(status)

    async def _settle(self, status: RunStatus, error: str | None, notice: str | None) -> None:
        place, run = self.place, self.run
        if error is not None:
            error = await place.explain(run.id, error, self.ending.fault)
        if notice is not None:
            await place.tell(run.id, notice)
        if not self.ending.discarded:
            return await place.settle(run.id, status, error)
        await place.threads.delete(run.thread)
        if place.journal:
            await place.journal.delete(run.id)

    def _leave_journal(self) -> None:
        if self.place.journal:
            self.place.journal.leave(self.run.id)

    async def _put_away(self, status: RunStatus) -> None:
        """Whatever happened, even a database that is gone: nothing stays open, and the thread is free."""
        try:
            if self.place.journal:
                await self.place.journal.close(self.run.id)
            if status is RunStatus.DONE:
                await self._prune()
        finally:
            await self.hold.give_back()

    async def _prune(self) -> None:
        """What stays is decided by the settings; a run that is done needs only the last."""
        keep, saver, thread = self.place.settings.persistence.keep_checkpoints, self.place.checkpointer, self.run.thread
        if keep and isinstance(saver, Checkpoints):
            try:
                await saver.prune_run(thread, self.run.id, keep=keep)
            except StorageError as error:  # the run is done all the same
                _log.warning("old checkpoints of thread %s were not removed: %s", thread, error.message)

    async def _heed(self) -> None:
        """What another process asks of a run; whether the thread is still this one's; and, where others have died at
        it, whether it has got further than they."""
        reached: str | None = None
        while True:
            await asyncio.sleep(LOOK)
            try:
                stop, is_kept = await self.place.threads.stopping(self.run.id), await self.hold.is_kept()
                reached = await self._further(reached) if self.hold.lease.falls else None
            except AssayError:  # a database that is busy now may not be at the next look
                continue
            if stop is Stop.CANCEL or not is_kept:
                self.task.cancel()
                return
            if stop is Stop.DRAIN:
                self.control.request_drain()

    async def _further(self, reached: str | None) -> str:
        kept = await self.place.checkpointer.aget_tuple(config(self.run.thread))
        now = kept.checkpoint["id"] if kept else ""
        if reached not in (None, now):
            await self.hold.progressed()
        return now
