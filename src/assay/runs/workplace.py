"""What every run of this process works with, and where all of them are written down."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from assay.checkpoints.recorder import Recorder
from assay.deps import Thinking, step
from assay.errors import AssayError, Category, NotFoundError
from assay.graph import build
from assay.model.event import Event, EventKind, RunStatus, Status
from assay.model.question import Mode
from assay.model.spend import Quote
from assay.model.thread import Options, Run
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
    ReviewStore,
    RunLocks,
    Source,
    SupportScorer,
    ThreadStore,
)
from assay.runs.holding import patiently
from assay.search.pricing import with_searches
from assay.settings import Settings
from assay.text.redaction import Redaction, redaction

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

STEPS = 200  # supersteps of one run; every loop of the graph is bounded far below this
Ceiling = Callable[[Run, Options], Awaitable[float | None]]  # dollars a run may cost; None: what was chosen for it


@dataclass(slots=True, kw_only=True, eq=False)
class Workplace:
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
    redaction: Redaction = field(init=False)
    graph: "CompiledStateGraph[Any, Any, Any, Any]" = field(init=False)

    def __post_init__(self) -> None:
        self.redaction = redaction(self.settings)
        self.graph = build(self.checkpointer)

    async def latest(self, thread: str) -> Run:
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        if not runs:
            raise NotFoundError(f"thread {thread} has no run")
        return runs[-1]

    async def state(self, thread: str) -> "StateSnapshot":
        """The latest, with everything it refers to."""
        return await self.whole(thread, await self.graph.aget_state(config(thread)))

    async def whole(self, thread: str, state: "StateSnapshot") -> "StateSnapshot":
        return state._replace(values=await Notebook(self.notes, thread).whole(state.values))

    async def quote(self, options: Options, sources: list[Source]) -> Quote:
        made = await asyncio.to_thread(self.thinking.quote, options)
        return with_searches(made, sources, options.depth, self.settings)

    async def mode(self, thread: str, options: Options) -> Mode:
        """As it was said last: for the thread, for the question, in the settings. What is asked with nobody there has a
        mode of its own and leaves its thread's alone."""
        if options.mode and not options.interactive:
            return options.mode
        said = (await self.threads.get(thread)).mode
        return said or options.mode or self.settings.mode

    async def append(self, run: str, kind: EventKind, stage: str, data: dict[str, object]) -> Event:
        data = self.redaction.plain(data)
        event = Event(run=run, time=self.now(), kind=kind, stage=stage, parent=step.get(), data=data)
        event = await patiently(lambda: self.log.append(event))
        for watcher in self.watchers:
            watcher(event)
        if self.journal:
            await self.journal.event(event)
            if trouble := self.journal.troubles.pop(run, None):
                await self.tell(run, trouble)
        return event

    async def tell(self, run: str, text: str, stage: str = "") -> None:
        await self.append(run, "notice", stage, {"text": text})

    async def explain(self, run: str, error: str, fault: AssayError | None) -> str:
        """Why a run failed, as it may be shown; what was not foreseen is our own fault."""
        error = self.redaction.text(error)
        known = {"category": Category.INTERNAL} if fault is None else {"help": fault.help, "category": fault.category}
        await self.append(run, "error", "", {"message": error, **known})
        return error

    async def settle(self, run: str, status: RunStatus, error: str | None) -> None:
        stage = Status.FAILED if status is RunStatus.FAILED else Status.COMPLETED if status is RunStatus.DONE else None
        await self.threads.update(run, status=status, stage=stage, error=error)
        await self.append(run, "run", "", {"status": status, "error": error})


def config(thread: str) -> "RunnableConfig":
    return cast("RunnableConfig", {"configurable": {"thread_id": thread}, "recursion_limit": STEPS})
