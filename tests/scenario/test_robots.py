"""robots.txt, read as RFC 9309 has it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from openassay.errors import AddressPolicyError, FetchError
from openassay.fetch.client import FetchClient
from openassay.fetch.web_pages import Robots
from openassay.settings import HarvestSettings
from tests.fakes.http_server import ServerConnection
from tests.fakes.web import FakeWeb, WebVisit, build_reply, reset_connection, send_endless_body

SITE = "http://site.example.org"
RULES = f"{SITE}/robots.txt"
CLOSED = "User-agent: *\nDisallow: /"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def web() -> AsyncIterator[FakeWeb]:
    async with FakeWeb() as web:
        yield web


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def robots(web: FakeWeb, clock: Clock) -> AsyncIterator[Robots]:
    async with FetchClient(HarvestSettings(), resolve=web.resolve_public, dial=web.dial) as client:
        robots = Robots(client, "OpenAssayBot/0.1 (+https://example.org)", clock=clock)
        yield robots
        await robots.aclose()


async def can_fetch(robots: Robots, url: str) -> bool:
    try:
        await robots.check(url)
    except FetchError:
        return False
    return True


@pytest.mark.requirement("W-08")
async def test_rules_are_obeyed(web: FakeWeb, robots: Robots) -> None:
    rules = "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\nCrawl-delay: 2.5"
    web.add_page(RULES, rules, type="text/plain")
    asked = ["/", "/private", "/private/a?b", "/private/open/x", "/a.pdf", "/a.pdf?x", "/PRIVATE", "/robots.txt"]
    allowed = [path for path in asked if await can_fetch(robots, SITE + path)]
    assert allowed == ["/", "/private/open/x", "/a.pdf?x", "/PRIVATE", "/robots.txt"]
    assert await robots.crawl_delay(SITE) == 2.5
    with pytest.raises(AddressPolicyError, match="disallows crawlers"):
        await robots.check(f"{SITE}/private")
    assert len(web.requests) == 1
    assert web.requests[0].headers["user-agent"] == HarvestSettings().user_agent


async def test_the_rules_for_us_come_before_those_for_all(web: FakeWeb, robots: Robots) -> None:
    web.add_page(
        RULES, "User-agent: *\nDisallow: /a\n\nUser-Agent: openassaybot\nDisallow: /b\n\nUser-agent: other\nDisallow: /"
    )
    assert [path for path in ("/a", "/b", "/c") if await can_fetch(robots, SITE + path)] == ["/a", "/c"]


@pytest.mark.requirement("W-08")
@pytest.mark.parametrize(
    ("status", "allowed"), [(400, True), (401, True), (403, True), (404, True), (410, True), (500, False), (503, False)]
)
async def test_a_site_without_rules_is_open_and_a_broken_one_is_not(
    web: FakeWeb, robots: Robots, status: int, allowed: bool
) -> None:
    web.add_page(RULES, CLOSED, status=status, headers={"Retry-After": "0"})
    assert await can_fetch(robots, f"{SITE}/") is allowed
    if not allowed:
        with pytest.raises(FetchError, match=r"robots\.txt could not be read") as caught:
            await robots.check(f"{SITE}/")
        assert caught.value.retryable


async def test_an_unreachable_site_is_left_alone(web: FakeWeb, robots: Robots) -> None:
    web.add_handler(RULES, reset_connection)
    assert not await can_fetch(robots, f"{SITE}/")
    assert await robots.crawl_delay(f"{SITE}/") == 0


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        (b"", True),
        (b"\xef\xbb\xbf" + CLOSED.encode(), False),
        (CLOSED.replace("\n", "\r\n").encode(), False),
        (CLOSED.replace("\n", "\r").encode(), False),
        (b"<!doctype html><html><body>No such page</body></html>", True),
        (bytes(range(256)) * 20, True),
        (b"\xff\xfe\n" + CLOSED.encode(), False),
        (b"Disallow: /", True),  # for nobody
        (b"User-agent: *\nDisallow:", True),
        (b"User-agent: *\nDisallow: /" + b"*a" * 100_000, True),
        (b"User-agent: *\nCrawl-delay: soon\nDisallow: /", False),
    ],
)
async def test_odd_files(web: FakeWeb, robots: Robots, body: bytes, allowed: bool) -> None:
    web.add_page(RULES, body, type="application/octet-stream")
    assert await can_fetch(robots, f"{SITE}/{'a' * 1000}") is allowed
    assert await robots.crawl_delay(SITE) == 0


async def test_a_long_file_is_heeded_as_far_as_it_is_read(web: FakeWeb, robots: Robots) -> None:
    filler = b"# nothing\n" * 51_000
    web.add_page(RULES, b"User-agent: *\nDisallow: /early\n" + filler + filler + b"Disallow: /late\n")
    assert [path for path in ("/early", "/late") if await can_fetch(robots, SITE + path)] == ["/late"]
    web.add_handler("http://other.example.org/robots.txt", send_endless_body(piece=b"# nothing\n" * 1000))
    assert await can_fetch(robots, "http://other.example.org/")


async def test_redirects(web: FakeWeb, robots: Robots) -> None:
    for number in range(4):
        web.add_redirect(f"{SITE}/{number}", f"/{number + 1}")
    web.add_redirect(RULES, "/0")
    web.add_page(f"{SITE}/4", CLOSED)
    assert not await can_fetch(robots, f"{SITE}/")


async def test_too_many_redirects_are_no_rules(web: FakeWeb, robots: Robots) -> None:
    for number in range(6):
        web.add_redirect(f"{SITE}/{number}", f"/{number + 1}")
    web.add_redirect(RULES, "/0")
    web.add_page(f"{SITE}/6", CLOSED)
    assert await can_fetch(robots, f"{SITE}/")


async def test_every_origin_has_its_own(web: FakeWeb, robots: Robots) -> None:
    web.add_page(RULES, CLOSED)
    assert not await can_fetch(robots, f"{SITE}/")
    assert await can_fetch(robots, "http://www.site.example.org/")
    assert not await can_fetch(robots, f"{SITE}:8080/")
    assert len(web.requests) == 3


async def test_those_who_ask_together_share_one_fetch(web: FakeWeb, robots: Robots) -> None:
    web.add_page(RULES, CLOSED, delay=0.1)
    first = asyncio.create_task(can_fetch(robots, f"{SITE}/"))
    others = [asyncio.create_task(can_fetch(robots, f"{SITE}/{number}")) for number in range(50)]
    await asyncio.sleep(0.02)
    first.cancel()
    assert not any(await asyncio.gather(*others))
    assert len(web.requests) == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_rules_are_remembered_for_a_day_and_failures_for_minutes(
    web: FakeWeb, robots: Robots, clock: Clock
) -> None:
    web.add_handler(RULES, reset_connection)
    assert not await can_fetch(robots, f"{SITE}/")
    web.add_page(RULES, "")
    assert not await can_fetch(robots, f"{SITE}/")
    clock.now += 601
    assert await can_fetch(robots, f"{SITE}/")
    web.add_page(RULES, CLOSED)
    clock.now += 23 * 3600
    assert await can_fetch(robots, f"{SITE}/")
    clock.now += 2 * 3600
    assert not await can_fetch(robots, f"{SITE}/")


@pytest.mark.parametrize("agent", ["", "/", "  ", "openassaybot", "OpenAssayBot/9 (x)"])
async def test_any_user_agent_has_rules(web: FakeWeb, agent: str) -> None:
    web.add_page(RULES, CLOSED)
    async with FetchClient(HarvestSettings(), resolve=web.resolve_public, dial=web.dial) as client:
        robots = Robots(client, agent)
        assert not await can_fetch(robots, f"{SITE}/")
        await robots.aclose()


async def test_an_address_that_may_not_be_fetched(web: FakeWeb, robots: Robots) -> None:
    for url in ("http://127.0.0.1/", "http://localhost/robots.txt", "ftp://example.org/", "nonsense"):
        with pytest.raises(AddressPolicyError):
            await robots.check(url)
    assert web.dialled == []


@pytest.mark.slow
@pytest.mark.requirement("W-15")
async def test_however_many_sites_were_found_few_are_asked_at_once(web: FakeWeb, robots: Robots) -> None:
    under_way, most = 0, 0

    async def play(wire: ServerConnection, _: WebVisit) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        await wire.send(build_reply("", type="text/plain"))

    web.add_handler("http://*/robots.txt", play)
    assert all(await asyncio.gather(*(can_fetch(robots, f"http://site{n}.example.org/") for n in range(100))))
    assert 1 < most <= 32
