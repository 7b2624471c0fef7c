"""A search provider over HTTP. What they all need stands here; a provider's file says how to ask and how to read.

An answer comes from the cache, or it is asked for: within the provider's quota and rate, at its price, with a few
retries where they can help. Errors are SourceErrors that say whether a retry helps (429, timeouts and 5xx do, 401 and
403 do not) and never carry a key.
"""

import asyncio
import hashlib
import json
import math
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import ValidationError

from assay.errors import SourceError
from assay.model.inquiry import Found, Inquiry, Terms
from assay.model.plan import QueryType
from assay.model.record import Record
from assay.model.source import Hit, Kind
from assay.model.spend import MICRO, Fee
from assay.ports import Answer, Purse
from assay.search.http import Outgoing, Reply, unreachable
from assay.search.refusal import FINAL, key_missing, key_refused, refusal
from assay.search.registry import Bench
from assay.search.results import document_of, hit_of, tidy
from assay.settings import Searching
from assay.text.clean import clean

CACHE_VERSION = 2  # of what is kept; raised when providers are read differently
REACHABLE_SECONDS = 1.5
_DAY = 86_400.0


class Request(NamedTuple):
    """What is sent: `url` is below the provider's endpoint, or the endpoint itself when empty."""

    url: str = ""
    params: Mapping[str, str | int] = {}
    json: Mapping[str, Any] | None = None  # makes it a POST
    headers: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}  # parameters that go to the provider and nowhere else


class Findings(Record):
    """What a provider found, and when it was asked."""

    asked: datetime
    found: tuple[Found, ...]


class Sent(NamedTuple):
    body: str
    seconds: float


class Bought(NamedTuple):
    found: tuple[Found, ...]
    seconds: float = 0.0  # 0: an answer that was paid for before


class ApiSource(ABC):
    """Implements `ports.Source` and `ports.Remote`; one subclass a provider."""

    name: ClassVar[str]
    types: ClassVar[tuple[QueryType, ...]] = ("web",)
    kind: ClassVar[Kind] = "web"
    own_terms: ClassVar[Terms]
    endpoint: ClassVar[str]  # settings.search.endpoints may name another
    final: ClassVar[frozenset[int]] = FINAL  # statuses after which the provider is not asked again
    one_site: ClassVar[bool] = False  # finds pages of one site: asked beside a search of the web, never instead of it
    stands_in: ClassVar[bool] = False  # asked where there is no other search of the web
    longest_query: ClassVar[int] = 2000  # characters the provider takes; the rest is cut at a word

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._refused: Reply | None = None
        self._rests_until = 0.0  # monotonic; who could not be reached a moment ago is not tried again for each query

    @classmethod
    def build(cls, bench: Bench) -> Self:
        return cls(bench)

    @abstractmethod
    def request(self, inquiry: Inquiry) -> Request:
        """How the provider is asked, with every filter of the inquiry it knows."""

    @abstractmethod
    def found(self, body: str) -> Sequence[Found]:
        """The results in an answer, best first; ValueError (pydantic's included) when it is not what the provider
        documents. One bad result among good ones is left out."""

    def explain(self, reply: Reply) -> SourceError:
        """What an answer other than 200 means."""
        return refusal(self.name, reply, self.own_terms.key, held=bool(self.key))

    @property
    def settings(self) -> Searching:
        return self._bench.settings.search

    @property
    def terms(self) -> Terms:
        said = {
            "per_minute": self.settings.requests_per_minute.get(self.name),
            "per_day": self.settings.requests_per_day.get(self.name),
            "usd": self.settings.usd_per_request.get(self.name),
        }
        return self.own_terms.model_copy(update={name: value for name, value in said.items() if value is not None})

    @property
    def address(self) -> str:
        return self.settings.endpoints.get(self.name) or self.endpoint

    @property
    def key(self) -> str:
        """The provider's key; "" where there is none."""
        secret = getattr(self._bench.settings.keys, self.own_terms.key) if self.own_terms.key else None
        return secret.get_secret_value().strip() if secret else ""

    def is_available(self) -> bool:
        wanted = self.name not in self.settings.without
        return wanted and bool(self.key or not self.own_terms.key_required)

    def reachable(self) -> bool:
        try:
            place = urlsplit(self.address)
            port = place.port or {"https": 443, "http": 80}.get(place.scheme)
            if not (place.hostname and port):
                return False
            socket.create_connection((place.hostname, port), REACHABLE_SECONDS).close()
        except (OSError, ValueError):  # TimeoutError is an OSError; ValueError is an address that is none
            return False
        return True

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        asked = clean(query).strip()  # a record holds no half of a character pair
        if not asked or limit < 1:
            return []
        return (await self.ask(Inquiry(query=asked, limit=min(limit, 50)), _Unpaid())).hits

    async def ask(self, inquiry: Inquiry, purse: Purse) -> Answer:
        query = shortened(inquiry.query, self.longest_query)
        if not query:
            return Answer([])
        asked = inquiry.model_copy(update={"query": query})
        request = self.request(asked)
        shown = self._shown(request)
        key = "search:" + hashlib.sha256(f"{CACHE_VERSION} {self.name} {inquiry.limit} {shown}".encode()).hexdigest()
        kept = await self._kept(key)
        if kept is not None:
            return Answer(await self._hits(kept, inquiry), cached=True)
        fee = Fee(step="search", provider=self.name, request=shown, micros=math.ceil(self.terms.usd * MICRO))
        bought = await self._bought(fee, request, purse)
        results = Findings(asked=datetime.now(UTC), found=bought.found)
        await self._keep(key, results)
        return Answer(await self._hits(results, inquiry), seconds=bought.seconds)

    async def send(self, request: Request, seconds: float) -> Sent:
        """The body of an answer with status 200. Each attempt waits for its turn and counts against the quota."""
        async with self._bench.http.lane(self.name, self.terms).turn(self.name):
            return await self._attempt(request, seconds)

    async def fetch(self, outgoing: Outgoing, seconds: float) -> Reply:
        return await self._bench.http.fetch(self.name, outgoing, seconds=seconds)

    async def _bought(self, fee: Fee, request: Request, purse: Purse) -> Bought:
        """What may help is tried again, and each attempt is paid for by itself: a provider that was too slow may bill
        it all the same."""
        if monotonic() < self._rests_until:
            raise unreachable(self.name)
        pace = self._bench.http.pace
        left, attempt = pace.overall, 0
        while True:
            attempt += 1
            began, most = monotonic(), min(self.settings.seconds, left)
            try:
                return await self._once(fee, request, purse, most)
            except SourceError as error:
                crowded = error.context.get("status") == 429
                wait = pace.wait(attempt, error.context.get("retry_after"), crowded=crowded)  # type: ignore[arg-type]
                left -= min(monotonic() - began, most) + wait  # what was longer was spent waiting for a turn
                if not error.retryable or attempt == pace.attempts or wait > pace.longest or left <= 0:
                    self._rests_until = monotonic() + pace.rest if error.context.get("unreachable") else 0.0
                    raise
            await asyncio.sleep(wait)

    async def _once(self, fee: Fee, request: Request, purse: Purse, seconds: float) -> Bought:
        """An answer is read before it is booked and stored: a bad one would be given again for the rest of the run."""
        read: list[Bought] = []

        async def answer() -> str:
            body, took = await self.send(request, seconds)
            read.append(Bought(self._read(body), took))
            return body

        body = await purse.buy(fee, answer)
        return read[0] if read else Bought(self._read(body))

    async def _attempt(self, request: Request, seconds: float) -> Sent:
        if self._refused is not None:  # by an earlier answer, perhaps while this one waited for its turn
            raise self.explain(self._refused)
        await self._count()
        began = monotonic()
        reply = await self.fetch(self._outgoing(request), seconds)
        if reply.status == 200:
            return Sent(reply.text, monotonic() - began)
        error = self.explain(reply)
        if reply.status in self.final and not error.retryable:
            self._refused = reply
        raise error

    async def _count(self) -> None:
        quota = self.terms.per_day
        if quota is None:
            return
        today = datetime.now(UTC).date()
        if await self._bench.cache.count(f"quota:{self.name}:{today}", seconds=_DAY) > quota:
            raise SourceError(
                f"{self.name} was asked {quota} times today, which is its quota; it begins anew on "
                f"{today + timedelta(days=1)} at 00:00 UTC",
                help=f"Raise search.requests_per_day for {self.name} if your plan allows more.",
                provider=self.name,
            )

    def _outgoing(self, request: Request) -> Outgoing:
        if variable := self.own_terms.key:
            if self.own_terms.key_required and not self.key:
                raise key_missing(self.name, variable)
            if not self.key.isascii() or any(c.isspace() or not c.isprintable() for c in self.key):
                raise key_refused(self.name, variable)  # no header can carry it
        headers = {"User-Agent": self._bench.settings.harvest.user_agent, "Accept": "*/*", **request.headers}
        return Outgoing(self._url(request), {**request.params, **request.secrets}, headers, request.json)

    def _url(self, request: Request) -> str:
        return f"{self.address.rstrip('/')}/{request.url.lstrip('/')}" if request.url else self.address

    def _shown(self, request: Request) -> str:
        """The request as it may be stored: without headers and names before an @, which hold keys and passwords."""
        return json.dumps(
            [re.sub(r"//[^/?#]*@", "//", self._url(request)), dict(request.params), request.json], sort_keys=True
        )

    def _read(self, body: str) -> tuple[Found, ...]:
        try:
            return tuple(tidy(self.found(body)))
        except (ValueError, ArithmeticError, LookupError, RecursionError) as error:  # its text may quote the answer
            raise SourceError(
                f"{self.name} answered in a form Assay does not know",
                help="The provider may have changed its interface: look for a newer version of Assay.",
                provider=self.name,
                reason=type(error).__name__,
            ) from None

    async def _kept(self, key: str) -> Findings | None:
        if not self.settings.cache_hours or (value := await self._bench.cache.get(key)) is None:
            return None
        try:
            return Findings.model_validate_json(value)
        except ValidationError:  # written by another version
            return None

    async def _keep(self, key: str, results: Findings) -> None:
        if hours := self.settings.cache_hours:
            await self._bench.cache.put(key, results.model_dump_json().encode(), seconds=hours * 3600)

    async def _hits(self, results: Findings, inquiry: Inquiry) -> list[Hit]:
        hits = []
        for rank, result in enumerate(results.found[: inquiry.limit], 1):
            document = document_of(result, self.kind, results.asked)
            if document is not None:
                await self._bench.store.put(document)
            hits.append(hit_of(result, document, self.name, self.kind, inquiry.query, rank))
        return hits


class _Unpaid:
    """A ports.Purse without a bottom, for `search`."""

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        return await request()


def shortened(query: str, longest: int) -> str:
    """One line of at most so many characters, cut at a word where there is one."""
    line = " ".join(clean(query).split())
    if len(line) <= longest:
        return line
    return line[: longest + 1].rpartition(" ")[0] or line[:longest]
