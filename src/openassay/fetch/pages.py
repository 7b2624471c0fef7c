"""Pages of the open web as documents: robots.txt, politeness, a guarded fetch, and a reader in another process."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from hashlib import sha256
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

from openassay.errors import AddressPolicyError, FetchError, ReadError
from openassay.fetch.browser import Render
from openassay.fetch.client import FetchClient, FetchResponse, HostLimiter
from openassay.fetch.formats import ACCEPTED, ContentFormat, detect_format
from openassay.fetch.pool import ExtractorPool, PageContent
from openassay.fetch.robots import Robots
from openassay.models.base import Record
from openassay.models.evidence import Document, DocumentKind
from openassay.protocols import Cache, PageResult
from openassay.settings import HarvestSettings

# How long an answer may be used again without asking, as RFC 9111 has it for a cache of one user.

_DIRECTIVE = re.compile(r'([^\s=,;"]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,;"]*)))?')
_HEURISTIC = 0.1  # of the time since the page was last changed, as the standard suggests
_LONGEST = 30 * 86_400.0  # a page that says "a year" is asked again after a month

Headers = Mapping[str, str]


class Freshness(NamedTuple):
    """Seconds for which an answer is fresh from now on; None: it may not be kept at all."""

    seconds: float | None
    etag: str = ""
    modified: str = ""

    @property
    def validators(self) -> dict[str, str]:
        """The headers that ask whether it has changed."""
        asked = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in asked.items() if value}

    def without_validators(self) -> "Freshness":
        """Of a page whose content came from elsewhere than the answer."""
        return Freshness(self.seconds)

    def with_validators(self, other: "Freshness") -> "Freshness":
        """Of an answer that says no more than that nothing has changed."""
        return Freshness(self.seconds, self.etag or other.etag, self.modified or other.modified)


def compute_freshness(headers: Headers, now: datetime, *, default: float) -> Freshness:
    """`default` counts for answers that say nothing, and is the most that is guessed for the others."""
    fields = {name.lower(): value for name, value in headers.items()}
    control = _parse_directives(fields.get("cache-control", fields.get("pragma", "")))
    if "no-store" in control:
        return Freshness(None)
    etag, modified = fields.get("etag", "").strip(), fields.get("last-modified", "").strip()
    if "no-cache" in control or fields.get("vary", "").strip() == "*":
        return Freshness(0.0, etag, modified)
    sent = _parse_http_date(fields.get("date", "")) or now
    lifetime = _lifetime(fields, control, sent, default)
    age = max(_parse_number(fields.get("age", "")) or 0.0, (now - sent).total_seconds(), 0.0)
    return Freshness(min(max(lifetime - age, 0.0), _LONGEST), etag, modified)


def _lifetime(fields: Headers, control: Mapping[str, str], sent: datetime, default: float) -> float:
    if "max-age" in control:  # s-maxage is for caches that many share
        return _parse_number(control["max-age"]) or 0.0  # one that cannot be read is stale
    if "expires" in fields:
        expires = _parse_http_date(fields["expires"])
        return (expires - sent).total_seconds() if expires else 0.0  # "0" and "-1": gone already
    changed = _parse_http_date(fields.get("last-modified", ""))
    if changed is None or changed > sent:
        return default
    return min(_HEURISTIC * (sent - changed).total_seconds(), default)


def _parse_directives(text: str) -> dict[str, str]:
    """Names to values; of two that differ the smaller counts."""
    found: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(text):
        name, value = name.lower(), quoted or plain
        found[name] = min(found.get(name, value), value, key=lambda one: _parse_number(one) or 0.0)
    return found


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}", text.strip()) else None


def _parse_http_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# What became of pages read before, and whether it still counts.

_EDITION = 1  # raised when readers change so much that texts kept before should be read again
_FAILURE_SECONDS = 600.0  # seconds a refusal is remembered
_STALE_SECONDS = 7 * 86_400.0  # how long a page that can be asked for changes is kept after it was fresh


class PageCacheEntry(Record):
    """A page's document or the reason why there is none, with what asks the server whether it has changed."""

    until: datetime
    document: Document | None = None
    reason: str = ""
    place: str = ""  # where it was found in the end: what validates it holds there alone
    etag: str = ""
    modified: str = ""

    @property
    def freshness(self) -> Freshness:
        return Freshness(0.0, self.etag, self.modified)


class PageCache:
    """Pages by address. `terms` are the settings a reading depends on: under others nothing is found."""

    def __init__(self, cache: Cache, *terms: object) -> None:
        self._cache = cache
        self._terms = repr((_EDITION, *terms))

    async def find(self, url: str) -> PageCacheEntry | None:
        value = await self._cache.get(self._key(url))
        if value is None:
            return None
        try:
            return PageCacheEntry.model_validate_json(value)
        except ValueError:  # written by another version
            return None

    async def store(self, url: str, document: Document, place: str, fresh: Freshness, now: datetime) -> None:
        if fresh.seconds is None:
            return
        kept = fresh.seconds + (_STALE_SECONDS if fresh.validators else 0.0)
        if kept > 0:
            until = now + timedelta(seconds=fresh.seconds)
            entry = PageCacheEntry(
                until=until, document=document, place=place, etag=fresh.etag, modified=fresh.modified
            )
            await self._put(url, entry, kept)

    async def store_failure(self, url: str, reason: str, now: datetime) -> None:
        await self._put(
            url, PageCacheEntry(until=now + timedelta(seconds=_FAILURE_SECONDS), reason=reason), _FAILURE_SECONDS
        )

    async def _put(self, url: str, entry: PageCacheEntry, seconds: float) -> None:
        await self._cache.put(self._key(url), entry.model_dump_json().encode(), seconds=seconds)

    def _key(self, url: str) -> str:
        return "page:" + sha256(f"{self._terms} {url}".encode()).hexdigest()


# One page fetched as a good guest does: what robots.txt says, the host's turn, then the guarded client.

_HOSTS = 5  # a page may lead through
_WALLS = (401, 402, 407)
_LEAST_SECONDS = 2.0  # for a page whose first part took nearly all its time
_MARGIN = 1.1  # a site counts from when requests arrive, and the first one to it has to connect


class PageFetch(NamedTuple):
    fetched: FetchResponse
    seconds: float  # what is left of the page's time; waiting for a turn costs none of it
    took: float  # the sites it led through


class _OtherHostError(FetchError):
    """A redirect leads to another host, which has a turn of its own."""

    def __init__(self, url: str) -> None:
        super().__init__("redirects to another host")
        self.url = url


class PageFetcher:
    """The client and the robots are closed by whoever opened them."""

    def __init__(
        self, settings: HarvestSettings, *, client: FetchClient, robots: Robots, politeness: HostLimiter | None = None
    ) -> None:
        self._settings = settings
        self._client = client
        self._robots = robots
        self._politeness = politeness or HostLimiter(
            at_once=settings.at_once,
            at_once_per_host=settings.at_once_per_host,
            host_pause=_MARGIN * settings.host_pause,
        )

    def canonical_url(self, address: str) -> str:
        """The address as all its spellings are written; raises RefusedError."""
        return self._client.check(address).url

    @asynccontextmanager
    async def fetch(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[PageFetch]:
        """The answer, or FetchError. `headers` go to every host it leads through; a turn lasts as long as the visit."""
        left, took = self._settings.page_seconds, 0.0
        for _ in range(_HOSTS):
            await self._check_robots(url)
            async with self._host_slot(url, await self._robots.crawl_delay(url)):
                began = monotonic()
                try:
                    fetched = await self._fetch_whole(url, headers, left)
                except _OtherHostError as error:
                    url = error.url
                    took += monotonic() - began
                    left = max(left - (monotonic() - began), _LEAST_SECONDS)
                    continue
                took += monotonic() - began
                yield PageFetch(fetched, max(left - (monotonic() - began), _LEAST_SECONDS), took)
                return
        raise FetchError("redirects too often", help="The site sends visitors in circles.", url=url)

    async def _check_robots(self, url: str) -> None:
        try:
            await self._robots.check(url)
        except AddressPolicyError as error:
            raise FetchError("robots.txt forbids it", help=error.help, url=url) from error

    def _host_slot(self, url: str, pause: float) -> AbstractAsyncContextManager[None]:
        return self._politeness.slot(urlsplit(url).netloc, pause=pause)

    async def _fetch_whole(self, url: str, headers: Mapping[str, str], seconds: float) -> FetchResponse:
        """As much as a page may have; a PDF may have more."""
        pages, pdfs = (int(size * 1e6) for size in (self._settings.page_mb, self._settings.pdf_mb))
        most = pdfs if urlsplit(url).path.lower().endswith(".pdf") else pages
        ends = monotonic() + seconds
        found = await self._get(url, headers, seconds, most)
        if not found.whole and most < pdfs and found.body.startswith(b"%PDF-"):
            most = pdfs
            found = await self._get(url, headers, ends - monotonic(), most)
        if not found.whole:
            raise FetchError(f"has more than {most / 1e6:g} MB", help="Raise harvest.page_mb or pdf_mb.", url=url)
        return found

    async def _get(self, url: str, headers: Mapping[str, str], seconds: float, most: int) -> FetchResponse:
        host = urlsplit(url).netloc

        async def followed(target: str) -> None:
            if urlsplit(target).netloc != host:
                raise _OtherHostError(target)
            await self._check_robots(target)

        try:
            return await self._client.get(
                url, seconds=seconds, max_bytes=most, accept=ACCEPTED, headers=headers, on_redirect=followed, clip=True
            )
        except FetchError as error:
            if error.context.get("status") in _WALLS:
                raise FetchError("behind a login or paywall", help=error.help, url=url) from error
            raise


_SOON = 1  # seconds; a page that leaves as fast as that has nothing to say itself
_STUB = 1_000  # characters of a page that says no more than where it has moved


@dataclass(frozen=True, slots=True)
class PageOutcome:
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
        settings: HarvestSettings,
        *,
        visits: PageFetcher,
        cache: Cache,
        workshop: ExtractorPool | None = None,
        render: Render | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._visits = visits
        self._workshop = workshop or ExtractorPool()
        self._owned = workshop is None
        self._render = render
        self._now = now
        # What one may fetch, or is shown under its name, is not for another who shares the cache.
        asking = (settings.user_agent, sorted(settings.allow_addresses))
        sizes = (settings.page_mb, settings.pdf_mb)
        self._kept = PageCache(cache, settings.least_quality, render is not None, *sizes, *asking)
        self._readings: dict[str, _PageTask] = {}
        self._waiting = asyncio.Semaphore(settings.at_once)

    async def read(self, address: str, *, kind: DocumentKind = "web") -> PageResult:
        try:
            url = self._visits.canonical_url(address)
        except AddressPolicyError as error:
            return PageResult(address, reason=error.message)
        found = await self._get_task(url).wait()
        document = found.document and found.document.model_copy(update={"kind": kind})
        return PageResult(address, document, found.reason, found.cached, found.again, found.seconds)

    async def close(self) -> None:
        tasks = [shared.task for shared in self._readings.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._owned:
            await self._workshop.close()

    def _get_task(self, url: str) -> "_PageTask":
        shared = self._readings.get(url)
        if shared is None or shared.given_up:
            shared = self._readings[url] = _PageTask(asyncio.create_task(self._read_with_cache(url)))
            shared.task.add_done_callback(partial(self._forget_task, url))
        return shared

    def _forget_task(self, url: str, task: asyncio.Task[PageOutcome]) -> None:
        if (shared := self._readings.get(url)) is not None and shared.task is task:
            del self._readings[url]

    async def _read_with_cache(self, url: str) -> PageOutcome:
        kept = await self._kept.find(url)
        if kept is not None and kept.until > self._now():
            return PageOutcome(kept.document, kept.reason, cached=True)
        self._workshop.warm_up()  # it starts while the page is fetched
        try:
            found = await self._fetch_document(url, kept)
        except AddressPolicyError as error:  # other settings may allow it: not remembered
            return PageOutcome(reason=error.message)
        except ReadError as error:
            if not error.retryable:
                await self._kept.store_failure(url, error.message, self._now())
            return PageOutcome(reason=error.message, again=error.retryable)
        await self._kept.store(url, found.document, found.place, found.fresh, self._now())
        return PageOutcome(found.document, cached=found.confirmed, seconds=found.seconds)

    async def _fetch_document(self, url: str, kept: PageCacheEntry | None, *, hops: int = 1) -> "_PageResult":
        """Raises ReadError with the reason why there is no document."""
        known = kept.document if kept else None
        async with self._visits.fetch(url, kept.freshness.validators if kept and known else {}) as visit:
            fetched = visit.fetched
            # The turn is not over before the page has a place among those that wait for a reader: what was fetched
            # and not read yet stays bounded.
            await self._waiting.acquire()
        try:
            fresh = compute_freshness(fetched.headers, self._now(), default=self._settings.cache_hours * 3600)
            if fetched.status == 304 and kept and known and fetched.url == kept.place:
                confirmed = fresh.with_validators(kept.freshness)
                return _PageResult(known, kept.place, confirmed, visit.took, confirmed=True)
            reading = await self._extract(fetched, visit.seconds) if fetched.status != 304 else None
        finally:
            self._waiting.release()
        if reading is None:  # what has not changed is another page than the one that is kept
            return await self._fetch_document(url, None, hops=hops)
        if hops and (leads := _refresh_target(reading)):
            return await self._fetch_document(self._visits.canonical_url(leads), None, hops=0)
        if reading.wants == "javascript":
            reading, fresh = await self._extract_from_browser(fetched.url, visit.seconds), fresh.without_validators()
        self._check_content(reading)
        return _PageResult(self._to_document(reading, fetched.url), fetched.url, fresh, visit.took)

    async def _extract(self, fetched: FetchResponse, seconds: float) -> PageContent:
        if fetched.status not in (200, 203):
            raise FetchError(f"answered {fetched.status}", help="It has nothing to read.", url=fetched.url)
        format = detect_format(fetched.media_type, fetched.url, fetched.body)
        if format is not ContentFormat.PDF and len(fetched.body) > (most := self._settings.page_mb) * 1e6:
            raise ReadError(f"has more than {most:g} MB", help="Raise harvest.page_mb.", url=fetched.url)
        charset = fetched.charset or ""
        return await self._workshop.extract(
            fetched.body, format=format, url=fetched.url, charset=charset, seconds=seconds
        )

    async def _extract_from_browser(self, url: str, seconds: float) -> PageContent:
        """The page as a browser shows it."""
        if self._render is None:
            missing = "the browser is switched off" if self._settings.browser == "off" else "no browser is installed"
            raise ReadError(f"needs JavaScript, and {missing}", help="Install a browser: docs/howto/web.md")
        shown = await self._render(url)
        if urlsplit(shown.url).hostname != urlsplit(url).hostname:  # whose words it shows is not known
            raise ReadError("leads the browser to another site", help="Read that one.", url=url)
        return await self._workshop.extract(
            shown.html, format=ContentFormat.HTML, url=url, charset="utf-8", seconds=seconds
        )

    def _check_content(self, reading: PageContent) -> None:
        if reading.wants == "access":
            raise ReadError("behind a login or paywall", help="Read it in a browser.")
        if reading.wants == "javascript":
            raise ReadError("needs JavaScript, and shows no text with it", help="Read it in a browser.")
        if not reading.text:
            raise ReadError("holds no text", help="Read it in a browser.")
        least = self._settings.least_quality
        if reading.quality < least:
            raise ReadError(f"quality {reading.quality:.2f} is below {least:g}", help="Lower harvest.least_quality.")

    def _to_document(self, reading: PageContent, url: str) -> Document:
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


class _PageResult(NamedTuple):
    document: Document
    place: str
    fresh: Freshness
    seconds: float  # the sites took
    confirmed: bool = False  # the server said that it has not changed


class _PageTask:
    """A reading that several wait for."""

    def __init__(self, task: asyncio.Task[PageOutcome]) -> None:
        self.task = task
        self.given_up = False
        self._waiting = 0

    async def wait(self) -> PageOutcome:
        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.given_up = True
                self.task.cancel()


def _refresh_target(reading: PageContent) -> str:
    """Where a page sends its readers that has nothing to say itself."""
    seconds, url = reading.refresh or (0, "")
    return url if seconds <= _SOON or len(reading.text) < _STUB else ""
