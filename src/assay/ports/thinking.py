"""Models of every size, and what they cost."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from assay.model.event import EventKind
from assay.model.exchange import Prompt, Reply, Role
from assay.model.spend import Call, Caps, Charge, Reservation, Spend
from assay.ports.sources import Purse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

    def room(self, role: Role) -> int:
        """Tokens a prompt for this role may have, its sources included."""
        ...

    def words(self, role: Role) -> int:
        """Words an answer for this role may have."""
        ...

    async def ask(self, prompt: Prompt, stream: Stream | None = None) -> Reply: ...


class Ledger(Protocol):
    """Every paid call of every run, written before it is made.

    A call is reserved (worst case, in one transaction with the caps), then sent, then answered (the raw answer is
    stored before anybody parses it) and settled; or released, when the provider does not bill it. `reserve` raises
    BudgetError. Reservations whose caller died are recovered: what was never sent is free again, what was sent is
    booked at its worst case, since the provider may have billed it.
    """

    async def open(self, run: str, caps: Caps) -> None: ...

    async def reserve(self, reservation: Reservation) -> None: ...

    async def sent(self, key: str) -> None: ...

    async def answered(self, key: str, answer: str) -> None: ...

    async def settle(self, key: str, charge: Charge) -> None: ...

    async def release(self, key: str, error: str) -> None: ...

    async def answer(self, key: str) -> str | None: ...

    async def recover(self, run: str, *, all: bool = False) -> int: ...

    async def spent(self, run: str) -> Spend: ...

    async def refused(self, run: str) -> bool: ...

    async def calls(self, run: str) -> list[Call]: ...

    async def forget(self, run: str) -> None:
        """What was said goes, the money stays in the books."""
        ...

    async def export(self, run: str) -> list[dict[str, object]]:
        """The account and then its calls, oldest first; nothing if there is no account."""
        ...

    async def restore(self, rows: Sequence[Mapping[str, object]]) -> None:
        """What was exported, put back where it is missing. What is there is left alone."""
        ...


class Account(Purse, Protocol):
    """What a run has spent, and whether its research money is gone."""

    async def spent(self) -> Spend: ...

    async def exhausted(self) -> bool: ...
