"""What every Cache does: in memory, on disk, on a server, in layers; and that no trouble below one is felt above."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from openassay.errors import ConfigurationError
from openassay.protocols import Cache
from openassay.settings import CacheSettings
from openassay.storage import cache as cache_module
from openassay.storage.cache import (
    FILE,
    TOUCH_SECONDS,
    CacheLayer,
    LruCache,
    RedisCache,
    SqliteCache,
    TwoLevelCache,
    open_cache,
)
from openassay.storage.shared_servers import REST_SECONDS, RedisLink, ServerLinks, redis_key
from openassay.testing import MemoryCache
from tests.conftest import ValkeyServer

pytestmark = pytest.mark.requirement("W-14")

OverRedis = Callable[..., RedisCache]
KB, MB = 1000, 1_000_000
ROOM = 20 * MB


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


# Every cache ------------------------------------------------------------------------------------------

KINDS = ["fake", "lru", "sqlite", "redis", "lru over sqlite", "lru over redis"]


@pytest.fixture(params=KINDS)
async def cache(request: pytest.FixtureRequest, tmp_path: Path, notices: Notices) -> AsyncIterator[Cache]:
    name: str = request.param
    if name == "fake":
        yield MemoryCache()
        return
    async with links(request, name, notices) as server:
        near, far = LruCache(ROOM), await made(name, tmp_path, notices, server)
        yield TwoLevelCache(near, far) if "over" in name else near if name == "lru" else far
        await far.close()
    assert notices == []


@asynccontextmanager
async def links(request: pytest.FixtureRequest, name: str, notices: Notices) -> AsyncIterator[ServerLinks]:
    url = request.getfixturevalue("valkey").url if "redis" in name else None
    server = ServerLinks(url, None, notices)
    yield server
    await server.close()


async def made(name: str, folder: Path, notices: Notices, links: ServerLinks) -> CacheLayer:
    if "redis" in name:
        await links.redis("here").client.flushdb()
        return RedisCache(links.redis("here"))
    return SqliteCache(folder / FILE, ROOM, notices)


@pytest.fixture
async def over_redis(notices: Notices) -> AsyncIterator[OverRedis]:
    """The cache on a server of one's own, and the link to it."""
    opened: list[RedisLink] = []

    def cache(url: SecretStr, rest: float = REST_SECONDS) -> RedisCache:
        opened.append(RedisLink(url, notices, rest=rest))
        return RedisCache(opened[-1])

    yield cache
    for link in opened:
        await link.close()


async def test_what_was_put_is_got_and_nothing_else(cache: Cache) -> None:
    assert await cache.get("page") is None
    await cache.put("page", b"one", seconds=60)
    await cache.put("Page", b"", seconds=60)
    assert await cache.get("page") == b"one"
    assert await cache.get("Page") == b"", "an empty value is a value"
    assert await cache.get("pag") is None
    await cache.put("page", b"two", seconds=60)
    assert await cache.get("page") == b"two"


async def test_any_text_is_a_key_and_any_bytes_are_a_value(cache: Cache) -> None:
    keys = ["", " ", "a\0b", "日本語", "\ud800", "k" * 100_000, "https://example.org/?q=%00&r=\n"]
    for number, key in enumerate(keys):
        await cache.put(key, bytes([number, 0, 255, 13, 10]), seconds=60)
    assert [await cache.get(key) for key in keys] == [bytes([n, 0, 255, 13, 10]) for n in range(len(keys))]


async def test_a_value_of_megabytes(cache: Cache) -> None:
    value = os.urandom(2 * MB)
    await cache.put("large", value, seconds=60)
    assert await cache.get("large") == value


@pytest.mark.slow
async def test_a_value_ends_with_its_time(cache: Cache) -> None:
    await cache.put("short", b"x", seconds=0.2)
    await cache.put("long", b"x", seconds=60)
    await cache.put("none", b"x", seconds=60)
    await cache.put("none", b"x", seconds=0)
    await cache.put("ages", b"x", seconds=1e12)
    assert await cache.get("short") == b"x"
    assert await cache.get("none") is None
    await asyncio.sleep(0.25)
    assert await cache.get("short") is None
    assert await cache.get("long") == b"x"
    assert await cache.get("ages") == b"x"


@pytest.mark.slow
async def test_a_counter_begins_at_one_and_ends_once(cache: Cache) -> None:
    assert [await cache.count("host", seconds=1.5) for _ in range(3)] == [1, 2, 3]
    assert await cache.count("other", seconds=60) == 1
    await asyncio.sleep(0.25)
    assert await cache.count("host", seconds=60) == 4, "a later count does not lengthen its time"
    await asyncio.sleep(1.3)
    assert await cache.count("host", seconds=60) == 1
    assert await cache.get("host") is None, "counters and values do not meet"
    await cache.put("host", b"page", seconds=60)
    assert await cache.count("host", seconds=60) == 2


async def test_many_at_once(cache: Cache) -> None:
    async def work(number: int) -> None:
        await cache.put(f"k{number % 7}", b"%d" % (number % 7), seconds=60)
        assert await cache.get(f"k{number % 7}") == b"%d" % (number % 7)

    counted = await asyncio.gather(*(cache.count("all", seconds=60) for _ in range(60)))
    await asyncio.gather(*(work(number) for number in range(60)))
    assert sorted(counted) == list(range(1, 61))


# Never a wrong or an expired value --------------------------------------------------------------------

STEP = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.integers(0, 60), st.sampled_from([0, 0.5, 3, 90, 1e9])),
    st.tuples(st.just("get"), st.sampled_from("abcd"), st.just(0), st.just(0)),
    st.tuples(st.just("count"), st.sampled_from("ab"), st.just(0), st.sampled_from([1, 5, 90])),
    st.tuples(st.just("wait"), st.just(""), st.just(0), st.sampled_from([0.1, 1, 2.9, 70])),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lru", "sqlite", "layered"])
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEP, max_size=25))
def test_a_value_is_the_last_one_put_and_still_has_time_left(
    kind: str, steps: list[tuple[str, str, int, float]]
) -> None:
    """Against the plain model; a small layer may forget, and then knows nothing."""
    clock, notices = Clock(), Notices()

    async def play(folder: Path) -> None:
        near, far = LruCache(200 * KB, clock=clock), SqliteCache(folder / "c", 400 * KB, notices, clock=clock)
        caches: dict[str, Cache] = {"lru": near, "sqlite": far, "layered": TwoLevelCache(near, far)}
        cache = caches[kind]
        model = MemoryCache(clock)
        for number, (what, key, size, seconds) in enumerate(steps):
            if what == "put":
                value = bytes([number]) * (size * KB)
                await cache.put(key, value, seconds=seconds)
                await model.put(key, value, seconds=seconds)
            elif what == "get":
                assert await cache.get(key) in (None, await model.get(key))
            elif what == "count":
                assert await cache.count(key, seconds=seconds) == await model.count(key, seconds=seconds)
            else:
                clock.now += seconds
            assert near.size <= 200 * KB
        await far.close()

    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))
    assert notices == []


# Bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lru", "sqlite"])
async def test_what_was_used_longest_ago_leaves_first(kind: str, tmp_path: Path, notices: Notices) -> None:
    clock = Clock()
    disk = SqliteCache(tmp_path / "c", 1 * MB, notices, clock=clock)
    cache: CacheLayer = LruCache(1 * MB, clock=clock) if kind == "lru" else disk
    for name in "abcdefgh":
        await cache.put(name, name.encode() * 100_000, seconds=1e6)
        clock.now += 1
    clock.now += TOUCH_SECONDS
    assert await cache.get("a")
    clock.now += 1
    for name in "ij":
        await cache.put(name, name.encode() * 100_000, seconds=1e6)
    left = [name for name in "abcdefghij" if await cache.get(name)]
    assert {"a", "i", "j"} <= set(left)
    assert "b" not in left
    assert len(left) >= 5, "no more leave than must"
    await disk.close()


async def test_the_file_stays_within_its_size(tmp_path: Path, notices: Notices) -> None:
    path, sizes = tmp_path / "c", []
    cache = SqliteCache(path, 2 * MB, notices)
    for number in range(120):
        await cache.put(f"k{number}", os.urandom(1000 + 2000 * (number % 100)), seconds=1e6)
        sizes.append(_on_disk(tmp_path))
    assert max(sizes) <= 2 * MB
    assert max(sizes) >= 1.5 * MB
    await cache.close()
    smaller = SqliteCache(path, 1 * MB, notices)
    await smaller.put("one more", b"x" * 1000, seconds=1e6)
    assert path.stat().st_size <= 1 * MB, "a lower limit gives room back"
    assert await smaller.get("one more") == b"x" * 1000
    await smaller.close()
    assert notices == []


def _on_disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


async def test_too_large_a_value_passes_a_layer_by_and_leaves_no_older_one(tmp_path: Path, notices: Notices) -> None:
    disk = SqliteCache(tmp_path / "c", 8 * MB, notices)
    near = LruCache(800 * KB)
    both = TwoLevelCache(near, disk)
    await both.put("k", b"old", seconds=60)
    await both.put("k", b"n" * 200_000, seconds=60)
    assert await near.get("k") is None
    assert await both.get("k") == b"n" * 200_000
    await both.put("k", b"n" * 2 * MB, seconds=60)
    assert await both.get("k") is None
    await disk.close()


@pytest.mark.slow
async def test_what_has_expired_leaves_the_file(tmp_path: Path, notices: Notices) -> None:
    clock = Clock()
    cache = SqliteCache(tmp_path / "c", 8 * MB, notices, clock=clock)
    for number in range(30):
        await cache.put(f"k{number}", b"x" * 1000, seconds=10)
        await cache.count(f"c{number}", seconds=10)
    clock.now += 11
    for _ in range(2):
        await cache.put("fresh", b"x", seconds=10)
    await cache.close()
    with closing(sqlite3.connect(tmp_path / "c")) as file:
        rows = file.execute(
            "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM contents), (SELECT count(*) FROM counters)"
        )
        assert rows.fetchall() == [(1, 1, 0)]


async def test_what_has_expired_leaves_the_file_when_somebody_has_time(tmp_path: Path, notices: Notices) -> None:
    clock = Clock()
    cache = SqliteCache(tmp_path / "c", 8 * MB, notices, clock=clock)
    for number in range(30):
        await cache.put(f"k{number}", b"x" * 1000, seconds=10)
        await cache.count(f"c{number}", seconds=10)
    await cache.put("kept", b"x", seconds=100)
    assert await cache.prune() == 0
    clock.now += 11
    assert await cache.prune() == 60
    assert await cache.prune() == 0
    assert await cache.get("kept") == b"x"
    await cache.close()


# Layers -----------------------------------------------------------------------------------------------


async def test_the_near_copy_ends_no_later_than_the_far_one(tmp_path: Path, notices: Notices) -> None:
    clock = Clock()
    disk = SqliteCache(tmp_path / "c", MB, notices, clock=clock)
    near = LruCache(MB, clock=clock)
    both = TwoLevelCache(near, disk)
    await disk.put("k", b"v", seconds=100)
    clock.now += 70
    assert await both.get("k") == b"v"
    assert await near.get("k") == b"v"
    clock.now += 29
    assert await both.get("k") == b"v"
    clock.now += 1
    assert await both.get("k") is None
    await disk.close()


async def test_a_second_process_finds_what_the_first_has_put(tmp_path: Path, notices: Notices) -> None:
    first = open_cache(CacheSettings(), tmp_path, ServerLinks(None, None, notices), notices)
    second = open_cache(CacheSettings(), tmp_path, ServerLinks(None, None, notices), notices)
    assert await second.get("k") is None
    await first.put("k", b"v", seconds=60)
    assert await second.get("k") == b"v"
    await first.close()
    assert await first.get("k") is None, "closed, it knows nothing and says nothing"
    await second.close()
    assert notices == []


COUNTING = """
import asyncio, sys
from pathlib import Path
from openassay.storage.cache import SqliteCache

async def main():
    cache = SqliteCache(Path(sys.argv[1]), 1_000_000, lambda text: sys.exit(text))
    for number in range(50):
        print(await cache.count("all", seconds=600))
        await cache.put(f"{sys.argv[2]} {number}", b"x" * 30_000, seconds=600)
        assert await cache.get(f"{sys.argv[2]} {number}") in (None, b"x" * 30_000)
    await cache.close()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_four_processes_count_exactly(tmp_path: Path) -> None:
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", COUNTING, str(tmp_path / "c"), name, stdout=subprocess.PIPE
        )
        for name in "abcd"
    ]
    said = [(await worker.communicate())[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    assert sorted(int(number) for text in said for number in text.split()) == list(range(1, 201))
    assert (tmp_path / "c").stat().st_size <= MB


@pytest.mark.slow
async def test_the_event_loop_does_not_wait_for_a_locked_file(
    tmp_path: Path, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "BUSY_SECONDS", 0.4)
    cache = SqliteCache(tmp_path / "c", MB, notices)
    await cache.put("k", b"v", seconds=60)
    locker = sqlite3.connect(tmp_path / "c", isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    await cache.close()
    cache = SqliteCache(tmp_path / "c", MB, notices, rest=0.3)
    waiting = asyncio.create_task(cache.get("k"))
    ticks = 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert await waiting is None
    assert ticks > 10
    again, resting = asyncio.create_task(cache.get("k")), 0
    while not again.done():
        await asyncio.sleep(0.01)
        resting += 1
    assert await again is None
    assert resting < ticks / 2, "it rests instead of waiting again"
    locker.execute("ROLLBACK")
    locker.close()
    await asyncio.sleep(0.35)
    assert await cache.get("k") == b"v"
    assert len(notices) == 1
    assert "locked" in notices[0]
    await cache.close()


# A damaged or impossible file -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["garbage", "cut", "holes", "emptied"])
@pytest.mark.parametrize("opened", [True, False])
async def test_a_damaged_file_costs_its_values_and_no_more(
    damage: str, opened: bool, tmp_path: Path, notices: Notices
) -> None:
    path = tmp_path / "c"
    cache = SqliteCache(path, 8 * MB, notices)
    values = {f"k{number}": os.urandom(20_000) for number in range(40)}
    for key, value in values.items():
        await cache.put(key, value, seconds=600)
    if not opened:
        await cache.close()
    _damage(path, damage)
    cache = cache if opened else SqliteCache(path, 8 * MB, notices)
    for key, value in values.items():
        assert await cache.get(key) in (None, value)
        assert await cache.count(key, seconds=60) >= 1
    for key, value in values.items():
        await cache.put(key, value, seconds=600)
    assert [key for key, value in values.items() if await cache.get(key) != value] == []
    assert len(notices) <= 1
    assert all("starts empty" in notice for notice in notices)
    await cache.close()


def _damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "garbage":
        data = bytearray(b"not a database at all " * 4000)
    elif how == "cut":
        data = data[: len(data) // 3]
    elif how == "emptied":
        data = bytearray()
    else:
        for place in range(5000, len(data), 9000):
            data[place : place + 64] = b"\xa5" * 64
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(data)


async def test_a_place_that_cannot_be_written_is_a_miss_and_one_notice(tmp_path: Path, notices: Notices) -> None:
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file" / "c", tmp_path):
        notices.clear()
        cache = SqliteCache(place, MB, notices)
        await cache.put("k", b"v", seconds=60)
        assert await cache.get("k") is None
        assert [await cache.count("k", seconds=60) for _ in range(2)] == [1, 1]
        assert len(notices) == 1
        both = TwoLevelCache(LruCache(MB), cache)
        await both.put("k", b"v", seconds=60)
        assert await both.get("k") == b"v", "the near layer goes on"
        assert [await both.count("k", seconds=60) for _ in range(2)] == [1, 2]
        await cache.close()


# A server in trouble ----------------------------------------------------------------------------------


async def test_a_server_that_is_gone_is_a_miss_one_notice_and_tried_again(
    own_valkey: Callable[..., ValkeyServer], over_redis: OverRedis, notices: Notices
) -> None:
    server = own_valkey()
    cache = over_redis(server.url, rest=0.3)
    both = TwoLevelCache(LruCache(MB), cache)
    await both.put("k", b"v", seconds=600)
    assert await cache.get("k") == b"v"
    server.stop()
    for _ in range(3):
        assert await cache.get("k") is None
        await both.put("new", b"v", seconds=600)
    assert await both.get("new") == b"v"
    assert [await both.count("n", seconds=60) for _ in range(2)] == [1, 2]
    assert len(notices) == 1
    assert "cannot be reached" in notices[0]
    await asyncio.sleep(0.35)
    assert await cache.get("k") is None
    assert len(notices) == 1, "the same outage is told once"
    own_valkey(port=server.port)
    await asyncio.sleep(0.35)
    await cache.put("k", b"back", seconds=60)
    assert await cache.get("k") == b"back"
    await both.close()


@pytest.mark.slow
async def test_a_server_that_stops_in_the_middle_of_a_call(
    own_valkey: Callable[..., ValkeyServer], over_redis: OverRedis, notices: Notices
) -> None:
    server = own_valkey()
    cache = over_redis(server.url, rest=0.2)
    await cache.put("k", b"v", seconds=600)
    server.freeze()
    got, counted = await asyncio.gather(cache.get("k"), cache.count("n", seconds=60))
    assert (got, counted) == (None, 1)
    assert len(notices) == 1
    assert "in time" in notices[0]
    server.thaw()
    await asyncio.sleep(0.3)
    assert await cache.get("k") == b"v"
    calls = asyncio.gather(*(cache.put(f"k{n}", b"x" * MB, seconds=60) for n in range(50)))
    await asyncio.sleep(0.01)
    server.stop()
    await calls
    assert await cache.get("k") is None
    await cache.close()


@pytest.mark.parametrize("packed", [b"", b"(", b"\1not zstandard", b"\2of another kind", b'{"text": "before"}'])
async def test_what_was_not_packed_here_is_a_miss(packed: bytes, valkey: ValkeyServer, over_redis: OverRedis) -> None:
    cache = over_redis(valkey.url)
    await cache._link.client.set(redis_key("value", "k"), packed, px=60_000)
    assert await cache.get("k") is None


async def test_packing_makes_text_smaller_and_nothing_larger(valkey: ValkeyServer, over_redis: OverRedis) -> None:
    cache = over_redis(valkey.url)
    for name, value in {"text": b"much of the same " * 40_000, "noise": os.urandom(300_000), "few": b"abc"}.items():
        await cache.put(name, value, seconds=60)
        assert await cache.get(name) == value
        stored = await cache._link.client.get(redis_key("value", name))
        assert stored is not None
        assert len(stored) <= (len(value) / 100 if name == "text" else len(value) + 30)


@pytest.mark.parametrize("url", ["redis://:{secret}@127.0.0.1:{port}/0", "redis://127.0.0.1:{port}/0"])
async def test_a_refused_password_is_told_without_it(
    url: str, own_valkey: Callable[..., ValkeyServer], notices: Notices
) -> None:
    server = own_valkey("--requirepass", "the-right-one")
    given = SecretStr(url.format(secret="wr0ng-s3cret", port=server.port))
    links = ServerLinks(given, None, notices)
    cache = open_cache(CacheSettings(backend="redis"), Path(), links, notices)
    await cache.put("k", b"v", seconds=60)
    assert await cache.get("k") == b"v"
    assert len(notices) == 1
    assert "password" in notices[0]
    assert "s3cret" not in f"{notices} {cache!r} {vars(cache)!r} {vars(links)!r}"
    await links.close()


async def test_a_server_that_is_full_or_speaks_nonsense(
    own_valkey: Callable[..., ValkeyServer], over_redis: OverRedis, notices: Notices
) -> None:
    full = over_redis(own_valkey("--maxmemory", "1mb", "--maxmemory-policy", "noeviction").url)
    for number in range(3):
        await full.put(f"k{number}", os.urandom(MB), seconds=60)
    assert len(notices) == 1

    listener = await asyncio.start_server(_speaks_http, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    other = over_redis(SecretStr(f"redis://127.0.0.1:{port}"))
    assert await other.get("k") is None
    assert len(notices) == 2
    listener.close()


async def _speaks_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_names_on_the_server_are_ours_and_tell_nothing(valkey: ValkeyServer, over_redis: OverRedis) -> None:
    cache = over_redis(valkey.url)
    client = cache._link.client
    await cache.put("query: my private question", b"v", seconds=60)
    await cache.count("query: my private question", seconds=60)
    names = [name async for name in client.scan_iter()]
    assert names
    assert all(name.startswith(b"openassay:") and b"private" not in name for name in names)
    assert all([await client.pttl(name) > 0 for name in names]), "nothing stays for ever"
    await cache.close()


# Choosing ---------------------------------------------------------------------------------------------


def test_redis_needs_an_address(tmp_path: Path, notices: Notices) -> None:
    with pytest.raises(ConfigurationError, match="REDIS_URL") as caught:
        open_cache(CacheSettings(backend="redis"), tmp_path, ServerLinks(None, None, notices), notices)
    assert "REDIS_URL" in caught.value.help


@pytest.mark.parametrize("url", ["http://:s3cret@host", "redis://user:s3cret@host:s3cret/0", "s3cret", ""])
def test_a_wrong_address_is_refused_without_showing_it(url: str, tmp_path: Path, notices: Notices) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_cache(CacheSettings(backend="redis"), tmp_path, ServerLinks(SecretStr(url), None, notices), notices)
    shown = f"{caught.value} {caught.value.help} {caught.value.__cause__}"
    assert "s3cret" not in shown
    assert caught.value.__suppress_context__


async def test_in_memory_nothing_is_written(tmp_path: Path, notices: Notices) -> None:
    cache = open_cache(CacheSettings(backend="memory"), tmp_path, ServerLinks(None, None, notices), notices)
    await cache.put("k", b"v", seconds=60)
    assert await cache.get("k") == b"v"
    await cache.close()
    assert not (tmp_path / FILE).exists()


def test_no_thread_is_left(tmp_path: Path, notices: Notices) -> None:
    async def use() -> None:
        cache = open_cache(CacheSettings(), tmp_path, ServerLinks(None, None, notices), notices)
        await asyncio.gather(*(cache.put(f"k{n}", b"v", seconds=60) for n in range(20)))
        await cache.close()

    before = threading.active_count()
    asyncio.run(use())
    assert threading.active_count() == before
