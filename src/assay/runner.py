"""Executing runs in this process: one task a run, its events written as it goes, its thread locked while it works."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from pydantic import ValidationError

from assay import questions
from assay.checkpoints.recorder import Recorder
from assay.checkpoints.restoration import refuse_half
from assay.checkpoints.saver import Checkpoints
from assay.deps import Deps, Thinking, step, working
from assay.errors import AssayError, Category, FencedError, StorageError, ThreadBusyError, UsageError
from assay.graph import build
from assay.holding import Hold, patiently, to_its_end
from assay.llm.tracing import tracing
from assay.model.event import Event, EventKind, RunStatus, Status
from assay.model.question import Mode
from assay.model.spend import Quote
from assay.model.thread import Options, Run, Stop
from assay.notebook import Notebook
from assay.ports import (
    DocumentStore,
    EventLog,
    Integrity,
    Ledger,
    Memory,
    Notes,
    Pages,
    PassageRanker,
    Prepared,
    ReviewStore,
    RunLocks,
    Source,
    SupportScorer,
    ThreadStore,
)
from assay.search.owned import OwnDocuments
from assay.search.pricing import with_searches
from assay.settings import Settings
from assay.stages.failures import is_passing
from assay.storage.fences import lost
from assay.text.redaction import Redaction, redaction

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

_log = logging.getLogger("assay")
STEPS = 200  # supersteps of one run; every loop of the graph is bounded far below this
TICK = 0.5  # seconds after which a reader of events looks again by itself
LOOK = 1.0  # seconds after which a run looks whether another process wants it stopped, or has its thread
DRAIN = 30.0  # seconds a step is given to end in good order
DRAINED = "Stopped after the step it was at; nothing that was under way is lost, and it can be gone on with."
CUT = "Stopped in the middle of a step, which is done again when it is gone on with."
PATIENCE = 5.0  # seconds a thread is waited for on which nobody is at work, as far as is known
PAUSE = 0.1
MOST_FAULTS = 1000  # runs whose failure is remembered
SETBACKS = (1.0, 5.0, 15.0)  # seconds after which it is tried again where storage was away; anew after each step
AWAY = "The database was away for a moment."
AT_WORK = (RunStatus.QUEUED, RunStatus.RUNNING)
Ceiling = Callable[[Run, Options], Awaitable[float | None]]  # dollars a run may cost; None: what was chosen for it


@dataclass(slots=True, kw_only=True, eq=False)
class _Work:
    """A run of this process."""

    hold: Hold
    control: RunControl = field(default_factory=RunControl)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    if_cancelled: RunStatus = RunStatus.CANCELLED
    task: asyncio.Task[None] = field(init=False)


@dataclass(slots=True, kw_only=True, eq=False)
class Runner:
    settings: Settings
    threads: ThreadStore
    reviews: ReviewStore
    memory: Memory
    log: EventLog
    documents: DocumentStore
    notes: Notes
    pages: Pages
    ranker: PassageRanker
    thinking: Thinking
    support: SupportScorer
    checkpointer: "BaseCheckpointSaver[Any]"
    locks: RunLocks
    now: Callable[[], datetime]
    ledger: Ledger | None = None
    integrity: Integrity | None = None
    journal: Recorder | None = None
    watchers: list[Callable[[Event], None]] = field(default_factory=list)  # told of each event once it is written
    ceiling: Ceiling | None = None
    losses: int = 0  # runs that were lost to another process
    faults: dict[str, AssayError] = field(default_factory=dict)  # why a run failed, if for a reason that was foreseen
    discarded: set[str] = field(default_factory=set)  # whose new thread was taken back: their input could not be used
    unwritten: set[str] = field(default_factory=set)  # whose end could not be written down: storage has failed
    redaction: Redaction = field(init=False)
    _graph: "CompiledStateGraph[Any, Any, Any, Any]" = field(init=False)
    _works: dict[str, _Work] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.redaction = redaction(self.settings)
        self._graph = build(self.checkpointer)

    def at_work(self, run: str) -> bool:
        return run in self._works

    def running(self) -> list[str]:
        """The runs this process works on."""
        return list(self._works)

    async def state(self, thread: str) -> "StateSnapshot":
        """The latest, with everything it refers to."""
        return await self.whole(thread, await self._graph.aget_state(_config(thread)))

    async def whole(self, thread: str, state: "StateSnapshot") -> "StateSnapshot":
        return state._replace(values=await Notebook(self.notes, thread).whole(state.values))

    async def quote(self, options: Options, sources: list[Source]) -> Quote:
        made = await asyncio.to_thread(self.thinking.quote, options)
        return with_searches(made, sources, options.depth, self.settings)

    async def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        while True:
            if work := self._works.get(run):
                work.news.clear()
            if run in self.discarded:
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
            await self.integrity.check(thread, set(cited((await self.state(thread)).values)))

    async def wait(self, run: str) -> None:
        """Until it no longer moves by itself."""
        if work := self._works.get(run):
            await asyncio.wait([work.task])
            await asyncio.sleep(0)  # its ending has been seen to
        if run in self.discarded | self.unwritten:
            raise self.faults[run]

    async def cancel(self, run: str) -> None:
        if work := self._works.get(run):
            await asyncio.sleep(0)  # one that was spawned just now has begun by then, and can say how it ended
            work.task.cancel()
            await asyncio.wait([work.task])
            await asyncio.sleep(0)

    async def drain(self, run: str, seconds: float = DRAIN) -> None:
        """Stop it after the step it is at, so that nothing under way is given up; at once if that takes too long.
        Whoever starts next may take it up, unless a person has asked for it to stop."""
        if work := self._works.get(run):
            work.control.request_drain()
            await asyncio.wait([work.task], timeout=seconds)
            await self._cut(run)

    async def drain_all(self, seconds: float = DRAIN) -> None:
        await asyncio.gather(*(self.drain(run, seconds) for run in list(self._works)))

    async def close(self) -> None:
        await asyncio.gather(*(self._cut(run) for run in list(self._works)))

    async def _cut(self, run: str) -> None:
        """Nobody wanted it stopped for good: whoever starts next may take it up."""
        work = self._works.get(run)
        if work and not work.task.cancelling():
            work.if_cancelled = RunStatus.QUEUED
        await self.cancel(run)

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
        """`given` is what the graph is given: a question, an answer, or None to go on from the last checkpoint. The run
        takes the thread over, and gives it back."""
        self.unwritten.discard(run.id)
        self.faults.pop(run.id, None)
        work = self._works[run.id] = _Work(hold=hold)
        with hold.fenced():  # the task takes that along, and all it begins
            work.task = asyncio.create_task(
                self._execute(run, work, sources, given, notices or {}, new), name=f"run-{run.id}"
            )
        work.task.add_done_callback(lambda _: self._ended(run.id))
        hold.passed_on = True

    def _ended(self, run: str) -> None:
        self._works.pop(run).news.set()

    async def _execute(
        self, run: Run, work: _Work, sources: list[Source], given: Any, notices: dict[str, str], new: bool
    ) -> None:
        status, error, notice = RunStatus.FAILED, None, None
        request = str(run.options.get("request") or "")
        working.set(run)
        heeding = asyncio.create_task(self._heed(run.id, work))
        try:
            # A thread that still writes this when the run is cancelled would write over how it ended.
            await to_its_end(patiently(lambda: self.threads.update(run.id, status=RunStatus.RUNNING)))
            told = await self.journal.open(run) if self.journal else []
            falls = {"falls": work.hold.lease.falls} if work.hold.lease.falls else {}
            began = await self._append(run.id, "run", "", {"status": RunStatus.RUNNING, "request": request, **falls})
            step.set(began.seq)
            for text in (*notices.values(), *told):
                await self._append(run.id, "notice", "", {"text": text})
            await self._prepare(run.id, sources)
            new = False  # the input can be used: from here on there is something to lose
            status = await self._through(run, sources, given)
        except asyncio.CancelledError:
            status, notice = work.if_cancelled, CUT if work.if_cancelled is RunStatus.QUEUED else None
            raise
        except GraphDrained:
            status, notice = RunStatus.QUEUED, DRAINED
        except FencedError:  # the thread is another's: `_end` finds the same
            pass
        except AssayError as problem:
            self._remember(run.id, problem)
            if is_passing(problem):
                status, notice = RunStatus.QUEUED, f"{AWAY} It waits to be taken up again: {problem.message}"
            else:
                error = problem.message
            if new and isinstance(problem, UsageError):
                self.discarded.add(run.id)
        except Exception as problem:  # noqa: BLE001  # the last line of defence: a run never takes its caller down
            error = f"{type(problem).__name__}: {problem}"
        finally:
            heeding.cancel()
            # A cancelled run must still be marked as such, or its thread would stay busy.
            await to_its_end(self._end(run, work.hold, status, error, notice))

    async def _through(self, run: Run, sources: list[Source], given: Any) -> RunStatus:
        """To where it stands still. A database that is away for a moment, since its server is restarted, is waited for:
        what was under way is done again from the last checkpoint."""
        reached, pauses = "", iter(SETBACKS)
        while True:
            try:
                await self._drive(run, sources, given)
                return await self._standing(run)
            except StorageError as problem:
                if not is_passing(problem):
                    raise
                given, checkpoint = await self._left(run, given)
                if checkpoint != reached:
                    reached, pauses = checkpoint, iter(SETBACKS)
                pause = next(pauses, None)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            await self.tell(run.id, f"{AWAY} It goes on from the last step that was kept.")

    async def _left(self, run: Run, given: Any) -> tuple[Any, str]:
        """Of what the graph was to be given, what it has not taken yet; and the checkpoint it goes on from."""
        state = await self._graph.aget_state(_config(run.thread))
        begun = state.values.get("run") == run.id
        answers = getattr(given, "resume", None) or {}
        taken = begun and not any(asked.id in answers for asked in state.interrupts)
        return None if taken else given, str(state.config["configurable"].get("checkpoint_id", ""))

    def _remember(self, run: str, fault: AssayError) -> None:
        self.faults[run] = fault
        for oldest in list(self.faults)[:-MOST_FAULTS]:
            for known in (self.discarded, self.unwritten):
                known.discard(oldest)
            del self.faults[oldest]

    async def _end(self, run: Run, hold: Hold, status: RunStatus, error: str | None, notice: str | None) -> None:
        """Where storage itself has failed, nothing can be written of that; whoever waits is told. What another process
        has taken up by now is left to it."""
        try:
            if not await hold.is_kept():
                raise lost(run.thread)
            if status is RunStatus.QUEUED and await self.threads.stopping(run.id):  # not for the next process
                status = RunStatus.CANCELLED
            await patiently(lambda: self._settle(run, status, error, notice), SETBACKS)
        except FencedError:
            status = RunStatus.RUNNING  # there
            self.losses += 1
            _log.warning("thread %s was lost: this process was not heard of for too long; another has it", run.thread)
            self._leave_journal(run.id)
        except StorageError as problem:
            self._remember(run.id, self.faults.get(run.id, problem))
            self.unwritten.add(run.id)
            self._leave_journal(run.id)  # whether the thread was kept is not known
        finally:
            await self._put_away(run, hold, status)

    def _leave_journal(self, run: str) -> None:
        if self.journal:
            self.journal.leave(run)

    async def _put_away(self, run: Run, hold: Hold, status: RunStatus) -> None:
        """Whatever happened, even a database that is gone: nothing stays open, and the thread is free."""
        try:
            if self.journal:
                await self.journal.close(run.id)
            if status is RunStatus.DONE:
                await self._prune(run)
        finally:
            await hold.give_back()

    async def _heed(self, run: str, work: _Work) -> None:
        """What another process asks of a run; whether the thread is still this one's; and, where others have died at
        it, whether it has got further than they."""
        reached: str | None = None
        while True:
            await asyncio.sleep(LOOK)
            try:
                stop, is_kept = await self.threads.stopping(run), await work.hold.is_kept()
                reached = await self._further(work.hold, reached) if work.hold.lease.falls else None
            except AssayError:  # a database that is busy now may not be at the next look
                continue
            if stop is Stop.CANCEL or not is_kept:
                work.task.cancel()
                return
            if stop is Stop.DRAIN:
                work.control.request_drain()

    async def _further(self, hold: Hold, reached: str | None) -> str:
        kept = await self.checkpointer.aget_tuple(_config(hold.thread))
        now = kept.checkpoint["id"] if kept else ""
        if reached not in (None, now):
            await hold.progressed()
        return now

    async def end(self, run: Run, status: RunStatus, error: str | None = None) -> None:
        """One that nobody works on; whoever follows it is told."""
        await self._settle(run, status, error, None)

    async def put_aside(self, run: Run) -> None:
        await self.threads.update(run.id, status=RunStatus.QUEUED)
        await self.tell(run.id, "It goes on in a process of its own.")

    async def tell(self, run: str, text: str) -> None:
        """Of one that nobody works on."""
        await self._append(run, "notice", "", {"text": text})

    async def _settle(self, run: Run, status: RunStatus, error: str | None, notice: str | None) -> None:
        if error is not None:
            error = self.redaction.text(error)
            await self._append(run.id, "error", "", {"message": error, **_told(self.faults.get(run.id))})
        if notice is not None:
            await self._append(run.id, "notice", "", {"text": notice})
        if run.id in self.discarded:
            await self.threads.delete(run.thread)
            if self.journal:
                await self.journal.delete(run.id)
            return
        stage = Status.FAILED if status is RunStatus.FAILED else Status.COMPLETED if status is RunStatus.DONE else None
        await self.threads.update(run.id, status=status, stage=stage, error=error)
        await self._append(run.id, "run", "", {"status": status, "error": error})

    async def _prune(self, run: Run) -> None:
        """What stays is decided by the settings; a run that is done needs only the last."""
        keep = self.settings.persistence.keep_checkpoints
        if keep and isinstance(self.checkpointer, Checkpoints):
            try:
                await self.checkpointer.prune_run(run.thread, run.id, keep=keep)
            except StorageError as error:  # the run is done all the same
                _log.warning("old checkpoints of thread %s were not removed: %s", run.thread, error.message)

    async def _prepare(self, run: str, sources: list[Source]) -> None:
        for source in sources:
            if isinstance(source, Prepared):
                done = await source.prepare()
                await self._append(
                    run, "read", "prepare", {"files": done.files, "new": done.new, "removed": done.removed}
                )
                for path, reason in done.skipped:
                    await self._append(run, "skip", "prepare", {"path": path, "reason": reason})
                for notice in done.notices:
                    await self._append(run, "notice", "prepare", {"text": notice})

    async def _drive(self, run: Run, sources: list[Source], given: Any) -> None:
        stage_now: list[object] = []  # the one that was written last

        async def append(kind: EventKind, stage: str, data: dict[str, object]) -> None:
            event = await self._append(run.id, kind, stage, data)
            if kind == "enter":
                step.set(event.seq)
            if kind == "enter" and (status := data.get("status")) not in (None, *stage_now):
                stage_now[:] = [status]
                await self.threads.update(run.id, stage=Status(str(status)))

        run = await self._within_means(run)
        options = chosen(run)
        quote = await self.quote(options, sources)
        if isinstance(given, dict):
            await append("quote", "", quote.plain())
        reasoner, account = self.thinking.open(run, append)
        deps = Deps(
            run=run.id, thread=run.thread, options=options, settings=self.settings, reasoner=reasoner,
            account=account, quote=quote, support=self.support, sources=sources,
            documents=OwnDocuments(self.documents, sources),
            notes=Notebook(self.notes, run.thread), pages=self.pages, ranker=self.ranker, memory=self.memory,
            started=run.started, now=self.now, append=append,
            checkpoints=lambda: self._checkpoints(run), tally=lambda: self._tally(run),
            mode=lambda: self.mode(run.thread, options),
        )  # fmt: skip
        with tracing(allowed=self.thinking.may_trace(options), redaction=self.redaction):
            await self._graph.ainvoke(
                given, _config(run.thread), context=deps, durability="sync", control=self._works[run.id].control
            )

    async def _within_means(self, run: Run) -> Run:
        """Whatever was chosen for it, by a plan for one: a run costs no more than its person has left."""
        options = chosen(run)
        most = await self.ceiling(run, options) if self.ceiling else None
        if most is None or (self.settings.budget.usd if options.usd is None else options.usd) <= most:
            return run
        text = f"This run may cost ${most:,.2f} at the most: more is not left of what you may spend this month."
        await self._append(run.id, "notice", "", {"text": text})
        return run.model_copy(update={"options": {**run.options, "usd": most}})

    async def _tally(self, run: Run) -> dict[str, int]:
        """How many steps each reasoner has done, the run's earlier attempts included."""
        steps = [event for event in await self.log.since(run.id, 0) if event.kind == "think"]
        return dict(Counter(str(event.data["by"]) for event in steps))

    async def _checkpoints(self, run: Run) -> tuple[str, ...]:
        """Those of other questions on the thread are older, or hold another run."""
        if isinstance(self.checkpointer, Checkpoints):
            return await self.checkpointer.of_run(run.thread, run.id, since=run.started)
        found: list[str] = []
        async for kept in self.checkpointer.alist(_root(run.thread)):
            if datetime.fromisoformat(kept.checkpoint["ts"]) < run.started:
                break
            if kept.checkpoint["channel_values"].get("run") == run.id:
                found.append(kept.checkpoint["id"])
        return tuple(reversed(found))

    async def _standing(self, run: Run) -> RunStatus:
        asked = questions.read((await self.state(run.thread)).interrupts)
        for question in asked:
            await self.reviews.open(questions.review(question, run, self.now()))
            await self._append(run.id, "interrupt", "", question.plain())
        return RunStatus.WAITING if asked else RunStatus.DONE

    async def _append(self, run: str, kind: EventKind, stage: str, data: dict[str, object]) -> Event:
        data = self.redaction.plain(data)
        event = Event(run=run, time=self.now(), kind=kind, stage=stage, parent=step.get(), data=data)
        event = await patiently(lambda: self.log.append(event))
        if work := self._works.get(run):
            work.news.set()
        for watcher in self.watchers:
            watcher(event)
        if self.journal:
            await self.journal.event(event)
            if trouble := self.journal.troubles.pop(run, None):
                await self._append(run, "notice", "", {"text": trouble})
        return event

    async def mode(self, thread: str, options: Options) -> Mode:
        """As it was said last: for the thread, for the question, in the settings. What is asked with nobody there has a
        mode of its own and leaves its thread's alone."""
        if options.mode and not options.interactive:
            return options.mode
        said = (await self.threads.get(thread)).mode
        return said or options.mode or self.settings.mode


def _told(fault: AssayError | None) -> dict[str, object]:
    """What is known of why a run failed; what was not foreseen is our own fault."""
    return {"category": Category.INTERNAL} if fault is None else {"help": fault.help, "category": fault.category}


def _config(thread: str) -> "RunnableConfig":
    return cast("RunnableConfig", {"configurable": {"thread_id": thread}, "recursion_limit": STEPS})


def _root(thread: str) -> "RunnableConfig":
    """With the graph's own name, by which its checkpoints are found in order."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def chosen(run: Run) -> Options:
    """What was chosen for a run."""
    try:
        options = Options.model_validate(run.options)
    except ValidationError as error:
        raise StorageError(
            f"what was chosen for run {run.id} cannot be read: {error.errors()[0]['msg'].lower()}",
            help="Ask again on a new thread.",
        ) from error
    if "sources" not in run.options and options.source == "auto" and not options.docs:
        return options.model_copy(update={"sources": ("demo",)})  # begun when auto knew of nothing else
    return options


def cited(value: Any) -> Iterator[str]:
    """The hashes of documents that plain data refer to."""
    if isinstance(value, Mapping):
        if isinstance(document := value.get("document"), str) and document:
            yield document
        for held in value.values():
            yield from cited(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from cited(held)
