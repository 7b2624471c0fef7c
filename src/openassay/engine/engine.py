"""Starts, follows, resumes and stops runs. Front ends call the engine and nothing below it.

A run is detached from its caller: it appends events, and its checkpoints alone decide how it is resumed. What can be
done with the questions, the history, the branches, the vetoes and the archive of threads is in the engine's parts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from openassay.engine.archive import ThreadArchive
from openassay.engine.branches import UNTITLED, BranchService, VetoService, make_title
from openassay.engine.history import ThreadHistory
from openassay.engine.interrupts import InterruptService
from openassay.engine.run_journal import read_restorable, restore_run
from openassay.engine.runner import DRAIN_SECONDS, EVENT_POLL_SECONDS, CostLimit, Runner, ignore_event, new_id
from openassay.engine.state_view import StateView, build_view
from openassay.engine.thread_lock import ThreadLock
from openassay.engine.timings import Timings, measure_timings
from openassay.engine.validation import OpenQuestion, list_skipped_approvals, validate_question
from openassay.errors import OpenAssayError, StorageError, ThreadBusyError, UsageError, no_run
from openassay.export import Report
from openassay.llm.selection import is_private, select_models
from openassay.models.base import Record
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.evidence import Document
from openassay.models.plan import Mode
from openassay.models.spend import CostEstimate
from openassay.models.thread import Cursor, ResearchOptions, Run, StopRequest, Thread, ThreadSummary
from openassay.nodes.approve import check_breakpoints
from openassay.protocols import Source
from openassay.reasoning.base import Reasoner
from openassay.state import question_input
from openassay.storage.documents import get_only, validate_prefix
from openassay.storage.threads import active_run_error
from openassay.text.redaction import GONE

_log = logging.getLogger("openassay")
MAX_CONCURRENT = 4  # abandoned runs that are resumed together; the others wait until one of these stops
SILENCE_SECONDS = 5.0  # without an event, after which a follower checks whether any process is still at work
STARTING_SECONDS = 30.0  # a process may take to start a run that was suspended for it
REDACTED = "Your question contained a secret of the settings, which was removed."


class RunOutcome(Record):
    """What a run has reached once it no longer moves by itself."""

    run: Run
    report: Report | None = None
    questions: tuple[OpenQuestion, ...] = ()


class PreparedRun(NamedTuple):
    """A run with its sources, and notices about it that the person must see."""

    run: Run
    sources: list[Source]
    notices: dict[str, str]


class Engine:
    """What a front end can do with threads and runs. `forget` deletes what is stored of folders that no thread uses any
    more; `watchers` are called with every event of this process's runs once it is stored, and runs wait for them."""

    def __init__(self, runner: Runner, forget: Callable[[set[str]], None] = lambda folders: None) -> None:
        check_breakpoints(runner.settings)
        self.settings = runner.settings
        self.threads = runner.threads
        self.memory = runner.memory
        self.watchers = runner.watchers
        self.history = ThreadHistory(runner)
        self.interrupts = InterruptService(runner)
        self.branches = BranchService(runner, self.history)
        self.vetoes = VetoService(runner, self.history)
        self.archive = ThreadArchive(runner, forget)
        self.unrecoverable: dict[str, OpenAssayError] = {}  # runs that could not be resumed here, and why
        self._runner = runner

    # -- starting -----------------------------------------------------------------------------------------

    async def start(self, question: str, options: ResearchOptions, *, thread: str | None = None) -> Run:
        """Start a run, on a new thread unless one is named. Nothing is written before the question is accepted."""
        async with self._open_run(question, options, thread, RunStatus.RUNNING) as (prepared, lock):
            run, sources, notices = prepared
            input = question_input(run, notices)
            self._runner.spawn(run, sources, input, lock, notices, new=thread is None)
        return run

    async def queue(
        self, question: str, options: ResearchOptions, *, thread: str | None = None, id: str | None = None
    ) -> Run:
        """Queue a run for the process that will resume its thread. `id` is what the run is called."""
        async with self._open_run(question, options, thread, RunStatus.QUEUED, id) as (prepared, _):
            return prepared.run

    @asynccontextmanager
    async def _open_run(
        self, question: str, options: ResearchOptions, thread: str | None, status: RunStatus, id: str | None = None
    ) -> AsyncIterator[tuple[PreparedRun, ThreadLock]]:
        """Store a new run, on a new thread unless one is named, and keep its thread locked."""
        question = validate_question(question, options)
        mode = options.mode if options.interactive else None  # a thread keeps what a person said, not what a job did
        if thread is None:  # it need not be locked before it exists
            prepared = await self._prepare_run(question, options, new_id(), status, id)
            run = prepared.run
            async with self._runner.lock_thread(run.thread) as lock:
                created = self._build_thread(run.thread, make_title(run.question), mode, options.user)
                await self.threads.create_with_run(created, run)
                yield prepared, lock
            return
        await self.threads.get(thread)
        async with self._runner.lock_thread(thread) as lock:
            runs = await self.threads.runs(thread)
            options = _inherit_options(options, runs[-1].options if runs else options)
            await self._runner.check(thread)
            prepared = await self._prepare_run(question, options, thread, status, id)
            run = prepared.run
            # One question after the other. A thread without a title is called after its first.
            if runs and runs[-1].active:
                raise active_run_error(run.id, thread)
            if not runs and (await self.threads.get(thread)).title == UNTITLED:
                await self.rename(thread, run.question)
            if mode:
                await self.threads.set_mode(thread, mode)
            await self.threads.begin(run)
            yield prepared, lock

    async def _prepare_run(
        self, question: str, options: ResearchOptions, thread: str, status: RunStatus, id: str | None
    ) -> PreparedRun:
        redact = self._runner.redaction.redact_secrets
        question = redact(question)
        options = options.model_copy(update={"context": redact(options.context), "private": is_private(options)})
        remembered = {}
        try:
            preferences = await self.memory.preferences(options.user)
            options = options.model_copy(update={"preferences": preferences})
        except StorageError as error:
            remembered["memory"] = f"Your preferences could not be read and were left out: {error.message}"
        sources, notices = await self._runner.select_sources(options)
        notices = {**notices, **remembered, **self._question_notices(question, options)}
        options = await asyncio.to_thread(self._runner.reasoners.pin_options, options)
        if options.source == "auto":
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        return PreparedRun(self._runner.build_run(thread, question, options, status, id), sources, notices)

    def _question_notices(self, question: str, options: ResearchOptions) -> dict[str, str]:
        secret = {"secret": REDACTED} if GONE in question + options.context else {}
        return {**secret, **list_skipped_approvals(options, self.settings)}

    def _build_thread(self, id: str, title: str, mode: Mode | None, owner: str) -> Thread:
        now = self._runner.now()
        return Thread(id=id, title=title, created=now, updated=now, mode=mode, owner=owner)

    async def fetch_documents(self, options: ResearchOptions) -> None:
        """Copy the documents of a run to this machine, where they are not. It takes a while: call it before anything is
        locked that others wait for."""
        if options.docs:
            await asyncio.to_thread(self._runner.choose_sources, options)

    async def create_thread(self, title: str = "", mode: Mode | None = None, owner: str | None = None) -> Thread:
        """Create a thread without a question."""
        thread = self._build_thread(new_id(), make_title(title), mode, owner or self.settings.user)
        await self.threads.create(thread)
        return thread

    async def estimate(self, question: str, options: ResearchOptions) -> CostEstimate:
        """Estimate what a question will cost; nothing is written and nothing is spent."""
        validate_question(question, options)
        sources, _ = await self._runner.select_sources(options)
        return await self._runner.estimate(options, sources)

    def open_model(self, user: str) -> Reasoner | None:
        """Open the language model for work outside of a run, if one is set up. Its calls are booked, and capped, as
        those of a run are."""
        options = ResearchOptions(user=user)
        if select_models(self.settings, options) is None:
            return None
        run = self._runner.build_run(new_id(), "", options, RunStatus.RUNNING)
        return self._runner.reasoners.open(run, ignore_event)[0]

    # -- resuming -----------------------------------------------------------------------------------------

    async def resume(self, thread: str, *, queued: bool = False) -> Run:
        """Resume from the last good checkpoint; what was finished is not done again. `queued`: only if the run is still
        queued."""
        run = await self._get_resumable(thread)
        stop = await self.threads.get_stop_request(run.id)
        async with self._runner.lock_thread(thread) as lock:
            if queued and (await self._runner.latest_run(thread)).status is not RunStatus.QUEUED:
                raise UsageError("this thread is no longer queued", help=f"See: openassay threads follow {thread}")
            if stop and not queued:  # asked of a process that is gone, not of this one
                await self.threads.request_stop(run.id, StopRequest.NO)
            return await self._continue_run(thread, lock)

    async def _continue_run(self, thread: str, lock: ThreadLock) -> Run:
        run = await self._get_resumable(thread)
        state = await self._runner.state(thread)
        untouched = not state.values or state.values.get("run") != run.id
        if state.interrupts and not untouched:
            return await self.interrupts.resume_waiting(run, lock)
        await self._runner.check(thread)
        options = run.options
        sources: list[Source] = []
        notices: dict[str, str] = {}
        if not (untouched and options.veto):  # a veto asks nobody: all it needs was read
            sources, notices = await self._runner.select_sources(options)
            if untouched:
                notices |= self._question_notices(run.question, options)
        input = await self.vetoes.build_input(run, notices) if untouched else None
        self._runner.spawn(run, sources, input, lock, notices)
        return run

    async def restore(self, folder: Path) -> Run:
        """Restore a run from its journal alone, on any machine. Nothing is written before all of it was checked;
        `resume` continues it, unless it was finished."""
        journal = self._runner.journal
        if journal is None:
            raise UsageError("there is no database here to restore a run into")
        found = await asyncio.to_thread(read_restorable, folder, journal.seals)
        async with self._runner.lock_thread(found.rows.run.thread):
            run = await restore_run(found, folder, journal.stores, self._runner.now())
            await journal.copy(run)
        return run

    async def requeue(self, thread: str) -> Run:
        """Queue a run that was stopped, or has failed, again."""
        return await self._queue_again(thread, self._get_idle)

    async def suspend(self, thread: str) -> Run:
        """Queue a run for another process that is about to start."""
        return await self._queue_again(thread, self._get_resumable, "The run continues in a process of its own.")

    async def _queue_again(self, thread: str, get: Callable[[str], Awaitable[Run]], notice: str | None = None) -> Run:
        await get(thread)
        async with self._runner.lock_thread(thread):
            run = await get(thread)
            await self._runner.check(thread)
            await self.threads.update(run.id, status=RunStatus.QUEUED)
            if notice:
                await self._runner.add_notice(run.id, notice)
        return await self.threads.run(run.id)

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

    async def resume_abandoned(self, at_once: int = MAX_CONCURRENT) -> list[Run]:
        """Resume runs whose process is gone, as many as may run together: call it again when one of them stops. What
        cannot be resumed is logged and left as it is, and tried again by the next call if the reason may pass; what
        waits for a person is left alone."""
        resumed: list[Run] = []
        for run in await self.threads.list_active():
            if len(self.list_running()) >= at_once:
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
        """Resume a run that is queued, or whose process is gone; returns whether it does. One that waits for a person
        is left alone; one that somebody has stopped ends here, and so does one that crashes every process.
        ThreadBusyError where somebody works on it."""
        async with self._runner.lock_thread(run.thread, patience=patience, forgive=False) as lock:
            if (await self.threads.run(run.id)).status not in AT_WORK:
                return False
            if await self.threads.get_stop_request(run.id):  # its process was gone before it saw that
                await self._runner.end(run, RunStatus.CANCELLED)
                return False
            crashes = lock.lease.falls
            if crashes >= self._runner.settings.fleet.most_falls:
                times = "once" if crashes == 1 else f"{crashes} times in a row"
                error = f"its worker died {times} while working on it, so it is not retried: ask again, or resume it"
                await self._runner.end(run, RunStatus.FAILED, error)
                return False
            await self._continue_run(run.thread, lock)
            return lock.transferred

    async def is_orphaned(self, thread: str, status: RunStatus | None) -> bool:
        """Whether the process is gone that worked on a thread whose run has this status."""
        return status is RunStatus.RUNNING and await self._runner.is_abandoned(thread)

    async def crash_count(self, thread: str) -> int:
        """Return how many processes in a row have died while they worked on it, without getting anywhere."""
        return await asyncio.to_thread(self._runner.locks.crash_count, thread)

    # -- stopping -----------------------------------------------------------------------------------------

    async def stop(self, thread: str, *, drain: bool = False, run: str | None = None) -> Run:
        """Stop what runs on a thread, in any process, or this `run` alone; `drain` lets it end its current step.
        Returns the run as it is now: another process checks once a second whether it must stop. Only a
        person resumes it."""
        found = await self._runner.latest_run(thread) if run is None else await self.threads.run(run)
        _refuse_idle(found)
        if self._runner.is_running(found.id):
            if drain:  # stored, because a run that only its process has drained is resumed by the next
                await self.threads.request_stop(found.id, StopRequest.DRAIN)
                await self.drain(found.id)
            else:
                await self.cancel(found.id)
        else:
            try:
                async with self._runner.lock_thread(found.thread):
                    _refuse_idle(await self.threads.run(found.id))
                    await self._runner.end(found, RunStatus.CANCELLED)
            except ThreadBusyError:
                await self.threads.request_stop(found.id, StopRequest.DRAIN if drain else StopRequest.CANCEL)
        return await self.threads.run(found.id)

    async def fail(self, run: Run, error: OpenAssayError) -> None:
        """End a queued run that cannot be resumed, and record why."""
        async with self._runner.lock_thread(run.thread, patience=0):
            if (await self.threads.run(run.id)).status in AT_WORK:  # nobody has stopped it meanwhile
                await self._runner.end(run, RunStatus.FAILED, error.message)

    async def cancel(self, run: str) -> None:
        """Stop a run of this process; it can be resumed."""
        await self._runner.cancel(run)

    async def drain(self, run: str | None = None, seconds: float = DRAIN_SECONDS) -> None:
        """Stop a run of this process, or all, each after its current step, or at once if that takes longer than
        `seconds`. The next process resumes them."""
        await asyncio.gather(*(self._runner.drain(one, seconds) for one in ([run] if run else self.list_running())))

    async def close(self) -> None:
        await self._runner.close()

    # -- following ----------------------------------------------------------------------------------------

    async def wait(self, run: str) -> RunOutcome:
        """Wait until the run is done, failed, cancelled or waits for a person."""
        await self._runner.wait(run)
        return await self.outcome(run)

    async def outcome(self, run: str) -> RunOutcome:
        """Return the run with its report, or with the questions it waits for."""
        current = await self.threads.run(run)
        values = (await self._runner.state(current.thread)).values
        is_done = current.status is RunStatus.DONE and values.get("run") == run
        report = values.get("report") if is_done else None
        is_waiting = current.status is RunStatus.WAITING
        return RunOutcome(
            run=current,
            report=Report.model_validate(report) if report else None,
            questions=tuple(await self.interrupts.open_questions(current.thread)) if is_waiting else (),
        )

    def set_cost_limit(self, cost_limit: CostLimit) -> None:
        """Ask this function, whenever a run is started or resumed, what it may cost at most."""
        self._runner.cost_limit = cost_limit

    def list_running(self) -> list[str]:
        """Return the runs this process works on."""
        return self._runner.list_running()

    def losses(self) -> int:
        """Return how many runs were lost to another process because this one was silent for too long."""
        return self._runner.losses

    def fault(self, run: str) -> OpenAssayError | None:
        """Return why a run of this process failed, if for a reason that was foreseen."""
        return self._runner.fault(run)

    def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield every event from `after` on, then new ones as they come, until the run stops."""
        return self._runner.events(run, after)

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield events as `events` does, of a run that any process may work on."""
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
        current = await self.threads.run(run)
        if current.status is RunStatus.RUNNING:
            return silent and await self._runner.is_abandoned(current.thread)
        if current.status is RunStatus.QUEUED and not drained:  # its process may still be starting
            waited = self._runner.now() - (await self.threads.get(current.thread)).updated
            return waited.total_seconds() > STARTING_SECONDS and await self._runner.is_abandoned(current.thread)
        return True

    # -- reading ------------------------------------------------------------------------------------------

    async def state(self, thread: str) -> dict[str, Any]:
        return dict((await self._runner.state(thread)).values)

    async def view(self, thread: str) -> StateView:
        """Return everything the thread's state says, with what it refers to."""
        mode = (await self.threads.get(thread)).mode
        state = await self._runner.state(thread)
        checkpoint = state.config.get("configurable", {}).get("checkpoint_id") if state.values else None
        return await build_view(
            state.values, self._runner.documents, thread=thread, next=state.next, checkpoint=checkpoint, mode=mode
        )

    async def checkpoint(self, thread: str) -> str | None:
        """Return the last checkpoint of a thread; None where nothing was done on it yet."""
        saved = await self._runner.checkpointer.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        return saved.checkpoint["id"] if saved else None

    async def document(self, hash: str, *, thread: str | None = None) -> Document:
        """Return a document by its hash, or the beginning of that; with `thread`, one which that thread rests on."""
        if thread is not None:
            start, hashes = validate_prefix(hash), await self._runner.documents.list_hashes(thread)
            hash = get_only([one for one in hashes if one.startswith(start)], hash)
        return await self._runner.documents.get(hash)

    async def has_event(self, run: str, seq: int) -> bool:
        return await self._runner.log.has(run, seq)

    async def timings(self, thread: str, run: str | None = None) -> Timings:
        """Return where the time of a run went: of the thread's last one, unless one is named."""
        found = await self._runner.latest_run(thread) if run is None else await self.threads.run(run)
        if found.thread != thread:
            raise no_run(found.id)  # as of one that never was
        return measure_timings(found, await self._runner.log.since(found.id, 0), self._runner.now())

    async def overview(
        self,
        limit: int,
        status: RunStatus | Collection[RunStatus] = (),
        *,
        owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:
        """List threads, the one used last first. `status` is that of a thread's last run, `after` where the page before
        has ended."""
        statuses = [status] if isinstance(status, RunStatus) else status
        found = await self.threads.overview(limit=limit, statuses=statuses, owner=owner, after=after)
        return [one.model_copy(update={"left": await self.is_orphaned(one.id, one.status)}) for one in found]

    async def rename(self, thread: str, name: str) -> None:
        await self.threads.rename(thread, make_title(name))

    async def check(self, thread: str) -> None:
        """Raise IntegrityError unless the thread is what was written. Every run begins with this check."""
        await self._runner.check(thread)


def _inherit_options(options: ResearchOptions, before: ResearchOptions) -> ResearchOptions:
    """Let a follow-up ask the documents of the question before, unless it names its own or another source. What was
    said about documents stays as private as they are, whatever is asked next."""
    options = options.model_copy(update={"private": before.private or options.private})
    if options.docs or options.source != "auto":
        return options
    web = options.web or before.web
    return options.model_copy(update={"docs": before.docs, "source": before.source, "web": web})


def _refuse_idle(run: Run) -> None:
    if not run.active:
        raise UsageError(
            f"nothing is running on this thread: its last run is {run.status}",
            help=f"Look at it with: openassay threads show {run.thread}",
        )
