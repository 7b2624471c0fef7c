"""The robots.txt of sites (RFC 9309), fetched through the guarded client and remembered for a day."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from openassay.errors import AddressPolicyError, FetchError
from openassay.fetch.client import FetchClient, RedirectError
from openassay.fetch.guard import FetchAddress

if TYPE_CHECKING:
    from protego import Protego

_MAX_BYTES = 500 * 1024
_FETCH_SECONDS = 10.0
_MAX_REDIRECTS = 5
_RULES_SECONDS = 24 * 3600.0  # for which rules are remembered
_FAILURE_SECONDS = 600.0
_MAX_SITES = 500  # remembered; a large robots.txt takes about 1 MB once parsed
_MAX_FETCHES = 32  # at once, however many runs have found pages on other sites


class _SiteRules(NamedTuple):
    """The rules of one site. Without `parsed` everything is allowed, or, where there is a `failure`, nothing."""

    parsed: "Protego | None" = None
    failure: str = ""


class _RulesEntry(NamedTuple):
    task: asyncio.Task[_SiteRules]
    started: float


class Robots:
    """Applies the rules for the first word of `user_agent`. Concurrent callers for one site share one fetch."""

    def __init__(self, client: FetchClient, user_agent: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._name = (user_agent.split("/")[0].split() or ["*"])[0]
        self._clock = clock
        self._sites: OrderedDict[str, _RulesEntry] = OrderedDict()
        self._fetches = asyncio.Semaphore(_MAX_FETCHES)

    async def check(self, url: str) -> None:
        """Raise AddressPolicyError where the site disallows the page, FetchError where its rules cannot be read."""
        address = self._client.check(url)
        if address.target.partition("?")[0] == "/robots.txt":
            return
        rules = await self._get_rules(address)
        if rules.failure:
            help = "A site whose rules cannot be read is not crawled."
            reason = f"robots.txt could not be read: {rules.failure}"
            raise FetchError(reason, help=help, retryable=True, url=address.url)
        if rules.parsed is not None and not rules.parsed.can_fetch(address.url, self._name):
            raise AddressPolicyError("disallows crawlers", help="The site's robots.txt says so.", url=address.url)

    async def crawl_delay(self, url: str) -> float:
        """Return the seconds that the site wants between two requests."""
        rules = await self._get_rules(self._client.check(url))
        return (rules.parsed.crawl_delay(self._name) if rules.parsed is not None else None) or 0.0

    async def aclose(self) -> None:
        tasks = [entry.task for entry in self._sites.values()]
        self._sites.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _get_rules(self, address: FetchAddress) -> _SiteRules:
        entry = self._sites.get(address.origin)
        if entry is not None and entry.task.done():
            task = entry.task
            failed = task.cancelled() or task.exception() is not None or bool(task.result().failure)
            if self._clock() - entry.started > (_FAILURE_SECONDS if failed else _RULES_SECONDS):
                entry = None
        if entry is None:
            entry = _RulesEntry(asyncio.create_task(self._fetch_rules(address.origin)), self._clock())
            self._sites[address.origin] = entry
        self._sites.move_to_end(address.origin)
        while len(self._sites) > _MAX_SITES:
            self._sites.popitem(last=False)
        return await asyncio.shield(entry.task)  # a caller that gives up does not cancel it for the others

    async def _fetch_rules(self, origin: str) -> _SiteRules:
        try:
            async with self._fetches:
                response = await self._client.get(
                    f"{origin}/robots.txt",
                    max_bytes=_MAX_BYTES,
                    seconds=_FETCH_SECONDS,
                    redirects=_MAX_REDIRECTS,
                    clip=True,
                )
        except RedirectError:
            return _SiteRules()  # as if there were none, says the RFC
        except FetchError as error:
            status = error.context.get("status")
            has_none = isinstance(status, int) and 300 <= status < 500
            return _SiteRules(failure="" if has_none else f"it {error.message}")
        from protego import Protego

        return _SiteRules(await asyncio.to_thread(Protego.parse, response.body.decode("utf-8-sig", "replace")))
