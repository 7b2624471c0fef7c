"""Resumes runs from their last good checkpoint, and takes over, follows and stops runs of other processes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from openassay.engine.recovery import read_restorable, restore_run
from openassay.engine.runner import EVENT_POLL_SECONDS, Runner
from openassay.engine.start import secret_notice
from openassay.engine.thread_lock import ThreadLock
from openassay.engine.validation import list_skipped_approvals
from openassay.engine.vetoes import VetoService
from openassay.errors import OpenAssayError, ThreadBusyError, UsageError
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.thread import Run, StopRequest, ThreadSummary
from openassay.protocols import ChooseSources, Source
from openassay.storage.threads import active_run_error

_log = logging.getLogger("openassay")
MAX_CONCURRENT = 4  # abandoned runs that are resumed together; the others wait until one of these stops
SILENCE_SECONDS = 5.0  # without an event, after which a follower checks whether any process is still at work
STARTING_SECONDS = 30.0  # a process may take to start a run that was suspended for it


class RunResumer:
    """Resumes runs, or queues them for another process. `sources` chooses those of a run; `resume_waiting` puts a
    question again that a run waits for."""

    def __init__(
        self,
        runner: Runner,
        vetoes: VetoService,
        sources: ChooseSources,
        resume_waiting: Callable[[Run, ThreadLock], Awaitable[Run]],
    ) -> None:
        self._runner = runner
        self._threads = runner.threads
        self._vetoes = vetoes
        self._sources = sources
        self._resume_waiting = resume_waiting

    async def resume(self, thread: str, *, queued: bool) -> Run:
        run = await self._get_resumable(thread)
        stop = await self._threads.get_stop_request(run.id)
        async with self._runner.lock_thread(thread) as lock:
            if queued and (await self._runner.latest_run(thread)).status is not RunStatus.QUEUED:
                raise UsageError("this thread is no longer queued", help=f"See: openassay threads follow {thread}")
            if stop and not queued:  # asked of a process that is gone, not of this one
                await self._threads.request_stop(run.id, StopRequest.NO)
            return await self.continue_run(thread, lock)

    async def continue_run(self, thread: str, lock: ThreadLock) -> Run:
        """Continue the run of a thread that is locked."""
        run = await self._get_resumable(thread)
        state = await self._runner.state(thread)
        untouched = not state.values or state.values.get("run") != run.id
        if state.interrupts and not untouched:
            return await self._resume_waiting(run, lock)
        await self._runner.check(thread)
        options = run.options
        sources: list[Source] = []
        notices: dict[str, str] = {}
        if not (untouched and options.veto):  # a veto asks nobody: all it needs was read
            sources, notices = await asyncio.to_thread(self._sources, options)
            notices |= await asyncio.to_thread(self._runner.reasoners.notices, options)
            if untouched:
                notices |= list_skipped_approvals(options, self._runner.settings)
                notices |= secret_notice(run.question, options)
        input = await self._vetoes.build_input(run, notices) if untouched else None
        self._runner.spawn(run, sources, input, lock, notices)
        return run

    async def restore(self, folder: Path) -> Run:
        journal = self._runner.journal
        if journal is None:
            raise UsageError("there is no database here to restore a run into")
        found = await asyncio.to_thread(read_restorable, folder, journal.seals)
        async with self._runner.lock_thread(found.rows.run.thread):
            run = await restore_run(found, folder, journal.stores, self._runner.now())
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
            await self._runner.add_notice(run.id, "The run continues in a process of its own.")
        return await self._threads.run(run.id)

    async def fail(self, run: Run, error: OpenAssayError) -> None:
        async with self._runner.lock_thread(run.thread, patience=0):
            if (await self._threads.run(run.id)).status in AT_WORK:  # nobody has stopped it meanwhile
                await self._runner.end(run, RunStatus.FAILED, error.message)

    async def _get_idle(self, thread: str) -> Run:
        """Return the thread's run, if it was stopped or has failed."""
        run = await self._get_resumable(thread)
        if run.status is RunStatus.WAITING:
            raise UsageError("this thread waits for an answer", help="Answer the question that is open.")
        if run.status is RunStatus.RUNNING:
            raise active_run_error(run.id, thread)
        if run.status is RunStatus.QUEUED:
            raise ThreadBusyError("this thread is already queued", help="It is resumed in its turn.")
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


class RunCoordinator:
    """Looks after runs that any process may work on. `resume` continues a thread that is locked; `unrecoverable` are
    the runs that could not be resumed, and why."""

    def __init__(self, runner: Runner, resume: Callable[[str, ThreadLock], Awaitable[Run]]) -> None:
        self.unrecoverable: dict[str, OpenAssayError] = {}
        self._runner = runner
        self._resume = resume

    async def stop(self, run: Run, *, drain: bool) -> Run:
        """Stop a run and return it as it is now: still running where another process has been asked to stop it."""
        _refuse_idle(run)
        threads = self._runner.threads
        if self._runner.is_running(run.id):
            if drain:  # stored, because a run that only its process has drained is resumed by the next
                await threads.request_stop(run.id, StopRequest.DRAIN)
                await self._runner.drain(run.id)
            else:
                await self._runner.cancel(run.id)
        else:
            try:
                async with self._runner.lock_thread(run.thread):
                    _refuse_idle(await threads.run(run.id))
                    await self._runner.end(run, RunStatus.CANCELLED)
            except ThreadBusyError:
                await threads.request_stop(run.id, StopRequest.DRAIN if drain else StopRequest.CANCEL)
        return await threads.run(run.id)

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield every event from `after` on, then new ones as they come, until no process works on the run."""
        clock = asyncio.get_running_loop().time
        last_event, drained = clock(), False
        while True:
            idle = await self._is_idle(run, drained, silent=clock() - last_event > SILENCE_SECONDS)
            for event in await self._runner.log.since(run, after):
                after, last_event = event.seq, clock()
                drained = event.kind == "run" and event.data.get("status") == RunStatus.QUEUED
                yield event
            if idle:
                return
            await asyncio.sleep(EVENT_POLL_SECONDS)

    async def _is_idle(self, run: str, drained: bool, *, silent: bool) -> bool:
        """Whether no process works on the run. The lock is tried only where there is reason to: trying it blocks others
        for a moment."""
        if self._runner.is_running(run):
            return False
        current = await self._runner.threads.run(run)
        if current.status is RunStatus.RUNNING:
            return silent and await self._runner.is_abandoned(current.thread)
        if current.status is RunStatus.QUEUED and not drained:  # its process may still be starting
            waited = self._runner.now() - (await self._runner.threads.get(current.thread)).updated
            return waited.total_seconds() > STARTING_SECONDS and await self._runner.is_abandoned(current.thread)
        return True

    async def mark_orphans(self, threads: Sequence[ThreadSummary]) -> list[ThreadSummary]:
        """Mark the threads whose process is gone."""
        return [one.model_copy(update={"left": await self.is_orphaned(one.status, one.id)}) for one in threads]

    async def is_orphaned(self, status: RunStatus | None, thread: str) -> bool:
        return status is RunStatus.RUNNING and await self._runner.is_abandoned(thread)

    async def resume_abandoned(self, at_once: int = MAX_CONCURRENT) -> list[Run]:
        """Resume runs that no process works on any more, as many as may run together. What cannot be resumed is logged
        and left as it is; if the reason may pass, the next call tries again."""
        resumed: list[Run] = []
        for run in await self._runner.threads.list_active():
            if len(self._runner.list_running()) >= at_once:
                break
            problem = self.unrecoverable.get(run.id)
            if run.status not in AT_WORK or self._runner.is_running(run.id) or (problem and not problem.retryable):
                continue
            try:
                if await self.claim(run, patience=0):
                    resumed.append(run)
                self.unrecoverable.pop(run.id, None)
            except ThreadBusyError:  # somebody is at work on it, or was faster
                pass
            except OpenAssayError as error:  # its documents are gone, for example; the others must not wait for that
                self.unrecoverable[run.id] = error
                _log.warning("thread %s was abandoned and cannot be resumed: %s", run.thread, error.message)
        return resumed

    async def claim(self, run: Run, *, patience: float | None = None) -> bool:
        """Resume a run that nobody works on, unless it has ended or waits for a person; one that somebody has stopped
        ends here, and so does one that crashes every process."""
        async with self._runner.lock_thread(run.thread, patience=patience, forgive=False) as lock:
            if (await self._runner.threads.run(run.id)).status not in AT_WORK:
                return False
            if await self._runner.threads.get_stop_request(run.id):  # its process was gone before it saw that
                await self._runner.end(run, RunStatus.CANCELLED)
                return False
            crashes = lock.lease.falls
            if crashes >= self._runner.settings.fleet.most_falls:
                times = "once" if crashes == 1 else f"{crashes} times in a row"
                error = f"its worker died {times} while working on it, so it is not retried: ask again, or resume it"
                await self._runner.end(run, RunStatus.FAILED, error)
                return False
            await self._resume(run.thread, lock)
            return lock.transferred


def _refuse_idle(run: Run) -> None:
    if not run.active:
        raise UsageError(
            f"nothing is running on this thread: its last run is {run.status}",
            help=f"Look at it with: openassay threads show {run.thread}",
        )
