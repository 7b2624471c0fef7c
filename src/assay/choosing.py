"""What a run works with, chosen by its options: the sources it asks, and the reasoner that thinks."""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from assay.embedding.vectors import CachedEmbedder
from assay.errors import BudgetError, PathError
from assay.harvest.files import FileReader
from assay.harvest.walk import walk
from assay.llm.account import RunAccount
from assay.llm.lineup import EMBEDDED, PRIVATE, Lineup, is_private, lineup, withheld
from assay.llm.prices import price
from assay.llm.quoting import quote
from assay.llm.router import Router
from assay.llm.tracing import is_on as traced
from assay.model.spend import MICRO, Caps, Quote
from assay.model.thread import Options, Run
from assay.model.upload import SCHEME
from assay.ports import Account, Cache, Choice, DocumentStore, Emit, Folder, Ledger, Rates, Source
from assay.reasoning.embedded import EmbeddedReasoner
from assay.reasoning.language import LanguageReasoner
from assay.reasoning.protocol import Reasoner
from assay.search.choice import choose
from assay.search.http import Http
from assay.search.mcp_link import Links
from assay.search.registry import Bench, available, build
from assay.settings import Settings
from assay.storage.files import Files, address, place
from assay.storage.libraries import Libraries

SMALLEST = (5_000, 4_000)  # tokens a planner's call may take at its worst: the least a run needs
TRACED = "LangSmith tracing is on: it is sent everything this run sees."
ELSEWHERE = "{} is not on this machine: what another one has indexed of it was searched, as it was then."
NOT_TRACED = "LangSmith tracing is off for this run, since your documents stay on this machine."


class SourceChooser:
    """The sources of a run, built from what there is."""

    def __init__(
        self, settings: Settings, documents: DocumentStore, embedder: CachedEmbedder, cache: Cache, http: Http,
        links: Links, files: Files, libraries: Libraries,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._documents = documents
        self._embedder = embedder
        self._cache = cache
        self._http = http
        self._links = links
        self._files = files
        self._libraries = libraries
        self.reader = file_reader(settings, files.folder)

    def __call__(self, options: Options) -> Choice:
        """The sources, and notices about the choice that the person must see."""
        bench = self._bench(options.docs)
        sources, notices = choose(options, bench)
        absent = [ELSEWHERE.format(folder.root) for folder in bench.folders if not folder.is_here]
        return sources, {**notices, **({"documents": " ".join(absent)} if absent else {})}

    def installed(self) -> list[Source]:
        """Every source there is, whether or not it can be asked."""
        bench = self._bench(())
        return [build(name, bench) for name in available(self._settings)]

    def forget(self, folders: set[str]) -> None:
        """Delete the indexes of folders that are not asked any more."""
        self._libraries.forget({place(folder, self._files.folder).resolve() for folder in folders})

    def close(self) -> None:
        self._libraries.close()

    def _bench(self, docs: Sequence[str]) -> Bench:
        return Bench(
            store=self._documents,
            embedder=self._embedder,
            reader=self.reader,
            open_index=self._libraries.open,
            settings=self._settings,
            cache=self._cache,
            http=self._http,
            links=self._links,
            folders=self._folders(docs),
        )

    def _folders(self, docs: Sequence[str]) -> list[Folder]:
        """The uploads of one person are one folder, however many a run is given."""
        found = [(path.startswith(SCHEME), self._folder(self._files.located(path))) for path in docs]
        given: dict[Path, list[Folder]] = {}
        for folder in (folder for is_given, folder in found if is_given):
            given.setdefault(folder.root.parent, []).append(folder)
        return [folder for is_given, folder in found if not is_given] + [_together(*one) for one in given.items()]

    def _folder(self, path: Path) -> Folder:
        """What another machine has indexed can be searched where the folder itself is not."""
        try:
            return folder_at(path)
        except PathError:
            if path.exists() or self._libraries.elsewhere(path.resolve()) is None:
                raise
            return Folder(path.resolve(), (), (), is_here=False)


def file_reader(settings: Settings, uploads: Path) -> FileReader:
    return FileReader(
        max_bytes=settings.reading.max_file_mb * 1_000_000,
        pdf_seconds=settings.reading.pdf_seconds,
        address=partial(address, folder=uploads),
    )


def folder_at(path: Path) -> Folder:
    root = path.resolve()  # one folder, one index, however it was spelt
    found = walk(root)
    return Folder(root, found.files, found.skipped)


def _together(owner: Path, folders: Sequence[Folder]) -> Folder:
    """Named for all of them, so that no two runs share an index of which one may see only a part."""
    names = sorted({folder.root.name for folder in folders})
    return Folder(
        root=owner / hashlib.sha256(" ".join(names).encode()).hexdigest()[:16],
        files=sorted({file for folder in folders for file in folder.files}),
        skipped=sorted({skip for folder in folders for skip in folder.skipped}),
    )


class ReasonerChooser:
    """A deps.Thinking: language models where there are some, on the embedded reasoner as their floor."""

    def __init__(
        self, settings: Settings, ledger: Ledger, embedded: EmbeddedReasoner, rates: Rates | None = None
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._embedded = embedded
        self._router = Router(settings, ledger, rates=rates)

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
            return self._embedded, RunAccount(run.id, self._ledger, caps, emit, lineage=options.lineage)
        models = self._router.models(run.id, chosen, caps, emit, lineage=options.lineage)
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
        return options.cap(self._settings.budget.usd)
