"""A laboratory: the whole engine on fakes of the world, every report of which goes through the checkers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import numpy  # noqa: F401  # while a thread is still importing it, the serialiser refuses exceptions
import pytest

from openassay.companies.register import open_companies
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.engine import Engine, RunOutcome
from openassay.engine.memory import UserMemory
from openassay.engine.runner import Runner
from openassay.export import Report
from openassay.models.event import Event
from openassay.models.evidence import Document
from openassay.models.thread import ResearchOptions
from openassay.protocols import Source
from openassay.python_api import aresearch
from openassay.search.demo import DemoSource
from openassay.search.ranking import IndexRanker
from openassay.search.registry import SourceContext
from openassay.settings import Settings, load
from openassay.storage.events import SqlEvents, SqlNotes, SqlReviews
from openassay.storage.locks import FileLocks
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.threads import SqlThreads
from openassay.testing import (
    FakePages,
    FakeSource,
    FreeAccount,
    MemoryDocuments,
    SingleReasonerFactory,
)
from openassay.text.embeddings import EmbeddingCache, MiniLM
from tests.conftest import MakeOnce
from tests.fakes.index import MemoryIndex
from tests.fakes.reasoner import StubReasoner
from tests.fakes.support import WordScorer
from tests.scenario.checking import check_report, stored_texts

LIBRARY = Path(__file__).resolve().parents[2] / "examples" / "library"
LIBRARY_QUESTION = (  # the one `make demo` asks
    "What is the value of the Hubble constant, why do measurements of it disagree, "
    "and when will the disagreement be settled?"
)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sources `auto` takes must not depend on the network of whoever runs the tests."""
    monkeypatch.setenv("OPENASSAY_OFFLINE", "true")


@pytest.fixture(scope="session")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddingCache]:
    """Loaded once, its vectors shared by all tests of a worker."""
    cached = EmbeddingCache(MiniLM(threads=1), tmp_path_factory.mktemp("vectors") / "vectors.sqlite3")
    yield cached
    cached.close()


class Lab:
    """An engine on a database. Sources are objects, not names; single steps of the reasoner can be replaced."""

    def __init__(
        self,
        embedder: EmbeddingCache,
        settings: Settings,
        script: dict[str, Callable[..., Any]],
        rows: Rows,
        folder: Path,
    ) -> None:
        from langgraph.store.memory import InMemoryStore

        self.ahead = timedelta()  # of the clock on the wall
        self.documents = MemoryDocuments()
        self.pages = FakePages()
        self.rows = rows
        self.threads, self.reviews, self.events = SqlThreads(rows), SqlReviews(rows), SqlEvents(rows)
        self.checkpointer = SqlCheckpointSaver(rows)
        self.memory = UserMemory(InMemoryStore())
        self.sources: list[Source] = [DemoSource(self.documents)]
        self.reasoner = StubReasoner(embedder, WordScorer(), open_companies(), **script)
        self.account = FreeAccount()
        self.reasoners = SingleReasonerFactory(self.reasoner, self.account)
        runner = Runner(
            settings=settings,
            threads=self.threads,
            reviews=self.reviews,
            memory=self.memory,
            log=self.events,
            documents=self.documents,
            notes=SqlNotes(rows),
            pages=self.pages,
            ranker=IndexRanker(lambda: nullcontext(MemoryIndex()), embedder),
            reasoners=self.reasoners,
            choose_sources=lambda options: (self.sources, {}),
            checkpointer=self.checkpointer,
            locks=FileLocks(folder / "locks"),
            now=lambda: datetime.now(UTC) + self.ahead,
        )
        self.engine = Engine(runner)

    def holds(self, *documents: Document, before: Callable[[str], Any] | None = None) -> FakeSource:
        """The one source of this laboratory is these documents."""
        source = FakeSource(self.documents, documents, before=before)
        self.sources = [source]
        return source

    async def ask(self, question: str, *, thread: str | None = None, **options: Any) -> RunOutcome:
        run = await self.engine.start(question, ResearchOptions(**options), thread=thread)
        return await self.settled(run.id)

    async def answer(self, outcome: RunOutcome, value: object) -> RunOutcome:
        [question] = outcome.questions
        run = await self.engine.interrupts.answer(outcome.run.thread, question.id, value)
        return await self.settled(run.id)

    async def settled(self, run: str) -> RunOutcome:
        outcome = await self.engine.wait(run)
        if outcome.report is not None:
            check_report(outcome.report, {name: document.text for name, document in self.documents.stored.items()})
        return outcome

    async def report(self, question: str, **options: Any) -> Report:
        outcome = await self.ask(question, **options)
        assert outcome.report is not None, outcome.run.error
        return outcome.report

    async def log(self, run: str) -> list[Event]:
        return await self.events.since(run, 0)

    async def state(self, outcome: RunOutcome) -> dict[str, Any]:
        return await self.engine.state(outcome.run.thread)


@pytest.fixture
async def lab(embedder: EmbeddingCache, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callable[..., Lab]]:
    """lab(critique=..., settings={...}) makes a laboratory, on a database of its own if none is given; all are closed
    at the end."""
    made: list[Lab] = []
    databases = ExitStack()

    def make(*, settings: dict[str, Any] | None = None, rows: Rows | None = None, **script: Callable[..., Any]) -> Lab:
        folder = tmp_path_factory.mktemp("lab")
        rows = rows or Rows(databases.enter_context(SqliteDatabase(folder / "main.db")))
        made.append(Lab(embedder, load(**(settings or {})), script, rows, folder))
        return made[-1]

    yield make
    for one in made:
        await one.engine.close()
    databases.close()


@pytest.fixture
def researched(tmp_path: Path) -> Callable[..., Report]:
    """`research()` in a data directory of this test, with its report checked."""

    def call(question: str, **options: Any) -> Report:
        report = asyncio.run(aresearch(question, **options))
        check_report(report, stored_texts(tmp_path / "data"))
        return report

    return call


class Plugin(NamedTuple):
    """What an entry point of a plugin gives: a name, and something that builds the source."""

    name: str
    build: Callable[[SourceContext], Source]

    def load(self) -> "Plugin":
        return self


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[SourceContext], Source]], None]:
    """plugin(name, build) registers a source as an installed package would."""
    added: dict[str, Plugin] = {}
    monkeypatch.setattr(
        "openassay.search.registry.entry_points", lambda group: [*entry_points(group=group), *added.values()]
    )

    def register(name: str, build: Callable[[SourceContext], Source]) -> None:
        added[name] = Plugin(name, build)

    return register


# The example library: its run takes seconds, so the workers of a session share one.


class LibraryRun:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.report = Report.model_validate(kept["report"])
        self.state: dict[str, Any] = kept["state"]
        self.events = [Event.model_validate(event) for event in kept["events"]]
        self.texts = stored_texts(folder)


@pytest.fixture(scope="session")
def library(make_once: MakeOnce) -> LibraryRun:
    run = LibraryRun(make_once("library", lambda folder: asyncio.run(_research_library(folder))))
    check_report(run.report, run.texts)
    return run


async def _research_library(folder: Path) -> None:
    from openassay.bootstrap import open_engine

    async with open_engine(load(data_dir=folder)) as engine:
        run = await engine.start(LIBRARY_QUESTION, ResearchOptions(docs=(str(LIBRARY),)))
        outcome = await engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        events = [event.plain() async for event in engine.events(run.id)]
        state = await engine.state(run.thread)
    kept = {"report": outcome.report.plain(), "state": state, "events": events}
    (folder / "run.json").write_text(json.dumps(kept), encoding="utf-8")
