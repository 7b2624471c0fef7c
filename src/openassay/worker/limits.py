"""What a person's runs may still cost this month, whichever process works on them: read from the books."""

import asyncio
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import NamedTuple

from openassay.bootstrap import ServerResources
from openassay.errors import ConfigurationError
from openassay.llm.prices import find_price
from openassay.llm.selection import is_private, select_models
from openassay.models.spend import MICRO
from openassay.models.thread import ResearchOptions, Run
from openassay.protocols import RemoteSource, ThreadStore
from openassay.settings import Settings
from openassay.storage.ledger import OpenRun, SqlSpending
from openassay.storage.locks import UserLock
from openassay.storage.users import SqlUsers


class MonthlyBudget(NamedTuple):
    """Of a person, in a calendar month (UTC), in micro-dollars. `cap` is None where there is none."""

    cap: int | None
    spent: int
    held: int  # what runs that have not ended may still spend

    @property
    def left(self) -> int | None:
        return None if self.cap is None else max(self.cap - self.spent - self.held, 0)


class SpendingLimits:
    """`paid` are the sources that want money for a search. What is promised to a person is decided in `deciding`."""

    def __init__(
        self, settings: Settings, spending: SqlSpending, users: SqlUsers, threads: ThreadStore, paid: Collection[str],
        deciding: UserLock, now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:  # fmt: skip
        self.spending = spending
        self.deciding = deciding
        self._settings = settings
        self._users = users
        self._threads = threads
        self._paid = frozenset(paid)
        self._now = now

    async def limit_run(self, run: Run, options: ResearchOptions) -> float | None:
        """What a run that begins or goes on may cost, whichever way it came and whatever a plan has made of it. It is
        written down before the next one is told, so that two that go on together do not both have what is left."""
        owner = await self.spending.thread_owner(run.thread)
        user = await self._users.find(owner)
        cap = self._settings.server.usd_per_month if user is None or user.usd is None else user.usd
        if cap is None or not await asyncio.to_thread(self.can_cost, options):
            return None
        async with self.deciding.acquire(owner):
            money = await self.get_budget(owner, cap, run.id)
            most = (money.left or 0) + await self.spending.run_total(run.id)
            if self.cost_cap(options) > most:
                allowed = options.model_copy(update={"usd": most / MICRO})
                await self._threads.set_options(run.id, allowed.plain())
        return most / MICRO

    async def get_budget(self, user: str, cap: float | None, without: str | None = None) -> MonthlyBudget:
        """How a person stands, as if the run `without` were not there."""
        now = self._now().astimezone(UTC)
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        spent = await self.spending.owner_total(user, month)
        if cap is None:
            return MonthlyBudget(None, spent, 0)
        runs = [one for one in await self.spending.open_runs(user) if one.run != without]
        return MonthlyBudget(
            round(cap * MICRO), spent, sum(await asyncio.to_thread(lambda: list(map(self._remaining_cost, runs))))
        )

    def max_cost(self, options: ResearchOptions) -> int:
        """What a run may cost at the most, in micro-dollars."""
        return self.cost_cap(options) if self.can_cost(options) else 0

    def cost_cap(self, options: ResearchOptions) -> int:
        return round(options.max_usd(self._settings.budget.usd) * MICRO)

    def can_cost(self, options: ResearchOptions) -> bool:
        """Whether anything a run with these options asks has a price."""
        return self.has_model_cost(options) or self._has_search_cost(options)

    def has_model_cost(self, options: ResearchOptions) -> bool:
        chosen = select_models(self._settings, options)
        return chosen is not None and any(
            find_price(model, self._settings).micros(MICRO, MICRO) for model in chosen.models
        )

    def _has_search_cost(self, options: ResearchOptions) -> bool:
        asked = options.sources or [name.strip() for name in options.source.split(",")]
        if "auto" not in asked:
            return not self._paid.isdisjoint(asked)
        return bool(self._paid) and not is_private(options)

    def _remaining_cost(self, one: OpenRun) -> int:
        """What a run may still cost."""
        try:
            most = self.max_cost(one.options)
        except ConfigurationError:  # its model is not offered any more
            most = self.cost_cap(one.options)
        return max(most - one.used, 0)


def build_spending_limits(
    resources: ServerResources, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> SpendingLimits:
    """As the settings, and the sources that are installed, have it."""
    installed = resources.sources.list_sources()
    paid = {one.name for one in installed if isinstance(one, RemoteSource) and one.terms.usd}
    engine = resources.engine
    return SpendingLimits(
        engine.settings,
        SqlSpending(resources.rows),
        resources.users,
        engine.threads,
        paid,
        resources.shared.turnstile,
        now,
    )
