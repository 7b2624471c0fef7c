"""The live objects a run works with. They travel in the graph's context, never in its state."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from openassay import protocols
from openassay.models.event import EventKind
from openassay.models.evidence import Document
from openassay.models.plan import Mode, Plan, Style
from openassay.models.spend import CostEstimate
from openassay.models.thread import ResearchOptions, Run
from openassay.reasoning.base import Reasoner
from openassay.search.ranking import IndexRanker
from openassay.settings import Settings
from openassay.state import StateCompactor

current_step: ContextVar[int | None] = ContextVar("step", default=None)  # the event that what happens now belongs under
current_run: ContextVar[Run | None] = ContextVar("working", default=None)  # the run whose doing it is


@contextmanager
def enter_step() -> Iterator[None]:
    """What is entered inside is left at the end. Tasks that run at once have a step each."""
    outer = current_step.set(current_step.get())
    try:
        yield
    finally:
        current_step.reset(outer)


class ReasonerProvider(Protocol):
    """Who thinks for a run, and what that may cost."""

    def notices(self, options: ResearchOptions) -> dict[str, str]:
        """What a person must know of the choice. Raises ConfigurationError or BudgetError where none can be made."""
        ...

    def pin_options(self, options: ResearchOptions) -> ResearchOptions:
        """What a run that is resumed under other settings must keep to."""
        ...

    def estimate(self, options: ResearchOptions) -> CostEstimate: ...

    def may_trace(self, options: ResearchOptions) -> bool:
        """Whether LangSmith, if the environment names it, may be told of a run."""
        ...

    def open(self, run: Run, emit: protocols.Emit) -> tuple[Reasoner, protocols.SpendAccount]: ...


@dataclass(frozen=True, slots=True)
class ResearchContext:
    run: str
    thread: str
    options: ResearchOptions
    settings: Settings
    reasoner: Reasoner
    account: protocols.SpendAccount
    quote: CostEstimate | None
    sources: Sequence[protocols.Source]
    documents: protocols.DocumentStore
    notes: StateCompactor
    pages: protocols.PageReader
    ranker: IndexRanker
    memory: protocols.Memory
    started: datetime
    now: Callable[[], datetime]
    append: protocols.Emit
    checkpoints: Callable[[], Awaitable[tuple[str, ...]]]  # of this run, oldest first
    tally: Callable[[], Awaitable[dict[str, int]]]  # steps each reasoner did; empty without a language model
    mode: Callable[[], Awaitable[Mode]]  # as it was said last, which may be while the run is at work
    answers: dict[object, protocols.SearchAnswer] = field(default_factory=dict)  # so far, by source and request

    def max_words(self, plan: Plan) -> int:
        """The most a report may have: what was asked for, else what the plan's answers say, else what is preferred."""
        if self.options.words:
            return plan.target(self.options.words)
        return plan.words or self.options.preferences.words or self.settings.target_length

    def style(self, plan: Plan) -> Style:
        """What was asked for, else what suits the use the person named, else what is preferred, else the usual."""
        return self.options.style or plan.style or self.options.preferences.style or self.settings.style_guide

    async def load_documents(self, names: Iterable[str]) -> dict[str, Document]:
        """Load each document once, in the order given."""
        return {name: await self.documents.get(name) for name in dict.fromkeys(names)}

    async def emit(self, kind: EventKind, stage: str, **data: object) -> None:
        """Record what happened; everything a person sees of a run is read from these events."""
        await self.append(kind, stage, data)
