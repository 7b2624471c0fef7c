"""Thinking that is settled beforehand: one reasoner for every run, and an account that is what a test says."""

from collections.abc import Awaitable, Callable

from assay.model.spend import Fee, Quote, Spend
from assay.model.thread import Options, Run
from assay.ports import Account, Emit
from assay.reasoning.protocol import Reasoner


class NothingSpent:
    """A ports.Account of a run that costs nothing; a test may change what it says."""

    def __init__(self, spend: Spend | None = None, *, gone: bool = False) -> None:
        self.spend = spend or Spend()
        self.gone = gone
        self.fees: list[Fee] = []

    async def spent(self) -> Spend:
        return self.spend

    async def exhausted(self) -> bool:
        return self.gone

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        self.fees.append(fee)
        return await request()


class FixedThinking:
    """A deps.Thinking with the same reasoner for every run."""

    def __init__(self, reasoner: Reasoner, account: Account | None = None, *, usd: float = 0.0) -> None:
        self._reasoner = reasoner
        self._account = account or NothingSpent()
        self.usd = usd

    def notices(self, options: Options) -> dict[str, str]:
        return {}

    def quote(self, options: Options) -> Quote:
        return Quote(model=self._reasoner.name, usd=self.usd, most_usd=self.usd, calls=0, tokens=0, seconds=0)

    def settled(self, options: Options) -> Options:
        return options

    def may_trace(self, options: Options) -> bool:
        return True

    def open(self, run: Run, emit: Emit) -> tuple[Reasoner, Account]:
        return self._reasoner, self._account

    async def close(self) -> None:
        pass
