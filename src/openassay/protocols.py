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
from openassay.models.user import MemoryFact, Preferences

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
    """What people want remembered across threads. Nobody sees what is another's; a user without a valid name is refused
    with UsageError, an id that is not the user's with NotFoundError."""

    async def preferences(self, user: str) -> Preferences: ...

    async def set_preferences(self, user: str, preferences: Preferences) -> None:
        """In place of those before."""
        ...

    async def facts(self, user: str) -> list[MemoryFact]:
        """Oldest first."""
        ...

    async def find_relevant(self, user: str, question: str, *, limit: int) -> list[MemoryFact]:
        """Those that have to do with a question, best first."""
        ...

    async def remember(self, user: str, text: str) -> MemoryFact:
        """Saying the same again gives the fact there is."""
        ...

    async def edit(self, user: str, id: str, text: str) -> MemoryFact: ...

    async def forget(self, user: str, id: str) -> None: ...

    async def forget_all(self, user: str) -> None: ...


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
        """Whether it is ours to bring up to date, until we leave. Who has waited so long in vain may read it all the
        same. What a process held that died is free."""
        ...

    def optimize(self) -> None:
        """After many changes: put in order what was left for later, so that questions are answered quickly."""
        ...

    def vector_problem(self) -> str:
        """Why it cannot keep vectors; nothing where it can."""
        ...

    def list_pending(self, model: str, *, after: int, limit: int) -> list[PendingPassage]:
        """Passages of higher numbers that have no vector of this model, in order. Those of another are forgotten."""
        ...

    def add_vectors(self, model: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        """Of unit length, by the number of the passage. One that is gone by now is left out."""
        ...

    def find_nearest(self, model: str, vector: "NDArray[np.float32]", *, limit: int) -> list[PassageMatch]:
        """The nearest by meaning, best first; none where there are no vectors of this model."""
        ...


class PassageRanker(Protocol):
    """The passages of some documents that answer each of several questions best, best first."""

    async def rank(
        self, documents: Sequence[Document], questions: Sequence[str], *, limit: int
    ) -> list[list[Passage]]: ...


# What processes, on one machine or several, have in common.


class Cache(Protocol):
    """Forgetful storage: a value may be gone at any time, and is gone after `seconds`.

    It never fails: trouble below it is reported once where it was opened, and is a miss to those who ask."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, *, seconds: float) -> None: ...

    async def count(self, key: str, *, seconds: float) -> int:
        """Adds one to a counter that begins at 0 and is forgotten `seconds` after it began; returns its new value."""
        ...


class Signals(Protocol):
    """News between processes: that something happened to a topic (`run:ID`, without spaces), never what. Used from one
    event loop. One may be lost: whoever listens also looks by itself, only more rarely."""

    @property
    def is_live(self) -> bool:
        """Whether what other processes ring is heard at present, as far as is known."""
        ...

    def notify(self, topic: str) -> None:
        """Never waits and never fails; rung often, it is told a few times a second."""
        ...

    def listen(self, topic: str) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever somebody rings; who has looked clears it before looking again."""
        ...


class TokenBucket(NamedTuple):
    """So many tokens at the most, which come back evenly; full at first. A size below 1 would let nobody through."""

    size: float
    per_second: float


class RateDecision(NamedTuple):
    """What became of asking for a token."""

    left: float
    wait: float = 0.0  # seconds until there is one; 0: it was taken


class RateLimiter(Protocol):
    """How often something may be done, by name. It never fails: who cannot ask the others counts for itself."""

    async def try_acquire(self, name: str, bucket: TokenBucket) -> RateDecision: ...

    async def acquire(self, name: str, bucket: TokenBucket) -> None:
        """Waits until a token was taken; how long is up to whoever waits."""
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
    """Who pays for a request. What was bought before, also by a process that died, is given again and not paid twice.

    Raises BudgetError when a cap stands in the way; what `request` raises as SourceError or FetchError is not paid."""

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str: ...


class SearchAnswer(NamedTuple):
    hits: list[Hit]
    cached: bool = False
    seconds: float | None = None  # the provider took, waiting for a turn aside; 0: it was not asked; None: not known


@runtime_checkable
class RemoteSource(Protocol):
    """A source over the network, with its terms. `ask` is `search` with filters, and with somebody who pays."""

    @property
    def name(self) -> str: ...

    @property
    def types(self) -> tuple[QueryType, ...]: ...

    @property
    def terms(self) -> ProviderTerms: ...

    def is_available(self) -> bool: ...

    def is_reachable(self) -> bool:
        """Whether its address answers at all; asks it nothing and costs nothing. Blocks for a second or two, and for
        as long as the system looks up a name: call it in a thread that nobody must wait for."""
        ...

    async def ask(self, inquiry: SearchRequest, purse: Budget) -> SearchAnswer: ...


class PageResult(NamedTuple):
    """What became of an address: a document, or why it was not read."""

    address: str
    document: Document | None = None
    reason: str = ""
    cached: bool = False
    again: bool = False  # another time may help
    seconds: float = 0.0  # the site took, waiting for a turn aside; 0: it was not asked, or gave nothing


class PageReader(Protocol):
    """Reads pages of the open web. A page's fault is its `reason`, never an exception; two who want the same page at
    the same time share one reading."""

    async def read(self, address: str, *, kind: DocumentKind = "web") -> PageResult: ...


class IndexUpdate(NamedTuple):
    """What bringing an index up to date has done."""

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


SourceSelection = tuple[
    list[Source], dict[str, str]
]  # the sources of a run, and notices about them that the person must see
ChooseSources = Callable[[ResearchOptions], SourceSelection]


class CompanyResolver(Protocol):
    """Which company is meant."""

    def resolve(self, name: str) -> Company | None:
        """By name, ticker, likely misspelling or description ("the electric car company"). None where there is none, or
        where several are as likely."""
        ...

    def candidates(self, name: str) -> list[Company]:
        """Those a short or vague name may stand for, the best known first; few."""
        ...

    def mentions(self, text: str) -> list[Mention]:
        """Every company a text speaks of, in order, without overlaps. Ordinary words are none, even where a company is
        called so, unless they are written as a name."""
        ...


# Models of every size, and what they cost.


class Embedder(Protocol):
    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]": ...


class Entailment(Protocol):
    """Reads a statement together with its evidence."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float32]":
        """A row for each (statement, evidence), in order: how supported, refuted and neither it is, as logits."""
        ...


class SupportScorer(Protocol):
    """How far a quote supports a statement, 0 to 1. Never the only judge."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One for each (statement, quote), in order; many at once cost less than one by one."""
        ...


Emit = Callable[[EventKind, str, dict[str, object]], Awaitable[None]]  # what happened, at which stage, with its data


OnText = Callable[[str], Awaitable[None]]


Stream = Callable[[], OnText]  # a listener for each attempt: what a broken one has said is void


class LanguageModel(Protocol):
    """The models of one run. `ask` raises ModelError or BudgetError; every attempt it makes is in the ledger."""

    def max_prompt_tokens(self, role: ModelRole) -> int:
        """Tokens a prompt for this role may have, its sources included."""
        ...

    def max_words(self, role: ModelRole) -> int:
        """Words an answer for this role may have."""
        ...

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

    async def forget(self, run: str) -> None:
        """What was said goes, the money stays in the books."""
        ...

    async def export(self, run: str) -> list[dict[str, object]]:
        """The account and then its calls, oldest first; nothing if there is no account."""
        ...

    async def restore(self, rows: Sequence[Mapping[str, object]]) -> None:
        """What was exported, put back where it is missing. What is there is left alone."""
        ...


class SpendAccount(Budget, Protocol):
    """What a run has spent, and whether its research money is gone."""

    async def get_spend(self) -> Spend: ...

    async def is_exhausted(self) -> bool: ...


# Who works on which run.


class Lease(NamedTuple):
    """A thread that was taken. `token` is another each time; 0 where a holder cannot lose its thread while it lives.
    `falls` says how many in a row died, or were lost, while they held it."""

    thread: str
    token: int = 0
    falls: int = 0


class RunLocks(Protocol):
    """One worker at a time on a thread; what a dead one held is free, at once or in a moment."""

    def acquire(self, thread: str, *, forgive: bool = True) -> Lease:
        """Raises ThreadBusyError. `forgive`: falls are counted from here on, since a person wants it tried."""
        ...

    def release(self, thread: str) -> None:
        """In good order: its falls are forgotten. What is not held here, or no longer, is left as it is."""
        ...

    def holds(self, thread: str) -> bool:
        """Whether it still does: another worker may have it by now."""
        ...

    def is_free(self, thread: str) -> bool:
        """Whether it could be taken; looking is in nobody's way."""
        ...

    def crash_count(self, thread: str) -> int:
        """How many in a row have died while they held it; whoever holds it now counts as if it did."""
        ...

    def reset_crash_count(self, thread: str) -> None:
        """Whoever holds it here has got further than those before: falls are counted from here on."""
        ...


class RunDispatcher(Protocol):
    """Runs that are in line, and whoever takes them up: people take turns, and what a process that died has left is
    gone on with."""

    def announce(self, run: str) -> None:
        """It was put in line just now."""
        ...

    def position(self, run: str) -> int | None:
        """Its place in line, from 1, as it was a moment ago; None where it is not in line."""
        ...

    @property
    def queue_length(self) -> int: ...

    @property
    def running_count(self) -> int: ...

    def is_alive(self) -> bool:
        """Whether anybody takes up runs."""
        ...

    async def run(self) -> None:
        """Until it is cancelled."""
        ...


# People who may use a server, and their tokens.
