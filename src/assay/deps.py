"""The live objects a run works with. They travel in the graph's context, never in its state."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from assay.model.event import EventKind
from assay.model.thread import Options
from assay.ports import DocumentStore, Source, SupportScorer
from assay.reasoning.protocol import Reasoner
from assay.settings import Settings


@dataclass(frozen=True, slots=True)
class Deps:
    run: str
    thread: str
    options: Options
    settings: Settings
    reasoner: Reasoner
    support: SupportScorer
    sources: Sequence[Source]
    documents: DocumentStore
    started: datetime
    now: Callable[[], datetime]
    append: Callable[[EventKind, str, dict[str, object]], Awaitable[None]]
    checkpoints: Callable[[], Awaitable[tuple[str, ...]]]  # of this run, oldest first

    async def emit(self, kind: EventKind, stage: str, **data: object) -> None:
        """Record what happened; everything a person sees of a run is read from these events."""
        await self.append(kind, stage, data)
