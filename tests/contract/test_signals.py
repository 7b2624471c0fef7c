"""What every Signals does: in the process, over PostgreSQL, over Redis; and that no trouble below it is felt above."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from openassay.errors import ConfigurationError
from openassay.protocols import Signals
from openassay.settings import load
from openassay.storage import shared_services as settings
from openassay.storage.shared_servers import PostgresLink, RedisLink, ServerLink
from openassay.storage.shared_services import (
    MAX_MESSAGE_BYTES,
    PostgresSignals,
    ProcessSignals,
    RedisSignals,
    ServerSignals,
    open_shared_services,
)
from tests.conftest import PostgresServer, ValkeyServer
from tests.growth import LINEAR, growth

pytestmark = pytest.mark.requirement("W-14")

PATIENCE = 30.0


class Notices(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def notices() -> Notices:
    return Notices()


Join = Callable[[], ServerSignals]


@asynccontextmanager
async def joining(kind: str, place: str, notices: Notices) -> AsyncIterator[Join]:
    """`join()`: one more process on the same server, as far as anybody can tell."""
    opened: list[tuple[ServerSignals, ServerLink]] = []

    def join() -> ServerSignals:
        if kind == "redis":
            redis = RedisLink(SecretStr(place), notices, rest=0.1)
            opened.append((RedisSignals(redis), redis))
        else:
            postgres = PostgresLink(place, notices, rest=0.1)
            opened.append((PostgresSignals(postgres), postgres))
        return opened[-1][0]

    yield join
    for signals, link in opened:
        await signals.close()
        await link.close()


@pytest.fixture(params=["postgres", "redis"])
async def join(request: pytest.FixtureRequest, notices: Notices) -> AsyncIterator[Join]:
    kind: str = request.param
    redis = kind == "redis"
    place = request.getfixturevalue("valkey").url.get_secret_value() if redis else ""
    async with joining(kind, place or request.getfixturevalue("postgres_address"), notices) as join:
        yield join


@pytest.fixture(params=["process", "postgres", "redis"])
def any_signals(request: pytest.FixtureRequest) -> Signals:
    """Of one process."""
    if request.param == "process":
        return ProcessSignals()
    signals: Signals = request.getfixturevalue(f"{request.param}_signals")
    return signals


@pytest.fixture
async def postgres_signals(postgres_address: str, notices: Notices) -> AsyncIterator[Signals]:
    async with joining("postgres", postgres_address, notices) as join:
        yield join()


@pytest.fixture
async def redis_signals(valkey: ValkeyServer, notices: Notices) -> AsyncIterator[Signals]:
    async with joining("redis", valkey.url.get_secret_value(), notices) as join:
        yield join()


async def rung(bell: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await bell.wait()
    bell.clear()


async def alive(*signals: Signals) -> None:
    """They hear others now."""
    async with asyncio.timeout(PATIENCE):
        while not all(one.is_live for one in signals):  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.02)


# In one process ---------------------------------------------------------------------------------------


async def test_whoever_listens_is_rung_and_nobody_else(any_signals: Signals) -> None:
    any_signals.notify("run:a")  # which nobody hears
    with any_signals.listen("run:a") as first, any_signals.listen("run:a") as second:
        with any_signals.listen("run:b") as other:
            await asyncio.sleep(0.2)
            for bell in (first, second, other):
                bell.clear()  # a connection that came up wakes everybody
            any_signals.notify("run:a")
            assert first.is_set(), "in the same process at once"
            assert second.is_set()
            assert not other.is_set()
        first.clear()
        any_signals.notify("run:a")
        assert first.is_set(), "and again"


async def test_who_has_left_is_not_kept(any_signals: Signals) -> None:
    for number in range(100):
        with any_signals.listen(f"run:{number}"):
            pass
    any_signals.notify("run:1")
    assert not any_signals._listeners  # type: ignore[attr-defined]


def test_one_process_hears_no_other() -> None:
    assert not ProcessSignals().is_live


# Between processes ------------------------------------------------------------------------------------


async def test_other_processes_hear_it(join: Join, notices: Notices) -> None:
    here, there, elsewhere = join(), join(), join()
    hears = there.listen("run:a"), elsewhere.listen("run:a"), there.listen("run:b")
    with hears[0] as first, hears[1] as second, hears[2] as other:
        await alive(there, elsewhere)
        for bell in (first, second, other):
            bell.clear()
        here.notify("run:a")
        await rung(first)
        await rung(second)
        assert not other.is_set()
        here.notify("run:b")
        await rung(other)
        assert not first.is_set()
    assert notices == []


RINGING = """
import asyncio, sys
from pydantic import SecretStr
from openassay.storage.shared_servers import PostgresLink
from openassay.storage.shared_services import PostgresSignals
from openassay.storage.shared_servers import RedisLink
from openassay.storage.shared_services import RedisSignals

async def main(place):
    link = RedisLink(SecretStr(place), sys.exit) if place.startswith("redis") else PostgresLink(place, sys.exit)
    signals = RedisSignals(link) if place.startswith("redis") else PostgresSignals(link)
    for number in range(100):
        signals.notify(f"run:{number}")
    await signals.close()
    await link.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_a_process_that_ends_at_once_has_told_all(
    kind: str, postgres_address: str, valkey: ValkeyServer, notices: Notices
) -> None:
    place = postgres_address if kind == "postgres" else valkey.url.get_secret_value()
    async with joining(kind, place, notices) as join:
        here = join()
        with here.listen("run:0") as first, here.listen("run:99") as last:
            await alive(here)
            first.clear()
            last.clear()
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", RINGING, place, stderr=subprocess.PIPE)
            _, said = await other.communicate()
            assert (other.returncode, said) == (0, b"")
            await rung(first)
            await rung(last)


@pytest.mark.slow
async def test_what_rings_often_is_told_seldom(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SEND_PAUSE", 0.2)
    here, there = join(), join()
    told: list[str] = []
    take = there._handle_message

    def counted(message: str) -> None:
        told.append(message)
        take(message)

    monkeypatch.setattr(there, "_handle_message", counted)
    with there.listen("run:a") as bell, there.listen("last") as last:
        await alive(there)
        for bell_ in (bell, last):
            bell_.clear()
        for number in range(300):
            here.notify("run:a")
            here.notify(f"run:{number % 7}")
            await asyncio.sleep(0.001)
        here.notify("last")
        await rung(last)
        assert bell.is_set()
    assert 1 < len(told) <= 20, "of 600"


async def test_more_topics_than_a_message_holds_wake_everybody(join: Join) -> None:
    here, there = join(), join()
    with there.listen("run:quite another one") as bell:
        await alive(there)
        bell.clear()
        for number in range(MAX_MESSAGE_BYTES):
            here.notify(f"run:{number}")
        await rung(bell)


async def test_ringing_takes_no_time_and_opens_nothing_to_listen_with(join: Join) -> None:
    here = join()

    def ring(count: int) -> None:
        for number in range(count):
            here.notify(f"run:{number % 20}")

    assert growth(ring, 10_000) < LINEAR
    assert not here.is_live, "it listens to nobody"


# Trouble ----------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_nobody_there_is_told_once_and_ringing_goes_on(notices: Notices) -> None:
    for kind, place in (("redis", "redis://127.0.0.1:9/0"), ("postgres", "postgresql://nobody@127.0.0.1:9/none")):
        notices.clear()
        async with joining(kind, place, notices) as join:
            here = join()
            with here.listen("run:a") as bell:
                async with asyncio.timeout(PATIENCE):
                    while not notices:
                        here.notify("run:b")
                        await asyncio.sleep(0.02)
                for _ in range(20):
                    here.notify("run:a")
                    assert bell.is_set()
                    bell.clear()
                    await asyncio.sleep(0.02)
                assert not here.is_live
        assert len(notices) == 1, notices
        assert "cannot be reached" in notices[0]


async def test_a_redis_that_was_gone_is_listened_to_again(
    own_valkey: Callable[..., ValkeyServer], notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RECONNECT_SECONDS", 0.1)
    server = own_valkey()
    async with joining("redis", server.url.get_secret_value(), notices) as join:
        await _survives(join(), join(), server.stop, lambda: own_valkey(port=server.port))
    assert len(notices) == 2, "each of the two told it once"
    assert all("cannot be reached" in notice for notice in notices)


async def test_a_database_that_was_restarted_is_listened_to_again(
    postgres_server: PostgresServer, postgres_address: str, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RECONNECT_SECONDS", 0.1)
    async with joining("postgres", postgres_address, notices) as join:
        await _survives(join(), join(), postgres_server.stop, postgres_server.start)
    assert len(notices) == 2


async def _survives(
    here: ServerSignals, there: ServerSignals, stop: Callable[[], object], start: Callable[[], object]
) -> None:
    with there.listen("run:a") as bell, here.listen("run:b"):
        await alive(here, there)
        bell.clear()
        await asyncio.to_thread(stop)
        try:
            await rung(bell)  # from here on it looks for itself
            assert not there.is_live
            here.notify("run:a")
            await asyncio.sleep(0.3)
            assert not bell.is_set()
        finally:
            await asyncio.to_thread(start)
        await alive(here, there)
        await rung(bell)  # something may have been missed
        async with asyncio.timeout(PATIENCE):
            while not bell.is_set():  # what rings while the sender still rests is lost
                here.notify("run:a")
                await asyncio.sleep(0.1)


async def test_a_server_that_stops_answering_is_noticed(
    own_valkey: Callable[..., ValkeyServer], notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay open and nothing comes any more."""
    for name, seconds in {"QUIET_SECONDS": 0.2, "RECONNECT_SECONDS": 0.1}.items():
        monkeypatch.setattr(settings, name, seconds)
    monkeypatch.setattr("openassay.storage.shared_services.ANSWER_SECONDS", 0.5)
    server = own_valkey()
    async with joining("redis", server.url.get_secret_value(), notices) as join:
        here = join()
        with here.listen("run:a") as bell:
            await alive(here)
            await asyncio.sleep(0.7)  # silence alone is no trouble
            assert here.is_live
            bell.clear()
            server.freeze()
            await rung(bell)
            assert not here.is_live
            server.thaw()
            await alive(here)
    assert len(notices) == 1
    assert "in time" in notices[0]


# Choosing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("redis", "postgres", "said", "chosen"),
    [
        (False, False, "auto", ProcessSignals),
        (True, False, "auto", RedisSignals),
        (False, True, "auto", PostgresSignals),
        (True, True, "auto", RedisSignals),
        (True, True, "postgres", PostgresSignals),
        (True, True, "process", ProcessSignals),
    ],
)
async def test_what_carries_news_and_rates(
    redis: bool, postgres: bool, said: str, chosen: type[ProcessSignals], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, notices: Notices,
) -> None:  # fmt: skip
    """Nothing is connected to before somebody rings or listens."""
    if redis:
        monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:9/0")
    address = "postgresql://nobody@127.0.0.1:9/none" if postgres else None
    async with open_shared_services(load(fleet={"signals": said}), tmp_path, address, notices) as commons:
        assert type(commons.signals) is chosen
        assert (commons.shared_rates is commons.rates) is (chosen is not ProcessSignals)
    assert notices == []


@pytest.mark.parametrize(("said", "missing"), [("redis", "REDIS_URL"), ("postgres", "persistence.backend")])
async def test_what_is_asked_for_and_not_there_is_an_error(
    said: str, missing: str, tmp_path: Path, notices: Notices
) -> None:
    with pytest.raises(ConfigurationError, match=r"fleet\.signals") as caught:
        async with open_shared_services(load(fleet={"signals": said}), tmp_path, None, notices):
            pass
    assert missing in caught.value.help
