"""Executes runs in this process: one task per run, its events stored as they happen, its thread locked meanwhile.

`Runner.spawn` starts a `RunExecution`, which supervises a `GraphRun`, which invokes the graph.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from openassay import protocols
from openassay.context import ReasonerProvider, ResearchContext, current_run, current_step
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.memory import UserMemory
from openassay.engine.run_journal import JournalRecorder, refuse_partial
from openassay.engine.thread_lock import ThreadLock, retry_storage, shield_until_done
from openassay.engine.validation import build_review, read_interrupts
from openassay.errors import (
    Category,
    NotFoundError,
    OpenAssayError,
    StaleLeaseError,
    StorageError,
    ThreadBusyError,
    UsageError,
)
from openassay.graph import build_graph
from openassay.llm.tracing import trace_scope
from openassay.models.event import AT_WORK, Event, EventKind, RunStatus, Status
from openassay.models.plan import Mode
from openassay.models.spend import CostEstimate
from openassay.models.thread import ResearchOptions, Run, StopRequest
from openassay.nodes.failures import is_transient
from openassay.search.ranking import IndexRanker
from openassay.search.registry import RunDocumentStore, add_search_costs
from openassay.settings import Settings
from openassay.state import StateCompactor
from openassay.storage.events import SqlEvents, SqlNotes, SqlReviews, find_documents
from openassay.storage.integrity import SqlIntegrity
from openassay.storage.ledger import SqlLedger
from openassay.storage.locks import lease_error
from openassay.storage.threads import SqlThreads
from openassay.text.redaction import Redactor, build_redactor

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

_log = logging.getLogger("openassay")
MAX_STEPS = 200  # supersteps of one run; every loop of the graph is bounded far below this
MAX_FAULTS = 1000  # runs whose failure is remembered
EVENT_POLL_SECONDS = 0.5  # after which a reader of events looks again by itself
STOP_POLL_SECONDS = 1.0  # after which a run looks whether another process wants it stopped, or has its thread
DRAIN_SECONDS = 30.0  # a step is given to end in good order
LOCK_WAIT_SECONDS = 5.0  # a thread is waited for on which nobody is at work, as far as is known
LOCK_RETRY_SECONDS = 0.1
STORAGE_RETRY_SECONDS = (1.0, 5.0, 15.0)  # pauses before a run tries again where storage was away; anew after each step
UNAVAILABLE = "The database was unavailable for a moment."
DRAINED = "Stopped after its current step. Nothing was lost, and the run can be resumed."
INTERRUPTED = "Stopped in the middle of a step, which is repeated when the run is resumed."

CostLimit = Callable[[Run, ResearchOptions], Awaitable[float | None]]  # dollars a run may cost; None: no limit


async def ignore_event(kind: EventKind, stage: str, data: dict[str, object]) -> None:
    """For whoever shows no steps, or shows them itself."""


def new_id() -> str:
    return uuid4().hex[:12]


def graph_config(thread: str) -> "RunnableConfig":
    return cast("RunnableConfig", {"configurable": {"thread_id": thread}, "recursion_limit": MAX_STEPS})


@dataclass(slots=True, kw_only=True, eq=False)
class Runner:
    """What every run of this process works with, and the runs it works on."""

    settings: Settings
    threads: SqlThreads
    reviews: SqlReviews
    memory: UserMemory
    log: SqlEvents
    documents: protocols.DocumentStore
    notes: SqlNotes
    pages: protocols.PageReader
    ranker: IndexRanker
    reasoners: ReasonerProvider
    choose_sources: protocols.ChooseSources
    checkpointer: SqlCheckpointSaver
    locks: protocols.RunLocks
    now: Callable[[], datetime]
    ledger: SqlLedger | None = None
    integrity: SqlIntegrity | None = None
    journal: JournalRecorder | None = None
    watchers: list[Callable[[Event], None]] = field(default_factory=list)  # called with each event once it is stored
    cost_limit: CostLimit | None = None
    losses: int = 0  # runs that were lost to another process
    redaction: Redactor = field(init=False)
    graph: "CompiledStateGraph[Any, Any, Any, Any]" = field(init=False)
    _executions: "dict[str, RunExecution]" = field(default_factory=dict)
    _failed: "dict[str, RunExit]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.redaction = build_redactor(self.settings)
        self.graph = build_graph(self.checkpointer)
        self.watchers.append(self._notify_readers)

    # -- threads and their state --------------------------------------------------------------------------

    async def latest_run(self, thread: str) -> Run:
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        if not runs:
            raise NotFoundError(f"thread {thread} has no run")
        return runs[-1]

    async def state(self, thread: str) -> "StateSnapshot":
        """Return the latest state, with everything it refers to."""
        state = await self.graph.aget_state(graph_config(thread))
        return state._replace(values=await StateCompactor(self.notes, thread).expand(state.values))

    async def mode(self, thread: str, options: ResearchOptions) -> Mode:
        """Return the mode that was set last: for the thread, for the question, in the settings. A question asked with
        nobody there has a mode of its own and leaves its thread's alone."""
        if options.mode and not options.interactive:
            return options.mode
        return (await self.threads.get(thread)).mode or options.mode or self.settings.mode

    async def select_sources(self, options: ResearchOptions) -> protocols.SourceSelection:
        """Choose the sources and the models of a run; what cannot be used is refused."""
        sources, notices = await asyncio.to_thread(self.choose_sources, options)
        return sources, {**notices, **await asyncio.to_thread(self.reasoners.notices, options)}

    def build_run(
        self, thread: str, question: str, options: ResearchOptions, status: RunStatus, id: str | None = None
    ) -> Run:
        return Run(
            id=id or new_id(),
            thread=thread,
            question=question,
            status=status,
            started=self.now(),
            settings=self.settings.fingerprint(),
            options=options,
        )

    async def estimate(self, options: ResearchOptions, sources: list[protocols.Source]) -> CostEstimate:
        estimate = await asyncio.to_thread(self.reasoners.estimate, options)
        return add_search_costs(estimate, sources, options.depth, self.settings)

    async def check(self, thread: str) -> None:
        """Raise IntegrityError unless the thread is what was written; called before anything runs on it."""
        for run in await self.threads.runs(thread):
            refuse_partial(run)
        if self.integrity is not None:
            await self.integrity.check(thread, set(find_documents((await self.state(thread)).values)))

    # -- locks --------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def lock_thread(
        self, thread: str, *, patience: float | None = None, forgive: bool = True
    ) -> AsyncIterator[ThreadLock]:
        """Keep everybody else from working on the thread, or deciding about it; a run that is spawned inside takes the
        lock over. Waits up to `patience` seconds for a run that is only ending; else raises ThreadBusyError.
        `forgive`: reset the count of processes that died while they worked on it."""
        lock = ThreadLock(self.locks, thread)
        clock = asyncio.get_running_loop().time
        deadline = clock() + (LOCK_WAIT_SECONDS if patience is None else patience)
        busy = False
        try:
            while True:
                try:
                    await lock.acquire(forgive=forgive)
                    break
                except ThreadBusyError:
                    if busy or clock() >= deadline:
                        raise
                    busy = await self._is_at_work(thread)
                await asyncio.sleep(LOCK_RETRY_SECONDS)
            with lock.fence():
                yield lock
        finally:
            if not lock.transferred:
                await lock.release()

    async def _is_at_work(self, thread: str) -> bool:
        try:
            runs = await self.threads.runs(thread)
        except OpenAssayError:  # it is damaged, or not there yet
            return True
        return bool(runs) and runs[-1].status in AT_WORK

    async def is_abandoned(self, thread: str) -> bool:
        return await asyncio.to_thread(self.locks.is_free, thread)

    # -- events -------------------------------------------------------------------------------------------

    async def append(self, run: str, kind: EventKind, stage: str, data: dict[str, object]) -> Event:
        data = self.redaction.redact_data(data)
        event = Event(run=run, time=self.now(), kind=kind, stage=stage, parent=current_step.get(), data=data)
        event = await retry_storage(lambda: self.log.append(event))
        for watcher in self.watchers:
            watcher(event)
        if self.journal and (trouble := self.journal.troubles.pop(run, None)):
            await self.add_notice(run, trouble)
        return event

    async def add_notice(self, run: str, text: str, stage: str = "") -> None:
        await self.append(run, "notice", stage, {"text": text})

    async def record_error(self, run: str, error: str, fault: OpenAssayError | None) -> str:
        """Record why a run failed, and return it as it may be shown; what was not foreseen is an internal error."""
        error = self.redaction.redact_text(error)
        details = {"category": Category.INTERNAL} if fault is None else {"help": fault.help, "category": fault.category}
        await self.append(run, "error", "", {"message": error, **details})
        return error

    async def record_status(self, run: str, status: RunStatus, error: str | None) -> None:
        stage = Status.FAILED if status is RunStatus.FAILED else Status.COMPLETED if status is RunStatus.DONE else None
        await self.threads.update(run, status=status, stage=stage, error=error)
        await self.append(run, "run", "", {"status": status, "error": error})

    async def events(self, run: str, after: int) -> AsyncIterator[Event]:
        while True:
            if execution := self._executions.get(run):
                execution.changed.clear()
            if (exit := self._find_exit(run)) and exit.discarded:
                return
            for event in await self.log.since(run, after):
                after = event.seq
                yield event
            if execution is None:
                return
            with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                async with asyncio.timeout(EVENT_POLL_SECONDS):
                    await execution.changed.wait()

    def _notify_readers(self, event: Event) -> None:
        if execution := self._executions.get(event.run):
            execution.changed.set()

    # -- runs ---------------------------------------------------------------------------------------------

    def spawn(
        self,
        run: Run,
        sources: list[protocols.Source],
        input: Any,
        lock: ThreadLock,
        notices: dict[str, str] | None = None,
        *,
        new: bool = False,
    ) -> None:
        """Start a task for a run, which takes over the lock of its thread. `input` is what the graph gets: a question,
        an answer, or None to resume from the last checkpoint. `new`: its thread is as new as the run."""
        self._failed.pop(run.id, None)
        execution = RunExecution(
            runner=self, run=run, lock=lock, sources=sources, input=input, notices=notices or {}, new=new
        )
        self._executions[run.id] = execution
        with lock.fence():  # the task inherits that, and so does all it starts
            execution.task = asyncio.create_task(execution.supervise(), name=f"run-{run.id}")
        lock.transferred = True
        execution.task.add_done_callback(lambda _: self._forget_execution(run.id))

    def _forget_execution(self, run: str) -> None:
        execution = self._executions.pop(run)
        self.losses += execution.exit.lost
        if execution.exit.fault:
            self._failed[run] = execution.exit
            for oldest in list(self._failed)[:-MAX_FAULTS]:
                del self._failed[oldest]
        execution.changed.set()

    def is_running(self, run: str) -> bool:
        return run in self._executions

    def list_running(self) -> list[str]:
        return list(self._executions)

    def fault(self, run: str) -> OpenAssayError | None:
        exit = self._find_exit(run)
        return exit.fault if exit else None

    def _find_exit(self, run: str) -> "RunExit | None":
        execution = self._executions.get(run)
        return execution.exit if execution else self._failed.get(run)

    async def wait(self, run: str) -> None:
        """Wait until the run no longer moves by itself."""
        if execution := self._executions.get(run):
            await asyncio.wait([execution.task])
            await asyncio.sleep(0)  # let its callback run
        exit = self._failed.get(run)
        if exit and exit.fault and (exit.discarded or exit.unwritten):
            raise exit.fault

    async def cancel(self, run: str) -> None:
        if execution := self._executions.get(run):
            await asyncio.sleep(0)  # one that was spawned just now has begun by then, and can record how it ended
            execution.task.cancel()
            await asyncio.wait([execution.task])
            await asyncio.sleep(0)

    async def drain(self, run: str, seconds: float) -> None:
        """Stop a run after its current step, so that nothing under way is lost; at once if that takes too long. The
        next process may resume it, unless a person has asked for it to stop."""
        if execution := self._executions.get(run):
            execution.control.request_drain()
            await asyncio.wait([execution.task], timeout=seconds)
            await self._cancel_and_requeue(run)

    async def close(self) -> None:
        await asyncio.gather(*(self._cancel_and_requeue(run) for run in self.list_running()))

    async def _cancel_and_requeue(self, run: str) -> None:
        """Cancel a run that nobody wanted stopped for good: the next process may resume it."""
        execution = self._executions.get(run)
        if execution and not execution.task.cancelling():
            execution.status_if_cancelled = RunStatus.QUEUED
        await self.cancel(run)

    async def end(self, run: Run, status: RunStatus, error: str | None = None) -> None:
        """End a run that nobody works on; its followers are notified."""
        if error is not None:
            error = await self.record_error(run.id, error, self.fault(run.id))
        await self.record_status(run.id, status, error)


@dataclass(slots=True, kw_only=True, eq=False)
class GraphRun:
    """Takes one run through the graph, to where it stops. `control` can ask it to stop after the current step."""

    runner: Runner
    run: Run
    sources: list[protocols.Source]
    control: RunControl
    stage: str | None = None  # the one that was stored last

    async def prepare(self) -> None:
        """Prepare the sources that have something to read before they can be asked."""
        for source in self.sources:
            if isinstance(source, protocols.PreparableSource):
                done = await source.prepare()
                await self._append("read", "prepare", {"files": done.files, "new": done.new, "removed": done.removed})
                for path, reason in done.skipped:
                    await self._append("skip", "prepare", {"path": path, "reason": reason})
                for notice in done.notices:
                    await self.runner.add_notice(self.run.id, notice, "prepare")

    async def execute(self, input: Any) -> RunStatus:
        """Invoke the graph until it ends or asks something. A database that is unavailable for a moment, because its
        server restarts, is waited for: what was under way is done again from the last checkpoint."""
        runner, run, config = self.runner, self.run, graph_config(self.run.thread)
        reached, pauses = "", iter(STORAGE_RETRY_SECONDS)
        while True:
            try:
                context = await self._build_context()
                if isinstance(input, dict) and context.quote:
                    await self._append("quote", "", context.quote.plain())
                allowed = runner.reasoners.may_trace(context.options)
                with trace_scope(allowed=allowed, redaction=runner.redaction):
                    await runner.graph.ainvoke(input, config, context=context, durability="sync", control=self.control)
                questions = read_interrupts((await runner.state(run.thread)).interrupts)
                for question in questions:
                    await runner.reviews.open(build_review(question, run, runner.now()))
                    await self._append("interrupt", "", question.plain())
                return RunStatus.WAITING if questions else RunStatus.DONE
            except StorageError as problem:
                if not is_transient(problem):
                    raise
                state = await runner.graph.aget_state(config)
                answers = getattr(input, "resume", None) or {}
                if state.values.get("run") == run.id and not any(asked.id in answers for asked in state.interrupts):
                    input = None  # the graph has taken it
                checkpoint = str(state.config["configurable"].get("checkpoint_id", ""))
                if checkpoint != reached:
                    reached, pauses = checkpoint, iter(STORAGE_RETRY_SECONDS)
                pause = next(pauses, None)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            await runner.add_notice(run.id, f"{UNAVAILABLE} The run continues from its last checkpoint.")

    async def _build_context(self) -> ResearchContext:
        runner, run = self.runner, self.run
        options = run.options
        limit = await runner.cost_limit(run, options) if runner.cost_limit else None
        if limit is not None and options.max_usd(runner.settings.budget.usd) > limit:
            # Whatever was chosen for it, in a plan for example: a run costs no more than its user has left.
            text = f"This run may cost at most ${limit:,.2f}: that is what remains of your budget for this month."
            await runner.add_notice(run.id, text)
            options = options.model_copy(update={"usd": limit})
            run = run.model_copy(update={"options": options})
        reasoner, account = runner.reasoners.open(run, self._append)
        return ResearchContext(
            run=run.id,
            thread=run.thread,
            options=options,
            settings=runner.settings,
            reasoner=reasoner,
            account=account,
            quote=await runner.estimate(options, self.sources),
            sources=self.sources,
            documents=RunDocumentStore(runner.documents, self.sources),
            notes=StateCompactor(runner.notes, run.thread),
            pages=runner.pages,
            ranker=runner.ranker,
            memory=runner.memory,
            started=run.started,
            now=runner.now,
            append=self._append,
            checkpoints=lambda: runner.checkpointer.ids_of_run(run.thread, run.id, since=run.started),
            tally=self._count_steps,
            mode=lambda: runner.mode(run.thread, options),
        )

    async def _append(self, kind: EventKind, stage: str, data: dict[str, object]) -> None:
        event = await self.runner.append(self.run.id, kind, stage, data)
        if kind == "enter":
            current_step.set(event.seq)
            status = data.get("status")
            if status not in (None, self.stage):
                await self.runner.threads.update(self.run.id, stage=Status(str(status)))
                self.stage = str(status)

    async def _count_steps(self) -> dict[str, int]:
        """Count the steps that each reasoner has done, in earlier attempts of the run too."""
        steps = [event for event in await self.runner.log.since(self.run.id, 0) if event.kind == "think"]
        return dict(Counter(str(event.data["by"]) for event in steps))


@dataclass(slots=True, kw_only=True, eq=False)
class RunExit:
    """What became of a run, besides what its thread says."""

    fault: OpenAssayError | None = None  # why it failed, if for a reason that was foreseen
    discarded: bool = False  # its new thread was deleted again: its input could not be used
    unwritten: bool = False  # its end could not be stored: storage has failed
    lost: bool = False  # to another process


@dataclass(slots=True, kw_only=True, eq=False)
class RunExecution:
    runner: Runner
    run: Run
    lock: ThreadLock
    sources: list[protocols.Source]
    input: Any
    notices: dict[str, str]
    new: bool
    control: RunControl = field(default_factory=RunControl)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    status_if_cancelled: RunStatus = RunStatus.CANCELLED
    exit: RunExit = field(default_factory=RunExit)
    task: "asyncio.Task[None]" = field(init=False)

    async def supervise(self) -> None:
        """Execute the run, obey other processes meanwhile, and store how it ended, whatever happens."""
        runner, run = self.runner, self.run
        status, error, notice = RunStatus.FAILED, None, None
        current_run.set(run)
        polling = asyncio.create_task(self._poll_requests())
        try:
            # A thread that still writes this when the run is cancelled would overwrite how it ended.
            await shield_until_done(retry_storage(lambda: runner.threads.update(run.id, status=RunStatus.RUNNING)))
            journal_notices = await runner.journal.open(run) if runner.journal else []
            crashes = {"falls": self.lock.lease.falls} if self.lock.lease.falls else {}
            request = run.options.request
            began = await runner.append(run.id, "run", "", {"status": RunStatus.RUNNING, "request": request, **crashes})
            current_step.set(began.seq)
            for text in (*self.notices.values(), *journal_notices):
                await runner.add_notice(run.id, text)
            graph_run = GraphRun(runner=runner, run=run, sources=self.sources, control=self.control)
            await graph_run.prepare()
            self.new = False  # the input can be used: from here on there is something to lose
            status = await graph_run.execute(self.input)
        except asyncio.CancelledError:
            status = self.status_if_cancelled
            notice = INTERRUPTED if status is RunStatus.QUEUED else None
            raise
        except GraphDrained:
            status, notice = RunStatus.QUEUED, DRAINED
        except StaleLeaseError:  # the thread is another process's: `_finish` finds the same
            pass
        except OpenAssayError as problem:
            self.exit.fault = problem
            if is_transient(problem):
                status, notice = RunStatus.QUEUED, f"{UNAVAILABLE} The run waits to be resumed: {problem.message}"
            else:
                error = problem.message
            self.exit.discarded = self.new and isinstance(problem, UsageError)
        except Exception as problem:  # noqa: BLE001  # the last line of defence: a run never takes its caller down
            error = f"{type(problem).__name__}: {problem}"
        finally:
            polling.cancel()
            # A cancelled run must still be marked as such, or its thread would stay busy.
            await shield_until_done(self._finish(status, error, notice))

    async def _finish(self, status: RunStatus, error: str | None, notice: str | None) -> None:
        """Store how the run ended, unless storage itself has failed or another process has the thread by now; close
        its journal and release the thread in any case."""
        runner, run, journal = self.runner, self.run, self.runner.journal
        try:
            if not await self.lock.is_held():
                raise lease_error(run.thread)
            if status is RunStatus.QUEUED and await runner.threads.get_stop_request(run.id):
                status = RunStatus.CANCELLED  # a person wants it stopped: no other process may resume it
            await retry_storage(lambda: self._store_outcome(status, error, notice), STORAGE_RETRY_SECONDS)
        except StaleLeaseError:
            status = RunStatus.RUNNING  # there
            self.exit.lost = True
            _log.warning("thread %s was lost: this process was silent for too long, and another has it", run.thread)
            if journal:
                journal.leave(run.id)
        except StorageError as problem:
            self.exit.fault = self.exit.fault or problem
            self.exit.unwritten = True
            if journal:
                journal.leave(run.id)  # whether the thread was kept is not known
        finally:
            try:
                if journal:
                    await journal.close(run.id)
                if status is RunStatus.DONE:
                    await self._prune_checkpoints()
            finally:
                await self.lock.release()

    async def _store_outcome(self, status: RunStatus, error: str | None, notice: str | None) -> None:
        runner, run = self.runner, self.run
        if error is not None:
            error = await runner.record_error(run.id, error, self.exit.fault)
        if notice is not None:
            await runner.add_notice(run.id, notice)
        if not self.exit.discarded:
            return await runner.record_status(run.id, status, error)
        await runner.threads.delete(run.thread)
        if runner.journal:
            await runner.journal.delete(run.id)

    async def _prune_checkpoints(self) -> None:
        """Keep as many checkpoints as the settings say; a run that is done needs only the last."""
        if keep := self.runner.settings.persistence.keep_checkpoints:
            try:
                await self.runner.checkpointer.prune_run(self.run.thread, self.run.id, keep=keep)
            except StorageError as error:  # the run is done all the same
                _log.warning("old checkpoints of thread %s were not removed: %s", self.run.thread, error.message)

    async def _poll_requests(self) -> None:
        """Stop the run when another process asks for it or has the thread; and, where processes have died while they
        worked on it, reset their count once it gets further than they did."""
        reached: str | None = None
        while True:
            await asyncio.sleep(STOP_POLL_SECONDS)
            try:
                stop, is_held = await self.runner.threads.get_stop_request(self.run.id), await self.lock.is_held()
                if self.lock.lease.falls:
                    saved = await self.runner.checkpointer.aget_tuple(graph_config(self.run.thread))
                    current = saved.checkpoint["id"] if saved else ""
                    if reached not in (None, current):
                        await self.lock.reset_crash_count()
                    reached = current
            except OpenAssayError:  # a database that is busy now may not be next time
                continue
            if stop is StopRequest.CANCEL or not is_held:
                self.task.cancel()
                return
            if stop is StopRequest.DRAIN:
                self.control.request_drain()
