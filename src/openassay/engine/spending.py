"""What a person's runs may still cost this month, whichever process works on them."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from openassay.bootstrap import ServerResources
from openassay.errors import ConfigurationError
from openassay.llm.prices import find_price
from openassay.llm.selection import is_private, select_models
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions, Run
from openassay.protocols import RemoteSource
from openassay.storage.ledger import OpenRun, SqlSpending


class MonthlyBudget(NamedTuple):
    """Of a person, in a calendar month (UTC), in micro-dollars. `cap` is None where there is none."""

    cap: int | None
    spent: int
    held: int  # what runs that have not ended may still spend

    @property
    def left(self) -> int | None:
        return None if self.cap is None else max(self.cap - self.spent - self.held, 0)


class SpendingLimits:
    """Caps what runs cost, under the settings and with the sources that are installed. Budgets are decided under
    `lock`."""

    def __init__(self, resources: ServerResources, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.spending = SqlSpending(resources.rows)
        self.lock = resources.shared.user_lock
        self._settings = resources.engine.settings
        self._users = resources.users
        self._threads = resources.engine.threads
        installed = resources.sources.list_sources()
        self._paid = {one.name for one in installed if isinstance(one, RemoteSource) and one.terms.usd}
        self._now = now

    async def limit_run(self, run: Run, options: ResearchOptions) -> float | None:
        """Return what a run that starts or is resumed may cost, whatever its plan says.

        It is stored before the next run is decided about, so that two runs do not both get what is left."""
        owner = await self.spending.thread_owner(run.thread)
        user = await self._users.find(owner)
        cap = self._settings.server.usd_per_month if user is None or user.usd is None else user.usd
        if cap is None or not await asyncio.to_thread(self.can_cost, options):
            return None
        async with self.lock.acquire(owner):
            budget = await self.get_budget(owner, cap, run.id)
            most = (budget.left or 0) + await self.spending.run_total(run.id)
            if self.cost_cap(options) > most:
                allowed = options.model_copy(update={"usd": most / MICRO})
                await self._threads.set_options(run.id, allowed)
        return most / MICRO

    async def get_budget(self, user: str, cap: float | None, without: str | None = None) -> MonthlyBudget:
        """Return a person's budget, as if the run `without` did not exist."""
        month = self._now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        spent = await self.spending.owner_total(user, month)
        if cap is None:
            return MonthlyBudget(None, spent, 0)
        runs = [one for one in await self.spending.open_runs(user) if one.run != without]
        held = await asyncio.to_thread(lambda: sum(map(self._remaining_cost, runs)))
        return MonthlyBudget(round(cap * MICRO), spent, held)

    def max_cost(self, options: ResearchOptions) -> int:
        """Return what a run may cost at the most, in micro-dollars."""
        return self.cost_cap(options) if self.can_cost(options) else 0

    def cost_cap(self, options: ResearchOptions) -> int:
        return round(options.max_usd(self._settings.budget.usd) * MICRO)

    def can_cost(self, options: ResearchOptions) -> bool:
        """Return whether anything a run with these options uses has a price."""
        if self.has_model_cost(options):
            return True
        sources = options.sources or [name.strip() for name in options.source.split(",")]
        if "auto" not in sources:
            return not self._paid.isdisjoint(sources)
        return bool(self._paid) and not is_private(options)

    def has_model_cost(self, options: ResearchOptions) -> bool:
        chosen = select_models(self._settings, options)
        prices = [find_price(model, self._settings) for model in chosen.models] if chosen else []
        return any(price(MICRO, MICRO) for price in prices)

    def _remaining_cost(self, one: OpenRun) -> int:
        try:
            most = self.max_cost(one.options)
        except ConfigurationError:  # its model is not offered any more
            most = self.cost_cap(one.options)
        return max(most - one.used, 0)
