"""One page fetched as a good guest does: what robots.txt says, the host's turn, then the guarded client."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

from assay.errors import FetchError, RefusedError
from assay.harvest.fetching.answer import Fetched
from assay.harvest.fetching.client import GuardedClient
from assay.harvest.fetching.politeness import Politeness
from assay.harvest.fetching.robots import Robots
from assay.harvest.formats import ACCEPTED
from assay.settings import Harvesting

_HOSTS = 5  # a page may lead through
_WALLS = (401, 402, 407)
_LEAST_SECONDS = 2.0  # for a page whose first part took nearly all its time
_MARGIN = 1.1  # a site counts from when requests arrive, and the first one to it has to connect


class Visit(NamedTuple):
    fetched: Fetched
    seconds: float  # what is left of the page's time; waiting for a turn costs none of it
    took: float  # the sites it led through


class _ElsewhereError(FetchError):
    """A redirect leads to another host, which has a turn of its own."""

    def __init__(self, url: str) -> None:
        super().__init__("redirects to another host")
        self.url = url


class Visits:
    """The client and the robots are closed by whoever opened them."""

    def __init__(
        self, settings: Harvesting, *, client: GuardedClient, robots: Robots, politeness: Politeness | None = None
    ) -> None:
        self._settings = settings
        self._client = client
        self._robots = robots
        self._politeness = politeness or Politeness(
            at_once=settings.at_once,
            at_once_per_host=settings.at_once_per_host,
            host_pause=_MARGIN * settings.host_pause,
        )

    def canonical(self, address: str) -> str:
        """The address as all its spellings are written; raises RefusedError."""
        return self._client.check(address).url

    @asynccontextmanager
    async def visit(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[Visit]:
        """The answer, or FetchError. `headers` go to every host it leads through; a turn lasts as long as the visit."""
        left, took = self._settings.page_seconds, 0.0
        for _ in range(_HOSTS):
            await self._welcome(url)
            async with self._turn(url, await self._robots.crawl_delay(url)):
                began = monotonic()
                try:
                    fetched = await self._fetched(url, headers, left)
                except _ElsewhereError as error:
                    url = error.url
                    took += monotonic() - began
                    left = max(left - (monotonic() - began), _LEAST_SECONDS)
                    continue
                took += monotonic() - began
                yield Visit(fetched, max(left - (monotonic() - began), _LEAST_SECONDS), took)
                return
        raise FetchError("redirects too often", help="The site sends visitors in circles.", url=url)

    async def _welcome(self, url: str) -> None:
        try:
            await self._robots.check(url)
        except RefusedError as error:
            raise FetchError("robots.txt forbids it", help=error.help, url=url) from error

    def _turn(self, url: str, pause: float) -> AbstractAsyncContextManager[None]:
        return self._politeness.turn(urlsplit(url).netloc, pause=pause)

    async def _fetched(self, url: str, headers: Mapping[str, str], seconds: float) -> Fetched:
        """As much as a page may have; a PDF may have more."""
        pages, pdfs = (int(size * 1e6) for size in (self._settings.page_mb, self._settings.pdf_mb))
        most = pdfs if urlsplit(url).path.lower().endswith(".pdf") else pages
        ends = monotonic() + seconds
        found = await self._got(url, headers, seconds, most)
        if not found.whole and most < pdfs and found.body.startswith(b"%PDF-"):
            most = pdfs
            found = await self._got(url, headers, ends - monotonic(), most)
        if not found.whole:
            raise FetchError(f"has more than {most / 1e6:g} MB", help="Raise harvest.page_mb or pdf_mb.", url=url)
        return found

    async def _got(self, url: str, headers: Mapping[str, str], seconds: float, most: int) -> Fetched:
        host = urlsplit(url).netloc

        async def followed(target: str) -> None:
            if urlsplit(target).netloc != host:
                raise _ElsewhereError(target)
            await self._welcome(target)

        try:
            return await self._client.get(
                url, seconds=seconds, max_bytes=most, accept=ACCEPTED, headers=headers, on_redirect=followed, clip=True
            )
        except FetchError as error:
            if error.context.get("status") in _WALLS:
                raise FetchError("behind a login or paywall", help=error.help, url=url) from error
            raise
