"""The only place that names concrete classes: settings in, a running engine out."""

import asyncio
import hashlib
import logging
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import ValidationError

from assay.companies import open_companies
from assay.embedding.minilm import MiniLM
from assay.embedding.vectors import CachedEmbedder
from assay.engine import Engine
from assay.errors import AssayError, BudgetError, StorageError, UsageError
from assay.export.report import Report
from assay.harvest.files import FileReader
from assay.harvest.walk import walk
from assay.llm.account import RunAccount
from assay.llm.lineup import EMBEDDED, PRIVATE, Lineup, is_private, lineup, withheld
from assay.llm.prices import price
from assay.llm.quoting import quote
from assay.llm.router import Router
from assay.llm.tracing import is_on as traced
from assay.memory import FILE, open_memory
from assay.model.event import RunStatus
from assay.model.question import Mode
from assay.model.spend import MICRO, Caps, Quote
from assay.model.thread import Options, Run
from assay.ports import Account, Cache, Emit, Folder, Ledger, Pages, Source
from assay.reasoning.embedded import EmbeddedReasoner
from assay.reasoning.language import LanguageReasoner
from assay.reasoning.protocol import Reasoner
from assay.runner import Runner
from assay.search.choice import choose
from assay.search.http import Http
from assay.search.ranker import IndexRanker
from assay.search.registry import Bench, available, build, check_names
from assay.settings import Settings, load
from assay.storage.cache import open_cache
from assay.storage.documents import SqliteDocuments
from assay.storage.events import SqliteEvents
from assay.storage.ledger import SqliteLedger
from assay.storage.library import LibraryIndex
from assay.storage.locks import FileLocks
from assay.storage.reviews import SqliteReviews
from assay.storage.sqlite import MAIN, Database
from assay.storage.threads import SqliteThreads
from assay.trust.support import WordsAndMeaning

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

_log = logging.getLogger("assay")

SMALLEST = (5_000, 4_000)  # tokens a planner's call may take at its worst: the least a run needs
Choose = Callable[[Options], tuple[list[Source], dict[str, str]]]  # the sources of a run, and notices about them

TRACED = "LangSmith tracing is on: it is sent everything this run sees."
NOT_TRACED = "LangSmith tracing is off for this run, since your documents stay on this machine."


class World(NamedTuple):
    """What an engine reads from: its own storage, its sources, and the web."""

    folder: Path
    database: Database
    documents: SqliteDocuments
    embedder: CachedEmbedder
    sources: "SourceChooser"
    pages: Pages


@asynccontextmanager
async def open_world(settings: Settings) -> AsyncIterator[World]:
    """Everything opened here is closed again."""
    _log.setLevel(settings.log_level.upper())
    check_names(settings)
    async with AsyncExitStack() as stack:
        folder = _data_dir(settings, stack)
        database = Database(folder / "assay.sqlite3")
        stack.callback(database.close)
        documents = SqliteDocuments(database)
        embedder = CachedEmbedder(MiniLM(), folder / "vectors.sqlite3", on_notice=_log.warning)
        stack.callback(embedder.close)
        cache = open_cache(settings.cache, folder, settings.keys.redis_url, _log.warning)
        stack.push_async_callback(cache.close)
        http = Http()
        stack.push_async_callback(http.close)
        pages = await stack.enter_async_context(open_pages(settings, cache))
        sources = SourceChooser(settings, folder, documents, embedder, cache, http)
        stack.callback(sources.close)
        yield World(folder, database, documents, embedder, sources, pages)


@asynccontextmanager
async def open_engine(settings: Settings, sources: Choose | None = None) -> AsyncIterator[Engine]:
    """An engine on the settings' data directory. `sources` takes the place of those the settings name."""
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(open_world(settings))
        support = WordsAndMeaning(world.embedder)
        embedded = EmbeddedReasoner(world.embedder, support, open_companies())
        thinking = ReasonerChooser(settings, SqliteLedger(world.database), embedded)
        stack.push_async_callback(thinking.close)
        runner = Runner(
            settings=settings,
            threads=SqliteThreads(world.database),
            reviews=SqliteReviews(world.database),
            memory=await stack.enter_async_context(open_memory(world.folder / FILE)),
            log=SqliteEvents(world.database),
            documents=world.documents,
            pages=world.pages,
            ranker=IndexRanker(_passing_index, world.embedder),
            thinking=thinking,
            support=support,
            checkpointer=await stack.enter_async_context(_checkpointer(world.folder / "checkpoints.sqlite3")),
            locks=FileLocks(world.folder / "locks"),
            now=lambda: datetime.now(UTC),
        )
        engine = Engine(runner, sources or world.sources)
        stack.push_async_callback(engine.close)
        yield engine


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


def _data_dir(settings: Settings, stack: AsyncExitStack) -> Path:
    if settings.persistence.backend == "memory":
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-")))
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot use the data directory {settings.data_dir}: {error.strerror}",
            help="Set ASSAY_DATA_DIR to a folder you can write to.",
        ) from error
    return settings.data_dir


@asynccontextmanager
async def _checkpointer(path: Path) -> "AsyncIterator[BaseCheckpointSaver[Any]]":
    import aiosqlite
    import numpy  # noqa: F401  # while a thread is still importing it, the serialiser refuses exceptions
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with aiosqlite.connect(path) as connection:
        saver = AsyncSqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        try:
            await saver.setup()
        except sqlite3.Error as error:
            raise StorageError(f"{path}: {error}", help=MAIN.help, path=path) from error
        yield saver


class SourceChooser:
    """The sources of a run, built from what there is."""

    def __init__(
        self, settings: Settings, folder: Path, documents: SqliteDocuments, embedder: CachedEmbedder, cache: Cache,
        http: Http,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._folder = folder
        self._documents = documents
        self._embedder = embedder
        self._cache = cache
        self._http = http
        self._indexes: dict[Path, LibraryIndex] = {}

    def __call__(self, options: Options) -> tuple[list[Source], dict[str, str]]:
        """The sources, and notices about the choice that the person must see."""
        return choose(options, self._bench(options.docs))

    def installed(self) -> list[Source]:
        """Every source there is, whether or not it can be asked."""
        bench = self._bench(())
        return [build(name, bench) for name in available()]

    def _bench(self, docs: Sequence[str]) -> Bench:
        reading = self._settings.reading
        return Bench(
            store=self._documents,
            embedder=self._embedder,
            reader=FileReader(max_bytes=reading.max_file_mb * 1_000_000, pdf_seconds=reading.pdf_seconds),
            open_index=self._index,
            settings=self._settings,
            cache=self._cache,
            http=self._http,
            folders=[_folder(Path(path)) for path in docs],
        )

    def _index(self, root: Path) -> LibraryIndex:
        """One index file a folder, so that folders never mix and one can be thrown away."""
        if root not in self._indexes:
            name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
            self._indexes[root] = LibraryIndex(self._folder / "libraries" / f"{name}.sqlite3")
        return self._indexes[root]

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()


def _folder(path: Path) -> Folder:
    root = path.resolve()  # one folder, one index, however it was spelt
    found = walk(root)
    return Folder(root, found.files, found.skipped)


class ReasonerChooser:
    """A deps.Thinking: language models where there are some, on the embedded reasoner as their floor."""

    def __init__(self, settings: Settings, ledger: Ledger, embedded: EmbeddedReasoner) -> None:
        self._settings = settings
        self._ledger = ledger
        self._embedded = embedded
        self._router = Router(settings, ledger)

    def notices(self, options: Options) -> dict[str, str]:
        chosen = lineup(self._settings, options)
        if chosen is not None:
            self._affordable(chosen, options)
        notices = {"model": PRIVATE} if withheld(self._settings, options) else {}
        if options.docs and chosen and (hosted := chosen.hosted(self._settings)):
            notices["model"] = f"You named {', '.join(map(str, hosted))}: it is sent passages of your documents."
        if traced():
            notices["tracing"] = TRACED if self.may_trace(options) else NOT_TRACED
        return notices

    def settled(self, options: Options) -> Options:
        """A run that was told its documents stay here keeps to it, whatever the settings say when it is resumed."""
        stays = is_private(options) and lineup(self._settings, options) is None
        return options.model_copy(update={"model": EMBEDDED}) if stays else options

    def may_trace(self, options: Options) -> bool:
        """A run on documents is traced only where a hosted model sees them anyway."""
        chosen = lineup(self._settings, options)
        return not is_private(options) or bool(chosen and chosen.hosted(self._settings))

    def quote(self, options: Options) -> Quote:
        return quote(lineup(self._settings, options), options.depth, self._settings, self._usd(options))

    def open(self, run: Run, emit: Emit) -> tuple[Reasoner, Account]:
        options = Options.model_validate(run.options)
        chosen = lineup(self._settings, options)
        caps = self._caps(options)
        if chosen is None:
            return self._embedded, RunAccount(run.id, self._ledger, caps, emit)
        models = self._router.models(run.id, chosen, caps, emit)
        return LanguageReasoner(models, self._embedded, emit, today=run.started.date()), models.account

    async def close(self) -> None:
        await self._router.close()

    def _affordable(self, chosen: Lineup, options: Options) -> None:
        """Every model has a price, and the caps allow for at least one call, or nothing is begun."""
        costs = [price(model, self._settings).micros(*SMALLEST) for model in chosen.models]
        budget = self._settings.budget
        if budget.tokens < sum(SMALLEST) or not budget.requests:
            raise BudgetError(
                "the caps on tokens and requests do not allow for a single call",
                help="Raise budget.tokens or budget.requests, or use --model embedded, which needs none.",
            )
        if min(costs) > self._usd(options) * MICRO * (1 - budget.verification_share):
            raise BudgetError(
                f"a cap of ${self._usd(options):g} does not pay for a single call of {chosen.first}",
                help="Raise it with --budget or budget.usd, or use --model embedded, which costs nothing.",
            )

    def _caps(self, options: Options) -> Caps:
        budget = self._settings.budget
        return Caps(
            micros=round(self._usd(options) * MICRO), tokens=budget.tokens, requests=budget.requests,
            finish_share=budget.verification_share,
        )  # fmt: skip

    def _usd(self, options: Options) -> float:
        return self._settings.budget.usd if options.usd is None else options.usd


async def aresearch(
    question: str,
    *,
    docs: Sequence[str | Path] = (),
    depth: Literal["quick", "standard", "comprehensive"] | None = None,
    source: str | None = None,
    web: bool = False,
    thread: str | None = None,
    model: str | None = None,
    budget_usd: float | None = None,
    **settings: Any,
) -> Report:
    """Research a question and return the report. Never asks back: defaults are taken and noted in the report."""
    chosen = load(depth=depth, source=source, **settings)
    options = _unattended(chosen, docs, model, budget_usd).model_copy(update={"web": web})
    async with open_engine(chosen) as engine:
        run = await engine.start(question, options, thread=thread)
        outcome = await engine.wait(run.id)
    if outcome.report is None:
        reason = outcome.run.error or f"the run ended as {RunStatus(outcome.run.status)}"
        raise AssayError(reason, help=f"Go on with: assay resume {run.thread}")
    return outcome.report


def _unattended(settings: Settings, docs: Sequence[str | Path], model: str | None, usd: float | None) -> Options:
    try:
        return Options(
            depth=settings.depth, mode=Mode.AUTO, user=settings.user,
            docs=tuple(str(Path(path).absolute()) for path in docs), source=settings.source, model=model, usd=usd,
        )  # fmt: skip
    except ValidationError as error:
        raise UsageError("budget_usd or model is not valid", help="A budget is 0 to 10,000, a model a name.") from error


def research(question: str, **options: Any) -> Report:
    """`aresearch` for code that does not await; in a notebook, whose event loop is taken, it runs in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aresearch(question, **options))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(aresearch(question, **options))).result()
