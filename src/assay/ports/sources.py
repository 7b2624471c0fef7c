"""Where hits and pages come from, and who pays for them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from assay.model.company import Company, Mention
from assay.model.inquiry import Inquiry, Terms
from assay.model.plan import QueryType
from assay.model.source import Document, Hit, Kind
from assay.model.spend import Fee
from assay.model.thread import Options


@runtime_checkable
class Source(Protocol):
    """Raises SourceError when it cannot be searched; an empty list means that nothing was found."""

    @property
    def name(self) -> str: ...

    def is_available(self) -> bool: ...

    async def search(self, query: str, *, limit: int) -> list[Hit]: ...


class Purse(Protocol):
    """Who pays for a request. What was bought before, also by a process that died, is given again and not paid twice.

    Raises BudgetError when a cap stands in the way; what `request` raises as SourceError or FetchError is not paid."""

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str: ...


class Answer(NamedTuple):
    hits: list[Hit]
    cached: bool = False
    seconds: float | None = None  # the provider took, waiting for a turn aside; 0: it was not asked; None: not known


@runtime_checkable
class Remote(Protocol):
    """A source over the network, with its terms. `ask` is `search` with filters, and with somebody who pays."""

    @property
    def name(self) -> str: ...

    @property
    def types(self) -> tuple[QueryType, ...]: ...

    @property
    def terms(self) -> Terms: ...

    def is_available(self) -> bool: ...

    def reachable(self) -> bool:
        """Whether its address answers at all; asks it nothing and costs nothing. Blocks for a second or two, and for
        as long as the system looks up a name: call it in a thread that nobody must wait for."""
        ...

    async def ask(self, inquiry: Inquiry, purse: Purse) -> Answer: ...


class Page(NamedTuple):
    """What became of an address: a document, or why it was not read."""

    address: str
    document: Document | None = None
    reason: str = ""
    cached: bool = False
    again: bool = False  # another time may help
    seconds: float = 0.0  # the site took, waiting for a turn aside; 0: it was not asked, or gave nothing


class Pages(Protocol):
    """Reads pages of the open web. A page's fault is its `reason`, never an exception; two who want the same page at
    the same time share one reading."""

    async def read(self, address: str, *, kind: Kind = "web") -> Page: ...


class Indexed(NamedTuple):
    """What bringing an index up to date has done."""

    files: int
    new: int
    removed: int
    skipped: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()  # what the person must know of it


@runtime_checkable
class Prepared(Protocol):
    """A source with something to do before its first search."""

    async def prepare(self) -> Indexed: ...


@runtime_checkable
class Assessed(Protocol):
    """A source that can tell how complete its data on a subject are, 0 to 1; None for one it does not know."""

    def confidence(self, subject: str) -> float | None: ...


Choice = tuple[list[Source], dict[str, str]]  # the sources of a run, and notices about them that the person must see
Choose = Callable[[Options], Choice]


class Companies(Protocol):
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
