"""Reads pages of the web as documents: robots.txt, rate limits, a guarded fetch, and extraction in another process."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from openassay.errors import AddressPolicyError, FetchError, ReadError
from openassay.fetch.browser import Render
from openassay.fetch.client import FetchClient, FetchResponse, HostLimiter, RedirectError
from openassay.fetch.extractor import ExtractorPool, PageContent
from openassay.fetch.formats import ACCEPTED, ContentFormat, detect_format
from openassay.fetch.guard import FetchAddress
from openassay.models.base import Record
from openassay.models.evidence import Document, DocumentKind
from openassay.protocols import Cache, PageResult
from openassay.settings import HarvestSettings

if TYPE_CHECKING:
    from protego import Protego

# Freshness, as RFC 9111 has it for a cache of one user -------------------------------------------------

_DIRECTIVE = re.compile(r'([^\s=,;"]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,;"]*)))?')
_HEURISTIC_SHARE = 0.1  # of the time since the page was last changed, as the standard suggests
_MAX_FRESH_SECONDS = 30 * 86_400.0  # a page that says "a year" is fetched again after a month

Headers = Mapping[str, str]


class Freshness(NamedTuple):
    """How long a response is fresh from now on; None: it may not be stored at all."""

    seconds: float | None
    etag: str = ""
    modified: str = ""

    @property
    def validators(self) -> dict[str, str]:
        """The headers that ask whether it has changed."""
        headers = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in headers.items() if value}


def compute_freshness(headers: Headers, now: datetime, *, default: float) -> Freshness:
    """Compute how long a response is fresh. `default` holds where it does not say, and is the most that is guessed."""
    fields = {name.lower(): value for name, value in headers.items()}
    control: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(fields.get("cache-control", fields.get("pragma", ""))):
        values = (control.get(name.lower(), quoted or plain), quoted or plain)
        control[name.lower()] = min(values, key=lambda value: _parse_number(value) or 0.0)  # of two that differ
    if "no-store" in control:
        return Freshness(None)
    etag, modified = fields.get("etag", "").strip(), fields.get("last-modified", "").strip()
    if "no-cache" in control or fields.get("vary", "").strip() == "*":
        return Freshness(0.0, etag, modified)
    sent = _parse_http_date(fields.get("date", "")) or now
    changed = _parse_http_date(fields.get("last-modified", ""))
    if "max-age" in control:  # s-maxage is for caches that many share
        lifetime = _parse_number(control["max-age"]) or 0.0  # one that cannot be read is stale
    elif "expires" in fields:
        expires = _parse_http_date(fields["expires"])
        lifetime = (expires - sent).total_seconds() if expires else 0.0  # "0" and "-1": gone already
    elif changed is None or changed > sent:
        lifetime = default
    else:
        lifetime = min(_HEURISTIC_SHARE * (sent - changed).total_seconds(), default)
    age = max(_parse_number(fields.get("age", "")) or 0.0, (now - sent).total_seconds(), 0.0)
    return Freshness(min(max(lifetime - age, 0.0), _MAX_FRESH_SECONDS), etag, modified)


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}", text.strip()) else None


def _parse_http_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# The cache of pages --------------------------------------------------------------------------------------

_EDITION = 1  # raised when readers change so much that cached texts should be read again
_FAILURE_SECONDS = 600.0  # for which a failure is remembered
_STALE_SECONDS = 7 * 86_400.0  # for which a page with validators is kept after it was fresh


class PageCacheEntry(Record):
    """A page's document or the reason why there is none, with what the server needs to tell whether it has changed."""

    until: datetime
    document: Document | None = None
    reason: str = ""
    place: str = ""  # the address it was found at: its validators hold there alone
    etag: str = ""
    modified: str = ""


class PageCache:
    """Caches pages by address. `terms` are the settings a reading depends on: under others nothing is found."""

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
        seconds = fresh.seconds + (_STALE_SECONDS if fresh.validators else 0.0)
        if seconds > 0:
            until = now + timedelta(seconds=fresh.seconds)
            entry = PageCacheEntry(
                until=until, document=document, place=place, etag=fresh.etag, modified=fresh.modified
            )
            await self._put(url, entry, seconds)

    async def store_failure(self, url: str, reason: str, now: datetime) -> None:
        until = now + timedelta(seconds=_FAILURE_SECONDS)
        await self._put(url, PageCacheEntry(until=until, reason=reason), _FAILURE_SECONDS)

    async def _put(self, url: str, entry: PageCacheEntry, seconds: float) -> None:
        await self._cache.put(self._key(url), entry.model_dump_json().encode(), seconds=seconds)

    def _key(self, url: str) -> str:
        return "page:" + sha256(f"{self._terms} {url}".encode()).hexdigest()


# The robots.txt of sites (RFC 9309), remembered for a day ------------------------------------------------

_ROBOTS_BYTES = 500 * 1024
_ROBOTS_SECONDS = 10.0
_MAX_REDIRECTS = 5
_RULES_SECONDS = 24 * 3600.0  # for which rules are remembered
_NO_RULES_SECONDS = 600.0
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
            if self._clock() - entry.started > (_NO_RULES_SECONDS if failed else _RULES_SECONDS):
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
                    max_bytes=_ROBOTS_BYTES,
                    seconds=_ROBOTS_SECONDS,
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


# Fetching a page -----------------------------------------------------------------------------------------

_MAX_HOSTS = 5  # that a page may redirect through
_WALL_STATUSES = (401, 402, 407)
_MIN_SECONDS = 2.0  # for a page whose first part took nearly all its time
_PAUSE_MARGIN = 1.1  # a site counts from when requests arrive, and the first one to it has to connect


class PageFetch(NamedTuple):
    response: FetchResponse
    seconds_left: float  # of the page's time; waiting for a turn costs none of it
    took: float  # the sites it led through


class _OtherHostError(FetchError):
    """A redirect leads to another host, which has a rate of its own."""

    def __init__(self, url: str) -> None:
        super().__init__("redirects to another host")
        self.url = url


class PageFetcher:
    """Fetches a page politely: robots.txt, the limits of its host, then the guarded client."""

    def __init__(self, settings: HarvestSettings, client: FetchClient) -> None:
        self._settings = settings
        self._client = client
        self._robots = Robots(client, settings.user_agent)
        self._limiter = HostLimiter(
            at_once=settings.at_once,
            at_once_per_host=settings.at_once_per_host,
            host_pause=_PAUSE_MARGIN * settings.host_pause,
        )

    def canonical_url(self, address: str) -> str:
        """Return the address as all its spellings are written; raises AddressPolicyError."""
        return self._client.check(address).url

    async def close(self) -> None:
        await self._robots.aclose()

    @asynccontextmanager
    async def fetch(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[PageFetch]:
        """Fetch a page, or raise FetchError. `headers` go to every host it redirects through.

        The host's slot is held until the caller leaves."""
        left, took = self._settings.page_seconds, 0.0
        for _ in range(_MAX_HOSTS):
            await self._check_robots(url)
            async with self._limiter.slot(urlsplit(url).netloc, pause=await self._robots.crawl_delay(url)):
                began = monotonic()
                try:
                    response = await self._fetch_whole(url, headers, left)
                except _OtherHostError as error:
                    url = error.url
                    took += monotonic() - began
                    left = max(left - (monotonic() - began), _MIN_SECONDS)
                    continue
                took += monotonic() - began
                yield PageFetch(response, max(left - (monotonic() - began), _MIN_SECONDS), took)
                return
        raise FetchError("redirects too often", help="The site sends visitors in circles.", url=url)

    async def _check_robots(self, url: str) -> None:
        try:
            await self._robots.check(url)
        except AddressPolicyError as error:
            raise FetchError("robots.txt forbids it", help=error.help, url=url) from error

    async def _fetch_whole(self, url: str, headers: Mapping[str, str], seconds: float) -> FetchResponse:
        """Fetch up to the limit of a page; a PDF has a larger one."""
        page_bytes, pdf_bytes = (int(size * 1e6) for size in (self._settings.page_mb, self._settings.pdf_mb))
        max_bytes = pdf_bytes if urlsplit(url).path.lower().endswith(".pdf") else page_bytes
        ends = monotonic() + seconds
        response = await self._get(url, headers, seconds, max_bytes)
        if not response.whole and max_bytes < pdf_bytes and response.body.startswith(b"%PDF-"):
            max_bytes = pdf_bytes
            response = await self._get(url, headers, ends - monotonic(), max_bytes)
        if not response.whole:
            raise FetchError(f"has more than {max_bytes / 1e6:g} MB", help="Raise harvest.page_mb or pdf_mb.", url=url)
        return response

    async def _get(self, url: str, headers: Mapping[str, str], seconds: float, max_bytes: int) -> FetchResponse:
        host = urlsplit(url).netloc

        async def check_redirect(target: str) -> None:
            if urlsplit(target).netloc != host:
                raise _OtherHostError(target)
            await self._check_robots(target)

        try:
            return await self._client.get(
                url,
                seconds=seconds,
                max_bytes=max_bytes,
                accept=ACCEPTED,
                headers=headers,
                on_redirect=check_redirect,
                clip=True,
            )
        except FetchError as error:
            if error.context.get("status") in _WALL_STATUSES:
                raise FetchError("behind a login or paywall", help=error.help, url=url) from error
            raise


# Reading pages -------------------------------------------------------------------------------------------

_QUICK_REFRESH = 1  # seconds; a page that redirects as fast as that has no content
_STUB_LENGTH = 1_000  # characters of a page that says no more than where it has moved


class WebPages:
    """A `protocols.Pages`. Callers that want the same page share its reading, which is cancelled when all give up.

    `render` shows a page to a browser. The client and a pool that is passed in are closed by their owner."""

    def __init__(
        self,
        settings: HarvestSettings,
        *,
        client: FetchClient,
        cache: Cache,
        pool: ExtractorPool | None = None,
        render: Render | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._fetcher = PageFetcher(settings, client)
        self._pool = pool or ExtractorPool()
        self._owns_pool = pool is None
        self._render = render
        self._now = now
        # What one client may fetch, or is shown under its name, is not for another that shares the cache.
        client_terms = (settings.user_agent, sorted(settings.allow_addresses))
        sizes = (settings.page_mb, settings.pdf_mb)
        self._cache = PageCache(cache, settings.least_quality, render is not None, *sizes, *client_terms)
        self._tasks: dict[str, _PageTask] = {}
        self._waiting = asyncio.Semaphore(settings.at_once)

    async def read(self, address: str, *, kind: DocumentKind = "web") -> PageResult:
        try:
            url = self._fetcher.canonical_url(address)
        except AddressPolicyError as error:
            return PageResult(address, reason=error.message)
        shared = self._tasks.get(url)
        if shared is None or shared.abandoned:
            shared = self._tasks[url] = _PageTask(asyncio.create_task(self._read_with_cache(url)))
            shared.task.add_done_callback(partial(self._forget_task, url))
        result = await shared.wait()
        document = result.document and result.document.model_copy(update={"kind": kind})
        return result._replace(address=address, document=document)

    async def close(self) -> None:
        tasks = [shared.task for shared in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fetcher.close()
        if self._owns_pool:
            await self._pool.close()

    def _forget_task(self, url: str, task: asyncio.Task[PageResult]) -> None:
        if (shared := self._tasks.get(url)) is not None and shared.task is task:
            del self._tasks[url]

    async def _read_with_cache(self, url: str) -> PageResult:
        stored = await self._cache.find(url)
        if stored is not None and stored.until > self._now():
            return PageResult(url, stored.document, stored.reason, cached=True)
        self._pool.warm_up()  # it starts while the page is fetched
        try:
            found = await self._fetch_document(url, stored)
        except AddressPolicyError as error:  # other settings may allow it: not remembered
            return PageResult(url, reason=error.message)
        except ReadError as error:
            if not error.retryable:
                await self._cache.store_failure(url, error.message, self._now())
            return PageResult(url, reason=error.message, again=error.retryable)
        await self._cache.store(url, found.document, found.place, found.fresh, self._now())
        return PageResult(url, found.document, cached=found.confirmed, seconds=found.seconds)

    async def _fetch_document(self, url: str, stored: PageCacheEntry | None, *, hops: int = 1) -> "_FoundPage":
        """Fetch and extract a page; raises ReadError with the reason why there is no document."""
        known = stored.document if stored else None
        validators = Freshness(0.0, stored.etag, stored.modified).validators if stored and known else {}
        async with self._fetcher.fetch(url, validators) as fetch:
            response = fetch.response
            # The host's slot is held until the page has a place among those that wait for a reader: what was fetched
            # and not read yet stays bounded.
            await self._waiting.acquire()
        try:
            fresh = compute_freshness(response.headers, self._now(), default=self._settings.cache_hours * 3600)
            if response.status == 304 and stored and known and response.url == stored.place:
                etag, modified = fresh.etag or stored.etag, fresh.modified or stored.modified
                confirmed = Freshness(fresh.seconds, etag, modified)
                return _FoundPage(known, stored.place, confirmed, fetch.took, confirmed=True)
            content = await self._extract(response, fetch.seconds_left) if response.status != 304 else None
        finally:
            self._waiting.release()
        if content is None:  # what has not changed is another page than the stored one
            return await self._fetch_document(url, None, hops=hops)
        delay, target = content.refresh or (0, "")
        if hops and target and (delay <= _QUICK_REFRESH or len(content.text) < _STUB_LENGTH):
            return await self._fetch_document(self._fetcher.canonical_url(target), None, hops=0)
        if content.wants == "javascript":
            if self._render is None:
                off = self._settings.browser == "off"
                missing = "the browser is switched off" if off else "no browser is installed"
                raise ReadError(f"needs JavaScript, and {missing}", help="Install a browser: docs/howto/web.md")
            page = await self._render(response.url)
            if urlsplit(page.url).hostname != urlsplit(response.url).hostname:  # whose words it shows is not known
                raise ReadError("redirects the browser to another site", help="Read that one.", url=response.url)
            content = await self._pool.extract(
                page.html, format=ContentFormat.HTML, url=response.url, charset="utf-8", seconds=fetch.seconds_left
            )
            fresh = Freshness(fresh.seconds)  # the response's validators say nothing about what the browser showed
        return _FoundPage(self._to_document(content, response.url), response.url, fresh, fetch.took)

    async def _extract(self, response: FetchResponse, seconds: float) -> PageContent:
        if response.status not in (200, 203):
            raise FetchError(f"answered {response.status}", help="It has nothing to read.", url=response.url)
        format = detect_format(response.media_type, response.url, response.body)
        if format is not ContentFormat.PDF and len(response.body) > (limit := self._settings.page_mb) * 1e6:
            raise ReadError(f"has more than {limit:g} MB", help="Raise harvest.page_mb.", url=response.url)
        return await self._pool.extract(
            response.body, format=format, url=response.url, charset=response.charset or "", seconds=seconds
        )

    def _to_document(self, content: PageContent, url: str) -> Document:
        """Make a document under the address it was found at: the one a page gives for itself may be a neighbour's.

        Raises ReadError for content that is none, or too poor."""
        if content.wants == "access":
            raise ReadError("behind a login or paywall", help="Read it in a browser.")
        if content.wants == "javascript":
            raise ReadError("needs JavaScript, and shows no text with it", help="Read it in a browser.")
        if not content.text:
            raise ReadError("holds no text", help="Read it in a browser.")
        least = self._settings.least_quality
        if content.quality < least:
            raise ReadError(f"quality {content.quality:.2f} is below {least:g}", help="Lower harvest.least_quality.")
        return Document(
            hash=sha256(content.text.encode()).hexdigest(),
            text=content.text,
            url=url,
            title=content.title,
            host=urlsplit(url).hostname or "",
            author=content.author,
            published=content.published,
            fetched=self._now(),
            kind="web",
            origin=content.origin,
            publisher=content.publisher,
            language=content.language,
        )


class _FoundPage(NamedTuple):
    document: Document
    place: str
    fresh: Freshness
    seconds: float  # that the sites took
    confirmed: bool = False  # by the server, which said that it has not changed


class _PageTask:
    """A reading that several callers wait for; abandoned when all of them gave up."""

    def __init__(self, task: asyncio.Task[PageResult]) -> None:
        self.task = task
        self.abandoned = False
        self._waiting = 0

    async def wait(self) -> PageResult:
        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.abandoned = True
                self.task.cancel()
