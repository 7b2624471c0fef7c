"""Runs of other processes: followed, asked to stop, and taken up when their process is gone."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from openassay.engine import recovery
from openassay.engine.lock import ThreadLock
from openassay.engine.questions import list_skipped_approvals
from openassay.engine.runner import TICK, Runner
from openassay.engine.start import secret_notice
from openassay.engine.vetoes import VetoService
from openassay.errors import OpenAssayError, ThreadBusyError, UsageError
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.thread import Run, StopRequest, ThreadSummary, read_options
from openassay.protocols import ChooseSources, SourceSelection
from openassay.storage.threads import active_run_error

# Going on with a run where its last good checkpoint left it, or putting it aside for somebody who will.


class RunResumer:
    """`sources` chooses those of a run; `ask_again` puts a question again that a run waits for."""

    def __init__(
        self,
        runner: Runner,
        vetoes: VetoService,
        sources: ChooseSources,
        ask_again: Callable[[Run, ThreadLock], Awaitable[Run]],
    ) -> None:
        self._runner = runner
        self._threads = runner.threads
        self._vetoes = vetoes
        self._sources = sources
        self._ask_again = ask_again

    async def resume(self, thread: str, *, queued: bool) -> Run:
        run = await self._get_resumable(thread)
        stop = await self._threads.get_stop_request(run.id)
        async with self._runner.lock_thread(thread) as hold:
            if queued and (await self._runner.latest_run(thread)).status is not RunStatus.QUEUED:
                raise UsageError(
                    "this thread does not wait to be taken up any more", help=f"See: openassay threads follow {thread}"
                )
            if stop and not queued:
                await self._threads.request_stop(
                    run.id, StopRequest.NO
                )  # asked of a process that is gone, not of this one
            return await self.continue_run(thread, hold)

    async def continue_run(self, thread: str, hold: ThreadLock) -> Run:
        """On a thread that is held."""
        run = await self._get_resumable(thread)
        state = await self._runner.state(thread)
        if state.interrupts and state.values.get("run") == run.id:
            return await self._ask_again(run, hold)
        await self._runner.check(thread)
        untouched = not state.values or state.values.get("run") != run.id
        sources, notices = await self._choose_sources(run, untouched)
        given = await self._vetoes.build_input(run, notices) if untouched else None
        self._runner.spawn(run, sources, given, hold, notices)
        return run

    async def _choose_sources(self, run: Run, untouched: bool) -> SourceSelection:
        options = read_options(run)
        if untouched and options.veto:  # it asks nobody: all it needs was read
            return [], {}
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices |= await asyncio.to_thread(self._runner.thinking.notices, options)
        return sources, notices | (
            list_skipped_approvals(options, self._runner.settings) | secret_notice(run.question, options)
            if untouched
            else {}
        )

    async def restore(self, folder: Path) -> Run:
        journal = self._runner.journal
        if journal is None:
            raise UsageError("there is no database here to restore a run into")
        found = await recovery.read_run_records(folder, journal.seals)
        async with self._runner.lock_thread(found.run.thread):
            run = await recovery.restore_run(found, journal.stores, self._runner.now())
            await journal.copy(run)
        return run

    async def requeue(self, thread: str) -> Run:
        await self._get_idle(thread)
        async with self._runner.lock_thread(thread):
            run = await self._get_idle(thread)
            await self._runner.check(thread)
            await self._threads.update(run.id, status=RunStatus.QUEUED)
        return await self._threads.run(run.id)

    async def suspend(self, thread: str) -> Run:
        await self._get_resumable(thread)
        async with self._runner.lock_thread(thread):
            run = await self._get_resumable(thread)
            await self._runner.check(thread)
            await self._threads.update(run.id, status=RunStatus.QUEUED)
            await self._runner.add_notice(run.id, "It goes on in a process of its own.")
        return await self._threads.run(run.id)

    async def fail(self, run: Run, error: OpenAssayError) -> None:
        async with self._runner.lock_thread(run.thread, patience=0):
            if (await self._threads.run(run.id)).status in AT_WORK:  # nobody has stopped it meanwhile
                await self._runner.end(run, RunStatus.FAILED, error.message)

    async def _get_idle(self, thread: str) -> Run:
        """One that neither moves nor is about to."""
        run = await self._get_resumable(thread)
        if run.status is RunStatus.WAITING:
            raise UsageError("this thread waits for an answer", help="Answer the question that is open.")
        if run.status is RunStatus.RUNNING:
            raise active_run_error(run.id, thread)
        if run.status is RunStatus.QUEUED:
            raise ThreadBusyError("this thread waits in line already", help="It is taken up in its turn.")
        return run

    async def _get_resumable(self, thread: str) -> Run:
        run = await self._runner.latest_run(thread)
        if run.status is RunStatus.DONE:
            raise UsageError(
                "this thread's last question is already answered",
                help=f"Ask a new one: openassay ask ... --thread {thread}",
            )
        if self._runner.is_running(run.id):
            raise ThreadBusyError("this thread is already running here")
        return run


_log = logging.getLogger("openassay")
AT_ONCE = 4  # runs that are taken up together; the others wait until one of these stands still
SILENCE = 5.0  # seconds without an event after which a follower asks whether anybody is still at work
STARTING = 30.0  # seconds a process may take to begin with a run that was put aside for it


class RunCoordinator:
    """`resume` goes on with a thread that is held. `unable` are runs that could not go on, and why."""

    def __init__(self, runner: Runner, resume: Callable[[str, ThreadLock], Awaitable[Run]]) -> None:
        self.unable: dict[str, OpenAssayError] = {}
        self._runner = runner
        self._resume = resume

    async def stop(self, run: Run, *, drain: bool) -> Run:
        """The run as it stands now: still running where another process has been asked to stop it."""
        _refuse_idle(run)
        if self._runner.is_running(run.id):
            await (self._drain(run.id) if drain else self._runner.cancel(run.id))
        else:
            try:
                async with self._runner.lock_thread(run.thread):
                    _refuse_idle(await self._runner.threads.run(run.id))
                    await self._runner.end(run, RunStatus.CANCELLED)
            except ThreadBusyError:
                await self._runner.threads.request_stop(run.id, StopRequest.DRAIN if drain else StopRequest.CANCEL)
        return await self._runner.threads.run(run.id)

    async def _drain(self, run: str) -> None:
        """That somebody wants it is written down: a run that only its process has drained is taken up by the next."""
        await self._runner.threads.request_stop(run, StopRequest.DRAIN)
        await self._runner.drain(run)

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until no process works on the run."""
        clock = asyncio.get_running_loop().time
        heard, drained = clock(), False
        while True:
            still = await self._is_idle(run, drained, silent=clock() - heard > SILENCE)
            for event in await self._runner.log.since(run, after):
                after, heard = event.seq, clock()
                drained = event.kind == "run" and event.data.get("status") == RunStatus.QUEUED
                yield event
            if still:
                return
            await asyncio.sleep(TICK)

    async def _is_idle(self, run: str, drained: bool, *, silent: bool) -> bool:
        """A lock is tried for only where there is reason to: whoever tries is in the way of others for a moment."""
        if self._runner.is_running(run):
            return False
        current = await self._runner.threads.run(run)
        if current.status is RunStatus.RUNNING:
            return silent and await self._runner.is_abandoned(current.thread)
        if current.status is RunStatus.QUEUED and not drained:  # its process may still be starting
            waited = self._runner.now() - (await self._runner.threads.get(current.thread)).updated
            return waited.total_seconds() > STARTING and await self._runner.is_abandoned(current.thread)
        return True

    async def mark_orphans(self, threads: Sequence[ThreadSummary]) -> list[ThreadSummary]:
        """With a word on those whose process is gone. The lock of a run that is at work is never had by asking."""
        return [one.model_copy(update={"left": await self.is_orphaned(one.status, one.id)}) for one in threads]

    async def is_orphaned(self, status: RunStatus | None, thread: str) -> bool:
        return status is RunStatus.RUNNING and await self._runner.is_abandoned(thread)

    async def resume_abandoned(self, at_once: int = AT_ONCE) -> list[Run]:
        """Go on with runs that nobody works on any more, as many as may be at work together. What cannot go on is told
        and left as it is; if that may pass, the next time is another try."""
        taken: list[Run] = []
        for run in await self._runner.threads.list_active():
            if len(self._runner.list_running()) >= at_once:
                break
            if run.status in AT_WORK and not self._runner.is_running(run.id) and not self._is_unrecoverable(run):
                taken += [run] if await self._try_claim(run) else []
        return taken

    def _is_unrecoverable(self, run: Run) -> bool:
        return run.id in self.unable and not self.unable[run.id].retryable

    async def _try_claim(self, run: Run) -> bool:
        try:
            taken = await self.claim(run, patience=0)
        except ThreadBusyError:  # somebody is at work on it, or was faster
            return False
        except OpenAssayError as error:  # its documents are gone, say; the others must not wait for that
            self.unable[run.id] = error
            _log.warning("thread %s was left and cannot go on: %s", run.thread, error.message)
            return False
        self.unable.pop(run.id, None)
        return taken

    async def claim(self, run: Run, *, patience: float | None = None) -> bool:
        """Go on with a run that nobody works on, unless it has ended or waits for a person; one that somebody has
        stopped ends here, and so does one that takes every process down. What is asked of it from here on is asked of
        this process."""
        async with self._runner.lock_thread(run.thread, patience=patience, forgive=False) as hold:
            if (await self._runner.threads.run(run.id)).status not in AT_WORK:
                return False
            if await self._runner.threads.get_stop_request(run.id):  # its process was gone before it saw that
                await self._runner.end(run, RunStatus.CANCELLED)
                return False
            if hold.lease.falls >= self._runner.settings.fleet.most_falls:
                await self._runner.end(run, RunStatus.FAILED, _crash_message(hold.lease.falls))
                return False
            await self._resume(run.thread, hold)
            return hold.passed_on


def _crash_message(falls: int) -> str:
    times = "once" if falls == 1 else f"{falls} times in a row"
    return f"its worker died {times} while at it, so it is not tried again by itself: ask again, or resume it"


def _refuse_idle(run: Run) -> None:
    if not run.active:
        raise UsageError(
            f"nothing is at work on this thread: its last run is {run.status}",
            help=f"Look at it with: openassay threads show {run.thread}",
        )
