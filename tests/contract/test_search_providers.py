"""Every search provider over real HTTP: one suite, played in each one's documented format."""

import asyncio
import gzip
import json
import logging
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from openassay.errors import BudgetError, SourceError
from openassay.models.evidence import SearchRequest
from openassay.models.spend import Fee
from openassay.protocols import RemoteSource, Source
from openassay.search.base import ApiSource
from openassay.search.http import MAX_BYTES, ProviderClient, RetryPolicy
from openassay.search.registry import SourceContext
from openassay.settings import Keys, SearchSettings, Settings
from openassay.testing import MemoryCache, MemoryDocuments
from tests.fakes.http_server import ServerConnection, ServerRequest
from tests.fakes.search_api import FakeSearchProvider, load_formats

pytestmark = pytest.mark.requirement("C-07")

KEY = "sk-very-secret-0123456789"
INQUIRY = SearchRequest(query="harbour of Zanzibar", limit=10)
QUICK = RetryPolicy(pause=0.01, max_pause=0.5, overall=5.0)
FORMATS = load_formats()
BOMB = gzip.compress(b" " * 20_000_000, 1)
TOWNS = "Zanzibar Mombasa Lamu Kilwa Sofala Pemba Malindi Muscat Aden Hormuz Calicut Goa Malacca".split()


class CountingPurse:
    """A ports.Purse that keeps what was bought, and gives it again to who asks the same."""

    def __init__(self) -> None:
        self.fees: list[Fee] = []
        self.stored: dict[str, str] = {}

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        if fee.request not in self.stored:
            self.stored[fee.request] = await request()
            self.fees.append(fee)
        return self.stored[fee.request]


class Played:
    """A provider and the source that asks it; `build` makes another source, as the next run would."""

    def __init__(self, provider: FakeSearchProvider) -> None:
        self.provider = provider
        self.format = provider.format
        self.http = ProviderClient(QUICK)
        self.store = MemoryDocuments()
        self.cache = MemoryCache()
        self.purse = CountingPurse()
        self.source = self.build()

    def build(self, url: str | None = None, key: str = KEY, **search: Any) -> ApiSource:
        name = self.format.name
        searching = {"requests_per_minute": {name: 60_000}, "seconds": 3.0, **search}
        searching |= self.format.settings(url or self.provider.url)
        keys = {self.format.key_setting: SecretStr(key)} if self.format.key_setting and key else {}
        module, _, cls = self.format.builds.partition(":")
        bench = SourceContext(
            store=self.store, embedder=None, reader=None, open_index=None, cache=self.cache, http=self.http,  # type: ignore[arg-type]
            settings=Settings(search=SearchSettings(**searching), keys=Keys(**keys)),  # type: ignore[arg-type]
        )  # fmt: skip
        source = getattr(import_module(module), cls).build(bench)
        assert isinstance(source, ApiSource)
        return source

    async def ask(self, inquiry: SearchRequest = INQUIRY, source: ApiSource | None = None) -> list[Any]:
        return (await (source or self.source).ask(inquiry, self.purse)).hits

    async def refused(self, inquiry: SearchRequest = INQUIRY, source: ApiSource | None = None) -> SourceError:
        with pytest.raises(SourceError) as caught:
            await self.ask(inquiry, source)
        return caught.value

    def first_requests(self) -> list[ServerRequest]:
        """Of each search, the request that says what is searched for."""
        return [seen.request for seen in self.provider.seen[:: self.format.requests]]

    @property
    def requests(self) -> int:
        return len(self.provider.seen)


@pytest.fixture(params=FORMATS, ids=lambda format: str(format.name))
async def played(request: pytest.FixtureRequest) -> AsyncIterator[Played]:
    async with FakeSearchProvider(request.param) as provider:
        one = Played(provider)
        yield one
        await one.http.close()


def urls(hits: list[Any]) -> list[str]:
    return [hit.url for hit in hits]


# What is found ---------------------------------------------------------------------------------------


@pytest.mark.requirement("F-04", "W-07")
async def test_results_keep_their_order_and_their_fields(played: Played) -> None:
    hits = await played.ask()
    found = played.format.samples()
    assert urls(hits) == [result.url for result in found]
    assert [hit.rank for hit in hits] == list(range(1, len(found) + 1))
    for hit, result in zip(hits, found, strict=True):
        assert (hit.title, hit.provider, hit.query) == (result.title, played.format.name, INQUIRY.query)
        assert (hit.kind, hit.host) == (played.source.kind, urlsplit(result.url).hostname)
        assert hit.published == result.published
        assert hit.author == result.author
        assert hit.fulltext == (result.url if played.format.openings else result.fulltext)
        assert " ".join(result.snippet.split()) in hit.snippet
    assert played.requests == played.format.requests


async def test_a_text_that_can_be_read_by_itself_is_stored(played: Played) -> None:
    for hit, result in zip(await played.ask(), played.format.samples(), strict=True):
        if len(result.text) < 200:
            assert (hit.document, hit.start, hit.end) == (None, None, None)
            continue
        document = await played.store.get(hit.document)
        assert document.text[hit.start : hit.end] == document.text == result.text.strip()
        assert (document.url, document.title, document.kind) == (hit.url, hit.title, played.source.kind)
        assert (document.published, document.author, document.host) == (hit.published, hit.author, hit.host)
    assert len(played.store.stored) == sum(len(result.text) >= 200 for result in played.format.samples())


@pytest.mark.requirement("W-07")
async def test_filters_are_sent(played: Played) -> None:
    inquiry = SearchRequest(
        query="harbour of Zanzibar", limit=7, since=date(2024, 3, 5), until=date(2024, 11, 30), language="de",
        sites=("example.org", "example.com"), without=("spam.example",),
    )  # fmt: skip
    await played.ask(inquiry)
    asked = played.format.parse_query(played.provider.seen[0].request)
    for name in played.format.filters:
        assert getattr(asked, name) == getattr(inquiry, name), name
    assert asked.limit in (None, 7)
    assert {"harbour", "zanzibar"} <= set(asked.query.casefold().split())
    assert asked.key == (KEY if played.format.key_setting else "")


async def test_one_site_and_one_date_are_filters_too(played: Played) -> None:
    inquiry = SearchRequest(query="harbour", since=date(2024, 3, 5), sites=("example.org",))
    await played.ask(inquiry)
    asked = played.format.parse_query(played.provider.seen[0].request)
    for name in played.format.filters & {"since", "sites"}:
        assert getattr(asked, name) == getattr(inquiry, name), name


async def test_nothing_found_is_no_error(played: Played) -> None:
    played.provider.found = []
    assert await played.ask() == []


async def test_the_limit_holds(played: Played) -> None:
    assert len(await played.ask(INQUIRY.model_copy(update={"limit": 2}))) == 2
    await played.ask(SearchRequest(query="another", limit=50))
    limits = [asked.limit for asked in map(played.format.parse_query, played.first_requests())]
    assert limits[0] in (None, 2)
    assert limits[1] is None or 10 <= limits[1] <= played.format.most


async def test_a_result_comes_once(played: Played) -> None:
    played.provider.found = [*played.format.samples(), played.format.samples()[0]]
    assert urls(await played.ask()) == [result.url for result in played.format.samples()]


@pytest.mark.requirement("W-17")
async def test_only_what_can_be_fetched_is_a_result(played: Played) -> None:
    if played.format.makes_addresses:
        pytest.skip("it makes the addresses itself")
    good = played.format.samples()[0]
    bad = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "ftp://example.org/",
        "http://",
        "//x.org/",
        "http://e\u202eg.org/",
    ]
    played.provider.found = [*(good.model_copy(update={"url": url}) for url in bad), good]
    assert urls(await played.ask()) == [good.url]


@pytest.mark.requirement("W-17")
async def test_what_cannot_be_seen_is_not_in_a_hit(played: Played) -> None:
    good = played.format.samples()[0]
    hidden = "The\u200b har\u202ebour\U000e0041 of\u00a0 Zanzibar"
    played.provider.found = [good.model_copy(update={"title": hidden})]
    assert [hit.title for hit in await played.ask()] == ["The harbour of Zanzibar"]


async def test_one_bad_result_among_good_ones_is_left_out(played: Played) -> None:
    async def spoiled(wire: ServerConnection, request: ServerRequest) -> None:
        await wire.send(
            played.provider.build_reply(played.format.build_answer_with_bad_result(request, played.format.samples()))
        )

    if played.format.requests > 1:
        pytest.skip("which of its answers is spoiled is its own tests' matter")
    played.provider.reply_next(spoiled)
    assert urls(await played.ask()) == [result.url for result in played.format.samples()]


@pytest.mark.slow
async def test_any_text_can_be_asked(played: Played, eval_data: Path) -> None:
    strings = json.loads((eval_data / "hostile" / "naughty-strings.json").read_text("utf-8"))
    for text in [*strings[::25], "\ud800 lone", "word " * 500, "x" * 5000, "\u200b"]:
        before = played.requests
        await played.source.search(text, limit=5)
        for seen in played.provider.seen[before : before + 1]:
            played.format.parse_query(seen.request)  # raises where the provider would turn it down


# What goes wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_not_tried_again(played: Played, status: int) -> None:
    played.provider.reply_next(played.provider.build_reply(f'{{"error": "bad key {KEY}"}}', status))
    error = await played.refused()
    assert not error.retryable
    assert error.help
    if played.format.key_setting:
        assert played.format.key_setting.upper() in error.help
        assert "key" in error.message
    assert (await played.refused()).message == error.message
    assert played.requests == 1


@pytest.mark.slow
async def test_too_many_requests_are_tried_again_when_the_provider_says(played: Played) -> None:
    played.provider.reply_next(played.provider.build_reply("", 429, {"Retry-After": "0.2"}))
    assert await played.ask()
    first, second = (seen.time for seen in played.provider.seen[:2])
    assert second - first >= 0.19


async def test_who_wants_to_be_left_alone_for_long_is(played: Played) -> None:
    played.provider.reply_next(played.provider.build_reply("", 429, {"Retry-After": "3600"}))
    assert (await played.refused()).retryable
    assert played.requests == 1


@pytest.mark.slow
async def test_trouble_of_the_provider_passes(played: Played) -> None:
    played.provider.reply_next(
        played.provider.build_reply("", 503), played.provider.build_reply("<h1>Bad gateway</h1>", 502)
    )
    assert await played.ask()
    assert played.requests == 2 + played.format.requests


async def test_lasting_trouble_is_an_error(played: Played) -> None:
    played.provider.reply_next(*[played.provider.build_reply("", 500)] * 3)
    error = await played.refused()
    assert error.retryable
    assert played.requests == 3
    assert await played.ask()  # and is not held against it


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_question_that_is_not_accepted_is_not_repeated(played: Played, status: int) -> None:
    played.provider.reply_next(played.provider.build_reply('{"error": "no"}', status))
    assert not (await played.refused()).retryable
    assert played.requests == 1


@pytest.mark.slow
@pytest.mark.parametrize("body", ["", "null", "[]", '{"results": [', "<html><body>Maintenance</body></html>", "shape"])
async def test_an_answer_of_another_form_is_an_error(played: Played, body: str) -> None:
    played.provider.reply_next(
        played.provider.build_reply(played.format.build_invalid_answer() if body == "shape" else body)
    )
    error = await played.refused()
    assert "form" in error.message
    assert not error.retryable
    assert not played.store.stored
    assert not played.purse.fees
    assert await played.ask()  # nothing of it was kept


async def test_deep_nesting_is_an_answer_of_another_form(played: Played) -> None:
    played.provider.reply_next(played.provider.build_reply('{"a":' * 100_000))
    assert not (await played.refused()).retryable


@pytest.mark.slow
async def test_a_slow_provider_is_not_waited_for(played: Played) -> None:
    played.provider.delay = 30
    error = await played.refused(source=played.build(seconds=0.1))
    assert error.retryable
    assert error.billed  # perhaps
    assert "0.1 s" in error.message


async def test_a_dropping_connection_is_tried_again(played: Played) -> None:
    async def dropped(wire: ServerConnection, request: ServerRequest) -> None:
        wire.reset()

    played.provider.reply_next(dropped)
    assert await played.ask()


async def test_nobody_at_the_address(played: Played) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        source = played.build(f"http://127.0.0.1:{unused.getsockname()[1]}")
        error = await played.refused(source=source)
        assert (error.retryable, error.billed) == (True, False)
        assert not source.is_reachable()
    assert played.source.is_reachable()
    assert played.requests == 0


async def test_an_answer_without_end_is_cut_off(played: Played) -> None:
    played.provider.reply_next(played.provider.build_reply(b" " * (MAX_BYTES + 1)))
    assert "MB" in (await played.refused()).message


async def test_a_small_answer_that_grows_is_cut_off(played: Played) -> None:
    played.provider.reply_next(played.provider.build_reply(BOMB, 200, {"Content-Encoding": "gzip"}))
    assert "MB" in (await played.refused()).message


async def test_an_answer_that_cannot_be_unpacked(played: Played) -> None:
    played.provider.reply_next(
        *[played.provider.build_reply(b"\x1f\x8b no gzip", 200, {"Content-Encoding": "gzip"})] * 3
    )
    await played.refused()


@pytest.mark.parametrize("status", [301, 302, 307])
async def test_redirects_are_not_followed(played: Played, status: int) -> None:
    played.provider.reply_next(
        played.provider.build_reply("", status, {"Location": f"{played.provider.url}/elsewhere"})
    )
    assert not (await played.refused()).retryable
    assert played.requests == 1


@pytest.mark.slow
async def test_no_error_and_no_log_has_the_key(played: Played, caplog: pytest.LogCaptureFixture) -> None:
    if played.format.key_setting is None:
        pytest.skip("it has none")
    caplog.set_level(logging.DEBUG)

    async def dropped(wire: ServerConnection, request: ServerRequest) -> None:
        wire.reset()

    bodies = [played.provider.build_reply(f'{{"error": "{KEY}"}}', status) for status in (400, 402, 404, 429, 500, 302)]
    faults: list[Any] = [*bodies, played.provider.build_reply(f'{{"results": "{KEY}"'), dropped]
    for fault in faults:
        played.provider.reply_next(*[fault] * 3)
        _without_key(await played.refused(source=played.build()))
        played.provider.clear_replies()
    for key in (f"{KEY}\nX-Other: 1", f"{KEY} {KEY}", f"{KEY}é"):
        _without_key(await played.refused(source=played.build(key=key)))
    await played.ask(source=played.build())
    assert KEY not in caplog.text


def _without_key(error: SourceError) -> None:
    told = [str(error), error.help, repr(error.context), *traceback.format_exception(error)]
    assert KEY not in "".join(told)


# What it costs ---------------------------------------------------------------------------------------


@pytest.mark.requirement("W-14")
async def test_the_second_time_nothing_is_asked(played: Played) -> None:
    first = await played.source.ask(INQUIRY, played.purse)
    asked = played.requests
    read = dict(played.store.stored)
    played.store.stored.clear()
    again = await played.build().ask(INQUIRY, played.purse)
    assert (first.cached, again.cached) == (False, True)
    assert again.hits == first.hits
    assert (played.requests, len(played.purse.fees)) == (asked, 1)
    assert played.store.stored == read  # also when it was fetched
    other = await played.source.ask(INQUIRY.model_copy(update={"limit": 2, "since": date(2024, 1, 1)}), played.purse)
    assert not other.cached


async def test_the_cache_can_be_off(played: Played) -> None:
    source = played.build(cache_hours=0)
    assert not (await source.ask(INQUIRY, played.purse)).cached
    assert not (await source.ask(INQUIRY, played.purse)).cached


async def test_the_price_goes_through_the_purse(played: Played) -> None:
    priced = played.build(usd_per_request={played.format.name: 0.0012345})
    await played.ask(source=priced)
    (fee,) = played.purse.fees
    assert (fee.step, fee.provider, fee.micros) == ("search", played.format.name, 1235)
    assert KEY not in fee.request
    await played.ask(SearchRequest(query="another"), played.build())
    assert played.purse.fees[1].micros == round(played.source.own_terms.usd * 1e6)
    assert played.purse.fees[1].request != fee.request


async def test_without_money_nothing_is_asked(played: Played) -> None:
    class Empty:
        async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
            raise BudgetError("spent")

    with pytest.raises(BudgetError):
        await played.source.ask(INQUIRY, Empty())
    assert played.requests == 0


async def test_the_quota_of_a_day_holds_for_all_runs(played: Played) -> None:
    quota: dict[str, Any] = {"requests_per_day": {played.format.name: 2 * played.format.requests}}
    for town in TOWNS[:2]:
        await played.ask(SearchRequest(query=town), played.build(**quota))
    error = await played.refused(SearchRequest(query=TOWNS[2]), played.build(**quota))
    assert not error.retryable
    assert "quota" in error.message
    assert "00:00 UTC" in error.message
    assert played.requests == 2 * played.format.requests
    await played.ask(SearchRequest(query=TOWNS[0]), played.build(**quota))  # what is known costs none of it


@pytest.mark.slow
async def test_the_rate_holds_for_all_runs(played: Played) -> None:
    runs = [played.build(requests_per_minute={played.format.name: 600}) for _ in range(2)]
    await asyncio.gather(*(played.ask(SearchRequest(query=town), runs[len(town) % 2]) for town in TOWNS))
    times = sorted(seen.time for seen in played.provider.seen)
    for start in range(len(times) - 12):  # a bucket of 10 that refills 10 times a second, so 0.3 s at least
        assert times[start + 12] - times[start] >= 0.15


@pytest.mark.slow
async def test_no_more_are_under_way_than_the_provider_allows(played: Played) -> None:
    runs = [played.build() for _ in range(2)]
    played.provider.delay = 0.03
    towns = TOWNS[: played.source.terms.at_once + 3]
    await asyncio.gather(*(played.ask(SearchRequest(query=town), runs[len(town) % 2]) for town in towns))
    assert max(seen.at_once for seen in played.provider.seen) == played.source.terms.at_once


# What it is ------------------------------------------------------------------------------------------


async def test_it_is_a_source_and_says_whether_it_can_be_asked(played: Played) -> None:
    assert isinstance(played.source, Source)
    assert isinstance(played.source, RemoteSource)
    assert played.source.name == played.format.name
    assert played.source.is_available()
    assert not played.build(without=(played.format.name,)).is_available()
    assert played.build(key="").is_available() is not played.format.key_required
    assert played.source.own_terms.key == played.format.key_setting


async def test_settings_overrule_its_terms(played: Played) -> None:
    name = played.format.name
    terms = played.build(requests_per_minute={name: 7}, requests_per_day={name: 8}, usd_per_request={name: 9}).terms
    assert (terms.per_minute, terms.per_day, terms.usd) == (7, 8, 9)
    assert terms.key == played.source.own_terms.key


def test_every_provider_has_a_format() -> None:
    assert {format.name for format in FORMATS} >= {"tavily", "exa", "serper", "brave", "searxng", "duckduckgo"}
    assert all(len(format.samples()) >= 3 for format in FORMATS)
