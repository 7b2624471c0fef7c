"""An engine whose runs are counted and logged, and whose figures are shown."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from assay.model.event import Event
from assay.ports import Source
from assay.storage.database import Database
from assay.telemetry import logs, metrics
from assay.telemetry.checks import checks
from assay.telemetry.exposition import exposed
from assay.telemetry.metrics import Metrics
from assay.telemetry.readiness import Readiness


class Engine(metrics.Watched, Protocol):
    @property
    def watchers(self) -> list[Callable[[Event], None]]: ...


def watched(engine: Engine, database: Database) -> Metrics:
    """The figures of an engine, from here on."""
    figures = Metrics(engine, database)
    engine.watchers.extend((figures.event, logs.event))
    return figures


@asynccontextmanager
async def watching(
    engine: Engine, folder: Path, database: Database, sources: Sequence[Source]
) -> AsyncIterator[str | None]:
    """For a process that serves nothing else. The address at which its figures and its health are shown, as long as
    this is open; None where `fleet.metrics_port` names none."""
    readiness = Readiness(checks(engine.settings, folder, database, sources))
    async with exposed(engine.settings.fleet, watched(engine, database), readiness) as address:
        yield address
