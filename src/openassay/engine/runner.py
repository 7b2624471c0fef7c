"""Executing runs in this process: one task a run, its events written as it goes, its thread locked while it works."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from openassay.context import ReasonerProvider, ResearchContext, current_run, current_step
from openassay.engine import questions
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.lock import ThreadLock, retry_storage, shield_until_done
from openassay.engine.recovery import JournalRecorder, refuse_partial
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
from openassay.models.thread import Run, ResearchOptions, StopRequest, read_options
from openassay.nodes.failures import is_transient
from openassay.protocols import (
    DocumentStore,
    EventLog,
    Integrity,
    Ledger,
    Memory,
    NoteStore,
    PageReader,
    PassageRanker,
    PreparableSource,
    ReviewStore,
    RunLocks,
    Source,
    SupportScorer,
    ThreadStore,
)
from openassay.search.registry import RunDocumentStore, add_search_costs
from openassay.settings import Settings
from openassay.state import StateCompactor
from openassay.storage.events import find_documents
from openassay.storage.fences import lease_error
from openassay.text.redaction import Redactor, build_redactor

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot


# What every run of this process works with, and where all of them are written down.

STEPS = 200  # supersteps of one run; every loop of the graph is bounded far below this
MaxCost = Callable[[Run, ResearchOptions], Awaitable[float | None]]  # dollars a run may cost; None: what was chosen for it


@dataclass(slots=True, kw_only=True, eq=False)
class RunnerContext:
    settings: Settings
    threads: ThreadStore
    reviews: ReviewStore
    memory: Memory
    log: EventLog
    documents: DocumentStore
    notes: NoteStore
    pages: PageReader
    ranker: PassageRanker
    thinking: ReasonerProvider
    support: SupportScorer
    checkpointer: "BaseCheckpointSaver[Any]"
    locks: RunLocks
    now: Callable[[], datetime]
    ledger: Ledger | None = None
    integrity: Integrity | None = None
    journal: JournalRecorder | None = None
    watchers: list[Callable[[Event], None]] = field(default_factory=list)  # told of each event once it is written
    ceiling: MaxCost | None = None
    redaction: Redactor = field(init=False)
    graph: "CompiledStateGraph[Any, Any, Any, Any]" = field(init=False)

    def __post_init__(self) -> None:
        self.redaction = build_redactor(self.settings)
        self.graph = build_graph(self.checkpointer)

    async def latest_run(self, thread: str) -> Run:
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        if not runs:
            raise NotFoundError(f"thread {thread} has no run")
        return runs[-1]

    async def state(self, thread: str) -> "StateSnapshot":
        """The latest, with everything it refers to."""
        return await self.expand_state(thread, await self.graph.aget_state(graph_config(thread)))

    async def expand_state(self, thread: str, state: "StateSnapshot") -> "StateSnapshot":
        return state._replace(values=await StateCompactor(self.notes, thread).expand(state.values))

    async def estimate(self, options: ResearchOptions, sources: list[Source]) -> CostEstimate:
        made = await asyncio.to_thread(self.thinking.estimate, options)
        return add_search_costs(made, sources, options.depth, self.settings)

    async def mode(self, thread: str, options: ResearchOptions) -> Mode:
        """As it was said last: for the thread, for the question, in the settings. What is asked with nobody there has a
        mode of its own and leaves its thread's alone."""
        if options.mode and not options.interactive:
            return options.mode
        said = (await self.threads.get(thread)).mode
        return said or options.mode or self.settings.mode

    async def append(self, run: str, kind: EventKind, stage: str, data: dict[str, object]) -> Event:
        data = self.redaction.redact_data(data)
        event = Event(run=run, time=self.now(), kind=kind, stage=stage, parent=current_step.get(), data=data)
        event = await retry_storage(lambda: self.log.append(event))
        for watcher in self.watchers:
            watcher(event)
        if self.journal:
            await self.journal.record_event(event)
            if trouble := self.journal.troubles.pop(run, None):
                await self.add_notice(run, trouble)
        return event

    async def add_notice(self, run: str, text: str, stage: str = "") -> None:
        await self.append(run, "notice", stage, {"text": text})

    async def record_error(self, run: str, error: str, fault: OpenAssayError | None) -> str:
        """Why a run failed, as it may be shown; what was not foreseen is our own fault."""
        error = self.redaction.redact_text(error)
        known = {"category": Category.INTERNAL} if fault is None else {"help": fault.help, "category": fault.category}
        await self.append(run, "error", "", {"message": error, **known})
        return error

    async def record_status(self, run: str, status: RunStatus, error: str | None) -> None:
        stage = Status.FAILED if status is RunStatus.FAILED else Status.COMPLETED if status is RunStatus.DONE else None
        await self.threads.update(run, status=status, stage=stage, error=error)
        await self.append(run, "run", "", {"status": status, "error": error})


def graph_config(thread: str) -> "RunnableConfig":
    return cast("RunnableConfig", {"configurable": {"thread_id": thread}, "recursion_limit": STEPS})


# The way of one run through the graph, to where it stands still.

SETBACKS = (1.0, 5.0, 15.0)  # seconds after which it is tried again where storage was away; anew after each step
AWAY = "The database was away for a moment."


@dataclass(slots=True, kw_only=True, eq=False)
class GraphRun:
    """`control` can ask it to stop after the step it is at."""

    place: RunnerContext
    run: Run
    sources: list[Source]
    control: RunControl
    stage: str | None = None  # the one that was written last

    async def prepare(self) -> None:
        """Sources that have something to read before they can be asked."""
        for source in self.sources:
            if isinstance(source, PreparableSource):
                done = await source.prepare()
                await self._append("read", "prepare", {"files": done.files, "new": done.new, "removed": done.removed})
                for path, reason in done.skipped:
                    await self._append("skip", "prepare", {"path": path, "reason": reason})
                for notice in done.notices:
                    await self.place.add_notice(self.run.id, notice, "prepare")

    async def execute(self, given: Any) -> RunStatus:
        """To where it stands still. A database that is away for a moment, since its server is restarted, is waited for:
        what was under way is done again from the last checkpoint."""
        reached, pauses = "", iter(SETBACKS)
        while True:
            try:
                await self._invoke_graph(given)
                return await self._record_interrupts()
            except StorageError as problem:
                if not is_transient(problem):
                    raise
                given, checkpoint = await self._find_pending_input(given)
                if checkpoint != reached:
                    reached, pauses = checkpoint, iter(SETBACKS)
                pause = next(pauses, None)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            await self.place.add_notice(self.run.id, f"{AWAY} It goes on from the last step that was kept.")

    async def _find_pending_input(self, given: Any) -> tuple[Any, str]:
        """Of what the graph was to be given, what it has not taken yet; and the checkpoint it goes on from."""
        state = await self.place.graph.aget_state(graph_config(self.run.thread))
        begun = state.values.get("run") == self.run.id
        answers = getattr(given, "resume", None) or {}
        taken = begun and not any(asked.id in answers for asked in state.interrupts)
        return None if taken else given, str(state.config["configurable"].get("checkpoint_id", ""))

    async def _invoke_graph(self, given: Any) -> None:
        place, run = self.place, await self._limit_cost()
        options = read_options(run)
        quote = await place.estimate(options, self.sources)
        if isinstance(given, dict):
            await self._append("quote", "", quote.plain())
        reasoner, account = place.thinking.open(run, self._append)
        deps = ResearchContext(
            run=run.id, thread=run.thread, options=options, settings=place.settings, reasoner=reasoner,
            account=account, quote=quote, support=place.support, sources=self.sources,
            documents=RunDocumentStore(place.documents, self.sources),
            notes=StateCompactor(place.notes, run.thread), pages=place.pages, ranker=place.ranker, memory=place.memory,
            started=run.started, now=place.now, append=self._append,
            checkpoints=self._list_checkpoints, tally=self._count_steps,
            mode=lambda: place.mode(run.thread, options),
        )  # fmt: skip
        with trace_scope(allowed=place.thinking.may_trace(options), redaction=place.redaction):
            await place.graph.ainvoke(
                given, graph_config(run.thread), context=deps, durability="sync", control=self.control
            )

    async def _append(self, kind: EventKind, stage: str, data: dict[str, object]) -> None:
        event = await self.place.append(self.run.id, kind, stage, data)
        if kind == "enter":
            current_step.set(event.seq)
            await self._update_stage(data.get("status"))

    async def _update_stage(self, stage: object) -> None:
        if stage not in (None, self.stage):
            await self.place.threads.update(self.run.id, stage=Status(str(stage)))
            self.stage = str(stage)

    async def _limit_cost(self) -> Run:
        """Whatever was chosen for it, by a plan for one: a run costs no more than its person has left."""
        run, options = self.run, read_options(self.run)
        most = await self.place.ceiling(run, options) if self.place.ceiling else None
        if most is None or options.max_usd(self.place.settings.budget.usd) <= most:
            return run
        await self.place.add_notice(
            run.id, f"This run may cost ${most:,.2f} at the most: more is not left of what you may spend this month."
        )
        return run.model_copy(update={"options": {**run.options, "usd": most}})

    async def _count_steps(self) -> dict[str, int]:
        """How many steps each reasoner has done, the run's earlier attempts included."""
        steps = [event for event in await self.place.log.since(self.run.id, 0) if event.kind == "think"]
        return dict(Counter(str(event.data["by"]) for event in steps))

    async def _list_checkpoints(self) -> tuple[str, ...]:
        """Those of other questions on the thread are older, or hold another run."""
        run, saver = self.run, self.place.checkpointer
        if isinstance(saver, SqlCheckpointSaver):
            return await saver.ids_of_run(run.thread, run.id, since=run.started)
        found: list[str] = []
        async for kept in saver.alist(_root_config(run.thread)):
            if datetime.fromisoformat(kept.checkpoint["ts"]) < run.started:
                break
            if kept.checkpoint["channel_values"].get("run") == run.id:
                found.append(kept.checkpoint["id"])
        return tuple(reversed(found))

    async def _record_interrupts(self) -> RunStatus:
        asked = questions.read_interrupts((await self.place.state(self.run.thread)).interrupts)
        for question in asked:
            await self.place.reviews.open(questions.build_review(question, self.run, self.place.now()))
            await self._append("interrupt", "", question.plain())
        return RunStatus.WAITING if asked else RunStatus.DONE


def _root_config(thread: str) -> "RunnableConfig":
    """With the graph's own name, by which its checkpoints are found in order."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


# The life of one run in this process: begun, driven, heeding what others ask of it, and ended whatever happens.

_log = logging.getLogger("openassay")
LOOK = 1.0  # seconds after which a run looks whether another process wants it stopped, or has its thread
DRAINED = "Stopped after the step it was at; nothing that was under way is lost, and it can be gone on with."
CUT = "Stopped in the middle of a step, which is done again when it is gone on with."


@dataclass(slots=True, kw_only=True, eq=False)
class RunExit:
    """What became of a run, besides what its thread tells."""

    fault: OpenAssayError | None = None  # why it failed, if for a reason that was foreseen
    discarded: bool = False  # its new thread was taken back: its input could not be used
    unwritten: bool = False  # its end could not be written down: storage has failed
    lost: bool = False  # to another process


@dataclass(slots=True, kw_only=True, eq=False)
class RunExecution:
    """`given` is what the graph is given: a question, an answer, or None to go on from the last checkpoint. `new`: its
    thread is as new as the run."""

    place: RunnerContext
    run: Run
    hold: ThreadLock
    sources: list[Source]
    given: Any
    notices: dict[str, str]
    new: bool
    control: RunControl = field(default_factory=RunControl)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    if_cancelled: RunStatus = RunStatus.CANCELLED
    ending: RunExit = field(default_factory=RunExit)
    task: "asyncio.Task[None]" = field(init=False)

    def begin(self) -> None:
        """The run takes the thread over, and gives it back."""
        with self.hold.fence():  # the task takes that along, and all it begins
            self.task = asyncio.create_task(self._supervise(), name=f"run-{self.run.id}")
        self.hold.passed_on = True

    async def _supervise(self) -> None:
        status, error, notice = RunStatus.FAILED, None, None
        current_run.set(self.run)
        heeding = asyncio.create_task(self._poll_requests())
        try:
            status = await self._execute()
        except asyncio.CancelledError:
            status, notice = self.if_cancelled, CUT if self.if_cancelled is RunStatus.QUEUED else None
            raise
        except GraphDrained:
            status, notice = RunStatus.QUEUED, DRAINED
        except StaleLeaseError:  # the thread is another's: `_end` finds the same
            pass
        except OpenAssayError as problem:
            self.ending.fault = problem
            if is_transient(problem):
                status, notice = RunStatus.QUEUED, f"{AWAY} It waits to be taken up again: {problem.message}"
            else:
                error = problem.message
            self.ending.discarded = self.new and isinstance(problem, UsageError)
        except Exception as problem:  # noqa: BLE001  # the last line of defence: a run never takes its caller down
            error = f"{type(problem).__name__}: {problem}"
        finally:
            heeding.cancel()
            # A cancelled run must still be marked as such, or its thread would stay busy.
            await shield_until_done(self._finish(status, error, notice))

    async def _execute(self) -> RunStatus:
        place, run = self.place, self.run
        # A thread that still writes this when the run is cancelled would write over how it ended.
        await shield_until_done(retry_storage(lambda: place.threads.update(run.id, status=RunStatus.RUNNING)))
        told = await place.journal.open(run) if place.journal else []
        request = str(run.options.get("request") or "")
        falls = {"falls": self.hold.lease.falls} if self.hold.lease.falls else {}
        began = await place.append(run.id, "run", "", {"status": RunStatus.RUNNING, "request": request, **falls})
        current_step.set(began.seq)
        for text in (*self.notices.values(), *told):
            await place.add_notice(run.id, text)
        drive = GraphRun(place=place, run=run, sources=self.sources, control=self.control)
        await drive.prepare()
        self.new = False  # the input can be used: from here on there is something to lose
        return await drive.execute(self.given)

    async def _finish(self, status: RunStatus, error: str | None, notice: str | None) -> None:
        """Where storage itself has failed, nothing can be written of that; whoever waits is told. What another process
        has taken up by now is left to it."""
        try:
            if not await self.hold.is_held():
                raise lease_error(self.run.thread)
            if status is RunStatus.QUEUED and await self.place.threads.get_stop_request(
                self.run.id
            ):  # not for the next one
                status = RunStatus.CANCELLED
            await retry_storage(lambda: self._store_outcome(status, error, notice), SETBACKS)
        except StaleLeaseError:
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
            await self._clean_up(status)

    async def _store_outcome(self, status: RunStatus, error: str | None, notice: str | None) -> None:
        place, run = self.place, self.run
        if error is not None:
            error = await place.record_error(run.id, error, self.ending.fault)
        if notice is not None:
            await place.add_notice(run.id, notice)
        if not self.ending.discarded:
            return await place.record_status(run.id, status, error)
        await place.threads.delete(run.thread)
        if place.journal:
            await place.journal.delete(run.id)

    def _leave_journal(self) -> None:
        if self.place.journal:
            self.place.journal.leave(self.run.id)

    async def _clean_up(self, status: RunStatus) -> None:
        """Whatever happened, even a database that is gone: nothing stays open, and the thread is free."""
        try:
            if self.place.journal:
                await self.place.journal.close(self.run.id)
            if status is RunStatus.DONE:
                await self._prune()
        finally:
            await self.hold.release()

    async def _prune(self) -> None:
        """What stays is decided by the settings; a run that is done needs only the last."""
        keep, saver, thread = self.place.settings.persistence.keep_checkpoints, self.place.checkpointer, self.run.thread
        if keep and isinstance(saver, SqlCheckpointSaver):
            try:
                await saver.prune_run(thread, self.run.id, keep=keep)
            except StorageError as error:  # the run is done all the same
                _log.warning("old checkpoints of thread %s were not removed: %s", thread, error.message)

    async def _poll_requests(self) -> None:
        """What another process asks of a run; whether the thread is still this one's; and, where others have died at
        it, whether it has got further than they."""
        reached: str | None = None
        while True:
            await asyncio.sleep(LOOK)
            try:
                stop, is_kept = await self.place.threads.get_stop_request(self.run.id), await self.hold.is_held()
                reached = await self._track_progress(reached) if self.hold.lease.falls else None
            except OpenAssayError:  # a database that is busy now may not be at the next look
                continue
            if stop is StopRequest.CANCEL or not is_kept:
                self.task.cancel()
                return
            if stop is StopRequest.DRAIN:
                self.control.request_drain()

    async def _track_progress(self, reached: str | None) -> str:
        kept = await self.place.checkpointer.aget_tuple(graph_config(self.run.thread))
        now = kept.checkpoint["id"] if kept else ""
        if reached not in (None, now):
            await self.hold.reset_crash_count()
        return now


TICK = 0.5  # seconds after which a reader of events looks again by itself
DRAIN = 30.0  # seconds a step is given to end in good order
PATIENCE = 5.0  # seconds a thread is waited for on which nobody is at work, as far as is known
PAUSE = 0.1
MOST_FAULTS = 1000  # runs whose failure is remembered


@dataclass(slots=True, kw_only=True, eq=False)
class Runner(RunnerContext):
    losses: int = 0  # runs that were lost to another process
    _executions: dict[str, RunExecution] = field(default_factory=dict)
    _failed: dict[str, RunExit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        RunnerContext.__post_init__(self)  # a dataclass with slots is made anew, which `super()` does not know of
        self.watchers.append(self._wake)

    def _wake(self, event: Event) -> None:
        if work := self._executions.get(event.run):
            work.news.set()

    def is_running(self, run: str) -> bool:
        return run in self._executions

    def list_running(self) -> list[str]:
        """The runs this process works on."""
        return list(self._executions)

    def fault(self, run: str) -> OpenAssayError | None:
        """Why a run of this process failed, if for a reason that was foreseen."""
        ending = self._find_exit(run)
        return ending.fault if ending else None

    def _find_exit(self, run: str) -> RunExit | None:
        work = self._executions.get(run)
        return work.ending if work else self._failed.get(run)

    async def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        while True:
            if work := self._executions.get(run):
                work.news.clear()
            if (ending := self._find_exit(run)) and ending.discarded:
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
    async def lock_thread(
        self, thread: str, *, patience: float | None = None, forgive: bool = True
    ) -> AsyncIterator[ThreadLock]:
        """Nobody else works on the thread, or decides about it, in here; a run that is spawned takes it over. Whoever
        only puts a run's things away is waited for; else ThreadBusyError. `forgive`: how many have died at it before is
        forgotten."""
        hold = ThreadLock(self.locks, thread)
        try:
            await self._acquire(hold, PATIENCE if patience is None else patience, forgive)
            with hold.fence():
                yield hold
        finally:
            if not hold.passed_on:
                await hold.release()

    async def _acquire(self, hold: ThreadLock, patience: float, forgive: bool) -> None:
        clock = asyncio.get_running_loop().time
        ends, at_work = clock() + patience, False
        while True:
            try:
                return await hold.acquire(forgive=forgive)
            except ThreadBusyError:
                if at_work or clock() >= ends:
                    raise
                at_work = await self._is_thread_busy(hold.thread)
            await asyncio.sleep(PAUSE)

    async def _is_thread_busy(self, thread: str) -> bool:
        """As far as is known."""
        try:
            runs = await self.threads.runs(thread)
        except OpenAssayError:  # it is damaged, or not there yet
            return True
        return bool(runs) and runs[-1].status in AT_WORK

    async def is_abandoned(self, thread: str) -> bool:
        """Whether no process works on it."""
        return await asyncio.to_thread(self.locks.is_free, thread)

    async def check(self, thread: str) -> None:
        """Before anything runs on it: IntegrityError unless the thread is what was written."""
        for run in await self.threads.runs(thread):
            refuse_partial(run)
        if self.integrity is not None:
            await self.integrity.check(thread, set(find_documents((await self.state(thread)).values)))

    def spawn(
        self,
        run: Run,
        sources: list[Source],
        given: Any,
        hold: ThreadLock,
        notices: dict[str, str] | None = None,
        *,
        new: bool = False,
    ) -> None:
        self._failed.pop(run.id, None)
        work = RunExecution(
            place=self, run=run, hold=hold, sources=sources, given=given, notices=notices or {}, new=new
        )
        self._executions[run.id] = work
        work.begin()
        work.task.add_done_callback(lambda _: self._handle_end(run.id))

    def _handle_end(self, run: str) -> None:
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
            await self._cancel_and_requeue(run)

    async def drain_all(self, seconds: float = DRAIN) -> None:
        await asyncio.gather(*(self.drain(run, seconds) for run in self.list_running()))

    async def close(self) -> None:
        await asyncio.gather(*(self._cancel_and_requeue(run) for run in self.list_running()))

    async def _cancel_and_requeue(self, run: str) -> None:
        """Nobody wanted it stopped for good: whoever starts next may take it up."""
        work = self._executions.get(run)
        if work and not work.task.cancelling():
            work.if_cancelled = RunStatus.QUEUED
        await self.cancel(run)

    async def end(self, run: Run, status: RunStatus, error: str | None = None) -> None:
        """One that nobody works on; whoever follows it is told."""
        if error is not None:
            error = await self.record_error(run.id, error, self.fault(run.id))
        await self.record_status(run.id, status, error)
