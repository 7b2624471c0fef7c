"""What a person's runs may still cost this month, whichever process works on them: read from the books."""

import asyncio
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import NamedTuple

from assay.bootstrap import Premises
from assay.errors import ConfigurationError
from assay.llm.lineup import is_private, lineup
from assay.llm.prices import price
from assay.model.spend import MICRO
from assay.model.thread import Options, Run
from assay.ports import Remote, ThreadStore
from assay.settings import Settings
from assay.storage.spending import Open, SqlSpending
from assay.storage.turnstile import Turnstile
from assay.storage.users import SqlUsers


class Money(NamedTuple):
    """Of a person, in a calendar month (UTC), in micro-dollars. `cap` is None where there is none."""

    cap: int | None
    spent: int
    held: int  # what runs that have not ended may still spend

    @property
    def left(self) -> int | None:
        return None if self.cap is None else max(self.cap - self.spent - self.held, 0)


class Means:
    """`paid` are the sources that want money for a search. What is promised to a person is decided in `deciding`."""

    def __init__(
        self, settings: Settings, spending: SqlSpending, users: SqlUsers, threads: ThreadStore, paid: Collection[str],
        deciding: Turnstile, now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:  # fmt: skip
        self.spending = spending
        self.deciding = deciding
        self._settings = settings
        self._users = users
        self._threads = threads
        self._paid = frozenset(paid)
        self._now = now

    async def ceiling(self, run: Run, options: Options) -> float | None:
        """What a run that begins or goes on may cost, whichever way it came and whatever a plan has made of it. It is
        written down before the next one is told, so that two that go on together do not both have what is left."""
        owner = await self.spending.owner(run.thread)
        user = await self._users.find(owner)
        cap = self._settings.server.usd_per_month if user is None or user.usd is None else user.usd
        if cap is None or not await asyncio.to_thread(self.could_cost, options):
            return None
        async with self.deciding.through(owner):
            money = await self.of(owner, cap, run.id)
            most = (money.left or 0) + await self.spending.used(run.id)
            if self.chosen(options) > most:
                allowed = options.model_copy(update={"usd": most / MICRO})
                await self._threads.set_options(run.id, allowed.plain())
        return most / MICRO

    async def of(self, user: str, cap: float | None, without: str | None = None) -> Money:
        """How a person stands, as if the run `without` were not there."""
        now = self._now().astimezone(UTC)
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        spent = await self.spending.spent(user, month)
        if cap is None:
            return Money(None, spent, 0)
        runs = [one for one in await self.spending.open(user) if one.run != without]
        return Money(round(cap * MICRO), spent, sum(await asyncio.to_thread(lambda: list(map(self._rest, runs)))))

    def most(self, options: Options) -> int:
        """What a run may cost at the most, in micro-dollars."""
        return self.chosen(options) if self.could_cost(options) else 0

    def chosen(self, options: Options) -> int:
        return round(options.cap(self._settings.budget.usd) * MICRO)

    def could_cost(self, options: Options) -> bool:
        """Whether anything a run with these options asks has a price."""
        return self.model_costs(options) or self._search_costs(options)

    def model_costs(self, options: Options) -> bool:
        chosen = lineup(self._settings, options)
        return chosen is not None and any(price(model, self._settings).micros(MICRO, MICRO) for model in chosen.models)

    def _search_costs(self, options: Options) -> bool:
        asked = options.sources or [name.strip() for name in options.source.split(",")]
        if "auto" not in asked:
            return not self._paid.isdisjoint(asked)
        return bool(self._paid) and not is_private(options)

    def _rest(self, one: Open) -> int:
        """What a run may still cost."""
        try:
            most = self.most(one.options)
        except ConfigurationError:  # its model is not offered any more
            most = self.chosen(one.options)
        return max(most - one.used, 0)


def means_of(premises: Premises, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Means:
    """As the settings, and the sources that are installed, have it."""
    installed = premises.world.sources.installed()
    paid = {one.name for one in installed if isinstance(one, Remote) and one.terms.usd}
    engine, world = premises.engine, premises.world
    return Means(
        engine.settings, SqlSpending(world.rows), premises.users, engine.threads, paid, world.commons.turnstile, now
    )
