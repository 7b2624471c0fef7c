"""What every Rates does: in the process, in PostgreSQL, on Redis; and that no trouble below it is felt above."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from openassay.errors import RateLimitError, SourceError
from openassay.llm.names import parse_name
from openassay.llm.router import ModelProvider
from openassay.models.evidence import ProviderTerms
from openassay.protocols import RateDecision, RateLimiter, TokenBucket
from openassay.search.http import ProviderClient, ProviderLimiter, RetryPolicy
from openassay.settings import load
from openassay.storage import shared_services as here
from openassay.storage.shared_servers import PostgresLink, RedisLink, ServerLink
from openassay.storage.shared_services import PostgresRates, ProcessRates, RedisRates
from tests.conftest import PostgresServer, ValkeyServer

pytestmark = pytest.mark.requirement("W-15")

SLOW = 0.001  # tokens a second: none comes back while a test lasts


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Notices(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def notices() -> Notices:
    return Notices()


Join = Callable[[], RateLimiter]


@asynccontextmanager
async def joining(place: str, notices: Notices) -> AsyncIterator[Join]:
    """`join()`: one more process that counts in the same place."""
    opened: list[ServerLink] = []
    alone = ProcessRates()

    def join() -> RateLimiter:
        if not place:
            return alone
        if place.startswith("redis"):
            redis = RedisLink(SecretStr(place), notices, rest=0.1)
            opened.append(redis)
            return RedisRates(redis)
        postgres = PostgresLink(place, notices, rest=0.1)
        opened.append(postgres)
        return PostgresRates(postgres)

    yield join
    for link in opened:
        await link.close()


@pytest.fixture(params=["process", "postgres", "redis"])
async def join(request: pytest.FixtureRequest, notices: Notices) -> AsyncIterator[Join]:
    place = ""
    if request.param == "redis":
        server: ValkeyServer = request.getfixturevalue("valkey")
        place = server.url.get_secret_value()
    elif request.param == "postgres":
        place = request.getfixturevalue("postgres_address")
    async with joining(place, notices) as join:
        if request.param == "redis":
            await join()._link.client.flushdb()  # type: ignore[attr-defined]
        yield join
    assert notices == []


async def takes(rates: RateLimiter, name: str, bucket: TokenBucket, times: int) -> int:
    """How many of so many tries got one, all at once."""
    got = await asyncio.gather(*(rates.try_acquire(name, bucket) for _ in range(times)))
    return sum(not one.wait for one in got)


# Every one --------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_bucket_is_full_at_first_and_then_empty(join: Join) -> None:
    rates, bucket = join(), TokenBucket(3, SLOW)
    assert [round((await rates.try_acquire("a", bucket)).left) for _ in range(3)] == [2, 1, 0]
    refused = await rates.try_acquire("a", bucket)
    assert 900 < refused.wait <= 1000
    assert 0 <= refused.left < 1
    assert (await rates.try_acquire("b", bucket)).wait == 0, "each has one of their own"


@pytest.mark.slow
async def test_tokens_come_back_evenly_and_no_more_than_there_is_room_for(join: Join) -> None:
    rates, bucket = join(), TokenBucket(3, 5)
    began = monotonic()
    assert await takes(rates, "a", bucket, 3) == 3
    wait = (await rates.try_acquire("a", bucket)).wait
    assert wait <= 0.2 or monotonic() - began > 0.2, "a slow machine gives them time"
    await asyncio.sleep(wait + 0.02)
    assert (await rates.try_acquire("a", bucket)).wait == 0, "it is there when it was said to be"
    await asyncio.sleep(1.0)
    assert (await rates.try_acquire("a", bucket)).left <= 2, "a full bucket is full"


async def test_processes_take_from_the_same_bucket(join: Join) -> None:
    all_of_them, bucket = [join() for _ in range(3)], TokenBucket(20, SLOW)
    got = await asyncio.gather(*(takes(rates, "a", bucket, 20) for rates in all_of_them))
    assert sum(got) == 20


async def test_another_size_holds_from_then_on(join: Join) -> None:
    rates = join()
    assert (await rates.try_acquire("a", TokenBucket(100, SLOW))).wait == 0
    assert await takes(rates, "a", TokenBucket(5, SLOW), 10) == 5
    assert (await rates.try_acquire("a", TokenBucket(100, SLOW))).wait > 0, "more room is empty at first"


@pytest.mark.slow
async def test_a_turn_waits_for_its_token_and_for_no_more(join: Join) -> None:
    rates, bucket = join(), TokenBucket(1, 20)
    began = monotonic()
    order: list[int] = []

    async def turn(number: int) -> None:
        await rates.acquire("a", bucket)
        order.append(number)

    await asyncio.gather(*(turn(number) for number in range(9)))
    assert monotonic() - began >= 8 / 20 - 0.01, "one a twentieth of a second"
    assert order == list(range(9)), "first come, first served"


@pytest.mark.slow
async def test_who_waits_can_leave(join: Join) -> None:
    rates, bucket = join(), TokenBucket(1, SLOW)
    await rates.acquire("a", bucket)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await rates.acquire("a", bucket)
    with pytest.raises(TimeoutError):  # and is in nobody's way
        async with asyncio.timeout(0.1):
            await rates.acquire("a", bucket)
    await rates.acquire("b", bucket)


TAKERS = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 0.05)), min_size=1, max_size=40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["process", "postgres", "redis"])
@settings(max_examples=8)
@given(size=st.integers(1, 6), per_second=st.sampled_from([2.0, 20.0, 100.0]), takers=TAKERS)
def test_no_more_than_the_limit_and_what_was_saved_up_pass_in_any_time(
    kind: str,
    size: int,
    per_second: float,
    takers: list[tuple[int, float]],
    postgres_server: PostgresServer,
    valkey: ValkeyServer,
) -> None:
    """Whatever order those of several processes come in: between any two that passed, time was for them all."""
    redis = valkey.url.get_secret_value()
    place = {"process": "", "postgres": postgres_server.address("template_of_rates"), "redis": redis}[kind]
    name, notices = f"{size} {per_second} {takers}", Notices()

    async def play() -> list[tuple[float, float]]:
        passed: list[tuple[float, float]] = []
        async with joining(place, notices) as join:
            processes = [join() for _ in range(3)]

            async def take(process: int, pause: float) -> None:
                await asyncio.sleep(pause)
                asked = monotonic()
                if not (await processes[process].try_acquire(name, TokenBucket(size, per_second))).wait:
                    passed.append((asked, monotonic()))

            await asyncio.gather(*(take(*one) for one in takers))
        return passed

    passed = asyncio.run(play())
    assert notices == []
    assert passed, "the first finds a full bucket"
    for first, _ in passed:
        for last in (answered for _, answered in passed if answered > first):
            among = sum(first <= asked and answered <= last for asked, answered in passed)
            assert among <= size + (last - first) * per_second + 1e-3
    assert len(passed) >= min(size, len(takers)), "and nobody is refused who need not be"


@pytest.fixture(scope="module", autouse=True)
def _database_of_rates(postgres_server: PostgresServer) -> None:
    """One for all examples: a name is used once. A worker may come back to this file."""
    postgres_server.execute("DROP DATABASE IF EXISTS template_of_rates")
    postgres_server.execute("CREATE DATABASE template_of_rates TEMPLATE template_of_tests STRATEGY file_copy")


TAKING = """
import asyncio, sys
from pydantic import SecretStr
from openassay.protocols import TokenBucket
from openassay.storage.shared_servers import PostgresLink
from openassay.storage.shared_services import PostgresRates
from openassay.storage.shared_servers import RedisLink
from openassay.storage.shared_services import RedisRates

async def main(place):
    link = RedisLink(SecretStr(place), sys.exit) if place.startswith("redis") else PostgresLink(place, sys.exit)
    rates = RedisRates(link) if place.startswith("redis") else PostgresRates(link)
    taken = [await rates.try_acquire("all", TokenBucket(100, 0.001)) for _ in range(60)]
    print(sum(not one.wait for one in taken))
    await link.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_three_processes_together_get_what_there_is(
    kind: str, postgres_address: str, own_valkey: Callable[..., ValkeyServer]
) -> None:
    place = postgres_address if kind == "postgres" else own_valkey().url.get_secret_value()
    workers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", TAKING, place, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [(await worker.communicate())[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert sum(map(int, said)) == 100


# Providers --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_processes_keep_the_pace_of_a_search_provider_together(
    kind: str, postgres_address: str, own_valkey: Callable[..., ValkeyServer], notices: Notices
) -> None:
    place = postgres_address if kind == "postgres" else own_valkey().url.get_secret_value()
    terms, pace = ProviderTerms(per_minute=600, at_once=50), RetryPolicy(queue=30)
    async with joining(place, notices) as join:
        lanes = [ProviderClient(pace, rates=join()).get_limiter("tavily", terms) for _ in range(2)]
        began = monotonic()

        async def ask(lane: ProviderLimiter) -> None:
            async with lane.slot("tavily"):
                pass

        await asyncio.gather(*(ask(lanes[number % 2]) for number in range(16)))
        assert monotonic() - began >= 0.55, "ten at once and ten a second: alone each would have had its eight at once"
    assert notices == []


async def test_whoever_waits_too_long_for_a_search_provider_is_told(valkey: ValkeyServer, notices: Notices) -> None:
    async with joining(valkey.url.get_secret_value(), notices) as join:
        await join()._link.client.flushdb()  # type: ignore[attr-defined]
        lanes = [
            ProviderClient(RetryPolicy(queue=0.3), rates=join()).get_limiter("exa", ProviderTerms(per_minute=0.1))
            for _ in range(2)
        ]
        async with lanes[0].slot("exa"):
            pass
        with pytest.raises(SourceError, match="too many queued requests"):
            async with lanes[1].slot("exa"):
                pass
        assert lanes[1]._slots._value == ProviderTerms(per_minute=1).at_once, "who leaves keeps no place"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_processes_keep_the_rate_of_a_model_together(
    kind: str, postgres_address: str, own_valkey: Callable[..., ValkeyServer], notices: Notices,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    place = postgres_address if kind == "postgres" else own_valkey().url.get_secret_value()
    settings = load(llm={"requests_per_minute": {"openai": 5}})
    async with joining(place, notices) as join:
        model = parse_name("openai:gpt-4o")
        one, other = (ModelProvider(model, settings, monotonic, join()) for _ in range(2))
        for provider in (one, one, one, other, other):
            await provider.wait_for_rate()
        monkeypatch.setattr("openassay.llm.router.TURN_SECONDS", 0.3)
        for provider in (one, other):
            with pytest.raises(RateLimitError, match="too many queued calls"):
                await provider.wait_for_rate()
    assert notices == []


# In one process ---------------------------------------------------------------------------------------


async def test_a_bucket_fills_evenly_and_is_full_at_most() -> None:
    clock = Clock()
    rates, bucket = ProcessRates(clock), TokenBucket(3, 3 / 60)
    assert [await rates.try_acquire("a", bucket) for _ in range(3)] == [
        RateDecision(2),
        RateDecision(1),
        RateDecision(0),
    ]
    assert (await rates.try_acquire("a", bucket)).wait == pytest.approx(20)
    clock.now += 20
    assert (await rates.try_acquire("a", bucket)).left == pytest.approx(0)
    clock.now += 1000
    assert [(await rates.try_acquire("a", bucket)).left for _ in range(3)] == [2, 1, 0]
    clock.now -= 500  # set back
    assert (await rates.try_acquire("a", bucket)).wait == pytest.approx(20)


async def test_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "MAX_BUCKETS", 10)
    rates = ProcessRates(lambda: 0.0)
    for number in range(100):
        await rates.try_acquire(str(number), TokenBucket(1, 1))
    assert (await rates.try_acquire("99", TokenBucket(1, 1))).wait == 1
    assert (await rates.try_acquire("1", TokenBucket(1, 1))).wait == 0
    assert len(rates._levels) == 10


# Trouble ----------------------------------------------------------------------------------------------


async def test_a_redis_that_is_gone_is_told_once_and_each_counts_for_itself(
    own_valkey: Callable[..., ValkeyServer], notices: Notices
) -> None:
    server, bucket = own_valkey(), TokenBucket(6, SLOW)
    async with joining(server.url.get_secret_value(), notices) as join:
        one, other = join(), join()
        assert await takes(one, "a", bucket, 3) == 3
        assert await takes(other, "a", bucket, 1) == 1
        server.stop()
        assert await takes(one, "a", bucket, 9) == 3, "what it took itself is not given back by an outage"
        assert await takes(other, "a", bucket, 9) == 5
        assert len(notices) == 2
        assert all("cannot be reached" in notice and "rates" in notice for notice in notices)
        own_valkey(port=server.port)
        await asyncio.sleep(0.15)
        assert await takes(one, "b", bucket, 4) == 4
        assert await takes(other, "b", bucket, 4) == 2, "together again"
    assert len(notices) == 2


@pytest.mark.slow
async def test_a_database_that_is_gone_is_told_once_and_each_counts_for_itself(
    postgres_server: PostgresServer, postgres_address: str, notices: Notices
) -> None:
    bucket = TokenBucket(6, SLOW)
    async with joining(postgres_address, notices) as join:
        one, other = join(), join()
        assert await takes(one, "a", bucket, 4) == 4
        await asyncio.to_thread(postgres_server.stop)
        try:
            assert await takes(one, "a", bucket, 9) == 2
        finally:
            await asyncio.to_thread(postgres_server.start)
        assert len(notices) == 1
        async with asyncio.timeout(60):
            while await takes(other, "b", bucket, 4) != 4:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        async with asyncio.timeout(60):
            while (await one.try_acquire("b", bucket)).left > 2:  # noqa: ASYNC110  # it may still rest
                await asyncio.sleep(0.1)
    assert len(notices) == 1


async def test_a_server_that_forbids_scripts_is_told_once_and_keeps_its_caches(
    own_valkey: Callable[..., ValkeyServer], notices: Notices
) -> None:
    from openassay.storage.cache import RedisCache

    server = own_valkey("--rename-command", "EVALSHA", "", "--rename-command", "EVAL", "")
    link = RedisLink(server.url, notices, rest=60)
    rates = RedisRates(link)
    assert await takes(rates, "a", TokenBucket(2, SLOW), 5) == 2
    assert len(notices) == 1
    assert "rates" in notices[0]
    cache = RedisCache(link)
    await cache.put("k", b"v", seconds=60)
    assert await cache.get("k") == b"v"
    await link.close()
