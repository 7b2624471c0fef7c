"""The base of every search provider that is asked over HTTP.

A provider is one file with one subclass of `ApiSource` (of `PaperSource` for a catalogue of papers), registered as an
entry point of the group `openassay.sources`. It says two things, and tavily.py is the shortest example:

    build_request   how the provider is asked
    parse_results   what its answer means

Everything else is done here: the cache, the quota, the rate, the price, retries, and errors that say whether a retry
helps (429, timeouts and 5xx do, 401 and 403 do not) and never carry a key. `fields` helps with queries and dates.
"""

import asyncio
import hashlib
import json
import math
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from openassay.errors import SourceError
from openassay.models.base import Record
from openassay.models.evidence import Document, DocumentKind, Hit, ProviderResult, ProviderTerms, SearchRequest
from openassay.models.plan import QueryType
from openassay.models.spend import MICRO, Fee
from openassay.protocols import Budget, SearchAnswer
from openassay.search.fields import format_byline, parse_date, repair_json, shorten, to_line, today
from openassay.search.http import HttpRequest, HttpResponse, unreachable_error
from openassay.settings import SearchSettings
from openassay.text.words import clean_text

if TYPE_CHECKING:
    from openassay.search.registry import SourceContext

FINAL_STATUSES = frozenset({401, 402, 403, 432, 433})  # the next request would be answered in the same way
CACHE_VERSION = 2  # of cached answers; raised when providers are read differently
REACHABLE_SECONDS = 1.5
READABLE = 200  # characters from which on a text can be read by itself
MAX_TITLE = 300  # characters, here and below
MAX_SNIPPET = 2_000
MAX_TEXT = 100_000
MAX_URL = 2_000
_PAPER_SNIPPET = 300
_DAY_SECONDS = 86_400.0


class ProviderEntry(BaseModel):
    """The base of the models of a provider's answer; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def read(cls, body: str) -> Self:
        return cls.model_validate_json(repair_json(body))


def nested_field(*path: str, default: Any = None) -> Any:
    """Declare a field that stands deeper in an answer."""
    return Field(default, validation_alias=AliasPath(*path))


class WebEntry(ProviderEntry):
    """A result of most providers; a subclass gives the names of its fields as aliases."""

    url: str
    title: str
    snippet: str | None = None
    published: str | None = None

    def to_result(self, **more: Any) -> ProviderResult:
        fields = {"url": self.url, "title": self.title, "snippet": self.snippet or "", **more}
        return ProviderResult(published=parse_date(self.published), **fields)


E = TypeVar("E", bound=ProviderEntry)


def read_list(body: str, *path: str) -> list[object]:
    """Return the list that stands under these names in an answer."""
    found = json.loads(repair_json(body))
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise ValueError("it has no list of results")
    return found


def read_entries(model: type[E], body: str, *path: str) -> list[E]:
    return parse_entries(model, read_list(body, *path))


def parse_entries(model: type[E], items: Sequence[object]) -> list[E]:
    """Parse the items that are as documented; raise ValueError when there are some and none is."""
    entries = parse_leniently(model, items)
    if items and not entries:
        raise ValueError("no result is as documented")
    return entries


def parse_leniently(model: type[E], items: Iterable[object]) -> list[E]:
    """Parse the items that are as documented and drop the others."""
    entries = []
    for item in items:
        try:
            entries.append(model.model_validate(item))
        except ValidationError:
            continue
    return entries


class ProviderRequest(NamedTuple):
    """A request to a provider: `url` is below its endpoint, or the endpoint itself when empty."""

    url: str = ""
    params: Mapping[str, str | int | None] = {}  # None is left out, here and in `json`
    json: Mapping[str, Any] | None = None  # makes it a POST
    headers: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}  # parameters that go to the provider and nowhere else


class ApiSource(ABC):
    """Implements `protocols.Source` and `protocols.RemoteSource`; one subclass per provider."""

    name: ClassVar[str]
    types: ClassVar[tuple[QueryType, ...]] = ("web",)
    kind: ClassVar[DocumentKind] = "web"
    own_terms: ClassVar[ProviderTerms]
    endpoint: ClassVar[str]  # settings.search.endpoints may name another
    final_statuses: ClassVar[frozenset[int]] = FINAL_STATUSES  # after one of these the provider is not asked again
    one_site: ClassVar[bool] = False  # finds pages of one site: asked beside a search of the web, never instead of it
    stands_in: ClassVar[bool] = False  # asked where there is no other search of the web
    max_query: ClassVar[int] = 2000  # characters the provider accepts; the rest is cut at a word
    min_text: ClassVar[int] = READABLE  # characters from which on a result's text is a document

    def __init__(self, context: "SourceContext") -> None:
        self.context = context
        self._refused: HttpResponse | None = None
        self._rests_until = 0.0  # monotonic; an unreachable provider is not tried again for each query

    @classmethod
    def build(cls, context: "SourceContext") -> Self:
        return cls(context)

    @abstractmethod
    def build_request(self, search: SearchRequest) -> ProviderRequest:
        """Build the request, with every filter of the search that the provider knows."""

    @abstractmethod
    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        """Parse the results of an answer, best first.

        Raises ValueError (pydantic's included) when the answer is not what the provider documents. One bad result
        among good ones is dropped."""

    def better_limits(self) -> Mapping[str, float]:
        """Return the limits of `own_terms` that a key or a contact raises."""
        return {}

    def read_status(self, reply: HttpResponse) -> int:
        """Return what an answer means as a status; some providers send errors under another one."""
        return reply.status

    def explain(self, reply: HttpResponse) -> SourceError:
        """Return the error that a status other than 200 means."""
        return status_error(self.name, reply, self.own_terms.key, has_key=bool(self.key))

    @property
    def settings(self) -> SearchSettings:
        return self.context.settings.search

    @property
    def terms(self) -> ProviderTerms:
        """The provider's limits and price; settings override them."""
        overrides = {
            "per_minute": self.settings.requests_per_minute.get(self.name),
            "per_day": self.settings.requests_per_day.get(self.name),
            "usd": self.settings.usd_per_request.get(self.name),
        }
        known = {field: value for field, value in overrides.items() if value is not None}
        return self.own_terms.model_copy(update={**self.better_limits(), **known})

    @property
    def address(self) -> str:
        return self.settings.endpoints.get(self.name) or self.endpoint

    @property
    def key(self) -> str:
        """The provider's key; empty where there is none."""
        secret = getattr(self.context.settings.keys, self.own_terms.key) if self.own_terms.key else None
        return secret.get_secret_value().strip() if secret else ""

    def is_available(self) -> bool:
        wanted = self.name not in self.settings.without
        return wanted and bool(self.key or not self.own_terms.key_required)

    def is_reachable(self) -> bool:
        try:
            url = urlsplit(self.address)
            port = url.port or {"https": 443, "http": 80}.get(url.scheme)
            if not (url.hostname and port):
                return False
            socket.create_connection((url.hostname, port), REACHABLE_SECONDS).close()
        except (OSError, ValueError):  # TimeoutError is an OSError; ValueError is an invalid address
            return False
        return True

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        query = clean_text(query).strip()  # a record holds no half of a character pair
        if not query or limit < 1:
            return []
        return (await self.ask(SearchRequest(query=query, limit=min(limit, 50)), _UnlimitedBudget())).hits

    async def ask(self, search: SearchRequest, budget: Budget) -> SearchAnswer:
        """Answer from the cache, or ask the provider and pay from the budget."""
        query = shorten(search.query, self.max_query)
        if not query:
            return SearchAnswer([])
        request = self.build_request(search.model_copy(update={"query": query}))
        shown = self._describe(request)
        key = "search:" + hashlib.sha256(f"{CACHE_VERSION} {self.name} {search.limit} {shown}".encode()).hexdigest()
        cache, hours = self.context.cache, self.settings.cache_hours
        if hours and (stored := await cache.get(key)) is not None:
            try:
                earlier = ProviderResults.model_validate_json(stored)
            except ValidationError:
                pass  # written by another version
            else:
                return SearchAnswer(await self._to_hits(earlier, search), cached=True)
        fee = Fee(step="search", provider=self.name, request=shown, micros=math.ceil(self.terms.usd * MICRO))
        found, seconds = await self._ask_with_retries(fee, request, budget)
        results = ProviderResults(asked=datetime.now(UTC), found=found)
        if hours:
            await cache.put(key, results.model_dump_json().encode(), seconds=hours * 3600)
        return SearchAnswer(await self._to_hits(results, search), seconds=seconds)

    async def send(self, request: ProviderRequest, seconds: float) -> tuple[str, float]:
        """Return the body of a 200 and the seconds it took. Each call waits its turn and counts against the quota."""
        async with self.context.http.get_limiter(self.name, self.terms).slot(self.name):
            if self._refused is not None:  # by an earlier answer, perhaps while this one waited for its turn
                raise self.explain(self._refused)
            quota, day = self.terms.per_day, today()
            counter = f"quota:{self.name}:{day}"
            if quota is not None and await self.context.cache.count(counter, seconds=_DAY_SECONDS) > quota:
                raise SourceError(
                    f"{self.name} was asked {quota} times today, which is its quota; it resets on "
                    f"{day + timedelta(days=1)} at 00:00 UTC",
                    help=f"Raise search.requests_per_day for {self.name} if your plan allows more.",
                    provider=self.name,
                )
            began = monotonic()
            reply = await self.fetch(self._to_http_request(request), seconds)
            reply = reply._replace(status=self.read_status(reply))
            if reply.status == 200:
                return reply.text, monotonic() - began
            error = self.explain(reply)
            if reply.status in self.final_statuses and not error.retryable:
                self._refused = reply
            raise error

    async def fetch(self, request: HttpRequest, seconds: float) -> HttpResponse:
        return await self.context.http.fetch(self.name, request, seconds=seconds)

    async def _ask_with_retries(self, fee: Fee, request: ProviderRequest, budget: Budget) -> "_PaidResults":
        """Retry what may help. Each attempt is paid for: a provider that was too slow may bill it all the same."""
        if monotonic() < self._rests_until:
            raise unreachable_error(self.name)
        policy = self.context.http.policy
        seconds_left, attempt = policy.overall, 0
        while True:
            attempt += 1
            began, seconds = monotonic(), min(self.settings.seconds, seconds_left)
            try:
                return await self._ask_once(fee, request, budget, seconds)
            except SourceError as error:
                crowded = error.context.get("status") == 429
                pause = policy.pause_before(attempt, error.context.get("retry_after"), crowded=crowded)  # type: ignore[arg-type]
                # What was longer than `seconds` was spent waiting for a turn.
                seconds_left -= min(monotonic() - began, seconds) + pause
                last = attempt == policy.attempts or pause > policy.max_pause or seconds_left <= 0
                if not error.retryable or last:
                    self._rests_until = monotonic() + policy.rest if error.context.get("unreachable") else 0.0
                    raise
            await asyncio.sleep(pause)

    async def _ask_once(self, fee: Fee, request: ProviderRequest, budget: Budget, seconds: float) -> "_PaidResults":
        """Parse an answer before it is booked and stored: a bad one would be given again for the rest of the run."""
        parsed: list[_PaidResults] = []

        async def answer() -> str:
            body, took = await self.send(request, seconds)
            parsed.append(_PaidResults(self._parse_body(body), took))
            return body

        body = await budget.buy(fee, answer)
        return parsed[0] if parsed else _PaidResults(self._parse_body(body))

    def _to_http_request(self, request: ProviderRequest) -> HttpRequest:
        if variable := self.own_terms.key:
            if self.own_terms.key_required and not self.key:
                raise _source_error(self.name, f"{self.name} needs a key", f"Set {variable.upper()}.", 401)
            if not self.key.isascii() or any(c.isspace() or not c.isprintable() for c in self.key):
                raise _bad_key_error(self.name, variable)  # no header can carry it
        headers = {"User-Agent": self.context.settings.harvest.user_agent, "Accept": "*/*", **request.headers}
        params = {**_drop_none(request.params), **request.secrets}
        return HttpRequest(self._url(request), params, headers, request.json and _drop_none(request.json))

    def _url(self, request: ProviderRequest) -> str:
        return f"{self.address.rstrip('/')}/{request.url.lstrip('/')}" if request.url else self.address

    def _describe(self, request: ProviderRequest) -> str:
        """Return the request as it may be stored: without headers and user names, which hold keys and passwords."""
        url = re.sub(r"//[^/?#]*@", "//", self._url(request))
        return json.dumps([url, _drop_none(request.params), request.json and _drop_none(request.json)], sort_keys=True)

    def _parse_body(self, body: str) -> tuple[ProviderResult, ...]:
        try:
            return tuple(clean_results(self.parse_results(body)))
        except (ValueError, ArithmeticError, LookupError, RecursionError) as error:  # its text may quote the answer
            raise SourceError(
                f"{self.name} sent an answer in an unknown format",
                help="The provider may have changed its interface: look for a newer version of OpenAssay.",
                provider=self.name,
                reason=type(error).__name__,
            ) from None

    async def _to_hits(self, results: "ProviderResults", search: SearchRequest) -> list[Hit]:
        """Turn results into hits; a text that can be read by itself is stored as a document."""
        hits = []
        for rank, result in enumerate(results.found[: search.limit], 1):
            hit = Hit(
                provider=self.name,
                query=search.query,
                rank=rank,
                host=page_host(result.url) or self._document_host(result.url),
                kind=self.kind,
                **result.model_dump(exclude={"text"}),
            )
            if len(result.text) >= self.min_text:
                document = Document(
                    hash=hashlib.sha256(result.text.encode()).hexdigest(),
                    host=self._document_host(result.url),
                    fetched=results.asked,
                    kind=self.kind,
                    **result.model_dump(exclude={"snippet", "fulltext"}),
                )
                await self.context.store.put(document)
                hit = hit.model_copy(update={"document": document.hash, "start": 0, "end": len(document.text)})
            hits.append(hit)
        return hits

    def _document_host(self, url: str) -> str:
        return page_host(url)


class PaperSource(ApiSource):
    """The base of catalogues of papers."""

    types = ("academic",)
    kind = "academic"

    def since(self, search: SearchRequest) -> date | None:
        """Return how far to look back, in whole years: of many papers no more is known."""
        years = self.settings.academic_years
        return search.since or (date(today().year - years, 1, 1) if years else None)


def make_paper(
    *,
    url: str,
    title: str,
    abstract: str = "",
    published: date | None = None,
    authors: Iterable[str | None] = (),
    free: str | None = None,
) -> ProviderResult:
    """Make a result of a paper: the abstract can be read by itself, and `free` is where the whole paper can."""
    return ProviderResult(
        url=url,
        title=title,
        snippet=shorten(abstract, _PAPER_SNIPPET),
        published=published,
        author=format_byline(authors),
        text=abstract,
        fulltext=free if free and free != url else None,
    )


class ProviderResults(Record):
    """What a provider found, and when it was asked: an entry of the cache."""

    asked: datetime
    found: tuple[ProviderResult, ...]


class _PaidResults(NamedTuple):
    found: tuple[ProviderResult, ...]
    seconds: float = 0.0  # 0: an answer that was paid for before


class _UnlimitedBudget:
    """A `protocols.Budget` without a limit, for `ApiSource.search`."""

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        return await request()


def clean_results(results: Iterable[ProviderResult]) -> Iterator[ProviderResult]:
    """Clean and bound results, each address once, and only such as can be fetched."""
    seen = set()
    for result in results:
        url = result.url.strip()
        host, page = page_host(url), url.partition("#")[0]
        if not host or page in seen:
            continue
        seen.add(page)
        yield ProviderResult(
            url=url,
            title=to_line(result.title, MAX_TITLE) or host,
            snippet=to_line(result.snippet, MAX_SNIPPET),
            published=result.published,
            author=to_line(result.author or "", MAX_TITLE) or None,
            text=clean_text(result.text)[:MAX_TEXT].rstrip(),
            fulltext=result.fulltext if result.fulltext and page_host(result.fulltext) else None,
        )


def page_host(url: str) -> str:
    """Return the host of a page that can be fetched; empty for anything else."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:  # of the port, or of an IPv6 address
        return ""
    printable = not any(character.isspace() or not character.isprintable() for character in url)
    return (parts.hostname or "") if valid and printable and len(url) <= MAX_URL else ""


def _drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def status_error(name: str, reply: HttpResponse, key: str | None, *, has_key: bool) -> SourceError:
    """Return what a provider means by a status other than 200. The body is never quoted: it may repeat the key.

    `key` is the field of `settings.Keys` that holds the provider's key."""
    status = reply.status
    if status in (401, 403) and key and has_key:
        return _bad_key_error(name, key)
    if status in (401, 403):
        help = f"Leave it out with search.without{f', or set {key.upper()}' if key else ''}."
        return _source_error(name, f"{name} denied access (status {status})", help, status)
    if status in (402, 432, 433):  # 432 and 433 are Tavily's
        return _source_error(name, f"the credits for {name} are used up", "Raise the limit of your plan there.", status)
    if status == 429 or status == 408 or status >= 500:
        crowded = status == 429
        return SourceError(
            f"{name} was asked too often" if crowded else f"{name} returned a server error (status {status})",
            help="Wait a while, or lower search.requests_per_minute for it." if crowded else "Try again later.",
            retryable=True,
            provider=name,
            status=status,
            retry_after=reply.retry_after,
        )
    if 300 <= status < 400:
        return _source_error(name, f"{name} redirected the request", f"Correct search.endpoints.{name}.", status)
    return _source_error(name, f"{name} rejected the query (status {status})", "", status)


def _bad_key_error(name: str, key: str) -> SourceError:
    return _source_error(name, f"the key of {name} was refused", f"Check {key.upper()}, or unset it.", 401)


def _source_error(name: str, message: str, help: str, status: int) -> SourceError:
    return SourceError(message, help=help, provider=name, status=status)
