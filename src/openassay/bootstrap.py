"""Builds the engine from the settings: chooses the implementation behind each protocol."""

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from openassay.companies.register import LazyCompanyRegister
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.engine import Engine
from openassay.engine.maintenance import build_file_reader, scan_folder
from openassay.engine.memory import FILE, UserMemory, create_shared_memory, load_memories, open_memory
from openassay.engine.run_journal import JournalRecorder, JournalStores
from openassay.engine.runner import Runner
from openassay.errors import BudgetError, ConfigurationError, NotFoundError, PathError
from openassay.fetch.documents import LocalFileReader
from openassay.llm.budget import RunAccount
from openassay.llm.prices import estimate_cost, find_price
from openassay.llm.router import ModelRouter
from openassay.llm.selection import EMBEDDED, PRIVATE, ModelSelection, is_private, needs_model_consent, select_models
from openassay.llm.tracing import is_on as traced
from openassay.models.spend import MICRO, Caps, CostEstimate
from openassay.models.thread import ResearchOptions, Run
from openassay.models.user import SCHEME
from openassay.protocols import (
    Cache,
    ChooseSources,
    DocumentFolder,
    DocumentStore,
    Emit,
    Ledger,
    PageReader,
    RateLimiter,
    RunLocks,
    Source,
    SourceSelection,
    SpendAccount,
)
from openassay.reasoning.base import Reasoner
from openassay.reasoning.llm import LLMReasoner
from openassay.reasoning.rules import RuleReasoner
from openassay.search.http import ProviderClient
from openassay.search.mcp import McpConnectionPool
from openassay.search.ranking import IndexRanker
from openassay.search.registry import SourceContext, build_source, check_names, choose_sources, source_names
from openassay.search.vector_maker import VectorMaker
from openassay.settings import Settings
from openassay.storage.admin import DATABASE_FILE as DATABASE
from openassay.storage.admin import database_address, transfer_to_postgres
from openassay.storage.cache import CacheLayer, LruCache
from openassay.storage.database import Database
from openassay.storage.documents import SqlDocuments
from openassay.storage.events import SqlEvents, SqlNotes, SqlReviews
from openassay.storage.index_catalog import IndexCatalog, make_private_folder, open_indexes
from openassay.storage.index_sqlite import SqliteIndex
from openassay.storage.integrity import SqlIntegrity, ensure_seals, read_seal_settings, reseal
from openassay.storage.ledger import SqlLedger
from openassay.storage.locks import FileLocks, Leases
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.shared_services import SharedServices, open_shared_services
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.threads import SqlArtifacts, SqlPins, SqlThreads
from openassay.storage.uploads import DatabaseFileStore, FileStore, FolderFileStore, SqlUploads, resolve_path
from openassay.storage.users import SqlChats, SqlReplies, SqlShares, SqlUsers
from openassay.storage.webhooks import SqlWebhooks
from openassay.telemetry import open_traces
from openassay.text.embeddings import CrossEncoder, EmbeddingCache, MiniLM
from openassay.text.redaction import build_redactor
from openassay.verification.support import CrossEncoderScorer

if TYPE_CHECKING:
    from openassay.telemetry.traces import Traces

_log = logging.getLogger("openassay")
SMALLEST = (5_000, 4_000)  # tokens a planner's call may take at its worst: the least a run needs
TRACED = "LangSmith tracing is on: it is sent everything this run sees."
ELSEWHERE = "{} is not on this machine: what another one has indexed of it was searched, as it was then."
NOT_TRACED = "LangSmith tracing is off for this run, since your documents stay on this machine."


@dataclass(slots=True, kw_only=True)
class SourceFactory:
    settings: Settings
    documents: DocumentStore
    embedder: EmbeddingCache
    cache: Cache
    http: ProviderClient
    links: McpConnectionPool
    files: FileStore
    indexes: IndexCatalog
    reader: LocalFileReader
    vectors: VectorMaker | None = None

    def __call__(self, options: ResearchOptions) -> SourceSelection:
        """Return the sources, and notices about the choice that the person must see."""
        context = self._build_context(options.docs)
        sources, notices = choose_sources(options, context)
        absent = [ELSEWHERE.format(folder.root) for folder in context.folders if not folder.is_here]
        return sources, {**notices, **({"documents": " ".join(absent)} if absent else {})}

    def list_sources(self) -> list[Source]:
        """List every source there is, whether or not it can be asked."""
        context = self._build_context(())
        return [build_source(name, context) for name in source_names(self.settings)]

    def forget(self, folders: set[str]) -> None:
        """Delete the indexes of folders that are not asked any more."""
        if self.vectors is not None:
            self.vectors.clear()
        self.indexes.forget({resolve_path(folder, self.files.folder).resolve() for folder in folders})

    def _build_context(self, docs: Sequence[str]) -> SourceContext:
        return SourceContext(
            store=self.documents,
            embedder=self.embedder,
            reader=self.reader,
            open_index=self.indexes.open,
            settings=self.settings,
            cache=self.cache,
            http=self.http,
            links=self.links,
            folders=self._find_folders(docs),
            vectors=self.vectors,
        )

    def _find_folders(self, docs: Sequence[str]) -> list[DocumentFolder]:
        """Find the folders; the uploads of one person are one, however many a run is given."""
        found = [(path.startswith(SCHEME), self._find_folder(self.files.locate(path))) for path in docs]
        given: dict[Path, list[DocumentFolder]] = {}
        for folder in (folder for is_given, folder in found if is_given):
            given.setdefault(folder.root.parent, []).append(folder)
        return [folder for is_given, folder in found if not is_given] + [_merge_folders(*one) for one in given.items()]

    def _find_folder(self, path: Path) -> DocumentFolder:
        """Find a folder, or one that another machine has indexed."""
        try:
            return scan_folder(path)
        except PathError:
            if path.exists() or self.indexes.find_remote(path.resolve()) is None:
                raise
            return DocumentFolder(path.resolve(), (), (), is_here=False)


def _merge_folders(owner: Path, folders: Sequence[DocumentFolder]) -> DocumentFolder:
    """Named for all of them, so that no two runs share an index of which one may see only a part."""
    names = sorted({folder.root.name for folder in folders})
    return DocumentFolder(
        root=owner / hashlib.sha256(" ".join(names).encode()).hexdigest()[:16],
        files=sorted({file for folder in folders for file in folder.files}),
        skipped=sorted({skip for folder in folders for skip in folder.skipped}),
    )


class ReasonerFactory:
    """A ReasonerProvider: language models where there are some, else the embedded reasoner."""

    def __init__(
        self, settings: Settings, ledger: Ledger, embedded: RuleReasoner, rates: RateLimiter | None = None
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._embedded = embedded
        self._router = ModelRouter(settings, ledger, rates=rates)

    def notices(self, options: ResearchOptions) -> dict[str, str]:
        chosen = select_models(self._settings, options)
        if chosen is not None:
            self._check_affordable(chosen, options)
        notices = {"model": PRIVATE} if needs_model_consent(self._settings, options) else {}
        if options.docs and chosen and (hosted := chosen.remote_models(self._settings)):
            notices["model"] = f"You named {', '.join(map(str, hosted))}: it is sent passages of your documents."
        if traced():
            notices["tracing"] = TRACED if self.may_trace(options) else NOT_TRACED
        return notices

    def pin_options(self, options: ResearchOptions) -> ResearchOptions:
        """A run that was told its documents stay here keeps to it, whatever the settings say when it is resumed."""
        stays = is_private(options) and select_models(self._settings, options) is None
        return options.model_copy(update={"model": EMBEDDED}) if stays else options

    def may_trace(self, options: ResearchOptions) -> bool:
        """A run on documents is traced only where a hosted model sees them anyway."""
        chosen = select_models(self._settings, options)
        return not is_private(options) or bool(chosen and chosen.remote_models(self._settings))

    def estimate(self, options: ResearchOptions) -> CostEstimate:
        return estimate_cost(
            select_models(self._settings, options), options.depth, self._settings, self._max_usd(options)
        )

    def open(self, run: Run, emit: Emit) -> tuple[Reasoner, SpendAccount]:
        options = run.options
        chosen = select_models(self._settings, options)
        budget, usd = self._settings.budget, self._max_usd(options)
        caps = Caps(
            micros=round(usd * MICRO),
            tokens=budget.tokens,
            requests=budget.requests,
            finish_share=budget.verification_share,
        )
        if chosen is None:
            return self._embedded, RunAccount(run.id, self._ledger, caps, emit, lineage=options.lineage)
        models = self._router.models_for_run(run.id, chosen, caps, emit, lineage=options.lineage)
        return LLMReasoner(models, self._embedded, emit, today=run.started.date()), models.account

    async def close(self) -> None:
        await self._router.close()

    def _check_affordable(self, chosen: ModelSelection, options: ResearchOptions) -> None:
        """Every model has a price, and the caps allow for at least one call, or nothing is begun."""
        costs = [find_price(model, self._settings)(*SMALLEST) for model in chosen.models]
        budget = self._settings.budget
        if budget.tokens < sum(SMALLEST) or not budget.requests:
            raise BudgetError(
                "the caps on tokens and requests do not allow for a single call",
                help="Raise budget.tokens or budget.requests, or use --model embedded, which needs none.",
            )
        if min(costs) > self._max_usd(options) * MICRO * (1 - budget.verification_share):
            raise BudgetError(
                f"a cap of ${self._max_usd(options):g} does not pay for a single call of {chosen.first}",
                help="Raise it with --budget or budget.usd, or use --model embedded, which costs nothing.",
            )

    def _max_usd(self, options: ResearchOptions) -> float:
        return options.max_usd(self._settings.budget.usd)


@dataclass(frozen=True, slots=True)
class Resources:
    """What an engine works with: its storage, its sources, and the web."""

    folder: Path
    rows: Rows
    locks: RunLocks
    documents: SqlDocuments
    files: FileStore
    embedder: EmbeddingCache
    sources: SourceFactory
    pages: PageReader
    cache: CacheLayer
    shared: SharedServices


@asynccontextmanager
async def open_resources(settings: Settings) -> AsyncIterator[Resources]:
    """Everything opened here is closed again."""
    _log.setLevel(settings.log_level.upper())
    check_names(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(build_redactor(settings).filter_logs())
        folder = open_data_dir(settings, stack)
        rows, locks = open_rows(settings, folder, stack)
        documents = SqlDocuments(rows)
        embedder = EmbeddingCache(MiniLM(), folder / "vectors.sqlite3", on_notice=_log.warning)
        stack.callback(embedder.close)
        server = database_address(settings) if settings.persistence.backend == "postgres" else None
        shared = await stack.enter_async_context(open_shared_services(settings, folder, server, _log.warning))
        cache = shared.cache
        http = ProviderClient(rates=shared.shared_rates, at_once=settings.search.at_once)
        stack.push_async_callback(http.close)
        links = McpConnectionPool()
        stack.push_async_callback(links.close)
        pages = await stack.enter_async_context(open_pages(settings, cache))
        files: FileStore = FolderFileStore(folder / "uploads")
        if settings.persistence.backend == "postgres":  # any machine may be the one that reads a file
            files = DatabaseFileStore(rows, folder / "copies")
        indexes = open_indexes(settings, folder, files.folder, rows.database)
        stack.callback(indexes.close)
        sources = SourceFactory(
            settings=settings,
            documents=documents,
            embedder=embedder,
            cache=cache,
            http=http,
            links=links,
            files=files,
            indexes=indexes,
            reader=build_file_reader(settings, files.folder),
        )
        yield Resources(folder, rows, locks, documents, files, embedder, sources, pages, cache, shared)


@dataclass(frozen=True, slots=True)
class ServerResources(Resources):
    """An engine with all that a server has besides: who may come in, and what they have brought and made."""

    engine: Engine
    ledger: SqlLedger
    support: CrossEncoderScorer
    users: SqlUsers
    shares: SqlShares
    pins: SqlPins
    artifacts: SqlArtifacts
    uploads: SqlUploads
    webhooks: SqlWebhooks
    replies: SqlReplies
    chats: SqlChats
    traces: "Traces | None"


@asynccontextmanager
async def open_server_resources(
    settings: Settings, sources: ChooseSources | None = None, *, expire: bool = True, stays: bool = True
) -> AsyncIterator[ServerResources]:
    """Open an engine with all that a server needs. `sources` replaces those the settings name; `expire` first deletes
    threads that nobody has touched for long enough; one that `stays` open between questions makes vectors then."""
    async with AsyncExitStack() as stack:
        traces = await stack.enter_async_context(open_traces(settings))
        base = await stack.enter_async_context(open_resources(settings))
        rows = base.rows
        support = CrossEncoderScorer(CrossEncoder())
        embedded = RuleReasoner(base.embedder, support, LazyCompanyRegister())
        journal = open_journal(settings, rows, base.folder)
        stores = journal.stores
        reasoners = ReasonerFactory(settings, stores.ledger, embedded, base.shared.shared_rates)
        stack.push_async_callback(reasoners.close)
        runner = Runner(
            settings=settings,
            threads=stores.threads,
            reviews=SqlReviews(rows),
            memory=await stack.enter_async_context(_open_memory(rows, base.folder)),
            log=stores.log,
            documents=stores.documents,
            notes=stores.notes,
            pages=base.pages,
            ranker=IndexRanker(_open_temporary_index, base.embedder),
            reasoners=reasoners,
            choose_sources=sources or base.sources,
            checkpointer=stores.checkpointer,
            locks=base.locks,
            ledger=stores.ledger,
            integrity=SqlIntegrity(rows),
            journal=journal,
            now=lambda: datetime.now(UTC),
        )
        engine = Engine(runner, base.sources.forget)
        stack.push_async_callback(engine.close)
        # Several machines would complete the indexes of a shared database.
        if stays and settings.persistence.backend == "sqlite":
            base.sources.vectors = VectorMaker(MiniLM(), lambda: bool(runner.list_running()))
            stack.push_async_callback(base.sources.vectors.close)
        engine.watchers.append(lambda event: base.shared.signals.notify(f"run:{event.run}"))
        if traces is not None:
            engine.watchers.append(traces.record_event)
        if expire:
            await engine.archive.expire()
            await asyncio.to_thread(base.files.tidy)
        yield ServerResources(
            **{field.name: getattr(base, field.name) for field in fields(base)},
            engine=engine,
            ledger=SqlLedger(rows),
            support=support,
            users=SqlUsers(rows),
            shares=SqlShares(rows),
            pins=SqlPins(rows),
            artifacts=SqlArtifacts(rows),
            uploads=SqlUploads(rows, base.files),
            webhooks=SqlWebhooks(rows),
            replies=SqlReplies(rows),
            chats=SqlChats(rows),
            traces=traces,
        )


@asynccontextmanager
async def open_engine(
    settings: Settings, sources: ChooseSources | None = None, *, expire: bool = True, stays: bool = False
) -> AsyncIterator[Engine]:
    async with open_server_resources(settings, sources, expire=expire, stays=stays) as resources:
        yield resources.engine


@asynccontextmanager
async def open_users(settings: Settings) -> AsyncIterator[SqlUsers]:
    """Who may come in, and nothing else."""
    async with AsyncExitStack() as stack:
        stack.enter_context(build_redactor(settings).filter_logs())
        rows, _ = open_rows(settings, open_data_dir(settings, stack), stack)
        yield SqlUsers(rows)


@asynccontextmanager
async def open_user_memory(settings: Settings) -> AsyncIterator[UserMemory]:
    """What people want remembered, and nothing else."""
    async with AsyncExitStack() as stack:
        folder = open_data_dir(settings, stack)
        rows, _ = open_rows(settings, folder, stack)
        yield await stack.enter_async_context(_open_memory(rows, folder))


@asynccontextmanager
async def _open_memory(rows: Rows, folder: Path) -> AsyncIterator[UserMemory]:
    if isinstance(rows.database, PostgresDatabase):
        yield create_shared_memory(rows, rows.database)
    else:
        async with open_memory(folder / FILE) as memory:
            yield memory


def open_journal(settings: Settings, rows: Rows, folder: Path) -> JournalRecorder:
    """The journal, with the stores it is a copy of. Where nothing outlives the process it is not written."""
    ledger = SqlLedger(rows, on_change=lambda row: journal.record_call(row))
    stores = JournalStores(
        threads=SqlThreads(rows), log=SqlEvents(rows, on_append=lambda event: journal.append_event(event)),
        documents=SqlDocuments(rows), notes=SqlNotes(rows), ledger=ledger, checkpointer=SqlCheckpointSaver(rows),
    )  # fmt: skip
    is_kept = settings.persistence.journal and settings.persistence.backend != "memory"
    journal = JournalRecorder(folder / "checkpoints", rows.seals, stores, is_kept=is_kept)
    return journal


@asynccontextmanager
async def open_pages(settings: Settings, cache: Cache | None = None) -> AsyncIterator[PageReader]:
    """The web, as far as the guarded client lets anybody."""
    from openassay.fetch.browser import open_browser
    from openassay.fetch.client import FetchClient
    from openassay.fetch.web_pages import WebPages

    options = settings.harvest
    async with FetchClient(options) as client, open_browser(options, client.connect) as render:
        pages = WebPages(options, client=client, cache=cache or LruCache(0), render=render)
        try:
            yield pages
        finally:
            await pages.close()


@contextmanager
def _open_temporary_index() -> Iterator[SqliteIndex]:
    with (
        tempfile.TemporaryDirectory(prefix="openassay-") as folder,
        SqliteIndex(Path(folder) / "pages.sqlite3") as index,
    ):
        yield index


def open_data_dir(settings: Settings, stack: AsyncExitStack) -> Path:
    if settings.persistence.backend == "memory":
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="openassay-")))
    return make_private_folder(settings.data_dir)


def open_rows(settings: Settings, folder: Path, stack: AsyncExitStack) -> tuple[Rows, RunLocks]:
    """The database of the settings, sealed as they say, and the locks that go with it."""
    database, locks = open_database(settings, folder, stack)
    key = settings.keys.openassay_storage_key
    rows = Rows(database, Seals(key.get_secret_value() if key else None, encrypt=settings.persistence.encrypt))
    ensure_seals(rows)
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


# What is done to all that is stored, while nothing is at work: carried into another database, sealed anew.


async def copy_to_postgres(settings: Settings, folder: Path) -> int:
    """Copy what a data directory holds into the empty PostgreSQL database of the settings; return how many rows.
    Nothing may be at work on the directory, which stays as it is."""
    if settings.persistence.backend != "postgres":
        raise ConfigurationError(
            f"persistence.backend is {settings.persistence.backend}, and the copy goes into PostgreSQL",
            help="Set it to postgres, and DATABASE_URL to its address.",
        )
    if not (folder / DATABASE).is_file():
        raise NotFoundError(f"{folder} holds no {DATABASE}", help="Name the data directory of that machine.")
    async with AsyncExitStack() as stack:
        file = stack.enter_context(SqliteDatabase(folder / DATABASE))
        target, _ = open_rows(settings, folder, stack)
        source = Rows(file, target.seals)
        ensure_seals(source)
        _refuse_while_running(source, FileLocks(folder / "locks"))
        files = (FolderFileStore(folder / "uploads"), DatabaseFileStore(target, settings.data_dir / "copies"))
        return await asyncio.to_thread(transfer_to_postgres, source, target, files, await load_memories(folder / FILE))


async def reseal_storage(settings: Settings, *, encrypt: bool) -> int:
    """Write everything anew with the key of the settings, or without one; return how many rows. The key before it is
    OPENASSAY_STORAGE_KEY_BEFORE. Nothing may be at work."""
    key, before = settings.keys.openassay_storage_key, settings.keys.openassay_storage_key_before
    async with AsyncExitStack() as stack:
        folder = open_data_dir(settings, stack)
        database, locks = open_database(settings, folder, stack)
        held = read_seal_settings(database)
        old = Seals(
            before.get_secret_value() if before else key.get_secret_value() if key and held and held.key else None,
            encrypt=held.encrypt if held else False,
        )
        if held and held.key != old.key_id:
            raise ConfigurationError(
                f"{database.name} is sealed with another key",
                help="Set OPENASSAY_STORAGE_KEY_BEFORE to the one it has now.",
            )
        new = Seals(key.get_secret_value() if key else None, encrypt=encrypt)
        _refuse_while_running(Rows(database, old), locks)
        count = await asyncio.to_thread(reseal, database, old, new)
        await open_journal(settings, Rows(database, new), folder).rewrite_all()
        return count


def _refuse_while_running(rows: Rows, locks: RunLocks) -> None:
    with rows.database.connection() as connection:
        threads = connection.execute("SELECT thread FROM runs WHERE status IN ('running', 'queued')").fetchall()
    for row in threads:
        locks.acquire(row["thread"])
        locks.release(row["thread"])
