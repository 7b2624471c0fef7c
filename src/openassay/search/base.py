"""A search provider over HTTP. What they all need stands here; a provider's file says how to ask and how to read.

An answer comes from the cache, or it is asked for: within the provider's quota and rate, at its price, with a few
retries where they can help. Errors are SourceErrors that say whether a retry helps (429, timeouts and 5xx do, 401 and
403 do not) and never carry a key.
"""

import asyncio
import hashlib
import html
import json
import math
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any, ClassVar, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from openassay.errors import SourceError, UsageError
from openassay.models.base import Record
from openassay.models.evidence import Document, DocumentKind, Hit, ProviderResult, ProviderTerms, SearchRequest
from openassay.models.plan import Depth, QueryType
from openassay.models.spend import MICRO, CostEstimate, Fee
from openassay.protocols import Budget, RemoteSource, SearchAnswer, Source
from openassay.search.http import HttpRequest, HttpResponse, unreachable_error
from openassay.search.registry import SourceContext, source_names
from openassay.settings import SearchSettings, Settings
from openassay.text.urls import host_of, registrable_domain
from openassay.text.words import clean_text, content_words

# What a provider means by a status other than 200. The body is never quoted: it may repeat the key.

FINAL_STATUSES = frozenset({401, 402, 403, 432, 433})  # asking again would be answered in the same way


def status_error(name: str, reply: HttpResponse, key: str | None, *, held: bool) -> SourceError:
    """`key` is the field of settings.Keys for the provider's key, `held` whether there is one."""
    status = reply.status
    if status in (401, 403):
        return bad_key_error(name, key) if key and held else _access_error(name, status, key)
    if status in (402, 432, 433):  # 432 and 433 are Tavily's
        return _source_error(name, f"the credits for {name} are used up", "Raise the limit of your plan there.", status)
    if status == 429:
        return SourceError(
            f"{name} was asked too often", help="Wait a while, or lower search.requests_per_minute for it.",
            retryable=True, provider=name, status=status, retry_after=reply.retry_after,
        )  # fmt: skip
    if status == 408 or status >= 500:
        return SourceError(
            f"{name} is in trouble (status {status})", help="Try again later.", retryable=True,
            provider=name, status=status, retry_after=reply.retry_after,
        )  # fmt: skip
    if 300 <= status < 400:
        return _source_error(name, f"{name} sent OpenAssay elsewhere", f"Correct search.endpoints.{name}.", status)
    return _source_error(name, f"{name} did not accept the question (status {status})", "", status)


def bad_key_error(name: str, key: str) -> SourceError:
    return _source_error(name, f"the key of {name} was refused", f"Check {key.upper()}, or unset it.", 401)


def missing_key_error(name: str, key: str) -> SourceError:
    return _source_error(name, f"{name} needs a key", f"Set {key.upper()}.", 401)


def _access_error(name: str, status: int, key: str | None) -> SourceError:
    help = f"Leave it out with search.without{f', or set {key.upper()}' if key else ''}."
    return _source_error(name, f"{name} turned OpenAssay away (status {status})", help, status)


def _source_error(name: str, message: str, help: str, status: int) -> SourceError:
    return SourceError(message, help=help, provider=name, status=status)


# What the answers of catalogues have in common: entries of which some are broken, names, partial dates, markup.

_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_BLOCK = r"(?:jats:)?(?:p|title|sec|list|list-item|disp-formula)|br|div"
_INLINE = r"(?:jats|mml):[\w-]+|i|b|u|em|sc|scp|sub|sup|tt|strong|italic|bold|span|inline-formula|xref|ext-link"
_ATTRIBUTES = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))*\s*/?"""
# Only tags that titles and abstracts have: "p < 0.05" and "a <b or c> d" are text.
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.I)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.I)
_HEADING = re.compile(r"\A(?:abstract|summary) ?[:.]?\n", re.I)
_DATE = re.compile(r"(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?")


class ProviderEntry(BaseModel):
    """The base of what is read from an answer: what we do not know of is none of our business."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def read(cls, body: str) -> Self:
        return cls.model_validate_json(repair_json(body))


def repair_json(body: str, *, strict: bool = True) -> str:
    """JSON in which a "?" stands for half an emoji: where a provider cuts a text it may leave that much of one, no
    encoding can hold it, and all results would be lost for one. Unless `strict`, strings may have line breaks."""
    if strict and "\\ud" not in body.lower():
        return body
    return json.dumps(json.loads(body, strict=strict), ensure_ascii=False).encode(errors="replace").decode()


E = TypeVar("E", bound=ProviderEntry)


def parse_leniently(model: type[E], items: Iterable[object]) -> list[E]:
    """The items that are as documented; a broken one is left out."""
    kept = []
    for item in items:
        try:
            kept.append(model.model_validate(item))
        except ValidationError:
            continue
    return kept


def format_byline(names: Iterable[str | None]) -> str | None:
    """All of up to three authors, else the first two: "Ada Obi, Bo Li et al."."""
    known = [" ".join(name.split()) for name in names if name and name.strip()]
    if len(known) > 3:
        return f"{known[0]}, {known[1]} et al."
    return ", ".join(known) or None


def parse_iso_date(text: str | None) -> date | None:
    """The date a text begins with, as 2024, 2024-05, 2024-05-03 or 20240503; the first day of what it names."""
    match = _DATE.match(text or "")
    return date_from_parts(*(int(part) for part in match.groups() if part)) if match else None


def date_from_parts(*parts: int | None) -> date | None:
    """A date of a year, a month and a day, of which the last may be missing; None for one that cannot be."""
    year, month, number = (*parts, None, None, None)[:3]
    try:
        return date(year or 0, month or 1, number or 1)
    except (ValueError, OverflowError):
        return None


def today() -> date:
    return datetime.now(UTC).date()


def doi_url(doi: str) -> str:
    """Where a DOI leads; old ones have characters that an address may not."""
    bare = re.sub(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", "", doi.strip(), flags=re.I)
    return f"https://doi.org/{quote(bare, safe='/:;().,-_~!$&*+=@')}"


def strip_markup(marked: str) -> str:
    """A title or an abstract without its tags (HTML, JATS, MathML), also where they were escaped once more."""
    lines = _strip_tags(html.unescape(_strip_tags(marked))).splitlines()
    return _HEADING.sub("", "\n".join(line.strip() for line in lines if line.strip()))


def _strip_tags(marked: str) -> str:
    return _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n", marked))


def query_keywords(query: str, most: int) -> list[str]:
    """The first words of a question that carry meaning, as they are spelt: "US" is a country, "us" is nobody."""
    shouted = query.isupper()
    first: dict[str, str] = {}
    for word in _WORD.findall(query):
        if word not in _OPERATORS:
            first.setdefault(word.casefold(), word)
    words = list(first.values())
    kept = [word for word in words if content_words(word) or (word.isupper() and len(word) > 1 and not shouted)]
    return (kept or words or query.split())[:most]


def join_terms(terms: Sequence[str], *, all_of: int, together: str = " AND ", longest: int = 1000) -> str:
    """Few terms must all be found; of many any may, since an index that wants them all finds nothing. The last are
    left out where there is no room for them."""
    query = (together if len(terms) <= all_of else " OR ").join(terms)
    if len(query) > longest and len(terms) > 1:
        return join_terms(terms[:-1], all_of=all_of, together=together, longest=longest)
    return query[:longest]


# From a provider's results to hits: checked one by one, cleaned, and without what could not be fetched.

READABLE = 200  # characters from which on a text can be read by itself
LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
LONGEST_TEXT = 100_000
LONGEST_URL = 2_000


def parse_entries(model: type[E], items: Sequence[object]) -> list[E]:
    """The items that are as documented; ValueError when there are some and none is."""
    kept = parse_leniently(model, items)
    if items and not kept:
        raise ValueError("no result is as documented")
    return kept


def clean_results(found: Iterable[ProviderResult]) -> Iterator[ProviderResult]:
    """Cleaned and bounded results, each address once, only such as can be fetched."""
    seen = set()
    for result in found:
        url = result.url.strip()
        if _fetchable_host(url) and (place := url.partition("#")[0]) not in seen:
            seen.add(place)
            yield ProviderResult(
                url=url,
                title=to_line(result.title, LONGEST_TITLE) or _fetchable_host(url),
                snippet=to_line(result.snippet, LONGEST_SNIPPET),
                published=result.published,
                author=to_line(result.author or "", LONGEST_TITLE) or None,
                text=clean_text(result.text)[:LONGEST_TEXT].rstrip(),
                fulltext=result.fulltext if result.fulltext and _fetchable_host(result.fulltext) else None,
            )


def to_document(found: ProviderResult, kind: DocumentKind, fetched: datetime) -> Document | None:
    if len(found.text) < READABLE:
        return None
    return Document(
        hash=hashlib.sha256(found.text.encode()).hexdigest(), text=found.text, url=found.url, title=found.title,
        host=_fetchable_host(found.url), author=found.author, published=found.published, fetched=fetched, kind=kind,
    )  # fmt: skip


def to_hit(
    found: ProviderResult, document: Document | None, provider: str, kind: DocumentKind, query: str, rank: int
) -> Hit:
    hit = Hit(
        provider=provider,
        query=query,
        rank=rank,
        url=found.url,
        title=found.title,
        snippet=found.snippet,
        host=_fetchable_host(found.url),
        kind=kind,
        published=found.published,
        author=found.author,
        fulltext=found.fulltext,
    )
    if document is None:
        return hit
    return hit.model_copy(update={"document": document.hash, "start": 0, "end": len(document.text)})


def _fetchable_host(url: str) -> str:
    """ "" for what is no address of a page."""
    try:
        place = urlsplit(url)
        place.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return ""
    seen = not any(character.isspace() or not character.isprintable() for character in url)
    fetched = seen and place.scheme in ("http", "https") and len(url) <= LONGEST_URL
    return (place.hostname or "") if fetched else ""


def to_line(text: str, longest: int) -> str:
    return " ".join(clean_text(text).split())[:longest].rstrip()


CACHE_VERSION = 2  # of what is kept; raised when providers are read differently
REACHABLE_SECONDS = 1.5
_DAY = 86_400.0


class ProviderRequest(NamedTuple):
    """What is sent: `url` is below the provider's endpoint, or the endpoint itself when empty."""

    url: str = ""
    params: Mapping[str, str | int] = {}
    json: Mapping[str, Any] | None = None  # makes it a POST
    headers: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}  # parameters that go to the provider and nowhere else


class ProviderResults(Record):
    """What a provider found, and when it was asked."""

    asked: datetime
    found: tuple[ProviderResult, ...]


class ReplyBody(NamedTuple):
    body: str
    seconds: float


class ReplyResults(NamedTuple):
    found: tuple[ProviderResult, ...]
    seconds: float = 0.0  # 0: an answer that was paid for before


class ApiSource(ABC):
    """Implements `ports.Source` and `ports.Remote`; one subclass a provider."""

    name: ClassVar[str]
    types: ClassVar[tuple[QueryType, ...]] = ("web",)
    kind: ClassVar[DocumentKind] = "web"
    own_terms: ClassVar[ProviderTerms]
    endpoint: ClassVar[str]  # settings.search.endpoints may name another
    final: ClassVar[frozenset[int]] = FINAL_STATUSES  # statuses after which the provider is not asked again
    one_site: ClassVar[bool] = False  # finds pages of one site: asked beside a search of the web, never instead of it
    stands_in: ClassVar[bool] = False  # asked where there is no other search of the web
    longest_query: ClassVar[int] = 2000  # characters the provider takes; the rest is cut at a word

    def __init__(self, bench: SourceContext) -> None:
        self._bench = bench
        self._refused: HttpResponse | None = None
        self._rests_until = 0.0  # monotonic; who could not be reached a moment ago is not tried again for each query

    @classmethod
    def build(cls, bench: SourceContext) -> Self:
        return cls(bench)

    @abstractmethod
    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        """How the provider is asked, with every filter of the inquiry it knows."""

    @abstractmethod
    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        """The results in an answer, best first; ValueError (pydantic's included) when it is not what the provider
        documents. One bad result among good ones is left out."""

    def explain(self, reply: HttpResponse) -> SourceError:
        """What an answer other than 200 means."""
        return status_error(self.name, reply, self.own_terms.key, held=bool(self.key))

    @property
    def settings(self) -> SearchSettings:
        return self._bench.settings.search

    @property
    def terms(self) -> ProviderTerms:
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

    def is_reachable(self) -> bool:
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
        asked = clean_text(query).strip()  # a record holds no half of a character pair
        if not asked or limit < 1:
            return []
        return (await self.ask(SearchRequest(query=asked, limit=min(limit, 50)), _InfiniteBudget())).hits

    async def ask(self, inquiry: SearchRequest, purse: Budget) -> SearchAnswer:
        query = shorten(inquiry.query, self.longest_query)
        if not query:
            return SearchAnswer([])
        asked = inquiry.model_copy(update={"query": query})
        request = self.build_request(asked)
        shown = self._describe(request)
        key = "search:" + hashlib.sha256(f"{CACHE_VERSION} {self.name} {inquiry.limit} {shown}".encode()).hexdigest()
        kept = await self._read_cache(key)
        if kept is not None:
            return SearchAnswer(await self._to_hits(kept, inquiry), cached=True)
        fee = Fee(step="search", provider=self.name, request=shown, micros=math.ceil(self.terms.usd * MICRO))
        bought = await self._ask_with_retries(fee, request, purse)
        results = ProviderResults(asked=datetime.now(UTC), found=bought.found)
        await self._write_cache(key, results)
        return SearchAnswer(await self._to_hits(results, inquiry), seconds=bought.seconds)

    async def send(self, request: ProviderRequest, seconds: float) -> ReplyBody:
        """The body of an answer with status 200. Each attempt waits for its turn and counts against the quota."""
        async with self._bench.http.get_limiter(self.name, self.terms).slot(self.name):
            return await self._send_once(request, seconds)

    async def fetch(self, outgoing: HttpRequest, seconds: float) -> HttpResponse:
        return await self._bench.http.fetch(self.name, outgoing, seconds=seconds)

    async def _ask_with_retries(self, fee: Fee, request: ProviderRequest, purse: Budget) -> ReplyResults:
        """What may help is tried again, and each attempt is paid for by itself: a provider that was too slow may bill
        it all the same."""
        if monotonic() < self._rests_until:
            raise unreachable_error(self.name)
        pace = self._bench.http.pace
        left, attempt = pace.overall, 0
        while True:
            attempt += 1
            began, most = monotonic(), min(self.settings.seconds, left)
            try:
                return await self._ask_once(fee, request, purse, most)
            except SourceError as error:
                crowded = error.context.get("status") == 429
                wait = pace.pause_before(attempt, error.context.get("retry_after"), crowded=crowded)  # type: ignore[arg-type]
                left -= min(monotonic() - began, most) + wait  # what was longer was spent waiting for a turn
                if not error.retryable or attempt == pace.attempts or wait > pace.longest or left <= 0:
                    self._rests_until = monotonic() + pace.rest if error.context.get("unreachable") else 0.0
                    raise
            await asyncio.sleep(wait)

    async def _ask_once(self, fee: Fee, request: ProviderRequest, purse: Budget, seconds: float) -> ReplyResults:
        """An answer is read before it is booked and stored: a bad one would be given again for the rest of the run."""
        read: list[ReplyResults] = []

        async def answer() -> str:
            body, took = await self.send(request, seconds)
            read.append(ReplyResults(self._parse_body(body), took))
            return body

        body = await purse.buy(fee, answer)
        return read[0] if read else ReplyResults(self._parse_body(body))

    async def _send_once(self, request: ProviderRequest, seconds: float) -> ReplyBody:
        if self._refused is not None:  # by an earlier answer, perhaps while this one waited for its turn
            raise self.explain(self._refused)
        await self._check_quota()
        began = monotonic()
        reply = await self.fetch(self._to_http_request(request), seconds)
        if reply.status == 200:
            return ReplyBody(reply.text, monotonic() - began)
        error = self.explain(reply)
        if reply.status in self.final and not error.retryable:
            self._refused = reply
        raise error

    async def _check_quota(self) -> None:
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

    def _to_http_request(self, request: ProviderRequest) -> HttpRequest:
        if variable := self.own_terms.key:
            if self.own_terms.key_required and not self.key:
                raise missing_key_error(self.name, variable)
            if not self.key.isascii() or any(c.isspace() or not c.isprintable() for c in self.key):
                raise bad_key_error(self.name, variable)  # no header can carry it
        headers = {"User-Agent": self._bench.settings.harvest.user_agent, "Accept": "*/*", **request.headers}
        return HttpRequest(self._url(request), {**request.params, **request.secrets}, headers, request.json)

    def _url(self, request: ProviderRequest) -> str:
        return f"{self.address.rstrip('/')}/{request.url.lstrip('/')}" if request.url else self.address

    def _describe(self, request: ProviderRequest) -> str:
        """The request as it may be stored: without headers and names before an @, which hold keys and passwords."""
        return json.dumps(
            [re.sub(r"//[^/?#]*@", "//", self._url(request)), dict(request.params), request.json], sort_keys=True
        )

    def _parse_body(self, body: str) -> tuple[ProviderResult, ...]:
        try:
            return tuple(clean_results(self.parse_results(body)))
        except (ValueError, ArithmeticError, LookupError, RecursionError) as error:  # its text may quote the answer
            raise SourceError(
                f"{self.name} answered in a form OpenAssay does not know",
                help="The provider may have changed its interface: look for a newer version of OpenAssay.",
                provider=self.name,
                reason=type(error).__name__,
            ) from None

    async def _read_cache(self, key: str) -> ProviderResults | None:
        if not self.settings.cache_hours or (value := await self._bench.cache.get(key)) is None:
            return None
        try:
            return ProviderResults.model_validate_json(value)
        except ValidationError:  # written by another version
            return None

    async def _write_cache(self, key: str, results: ProviderResults) -> None:
        if hours := self.settings.cache_hours:
            await self._bench.cache.put(key, results.model_dump_json().encode(), seconds=hours * 3600)

    async def _to_hits(self, results: ProviderResults, inquiry: SearchRequest) -> list[Hit]:
        hits = []
        for rank, result in enumerate(results.found[: inquiry.limit], 1):
            document = to_document(result, self.kind, results.asked)
            if document is not None:
                await self._bench.store.put(document)
            hits.append(to_hit(result, document, self.name, self.kind, inquiry.query, rank))
        return hits


class _InfiniteBudget:
    """A ports.Purse without a bottom, for `search`."""

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        return await request()


def shorten(query: str, longest: int) -> str:
    """One line of at most so many characters, cut at a word where there is one."""
    line = " ".join(clean_text(query).split())
    if len(line) <= longest:
        return line
    return line[: longest + 1].rpartition(" ")[0] or line[:longest]


# What a key or a contact is worth to those who give one.


def raise_limits(terms: ProviderTerms, name: str, settings: SearchSettings, **better: float) -> ProviderTerms:
    """Better terms, save what the settings have decided."""
    decided = {
        *(["per_minute"] if name in settings.requests_per_minute else ()),
        *(["per_day"] if name in settings.requests_per_day else ()),
    }
    return terms.model_copy(update={field: value for field, value in better.items() if field not in decided})


def add_contact(user_agent: str, contact: str | None) -> str:
    """A User-Agent that says whom to write to."""
    return f"{user_agent} ({contact})" if contact and contact.isascii() else user_agent


# What catalogues of papers share: how far they look back, and what their entries become.

SNIPPET = 300  # characters of an abstract


class PaperSource(ApiSource):
    types = ("academic",)
    kind = "academic"

    def since(self, inquiry: SearchRequest) -> date | None:
        """In whole years, since of many papers no more is known."""
        years = self.settings.academic_years
        return inquiry.since or (date(today().year - years, 1, 1) if years else None)


def make_paper(
    *,
    url: str,
    title: str,
    abstract: str = "",
    published: date | None = None,
    authors: Iterable[str | None] = (),
    free: str | None = None,
) -> ProviderResult:
    """The abstract can be read by itself; `free` is where the whole paper can."""
    return ProviderResult(
        url=url,
        title=title,
        snippet=shorten(abstract, SNIPPET),
        published=published,
        author=format_byline(authors),
        text=abstract,
        fulltext=free if free and free != url else None,
    )


# Whom a person can prefer or avoid: a host, or a source by its name.


def parse_host_or_source(said: str, settings: Settings) -> str:
    """A host as in "nasa.gov", also where its address was given; or a source's name."""
    name, known = said.strip().lower(), source_names(settings)
    if name in known:
        return name
    host = host_of(name if "://" in name else f"https://{name}").removeprefix("www.")
    if "." in host and registrable_domain(host):
        return host
    near = get_close_matches(name, known, n=1)
    raise UsageError(
        f"{said.strip()!r} is neither a host nor a source" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"A host is written like reddit.com; sources are {', '.join(known)}.",
    )


# What searching will cost at most, beside what a model's thinking does.

MAX_SUBQUESTIONS = {
    Depth.QUICK: 3,
    Depth.STANDARD: 5,
    Depth.COMPREHENSIVE: 7,
}  # the most sub-questions of a plan, by anyone


def add_search_costs(quote: CostEstimate, sources: Sequence[Source], depth: Depth, settings: Settings) -> CostEstimate:
    """Every query of a sub-question goes to each web source; providers of papers, news and code get one of them."""
    searches, usd = 0, 0.0
    for source in sources:
        if isinstance(source, RemoteSource) and source.terms.usd:
            asked = MAX_SUBQUESTIONS[depth] * (settings.max_search_iterations if "web" in source.types else 1)
            searches, usd = searches + asked, usd + asked * source.terms.usd
    return quote.model_copy(update={"searches": searches, "search_usd": round(usd, 4)})


# When a page was published, as search engines say it: 2024-03-05, Tue, 05 Mar 2024 10:00:00 GMT, 3 days ago.

_AGO = re.compile(r"(\d{1,3})\s+(minute|min|hour|day|week|month|year)s?\s+ago")
_DAYS = {"minute": 0.0, "min": 0.0, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_SPELT = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")


def parse_date(text: str | None, now: datetime | None = None) -> date | None:
    said = (text or "").strip()
    if re.match(r"\d{4}-\d\d", said):
        return parse_iso_date(said)
    if match := _AGO.match(said.lower()):
        return ((now or datetime.now(UTC)) - timedelta(days=int(match[1]) * _DAYS[match[2]])).date()
    for form in _SPELT:
        try:
            return datetime.strptime(said, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    try:
        return parsedate_to_datetime(said).date()
    except (ValueError, TypeError, OverflowError, IndexError):  # the last two of numbers that no date can have
        return None


# Filters by host in the query itself, for engines that know site: and -site:.


def add_site_filters(inquiry: SearchRequest, *, characters: int, words: int = 1000) -> str:
    """The query with its hosts; where both do not fit, the query gives way."""
    only = " OR ".join(f"site:{site}" for site in inquiry.sites)
    parts = [f"({only})" if len(inquiry.sites) > 1 else only, *(f"-site:{site}" for site in inquiry.without)]
    filters = " ".join(part for part in parts if part)
    room = characters - len(filters) - 1
    query = " ".join(shorten(inquiry.query, max(room, 1)).split()[: max(words - len(filters.split()), 1)])
    return f"{query} {filters}".rstrip()
