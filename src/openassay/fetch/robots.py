"""What sites ask of robots (RFC 9309), fetched through the guarded client and remembered for a day."""

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

_READ = 500 * 1024  # bytes of a robots.txt that are heeded
_SECONDS = 10.0
_REDIRECTS = 5
_FRESH = 24 * 3600.0
_FRESH_FAILURE = 600.0
_SITES = 500  # remembered; a large robots.txt takes about 1 MB once parsed
_AT_ONCE = 32  # sites asked for theirs together, however many runs have found pages on others


class _SiteRules(NamedTuple):
    """Of one site. Without `parsed` everything is open, or, where they are `unread` for some reason, closed."""

    parsed: "Protego | None" = None
    unread: str = ""


class _RulesEntry(NamedTuple):
    task: asyncio.Task[_SiteRules]
    begun: float


class Robots:
    """Rules for the first word of `user_agent`. Those who ask for the same site at the same time share one fetch."""

    def __init__(self, client: FetchClient, user_agent: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._name = (user_agent.split("/")[0].split() or ["*"])[0]
        self._clock = clock
        self._sites: OrderedDict[str, _RulesEntry] = OrderedDict()
        self._asking = asyncio.Semaphore(_AT_ONCE)

    async def check(self, url: str) -> None:
        """Raises RefusedError where the site does not want us, FetchError where it does not say."""
        address = self._client.check(url)
        if address.target.partition("?")[0] == "/robots.txt":
            return
        rules = await self._get_rules(address)
        if rules.unread:
            help = "A site whose rules cannot be read is left alone."
            reason = f"robots.txt could not be read: {rules.unread}"
            raise FetchError(reason, help=help, retryable=True, url=address.url)
        if rules.parsed is not None and not rules.parsed.can_fetch(address.url, self._name):
            raise AddressPolicyError("is closed to robots", help="The site's robots.txt says so.", url=address.url)

    async def can_fetch(self, url: str) -> bool:
        try:
            await self.check(url)
        except FetchError:
            return False
        return True

    async def crawl_delay(self, url: str) -> float:
        """Seconds that the site wants between two requests."""
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
        if entry is None or self._is_stale(entry):
            entry = _RulesEntry(asyncio.create_task(self._fetch_rules(address.origin)), self._clock())
            self._sites[address.origin] = entry
        self._sites.move_to_end(address.origin)
        while len(self._sites) > _SITES:
            self._sites.popitem(last=False)
        return await asyncio.shield(entry.task)  # whoever gives up waiting does not take it from the others

    def _is_stale(self, entry: _RulesEntry) -> bool:
        if not entry.task.done():
            return False
        failed = entry.task.cancelled() or entry.task.exception() is not None or bool(entry.task.result().unread)
        return self._clock() - entry.begun > (_FRESH_FAILURE if failed else _FRESH)

    async def _fetch_rules(self, origin: str) -> _SiteRules:
        try:
            async with self._asking:
                found = await self._client.get(
                    f"{origin}/robots.txt", max_bytes=_READ, seconds=_SECONDS, redirects=_REDIRECTS, clip=True
                )
        except RedirectError:
            return _SiteRules()  # as if there were none, says the RFC
        except FetchError as error:
            status = error.context.get("status")
            there_are_none = isinstance(status, int) and 300 <= status < 500
            return _SiteRules(unread="" if there_are_none else f"it {error.message}")
        return _SiteRules(await asyncio.to_thread(_parse, found.body))


def _parse(body: bytes) -> "Protego":
    from protego import Protego

    return Protego.parse(body.decode("utf-8-sig", "replace"))
