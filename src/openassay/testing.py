"""In-memory fakes for tests of plug-ins: a source, a search provider, pages, documents, a cache and a reasoner."""

import hashlib
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from time import monotonic
from urllib.parse import urlsplit

from openassay.errors import SourceError
from openassay.models.evidence import Document, DocumentKind, Hit, Passage, ProviderTerms, SearchRequest
from openassay.models.plan import QueryType
from openassay.models.spend import CostEstimate, Fee, Spend
from openassay.models.thread import (
    ResearchOptions,
    Run,
)
from openassay.protocols import Budget, DocumentStore, Emit, PageResult, SearchAnswer, SpendAccount
from openassay.reasoning.base import Reasoner
from openassay.storage.documents import check_hash, get_only, validate_prefix
from openassay.text.sentences import split_passages


class FakePages:
    """A PageReader: an address gives the document, or the reason, that was put there. `asked` lists all addresses."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._pages: dict[str, Document | str] = {}

    def put(self, address: str, page: Document | str) -> None:
        self._pages[address] = page

    async def read(self, address: str, *, kind: DocumentKind = "web") -> PageResult:
        self.asked.append(address)
        found = self._pages.get(address, "answered 404")
        if isinstance(found, str):
            return PageResult(address, reason=found)
        return PageResult(address, found.model_copy(update={"kind": kind}))


class FakeRemote:
    """A RemoteSource that gives the same hits to every query; `asked` is what it was asked."""

    def __init__(
        self,
        name: str,
        hits: Sequence[Hit] = (),
        *,
        types: tuple[QueryType, ...] = ("web",),
        fails: SourceError | None = None,
        cached: bool = False,
        micros: int = 0,
        reachable: bool = True,
        stands_in: bool = False,
        one_site: bool = False,
    ) -> None:
        self.name = name
        self.types = types
        self.terms = ProviderTerms(per_minute=600, usd=micros / 1e6)
        self.stands_in = stands_in
        self.one_site = one_site
        self.asked: list[SearchRequest] = []
        self._hits = hits
        self._fails = fails
        self._cached = cached
        self._micros = micros
        self._reachable = reachable

    def is_available(self) -> bool:
        return True

    def is_reachable(self) -> bool:
        return self._reachable

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        return self._build_hits(SearchRequest(query=query, limit=limit))

    async def ask(self, search: SearchRequest, budget: Budget) -> SearchAnswer:
        async def request() -> str:
            self.asked.append(search)
            if self._fails is not None:
                raise self._fails
            return ""

        if not self._cached:
            await budget.buy(Fee(step="search", provider=self.name, request=search.query, micros=self._micros), request)
        return SearchAnswer(self._build_hits(search), cached=self._cached)

    def _build_hits(self, search: SearchRequest) -> list[Hit]:
        hits = self._hits[: search.limit]
        given = {"provider": self.name, "query": search.query}
        return [hit.model_copy(update={**given, "rank": rank}) for rank, hit in enumerate(hits, 1)]


def make_document(
    text: str, *, title: str = "", url: str = "", kind: DocumentKind = "web", published: date | None = None
) -> Document:
    """Make a document as a source would keep it: named by its text's hash, its host that of its address."""
    name = hashlib.sha256(text.encode()).hexdigest()
    address = url or f"https://{name[:8]}.example/page"
    return Document(
        hash=name, text=text, url=address, title=title or f"Page {name[:4]}", host=urlsplit(address).hostname or "",
        published=published, fetched=datetime(2025, 1, 1, tzinfo=UTC), kind=kind,
    )  # fmt: skip


class FakeSource:
    """A Source over documents given to it: passages that share a word with the query, most shared first.

    `queries` is what it was asked. `before` runs ahead of every search, and may wait, or raise SourceError.
    """

    def __init__(
        self,
        store: DocumentStore,
        documents: Sequence[Document],
        *,
        name: str = "fake",
        before: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.queries: list[str] = []
        self._store = store
        self._documents = documents
        self._before = before

    def is_available(self) -> bool:
        return True

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        self.queries.append(query)
        if self._before is not None:
            await self._before(query)
        wanted = distinct_words(query)
        found = [
            (len(wanted & distinct_words(f"{document.title} {passage.text}")), document, passage)
            for document in self._documents
            for passage in split_passages(document.hash, document.text)
        ]
        ranked = sorted((item for item in found if item[0]), key=lambda item: (-item[0], item[1].url, item[2].start))
        for _, document, _ in ranked[:limit]:
            await self._store.put(document)
        return [self._build_hit(query, rank, *item) for rank, item in enumerate(ranked[:limit], 1)]

    def _build_hit(self, query: str, rank: int, shared: int, document: Document, passage: Passage) -> Hit:
        return Hit(
            provider=self.name, query=query, rank=rank, url=document.url, title=document.title, host=document.host,
            snippet=passage.text[:200], kind=document.kind, published=document.published, score=float(shared),
            document=document.hash, start=passage.start, end=passage.end,
        )  # fmt: skip


class MemoryDocuments:
    """A DocumentStore."""

    def __init__(self) -> None:
        self.stored: dict[str, Document] = {}

    async def put(self, document: Document) -> None:
        check_hash(document)
        self.stored.setdefault(document.hash, document)

    async def get(self, hash: str) -> Document:
        prefix = validate_prefix(hash)
        document = get_only([kept for key, kept in self.stored.items() if key.startswith(prefix)], hash)
        check_hash(document)
        return document

    async def list_hashes(self, thread: str) -> list[str]:
        """Nobody tells this store who uses what: everything there is."""
        return sorted(self.stored)


class MemoryCache:
    """A Cache that forgets nothing before its time."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._values: dict[str, tuple[bytes, float]] = {}
        self._counters: dict[str, tuple[int, float]] = {}

    async def get(self, key: str) -> bytes | None:
        value, ends = self._values.get(key, (b"", 0.0))
        return value if self._clock() < ends else None

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        self._values[key] = value, self._clock() + seconds

    async def count(self, key: str, *, seconds: float) -> int:
        value, ends = self._counters.get(key, (0, 0.0))
        if self._clock() >= ends:
            value, ends = 0, self._clock() + seconds
        self._counters[key] = value + 1, ends
        return value + 1


class FreeAccount:
    """A SpendAccount of a run that costs nothing; a test may change what it says."""

    def __init__(self, spend: Spend | None = None, *, gone: bool = False) -> None:
        self.spend = spend or Spend()
        self.gone = gone
        self.fees: list[Fee] = []

    async def get_spend(self) -> Spend:
        return self.spend

    async def is_exhausted(self) -> bool:
        return self.gone

    def task_budget(self, task: str, share: float) -> Budget:
        return self

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        self.fees.append(fee)
        return await request()


class SingleReasonerFactory:
    """A ReasonerProvider with the same reasoner for every run."""

    def __init__(self, reasoner: Reasoner, account: SpendAccount | None = None, *, usd: float = 0.0) -> None:
        self._reasoner = reasoner
        self._account = account or FreeAccount()
        self.usd = usd

    def notices(self, options: ResearchOptions) -> dict[str, str]:
        return {}

    def estimate(self, options: ResearchOptions) -> CostEstimate:
        return CostEstimate(model=self._reasoner.name, usd=self.usd, most_usd=self.usd, calls=0, tokens=0, seconds=0)

    def pin_options(self, options: ResearchOptions) -> ResearchOptions:
        return options

    def may_trace(self, options: ResearchOptions) -> bool:
        return True

    def open(self, run: Run, emit: Emit) -> tuple[Reasoner, SpendAccount]:
        return self._reasoner, self._account


def distinct_words(text: str) -> set[str]:
    letters = (c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return set(re.findall(r"[^\W_]+", "".join(letters)))
