"""How much of everything one person may have: requests, runs, and money.

A person is counted in one process; what they have spent and have at work is read from the books, so that it holds for
all processes, though two that admit a run in the same moment do not see each other.
"""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from assay.errors import BudgetError, ConfigurationError
from assay.llm.lineup import is_private, lineup
from assay.llm.prices import price
from assay.model.spend import MICRO
from assay.model.thread import Options, Run
from assay.ports import ThreadStore
from assay.server.problems import TooManyError
from assay.settings import Settings
from assay.storage.spending import Open, SqlSpending
from assay.storage.users import SqlUsers

if TYPE_CHECKING:
    from assay.server.access import Principal

MINUTE = 60.0
MOST_BUCKETS = 20_000  # people and addresses that are remembered; one that is forgotten has a full bucket again
FAILURES_PER_MINUTE = 60  # requests of one address that say nothing, or nothing true, of who they are


class Money(NamedTuple):
    """Of a person, in a calendar month (UTC), in micro-dollars. `cap` is None where there is none."""

    cap: int | None
    spent: int
    held: int  # what runs that have not ended may still spend

    @property
    def left(self) -> int | None:
        return None if self.cap is None else max(self.cap - self.spent - self.held, 0)


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


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


class Buckets:
    """As many tokens as may be used in a minute, filled evenly; each request takes one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str, per_minute: int) -> Rate:
        """TooManyError where none is left."""
        now = self._clock()
        bucket = self._buckets.setdefault(name, _Bucket(per_minute, now))
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        rate = per_minute / MINUTE
        bucket.level = min(bucket.level + (now - bucket.at) * rate, per_minute)
        bucket.at = now
        if bucket.level < 1:
            wait = (1 - bucket.level) / rate
            error = TooManyError(
                f"more than {per_minute} requests a minute", retry_after=wait, help="Wait as long as Retry-After says."
            )
            error.headers.update(Rate(per_minute, 0, wait).headers)
            raise error
        bucket.level -= 1
        return Rate(per_minute, int(bucket.level), (per_minute - bucket.level) / rate)


class Limits:
    """`paid` are the sources that want money for a search."""

    def __init__(
        self, settings: Settings, spending: SqlSpending, users: SqlUsers, threads: ThreadStore, paid: Collection[str],
        now: Callable[[], datetime],
    ) -> None:  # fmt: skip
        self._settings = settings
        self._server = settings.server
        self._spending = spending
        self._users = users
        self._threads = threads
        self._paid = frozenset(paid)
        self._now = now
        self._requests = Buckets()
        self._failures = Buckets()
        self._deciding: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._arriving: defaultdict[str, dict[object, int]] = defaultdict(dict)  # admitted, and not in the books yet

    # -- requests -----------------------------------------------------------------------------------------

    def request(self, caller: "Principal", address: str) -> Rate:
        """A person is counted by name; whoever has a link, by the address they come from."""
        own = caller.requests_per_minute or self._server.requests_per_minute
        return self._requests.take(f"user:{caller.user}" if caller.user else f"from:{address}", own)

    def failure(self, address: str) -> None:
        """Somebody nobody knows. Whoever is known is let in all the same: behind a proxy many come from one address,
        and a token has too much chance in it to be guessed."""
        self._failures.take(address, FAILURES_PER_MINUTE)

    # -- runs and money -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def admitted(self, caller: "Principal", options: Options, again: str | None = None) -> AsyncIterator[Options]:
        """While a run is put in line: what the person may have of it, their budget for one. BudgetError or TooManyError
        where that is nothing. `again` is a run that goes on: it is counted already, and so is what it has used."""
        ticket, arriving = object(), self._arriving[caller.name]
        async with self._deciding[caller.name]:
            await self._refuse_too_many(caller, again)
            allowed, arriving[ticket], money = await self._afforded(caller, options, again)
        try:
            yield allowed
        except BudgetError as error:
            raise error if money is None or allowed == options else _nothing_left(money) from error
        finally:
            del arriving[ticket]

    async def money(self, caller: "Principal", without: str | None = None) -> Money:
        """How the person stands this month."""
        cap = self._server.usd_per_month if caller.usd is None else caller.usd
        money = await self._of(caller.user, cap, without)
        return money._replace(held=money.held + sum(self._arriving[caller.name].values()))

    async def at_work(self, caller: "Principal", without: str | None = None) -> int:
        """Runs that wait for the person count: they are answered whatever else is at work."""
        return await self._spending.at_work(caller.user, without or "") + len(self._arriving[caller.name])

    async def ceiling(self, run: Run, options: Options) -> float | None:
        """What a run that begins or goes on may cost, whichever way it came and whatever a plan has made of it. It is
        written down before the next one is told, so that two that go on together do not both have what is left."""
        owner = await self._spending.owner(run.thread)
        user = await self._users.find(owner)
        cap = self._server.usd_per_month if user is None or user.usd is None else user.usd
        if cap is None or not await asyncio.to_thread(self._could_cost, options):
            return None
        async with self._deciding[owner]:
            money = await self._of(owner, cap, run.id)
            most = (money.left or 0) + await self._spending.used(run.id)
            if self._chosen(options) > most:
                allowed = options.model_copy(update={"usd": most / MICRO})
                await self._threads.set_options(run.id, allowed.plain())
        return most / MICRO

    async def _of(self, user: str, cap: float | None, without: str | None) -> Money:
        now = self._now().astimezone(UTC)
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        spent = await self._spending.spent(user, month)
        if cap is None:
            return Money(None, spent, 0)
        runs = [one for one in await self._spending.open(user) if one.run != without]
        return Money(round(cap * MICRO), spent, sum(await asyncio.to_thread(lambda: list(map(self._rest, runs)))))

    async def _refuse_too_many(self, caller: "Principal", again: str | None) -> None:
        at_work, most = await self.at_work(caller, without=again), self._server.runs_per_user
        if at_work >= most:
            raise TooManyError(
                f"{at_work} of your runs are at work, in line or waiting for you already, and {most} may be",
                retry_after=30, help="Wait for one to end, answer one that asks, or cancel one.",
            )  # fmt: skip

    async def _afforded(
        self, caller: "Principal", options: Options, again: str | None
    ) -> tuple[Options, int, Money | None]:
        """The options, what the run may cost with them, and how the person stands; all that is new is in line."""
        if caller.usd is None and self._server.usd_per_month is None:
            return options, 0, None
        money = await self.money(caller, without=again)
        used = await self._spending.used(again) if again else 0
        wanted, most = await asyncio.to_thread(self._most, options), (money.left or 0) + used
        if wanted > most == used and await asyncio.to_thread(self._model_costs, options):
            raise _nothing_left(money)
        if wanted > most:
            return options.model_copy(update={"usd": most / MICRO}), most - used, money
        return options, max(wanted - used, 0), money

    def _most(self, options: Options) -> int:
        """What a run may cost at the most, in micro-dollars."""
        return self._chosen(options) if self._could_cost(options) else 0

    def _chosen(self, options: Options) -> int:
        return round((self._settings.budget.usd if options.usd is None else options.usd) * MICRO)

    def _could_cost(self, options: Options) -> bool:
        """Whether anything a run with these options asks has a price."""
        return self._model_costs(options) or self._search_costs(options)

    def _model_costs(self, options: Options) -> bool:
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
            most = self._most(one.options)
        except ConfigurationError:  # its model is not offered any more
            most = self._chosen(one.options)
        return max(most - one.used, 0)


def _nothing_left(money: Money) -> BudgetError:
    cap, left, held = (money.cap or 0) / MICRO, (money.left or 0) / MICRO, money.held / MICRO
    holding = f" (${held:,.2f} are held for runs of yours that have not ended: cancel them to have that back)"
    return BudgetError(
        f"${left:,.2f} of your ${cap:,.2f} for this month are left, which does not pay for this"
        + (holding if money.held else ""),
        help="Ask whoever runs the server for more, wait for the next month, or choose a model that costs nothing.",
    )
