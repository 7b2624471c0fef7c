"""How much of everything one person may have: requests, runs, and money.

Requests are counted over all processes that share rates. What a person has spent and has at work is read from the
books, and a run is in the books before the next one is decided about, in any process on the same PostgreSQL.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from openassay.errors import BudgetError
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions
from openassay.protocols import RateLimiter, TokenBucket
from openassay.server.problems import TooManyError
from openassay.settings import Settings
from openassay.storage.rates import ProcessRates
from openassay.worker.limits import MonthlyBudget, SpendingLimits

if TYPE_CHECKING:
    from openassay.server.auth import Principal

MINUTE = 60.0
FAILURES_PER_MINUTE = 60  # requests of one address that say nothing, or nothing true, of who they are


class Rate(NamedTuple):
    """What is left of a minute's requests; they come back evenly."""

    limit: int
    left: int
    full_in: float  # seconds

    @property
    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.left),
            "RateLimit-Reset": str(round(self.full_in)),
        }


class CallerLimits:
    """`rates` are those of all processes. Whoever has no name is counted by each for itself: a stranger should cause no
    work below."""

    def __init__(self, settings: Settings, means: SpendingLimits, rates: RateLimiter) -> None:
        self._server = settings.server
        self._means = means
        self._rates = rates
        self._strangers = ProcessRates()

    # -- requests -----------------------------------------------------------------------------------------

    async def count_request(self, caller: "Principal", address: str) -> Rate:
        """A person is counted by name; whoever has a link, by the address they come from."""
        own = caller.requests_per_minute or self._server.requests_per_minute
        if caller.user:
            return await _count(self._rates, f"user:{caller.user}", own)
        return await _count(self._strangers, f"from:{address}", own)

    async def count_failure(self, address: str) -> None:
        """Somebody nobody knows. Whoever is known is let in all the same: behind a proxy many come from one address,
        and a token has too much chance in it to be guessed."""
        await _count(self._strangers, f"failure:{address}", FAILURES_PER_MINUTE)

    # -- runs and money -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def admit(
        self, caller: "Principal", options: ResearchOptions, again: str | None = None
    ) -> AsyncIterator[ResearchOptions]:
        """While a run is put in line: what the person may have of it, their budget for one. BudgetError or TooManyError
        where that is nothing. `again` is a run that goes on: it is counted already, and so is what it has used."""
        async with self._means.deciding.acquire(caller.name):
            await self._refuse_too_many(caller, again)
            allowed, money = await self._cap_cost(caller, options, again)
            try:
                yield allowed
            except BudgetError as error:
                raise error if money is None or allowed == options else _budget_error(money) from error

    async def get_budget(self, caller: "Principal", without: str | None = None) -> MonthlyBudget:
        """How the person stands this month."""
        cap = self._server.usd_per_month if caller.usd is None else caller.usd
        return await self._means.get_budget(caller.user, cap, without)

    async def count_active(self, caller: "Principal", without: str | None = None) -> int:
        """Runs that wait for the person count: they are answered whatever else is at work."""
        return await self._means.spending.count_active(caller.user, without or "")

    async def _refuse_too_many(self, caller: "Principal", again: str | None) -> None:
        at_work, most = await self.count_active(caller, without=again), self._server.runs_per_user
        if at_work >= most:
            raise TooManyError(
                f"{at_work} of your runs are at work, in line or waiting for you already, and {most} may be",
                retry_after=30, help="Wait for one to end, answer one that asks, or cancel one.",
            )  # fmt: skip

    async def _cap_cost(
        self, caller: "Principal", options: ResearchOptions, again: str | None
    ) -> tuple[ResearchOptions, MonthlyBudget | None]:
        """The options with what the run may cost, and how the person stands; all that is new is in line."""
        if caller.usd is None and self._server.usd_per_month is None:
            return options, None
        money = await self.get_budget(caller, without=again)
        used = await self._means.spending.run_total(again) if again else 0
        wanted, most = await asyncio.to_thread(self._means.max_cost, options), (money.left or 0) + used
        if wanted > most == used and await asyncio.to_thread(self._means.has_model_cost, options):
            raise _budget_error(money)
        if wanted > most:
            return options.model_copy(update={"usd": most / MICRO}), money
        return options, money


async def _count(rates: RateLimiter, name: str, per_minute: int) -> Rate:
    """TooManyError where none is left."""
    bucket = TokenBucket(per_minute, per_minute / MINUTE)
    left, wait = await rates.try_acquire(name, bucket)
    if wait:
        error = TooManyError(
            f"more than {per_minute} requests a minute", retry_after=wait, help="Wait as long as Retry-After says."
        )
        error.headers.update(Rate(per_minute, 0, wait).headers)
        raise error
    return Rate(per_minute, int(left), (per_minute - left) / bucket.per_second)


def _budget_error(money: MonthlyBudget) -> BudgetError:
    cap, left, held = (money.cap or 0) / MICRO, (money.left or 0) / MICRO, money.held / MICRO
    holding = f" (${held:,.2f} are held for runs of yours that have not ended: cancel them to have that back)"
    return BudgetError(
        f"${left:,.2f} of your ${cap:,.2f} for this month are left, which does not pay for this"
        + (holding if money.held else ""),
        help="Ask whoever runs the server for more, wait for the next month, or choose a model that costs nothing.",
    )
