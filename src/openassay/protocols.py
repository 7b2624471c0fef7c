"""The interfaces between the pipeline and what it needs: storage, sources, pages, models, locks and shared services."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from openassay.models.event import EventKind
from openassay.models.evidence import (
    Company,
    Document,
    DocumentKind,
    Hit,
    Mention,
    Passage,
    ProviderTerms,
    SearchRequest,
)
from openassay.models.plan import QueryType
from openassay.models.spend import Caps, Charge, Fee, LedgerCall, ModelPrompt, ModelReply, ModelRole, Reservation, Spend
from openassay.models.thread import (
    ResearchOptions,
)
from openassay.models.user import MemoryFact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DocumentStore(Protocol):
    """Content-addressed snapshots. `get` raises NotFoundError, or EvidenceError if the text was altered."""

    async def put(self, document: Document) -> None: ...

    async def get(self, hash: str) -> Document: ...

    async def list_hashes(self, thread: str) -> list[str]:
        """The hashes of those a thread rests on, as far as they are there."""
        ...


class Memory(Protocol):
    """What a person wants remembered across threads, as far as the planner asks for it."""

    async def find_relevant(self, user: str, question: str, *, limit: int) -> list[MemoryFact]:
        """Return the facts that have to do with a question, best first."""
        ...


# People's own documents, and the search over them.


class DocumentReader(Protocol):
    """Turns one file into a document, or raises ReadError saying why not."""

    def can_read(self, path: Path) -> bool: ...

    def read(self, path: Path) -> Document: ...


class DocumentFolder(NamedTuple):
    """A root with the files found below it; skipped ones keep their reason."""

    root: Path
    files: Sequence[Path]
    skipped: Sequence[tuple[Path, str]]
    is_here: bool = True  # or it was indexed on another machine, and is searched as it was then


class FileStamp(NamedTuple):
    """How an index tells that a file has not changed since it was read."""

    size: int
    mtime_ns: int


class IndexEntry(NamedTuple):
    """A file as an index takes it; no document if it has no text."""

    path: str
    stamp: FileStamp
    document: Document | None
    passages: Sequence[Passage]


class PassageMatch(NamedTuple):
    passage: Passage
    title: str
    url: str
    score: float  # larger is better: BM25 or the like of a match, the cosine of a neighbour


class PendingPassage(NamedTuple):
    """A passage without a vector, by the number its index knows it under; `text` begins with the title."""

    id: int
    text: str


class IndexCounts(NamedTuple):
    files: int
    passages: int
    vectors: int


class PassageIndex(Protocol):
    """Full-text index of one folder, with a vector for each passage where somebody wanted them. Synchronous: callers
    run it in a thread."""

    def stamps(self) -> dict[str, FileStamp]: ...

    def replace_all(self, files: Sequence[IndexEntry]) -> None:
        """Forget what these paths held and index what they hold now, all or nothing."""
        ...

    def replace(self, path: str, stamp: FileStamp, document: Document | None, passages: Sequence[Passage]) -> None: ...

    def remove(self, paths: Sequence[str]) -> None: ...

    def match(self, words: Sequence[str], *, limit: int) -> list[PassageMatch]: ...

    def document(self, hash: str) -> Document: ...

    def count_contents(self) -> IndexCounts: ...

    def lock_updates(self, *, wait: float) -> AbstractContextManager[bool]:
        """Lock it against other updates; False after `wait` seconds, when it may still be read."""
        ...

    def optimize(self) -> None:
        """Merge what many changes have left for later."""
        ...

    def vector_problem(self) -> str:
        """Say why it cannot keep vectors; empty where it can."""
        ...

    def list_pending(self, model: str, *, after: int, limit: int) -> list[PendingPassage]:
        """List passages of higher numbers without a vector of this model; vectors of another are deleted."""
        ...

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        """Store vectors of unit length by the number of their passage, unless it is gone."""
        ...

    def find_nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[PassageMatch]:
        """Return the nearest by meaning, best first."""
        ...


# What processes, on one machine or several, have in common.


class Cache(Protocol):
    """Forgetful storage: a value may be gone at any time, and is gone after `seconds`.

    It never fails: trouble below it is reported once where it was opened, and is a miss to those who ask."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, *, seconds: float) -> None: ...

    async def count(self, key: str, *, seconds: float) -> int:
        """Add one to a counter that is forgotten `seconds` after it began; return its new value."""
        ...


class Signals(Protocol):
    """Tells other processes that something happened to a topic, such as `run:ID`. One may be lost, so that listeners
    also poll, only more rarely."""

    @property
    def is_live(self) -> bool:
        """Whether other processes are heard at present."""
        ...

    def notify(self, topic: str) -> None:
        """Never waits and never fails; many notices of one topic become a few a second."""
        ...

    def listen(self, topic: str) -> AbstractContextManager[asyncio.Event]:
        """Return an event that is set at each notice; the listener clears it before it looks."""
        ...


class TokenBucket(NamedTuple):
    """At most `size` tokens, full at first, refilled evenly."""

    size: float
    per_second: float


class RateDecision(NamedTuple):
    left: float
    wait: float = 0.0  # seconds until there is one; 0: it was taken


class RateLimiter(Protocol):
    """How often something may be done, by name. It never fails: what cannot be shared is counted in the process."""

    async def try_acquire(self, name: str, bucket: TokenBucket) -> RateDecision: ...

    async def acquire(self, name: str, bucket: TokenBucket) -> None:
        """Wait for a token."""
        ...


# Where hits and pages come from, and who pays for them.


@runtime_checkable
class Source(Protocol):
    """Raises SourceError when it cannot be searched; an empty list means that nothing was found."""

    @property
    def name(self) -> str: ...

    def is_available(self) -> bool: ...

    async def search(self, query: str, *, limit: int) -> list[Hit]: ...


class Budget(Protocol):
    """Pays for requests, each of them once, even over a crash. Raises BudgetError at a cap; a request that fails with
    SourceError or FetchError is not paid."""

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str: ...


class SearchAnswer(NamedTuple):
    hits: list[Hit]
    cached: bool = False
    seconds: float | None = None  # the provider took, waiting for a turn aside; 0: it was not asked; None: not known


@runtime_checkable
class RemoteSource(Protocol):
    """A source over the network, with its terms. `ask` is `search` with filters and a budget."""

    @property
    def name(self) -> str: ...

    @property
    def types(self) -> tuple[QueryType, ...]: ...

    @property
    def terms(self) -> ProviderTerms: ...

    def is_available(self) -> bool: ...

    def is_reachable(self) -> bool:
        """Whether its address answers at all, which costs nothing. Blocks for seconds: call it in a thread."""
        ...

    async def ask(self, search: SearchRequest, budget: Budget) -> SearchAnswer: ...


class PageResult(NamedTuple):
    """What became of an address: a document, or why it was not read."""

    address: str
    document: Document | None = None
    reason: str = ""
    cached: bool = False
    again: bool = False  # another time may help
    seconds: float = 0.0  # the site took, waiting for a turn aside; 0: it was not asked, or gave nothing


class PageReader(Protocol):
    """Reads pages of the open web; what is wrong with a page is its `reason`, never an exception."""

    async def read(self, address: str, *, kind: DocumentKind = "web") -> PageResult: ...


class IndexProgress(NamedTuple):
    """Progress in files, or in passages where vectors are made; `share` is of the work, as far as it is known."""

    done: int
    total: int
    passages: int
    share: float


class IndexUpdate(NamedTuple):
    files: int
    new: int
    removed: int
    skipped: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()  # what the person must know of it


@runtime_checkable
class PreparableSource(Protocol):
    """A source with something to do before its first search."""

    async def prepare(self) -> IndexUpdate: ...


@runtime_checkable
class ConfidenceSource(Protocol):
    """A source that can tell how complete its data on a subject are, 0 to 1; None for one it does not know."""

    def confidence(self, subject: str) -> float | None: ...


# The sources of a run, and notices about them that the person must see.
SourceSelection = tuple[list[Source], dict[str, str]]
ChooseSources = Callable[[ResearchOptions], SourceSelection]


class CompanyResolver(Protocol):
    """Which company is meant."""

    def resolve(self, name: str) -> Company | None:
        """Find one by name, ticker, misspelling or description ("the electric car company"); None if several fit."""
        ...

    def candidates(self, name: str) -> list[Company]:
        """List the few that a short or vague name may stand for, the best known first."""
        ...

    def mentions(self, text: str) -> list[Mention]:
        """List the companies a text names, in order; ordinary words count only where they are written as a name."""
        ...


# Models of every size, and what they cost.


class Embedder(Protocol):
    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]": ...


class Entailment(Protocol):
    def scores(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float32]":
        """Return a row for each (statement, evidence): logits of supported, refuted and neither; of two
        documents, the fourth is that of one voice."""
        ...

    def synthesis_scores(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float32]":
        """The same of sentences that draw claims together, which are harder to tell."""
        ...


class SupportScore(NamedTuple):
    """How likely evidence bears a statement out, and how likely it says otherwise, 0 to 1."""

    supported: float
    refuted: float


class SupportScorer(Protocol):
    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        """Return one for each (statement, evidence), in order."""
        ...

    def follows(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return how likely each sentence follows from claims, which stand in lines, taken together, 0 to 1."""
        ...

    def dependence(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return how likely each two documents that report the same are one voice, 0 to 1."""
        ...


Emit = Callable[[EventKind, str, dict[str, object]], Awaitable[None]]  # what happened, at which stage, with its data
OnText = Callable[[str], Awaitable[None]]
Stream = Callable[[], OnText]  # a listener for each attempt: what a broken one has said is void


class LanguageModel(Protocol):
    """The models of one run. `ask` raises ModelError or BudgetError; every attempt it makes is in the ledger."""

    def max_prompt_tokens(self, role: ModelRole) -> int: ...

    def max_words(self, role: ModelRole) -> int: ...

    async def ask(self, prompt: ModelPrompt, stream: Stream | None = None) -> ModelReply: ...


class Ledger(Protocol):
    """Every paid call of every run, written before it is made.

    A call is reserved (worst case, in one transaction with the caps), then sent, then answered (the raw answer is
    stored before anybody parses it) and settled; or released, when the provider does not bill it. `reserve` raises
    BudgetError. Reservations whose caller died are recovered: what was never sent is free again, what was sent is
    booked at its worst case, since the provider may have billed it.
    """

    async def open(self, run: str, caps: Caps) -> None: ...

    async def reserve(self, reservation: Reservation) -> None: ...

    async def record_send(self, key: str) -> None: ...

    async def store_answer(self, key: str, answer: str) -> None: ...

    async def settle(self, key: str, charge: Charge) -> None: ...

    async def release(self, key: str, error: str) -> None: ...

    async def get_answer(self, key: str) -> str | None: ...

    async def recover(self, run: str, *, all: bool = False) -> int: ...

    async def get_spend(self, run: str) -> Spend: ...

    async def has_refusals(self, run: str) -> bool: ...

    async def calls(self, run: str) -> list[LedgerCall]: ...


class SpendAccount(Budget, Protocol):
    async def get_spend(self) -> Spend: ...

    async def is_exhausted(self) -> bool: ...

    def task_budget(self, task: str, share: float) -> Budget:
        """Return what pays for a task, from no more than its share of the money."""
        ...


# Who works on which run.


class Lease(NamedTuple):
    """A thread that was taken. `token` is new each time, 0 where a living holder cannot lose its thread; `falls` counts
    the holders in a row that died or were lost."""

    thread: str
    token: int = 0
    falls: int = 0


class RunLocks(Protocol):
    """One worker at a time on a thread; what a dead one held is free after a moment."""

    def acquire(self, thread: str, *, forgive: bool = True) -> Lease:
        """Take a thread, or raise ThreadBusyError. `forgive`: count falls from here on."""
        ...

    def release(self, thread: str) -> None:
        """Give a thread back and forget its falls; nothing where it is not held here."""
        ...

    def holds(self, thread: str) -> bool: ...

    def is_free(self, thread: str) -> bool: ...

    def crash_count(self, thread: str) -> int:
        """Count the holders in a row that died, the present one included."""
        ...

    def reset_crash_count(self, thread: str) -> None: ...


class RunDispatcher(Protocol):
    """Takes up runs that are queued, people in turns, and those that a process that died has left."""

    def announce(self, run: str) -> None:
        """Say that a run was queued just now."""
        ...

    def position(self, run: str) -> int | None:
        """Return its place in the queue, from 1, or None."""
        ...

    @property
    def queue_length(self) -> int: ...

    @property
    def running_count(self) -> int: ...

    def is_alive(self) -> bool:
        """Whether anybody takes up runs."""
        ...

    async def run(self) -> None: ...
