"""Pages of the open web as documents: robots.txt, politeness, a guarded fetch, and a reader in another process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from assay.errors import FetchError, ReadError, RefusedError
from assay.harvest.fetching.answer import Fetched
from assay.harvest.fetching.rendered import Render
from assay.harvest.formats import Format, recognise
from assay.harvest.freshness import Freshness, freshness
from assay.harvest.kept import Kept, KeptPages
from assay.harvest.visits import Visits
from assay.harvest.workshop import Reading, Workshop
from assay.model.source import Document, Kind
from assay.ports import Cache, Page
from assay.settings import Harvesting

_SOON = 1  # seconds; a page that leaves as fast as that has nothing to say itself
_STUB = 1_000  # characters of a page that says no more than where it has moved


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a page: as Page, but of nobody who asked."""

    document: Document | None = None
    reason: str = ""
    cached: bool = False
    again: bool = False
    seconds: float = 0.0


class WebPages:
    """A ports.Pages. Several who want one page share its reading; it is given up when all of them have.

    `render` shows a page to a browser. A workshop that was given is closed by who gave it."""

    def __init__(
        self,
        settings: Harvesting,
        *,
        visits: Visits,
        cache: Cache,
        workshop: Workshop | None = None,
        render: Render | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._visits = visits
        self._workshop = workshop or Workshop()
        self._owned = workshop is None
        self._render = render
        self._now = now
        # What one may fetch, or is shown under its name, is not for another who shares the cache.
        asking = (settings.user_agent, sorted(settings.allow_addresses))
        sizes = (settings.page_mb, settings.pdf_mb)
        self._kept = KeptPages(cache, settings.least_quality, render is not None, *sizes, *asking)
        self._readings: dict[str, _Shared] = {}
        self._waiting = asyncio.Semaphore(settings.at_once)

    async def read(self, address: str, *, kind: Kind = "web") -> Page:
        try:
            url = self._visits.canonical(address)
        except RefusedError as error:
            return Page(address, reason=error.message)
        found = await self._shared(url).wait()
        document = found.document and found.document.model_copy(update={"kind": kind})
        return Page(address, document, found.reason, found.cached, found.again, found.seconds)

    async def close(self) -> None:
        tasks = [shared.task for shared in self._readings.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._owned:
            await self._workshop.close()

    def _shared(self, url: str) -> "_Shared":
        shared = self._readings.get(url)
        if shared is None or shared.given_up:
            shared = self._readings[url] = _Shared(asyncio.create_task(self._remembered(url)))
            shared.task.add_done_callback(partial(self._forget, url))
        return shared

    def _forget(self, url: str, task: asyncio.Task[Outcome]) -> None:
        if (shared := self._readings.get(url)) is not None and shared.task is task:
            del self._readings[url]

    async def _remembered(self, url: str) -> Outcome:
        kept = await self._kept.find(url)
        if kept is not None and kept.until > self._now():
            return Outcome(kept.document, kept.reason, cached=True)
        self._workshop.warm()  # it starts while the page is fetched
        try:
            found = await self._found(url, kept)
        except RefusedError as error:  # other settings may allow it: not remembered
            return Outcome(reason=error.message)
        except ReadError as error:
            if not error.retryable:
                await self._kept.refuse(url, error.message, self._now())
            return Outcome(reason=error.message, again=error.retryable)
        await self._kept.keep(url, found.document, found.place, found.fresh, self._now())
        return Outcome(found.document, cached=found.confirmed, seconds=found.seconds)

    async def _found(self, url: str, kept: Kept | None, *, hops: int = 1) -> "_Found":
        """Raises ReadError with the reason why there is no document."""
        known = kept.document if kept else None
        async with self._visits.visit(url, kept.freshness.validators if kept and known else {}) as visit:
            fetched = visit.fetched
            # The turn is not over before the page has a place among those that wait for a reader: what was fetched
            # and not read yet stays bounded.
            await self._waiting.acquire()
        try:
            fresh = freshness(fetched.headers, self._now(), default=self._settings.cache_hours * 3600)
            if fetched.status == 304 and kept and known and fetched.url == kept.place:
                confirmed = fresh.with_validators(kept.freshness)
                return _Found(known, kept.place, confirmed, visit.took, confirmed=True)
            reading = await self._reading(fetched, visit.seconds) if fetched.status != 304 else None
        finally:
            self._waiting.release()
        if reading is None:  # what has not changed is another page than the one that is kept
            return await self._found(url, None, hops=hops)
        if hops and (leads := _leads(reading)):
            return await self._found(self._visits.canonical(leads), None, hops=0)
        if reading.wants == "javascript":
            reading, fresh = await self._shown(fetched.url, visit.seconds), fresh.without_validators()
        self._judge(reading)
        return _Found(self._document(reading, fetched.url), fetched.url, fresh, visit.took)

    async def _reading(self, fetched: Fetched, seconds: float) -> Reading:
        if fetched.status not in (200, 203):
            raise FetchError(f"answered {fetched.status}", help="It has nothing to read.", url=fetched.url)
        format = recognise(fetched.media_type, fetched.url, fetched.body)
        if format is not Format.PDF and len(fetched.body) > (most := self._settings.page_mb) * 1e6:
            raise ReadError(f"has more than {most:g} MB", help="Raise harvest.page_mb.", url=fetched.url)
        charset = fetched.charset or ""
        return await self._workshop.extract(
            fetched.body, format=format, url=fetched.url, charset=charset, seconds=seconds
        )

    async def _shown(self, url: str, seconds: float) -> Reading:
        """The page as a browser shows it."""
        if self._render is None:
            missing = "the browser is switched off" if self._settings.browser == "off" else "no browser is installed"
            raise ReadError(f"needs JavaScript, and {missing}", help="Install a browser: docs/howto/web.md")
        shown = await self._render(url)
        if urlsplit(shown.url).hostname != urlsplit(url).hostname:  # whose words it shows is not known
            raise ReadError("leads the browser to another site", help="Read that one.", url=url)
        return await self._workshop.extract(shown.html, format=Format.HTML, url=url, charset="utf-8", seconds=seconds)

    def _judge(self, reading: Reading) -> None:
        if reading.wants == "access":
            raise ReadError("behind a login or paywall", help="Read it in a browser.")
        if reading.wants == "javascript":
            raise ReadError("needs JavaScript, and shows no text with it", help="Read it in a browser.")
        if not reading.text:
            raise ReadError("holds no text", help="Read it in a browser.")
        least = self._settings.least_quality
        if reading.quality < least:
            raise ReadError(f"quality {reading.quality:.2f} is below {least:g}", help="Lower harvest.least_quality.")

    def _document(self, reading: Reading, url: str) -> Document:
        """It goes by where it was found: the address a page gives for itself may be a neighbour's."""
        return Document(
            hash=sha256(reading.text.encode()).hexdigest(),
            text=reading.text,
            url=url,
            title=reading.title,
            host=urlsplit(url).hostname or "",
            author=reading.author,
            published=reading.published,
            fetched=self._now(),
            kind="web",
            origin=reading.origin,
            language=reading.language,
        )


class _Found(NamedTuple):
    document: Document
    place: str
    fresh: Freshness
    seconds: float  # the sites took
    confirmed: bool = False  # the server said that it has not changed


class _Shared:
    """A reading that several wait for."""

    def __init__(self, task: asyncio.Task[Outcome]) -> None:
        self.task = task
        self.given_up = False
        self._waiting = 0

    async def wait(self) -> Outcome:
        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.given_up = True
                self.task.cancel()


def _leads(reading: Reading) -> str:
    """Where a page sends its readers that has nothing to say itself."""
    seconds, url = reading.refresh or (0, "")
    return url if seconds <= _SOON or len(reading.text) < _STUB else ""
