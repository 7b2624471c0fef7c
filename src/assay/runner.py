"""Executing runs in this process: one task a run, its events written as it goes, its thread locked while it works."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from assay import questions
from assay.deps import Deps, Thinking
from assay.errors import AssayError, StorageError, UsageError
from assay.graph import build
from assay.llm.tracing import tracing
from assay.model.event import Event, EventKind, RunStatus, Status
from assay.model.question import Mode
from assay.model.spend import Quote
from assay.model.thread import Options, Run
from assay.ports import (
    DocumentStore,
    EventLog,
    Memory,
    Pages,
    PassageRanker,
    Prepared,
    ReviewStore,
    RunLocks,
    Source,
    SupportScorer,
    ThreadStore,
)
from assay.search.pricing import with_searches
from assay.settings import Settings

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

STEPS = 200  # supersteps of one run; every loop of the graph is bounded far below this
TICK = 0.5  # seconds after which a reader of events looks again by itself


@dataclass(slots=True, kw_only=True, eq=False)
class Runner:
    settings: Settings
    threads: ThreadStore
    reviews: ReviewStore
    memory: Memory
    log: EventLog
    documents: DocumentStore
    pages: Pages
    ranker: PassageRanker
    thinking: Thinking
    support: SupportScorer
    checkpointer: "BaseCheckpointSaver[Any]"
    locks: RunLocks
    now: Callable[[], datetime]
    faults: dict[str, AssayError] = field(default_factory=dict)  # why a run failed, if for a reason that was foreseen
    discarded: set[str] = field(default_factory=set)  # whose new thread was taken back: their input could not be used
    _graph: "CompiledStateGraph[Any, Any, Any, Any]" = field(init=False)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _news: dict[str, asyncio.Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._graph = build(self.checkpointer)

    def at_work(self, run: str) -> bool:
        return run in self._tasks

    async def state(self, thread: str) -> "StateSnapshot":
        return await self._graph.aget_state(_config(thread))

    async def quote(self, options: Options, sources: list[Source]) -> Quote:
        made = await asyncio.to_thread(self.thinking.quote, options)
        return with_searches(made, sources, options.depth, self.settings)

    async def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        news = self._news.setdefault(run, asyncio.Event())
        while True:
            news.clear()
            still = run not in self._tasks
            if run in self.discarded:
                return
            for event in await self.log.since(run, after):
                after = event.seq
                yield event
            if still:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), TICK)

    async def wait(self, run: str) -> None:
        """Until it no longer moves by itself."""
        if task := self._tasks.get(run):
            await asyncio.wait([task])
            await asyncio.sleep(0)  # its ending has been seen to
        if run in self.discarded:
            raise self.faults[run]

    async def cancel(self, run: str) -> None:
        task = self._tasks.get(run)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        for run in list(self._tasks):
            await self.cancel(run)

    def spawn(
        self,
        run: Run,
        sources: list[Source],
        work: Any,
        notices: dict[str, str] | None = None,
        *,
        new: bool = False,
        locked: bool = False,
    ) -> None:
        """`work` is what the graph is given: a question, an answer, or None to go on from the last checkpoint."""
        if not locked:
            self.locks.take(run.thread)
        task = asyncio.create_task(self._execute(run, sources, work, notices or {}, new), name=f"run-{run.id}")
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._ended(run))

    def _ended(self, run: Run) -> None:
        """Whatever happened, even a database that is gone: readers are let go and the thread is free."""
        self._tasks.pop(run.id, None)
        self.locks.release(run.thread)
        if run.id in self._news:
            self._news[run.id].set()

    async def _execute(self, run: Run, sources: list[Source], work: Any, notices: dict[str, str], new: bool) -> None:
        status, error = RunStatus.FAILED, None
        try:
            await self.threads.update(run.id, status=RunStatus.RUNNING)
            await self._append(run.id, "run", "", {"status": RunStatus.RUNNING})
            for notice in notices.values():
                await self._append(run.id, "notice", "", {"text": notice})
            await self._prepare(run.id, sources)
            await self._drive(run, sources, work)
            status = await self._standing(run)
        except asyncio.CancelledError:
            status = RunStatus.CANCELLED
            raise
        except AssayError as problem:
            error, self.faults[run.id] = problem.message, problem
            await self._append(run.id, "error", "", {"message": problem.message, "help": problem.help})
            if new and isinstance(problem, UsageError):
                self.discarded.add(run.id)
        except Exception as problem:  # noqa: BLE001  # the last line of defence: a run never takes its caller down
            error = f"{type(problem).__name__}: {problem}"
            await self._append(run.id, "error", "", {"message": error})
        finally:
            # Shielded: a cancelled run must still be marked as such, or its thread would stay busy.
            await asyncio.shield(self._settle(run, status, error))

    async def _settle(self, run: Run, status: RunStatus, error: str | None) -> None:
        if run.id in self.discarded:
            await self.threads.delete(run.thread)
            return
        stage = Status.FAILED if status is RunStatus.FAILED else Status.COMPLETED if status is RunStatus.DONE else None
        await self.threads.update(run.id, status=status, stage=stage, error=error)
        await self._append(run.id, "run", "", {"status": status, "error": error})

    async def _prepare(self, run: str, sources: list[Source]) -> None:
        for source in sources:
            if isinstance(source, Prepared):
                done = await source.prepare()
                await self._append(
                    run, "read", "prepare", {"files": done.files, "new": done.new, "removed": done.removed}
                )
                for path, reason in done.skipped:
                    await self._append(run, "skip", "prepare", {"path": path, "reason": reason})

    async def _drive(self, run: Run, sources: list[Source], work: Any) -> None:
        async def append(kind: EventKind, stage: str, data: dict[str, object]) -> None:
            await self._append(run.id, kind, stage, data)
            if kind == "enter" and "status" in data:
                await self.threads.update(run.id, stage=Status(str(data["status"])))

        options = chosen(run)
        quote = await self.quote(options, sources)
        if isinstance(work, dict):
            await append("quote", "", quote.plain())
        reasoner, account = self.thinking.open(run, append)
        deps = Deps(
            run=run.id, thread=run.thread, options=options, settings=self.settings, reasoner=reasoner,
            account=account, quote=quote, support=self.support, sources=sources, documents=self.documents,
            pages=self.pages, ranker=self.ranker, memory=self.memory, started=run.started, now=self.now,
            append=append, checkpoints=lambda: self._checkpoints(run), tally=lambda: self._tally(run),
            mode=lambda: self.mode(run.thread, options),
        )  # fmt: skip
        with tracing(allowed=self.thinking.may_trace(options)):
            await self._graph.ainvoke(work, _config(run.thread), context=deps, durability="sync")

    async def _tally(self, run: Run) -> dict[str, int]:
        """How many steps each reasoner has done, the run's earlier attempts included."""
        steps = [event for event in await self.log.since(run.id, 0) if event.kind == "think"]
        return dict(Counter(str(event.data["by"]) for event in steps))

    async def _checkpoints(self, run: Run) -> tuple[str, ...]:
        """Those of other questions on the thread are older, or hold another run."""
        found: list[str] = []
        async for kept in self.checkpointer.alist(_config(run.thread)):
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

    async def _append(self, run: str, kind: EventKind, stage: str, data: dict[str, object]) -> None:
        await self.log.append(Event(run=run, time=self.now(), kind=kind, stage=stage, data=data))
        if run in self._news:
            self._news[run].set()

    async def mode(self, thread: str, options: Options) -> Mode:
        """As it was said last: for the thread, for the question, in the settings. What is asked with nobody there has a
        mode of its own and leaves its thread's alone."""
        if options.mode and not options.interactive:
            return options.mode
        said = (await self.threads.get(thread)).mode
        return said or options.mode or self.settings.mode


def _config(thread: str) -> "RunnableConfig":
    return cast("RunnableConfig", {"configurable": {"thread_id": thread}, "recursion_limit": STEPS})


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
