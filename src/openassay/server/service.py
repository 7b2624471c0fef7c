"""What every route works with, and how many requests and runs, and how much money, a caller may have.

Requests are counted over all processes that share rates. A run is in the database before the next one is decided about,
in any process on the same PostgreSQL.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from openassay.bootstrap import ServerResources
from openassay.engine.engine import Engine
from openassay.engine.spending import MonthlyBudget, SpendingLimits
from openassay.errors import BudgetError
from openassay.models.base import Record
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions
from openassay.models.user import Scope
from openassay.protocols import RateLimiter, RunDispatcher, TokenBucket
from openassay.server.dispatch import LocalDispatcher
from openassay.server.responses import TooManyError
from openassay.server.stream import EventFeeds
from openassay.settings import Settings
from openassay.text.redaction import Redactor, build_redactor
from openassay.worker.queue import QueueDispatcher, RunQueue

MINUTE = 60.0
FAILURES_PER_MINUTE = 60  # requests of one address without valid credentials


class Principal(Record):
    """A caller. One with a link has no name and no scopes, and may only read the thread `share`."""

    user: str = ""
    scopes: frozenset[Scope] = frozenset()
    token: str | None = None  # its id, or that of the link; None where no authentication is needed
    share: str | None = None
    requests_per_minute: int | None = None
    usd: float | None = None

    @property
    def name(self) -> str:
        """The name that limits are counted under: of a person, or of a link."""
        return self.user or f"link:{self.share}"


class CallerLimits:
    """`rates` are those of all processes, `local_rates` of this one. Callers without a name are counted by each process
    for itself: they should cause no work in the database."""

    def __init__(
        self, settings: Settings, spending: SpendingLimits, rates: RateLimiter, local_rates: RateLimiter
    ) -> None:
        self._server = settings.server
        self._spending = spending
        self._rates = rates
        self._local_rates = local_rates

    async def count_request(self, caller: Principal, address: str) -> dict[str, str]:
        """Count a request by the caller's name, or by address where they have a link, and return headers that say how
        many are left."""
        limit = caller.requests_per_minute or self._server.requests_per_minute
        if caller.user:
            return await _count(self._rates, f"user:{caller.user}", limit)
        return await _count(self._local_rates, f"from:{address}", limit)

    async def count_failure(self, address: str) -> None:
        """Count a request without valid credentials. Known callers from that address are still let in: behind a proxy
        many share one address, and a token is too random to be guessed."""
        await _count(self._local_rates, f"failure:{address}", FAILURES_PER_MINUTE)

    @asynccontextmanager
    async def admit(
        self, caller: Principal, options: ResearchOptions, resumed: str | None = None
    ) -> AsyncIterator[ResearchOptions]:
        """Hold the caller's lock while a run is queued, and give its options with the budget it may have.

        Raise BudgetError or TooManyError where it may have none. `resumed` is a run that is counted already."""
        async with self._spending.lock.acquire(caller.name):
            active, limit = await self.count_active(caller, without=resumed), self._server.runs_per_user
            if active >= limit:
                raise TooManyError(
                    f"{active} of your runs are active, queued or waiting for an answer, and the limit is {limit}",
                    retry_after=30,
                    help="Wait for one to end, answer one that asks, or cancel one.",
                )
            allowed, budget = options, None
            if caller.usd is not None or self._server.usd_per_month is not None:
                budget = await self.get_budget(caller, without=resumed)
                used = await self._spending.spending.run_total(resumed) if resumed else 0
                wanted, most = await asyncio.to_thread(self._spending.max_cost, options), (budget.left or 0) + used
                if wanted > most == used and await asyncio.to_thread(self._spending.has_model_cost, options):
                    raise _budget_error(budget)
                if wanted > most:
                    allowed = options.model_copy(update={"usd": most / MICRO})
            try:
                yield allowed
            except BudgetError as error:
                raise error if budget is None or allowed == options else _budget_error(budget) from error

    async def get_budget(self, caller: Principal, without: str | None = None) -> MonthlyBudget:
        cap = self._server.usd_per_month if caller.usd is None else caller.usd
        return await self._spending.get_budget(caller.user, cap, without)

    async def count_active(self, caller: Principal, without: str | None = None) -> int:
        """Count the runs that have not ended; also those that wait for the caller, since an answer resumes them."""
        return await self._spending.spending.count_active(caller.user, without or "")


async def _count(rates: RateLimiter, name: str, per_minute: int) -> dict[str, str]:
    """Count one request, or raise TooManyError where none is left; they come back evenly."""
    bucket = TokenBucket(per_minute, per_minute / MINUTE)
    left, wait = await rates.try_acquire(name, bucket)
    seconds = wait or (per_minute - left) / bucket.per_second
    headers = {
        "RateLimit-Limit": str(per_minute),
        "RateLimit-Remaining": str(0 if wait else int(left)),
        "RateLimit-Reset": str(round(seconds)),
    }
    if wait:
        message = f"more than {per_minute} requests a minute"
        raise TooManyError(message, retry_after=wait, help="Wait as long as Retry-After says.", headers=headers)
    return headers


def _budget_error(budget: MonthlyBudget) -> BudgetError:
    cap, left, held = (budget.cap or 0) / MICRO, (budget.left or 0) / MICRO, budget.held / MICRO
    held_note = f" (${held:,.2f} are held for runs of yours that have not ended: cancel them to free it)"
    return BudgetError(
        f"${left:,.2f} of your ${cap:,.2f} for this month are left, which does not pay for this"
        + (held_note if budget.held else ""),
        help="Ask whoever runs the server for more, wait for the next month, or choose a model that costs nothing.",
    )


@dataclass(slots=True, kw_only=True)
class Service:
    """`open_to_all`: no authentication is needed, since only this machine can reach the server."""

    resources: ServerResources
    open_to_all: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    dispatcher: RunDispatcher = field(init=False)
    feeds: EventFeeds = field(init=False)
    limits: CallerLimits = field(init=False)
    redaction: Redactor = field(init=False)

    def __post_init__(self) -> None:
        if self.has_workers:
            queue = RunQueue(self.resources.rows.database, self.settings.fleet.lease_seconds)
            self.dispatcher = QueueDispatcher(self.engine, queue)
        else:
            self.dispatcher = LocalDispatcher(self.engine)
        self.feeds = EventFeeds(self.engine, self.resources.shared.signals)
        spending = SpendingLimits(self.resources, lambda: self.now())
        shared = self.resources.shared
        self.limits = CallerLimits(self.settings, spending, shared.rates, shared.process_rates)
        self.engine.set_cost_limit(spending.limit_run)
        self.redaction = build_redactor(self.settings)

    @property
    def has_workers(self) -> bool:
        """Whether other processes execute the runs: this one only queues them."""
        return self.settings.server.runs == "workers"

    @property
    def engine(self) -> Engine:
        return self.resources.engine

    @property
    def settings(self) -> Settings:
        return self.engine.settings


def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(get_service)]
