"""The search providers' wire formats, from the server's side. One file a provider, found by its presence.

A file of this package holds one `Format` and ends with `FORMAT = ThatFormat()`; the contract suite
(tests/contract/test_search_providers.py) then runs on it. A format says three things about its provider: how a request
is read (`asked`), how its documented answers look for a list of results (`answer`, `spoiled`, `misshapen`), and which
filters and fields it has at all (`filters`, `fields`, `most`). It is written from the provider's documentation, never
from OpenAssay's own code for it, so that the two can disagree.

    class Tavily(Format):
        name = "tavily"
        builds = "openassay.search.tavily:Tavily"
        ...

    FORMAT = Tavily()
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

from openassay.models.evidence import ProviderResult
from tests.fakes.http_server import ServerConnection, ServerRequest, ServerResponse
from tests.fakes.web import FakeWeb, WebVisit, build_reply

LONG_TEXT = "The harbour of Zanzibar was dredged to a depth of nine metres. " * 5  # long enough to be read by itself

# What a provider finds in the tests unless its format says otherwise; those that keep abstracts give `text`.
SAMPLES = (
    ProviderResult(
        url="https://port.example.org/zanzibar", title="The harbour of Zanzibar", snippet="Dredged to nine metres.",
        published=date(2024, 3, 5), author="Ada Obi", text=LONG_TEXT, fulltext="https://port.example.org/zanzibar.pdf",
    ),
    ProviderResult(
        url="http://news.example.com/a?b=1&c=ü", title="Ships & “quays”", snippet="More than 40 ships.",
        published=date(2023, 11, 30), author="Bo Li",
    ),
    ProviderResult(url="https://example.net/", title="A quay", snippet="Nothing more."),
)  # fmt: skip


class QueryParameters(NamedTuple):
    """What a request asks for, as the provider understands it; None or () for what it does not say."""

    query: str
    limit: int | None = None
    since: date | None = None
    until: date | None = None
    sites: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    language: str | None = None  # as in "de"
    key: str = ""  # where the provider looks for it


class SearchFormat(ABC):
    """A provider's documented wire format."""

    name: ClassVar[str]  # the source's, as in `openassay.sources`
    builds: ClassVar[str]  # "module:Class" of the source
    filters: ClassVar[frozenset[str]] = frozenset()  # of since, until, sites, without, language: what it can be asked
    fields: ClassVar[frozenset[str]] = frozenset({"snippet"})  # of snippet, published, author, text, fulltext
    most: ClassVar[int] = 50  # results in one answer, by its documentation
    requests: ClassVar[int] = 1  # for one search
    content_type: ClassVar[str] = "application/json"
    openings: ClassVar[bool] = False  # its texts are how pages begin: the whole is the page itself
    makes_addresses: ClassVar[bool] = False  # the source derives a result's address, from an identifier or a title
    key_setting: ClassVar[str | None] = None  # the field of settings.Keys; None for a provider without keys
    key_required: ClassVar[bool] = False

    def settings(self, url: str) -> dict[str, Any]:
        """Fields of settings.Searching with which the source asks a server at `url`."""
        return {"endpoints": {self.name: url}}

    def samples(self) -> Sequence[ProviderResult]:
        """At least three results the provider could have, as the source must report them, with only the fields of
        `fields`; a provider that makes addresses overrides it."""
        kept = self.fields | {"url", "title"}
        return [ProviderResult(**{name: value for name, value in found if name in kept}) for found in SAMPLES]

    @abstractmethod
    def parse_query(self, request: ServerRequest) -> QueryParameters:
        """How the provider reads a request (of a search in several requests, the first)."""

    @abstractmethod
    def build_answer(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        """The whole documented answer with these results, every documented field in its place; no results included."""

    @abstractmethod
    def build_answer_with_bad_result(self, request: ServerRequest, found: Sequence[ProviderResult]) -> str:
        """The same answer with one more result at its head that is broken: its address or its type is not as
        documented. The others must still be found."""

    def build_invalid_answer(self) -> str:
        """Well-formed, and not an answer of this provider."""
        return '{"something": "else", "results": 7, "items": 7, "data": 7}'


def load_formats() -> list[SearchFormat]:
    """All formats, by name."""
    from tests.fakes import search_catalogue_formats, search_feed_formats, search_web_formats

    modules = (search_catalogue_formats, search_feed_formats, search_web_formats)
    formats = [value for module in modules for value in vars(module).values() if isinstance(value, SearchFormat)]
    return sorted(formats, key=lambda format: format.name)


def split_site_filters(query: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A query with site: and -site: in it, as search engines read it: the words, the hosts, and the hosts ruled out."""
    without = tuple(re.findall(r"(?<!\S)-site:(\S+)", query))
    sites = tuple(re.findall(r"(?<![\S-])\(?site:([^\s)]+)", query))
    words = re.sub(r"\(?-?(?<!\w)site:[^\s)]+\)?(?: OR (?=site:))?", " ", query)
    return " ".join(words.split()), sites, without


def to_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# What the formats of catalogues have in common.

SNIPPET_LENGTH = 300  # characters of an abstract that stand for a snippet


class CatalogueFormat(SearchFormat):
    """Abstracts, names and dates, and where the whole is free; a hit shows how its abstract begins."""

    fields = frozenset({"snippet", "published", "author", "text", "fulltext"})

    def samples(self) -> Sequence[ProviderResult]:
        return [found.model_copy(update={"snippet": shorten_abstract(found.text)}) for found in super().samples()]


def shorten_abstract(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SNIPPET_LENGTH else line[: SNIPPET_LENGTH + 1].rpartition(" ")[0]


def get_param(request: ServerRequest, name: str) -> str:
    """ "" where a request does not have it."""
    return request.query.get(name, [""])[0]


def check_length(longest: int, query: str) -> str:
    if not 0 < len(query) <= longest:
        raise ValueError(f"a query of {len(query)} characters is refused")
    return query


def get_int_param(request: ServerRequest, name: str) -> int | None:
    return int(get_param(request, name)) if get_param(request, name) else None


# A search provider on this machine: real HTTP, its documented format, and whatever else it is told to answer.

SearchReply = ServerResponse | Callable[[ServerConnection, ServerRequest], Awaitable[None]]


class FakeSearchCall(NamedTuple):
    request: ServerRequest
    time: float  # monotonic
    at_once: int  # requests under way, itself included


class FakeSearchProvider:
    """`async with FakeSearchProvider(format) as provider` finds `provider.found` whatever it is asked.

    What `then` was given comes first, one for each request. `delay` is in seconds."""

    def __init__(self, format: SearchFormat) -> None:
        self.format = format
        self.found: Sequence[ProviderResult] = format.samples()
        self.delay = 0.0
        self.seen: list[FakeSearchCall] = []
        self._turns: list[SearchReply] = []
        self._under_way = 0
        self._web = FakeWeb()
        self._web.add_handler("http://*/*", self._handle_visit)

    async def __aenter__(self) -> Self:
        await self._web.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._web.__aexit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._web.port}"

    @property
    def queries(self) -> list[QueryParameters]:
        return [self.format.parse_query(seen.request) for seen in self.seen]

    def reply_next(self, *turns: SearchReply) -> None:
        self._turns += turns

    def clear_replies(self) -> None:
        """Drop what is left of `then`."""
        self._turns.clear()

    def build_reply(
        self, text: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> ServerResponse:
        return build_reply(text, status=status, type=self.format.content_type, headers=headers)

    async def _handle_visit(self, wire: ServerConnection, visit: WebVisit) -> None:
        request = ServerRequest(visit.method, visit.path, visit.query, visit.headers, visit.body)
        self._under_way += 1
        self.seen.append(FakeSearchCall(request, monotonic(), self._under_way))
        try:
            await asyncio.sleep(self.delay)
            await self._send_answer(wire, request)
        finally:
            self._under_way -= 1

    async def _send_answer(self, wire: ServerConnection, request: ServerRequest) -> None:
        turn = self._turns.pop(0) if self._turns else self.build_reply(self.format.build_answer(request, self.found))
        if isinstance(turn, ServerResponse):
            await wire.send(turn)
        else:
            await turn(wire, request)
