"""Runs of other processes: followed, asked to stop, and taken up when their process is gone."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from assay.errors import AssayError, ThreadBusyError, UsageError
from assay.model.event import AT_WORK, Event, RunStatus
from assay.model.thread import Run, Stop, ThreadSummary
from assay.runs.holding import Hold
from assay.runs.runner import TICK, Runner

_log = logging.getLogger("assay")
AT_ONCE = 4  # runs that are taken up together; the others wait until one of these stands still
SILENCE = 5.0  # seconds without an event after which a follower asks whether anybody is still at work
STARTING = 30.0  # seconds a process may take to begin with a run that was put aside for it


class Takeover:
    """`resume` goes on with a thread that is held. `unable` are runs that could not go on, and why."""

    def __init__(self, runner: Runner, resume: Callable[[str, Hold], Awaitable[Run]]) -> None:
        self.unable: dict[str, AssayError] = {}
        self._runner = runner
        self._resume = resume

    async def stop(self, run: Run, *, drain: bool) -> Run:
        """The run as it stands now: still running where another process has been asked to stop it."""
        _refuse_idle(run)
        if self._runner.at_work(run.id):
            await (self._drain(run.id) if drain else self._runner.cancel(run.id))
        else:
            try:
                async with self._runner.holding(run.thread):
                    _refuse_idle(await self._runner.threads.run(run.id))
                    await self._runner.end(run, RunStatus.CANCELLED)
            except ThreadBusyError:
                await self._runner.threads.ask_to_stop(run.id, Stop.DRAIN if drain else Stop.CANCEL)
        return await self._runner.threads.run(run.id)

    async def _drain(self, run: str) -> None:
        """That somebody wants it is written down: a run that only its process has drained is taken up by the next."""
        await self._runner.threads.ask_to_stop(run, Stop.DRAIN)
        await self._runner.drain(run)

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until no process works on the run."""
        clock = asyncio.get_running_loop().time
        heard, drained = clock(), False
        while True:
            still = await self._stands_still(run, drained, silent=clock() - heard > SILENCE)
            for event in await self._runner.log.since(run, after):
                after, heard = event.seq, clock()
                drained = event.kind == "run" and event.data.get("status") == RunStatus.QUEUED
                yield event
            if still:
                return
            await asyncio.sleep(TICK)

    async def _stands_still(self, run: str, drained: bool, *, silent: bool) -> bool:
        """A lock is tried for only where there is reason to: whoever tries is in the way of others for a moment."""
        if self._runner.at_work(run):
            return False
        current = await self._runner.threads.run(run)
        if current.status is RunStatus.RUNNING:
            return silent and await self._runner.is_abandoned(current.thread)
        if current.status is RunStatus.QUEUED and not drained:  # its process may still be starting
            waited = self._runner.now() - (await self._runner.threads.get(current.thread)).updated
            return waited.total_seconds() > STARTING and await self._runner.is_abandoned(current.thread)
        return True

    async def marked(self, threads: Sequence[ThreadSummary]) -> list[ThreadSummary]:
        """With a word on those whose process is gone. The lock of a run that is at work is never had by asking."""
        return [one.model_copy(update={"left": await self.is_left(one.status, one.id)}) for one in threads]

    async def is_left(self, status: RunStatus | None, thread: str) -> bool:
        return status is RunStatus.RUNNING and await self._runner.is_abandoned(thread)

    async def adopt(self, at_once: int = AT_ONCE) -> list[Run]:
        """Go on with runs that nobody works on any more, as many as may be at work together. What cannot go on is told
        and left as it is; if that may pass, the next time is another try."""
        taken: list[Run] = []
        for run in await self._runner.threads.active():
            if len(self._runner.running()) >= at_once:
                break
            if run.status in AT_WORK and not self._runner.at_work(run.id) and not self._is_hopeless(run):
                taken += [run] if await self._taken(run) else []
        return taken

    def _is_hopeless(self, run: Run) -> bool:
        return run.id in self.unable and not self.unable[run.id].retryable

    async def _taken(self, run: Run) -> bool:
        try:
            taken = await self.take_up(run, patience=0)
        except ThreadBusyError:  # somebody is at work on it, or was faster
            return False
        except AssayError as error:  # its documents are gone, say; the others must not wait for that
            self.unable[run.id] = error
            _log.warning("thread %s was left and cannot go on: %s", run.thread, error.message)
            return False
        self.unable.pop(run.id, None)
        return taken

    async def take_up(self, run: Run, *, patience: float | None = None) -> bool:
        """Go on with a run that nobody works on, unless it has ended or waits for a person; one that somebody has
        stopped ends here, and so does one that takes every process down. What is asked of it from here on is asked of
        this process."""
        async with self._runner.holding(run.thread, patience=patience, forgive=False) as hold:
            if (await self._runner.threads.run(run.id)).status not in AT_WORK:
                return False
            if await self._runner.threads.stopping(run.id):  # its process was gone before it saw that
                await self._runner.end(run, RunStatus.CANCELLED)
                return False
            if hold.lease.falls >= self._runner.settings.fleet.most_falls:
                await self._runner.end(run, RunStatus.FAILED, _given_up(hold.lease.falls))
                return False
            await self._resume(run.thread, hold)
            return hold.passed_on


def _given_up(falls: int) -> str:
    times = "once" if falls == 1 else f"{falls} times in a row"
    return f"its worker died {times} while at it, so it is not tried again by itself: ask again, or resume it"


def _refuse_idle(run: Run) -> None:
    if not run.active:
        raise UsageError(
            f"nothing is at work on this thread: its last run is {run.status}",
            help=f"Look at it with: assay threads show {run.thread}",
        )
