"""The only place that names concrete classes, with choosing.py: settings in, a running engine out."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assay.checkpoints.recorder import Recorder, Stores
from assay.checkpoints.saver import Checkpoints
from assay.choosing import ReasonerChooser, SourceChooser
from assay.companies import Later
from assay.embedding.entailment import CrossEncoder
from assay.embedding.minilm import MiniLM
from assay.embedding.vectors import CachedEmbedder
from assay.engine import Engine
from assay.memory.file import FILE
from assay.memory.opening import open_memory, shared_memory
from assay.memory.remembered import StoreMemory
from assay.ports import Cache, Choose, Pages, RunLocks
from assay.reasoning.embedded import EmbeddedReasoner
from assay.runs.runner import Runner
from assay.search.http import Http
from assay.search.mcp_link import Links
from assay.search.ranker import IndexRanker
from assay.search.registry import check_names
from assay.settings import Settings
from assay.storage.artifacts import SqlArtifacts
from assay.storage.cache import OpenCache
from assay.storage.chats import SqlChats
from assay.storage.commons import Commons, open_commons
from assay.storage.database import Database
from assay.storage.documents import SqlDocuments
from assay.storage.events import SqlEvents
from assay.storage.files import Files, FolderFiles, SharedFiles
from assay.storage.integrity import SqlIntegrity
from assay.storage.leases import Leases
from assay.storage.ledger import SqlLedger
from assay.storage.library import LibraryIndex
from assay.storage.locks import FileLocks
from assay.storage.notes import SqlNotes
from assay.storage.opening import FILE as DATABASE
from assay.storage.opening import database_address
from assay.storage.pins import SqlPins
from assay.storage.postgres import PostgresDatabase
from assay.storage.replies import SqlReplies
from assay.storage.reviews import SqlReviews
from assay.storage.rows import Rows
from assay.storage.sealing import adopt
from assay.storage.seals import Seals
from assay.storage.shares import SqlShares
from assay.storage.shelf import private, shelved
from assay.storage.sqlite import SqliteDatabase
from assay.storage.threads import SqlThreads
from assay.storage.uploads import SqlUploads
from assay.storage.users import SqlUsers
from assay.storage.webhooks import SqlWebhooks
from assay.telemetry.traces import Traces, open_traces
from assay.text.redaction import redaction
from assay.trust.support import WordsAndMeaning

_log = logging.getLogger("assay")


class World(NamedTuple):
    """What an engine reads from: its own storage, its sources, and the web."""

    folder: Path
    rows: Rows
    locks: RunLocks
    documents: SqlDocuments
    files: Files
    embedder: CachedEmbedder
    sources: SourceChooser
    pages: Pages
    cache: OpenCache
    commons: Commons


@asynccontextmanager
async def open_world(settings: Settings) -> AsyncIterator[World]:
    """Everything opened here is closed again."""
    _log.setLevel(settings.log_level.upper())
    check_names(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(redaction(settings).logs())
        folder = data_dir(settings, stack)
        rows, locks = open_rows(settings, folder, stack)
        documents = SqlDocuments(rows)
        embedder = CachedEmbedder(MiniLM(), folder / "vectors.sqlite3", on_notice=_log.warning)
        stack.callback(embedder.close)
        server = database_address(settings) if settings.persistence.backend == "postgres" else None
        commons = await stack.enter_async_context(open_commons(settings, folder, server, _log.warning))
        cache = commons.cache
        http = Http(rates=commons.between, at_once=settings.search.at_once)
        stack.push_async_callback(http.close)
        links = Links()
        stack.push_async_callback(links.close)
        pages = await stack.enter_async_context(open_pages(settings, cache))
        files = _files(settings, rows, folder)
        shelf = shelved(settings, folder, files.folder, rows.database)
        sources = SourceChooser(settings, documents, embedder, cache, http, links, files, shelf)
        stack.callback(sources.close)
        yield World(folder, rows, locks, documents, files, embedder, sources, pages, cache, commons)


class Premises(NamedTuple):
    """An engine with all that a server has besides: who may come in, and what they have brought and made."""

    engine: Engine
    world: World
    ledger: SqlLedger
    support: WordsAndMeaning
    users: SqlUsers
    shares: SqlShares
    pins: SqlPins
    artifacts: SqlArtifacts
    uploads: SqlUploads
    webhooks: SqlWebhooks
    replies: SqlReplies
    chats: SqlChats
    traces: Traces | None


@asynccontextmanager
async def open_premises(
    settings: Settings, sources: Choose | None = None, *, expire: bool = True
) -> AsyncIterator[Premises]:
    """On the settings' data directory. `sources` takes the place of those the settings name. `expire`: threads that
    nobody has touched for long enough are deleted first."""
    async with AsyncExitStack() as stack:
        traces = await stack.enter_async_context(open_traces(settings))
        world = await stack.enter_async_context(open_world(settings))
        rows = world.rows
        support = WordsAndMeaning(world.embedder, CrossEncoder())
        embedded = EmbeddedReasoner(world.embedder, support, Later())
        journal = open_journal(settings, rows, world.folder)
        stores = journal.stores
        thinking = ReasonerChooser(settings, stores.ledger, embedded, world.commons.between)
        stack.push_async_callback(thinking.close)
        runner = Runner(
            settings=settings,
            threads=stores.threads,
            reviews=SqlReviews(rows),
            memory=await stack.enter_async_context(_remembered(rows, world.folder)),
            log=stores.log,
            documents=stores.documents,
            notes=stores.notes,
            pages=world.pages,
            ranker=IndexRanker(_passing_index, world.embedder),
            thinking=thinking,
            support=support,
            checkpointer=stores.checkpointer,
            locks=world.locks,
            ledger=stores.ledger,
            integrity=SqlIntegrity(rows),
            journal=journal,
            now=lambda: datetime.now(UTC),
        )
        engine = Engine(runner, sources or world.sources, world.sources.forget)
        stack.push_async_callback(engine.close)
        engine.watchers.append(lambda event: world.commons.signals.ring(f"run:{event.run}"))
        if traces is not None:
            engine.watchers.append(traces.event)
        if expire:
            await engine.expire()
            await asyncio.to_thread(world.files.tidy)
        yield Premises(
            engine=engine, world=world, ledger=SqlLedger(rows), support=support, users=SqlUsers(rows),
            shares=SqlShares(rows), pins=SqlPins(rows), artifacts=SqlArtifacts(rows),
            uploads=SqlUploads(rows, world.files), webhooks=SqlWebhooks(rows), replies=SqlReplies(rows),
            chats=SqlChats(rows), traces=traces,
        )  # fmt: skip


@asynccontextmanager
async def open_engine(
    settings: Settings, sources: Choose | None = None, *, expire: bool = True
) -> AsyncIterator[Engine]:
    async with open_premises(settings, sources, expire=expire) as premises:
        yield premises.engine


@asynccontextmanager
async def open_users(settings: Settings) -> AsyncIterator[SqlUsers]:
    """Who may come in, and nothing else."""
    async with AsyncExitStack() as stack:
        stack.enter_context(redaction(settings).logs())
        rows, _ = open_rows(settings, data_dir(settings, stack), stack)
        yield SqlUsers(rows)


@asynccontextmanager
async def open_remembered(settings: Settings) -> AsyncIterator[StoreMemory]:
    """What people want remembered, and nothing else."""
    async with AsyncExitStack() as stack:
        folder = data_dir(settings, stack)
        rows, _ = open_rows(settings, folder, stack)
        yield await stack.enter_async_context(_remembered(rows, folder))


@asynccontextmanager
async def _remembered(rows: Rows, folder: Path) -> AsyncIterator[StoreMemory]:
    if isinstance(rows.database, PostgresDatabase):
        yield shared_memory(rows, rows.database)
    else:
        async with open_memory(folder / FILE) as memory:
            yield memory


def open_journal(settings: Settings, rows: Rows, folder: Path) -> Recorder:
    """The journal, with the stores it is a copy of. Where nothing outlives the process it is not written."""
    ledger = SqlLedger(rows, tell=lambda row: journal.call(row))
    stores = Stores(
        threads=SqlThreads(rows), log=SqlEvents(rows, tell=lambda event: journal.appended(event)),
        documents=SqlDocuments(rows), notes=SqlNotes(rows), ledger=ledger, checkpointer=Checkpoints(rows),
    )  # fmt: skip
    is_kept = settings.persistence.journal and settings.persistence.backend != "memory"
    journal = Recorder(folder / "checkpoints", rows.seals, stores, is_kept=is_kept)
    return journal


@asynccontextmanager
async def open_pages(settings: Settings, cache: Cache) -> AsyncIterator[Pages]:
    """The web, as far as the guarded client lets anybody."""
    from assay.harvest.fetching.browser import open_browser
    from assay.harvest.fetching.client import GuardedClient
    from assay.harvest.fetching.robots import Robots
    from assay.harvest.visits import Visits
    from assay.harvest.web import WebPages

    options = settings.harvest
    async with GuardedClient(options) as client, open_browser(options, client.connect) as render:
        robots = Robots(client, options.user_agent)
        pages = WebPages(options, visits=Visits(options, client=client, robots=robots), cache=cache, render=render)
        try:
            yield pages
        finally:
            await pages.close()
            await robots.aclose()


@contextmanager
def _passing_index() -> Iterator[LibraryIndex]:
    with tempfile.TemporaryDirectory(prefix="assay-") as folder, LibraryIndex(Path(folder) / "pages.sqlite3") as index:
        yield index


def data_dir(settings: Settings, stack: AsyncExitStack) -> Path:
    if settings.persistence.backend == "memory":
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-")))
    return private(settings.data_dir)


def open_rows(settings: Settings, folder: Path, stack: AsyncExitStack) -> tuple[Rows, RunLocks]:
    """The database of the settings, sealed as they say, and the locks that go with it."""
    database, locks = open_database(settings, folder, stack)
    key = settings.keys.assay_storage_key
    rows = Rows(database, Seals(key.get_secret_value() if key else None, encrypt=settings.persistence.encrypt))
    adopt(rows)
    return rows, locks


def open_database(settings: Settings, folder: Path, stack: AsyncExitStack) -> tuple[Database, RunLocks]:
    if settings.persistence.backend == "postgres":
        server = PostgresDatabase(database_address(settings), idle_seconds=settings.fleet.lease_seconds / 2)
        stack.callback(server.close)
        leases = Leases(server, seconds=settings.fleet.lease_seconds)
        stack.callback(leases.close)
        return server, leases
    file = SqliteDatabase(folder / DATABASE)
    stack.callback(file.close)
    return file, FileLocks(folder / "locks")


def _files(settings: Settings, rows: Rows, folder: Path) -> Files:
    """On PostgreSQL any machine may be the one that reads a file."""
    if settings.persistence.backend == "postgres":
        return SharedFiles(rows, folder / "copies")
    return FolderFiles(folder / "uploads")
