"""What search providers share, and what is particular to those of the web."""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import SecretStr

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.models.spend import Fee
from openassay.search.base import ApiSource, ProviderRequest
from openassay.search.brave import BraveSource
from openassay.search.duckduckgo import DuckDuckGoSource
from openassay.search.fields import add_site_filters, parse_date, shorten
from openassay.search.http import HttpResponse, ProviderClient, ProviderLimiter, RetryPolicy
from openassay.search.registry import SourceContext
from openassay.search.searxng import SearxngSource
from openassay.search.tavily import TavilySource
from openassay.settings import Keys, SearchSettings, Settings
from openassay.testing import MemoryCache, MemoryDocuments
from tests.fakes.http_server import ServerConnection
from tests.fakes.http_server import ServerRequest as Received
from tests.fakes.search_api import FakeSearchProvider, load_formats

pytestmark = pytest.mark.requirement("C-07")

KEY = "sk-very-secret-0123456789"
KEYS = Keys(tavily_api_key=SecretStr(KEY), brave_api_key=SecretStr(KEY))
FORMATS = {format.name: format for format in load_formats()}
INQUIRY = SearchRequest(query="harbour of Zanzibar")
QUICK = RetryPolicy(pause=0.01, max_pause=0.5, overall=5.0)
OPENED: list[ProviderClient] = []
IMPOSSIBLE = (  # OverflowError, ValueError, and in some versions of email.utils IndexError and TypeError
    "Mon, 99999999999999999999 Jan 2024 10:00:00 GMT", "5 Jan 2024 10:00:00 +99999999999999999999",
    "Mon, 32 Jan 2024 10:00:00 GMT", "3-Jan- 10:00:00 GMT", "Mon",
)  # fmt: skip


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    while OPENED:
        await OPENED.pop().close()


def bench(pace: RetryPolicy = QUICK, keys: Keys = KEYS, **search: Any) -> SourceContext:
    OPENED.append(ProviderClient(pace))
    return SourceContext(
        store=MemoryDocuments(), embedder=None, reader=None, open_index=None, cache=MemoryCache(), http=OPENED[-1],  # type: ignore[arg-type]
        settings=Settings(search=SearchSettings(**search), keys=keys),
    )  # fmt: skip


class Paid:
    """A ports.Purse, perhaps with an answer it has bought before."""

    def __init__(self, body: str | None = None, fees: list[Fee] | None = None) -> None:
        self.body = body
        self.fees = [] if fees is None else fees

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        self.fees.append(fee)
        return await request() if self.body is None else self.body


class Failing:
    """A ports.Purse that notes of every failure whether it may be billed."""

    def __init__(self) -> None:
        self.billed: list[bool] = []

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        try:
            return await request()
        except SourceError as error:
            self.billed.append(error.billed)
            raise


@pytest.fixture
async def tavily() -> AsyncIterator[FakeSearchProvider]:
    async with FakeSearchProvider(FORMATS["tavily"]) as provider:
        yield provider


def source(provider: FakeSearchProvider, pace: RetryPolicy = QUICK, **search: Any) -> TavilySource:
    minute = {"requests_per_minute": {"tavily": 60_000}}
    return TavilySource(bench(pace, endpoints={"tavily": provider.url}, **{**minute, **search}))


async def refused(asked: ApiSource, inquiry: SearchRequest = INQUIRY) -> SourceError:
    with pytest.raises(SourceError) as caught:
        await asked.ask(inquiry, Paid())
    return caught.value


# Attempts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        (" 0.5 ", 0.5),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("Tue, 05 Mar 2024 10:00:00 GMT", 0.0),
        *((text, None) for text in IMPOSSIBLE),
    ],
)
def test_when_to_come_back(value: str, seconds: float | None) -> None:
    assert HttpResponse(429, {"retry-after": value}, "").retry_after == seconds


def test_when_to_come_back_as_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert HttpResponse(429, {"retry-after": date}, "").retry_after == pytest.approx(30, abs=2)


def test_pauses_grow_and_differ() -> None:
    pauses = [[RetryPolicy().pause_before(attempt, None) for _ in range(50)] for attempt in (1, 2)]
    assert all(0.25 <= pause <= 0.75 for pause in pauses[0])
    assert all(0.5 <= pause <= 1.5 for pause in pauses[1])
    assert len(set(pauses[0])) > 10


def test_who_is_asked_too_often_is_left_alone_for_longer() -> None:
    assert [RetryPolicy().pause_before(attempt, None, crowded=True) for attempt in (1, 2)] == [5.0, 10.0]
    assert RetryPolicy().pause_before(1, 2.0, crowded=True) == 2.0
    assert RetryPolicy().max_pause >= 10.0  # or the third attempt would not be made


@pytest.mark.parametrize(("status", "pauses"), [(429, (0.1, 0.2)), (503, (0.0, 0.0))])
async def test_too_many_requests_are_tried_again_after_a_while(
    tavily: FakeSearchProvider, status: int, pauses: tuple[float, float]
) -> None:
    tavily.reply_next(*[tavily.build_reply("", status)] * 2)
    assert (await source(tavily).ask(INQUIRY, Paid())).hits
    first, second, third = (seen.time for seen in tavily.seen)
    for waited, pause in zip((second - first, third - second), pauses, strict=True):
        assert pause <= waited < pause + 0.1


async def test_a_request_that_was_sent_may_be_billed_whatever_comes_after(tavily: FakeSearchProvider) -> None:
    async def silent(wire: ServerConnection, request: Received) -> None:
        await wire.wait_for_close(within=5)

    """Each attempt is paid for by itself."""
    till = Failing()
    asked = source(tavily, seconds=0.1)
    tavily.reply_next(silent, tavily.build_reply("", 401))
    with pytest.raises(SourceError, match="key of tavily was refused"):
        await asked.ask(SearchRequest(query="x"), till)
    assert till.billed == [True, False]
    with pytest.raises(SourceError, match="key of tavily was refused"):
        await asked.ask(SearchRequest(query="x"), till)
    assert till.billed == [True, False, False]
    assert len(tavily.seen) == 2  # it was not asked again


async def test_a_connection_that_never_stood_is_billed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpcore2

    async def hang(*args: object, **kwargs: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", hang)
    asked = TavilySource(bench(RetryPolicy(attempts=1), endpoints={"tavily": "http://127.0.0.1:9"}, seconds=0.1))
    error = await refused(asked)
    assert "0.1 s" in error.message
    assert not error.billed


async def test_all_attempts_together_are_bounded(tavily: FakeSearchProvider) -> None:
    tavily.delay = 30
    error = await refused(source(tavily, RetryPolicy(attempts=9, pause=0.01, overall=0.5), seconds=0.3))
    assert error.retryable
    assert len(tavily.seen) <= 2  # the second had what was left


async def test_a_full_queue_is_an_error_and_not_a_standstill(tavily: FakeSearchProvider) -> None:
    asked = source(tavily, RetryPolicy(queue=0.1), requests_per_minute={"tavily": 6})
    await asked.ask(INQUIRY, Paid())
    error = await refused(asked, SearchRequest(query="another"))
    assert "queued" in error.message
    assert len(tavily.seen) == 1


async def test_who_leaves_the_queue_gives_the_turn_back() -> None:
    lane = ProviderLimiter(ProviderTerms(per_minute=6000, at_once=1), queue=5.0)
    async with lane.slot("x"):
        waiting = asyncio.create_task(_turn(lane))
        await asyncio.sleep(0.01)
        waiting.cancel()
    async with asyncio.timeout(1):
        await _turn(lane)


async def _turn(lane: ProviderLimiter) -> None:
    async with lane.slot("x"):
        pass


async def test_a_refusal_reaches_those_who_wait_for_their_turn(tavily: FakeSearchProvider) -> None:
    tavily.reply_next(*[tavily.build_reply("", 401)] * 30)
    tavily.delay = 0.02
    asked = source(tavily)
    inquiries = [SearchRequest(query=f"question {number}") for number in range(30)]
    errors = await asyncio.gather(*(asked.ask(one, Paid()) for one in inquiries), return_exceptions=True)
    assert all(isinstance(error, SourceError) and not error.retryable for error in errors)
    assert len(tavily.seen) <= asked.terms.at_once


@pytest.mark.parametrize("status", [402, 432, 433])
async def test_credits_that_are_used_up(tavily: FakeSearchProvider, status: int) -> None:
    tavily.reply_next(tavily.build_reply("", status))
    asked = source(tavily)
    assert "credits" in (await refused(asked)).message
    await refused(asked)
    assert len(tavily.seen) == 1


async def test_without_its_key_it_is_not_asked(tavily: FakeSearchProvider) -> None:
    asked = TavilySource(bench(keys=Keys(), endpoints={"tavily": tavily.url}))
    error = await refused(asked)
    assert "TAVILY_API_KEY" in error.help
    assert not tavily.seen


async def test_an_address_that_is_none() -> None:
    for address in ("nowhere", "ftp://example.org", "http://[::1", "http://127.0.0.1:99999"):
        asked = TavilySource(bench(endpoints={"tavily": address}))
        assert not (await refused(asked)).retryable, address
        assert not asked.is_reachable()


async def test_a_brotli_answer_that_grows_is_cut_off(tavily: FakeSearchProvider) -> None:
    brotli = pytest.importorskip("brotli")
    tavily.reply_next(
        tavily.build_reply(brotli.compress(b" " * 50_000_000, quality=1), 200, {"Content-Encoding": "br"})
    )
    assert "MB" in (await refused(source(tavily))).message


async def test_no_cookie_comes_back(tavily: FakeSearchProvider) -> None:
    tavily.reply_next(tavily.build_reply("", 503, {"Set-Cookie": "who=me; Path=/"}))
    await source(tavily).ask(INQUIRY, Paid())
    assert all("cookie" not in seen.request.headers for seen in tavily.seen)


# Cache, quota and hits -------------------------------------------------------------------------------


async def test_what_was_bought_before_costs_no_quota(tavily: FakeSearchProvider) -> None:
    asked = source(tavily, requests_per_day={"tavily": 0}, cache_hours=0)
    body = tavily.format.build_answer(Received("POST", "/search", {}, {}, b""), tavily.found)
    assert len((await asked.ask(INQUIRY, Paid(body))).hits) == 3
    assert "quota" in (await refused(asked)).message


class Shelf:
    """A ports.Purse that gives an answer again, as a run's account does."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        if fee.request not in self.bodies:
            self.bodies[fee.request] = await request()
        return self.bodies[fee.request]


CHALLENGE = '<html><form id="challenge-form" name="q"><div class="anomaly-modal__title"></div></form></html>'


@pytest.mark.parametrize(
    ("name", "build", "bad"),
    [
        ("tavily", TavilySource, '{"results": ['),
        ("searxng", SearxngSource, '{"results": [], "unresponsive_engines": [["google", "timeout"]]}'),
        ("duckduckgo", DuckDuckGoSource, CHALLENGE),
    ],
)
async def test_a_bad_answer_is_not_paid_for_and_not_given_again(name: str, build: type[ApiSource], bad: str) -> None:
    shelf = Shelf()
    async with FakeSearchProvider(FORMATS[name]) as provider:
        once = RetryPolicy(attempts=1)
        asked = build.build(bench(once, requests_per_minute={name: 60_000}, **FORMATS[name].settings(provider.url)))
        provider.reply_next(provider.build_reply(bad))
        with pytest.raises(SourceError):
            await asked.ask(INQUIRY, shelf)
        assert not shelf.bodies
        assert len((await asked.ask(INQUIRY, shelf)).hits) == 3
    assert len(shelf.bodies) == 1


@pytest.mark.parametrize(
    "trouble", [ZeroDivisionError, OverflowError, KeyError, IndexError, ValueError, RecursionError]
)
async def test_whatever_an_answer_does_to_its_reader_is_an_error_of_the_source(
    tavily: FakeSearchProvider, trouble: type[Exception]
) -> None:
    class Puzzled(TavilySource):
        def parse_results(self, body: str) -> list[ProviderResult]:
            raise trouble(body)

    asked = Puzzled(bench(endpoints={"tavily": tavily.url}))
    assert "form" in (await refused(asked)).message


async def test_a_date_that_cannot_be_does_not_lose_a_search(tavily: FakeSearchProvider) -> None:
    results = [
        {"url": f"https://example.org/{n}", "title": "A quay", "content": "", "score": 1.0, "published_date": text}
        for n, text in enumerate(IMPOSSIBLE)
    ]
    tavily.reply_next(tavily.build_reply(json.dumps({"query": "q", "results": results, "response_time": 1.0})))
    hits = (await source(tavily).ask(INQUIRY, Paid())).hits
    assert [hit.published for hit in hits] == [None] * len(IMPOSSIBLE)


@pytest.mark.requirement("W-14")
async def test_what_another_version_kept_is_asked_again(tavily: FakeSearchProvider) -> None:
    asked = source(tavily)
    await asked.ask(INQUIRY, Paid())
    (key,) = asked.context.cache._values  # type: ignore[attr-defined]
    await asked.context.cache.put(key, b'[{"address": "https://example.org/"}]', seconds=60)
    assert not (await asked.ask(INQUIRY, Paid())).cached


async def test_secrets_in_an_address_are_not_shown(tavily: FakeSearchProvider) -> None:
    class Secretive(TavilySource):
        def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
            return ProviderRequest("/search", {"q": inquiry.query}, secrets={"api_key": self.key})

    asked = Secretive(bench(endpoints={"tavily": tavily.url}))
    fees: list[Fee] = []
    await asked.ask(INQUIRY, Paid(fees=fees))
    assert tavily.seen[0].request.query == {"q": [INQUIRY.query], "api_key": [KEY]}
    assert KEY not in fees[0].request


async def test_titles_and_snippets_are_lines_of_bounded_length(tavily: FakeSearchProvider) -> None:
    tavily.found = [
        ProviderResult(url="https://example.org/a#top", title="A\n title " * 100, snippet="words " * 2000),
        ProviderResult(url="https://example.org/a#end", title="The same page"),
        ProviderResult(url="https://example.org/b", title=" "),
    ]
    hits = (await source(tavily).ask(INQUIRY, Paid())).hits
    assert [(hit.rank, hit.url) for hit in hits] == [(1, "https://example.org/a#top"), (2, "https://example.org/b")]
    assert "\n" not in hits[0].title
    assert (len(hits[0].title) <= 300, len(hits[0].snippet) <= 2000) == (True, True)
    assert hits[1].title == "example.org"


# Queries and dates -----------------------------------------------------------------------------------


def test_a_query_is_cut_at_a_word() -> None:
    assert shorten("one two  three\n", 100) == "one two three"
    assert shorten("one two three", 7) == "one two"
    assert shorten("one two three", 9) == "one two"
    assert shorten("x" * 50, 9) == "x" * 9


def test_hosts_in_a_query_stay_when_it_is_cut() -> None:
    inquiry = SearchRequest(query="word " * 200, sites=("a.org", "b.org"), without=("c.org",))
    query = add_site_filters(inquiry, characters=400, words=50)
    assert query.endswith(" (site:a.org OR site:b.org) -site:c.org")
    assert len(query) <= 400
    assert len(query.split()) <= 50
    assert add_site_filters(SearchRequest(query="q", sites=("a.org",)), characters=99) == "q site:a.org"
    assert add_site_filters(SearchRequest(query="q"), characters=99) == "q"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-05T10:00:00", date(2024, 3, 5)), ("2024-03-05", date(2024, 3, 5)), ("2024-03", date(2024, 3, 1)),
        ("Tue, 05 Mar 2024 10:00:00 GMT", date(2024, 3, 5)), ("Mar 5, 2024", date(2024, 3, 5)),
        ("5 March 2024", date(2024, 3, 5)), ("3 days ago", date(2024, 2, 29)), ("1 week ago", date(2024, 2, 25)),
        ("20 hours ago", date(2024, 3, 2)), ("2 mins ago", date(2024, 3, 3)), ("yesterday", None), ("", None),
        (None, None), ("2024-13-45", None), ("Feb 30, 2024", None),
        *((text, None) for text in IMPOSSIBLE),
    ],
)  # fmt: skip
def test_dates_as_engines_say_them(text: str | None, day: date | None) -> None:
    assert parse_date(text, now=datetime(2024, 3, 3, 12, tzinfo=UTC)) == day


# One by one ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "sent"), [("de", "de"), ("ja", "jp"), ("pt", "pt-pt"), ("xx", None)])
def test_brave_is_sent_languages_it_knows(language: str, sent: str | None) -> None:
    request = BraveSource(bench()).build_request(SearchRequest(query="q", language=language))
    assert request.params.get("search_lang") == sent


def test_brave_strips_marks_and_entities() -> None:
    result = {"url": "https://example.org/", "title": "Ships &amp; quays", "description": "A <strong>ship</strong>"}
    (found,) = BraveSource(bench()).parse_results(json.dumps({"type": "search", "web": {"results": [result]}}))
    assert (found.title, found.snippet) == ("Ships & quays", "A ship")


def test_searxng_needs_an_address() -> None:
    assert not SearxngSource(bench()).is_available()
    assert SearxngSource(bench(searxng_url="http://localhost:8080")).is_available()


@pytest.mark.parametrize(("days", "sent"), [(0, "day"), (20, "month"), (300, "year"), (900, None)])
def test_searxng_is_sent_the_range_that_holds_the_date(days: int, sent: str | None) -> None:
    since = datetime.now(UTC).date() - timedelta(days=days)
    request = SearxngSource(bench(searxng_url="http://localhost")).build_request(SearchRequest(query="q", since=since))
    assert request.params.get("time_range") == sent


async def test_searxng_without_json_says_what_to_do() -> None:
    async with FakeSearchProvider(FORMATS["searxng"]) as provider:
        provider.reply_next(provider.build_reply("<h1>Forbidden</h1>", 403))
        error = await refused(SearxngSource(bench(searxng_url=provider.url)))
    assert "settings.yml" in error.help


async def test_searxng_whose_engines_are_all_silent_has_not_found_nothing() -> None:
    async with FakeSearchProvider(FORMATS["searxng"]) as provider:
        provider.reply_next(provider.build_reply('{"results": [], "unresponsive_engines": [["google", "timeout"]]}'))
        error = await refused(SearxngSource(bench(RetryPolicy(attempts=1), searxng_url=provider.url)))
    assert error.retryable


async def test_searxng_behind_a_login() -> None:
    async with FakeSearchProvider(FORMATS["searxng"]) as provider:
        asked = SearxngSource(bench(searxng_url=provider.url.replace("//", f"//ada:{KEY}%40@")))
        fees: list[Fee] = []
        await asked.ask(INQUIRY, Paid(fees=fees))
        headers = provider.seen[0].request.headers
    assert b64decode(headers["authorization"].removeprefix("Basic ")).decode() == f"ada:{KEY}@"
    assert KEY not in fees[0].request


@pytest.mark.parametrize("status", [202, 200])
async def test_duckduckgo_that_wants_to_see_a_person_has_not_found_nothing(status: int) -> None:
    page = (
        '<html><body><form id="challenge-form" name="q"><div class="anomaly-modal__title"></div></form></body></html>'
    )
    async with FakeSearchProvider(FORMATS["duckduckgo"]) as provider:
        provider.reply_next(provider.build_reply(page, status))
        error = await refused(DuckDuckGoSource(bench(endpoints={"duckduckgo": f"{provider.url}/html/"})))
        assert len(provider.seen) == 1
    assert "CAPTCHA" in error.message
    assert not error.retryable


async def test_duckduckgo_keeps_the_escapes_of_an_address() -> None:
    address = "https://example.org/a%2Fb?q=c%26d%20e"
    async with FakeSearchProvider(FORMATS["duckduckgo"]) as provider:
        provider.found = [ProviderResult(url=address, title="One"), ProviderResult(url=f"{address}f", title="Two")]
        hits = (
            await DuckDuckGoSource(bench(endpoints={"duckduckgo": f"{provider.url}/html/"})).ask(INQUIRY, Paid())
        ).hits
    assert [hit.url for hit in hits] == [address, f"{address}f"]


async def test_duckduckgo_does_not_hold_up_the_others() -> None:
    async def silent(wire: ServerConnection, request: Received) -> None:
        await wire.wait_for_close(within=10)

    async with FakeSearchProvider(FORMATS["duckduckgo"]) as provider:
        provider.reply_next(silent)
        asked = DuckDuckGoSource(
            bench(RetryPolicy(attempts=1), endpoints={"duckduckgo": f"{provider.url}/html/"}, seconds=0.3)
        )
        waiting = asyncio.create_task(refused(asked))
        ticks = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
    assert waiting.result().retryable
    assert ticks > 10


async def test_who_cannot_be_reached_is_not_tried_again_for_every_query() -> None:
    asked = TavilySource(bench(QUICK._replace(rest=0.3), endpoints={"tavily": "http://127.0.0.1:9"}))
    assert "could not be reached" in (await refused(asked)).message
    rests_until = asked._rests_until
    for _ in range(20):
        assert (await refused(asked)).retryable
    assert asked._rests_until == rests_until, "each attempt would have put it off"
    async with FakeSearchProvider(FORMATS["tavily"]) as provider:
        back = source(provider)
        back._rests_until = asked._rests_until
        await asyncio.sleep(0.4)
        assert (await back.ask(INQUIRY, Paid(fees=[]))).hits
