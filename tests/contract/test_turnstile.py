"""One decision about a person at a time, in one process and in all that share a database."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable

import pytest

from openassay.errors import StorageError
from openassay.storage import shared_servers
from openassay.storage.locks import UserLock
from openassay.storage.shared_servers import PostgresLink
from tests.conftest import PostgresServer

pytestmark = pytest.mark.requirement("W-15")

Join = Callable[[], UserLock]


@pytest.fixture
async def links(postgres_address: str) -> AsyncIterator[Callable[[], PostgresLink]]:
    opened: list[PostgresLink] = []

    def link() -> PostgresLink:
        opened.append(PostgresLink(postgres_address, pytest.fail))
        return opened[-1]

    yield link
    for one in opened:
        await one.close()


@pytest.fixture(params=["process", "postgres"])
def join(request: pytest.FixtureRequest) -> Join:
    """`join()`: one more process on the same database."""
    if request.param == "process":
        alone = UserLock()
        return lambda: alone
    link: Callable[[], PostgresLink] = request.getfixturevalue("links")
    return lambda: UserLock(link())


async def test_what_is_read_in_there_is_what_the_one_before_has_written(join: Join) -> None:
    processes, written = [join() for _ in range(3)], 0

    async def add(turnstile: UserLock) -> None:
        nonlocal written
        async with turnstile.acquire("ada"):
            read = written
            await asyncio.sleep(0.005)
            written = read + 1

    await asyncio.gather(*(add(processes[number % 3]) for number in range(30)))
    assert written == 30


async def test_others_do_not_wait(join: Join) -> None:
    here, there = join(), join()
    async with here.acquire("ada"), asyncio.timeout(30), there.acquire("bob"):
        pass


async def test_who_fails_or_leaves_is_in_nobodys_way(join: Join) -> None:
    here, there = join(), join()
    with pytest.raises(ZeroDivisionError):
        async with here.acquire("ada"):
            raise ZeroDivisionError
    async with here.acquire("ada"):
        waiting = asyncio.create_task(_enter(there, "ada"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(30):
        await _enter(there, "ada")
        await _enter(here, "ada")
    for number in range(50):
        await _enter(here, f"person {number}")
    gc.collect()
    assert len(here._entries) <= 1, "none is kept but what the error of the cancelled task holds"


async def _enter(turnstile: UserLock, person: str) -> None:
    async with turnstile.acquire(person):
        pass


async def test_more_people_than_connections_come_through(links: Callable[[], PostgresLink]) -> None:
    here = UserLock(links())
    async with asyncio.timeout(60):
        await asyncio.gather(*(_enter(here, f"person {number % 20}") for number in range(60)))


async def test_a_process_that_stops_in_there_keeps_nobody_out_for_long(
    links: Callable[[], PostgresLink], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its connection is ended by the server; what it was about is left to it."""
    monkeypatch.setattr(shared_servers, "_BEGIN", shared_servers._BEGIN.replace("20s", "300ms"))
    here, there = UserLock(links()), UserLock(links())
    async with here.acquire("ada"), asyncio.timeout(30):
        await _enter(there, "ada")
    assert any("while a lock was held" in record.message for record in caplog.records)
    async with asyncio.timeout(30):
        await _enter(here, "ada")


@pytest.mark.slow
async def test_a_database_that_is_gone_is_an_error_that_passes(
    postgres_server: PostgresServer, links: Callable[[], PostgresLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_servers, "LOCK_SECONDS", 1)
    here = UserLock(links())
    await _enter(here, "ada")
    await asyncio.to_thread(postgres_server.stop)
    try:
        with pytest.raises(StorageError, match="cannot be reached") as caught:
            await _enter(here, "ada")
        assert caught.value.retryable
    finally:
        await asyncio.to_thread(postgres_server.start)
    async with asyncio.timeout(60):
        while True:
            try:
                return await _enter(here, "ada")
            except StorageError:
                await asyncio.sleep(0.1)
